//! Values as bytes, for a peer that shares no exchange heap: an OS process of its own.
//!
//! ```text
//!   number   its bytes          Option, Result   1 byte, value      ExVec, ExString   8 bytes of count, values
//!   struct   field by field     enum             2 bytes, fields    ExBox             its value
//! ```
//! A plain value ([`Exchange::PLAIN`](super::Exchange::PLAIN)) is its bytes in memory, so that whoever knows that may
//! copy it. Writing trusts the value. Reading trusts nothing. A hostile peer can write to the bytes while they are
//! read. So each is read once, into memory of our own, and checked there. Blocks of what is read are in flight until
//! somebody receives them.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::blocks;
use super::ends::{Arriving, Leaving};
pub use super::error::{BLOCKS, DEPTH, DecodeError, ENDS, EncodeError};
use super::sizes::{Id, SMALLEST};

/// Where a value is written: a small place, and a large one for what does not fit there.
#[derive(Debug)]
pub struct Writer<'a> {
    start: *mut u8,
    written: usize,
    room: usize,
    spill: Option<(*mut u8, usize)>,
    /// Bytes of the large place in front of what was written.
    padding: usize,
    depth: u32,
    /// Numbers of blocks that go along; none can without a list.
    pub(crate) lent: Option<&'a mut Vec<u32>>,
    /// Endpoints that go along; none can without.
    pub(crate) leaving: Option<&'a mut Leaving>,
    _place: PhantomData<&'a mut [u8]>,
}

impl<'a> Writer<'a> {
    /// Writes to `small`, or to `large` as soon as it is too small.
    pub fn new(small: &'a mut [MaybeUninit<u8>], large: &'a mut [MaybeUninit<u8>]) -> Writer<'a> {
        // SAFETY: the two are borrowed for as long as the writer lives.
        unsafe {
            Writer::at(
                (small.as_mut_ptr().cast(), small.len()),
                (large.as_mut_ptr().cast(), large.len()),
            )
        }
    }

    /// As [`Writer::new`], for places that a peer may see, and disturb, meanwhile: they are never read.
    ///
    /// # Safety
    /// Both places can be written for as long as the writer lives.
    pub(crate) unsafe fn at(small: (*mut u8, usize), large: (*mut u8, usize)) -> Writer<'a> {
        Writer {
            start: small.0,
            written: 0,
            room: small.1,
            spill: Some(large),
            padding: 0,
            depth: 0,
            lent: None,
            leaving: None,
            _place: PhantomData,
        }
    }

    /// The peer shares memory ([`super::common_memory`]): blocks there go by number, which is noted in a list.
    pub(crate) fn lending(mut self, lent: Option<&'a mut Vec<u32>>) -> Writer<'a> {
        self.lent = lent;
        self
    }

    /// Endpoints go along.
    pub(crate) fn leaving(mut self, leaving: &'a mut Leaving) -> Writer<'a> {
        self.leaving = Some(leaving);
        self
    }

    /// The number of a block that goes along, and that nobody touches any more; None if it is to be copied.
    pub(super) fn lend(&mut self, block: Id) -> Option<u32> {
        let lent = self.lent.as_mut()?;
        let number = blocks::leave(block)?;
        lent.push(number);
        Some(number)
    }

    /// Adds bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if self.room - self.written < bytes.len() {
            self.spill(bytes.len())?;
        }
        // SAFETY: there is room.
        unsafe { copy_out(bytes, self.start.add(self.written)) };
        self.written += bytes.len();
        Ok(())
    }

    /// Goes on in the large place. What was written so far is copied; a peer that has changed it meanwhile
    /// has changed its own message. It is put where what follows is aligned as blocks are: copies from and to
    /// another alignment take four times as long.
    #[cold]
    fn spill(&mut self, more: usize) -> Result<(), EncodeError> {
        let (start, room) = self.spill.take().ok_or(EncodeError::TooLong(self.room))?;
        let padding = self.written.next_multiple_of(SMALLEST) - self.written;
        let room = room.saturating_sub(padding);
        if room < self.written || room - self.written < more {
            return Err(EncodeError::TooLong(room));
        }
        // SAFETY: two different places with that much room, behind the padding.
        unsafe {
            let start = start.add(padding);
            std::ptr::copy_nonoverlapping(self.start, start, self.written);
            (self.start, self.room, self.padding) = (start, room, padding);
        }
        Ok(())
    }

    /// Adds the number of a variant.
    #[inline]
    pub fn variant(&mut self, number: u16) -> Result<(), EncodeError> {
        self.bytes(&number.to_le_bytes())
    }

    /// Writes what lies one level deeper.
    pub fn nested(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.depth == DEPTH {
            return Err(EncodeError::TooDeep);
        }
        self.depth += 1;
        body(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Bytes of the large place that were left out in front of what was written there.
    pub(crate) fn padding(&self) -> usize {
        self.padding
    }

    /// How much was written, and whether to the large place.
    pub fn finish(self) -> (usize, bool) {
        (self.written, self.spill.is_none())
    }
}

/// Bytes that are read once, from the front.
#[derive(Debug)]
pub struct Reader<'a> {
    at: *const u8,
    left: usize,
    depth: u32,
    blocks: usize,
    /// Who may send blocks along, by its life.
    lender: Option<u16>,
    /// Where the peers of endpoints are put; none can come without.
    pub(crate) arriving: Option<&'a mut Arriving>,
    _place: PhantomData<&'a [u8]>,
}

