//! A domain's memory as its host sees it: claims, checked pieces, mappings.
//!
//! An address that comes from a domain is a [`Claimed`]: an allegation. It can
//! be turned into a [`Piece`], which is known to lie in the domain's window, and
//! a piece can only be copied from and to. There are no references into a
//! window: the domain's other threads may write any byte at any time, and may
//! unmap it. So the copy is made by assembly that the compiler does not reason
//! about. A fault in it is an error and not a crash.

use crate::access::{Access, PAGE};
use crate::assembly;
use crate::image::ImageLayout;
use crate::object::{Object, SHARED_START};
use crate::records::{Decided, Record, Vacant, Wanted};
use crate::regions::{Owner, Region, Regions};
use crate::window::Window;
use mullion_abi::{GATE_BASE, GUARD_SIZE, HEAP_END, WINDOW_SIZE};
use mullion_report::error::Error;
use mullion_report::kinds::LimitKind;
use mullion_report::meter::Meter;
use mullion_report::refused::MappingError;
use mullion_signals::quietly_in_part;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An address as a domain states it. Nothing is known about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claimed(pub u64);

impl fmt::Debug for Claimed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Claimed({:#x})", self.0)
    }
}

/// The domain named memory that it does not have, or may not use so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the domain has no such memory at {:#x}, {length} bytes long", address.0)]
pub struct BadAddress {
    /// What it claimed.
    pub address: Claimed,
    /// How many bytes.
    pub length: u64,
}

/// The memory of one domain.
#[derive(Debug)]
pub struct Memory {
    /// The domain's place in the records, and its window.
    record: Record,
    state: Mutex<State>,
    /// Greatest number of accessible bytes, of image and heap together.
    limit: u64,
    /// Greatest number of the kernel's mappings, of image and heap together.
    max_mappings: usize,
    meter: Arc<Meter>,
}

#[derive(Debug)]
struct State {
    regions: Regions,
    /// Where the image ends: the domain maps nothing below. Then what it maps begins and ends with mappings
    /// of the kernel's, but where it is one with the image's last.
    image_end: u64,
    /// Where the heap began, and where it ends now: offsets.
    heap_start: u64,
    heap_end: u64,
    /// One past what of the life before is still mapped behind the image, fresh, for `extend` and the
    /// heap to take first: an offset, the image's end if there is nothing.
    ready: u64,
    /// The objects of which the domain has pages: they keep their offsets meanwhile.
    shared: Vec<Arc<Object>>,
}

impl Memory {
    pub(crate) fn new(
        record: Record,
        image: &ImageLayout,
        limit: u64,
        max_mappings: usize,
        meter: Arc<Meter>,
    ) -> Self {
        meter.has_memory(image.regions().accessible());
        Self {
            record,
            state: Mutex::new(State::of(image)),
            limit,
            max_mappings,
            meter,
        }
    }

    /// The domain's place in the records.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Takes away what the domain has mapped and gives the image's pages their
    /// first contents. On failure the domain must not run again. That needs no mapping; whether all
    /// that there were are given back.
    pub(crate) fn reset(&self, image: &ImageLayout) -> Result<bool, Error> {
        let mut state = self.state();
        let mut fresh = State::of(image);
        let all = match state.regions.behind(image.end()) {
            Some(behind) => self.leave(&state, behind, &mut fresh)?,
            None => true,
        };
        *state = fresh;
        self.meter.has_memory(state.regions.accessible());
        image.reset(self.window())?;
        Ok(all)
    }

    /// Takes away what the domain has behind its image. Whether all mappings are given back: what stays
    /// otherwise, without contents, is noted in `fresh`.
    fn leave(&self, state: &State, behind: Range<u64>, fresh: &mut State) -> Result<bool, Error> {
        const QUESTION: &str = "a restart";
        let wanted = |own: &Range<u64>| {
            let own = Some(own.clone()).filter(|own| !own.is_empty());
            let own = own.map(|own| Wanted::Own(own, Access::None));
            let shared = state
                .shared
                .iter()
                .map(|object| object.wanted(0..object.length(), Access::None));
            own.into_iter().chain(shared).collect::<Vec<_>>()
        };
        let unmapped = self
            .record
            .change(QUESTION, &wanted(&behind), |window, decided| {
                window.unmap(decided, behind.clone())
            });
        match unmapped {
            Ok(()) => return Ok(true),
            Err(Error::System { .. }) => {}
            Err(refused) => return Err(refused),
        }
        let joined = state.joined();
        let rest = joined.as_ref().map_or(behind.start, |one| one.range.end)..behind.end;
        self.record
            .change(QUESTION, &wanted(&rest), |window, decided| {
                if let Some(joined) = &joined {
                    window.discard(joined.range.clone())?;
                }
                match rest.is_empty() {
                    true => Ok(()),
                    false => window.take_away(decided, rest.clone()),
                }
            })?;
        if let Some(joined) = joined {
            fresh.keep(joined);
        }
        Ok(false)
    }

