//! The name of a thread that waits.

/// A thread to wake: which worker, which of its threads, and which life of that place.
/// To wake one that has ended does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Waiter(u64);

const WORKER_BITS: u32 = 16;
const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 64 - WORKER_BITS - SLOT_BITS;
/// The worker number of plain OS threads.
pub(crate) const HOST: u64 = (1 << WORKER_BITS) - 1;

impl Waiter {
    /// Nobody. Waking nobody does nothing.
    pub const NONE: Waiter = Waiter(0);

    /// For an atomic word; [`Waiter::NONE`] is 0.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Waiter::to_bits`]. Any bits are harmless: what names no thread wakes none, and a
    /// thread woken for no reason looks again.
    pub const fn from_bits(bits: u64) -> Waiter {
        Waiter(bits)
    }

    /// Whether it is [`Waiter::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn thread(worker: u16, slot: u32, generation: u32) -> Waiter {
        let (generation, slot) = (generation as u64, slot as u64);
        Waiter(generation << (WORKER_BITS + SLOT_BITS) | slot << WORKER_BITS | worker as u64)
    }

    pub(crate) const fn host(slot: usize, generation: u32) -> Waiter {
        Waiter(
            (generation as u64) << (WORKER_BITS + SLOT_BITS) | (slot as u64) << WORKER_BITS | HOST,
        )
    }

    /// The generation after this one; never 0, which only [`Waiter::NONE`] has.
    pub(crate) const fn next_generation(generation: u32) -> u32 {
        if generation >= (1 << GENERATION_BITS) - 1 {
            1
        } else {
            generation + 1
        }
    }

    pub(crate) const fn worker(self) -> u64 {
        self.0 & HOST
    }

    #[inline]
    pub(crate) const fn slot(self) -> usize {
        (self.0 >> WORKER_BITS) as usize & ((1 << SLOT_BITS) - 1)
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> (WORKER_BITS + SLOT_BITS)) as u32
    }
}
