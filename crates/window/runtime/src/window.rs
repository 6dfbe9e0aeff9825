//! Windows: 4 GiB-aligned, 4 GiB-long pieces of address space, from a pool.
//!
//! ```text
//! one chunk of the pool: one reservation without access
//! | pad | window | window | ...                              | pad |
//!       ^ aligned to 4 GiB
//! ```
//! An access may reach a little beyond a window. The pads and the guards at both ends make sure that it is a fault
//! and never touches a neighbour's memory. Memory is given back by mapping the reservation over it. Linux refuses
//! that to a process that has as many mappings as it may have (`vm.max_map_count`), even where fewer would be left.
//! Two things it never refuses for that, as they split no mapping: to take the access of whole mappings away, and to
//! unmap them. So a life's memory is closed then (`take_away`), and a window's is unmapped (`give_back`). What is
//! unmapped is anybody's: the window waits, and is used again when it could be reserved again.
//!
//! What changes who may touch a page takes the supervisor's yes ([`Decided`]), for these pages and this access.
//! Reserving gives nobody anything, and needs none.
//!
//! Reserved address space costs no memory and, as neighbours without access are
//! one mapping to the kernel, next to nothing of the limit on mappings.
#![expect(
    clippy::disallowed_methods,
    reason = "what gives or takes access takes a `Decided`; the rest reserves"
)]

use crate::access::{Access, PAGE, protection};
use crate::records::Decided;
use mullion_abi::{GUARD_SIZE, STACK_FIRST, STACK_REGION, WINDOW_SIZE};
use mullion_report::error::Error;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// One past the last offset that may be mapped.
const MAPPABLE_END: u64 = STACK_FIRST + STACK_REGION;
/// Windows that are reserved at a time; one at a time where that fails.
const CHUNK: u64 = 64;

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: Vec::new(),
    unmapped: Vec::new(),
    reserved: 0,
});

struct Pool {
    free: Vec<Place>,
    /// Of which what may be mapped is no reservation any more, and may be another one's.
    unmapped: Vec<Place>,
    /// Windows reserved so far; the next one's number.
    reserved: u32,
}

#[derive(Clone, Copy)]
struct Place {
    base: u64,
    number: u32,
}

/// A window, empty at first. Whose it is `records` says, where it is kept.
#[derive(Debug)]
pub(crate) struct Window {
    base: u64,
    number: u32,
}