    /// The domain's end in the records, where nobody uses it any more. Its window, if that is not refused, and
    /// whether it is as in a new domain, which it is made if that is wanted.
    pub(crate) fn end(&mut self, image: &ImageLayout, renew: bool) -> Option<(Vacant, bool)> {
        let (behind, shared) = {
            let mut state = self.state();
            let shared = std::mem::take(&mut state.shared);
            (state.regions.behind(image.end()), shared)
        };
        self.meter.has_memory(0);
        let vacant = self.record.end(Box::new(shared))?;
        if !renew {
            return Some((vacant, false));
        }
        let window = vacant.window();
        let unmapped = behind.map_or(Ok(()), |behind| window.unmap(&vacant.decided(), behind));
        let as_new = unmapped.and_then(|()| image.reset(window)).is_ok();
        Some((vacant, as_new))
    }

    /// The address of the window's offset 0.
    #[must_use]
    #[inline]
    pub fn base(&self) -> u64 {
        self.window().base()
    }

    /// Fresh zeroed memory right behind the image, which takes no mapping of its
    /// own: the heap begins behind it. Only before the heap is used.
    pub fn extend(&self, length: u64) -> Result<u64, MappingError> {
        let mut state = self.state();
        let start = state.heap_start;
        let range = state.range(start, length)?;
        if state.heap_end != start || !state.is_free_behind(&range) {
            return Err(MappingError::Range);
        }
        self.map_behind(&mut state, &range)?;
        state.heap_start = range.end;
        state.heap_end = range.end;
        Ok(self.base() + start)
    }

    #[inline]
    pub(crate) fn window(&self) -> &Window {
        self.record.window()
    }

    /// The offset of an address, if it lies in this window.
    #[must_use]
    #[inline]
    pub fn offset(&self, address: Claimed) -> Option<u64> {
        address
            .0
            .checked_sub(self.base())
            .filter(|offset| *offset < WINDOW_SIZE)
    }

    /// The kernel's mappings that image and heap take now, at most: what `Limits::mappings` bounds.
    #[must_use]
    pub fn mappings(&self) -> usize {
        self.state().regions.mappings()
    }

