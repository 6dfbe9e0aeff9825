//! Walks over trees of blocks: leaving an owner, joining one, being freed.
//!
//! A walk keeps the blocks that it has yet to look into on a list through their records. So it needs no
//! memory and no stack however deep the tree. It sees the handles of each type and runs nobody's code: types
//! that may be sent have no destructors of their own.

use std::ptr::NonNull;

use super::ledger::OwnerLedger;
use super::region::{Holder, Region};
use super::sizes::{Class, Id};
use super::visitor::{Scan, Visitor};
use super::worker::Worker;

/// The size of a block that holds an endpoint's place.
pub(crate) const PLACE: Class = Class::SMALLEST;

/// Blocks that a walk has yet to look into, linked by their records.
pub(crate) struct Work(Id);

impl Work {
    /// # Safety
    /// The block is the caller's, and on no walk's list.
    pub(crate) unsafe fn push(&mut self, region: Region, id: Id, scan: Scan, count: usize) {
        // SAFETY: the block is the caller's alone and on no list, so nobody else uses its record.
        unsafe {
            let record = region.record(id);
            (*record).work = self.0;
            (*record).scan = Some(scan);
            (*record).count = count;
        }
        self.0 = id;
    }

    /// Looks into the next block with `visitor`, which holds this list and gets it back for the time.
    pub(crate) fn pop(&mut self, region: Region) -> Option<Todo> {
        let id = self.0;
        if id == Id::NONE {
            return None;
        }
        // SAFETY: it was pushed, and since then belongs to the walk.
        let record = unsafe { &*region.record(id) };
        self.0 = record.work;
        Some(Todo {
            id,
            values: region.block(id),
            scan: record.scan?,
            count: record.count,
        })
    }
}

pub(crate) struct Todo {
    pub(crate) id: Id,
    pub(crate) values: NonNull<u8>,
    scan: Scan,
    count: usize,
}

impl Todo {
    pub(crate) fn visit(&self, visitor: &mut dyn Visitor) {
        // SAFETY: the handle that was visited said what is in its block, which nobody has touched since.
        unsafe { (self.scan)(self.values, self.count, visitor) };
    }
}

/// Takes a tree from its owner: from here on it is in flight, and found only through what it was put into.
pub(crate) struct Release {
    pub(crate) region: Region,
    pub(crate) work: Work,
    /// Bytes of the tree, which its owner's ledger still counts.
    pub(crate) bytes: u64,
}

impl Release {
    #[inline]
    pub(crate) fn new(region: Region) -> Release {
        Release {
            region,
            work: Work(Id::NONE),
            bytes: 0,
        }
    }

    /// Looks into everything that was found.
    #[inline]
    pub(crate) fn finish(mut self) -> u64 {
        while let Some(todo) = self.work.pop(self.region) {
            todo.visit(&mut self);
        }
        self.bytes
    }

    /// Takes a block off its owner's list.
    #[inline]
    pub(crate) fn unlink(&mut self, id: Id, in_flight: Holder) {
        // SAFETY: whoever has the handle owns the block, on this worker.
        unsafe {
            OwnerLedger::unlink(self.region, id);
            (*self.region.record(id)).holder = in_flight;
        }
        self.bytes += id.class().bytes() as u64;
    }
}

/// Shows the blocks of a tree, where each begins and its bytes, and changes nothing.
pub(crate) struct Find<F> {
    pub(crate) show: F,
    pub(crate) work: Vec<(NonNull<u8>, Scan, usize)>,
}

impl<F: FnMut(usize, usize)> Find<F> {
    pub(crate) fn new(show: F) -> Find<F> {
        Find {
            show,
            work: Vec::new(),
        }
    }

    /// Looks into everything that was found.
    pub(crate) fn finish(mut self) {
        while let Some((values, scan, count)) = self.work.pop() {
            // SAFETY: the handle that was visited said what is in its block, which nobody touches meanwhile.
            unsafe { scan(values, count, &mut self) };
        }
    }
}

/// Gives a tree in flight to an owner, on that owner's worker.
pub(crate) struct Adopt {
    pub(crate) book: OwnerLedger,
    pub(crate) work: Work,
    pub(crate) here: u64,
    /// Bytes of the tree, which the owner's ledger counts in the end.
    pub(crate) bytes: u64,
}

impl Adopt {
    #[inline]
    pub(crate) fn new(book: OwnerLedger, here: u64) -> Adopt {
        Adopt {
            book,
            work: Work(Id::NONE),
            here,
            bytes: 0,
        }
    }

    /// Looks into everything that was found.
    #[inline]
    pub(crate) fn finish(mut self) {
        while let Some(todo) = self.work.pop(self.book.region()) {
            todo.visit(&mut self);
        }
        self.book.add(self.bytes);
    }

    /// Puts a block on the owner's list.
    #[inline]
    pub(crate) fn link(&mut self, id: Id, kind: Holder) {
        // SAFETY: what was released by its former owner is on no list, and whoever took it out of its queue has it
        // alone.
        unsafe { self.book.link(id, kind) };
        self.bytes += id.class().bytes() as u64;
    }
}

/// Frees trees, whether they belong to the calling worker's owner or are in flight, and closes endpoints.
pub(crate) struct Discard {
    pub(crate) worker: &'static Worker,
    pub(crate) work: Work,
    pub(crate) closing: Work,
}

impl Discard {
    #[inline]
    pub(crate) fn new(worker: &'static Worker) -> Discard {
        Discard {
            worker,
            work: Work(Id::NONE),
            closing: Work(Id::NONE),
        }
    }

    /// Frees a block that is the caller's alone and has no handles in it.
    ///
    /// # Safety
    /// So it is, and on no list.
    pub(crate) unsafe fn free(&mut self, id: Id) {
        // SAFETY: the block is the caller's alone, has no handles in it, and is on no list.
        unsafe { self.worker.give(id) };
    }
}

/// Frees every block on an owner's list and closes its endpoints. Blocks are not looked into: what is in them
/// is on the list too.
pub(crate) fn end(book: OwnerLedger) {
    let region = book.region();
    let worker = super::worker::current();
    while let Some(id) = book.first() {
        let mut discard = Discard::new(worker);
        // SAFETY: the list is whole and this worker's.
        match unsafe { (*region.record(id)).holder.is_endpoint() } {
            true => discard.endpoint(region.block(id).cast()),
            false => discard.block(id, None, 0),
        }
        discard.finish();
    }
    book.reset();
}