impl<'a> Reader<'a> {
    /// Reads bytes that are not to change. What is read of them is nobody's: for the kernel only.
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        // SAFETY: the bytes are borrowed for as long as the reader lives.
        unsafe { Reader::at(bytes.as_ptr(), bytes.len()) }
    }

    /// Reads bytes that a peer may change meanwhile.
    ///
    /// # Safety
    /// They can be read for as long as the reader lives.
    pub(crate) unsafe fn at(start: *const u8, length: usize) -> Reader<'a> {
        Reader {
            at: start,
            left: length,
            depth: 0,
            blocks: BLOCKS,
            lender: None,
            arriving: None,
            _place: PhantomData,
        }
    }

    /// Blocks in shared memory may come by number, from that life.
    pub(crate) fn lent_by(mut self, lender: Option<u16>) -> Reader<'a> {
        self.lender = lender;
        self
    }

    /// Endpoints may come along.
    pub(crate) fn taking(mut self, arriving: &'a mut Arriving) -> Reader<'a> {
        self.arriving = Some(arriving);
        self
    }

    pub(super) fn lender(&self) -> Option<u16> {
        self.lender
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut bytes = [MaybeUninit::uninit(); N];
        self.fill(&mut bytes)?;
        // SAFETY: `fill` has written every one.
        Ok(bytes.map(|byte| unsafe { byte.assume_init() }))
    }

    /// Fills a place with the next bytes.
    #[inline]
    pub fn fill(&mut self, place: &mut [MaybeUninit<u8>]) -> Result<(), DecodeError> {
        self.left = self
            .left
            .checked_sub(place.len())
            .ok_or(DecodeError::Short)?;
        // SAFETY: that many bytes are there to be read, and the place is our own.
        unsafe {
            copy_once(self.at, place.as_mut_ptr().cast(), place.len());
            self.at = self.at.add(place.len());
        }
        Ok(())
    }

    /// The number of a variant.
    #[inline]
    pub fn variant(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// How many values there are, by the sender's word.
    pub(super) fn count(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// If so many values can follow. Each takes at least a byte, so that a count cannot ask for more memory than
    /// its sender has filled, but for the sizes of the values.
    pub(super) fn covered(&self, count: u64) -> Result<usize, DecodeError> {
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.left)
            .ok_or(DecodeError::Short)
    }

    /// Counts a block of the message.
    pub(crate) fn block(&mut self, bytes: usize) -> Result<(), DecodeError> {
        let bytes = bytes.max(super::sizes::SMALLEST).next_power_of_two();
        self.blocks = self
            .blocks
            .checked_sub(bytes)
            .ok_or(DecodeError::TooLarge)?;
        Ok(())
    }

    /// Reads what lies one level deeper.
    pub fn nested<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == DEPTH {
            return Err(DecodeError::TooDeep);
        }
        self.depth += 1;
        let value = body(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Nothing must be left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left {
            0 => Ok(()),
            left => Err(DecodeError::Long(left)),
        }
    }
}

/// From so many bytes on, what is written for another core goes past the caches: to take the lines out of the other's
/// cache first cost four times as much for 32 KiB between far cores.
const PAST_CACHES: usize = 8 << 10;

/// Writes bytes for a peer.
///
/// # Safety
/// There is room for them, and nobody of this OS process reads there meanwhile.
#[inline]
unsafe fn copy_out(bytes: &[u8], to: *mut u8) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) && bytes.len() >= PAST_CACHES && to.addr().is_multiple_of(16) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        while bytes.len() - done >= 16 {
            // SAFETY: 16 bytes are left, and the place is aligned.
            unsafe {
                let part = _mm_loadu_si128(bytes.as_ptr().add(done).cast::<__m128i>());
                _mm_stream_si128(to.add(done).cast(), part);
            }
            done += 16;
        }
        // Such writes are not in order with those that follow.
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() };
    }
    // SAFETY: `to` has room for `bytes.len()` bytes, of which `done` are written, and is no part of `bytes`.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().add(done), to.add(done), bytes.len() - done);
    }
}