    /// Bytes of image and heap that the domain can access now.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.state().regions.accessible()
    }

    /// What the domain may do at this address, below its data stacks.
    #[must_use]
    pub fn access(&self, address: Claimed) -> Option<Access> {
        let state = self.state();
        state
            .regions
            .at(self.offset(address)?)
            .map(|region| region.access)
    }

    /// A piece of the window. That it lies there is all that is checked: whether
    /// it is mapped shows when it is copied.
    #[inline]
    pub fn piece(&self, address: Claimed, length: u64) -> Result<Piece<'_>, BadAddress> {
        let bad = BadAddress { address, length };
        let start = self.offset(address).ok_or(bad)?;
        let end = start.checked_add(length).ok_or(bad)?;
        if start < GATE_BASE || end > WINDOW_SIZE - GUARD_SIZE {
            return Err(bad);
        }
        Ok(Piece {
            memory: self,
            start,
            length,
        })
    }

    /// Copies `N` bytes in.
    pub fn read<const N: usize>(&self, address: Claimed) -> Result<[u8; N], BadAddress> {
        let mut bytes = [0; N];
        self.piece(address, N as u64)?.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Copies a 64-bit number in.
    pub fn read_u64(&self, address: Claimed) -> Result<u64, BadAddress> {
        self.read(address).map(u64::from_le_bytes)
    }

    /// Copies `bytes` out to the domain.
    #[inline]
    pub fn write(&self, address: Claimed, bytes: &[u8]) -> Result<(), BadAddress> {
        self.piece(address, bytes.len() as u64)?.write(bytes)
    }

    /// Copies a string in, up to its terminating zero, which is not returned;
    /// `None` if there is none within `longest` bytes.
    pub fn read_string(
        &self,
        address: Claimed,
        longest: usize,
    ) -> Result<Option<Vec<u8>>, BadAddress> {
        let mut string = Vec::new();
        while string.len() < longest {
            let at = Claimed(address.0.wrapping_add(string.len() as u64));
            // To the end of the page: the next one may be none of the domain's.
            let step = (PAGE - at.0 % PAGE).min((longest - string.len()) as u64);
            let mut bytes = vec![0; step as usize];
            self.piece(at, step)?.read(&mut bytes)?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                string.extend_from_slice(&bytes[..end]);
                return Ok(Some(string));
            }
            string.extend_from_slice(&bytes);
        }
        Ok(None)
    }

    /// Fresh zeroed memory of `length` bytes, at `at` (replacing what is there)
    /// or where there is room. Returns its address.
    pub fn map(
        &self,
        at: Option<Claimed>,
        length: u64,
        access: Access,
    ) -> Result<u64, MappingError> {
        if access == Access::ReadExecute {
            return Err(MappingError::Image);
        }
        let mut state = self.state();
        let start = match at {
            Some(address) => self.offset(address).ok_or(MappingError::Range)?,
            None => {
                let length = length
                    .checked_next_multiple_of(PAGE)
                    .ok_or(MappingError::NoMemory)?;
                // Not where shared objects lie, unless there is no other room.
                let below = state.heap_end..SHARED_START.max(state.heap_end);
                let all = state.heap_end..HEAP_END;
                let mut free = [below, all].into_iter();
                free.find_map(|within| state.regions.find_free(&within, length))
                    .ok_or(MappingError::NoMemory)?
            }
        };
        let range = state.range(start, length)?;
        self.change(&mut state, &range, Some(access), |window, decided| {
            window.map_zeroed(decided, range.clone(), access)
        })?;
        Ok(self.base() + start)
    }

    /// Takes pages away.
    pub fn unmap(&self, address: Claimed, length: u64) -> Result<(), MappingError> {
        let mut state = self.state();
        let start = self.offset(address).ok_or(MappingError::Range)?;
        let range = state.range(start, length)?;
        self.change(&mut state, &range, None, |window, decided| {
            window.unmap(decided, range.clone())
        })
    }

    /// Changes what the domain may do with pages that it has mapped. Executable
    /// memory cannot be had this way.
    pub fn protect(
        &self,
        address: Claimed,
        length: u64,
        access: Access,
    ) -> Result<(), MappingError> {
        if access == Access::ReadExecute {
            return Err(MappingError::Image);
        }
        let mut state = self.state();
        let start = self.offset(address).ok_or(MappingError::Range)?;
        let range = state.range(start, length)?;
        if !state.regions.covers(&range) {
            return Err(MappingError::NotMapped);
        }
        self.change(&mut state, &range, Some(access), |window, decided| {
            window.protect(decided, range.clone(), access)
        })
    }

    /// Makes pages that the domain has mapped itself zero again. The image's are
    /// not its to drop: their relocations would be lost.
    pub fn discard(&self, address: Claimed, length: u64) -> Result<(), MappingError> {
        let state = self.state();
        let start = self.offset(address).ok_or(MappingError::Range)?;
        let range = state.range(start, length)?;
        if !state.regions.is_the_domains(&range) {
            return Err(MappingError::Image);
        }
        if !state.regions.covers(&range) {
            return Err(MappingError::NotMapped);
        }
        self.window()
            .discard(range)
            .map_err(|_| MappingError::NoMemory)
    }

    /// What the domain may do with all of these pages, if it mapped them itself and all alike.
    pub fn mapped_as(&self, address: Claimed, length: u64) -> Result<Access, MappingError> {
        let state = self.state();
        let start = self.offset(address).ok_or(MappingError::Range)?;
        let range = state.range(start, length)?;
        match state.regions.parts(&range).as_slice() {
            [part] if part.range == range => Ok(part.access),
            _ => Err(MappingError::NotMapped),
        }
    }

    /// Moves the end of the heap to `address` and returns where it is then: as
    /// `brk` does, unchanged if that cannot be.
    pub fn set_heap_end(&self, address: Claimed) -> u64 {
        let mut state = self.state();
        let old = state.heap_end;
        let wanted = self
            .offset(address)
            .filter(|wanted| (state.heap_start..=HEAP_END).contains(wanted));
        if let Some(new) = wanted {
            let (from, to) = (old.next_multiple_of(PAGE), new.next_multiple_of(PAGE));
            let free = from >= to || state.is_free_behind(&(from..to));
            let changed = if from < to && free {
                self.map_behind(&mut state, &(from..to))
            } else if from > to {
                self.change(&mut state, &(to..from), None, |window, decided| {
                    window.unmap(decided, to..from)
                })
            } else if free {
                Ok(())
            } else {
                Err(MappingError::NoMemory)
            };
            if changed.is_ok() {
                state.heap_end = new;
            }
        }
        self.base() + state.heap_end
    }

    /// Fresh memory at the heap's end: of what is ready first.
    fn map_behind(&self, state: &mut State, range: &Range<u64>) -> Result<(), MappingError> {
        let ready = state.ready;
        let rest = range.start.max(ready.min(range.end))..range.end;
        if rest.is_empty() {
            return Ok(());
        }
        self.change(state, &rest, Some(Access::ReadWrite), |window, decided| {
            window.map_zeroed(decided, rest.clone(), Access::ReadWrite)
        })?;
        state.ready = ready;
        Ok(())
    }

    /// Gives the domain pages of a shared object, at the object's offsets, or
    /// changes what it may do with them.
    pub(crate) fn share(
        &self,
        object: &Arc<Object>,
        bytes: Range<u64>,
        access: Access,
    ) -> Result<(), MappingError> {
        let mut state = self.state();
        let start = object.place().start;
        let range = start + bytes.start..start + bytes.end;
        if !state.regions.is_shared(&range) {
            return Err(MappingError::Image);
        }
        let mut regions = state.regions.clone();
        regions.insert(range.clone(), access, Owner::Shared);
        self.check_mappings(&state.regions, &regions)?;
        let wanted = [object.wanted(bytes.clone(), access)];
        let shared = self
            .record
            .change("shared pages", &wanted, |window, decided| {
                // What is mapped is changed in place: threads that run there go on.
                if state.regions.covers(&range) {
                    return window.protect(decided, range, access);
                }
                let file = object.file();
                window.map_shared(decided, range, access, file, bytes.start)
            });
        shared.map_err(|_: Error| MappingError::NoMemory)?;
        if !state.shared.iter().any(|known| Arc::ptr_eq(known, object)) {
            state.shared.push(object.clone());
        }
        state.regions = regions;
        self.meter.has_memory(state.regions.accessible());
        Ok(())
    }

    /// Changes the mappings of `range` in the kernel and in the records, if the
    /// limits allow what comes out. The lock is held all the while.
    fn change(
        &self,
        state: &mut State,
        range: &Range<u64>,
        access: Option<Access>,
        make: impl FnOnce(&Window, &Decided<'_>) -> Result<(), Error>,
    ) -> Result<(), MappingError> {
        let changed = self.try_to_change(state, range, access, make);
        match changed {
            Err(MappingError::NoMemory) => self.meter.hit(LimitKind::Memory),
            Err(MappingError::Mappings { .. }) => self.meter.hit(LimitKind::Mappings),
            _ => {}
        }
        changed
    }

    fn try_to_change(
        &self,
        state: &mut State,
        range: &Range<u64>,
        access: Option<Access>,
        make: impl FnOnce(&Window, &Decided<'_>) -> Result<(), Error>,
    ) -> Result<(), MappingError> {
        if !state.regions.is_the_domains(range) {
            return Err(MappingError::Image);
        }
        if range.start < state.image_end {
            return Err(MappingError::Range);
        }
        let mut regions = state.regions.clone();
        match access {
            Some(access) => regions.insert(range.clone(), access, Owner::Domain),
            None => regions.remove(range),
        }
        let grows =
            regions.accessible() > state.regions.accessible() && regions.accessible() > self.limit;
        if grows {
            return Err(MappingError::NoMemory);
        }
        self.check_mappings(&state.regions, &regions)?;
        let wanted = [Wanted::Own(range.clone(), access.unwrap_or(Access::None))];
        let made = self.record.change("a domain's memory", &wanted, make);
        made.map_err(|_: Error| MappingError::NoMemory)?;
        state.regions = regions;
        state.ready = state.ready.min(range.start);
        self.meter.has_memory(state.regions.accessible());
        Ok(())
    }

    /// More of them than before, and than may be?
    fn check_mappings(&self, before: &Regions, after: &Regions) -> Result<(), MappingError> {
        let (needed, limit) = (after.mappings(), self.max_mappings);
        match needed > limit && needed > before.mappings() {
            true => Err(MappingError::Mappings { needed, limit }),
            false => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// As in a new domain.
    fn of(image: &ImageLayout) -> Self {
        Self {
            regions: image.regions().clone(),
            image_end: image.end(),
            heap_start: image.end(),
            heap_end: image.end(),
            ready: image.end(),
            shared: Vec::new(),
        }
    }

    /// What the domain has mapped right behind the image, alike: to the kernel it is one with the image's last
    /// pages, and to take it away could need a mapping.
    fn joined(&self) -> Option<Region> {
        let last = self.regions.at(self.image_end - 1)?;
        let first = self.regions.at(self.image_end)?;
        (last.access == first.access).then(|| first.clone())
    }

    /// In a new life: this holds zeros and stays.
    fn keep(&mut self, joined: Region) {
        let Region { range, access, .. } = joined;
        if access == Access::ReadWrite {
            self.ready = range.end;
        }
        self.regions.insert(range, access, Owner::Domain);
    }

    /// Whether nothing lies at `range`, or only what is ready.
    fn is_free_behind(&self, range: &Range<u64>) -> bool {
        let rest = range.start.max(self.ready.min(range.end))..range.end;
        !self.regions.overlaps(&rest)
    }

    /// Whole pages between the image's start and the data stacks.
    fn range(&self, start: u64, length: u64) -> Result<Range<u64>, MappingError> {
        let end = length
            .checked_next_multiple_of(PAGE)
            .and_then(|length| start.checked_add(length))
            .ok_or(MappingError::Range)?;
        let whole = start.is_multiple_of(PAGE) && length > 0;
        if !whole || start < mullion_abi::IMAGE_BASE || end > HEAP_END {
            return Err(MappingError::Range);
        }
        Ok(start..end)
    }
}

/// A piece of a domain's window, checked to lie there.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    memory: &'a Memory,
    start: u64,
    length: u64,
}

impl Piece<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The address, for the kernel or assembly to use.
    fn address(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut((self.memory.base() + self.start) as usize)
    }

    fn bad(&self) -> BadAddress {
        BadAddress {
            address: Claimed(self.memory.base() + self.start),
            length: self.length,
        }
    }

    /// Copies the piece's first bytes in, as many as `to` has room for.
    #[inline]
    pub fn read(&self, to: &mut [u8]) -> Result<(), BadAddress> {
        let length = (self.length as usize).min(to.len());
        // SAFETY: `to` is the caller's and long enough. The source lies in the
        // window; if it is not readable, `mullion_copy` says so. Other threads of
        // the domain may write it meanwhile: assembly has no data race with them
        // that the language knows of, and any bytes are good bytes.
        let missed = unsafe { assembly::mullion_copy(to.as_mut_ptr(), self.address(), length) };
        if missed == 0 { Ok(()) } else { Err(self.bad()) }
    }

    /// Copies `from` out to the piece's first bytes.
    #[inline]
    pub fn write(&self, from: &[u8]) -> Result<(), BadAddress> {
        let length = (self.length as usize).min(from.len());
        // SAFETY: `from` is the caller's and long enough. The destination lies in the window, where Rust has no
        // references; if it is not writable, `mullion_copy` says so. Other threads of the domain may use it
        // meanwhile: assembly has no data race with them that the language knows of.
        let missed = unsafe { assembly::mullion_copy(self.address(), from.as_ptr(), length) };
        if missed == 0 { Ok(()) } else { Err(self.bad()) }
    }

    /// Lets the kernel fill the piece from a file, at `position` or where the
    /// file is. It answers `EFAULT` for what the domain may not write.
    pub fn fill_from(&self, file: BorrowedFd<'_>, position: Option<i64>) -> io::Result<usize> {
        let (descriptor, length) = (file.as_raw_fd(), self.length as usize);
        // SAFETY: the kernel writes `length` bytes that lie in the window, where
        // Rust has no references, and heeds the pages' protection.
        let count = unsafe {
            match position {
                Some(position) => libc::pread(descriptor, self.address().cast(), length, position),
                None => libc::read(descriptor, self.address().cast(), length),
            }
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Lets the kernel write the piece to a file, at `position` or where the
    /// file is. It answers `EFAULT` for what is not mapped, `EFBIG` and `EPIPE`
    /// without their signals ([`crate::quietly`]).
    pub fn drain_to(&self, file: BorrowedFd<'_>, position: Option<i64>) -> io::Result<usize> {
        let (descriptor, length) = (file.as_raw_fd(), self.length as usize);
        let write = || {
            // SAFETY: the kernel reads `length` bytes that lie in the window.
            let count = unsafe {
                match position {
                    Some(position) => {
                        libc::pwrite(descriptor, self.address().cast(), length, position)
                    }
                    None => libc::write(descriptor, self.address().cast(), length),
                }
            };
            usize::try_from(count).map_err(|_| io::Error::last_os_error())
        };
        quietly_in_part(write, |count| *count == length)
    }
}
