//! Memory that the forwarder and one module have in common: frames are put there, and read from there, in their place.
//!
//! ```text
//!   answers: one for each frame of a batch | header, bytes, nothing | header, bytes, nothing | ...
//! ```

use crate::batch::BATCH;
use mullion::{Domain, Error, Host, Permission, Ptr, Shared};

/// Longest frame that a module gets or makes (`PACKETS_ROOM`).
pub(crate) const ROOM: usize = 16384;

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
    pub(crate) of: [Slot; BATCH],
}

/// The memory, which no other domain has.
pub(crate) struct Room(Shared);

impl Room {
    pub(crate) fn new(host: &Host, domain: &Domain) -> Result<Room, Error> {
        let shared = host.share(domain.name(), size_of::<Contents>() as u64)?;
        shared.grant(None, domain, 0..shared.len(), Permission::ReadWrite)?;
        Ok(Room(shared))
    }

    /// Where the module has it.
    pub(crate) fn place(&self, domain: &Domain) -> Result<Ptr<u8>, Error> {
        self.0.ptr(domain, 0)
    }

    pub(crate) fn contents(&mut self) -> &mut Contents {
        let start = self.0.bytes().as_ptr().cast_mut().cast::<Contents>();
        // SAFETY: the pages are there as long as `self.0`, are at least as large, begin at a page, and may be written
        // (they are atomics). Any bytes are good contents. Only this room has a handle, and the only domain that has
        // the pages runs in calls alone, which `Running` makes while it has no contents in its hands.
        unsafe { &mut *start }
    }
}