impl Window {
    /// A window from the pool.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.free.is_empty() {
            pool.reserve_again();
        }
        if pool.free.is_empty() {
            pool.reserve(CHUNK).or_else(|_| pool.reserve(1))?;
        }
        // A reservation that succeeded has put at least one window there.
        let place = pool.free.pop().ok_or(Error::Range { start: 0, end: 0 })?;
        Ok(Self {
            base: place.base,
            number: place.number,
        })
    }

    /// What stands in the place of a window that has been taken out.
    pub(crate) const fn nowhere() -> Self {
        Self { base: 0, number: 0 }
    }

    /// The address of offset 0.
    #[inline]
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// A small number that no other window alive has.
    #[inline]
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Fresh zeroed memory at `range` (offsets), instead of what was there.
    pub(crate) fn map_zeroed(
        &self,
        decided: &Decided<'_>,
        range: Range<u64>,
        access: Access,
    ) -> Result<(), Error> {
        let (address, length) = self.change(decided, &range, access)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: `place` made sure that the range lies in this window, which this
        // value owns: nothing of the host's is replaced. No reference of Rust's
        // ever points into a window.
        let result = unsafe { libc::mmap(address, length, protection(access), flags, -1, 0) };
        mapped(result)
    }

    /// A data stack, where nothing is mapped: never in huge pages, of which it would use
    /// a small part. (The reservation made accessible: less work than a new mapping.)
    pub(crate) fn map_stack(&self, decided: &Decided<'_>, range: Range<u64>) -> Result<(), Error> {
        self.protect(decided, range.clone(), Access::ReadWrite)?;
        let (address, length) = self.place(&range)?;
        // SAFETY: advice on pages that have just been mapped. Kernels without huge
        // pages refuse it, and need none.
        unsafe { libc::madvise(address, length, libc::MADV_NOHUGEPAGE) };
        Ok(())
    }

    /// Private copies of the file's pages from `position` on, at `range` (offsets).
    pub(crate) fn map_copy(
        &self,
        decided: &Decided<'_>,
        range: Range<u64>,
        access: Access,
        file: BorrowedFd<'_>,
        position: u64,
    ) -> Result<(), Error> {
        self.map_file(decided, range, access, file, position, libc::MAP_PRIVATE)
    }

    /// The file's pages themselves, from `position` on, at `range` (offsets).
    pub(crate) fn map_shared(
        &self,
        decided: &Decided<'_>,
        range: Range<u64>,
        access: Access,
        file: BorrowedFd<'_>,
        position: u64,
    ) -> Result<(), Error> {
        self.map_file(decided, range, access, file, position, libc::MAP_SHARED)
    }

    fn map_file(
        &self,
        decided: &Decided<'_>,
        range: Range<u64>,
        access: Access,
        file: BorrowedFd<'_>,
        position: u64,
        sharing: libc::c_int,
    ) -> Result<(), Error> {
        let (address, length) = self.change(decided, &range, access)?;
        let flags = sharing | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: `change` made sure that the range lies in this window, which this value owns: nothing of the host's
        // is replaced. No reference of Rust's ever points into a window.
        let result = unsafe {
            libc::mmap(
                address,
                length,
                protection(access),
                flags,
                file.as_raw_fd(),
                position as libc::off_t,
            )
        };
        mapped(result)
    }

    /// Fills `range` (offsets), which has been mapped writable, with what the file holds
    /// from `position` on.
    pub(crate) fn read_into(
        &self,
        range: Range<u64>,
        file: BorrowedFd<'_>,
        position: u64,
    ) -> Result<(), Error> {
        let mut done = 0;
        while range.start + done < range.end {
            let rest = range.end - range.start - done;
            let address = (self.base + range.start + done) as usize;
            let to = ptr::with_exposed_provenance_mut(address);
            // SAFETY: the kernel writes to pages of this window or answers with an
            // error; no reference of Rust's points there.
            let read = unsafe {
                let from = (position + done) as libc::off_t;
                libc::pread(file.as_raw_fd(), to, rest as usize, from)
            };
            match read {
                1.. => done += read as u64,
                _ => return Err(Error::last("copying an image into a window")),
            }
        }
        Ok(())
    }

    /// Changes what the domain may do with the pages of `range` (offsets).
    pub(crate) fn protect(
        &self,
        decided: &Decided<'_>,
        range: Range<u64>,
        access: Access,
    ) -> Result<(), Error> {
        let (address, length) = self.change(decided, &range, access)?;
        // SAFETY: the range lies in this window (`place`); no reference of Rust's does.
        if unsafe { libc::mprotect(address, length, protection(access)) } != 0 {
            return Err(Error::last("changing the protection of a domain's pages"));
        }
        Ok(())
    }

    /// Takes away all pages of `range` (offsets), which begins and ends with a mapping or among pages
    /// without access. It needs no mapping: if the reservation cannot be mapped over them, the pages
    /// hold nothing and nobody may access them, but they are as many mappings as before, or fewer.
    pub(crate) fn take_away(&self, decided: &Decided<'_>, range: Range<u64>) -> Result<(), Error> {
        self.protect(decided, range.clone(), Access::None)?;
        self.discard(range.clone())?;
        // Some may have become one, so that there is one for this.
        let _at_the_next_reset = self.unmap(decided, range);
        Ok(())
    }

    /// Takes the pages of `range` (offsets) away.
    pub(crate) fn unmap(&self, decided: &Decided<'_>, range: Range<u64>) -> Result<(), Error> {
        self.map_zeroed(decided, range, Access::None)
    }

    /// Drops the contents of the pages of `range` (offsets): private copies
    /// become the file's again, fresh memory becomes zero.
    pub(crate) fn discard(&self, range: Range<u64>) -> Result<(), Error> {
        let (address, length) = self.place(&range)?;
        // SAFETY: the range lies in this window (`place`); no reference of Rust's does.
        if unsafe { libc::madvise(address, length, libc::MADV_DONTNEED) } != 0 {
            return Err(Error::last("discarding a domain's pages"));
        }
        Ok(())
    }

    /// Writes zeros to `range` (offsets).
    ///
    /// # Safety
    /// It is mapped, readable and writable; the domain cannot change that, and nobody
    /// runs in the window.
    pub(crate) unsafe fn zero(&self, range: Range<u64>) {
        let to: *mut u8 = ptr::with_exposed_provenance_mut((self.base + range.start) as usize);
        // SAFETY: mapped, writable and used by nobody: this function's own conditions. No reference of Rust's points
        // into a window.
        unsafe { to.write_bytes(0, (range.end - range.start) as usize) };
    }

    /// Address and length of whole pages that may be mapped, and become so by the supervisor's yes.
    fn change(
        &self,
        decided: &Decided<'_>,
        range: &Range<u64>,
        access: Access,
    ) -> Result<(*mut libc::c_void, usize), Error> {
        let place = self.place(range)?;
        let addresses = self.base + range.start..self.base + range.end;
        match decided.allows(&addresses, access) {
            true => Ok(place),
            false => Err(Error::Undecided {
                start: addresses.start,
                end: addresses.end,
            }),
        }
    }

    /// Address and length of whole pages that may be mapped.
    fn place(&self, range: &Range<u64>) -> Result<(*mut libc::c_void, usize), Error> {
        let aligned = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
        if !aligned
            || range.start < GUARD_SIZE
            || range.end > MAPPABLE_END
            || range.start >= range.end
        {
            return Err(Error::Range {
                start: range.start,
                end: range.end,
            });
        }
        let address = ptr::with_exposed_provenance_mut((self.base + range.start) as usize);
        Ok((address, (range.end - range.start) as usize))
    }
}

