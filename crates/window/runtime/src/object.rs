//! Objects: pages that several windows and the host have in common.

use crate::access::{Access, protection};
use crate::records::{self, Decided, Wanted};
use crate::sealed;
use mullion_abi::HEAP_END;
use mullion_report::error::Error;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU8;
use std::sync::{Mutex, PoisonError};

/// Where objects lie in windows: from here to the end of the heap's part. What
/// domains map without naming a place goes below it as long as there is room.
pub(crate) const SHARED_START: u64 = 0x9000_0000;

/// The pages: in a file of which nobody has a descriptor but this.
#[derive(Debug)]
pub(crate) struct Object {
    file: OwnedFd,
    /// Offsets in windows; no two objects have one in common.
    place: Range<u64>,
    host: NonNull<AtomicU8>,
}

// SAFETY: the pointer is to pages that live as long as the object and are only
// used as atomic bytes; nothing else is bound to a thread.
unsafe impl Send for Object {}
// SAFETY: what a reference leads to is atomic bytes, or does not change.
unsafe impl Sync for Object {}

impl Object {
    /// Zeroed pages of which nobody has anything but the host: so many bytes, at the lowest free offsets.
    pub(crate) fn of(length: u64) -> Result<Self, Error> {
        let place = take(length).ok_or(Error::Range {
            start: SHARED_START,
            end: SHARED_START.saturating_add(length),
        })?;
        Self::new(place.clone()).inspect_err(|_| give_back(&place))
    }

    /// Bytes: whole pages.
    pub(crate) fn length(&self) -> u64 {
        self.place.end - self.place.start
    }

    /// The host's view.
    pub(crate) fn bytes(&self) -> &[AtomicU8] {
        // SAFETY: mapped readable and writable as long as the object lives, and by
        // nobody used as anything but bytes that may change.
        unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.length() as usize) }
    }

    #[expect(clippy::disallowed_methods, reason = "mapped without access")]
    fn new(place: Range<u64>) -> Result<Self, Error> {
        let length = place.end - place.start;
        let file = sealed::shared(c"mullion-shared", length)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let host = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length as usize,
                libc::PROT_NONE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        const MAPPING: &str = "mapping a shared object";
        let mapped = NonNull::new(host.cast()).filter(|_| host != libc::MAP_FAILED);
        let mapped = mapped.ok_or_else(|| Error::last(MAPPING))?;
        // Until the supervisor has said that no domain has anything there, nor has the host.
        let start = host.addr() as u64;
        let opened = records::for_the_host(start..start + length, |decided| {
            open(decided, host, length).ok_or_else(|| Error::last(MAPPING))
        });
        if let Err(error) = opened {
            // SAFETY: the mapping that has just been made, of which nobody knows.
            unsafe { libc::munmap(host, length as usize) };
            return Err(error);
        }
        Ok(Self {
            file,
            place,
            host: mapped,
        })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Addresses in the host.
    pub(crate) fn host(&self) -> Range<u64> {
        let start = self.host.as_ptr().addr() as u64;
        start..start + (self.place.end - self.place.start)
    }

    /// Offsets in windows.
    pub(crate) fn place(&self) -> &Range<u64> {
        &self.place
    }

    /// These bytes, as they become in a domain.
    pub(crate) fn wanted(&self, bytes: Range<u64>, access: Access) -> Wanted {
        Wanted::Shared {
            place: self.place.start + bytes.start..self.place.start + bytes.end,
            host: self.host().start + bytes.start,
            access,
        }
    }
}

/// Makes a new mapping readable and writable for the host, by the supervisor's yes.
#[expect(clippy::disallowed_methods, reason = "by the supervisor's yes")]
fn open(decided: &Decided<'_>, host: *mut libc::c_void, length: u64) -> Option<()> {
    let start = host.addr() as u64;
    let access = Access::ReadWrite;
    let allowed = decided.allows(&(start..start + length), access);
    // SAFETY: a mapping that the caller has just made, to which there are no references.
    let opened =
        allowed && unsafe { libc::mprotect(host, length as usize, protection(access)) } == 0;
    opened.then_some(())
}

impl Drop for Object {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever has pages of it keeps it alive"
    )]
    fn drop(&mut self) {
        let length = (self.place.end - self.place.start) as usize;
        // SAFETY: the mapping is this object's, and references to it were borrowed
        // from it.
        unsafe { libc::munmap(self.host.as_ptr().cast(), length) };
        give_back(&self.place);
    }
}

/// Offsets in use, in ascending order.
static PLACES: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// The lowest free offsets.
fn take(length: u64) -> Option<Range<u64>> {
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut start = SHARED_START;
    let mut index = 0;
    for place in places.iter() {
        if place.start - start >= length {
            break;
        }
        start = place.end;
        index += 1;
    }
    let place = start..start.checked_add(length).filter(|end| *end <= HEAP_END)?;
    places.insert(index, place.clone());
    Some(place)
}

fn give_back(place: &Range<u64>) {
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.retain(|taken| taken != place);
}
