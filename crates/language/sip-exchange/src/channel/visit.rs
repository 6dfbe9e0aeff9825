//! What a walk does with each handle that it is shown: blocks are the heap's, endpoints are channels'.

use std::ptr::NonNull;

use crate::exchange::ledger::OwnerLedger;
use crate::exchange::region::{Holder, Region};
use crate::exchange::sizes::Id;
use crate::exchange::visitor::{Scan, Visitor};
use crate::exchange::walk::{Adopt, Discard, Find, PLACE, Release};

use super::place;

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
        self.bytes += unsafe { place::depart(place) };
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
        self.bytes += unsafe { place::arrive(place, self.book, self.here) };
    }
}

impl Discard {
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
                unsafe { place::close(todo.values.cast(), &mut self) };
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
                OwnerLedger::unlink(region, id);
                OwnerLedger::holding(region, holder).subtract(id.class().bytes() as u64);
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
        // SAFETY: whoever has the handle of an endpoint has its block, whose record nobody else touches.
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
