//! Memory that the forwarder and one module have in common: frames are put there, and go on from there.
//!
//! ```text
//!   answers, numbers | a batch's frames: header, bytes, nothing | ... | frames that the module adds | ...
//! ```

use crate::batch::BATCH;
use mullion::{Domain, Error, Host, Permission, Ptr, Shared};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest frame that a module gets or makes (`PACKETS_ROOM`).
pub(crate) const ROOM: usize = 16384;
/// Frames that a module may add to a batch (`PACKETS_ADDED`).
pub(crate) const ADDED: usize = 128;

/// `struct packets_frame`, without its bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) original: u32,
    pub(crate) packet: u32,
    pub(crate) payload: u32,
    pub(crate) end: u32,
    pub(crate) port: u32,
    pub(crate) nanoseconds: u64,
}

/// A frame in its place.
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) header: Header,
    pub(crate) bytes: [u8; ROOM],
    /// So that frames do not compete for the same lines of the cache.
    apart: [u8; 1504],
}

/// All of it: numbers and bytes only, of which any are good.
#[repr(C)]
pub(crate) struct Contents {
    pub(crate) answers: [i32; BATCH],
    /// Frames that the module has added, and those that it had no place for.
    pub(crate) added: u32,
    pub(crate) refused: u32,
    /// Behind which frame of the batch each of them goes.
    pub(crate) behind: [u32; ADDED],
    apart: [u32; 14],
    /// The batch's frames, then those that are added.
    pub(crate) of: [Slot; BATCH + ADDED],
}

/// The memory, which no other domain has.
pub(crate) struct Room(Memory);

enum Memory {
    /// The domain's, too: it has it at that place.
    Shared(Shared, Ptr<u8>),
    /// For a module that is elsewhere: what it gets and gives is copied.
    Own(Box<Contents>),
}

/// Contents of nothing but zeros.
pub(crate) fn own() -> Box<Contents> {
    // SAFETY: any bytes are good contents.
    unsafe { Box::new_zeroed().assume_init() }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl Room {
    pub(crate) fn new(host: &Host, domain: &Domain) -> Result<Room, Error> {
        let shared = host.share(domain.name(), size_of::<Contents>() as u64)?;
        shared.grant(None, domain, 0..shared.len(), Permission::ReadWrite)?;
        let place = shared.ptr(domain, 0)?;
        Ok(Room(Memory::Shared(shared, place)))
    }

    /// One that no domain has.
    pub(crate) fn own() -> Room {
        Room(Memory::Own(own()))
    }

    /// Where the module has it, if it has.
    pub(crate) fn place(&self) -> Option<Ptr<u8>> {
        match &self.0 {
            Memory::Shared(_, place) => Some(*place),
            Memory::Own(_) => None,
        }
    }

    pub(crate) fn contents(&mut self) -> &mut Contents {
        let shared = match &mut self.0 {
            Memory::Shared(shared, _) => shared,
            Memory::Own(contents) => return contents,
        };
        let start: *mut Contents = shared.bytes().as_ptr().cast_mut().cast();
        // SAFETY: the pages are there as long as `shared`, are at least as large, begin at a page, and may be written
        // (they are atomics). Any bytes are good contents. Only this room has a handle, and the only domain that has the
        // pages runs in calls alone. Such a call is made by who has the room mutably, with no contents in its hands.
        unsafe { &mut *start }
    }

    /// So many bytes of a frame.
    pub(crate) fn bytes(&self, slot: usize, length: usize) -> &[u8] {
        let contents = match &self.0 {
            Memory::Shared(shared, _) => shared.bytes().as_ptr().cast::<Contents>(),
            Memory::Own(contents) => &raw const **contents,
        };
        // SAFETY: the pages are there and large enough, as `contents` has it, and any bytes are good. A call in which the
        // module could write needs the room mutably, so there is none while this is borrowed.
        let contents = unsafe { &*contents };
        let bytes = contents.of.get(slot).map(|slot| &slot.bytes);
        bytes.and_then(|bytes| bytes.get(..length)).unwrap_or(&[])
    }
}

/// Rooms of a module that nobody uses now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Arc<Mutex<Vec<Room>>>);

impl Home {
    pub(crate) fn take(&self) -> Option<Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(crate) fn give_back(&self, room: Option<Room>) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.extend(room);
    }
}
