//! Walks over trees of blocks: leaving an owner, joining one, being freed.
//!
//! A walk keeps the blocks that it has yet to look into on a list through their records, so it needs no
//! memory and no stack however deep the tree. It sees the handles of each type and runs nobody's code: types
//! that may be sent have no destructors of their own.

use std::ptr::NonNull;

use crate::channel;

use super::ledger::Book;
use super::region::{Holder, Region};
use super::sizes::{Class, Id};
use super::worker::Worker;

/// How to visit the handles in a block: `count` values of the type that it is made for.
///
/// # Safety
/// At `values` there are `count` values of that type, which nobody else uses meanwhile.
pub type Scan = unsafe fn(values: NonNull<u8>, count: usize, visitor: &mut dyn Visitor);

/// Is shown each handle of a value.
pub trait Visitor {
    /// A handle of a block of values; with `scan`, `count` values in it hold handles themselves.
    fn block(&mut self, block: Id, scan: Option<Scan>, count: usize);

    /// An endpoint, by its place.
    fn endpoint(&mut self, place: NonNull<()>);
}

/// The size of a block that holds an endpoint's place.
const PLACE: Class = Class::SMALLEST;

/// Blocks that a walk has yet to look into, linked by their records.
struct Work(Id);

impl Work {
    /// # Safety
    /// The block is the caller's, and on no walk's list.
    unsafe fn push(&mut self, region: Region, id: Id, scan: Scan, count: usize) {
        // SAFETY: by the caller.
        unsafe {
            let record = region.record(id);
            (*record).work = self.0;
            (*record).scan = Some(scan);
            (*record).count = count;
        }
        self.0 = id;
    }

    /// Looks into the next block with `visitor`, which holds this list and gets it back for the time.
    fn pop(&mut self, region: Region) -> Option<Todo> {
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

struct Todo {
    id: Id,
    values: NonNull<u8>,
    scan: Scan,
    count: usize,
}

impl Todo {
    fn visit(&self, visitor: &mut dyn Visitor) {
        // SAFETY: the handle that was visited said what is in its block, which nobody has touched since.
        unsafe { (self.scan)(self.values, self.count, visitor) };
    }
}

/// Takes a tree from its owner: from here on it is in flight, and found only through what it was put into.
pub(crate) struct Release {
    region: Region,
    work: Work,
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
    fn unlink(&mut self, id: Id, in_flight: Holder) {
        // SAFETY: whoever has the handle owns the block, on this worker.
        unsafe {
            Book::unlink(self.region, id);
            (*self.region.record(id)).holder = in_flight;
        }
        self.bytes += id.class().bytes() as u64;
    }
}

impl Visitor for Release {
    #[inline]
    fn block(&mut self, id: Id, scan: Option<Scan>, count: usize) {
        self.unlink(id, Holder::FREE.in_flight());
        if let Some(scan) = scan {
            // SAFETY: the block is in what is taken, and nobody else's.
            unsafe { self.work.push(self.region, id, scan, count) };
        }
    }

    fn endpoint(&mut self, place: NonNull<()>) {
        self.unlink(
            Region::id_of(PLACE, place),
            Holder::FREE.endpoint().in_flight(),
        );
        // SAFETY: an endpoint's handle is of its place, and its holder's.
        self.bytes += unsafe { channel::depart(place) };
    }
}

/// Shows the blocks of a tree, where each begins and its bytes, and changes nothing.
pub(crate) struct Find<F> {
    show: F,
    work: Vec<(NonNull<u8>, Scan, usize)>,
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

impl<F: FnMut(usize, usize)> Visitor for Find<F> {
    fn block(&mut self, id: Id, scan: Option<Scan>, count: usize) {
        let block = Region::get().block(id);
        (self.show)(block.addr().get(), id.class().bytes());
        self.work.extend(scan.map(|scan| (block, scan, count)));
    }

    fn endpoint(&mut self, place: NonNull<()>) {
        self.block(Region::id_of(PLACE, place), None, 0);
    }
}

/// Gives a tree in flight to an owner, on that owner's worker.
pub(crate) struct Adopt {
    book: Book,
    work: Work,
    here: u64,
    /// Bytes of the tree, which the owner's ledger counts in the end.
    bytes: u64,
}

impl Adopt {
    #[inline]
    pub(crate) fn new(book: Book, here: u64) -> Adopt {
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
    fn link(&mut self, id: Id, kind: Holder) {
        // SAFETY: what was released by its former owner is on no list, and whoever took it out of its queue has it
        // alone.
        unsafe { self.book.link(id, kind) };
        self.bytes += id.class().bytes() as u64;
    }
}

impl Visitor for Adopt {
    #[inline]
    fn block(&mut self, id: Id, scan: Option<Scan>, count: usize) {
        self.link(id, Holder::FREE);
        if let Some(scan) = scan {
            // SAFETY: the block is in what is received, and nobody else's.
            unsafe { self.work.push(self.book.region(), id, scan, count) };
        }
    }

    fn endpoint(&mut self, place: NonNull<()>) {
        self.link(Region::id_of(PLACE, place), Holder::FREE.endpoint());
        // SAFETY: an endpoint's handle is of its place, and the caller's.
        self.bytes += unsafe { channel::arrive(place, self.book, self.here) };
    }
}

/// Frees trees, whether they belong to the calling worker's owner or are in flight, and closes endpoints.
pub(crate) struct Discard {
    worker: &'static Worker,
    work: Work,
    closing: Work,
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
        // SAFETY: by the caller.
        unsafe { self.worker.give(id) };
    }

    /// Looks into everything that was found. Closing an endpoint finds what waits in its queue, which may hold
    /// endpoints again: those go on the list too.
    pub(crate) fn finish(mut self) {
        let region = self.worker.region();
        loop {
            if let Some(todo) = self.work.pop(region) {
                todo.visit(&mut self);
                // SAFETY: it was taken off its list when it was found.
                unsafe { self.free(todo.id) };
            } else if let Some(todo) = self.closing.pop(region) {
                // SAFETY: an endpoint's block that nobody has any more.
                unsafe { channel::close(todo.values.cast(), &mut self) };
            } else {
                return;
            }
        }
    }
}

impl Visitor for Discard {
    #[inline]
    fn block(&mut self, id: Id, scan: Option<Scan>, count: usize) {
        let region = self.worker.region();
        // SAFETY: whoever has the handle has the block: as its owner on this worker, or out of a queue.
        unsafe {
            let holder = (*region.record(id)).holder;
            if !holder.is_in_flight() {
                Book::unlink(region, id);
                Book::holding(region, holder).subtract(id.class().bytes() as u64);
            }
            match scan {
                Some(scan) => self.work.push(region, id, scan, count),
                None => self.free(id),
            }
        }
    }

    fn endpoint(&mut self, place: NonNull<()>) {
        let region = self.worker.region();
        let id = Region::id_of(PLACE, place);
        // SAFETY: as above.
        unsafe {
            let holder = (*region.record(id)).holder;
            if holder.is_lent() {
                // The kernel has taken it out of what is dropped here.
                (*region.record(id)).holder = holder.in_flight();
            } else {
                self.closing.push(region, id, nothing_to_scan, 0);
            }
        }
    }
}

/// An endpoint's block is not looked into but closed.
///
/// # Safety
/// Nothing is asked of the caller: it touches nothing.
unsafe fn nothing_to_scan(_: NonNull<u8>, _: usize, _: &mut dyn Visitor) {}

/// Frees every block on an owner's list and closes its endpoints. Blocks are not looked into: what is in them
/// is on the list too.
pub(crate) fn end(book: Book) {
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
