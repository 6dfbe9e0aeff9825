//! Fibres: threads of a host that it switches by itself, on one thread of the system. A kernel that is a process has them.
//!
//! ```text
//!   the thread's `Here` ◄── the fibre that runs          the host copies it at each switch:
//!   64 bytes, opaque    ──► 64 bytes of each other one   out for the one that goes, in for the one that comes
//! ```
//!
//! 64 zeros are a fibre that has entered no domain. Its first call gives it a control stack, and data stacks as a thread
//! has them. A fibre waits only while the host runs. So it waits with its counters even, and between no check and its access:
//! what `inside.rs` of the table says of the thread of the system is true of all its fibres.

use crate::gates::{HOST_RESERVE, Here, here};
use crate::host::Host;
use crate::thread::Thread;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a host keeps for each fibre that does not run. Zeros at first.
pub type Kept = [u64; 8];

const _: () = assert!(size_of::<Here>() <= size_of::<Kept>());

/// The size of the host's stacks, to which they are aligned; 0 for a host without fibres.
static STACK: AtomicU64 = AtomicU64::new(0);

/// What a module's calls leave of a fibre's stack at least.
const ROOM: u64 = 16 << 10;

impl Host {
    /// The host switches fibres on the calling thread, which has called no domain yet, and calls domains on no other one.
    /// Each fibre's stack has `stack` bytes, a power of two, and is aligned to that. Where the host copies to and from at each
    /// switch.
    ///
    /// Signals' stacks are the host's business from then on: none is set.
    ///
    /// # Safety
    /// All of it is as said. A copy that was made of a fibre is put back once, and only while no domain runs. Nobody calls a
    /// domain between the two halves of a switch, or from a handler of a signal.
    #[must_use]
    pub unsafe fn fibres(&self, stack: u64) -> *mut Kept {
        STACK.store(stack, Ordering::Relaxed);
        here().cast()
    }

    /// Ends a fibre that does not run and never will: its stacks are for others. Calls that it had in domains end here.
    ///
    /// # Safety
    /// It is what the host has kept of it, and it is not put back.
    pub unsafe fn end_fibre(&self, kept: &mut Kept) {
        let kept = std::ptr::from_mut(kept).cast::<Here>();
        // SAFETY: the host has copied the whole of it, which is aligned as eight words are.
        unsafe {
            let thread = (*kept).thread.cast::<Thread>();
            kept.write(std::mem::zeroed());
            if !thread.is_null() {
                drop(Box::from_raw(thread));
            }
        }
    }
}

/// Whether the host switches fibres.
pub(crate) fn are_there() -> bool {
    STACK.load(Ordering::Relaxed) != 0
}

/// What takes the place of the lowest address of the thread's stack, for the stack that is in use.
pub(crate) fn low() -> u64 {
    let mark = 0u8;
    let stack = STACK.load(Ordering::Relaxed);
    let low = (&raw const mark as u64) & !(stack - 1);
    // Gates compare with a reserve that is larger than such a stack.
    low.wrapping_add(ROOM).wrapping_sub(HOST_RESERVE)
}
