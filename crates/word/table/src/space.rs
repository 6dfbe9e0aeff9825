//! The memory of the table: reserved addresses that cost nothing until they are written.
//!
//! ```text
//!   G - LINES_BYTES              lines, 4 TiB: two bytes for each 64 bytes of it, the last addresses first
//!   G                            shadow, 64 TiB: two bytes for each word of the 47-bit address space
//!   G + MAPS_FIRST..MAPS_END     in its place: the maps, a byte for each number, MAP_STRIDE from one to the next
//!   CLOSED_FIRST..CLOSED_END     the addresses whose shadow the maps are in the place of: nothing is mapped there
//! ```
//!
//! A line's number is that of all of its words, or 0: then it says nothing of them. It is 0 before any of its words
//! changes. So a check that asks lines finds no right that the words do not have, and changes nothing about when a right
//! is gone.
//!
//! All of it is private memory: a copy of the process (`fork`) has a table of its own.

use crate::access::Access;
use mullion_word_abi::{
    ADDRESS_BITS, CLOSED_END, CLOSED_FIRST, LINE, LINES_BYTES, MAP_STRIDE, OWN_FIRST, OWN_LAST,
    WORD,
};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering, compiler_fence};
use thiserror::Error;

/// Words that the shadow covers.
pub(crate) const WORDS: u64 = 1 << (ADDRESS_BITS - 2);

const SHADOW_BYTES: usize = 2 << (ADDRESS_BITS - 2);

/// Words of a line.
const WORDS_OF_LINE: u64 = LINE / WORD;

/// A byte for each number.
const MAP_BYTES: usize = 1 << 16;

/// A line that says nothing of its words.
const NO_NUMBER: u16 = 0;

/// Up to so many words are written without a look at what is best for many.
const FEW: u64 = 32;

/// Words that have no shadow.
const CLOSED: Range<u64> = CLOSED_FIRST / 4..CLOSED_END / 4;
const _: () = assert!(
    CLOSED.start.is_multiple_of(4) && CLOSED.end.is_multiple_of(4) && WORDS.is_multiple_of(4)
);

/// So many bytes of the shadow are given back to the system rather than cleared.
const GIVE_BACK: usize = 1 << 16;

const PAGE: usize = 4096;

/// Why there is no table.
#[derive(Debug, Error)]
pub enum SpaceError {
    /// The system refuses the reservation.
    #[error(
        "cannot reserve {bytes:#x} bytes of address space for the {what} of the word wall: {source}; it needs no memory, \
         but no limit on address space (ulimit -v) and no vm.overcommit_memory=2"
    )]
    Reserve {
        /// Which part.
        what: &'static str,
        /// How much.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something is mapped at addresses that must be empty.
    #[error(
        "the word wall needs the addresses {:#x} to {:#x} to be empty, and there is: {who}; one process has one table, \
         or windows, which claim the first of these pages, and what is mapped at fixed addresses must lie elsewhere",
        CLOSED_FIRST,
        CLOSED_END
    )]
    Closed {
        /// What `/proc/self/maps` says of it.
        who: String,
    },
}