impl Window {
    /// To the pool, of one in which nothing has been mapped.
    pub(crate) fn put_back(self) {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.free.push(self.as_place());
    }

    fn as_place(&self) -> Place {
        Place {
            base: self.base,
            number: self.number,
        }
    }

    /// To the pool, of one that nobody has any more.
    pub(crate) fn give_back(self, decided: &Decided<'_>) {
        let is_reserved = self.unmap(decided, GUARD_SIZE..MAPPABLE_END).is_ok();
        let place = self.as_place();
        let is_free = is_reserved || {
            place.unmap();
            place.reserve()
        };
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        match is_free {
            true => pool.free.push(place),
            false => pool.unmapped.push(place),
        }
    }
}

impl Place {
    fn mappable(self) -> (*mut libc::c_void, usize) {
        let address = ptr::with_exposed_provenance_mut((self.base + GUARD_SIZE) as usize);
        (address, (MAPPABLE_END - GUARD_SIZE) as usize)
    }

    /// Leaves nothing between the guards, for a window that nobody uses.
    fn unmap(self) {
        let (address, length) = self.mappable();
        // SAFETY: the place was a window, of which nobody has anything any more; only what `Window::place`
        // lets be mapped goes. The guards stay, so what others map here is out of the neighbours' reach.
        unsafe { libc::munmap(address, length) };
    }

    /// Reserves what was unmapped, if that can be and nobody has mapped anything there.
    fn reserve(self) -> bool {
        let (address, length) = self.mappable();
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: nothing that exists is replaced; kernels before 4.17 take the address for a wish.
        let start = unsafe { libc::mmap(address, length, libc::PROT_NONE, flags, -1, 0) };
        if start != address && start != libc::MAP_FAILED {
            // SAFETY: the mapping that has just been made, elsewhere.
            unsafe { libc::munmap(start, length) };
        }
        start == address
    }
}

impl Pool {
    /// Reserves those that had to be unmapped, if that can be now.
    fn reserve_again(&mut self) {
        let unmapped = std::mem::take(&mut self.unmapped);
        let (free, unmapped) = unmapped.into_iter().partition(|place| place.reserve());
        (self.free, self.unmapped) = (free, unmapped);
    }

    /// Reserves `count` more windows.
    fn reserve(&mut self, count: u64) -> Result<(), Error> {
        // One window more than asked for is what alignment may cost; the two pads
        // are twice a guard, so the rest of it suffices.
        let length = (count + 1) * WINDOW_SIZE + 2 * GUARD_SIZE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length as usize,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last(
                "reserving address space for windows (is it limited? see `ulimit -v`)",
            ));
        }
        let first = (start.expose_provenance() as u64 + GUARD_SIZE).next_multiple_of(WINDOW_SIZE);
        // The lowest window is handed out first.
        for place in (0..count).rev() {
            self.free.push(Place {
                base: first + place * WINDOW_SIZE,
                number: self.reserved + place as u32,
            });
        }
        self.reserved += count as u32;
        #[cfg(test)]
        CHUNKS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(first - GUARD_SIZE..first + count * WINDOW_SIZE + GUARD_SIZE);
        Ok(())
    }
}

fn mapped(result: *mut libc::c_void) -> Result<(), Error> {
    if result == libc::MAP_FAILED {
        return Err(Error::last(
            "mapping a domain's pages (is vm.max_map_count reached?)",
        ));
    }
    Ok(())
}

#[cfg(test)]
static CHUNKS: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// Tests: the addresses of all windows.
#[cfg(test)]
pub(crate) fn chunks() -> Vec<Range<u64>> {
    CHUNKS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
