//! Peers without a wall of ours: their frames lie in memory that they share with us, and nothing is copied out.

use mullion_packets::filter::Filter;
use mullion_packets::frame;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

pub(crate) const BATCH: usize = 32;
const ADDED: usize = 128;
const ROOM: usize = 16384;

#[repr(C)]
pub(crate) struct Frame {
    pub(crate) length: u32,
    pub(crate) original: u32,
    pub(crate) packet: u32,
    pub(crate) payload: u32,
    pub(crate) end: u32,
    pub(crate) port: u32,
    pub(crate) nanoseconds: u64,
    pub(crate) bytes: [u8; ROOM],
}

#[repr(C)]
pub(crate) struct Slot {
    pub(crate) frame: Frame,
    apart: [u8; 1504],
}

/// `packets_room` of native/packets.h.
#[repr(C)]
pub(crate) struct Room {
    pub(crate) answers: [i32; BATCH],
    pub(crate) added: u32,
    refused: u32,
    behind: [u32; ADDED],
    apart: [u32; 14],
    pub(crate) of: [Slot; BATCH],
    pub(crate) more: [Slot; ADDED],
}

/// A room at the beginning of a page, as the forwarder's are: frames then lie in as many lines of the cache.
#[repr(C, align(4096))]
struct Paged(Room);

/// A peer whose frames lie in our memory.
pub(crate) struct InPlace {
    room: *mut Room,
    steps: Entry,
    filter: Filter,
}

/// How its frames are handed over: in its own room, or in one that it is given.
enum Entry {
    Own(unsafe extern "C" fn(u32)),
    Given(unsafe extern "C" fn(*mut Room, u32)),
}

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A symbol of a shared library.
pub(crate) fn symbol(library: &Path, name: &str) -> Option<*mut c_void> {
    let file = CString::new(library.to_str()?).ok()?;
    let name = CString::new(name).ok()?;
    // SAFETY: both are strings with their end; the libraries were built by this benchmark.
    let found = unsafe { dlsym(dlopen(file.as_ptr(), 2), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl InPlace {
    /// A module built by gcc.
    pub(crate) fn library(library: &Path, filter: &str) -> Option<InPlace> {
        let place = symbol(library, "packets_place")?;
        let steps = symbol(library, "packets_steps")?;
        // SAFETY: native/packets.h defines both so.
        let (place, steps) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut Room>(place),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32)>(steps),
            )
        };
        // SAFETY: it takes nothing, and gives the address of a static.
        InPlace::at(unsafe { place() }, steps, filter)
    }

    /// A module of elastic Rust without a window, in a room of ours.
    pub(crate) fn alone(library: &Path, filter: &str) -> Option<InPlace> {
        type Steps = unsafe extern "C" fn(*mut Room, u32);
        let steps = symbol(library, "packets_steps")?;
        // SAFETY: elastic/environment.rs defines it so.
        let steps = unsafe { std::mem::transmute::<*mut c_void, Steps>(steps) };
        // SAFETY: all zeros are a room of empty frames. It stays until the process ends.
        let room: Box<Paged> = unsafe { Box::new_zeroed().assume_init() };
        let filter = filter.parse().ok()?;
        Some(InPlace {
            room: Box::into_raw(room).cast(),
            steps: Entry::Given(steps),
            filter,
        })
    }

    /// A module of any kind.
    pub(crate) fn at(
        room: *mut Room,
        steps: unsafe extern "C" fn(u32),
        filter: &str,
    ) -> Option<InPlace> {
        let filter = filter.parse().ok()?;
        (!room.is_null()).then_some(InPlace {
            room,
            steps: Entry::Own(steps),
            filter,
        })
    }

    /// Takes frames through the module, as the forwarder does.
    pub(crate) fn pass(&mut self, frames: &[impl AsRef<[u8]>]) -> u64 {
        // SAFETY: the room is the module's, which runs in `steps` alone, and nobody else has it.
        let room = unsafe { &mut *self.room };
        let mut bytes = 0;
        for batch in frames.chunks(BATCH) {
            for (slot, frame) in room.of.iter_mut().zip(batch) {
                let frame = frame.as_ref();
                let to = &mut slot.frame;
                to.bytes[..frame.len()].copy_from_slice(frame);
                let layout = frame::layout(&to.bytes[..frame.len()]);
                assert!(self.filter.holds(&layout));
                let packet = layout.packet.as_ref();
                to.length = frame.len() as u32;
                to.original = frame.len() as u32;
                to.packet = packet.map_or(u32::MAX, |packet| packet.bytes.start as u32);
                to.payload = packet
                    .and_then(|packet| packet.payload.as_ref())
                    .map_or(u32::MAX, |payload| payload.start as u32);
                to.end = packet.map_or(frame.len(), |packet| packet.bytes.end) as u32;
                to.port = 0;
                to.nanoseconds = 1;
            }
            (room.added, room.refused) = (0, 0);
            let (count, place) = (batch.len() as u32, &raw mut *room);
            // SAFETY: as many frames as there are, and the room is not looked at meanwhile.
            unsafe {
                match self.steps {
                    Entry::Own(steps) => steps(count),
                    Entry::Given(steps) => steps(place, count),
                }
            }
            for (slot, answer) in room.of.iter_mut().zip(room.answers).take(batch.len()) {
                let frame = &mut slot.frame;
                let length = (frame.length as usize).min(ROOM);
                if answer == 1 {
                    let end = (frame.end as usize).min(length);
                    frame::repair(&mut frame.bytes[..length], end);
                }
                bytes += length as u64;
            }
            for slot in &mut room.more[..(room.added as usize).min(ADDED)] {
                let frame = &mut slot.frame;
                let length = (frame.length as usize).min(ROOM);
                frame::repair(&mut frame.bytes[..length], frame.end as usize);
                bytes += length as u64;
            }
        }
        bytes
    }
}

impl InPlace {
    /// The first frame as it is now.
    pub(crate) fn first(&self) -> &[u8] {
        // SAFETY: the room is the module's, which runs in `steps` alone and not now.
        let frame = unsafe { &(*self.room).of[0].frame };
        &frame.bytes[..(frame.length as usize).min(ROOM)]
    }

    /// The first `count` frames as they are now, and those that were added.
    pub(crate) fn results(&self, count: usize) -> impl Iterator<Item = &[u8]> {
        // SAFETY: the room is the module's, which runs in `steps` alone and not now; nobody else writes to it.
        let room = unsafe { &*self.room };
        let more = room.more.iter().take(room.added as usize);
        let all = room.of.iter().take(count).chain(more);
        all.map(|slot| &slot.frame.bytes[..(slot.frame.length as usize).min(ROOM)])
    }
}