/// A mapping, unmapped at its end.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(
        what: &'static str,
        bytes: usize,
        protection: i32,
        flags: i32,
        file: i32,
    ) -> Result<Mapping, SpaceError> {
        let at = ptr::null_mut();
        // SAFETY: no address is asked for, so no mapping that anybody uses is replaced.
        unsafe { Mapping::at(at, what, bytes, protection, flags, file) }
    }

    /// # Safety
    /// With `MAP_FIXED`, what is there belongs to the caller.
    unsafe fn at(
        at: *mut u8,
        what: &'static str,
        bytes: usize,
        protection: i32,
        flags: i32,
        file: i32,
    ) -> Result<Mapping, SpaceError> {
        // SAFETY: with `MAP_FIXED`, what is there is the caller's to replace; without, nothing is replaced.
        let base = unsafe {
            libc::mmap(
                at.cast(),
                bytes,
                protection,
                flags | libc::MAP_NORESERVE,
                file,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(SpaceError::Reserve {
                what,
                bytes,
                source: std::io::Error::last_os_error(),
            });
        }
        let base = base.cast();
        Ok(Mapping { base, bytes })
    }

    /// Two of it: the first so many bytes, and the rest. Each ends by itself.
    fn split(self, bytes: usize) -> (Mapping, Mapping) {
        let whole = std::mem::ManuallyDrop::new(self);
        let first = Mapping {
            base: whole.base,
            bytes,
        };
        let rest = Mapping {
            base: whole.base.wrapping_add(bytes),
            bytes: whole.bytes - bytes,
        };
        (first, rest)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this mapping, which nobody but its owner had; all that borrows from the owner is gone.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Shadow and maps. Everything in them is read and written as atomic values, or by instructions that the compiler
/// does not look into, because checked code reads while the supervisor writes.
#[derive(Debug)]
pub(crate) struct Space {
    /// In front of the shadow, without a gap.
    lines: Mapping,
    shadow: Mapping,
    closed: Mapping,
}

// SAFETY: the mappings belong to this value from beginning to end, and what is in them is only touched as atomic
// values, by any thread.
unsafe impl Send for Space {}
// SAFETY: a shared reference reaches the mappings only as atomic values.
unsafe impl Sync for Space {}

impl Space {
    pub(crate) fn reserve() -> Result<Space, SpaceError> {
        let closed = close()?;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let bytes = LINES_BYTES as usize + SHADOW_BYTES;
        let both = Mapping::new("shadow", bytes, both, private, -1)?;
        // A huge page for a granted word would be a thousand times what is shared. It is advice: a kernel
        // without huge pages refuses it, and needs none.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(both.base.cast(), bytes, libc::MADV_NOHUGEPAGE) };
        // A core file of it would be as long as the address space.
        // SAFETY: the range is the mapping just made, and the call only changes what a core file has.
        unsafe { libc::madvise(both.base.cast(), bytes, libc::MADV_DONTDUMP) };
        let (lines, shadow) = both.split(LINES_BYTES as usize);
        Ok(Space {
            lines,
            shadow,
            closed,
        })
    }

    /// Whether permissions on the words from `first` to before `end` can be in the table.
    pub(crate) fn enforces(&self, first: u64, end: u64) -> bool {
        let own = [&self.lines, &self.shadow, &self.closed].map(|mapping| {
            let at = mapping.base as u64;
            at / 4..(at + mapping.bytes as u64) / 4
        });
        end <= WORDS && own.iter().all(|own| end <= own.start || own.end <= first)
    }

    /// Where the shadow begins: what checked code has as the base of its `%gs` segment.
    pub(crate) fn shadow_base(&self) -> *const u8 {
        self.shadow.base
    }

    /// The number at `word`, which is below [`WORDS`]. The closed words have no shadow, and nobody has anything there.
    #[inline]
    pub(crate) fn number(&self, word: u64) -> u16 {
        assert!(word < WORDS, "the shadow ends at word {WORDS:#x}");
        if CLOSED.contains(&word) {
            return 0;
        }
        // SAFETY: the word is inside the shadow, two bytes each, and only atomic accesses are made there.
        let cell =
            unsafe { AtomicU16::from_ptr(self.shadow.base.cast::<u16>().add(word as usize)) };
        cell.load(Ordering::Acquire)
    }

    /// Whether the four words from `4 * group` on, which are below [`WORDS`], all have `number`. Closed words are as above: they begin
    /// and end between groups.
    #[inline]
    pub(crate) fn are(&self, group: u64, number: u16) -> bool {
        let word = 4 * group;
        assert!(word < WORDS, "the shadow ends at word {WORDS:#x}");
        if CLOSED.contains(&word) {
            return number == 0;
        }
        let at = self.shadow.base.wrapping_add(8 * group as usize);
        // SAFETY: inside the shadow, whose words are a multiple of four, and aligned. Only atomic accesses are made there.
        let four = unsafe { AtomicU64::from_ptr(at.cast()) };
        four.load(Ordering::Acquire) == u64::from(number) * 0x0001_0001_0001_0001
    }

    /// The byte of `number` in the map of the domain with the number `own`.
    fn cell(&self, own: u16, number: u16) -> &AtomicU8 {
        let at = self.shadow.base.wrapping_add(place_of(own));
        // SAFETY: a map lies in the reservation and has a byte for each number; only atomic accesses are made there.
        unsafe { AtomicU8::from_ptr(at.add(usize::from(number))) }
    }

    /// What the map of the domain with the number `own` says of `number`.
    pub(crate) fn access(&self, own: u16, number: u16) -> Access {
        Access::from_bits(self.cell(own, number).load(Ordering::Acquire))
    }

    /// Writes into a map.
    pub(crate) fn set_access(&self, own: u16, number: u16, access: Access) {
        self.cell(own, number)
            .store(access.bits(), Ordering::Release);
    }

    /// A map with nothing in it. Only the pages at its ends, which have bytes of its neighbours, keep their memory.
    pub(crate) fn clear_map(&self, own: u16) {
        let first = self.shadow.base.wrapping_add(place_of(own));
        let head = first.align_offset(PAGE);
        let pages = (MAP_BYTES - head) / PAGE * PAGE;
        // SAFETY: whole pages of the maps, private memory without a file: they read as zeros from then on.
        let done =
            unsafe { libc::madvise(first.wrapping_add(head).cast(), pages, libc::MADV_DONTNEED) };
        let rest = match done {
            0 => [0..head, head + pages..MAP_BYTES],
            _ => [0..MAP_BYTES, 0..0],
        };
        for number in rest.into_iter().flatten() {
            self.set_access(own, number as u16, Access::NONE);
        }
    }

    /// Writes `number` at the words from `first` to before `end`, but for those that have no shadow. Says how many lie
    /// below its end.
    #[inline(always)]
    pub(crate) fn fill(&self, first: u64, end: u64, number: u16) -> u64 {
        let group = first / 4;
        let is_open = first < CLOSED.start || (CLOSED.end..WORDS).contains(&first);
        // Most pieces are small, and lie in one group, of which all words have a shadow or none has.
        if (end - 1) / 4 == group && is_open {
            self.clear_line(first / WORDS_OF_LINE);
            compiler_fence(Ordering::SeqCst);
            self.set_four(group, bits_from(first) & bits_to(end), number);
            return end - first;
        }
        self.fill_groups(first, end, number)
    }

    #[inline(never)]
    fn fill_groups(&self, first: u64, end: u64, number: u16) -> u64 {
        let is_open = end <= CLOSED.start || (CLOSED.end <= first && end <= WORDS);
        if !is_open || first >= end {
            return self.fill_any(first, end, number);
        }
        match end - first <= FEW {
            true => self.fill_few(first, end, number),
            false => self.fill_many(first, end, number),
        }
        end - first
    }

    /// As [`fill`](Self::fill), of any words. Closed words have no shadow, and nobody has anything there.
    #[cold]
    fn fill_any(&self, first: u64, end: u64, number: u16) -> u64 {
        let (first, end) = (first.min(WORDS), end.min(WORDS));
        assert!(first <= end, "the words are in order");
        for part in [first..end.min(CLOSED.start), first.max(CLOSED.end)..end] {
            if part.start < part.end {
                self.fill_many(part.start, part.end, number);
            }
        }
        end - first
    }

    /// As [`fill`](Self::fill), of at most [`FEW`] words, which lie in more than one group.
    #[inline]
    fn fill_few(&self, first: u64, end: u64, number: u16) {
        // As below.
        for line in first / WORDS_OF_LINE..=(end - 1) / WORDS_OF_LINE {
            self.clear_line(line);
        }
        compiler_fence(Ordering::SeqCst);
        // Four cells at a time; others among them get what they have. There is one writer.
        let (low, high) = (first / 4, (end - 1) / 4);
        self.set_four(low, bits_from(first), number);
        (low + 1..high).for_each(|group| self.set_four(group, !0, number));
        self.set_four(high, bits_to(end), number);
        if number >= OWN_FIRST && end - first >= WORDS_OF_LINE {
            self.name_lines(first, end, number);
        }
    }

    /// The line, inside of the lines by the callers' bounds, says nothing of its words.
    #[inline]
    fn clear_line(&self, line: u64) {
        let lines = self.lines.base.wrapping_add(self.lines.bytes);
        let at = lines.wrapping_sub(2 * line as usize + 2).cast();
        // SAFETY: inside the lines, by the callers' bounds; only atomic accesses are made there.
        let line = unsafe { AtomicU16::from_ptr(at) };
        if line.load(Ordering::Relaxed) != NO_NUMBER {
            line.store(NO_NUMBER, Ordering::Release);
        }
    }

    /// Gives those of four words a number that `bits` says: the words from `4 * group` on, inside the shadow.
    #[inline]
    fn set_four(&self, group: u64, bits: u64, number: u16) {
        let all = u64::from(number) * 0x0001_0001_0001_0001;
        let at = self.shadow.base.wrapping_add(8 * group as usize);
        // SAFETY: inside the shadow, by the callers' bounds, and aligned. Only atomic accesses are made there. Readers of a cell see it
        // whole: a processor does not tear two bytes that lie in an aligned store.
        let four = unsafe { AtomicU64::from_ptr(at.cast()) };
        let others = four.load(Ordering::Relaxed) & !bits;
        four.store(others | (all & bits), Ordering::Release);
    }

    #[inline(never)]
    fn fill_many(&self, first: u64, end: u64, number: u16) {
        let from = self.shadow.base.wrapping_add(2 * first as usize);
        let bytes = 2 * (end - first) as usize;
        // No line says more than its words at any time: stores are seen in their order.
        self.clear_lines(first / WORDS_OF_LINE, end.div_ceil(WORDS_OF_LINE));
        compiler_fence(Ordering::SeqCst);
        if number == 0 && bytes >= GIVE_BACK {
            self.give_back(from, bytes);
        } else {
            fill(from.cast(), bytes / 2, number);
        }
        if number >= OWN_FIRST {
            self.name_lines(first, end, number);
        }
    }

    /// Gives lines that are wholly within these words their number. Nobody asks whether a line has another one than an own one.
    fn name_lines(&self, first: u64, end: u64, number: u16) {
        let lines = first.div_ceil(WORDS_OF_LINE)..end / WORDS_OF_LINE;
        if lines.start < lines.end {
            let count = (lines.end - lines.start) as usize;
            fill(self.cells_of_lines(lines.end).cast(), count, number);
        }
    }

    /// Where the numbers of the lines before `end` are, the last one first.
    fn cells_of_lines(&self, end: u64) -> *mut u8 {
        self.shadow.base.wrapping_sub(2 * end as usize)
    }

    /// The lines from `first` to before `end` say nothing. Most say nothing before, and are not written.
    fn clear_lines(&self, first: u64, end: u64) {
        let (from, bytes) = (self.cells_of_lines(end), 2 * (end - first) as usize);
        if bytes >= GIVE_BACK {
            return self.give_back(from, bytes);
        }
        let mut done = 0;
        while done < bytes {
            let at = from.wrapping_add(done);
            if (at as usize).is_multiple_of(8) && bytes - done >= 8 {
                // SAFETY: eight aligned bytes of the lines, by the callers' bounds; only atomic accesses are made there.
                let four = unsafe { AtomicU64::from_ptr(at.cast()) };
                if four.load(Ordering::Relaxed) != 0 {
                    four.store(0, Ordering::Release);
                }
                done += 8;
            } else {
                // SAFETY: two aligned bytes of the lines, by the callers' bounds; only atomic accesses are made there.
                let one = unsafe { AtomicU16::from_ptr(at.cast()) };
                if one.load(Ordering::Relaxed) != 0 {
                    one.store(0, Ordering::Release);
                }
                done += 2;
            }
        }
    }

    /// Zeros, and for whole pages no memory.
    fn give_back(&self, from: *mut u8, bytes: usize) {
        let head = from.align_offset(PAGE);
        let pages = (bytes - head) / PAGE * PAGE;
        let (start, tail) = (from.wrapping_add(head), bytes - head - pages);
        fill(from.cast(), head / 2, 0);
        // SAFETY: whole pages of lines or shadow, a private mapping without a file: they read as zeros from then on.
        let done = unsafe { libc::madvise(start.cast(), pages, libc::MADV_DONTNEED) };
        if done != 0 {
            fill(start.cast(), pages / 2, 0);
        }
        fill(start.wrapping_add(pages).cast(), tail / 2, 0);
    }
}

/// Of four cells, those from this word's on, and those up to the one before it.
fn bits_from(word: u64) -> u64 {
    !0 << (word % 4 * 16)
}

fn bits_to(end: u64) -> u64 {
    !0 >> ((3 - (end - 1) % 4) * 16)
}

/// Distance of a map from the base of the shadow.
fn place_of(own: u16) -> usize {
    assert!(
        (OWN_FIRST..=OWN_LAST).contains(&own),
        "own numbers lie from {OWN_FIRST:#x} to {OWN_LAST:#x}"
    );
    usize::from(own) * MAP_STRIDE as usize
}

/// Reserves the addresses without a shadow, so that nothing is ever mapped there.
fn close() -> Result<Mapping, SpaceError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let (at, bytes) = (
        CLOSED_FIRST as *mut u8,
        (CLOSED_END - CLOSED_FIRST) as usize,
    );
    // SAFETY: `MAP_FIXED_NOREPLACE` replaces nothing. A kernel older than 4.17 takes it as a wish.
    let mapping = unsafe { Mapping::at(at, "closed addresses", bytes, libc::PROT_NONE, flags, -1) };
    let found = match mapping {
        Ok(mapping) if mapping.base == at => return Ok(mapping),
        Ok(_elsewhere) => occupant(),
        Err(SpaceError::Reserve { source, .. }) if source.raw_os_error() == Some(libc::EEXIST) => {
            occupant()
        }
        Err(other) => return Err(other),
    };
    Err(SpaceError::Closed { who: found })
}

/// What is mapped in the closed range.
fn occupant() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let inside = |line: &&str| {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split_once(' ')?.0;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)? < CLOSED_END && number(end)? > CLOSED_FIRST)
    };
    let found: Vec<&str> = maps
        .lines()
        .filter(|line| inside(line) == Some(true))
        .collect();
    match found.is_empty() {
        true => "something that /proc/self/maps does not show".to_owned(),
        false => found.join("; "),
    }
}

