//! What calls are granted, and what of it is kept for the next one (`keep.rs`).

use crate::gates::Seat;
use crate::rights::{Raised, right};
use mullion_supervisor::{Permission, Range};
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// Pieces of memory that a call is granted without an allocation, and that are kept for the next one.
const PIECES: usize = 8;

/// What a call is granted: words, and a bit for each piece that it may write.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) count: usize,
    writes: u64,
    pieces: [(u64, u64); PIECES],
    /// Beyond these; they are not kept between calls.
    more: Vec<(Range, Permission)>,
}

impl PartialEq for Wanted {
    #[inline]
    fn eq(&self, other: &Wanted) -> bool {
        self.count == other.count
            && self.writes == other.writes
            && self.pieces[..self.count] == other.pieces[..self.count]
    }
}

/// What is granted for a call, in the table.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) wanted: Wanted,
    pub(crate) raised: Vec<Raised>,
    pub(crate) edition: u64,
}

/// What a domain keeps between calls. Its bias and its edition are in its `Inner`, where gates see them.
#[derive(Default)]
pub(crate) struct Keep {
    /// Whose `kept` is, if there may be something in it. Changes under `turn`.
    pub(crate) owner: AtomicPtr<Seat>,
    /// Whether the owner, without its bias, is inside and takes back when it leaves. Changes under `turn`.
    pub(crate) is_left: AtomicBool,
    /// Belongs to the seat that has the bias while its depth is not 0; otherwise to whoever has `turn`.
    pub(crate) kept: UnsafeCell<Kept>,
    pub(crate) turn: Mutex<()>,
}

impl Wanted {
    pub(crate) fn add(&mut self, range: Range, write: bool) {
        let Some(piece) = self.pieces.get_mut(self.count) else {
            self.more.push((range, right(write)));
            return;
        };
        *piece = (range.start(), range.count());
        self.writes |= u64::from(write) << self.count;
        self.count += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.writes = 0;
        self.more.clear();
    }

    /// Becomes what a small one is.
    pub(crate) fn copy(&mut self, other: &Wanted) {
        let count = other.count;
        self.pieces[..count].copy_from_slice(&other.pieces[..count]);
        (self.count, self.writes) = (count, other.writes);
    }

    /// The words of a piece, and what it is granted with.
    #[inline]
    pub(crate) fn piece(&mut self, at: usize) -> Option<(&mut (u64, u64), Permission)> {
        let permission = right(self.writes >> at & 1 == 1);
        let piece = self.pieces[..self.count].get_mut(at)?;
        Some((piece, permission))
    }

    /// Whether it may be kept.
    pub(crate) fn is_small(&self) -> bool {
        self.more.is_empty()
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Range, Permission)> {
        let pieces = self.pieces[..self.count].iter().enumerate();
        let pieces = pieces.map(|(at, &(start, count))| {
            let range = Range::words(start, count).expect("it was a range");
            (range, right(self.writes >> at & 1 == 1))
        });
        pieces.chain(self.more.iter().copied())
    }
}
