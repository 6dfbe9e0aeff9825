//! Frames on their way through modules, several at a time. They stay where they lie: in the ring that they came by, or in
//! the room of the module that changed or added them.

use crate::frame::{self, Layout};
use crate::room::{Home, Room};
use std::time::Duration;

/// Frames that a module gets in one call (`PACKETS_BATCH`).
pub const BATCH: usize = 32;

/// Frames that came in, and what modules have made of them.
#[derive(Debug, Default)]
pub struct Batch<'f> {
    pub(crate) items: Vec<Item<'f>>,
    /// Rooms in which frames lie. They go home with the batch.
    pub(crate) rooms: Vec<Lent>,
    /// What modules have added.
    added: Vec<Added>,
    /// Frames of which modules have changed the part that they see.
    own: Vec<Vec<u8>>,
    /// Bytes that came in.
    pub(crate) came: usize,
    /// Frames that modules have dropped.
    pub(crate) dropped: u64,
}

/// Frames that go out.
#[derive(Debug)]
pub struct Out<'b, 'f> {
    batch: &'b Batch<'f>,
    at: usize,
    /// What goes behind the one before.
    added: Option<usize>,
}

impl<'b> Iterator for Out<'b, '_> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        loop {
            if let Some(added) = self.added {
                let added = self.batch.added.get(added)?;
                self.added = added.next;
                return Some(self.batch.bytes(&added.place));
            }
            let item = self.batch.items.get(self.at)?;
            self.at += 1;
            self.added = item.added.map(|(first, _)| first);
            if !item.is_dropped {
                return Some(self.batch.bytes(&item.place));
            }
        }
    }
}

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct Item<'f> {
    /// When it came in: nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) place: Place<'f>,
    /// Where its headers are.
    pub(crate) layout: Layout,
    /// A module has dropped it.
    pub(crate) is_dropped: bool,
    /// The first and the last of those that go behind it.
    added: Option<(usize, usize)>,
}

/// Where a frame lies. Nothing is to be done when it goes: there are many.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'f> {
    /// Where it came in.
    Came(&'f [u8]),
    /// In one of the batch's rooms.
    Room {
        room: usize,
        slot: usize,
        length: usize,
    },
    /// In the batch's list of those.
    Own(usize),
}

#[derive(Debug)]
struct Added {
    place: Place<'static>,
    next: Option<usize>,
}

/// A room that is not at home.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) room: Option<Room>,
    pub(crate) home: Home,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.give_back(self.room.take());
    }
}

impl<'f> Batch<'f> {
    /// One more frame that comes in.
    #[inline]
    pub fn push(&mut self, time: Duration, bytes: &'f [u8]) {
        self.came += bytes.len();
        self.items.push(Item {
            time: time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos()),
            place: Place::Came(bytes),
            layout: Layout::default(),
            is_dropped: false,
            added: None,
        });
        if let Some(item) = self.items.last_mut() {
            frame::read(bytes, &mut item.layout);
        }
    }

    /// Frames that came in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// No frame came in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Frames that go out: each that came in and was not dropped, and behind it what was added to it.
    #[must_use]
    pub fn out(&self) -> Out<'_, 'f> {
        Out {
            batch: self,
            at: 0,
            added: None,
        }
    }

    /// The frame that came in as the one of this number, as it is now; nothing, if it was dropped.
    #[must_use]
    pub fn frame(&self, at: usize) -> Option<&[u8]> {
        let item = self.items.get(at).filter(|item| !item.is_dropped)?;
        Some(self.bytes(&item.place))
    }

    /// What was added behind it.
    pub fn added(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let first = self.items.get(at).and_then(|item| item.added);
        Out {
            batch: self,
            at: self.len(),
            added: first.map(|(first, _)| first),
        }
    }

    /// The same memory for other frames.
    #[must_use]
    #[expect(
        clippy::unnecessary_filter_map,
        reason = "`filter` would not give items of another lifetime"
    )]
    pub fn again<'g>(mut self) -> Batch<'g> {
        self.items.clear();
        self.rooms.clear();
        self.added.clear();
        self.own.clear();
        Batch {
            // It is empty: the standard library keeps the allocation.
            items: self.items.into_iter().filter_map(|_| None).collect(),
            rooms: self.rooms,
            added: self.added,
            own: self.own,
            came: 0,
            dropped: 0,
        }
    }

    #[inline]
    pub(crate) fn bytes<'b>(&'b self, place: &'b Place<'f>) -> &'b [u8] {
        match place {
            Place::Came(bytes) => bytes,
            Place::Own(own) => self.own.get(*own).map_or(&[], Vec::as_slice),
            Place::Room { room, slot, length } => {
                let room = self.rooms.get(*room).and_then(|lent| lent.room.as_ref());
                room.map_or(&[], |room| room.bytes(*slot, *length))
            }
        }
    }

    /// A place for a frame of which a part was changed, or must not lie in a module's room.
    pub(crate) fn keep<'p>(&mut self, frame: Vec<u8>) -> Place<'p> {
        self.own.push(frame);
        Place::Own(self.own.len() - 1)
    }

    /// A frame that goes behind another one. It meets no other module.
    pub(crate) fn add(&mut self, behind: usize, place: Place<'static>) {
        let new = self.added.len();
        self.added.push(Added { place, next: None });
        let item = &mut self.items[behind];
        item.added = match item.added {
            None => Some((new, new)),
            Some((first, last)) => {
                self.added[last].next = Some(new);
                Some((first, new))
            }
        };
    }
}