/// Copies bytes that somebody else may change meanwhile, reading each once. A compiler that knows a copy may look at
/// its source again later, so it is not told.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`], but for changes of the source.
#[inline]
pub unsafe fn copy_once(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) && bytes > 64 {
        // SAFETY: by the caller; the direction flag is clear by the calling convention.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        }
        return;
    }
    let words = bytes / 8;
    // SAFETY: by the caller; a volatile read happens once.
    unsafe {
        for index in 0..words {
            let word = from.cast::<Word>().add(index).read_volatile();
            to.cast::<Word>().add(index).write(word);
        }
        for index in words * 8..bytes {
            to.add(index).write(from.add(index).read_volatile());
        }
    }
}

/// Eight bytes that may lie anywhere.
#[repr(C, packed)]
struct Word(u64);

/// What a contract's messages are as bytes, by number; made by [`contract!`](crate::contract).
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Where each message leads.
    pub steps: &'static [Step],
    /// Writes the payload of a message.
    pub encode: Encode,
    /// Reads the payload of a message to where it is to be.
    pub decode: Decode,
    /// Which payloads are copied.
    pub copied: Copied,
}

/// Payloads of so many bytes are copied, if any bytes are one.
pub const COPIED: usize = 48;

/// How many bytes the payload of a message is as it lies in memory, if that is what is sent of it: at most [`COPIED`].
pub type Copied = fn(number: u16) -> Option<usize>;

/// A message of a contract: the state that it is sent in, and the next, or [`Step::END`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The state that it is sent in.
    pub from: u16,
    /// The next state.
    pub next: u16,
}

impl Step {
    /// No state: the channel ends.
    pub const END: u16 = u16::MAX;
}

/// # Safety of calls
/// `payload` points to the payload of a message with that number.
pub type Encode =
    unsafe fn(number: u16, payload: *const u8, to: &mut Writer<'_>) -> Result<(), EncodeError>;

/// # Safety of calls
/// `payload` points to room for the payload of a message with that number.
pub type Decode =
    unsafe fn(number: u16, payload: *mut u8, from: &mut Reader<'_>) -> Result<(), DecodeError>;

#[cfg(test)]
mod tests;