/// From so many cells on the wide stores are worth their beginning and end.
const LONG: usize = 256;

/// Writes `number` into `count` cells of lines or shadow. Only for cells inside them.
fn fill(mut to: *mut u16, mut count: usize, number: u16) {
    let store = |to: *mut u16| {
        // SAFETY: inside the shadow, by the callers' bounds; only atomic accesses are made there.
        unsafe { AtomicU16::from_ptr(to) }.store(number, Ordering::Release);
    };
    let four = u64::from(number) * 0x0001_0001_0001_0001;
    let store_four = |to: *mut u16| {
        // SAFETY: inside the shadow, by the callers' bounds, and aligned. Readers see each cell whole: a processor does not tear
        // two bytes that lie in an aligned store.
        unsafe { to.cast::<u64>().write_volatile(four) };
    };
    while count > 0 && !(to as usize).is_multiple_of(8) {
        store(to);
        to = to.wrapping_add(1);
        count -= 1;
    }
    if count >= 4 && !(to as usize).is_multiple_of(16) {
        store_four(to);
        to = to.wrapping_add(4);
        count -= 4;
    }
    if count >= LONG && std::arch::is_x86_feature_detected!("avx") {
        if !(to as usize).is_multiple_of(32) {
            fill(to, 8, number);
            to = to.wrapping_add(8);
            count -= 8;
        }
        let blocks = count / 32;
        // SAFETY: `blocks` times 64 bytes from `to` on are inside the shadow, `to` is aligned for it, and the processor has the
        // instructions. Readers see each cell whole, as below.
        unsafe {
            std::arch::asm!(
                "movd xmm0, {number:e}",
                "pshuflw xmm0, xmm0, 0",
                "punpcklqdq xmm0, xmm0",
                "vinsertf128 ymm0, ymm0, xmm0, 1",
                "2:",
                "vmovdqa ymmword ptr [{to}], ymm0",
                "vmovdqa ymmword ptr [{to} + 32], ymm0",
                "add {to}, 64",
                "dec {blocks}",
                "jnz 2b",
                "vzeroupper",
                number = in(reg) u32::from(number),
                to = inout(reg) to => to,
                blocks = inout(reg) blocks => _,
                // `vzeroupper` clears the upper halves of all vectors.
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack),
            );
        }
        count %= 32;
    }
    let blocks = count / 8;
    if blocks > 0 {
        // Readers see each cell whole, as above.
        // SAFETY: `blocks` times 16 bytes from `to` on are inside the shadow, and `to` is aligned for it.
        unsafe {
            std::arch::asm!(
                "movd {x}, {number:e}",
                "pshuflw {x}, {x}, 0",
                "punpcklqdq {x}, {x}",
                "2:",
                "movdqa xmmword ptr [{to}], {x}",
                "add {to}, 16",
                "dec {blocks}",
                "jnz 2b",
                x = out(xmm_reg) _,
                number = in(reg) u32::from(number),
                to = inout(reg) to => to,
                blocks = inout(reg) blocks => _,
                options(nostack),
            );
        }
    }
    count %= 8;
    if count >= 4 {
        store_four(to);
        to = to.wrapping_add(4);
        count -= 4;
    }
    for _ in 0..count {
        store(to);
        to = to.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard};

    /// A process has room for one.
    static ALONE: Mutex<()> = Mutex::new(());

    fn reserve() -> (MutexGuard<'static, ()>, Space) {
        let alone = ALONE.lock().expect("no other test has failed");
        (alone, Space::reserve().expect("reserving"))
    }

    /// The number of the line of a word.
    fn line_of(space: &Space, word: u64) -> u16 {
        let at = space.cells_of_lines(word / WORDS_OF_LINE + 1);
        // SAFETY: the line of a word below `WORDS`; only atomic accesses are made there.
        unsafe { AtomicU16::from_ptr(at.cast()) }.load(Ordering::Acquire)
    }

    /// A random walk: whatever was written, a line with a number has it in all of its words.
    #[test]
    fn a_line_says_what_all_of_its_words_say() {
        let (_alone, space) = reserve();
        let base = 0x1_2345_6780_u64 / 4 * 4;
        let (mut state, mut named) = (7_u64, 0);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let first = base + random(400);
            let end = first + random(120);
            let number = [0, 7, OWN_FIRST, OWN_LAST][random(4) as usize];
            space.fill(first, end, number);
            for line in base / WORDS_OF_LINE..(base + 520) / WORDS_OF_LINE + 1 {
                let number = line_of(&space, line * WORDS_OF_LINE);
                let words = line * WORDS_OF_LINE..(line + 1) * WORDS_OF_LINE;
                let same = words.clone().all(|word| space.number(word) == number);
                assert!(number == 0 || same, "line {line:#x} says {number:#x}");
                named += u64::from(number != 0);
            }
        }
        assert!(named > 10_000, "{named} lines had a number");
    }

    /// Small pieces, which mostly lie in one group of four words, against a list.
    #[test]
    fn small_pieces_have_their_number_and_others_keep_theirs() {
        let (_alone, space) = reserve();
        let base = 0x1_2345_6780_u64 / 4 * 4;
        let (mut state, mut wanted) = (7_u64, [0u16; 64]);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let first = random(56);
            let end = first + 1 + random(7);
            let number = [0, 7, OWN_FIRST, OWN_LAST][random(4) as usize];
            assert_eq!(space.fill(base + first, base + end, number), end - first);
            wanted[first as usize..end as usize].fill(number);
            for (at, number) in wanted.iter().enumerate() {
                assert_eq!(space.number(base + at as u64), *number, "word {at}");
            }
        }
    }

    /// The maps lie in the place of the shadow of the closed words. Behind the last word there is no shadow.
    #[test]
    fn words_without_a_shadow_are_left_alone() {
        let (_alone, space) = reserve();
        // The shadow of this word would be the map's bytes for the first numbers.
        let word = u64::from(OWN_FIRST) * MAP_STRIDE / 2;
        assert!(CLOSED.contains(&word) && word.is_multiple_of(4));
        for end in [word + 2, word + 20, word + 200] {
            assert_eq!(space.fill(word, end, 0x0303), end - word);
            let all = (0..16).map(|number| space.access(OWN_FIRST, number));
            assert_eq!(all.filter(|access| *access != Access::NONE).count(), 0);
        }
        space.fill(CLOSED.start - 2, CLOSED.start + 2, 7);
        space.fill(CLOSED.end - 2, CLOSED.end + 2, 8);
        let ends = [
            CLOSED.start - 2,
            CLOSED.start - 1,
            CLOSED.end,
            CLOSED.end + 1,
        ];
        assert_eq!(ends.map(|word| space.number(word)), [7, 7, 8, 8]);
        assert_eq!(space.fill(WORDS, WORDS + 2, 7), 0);
        assert_eq!(space.fill(WORDS - 1, WORDS + 2, 7), 1);
        assert_eq!(space.number(WORDS - 1), 7);
        let wrong = std::panic::AssertUnwindSafe(|| space.fill(6, 5, 7));
        assert!(std::panic::catch_unwind(wrong).is_err());
    }

    /// Large pieces go another way.
    #[test]
    fn lines_of_large_pieces_and_of_the_last_word() {
        let (_alone, space) = reserve();
        let words = (GIVE_BACK as u64) * WORDS_OF_LINE;
        space.fill(0, 2 * words, OWN_FIRST);
        assert_eq!(
            (line_of(&space, 0), line_of(&space, words)),
            (OWN_FIRST, OWN_FIRST)
        );
        space.fill(5, words + 5, 0);
        let found =
            [0, 16, words, words + 16, 2 * words - 1, 2 * words].map(|word| line_of(&space, word));
        assert_eq!(found, [0, 0, 0, OWN_FIRST, OWN_FIRST, 0]);
        space.fill(WORDS - 16, WORDS, OWN_FIRST);
        assert_eq!(line_of(&space, WORDS - 1), OWN_FIRST);
        space.fill(WORDS - 1, WORDS, 5);
        assert_eq!(line_of(&space, WORDS - 1), 0);
    }
}
