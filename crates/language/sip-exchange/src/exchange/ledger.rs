//! Owners' lists, and what each owner holds and may hold.

use std::sync::atomic::Ordering;

use super::error::{HeapError, Share};
use super::region::{Holder, Ledger, Record, Region};
use super::sizes::{Id, PLACE_BITS, SMALLEST};

/// An owner's ledger and list. Only its worker changes them, apart from what a debtor gives back.
#[derive(Clone, Copy, Debug)]
pub struct OwnerLedger {
    region: Region,
    number: u32,
    ledger: &'static Ledger,
}

/// Who is to be given back what it has sent: a ledger in one of its lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Debtor {
    number: u32,
    generation: u32,
}

/// Threads of the host have no process: each has a ledger of its own, numbered from the middle (and a little
/// beyond, as [`super::sizes::Class::first`] has it).
const HOST_THREADS: u32 = (1 << (PLACE_BITS - 1)) + 37;

impl OwnerLedger {
    /// The ledger of the thread of the host that has the worker with this number.
    pub(crate) fn of_thread(region: Region, worker: u32) -> OwnerLedger {
        OwnerLedger::numbered(region, HOST_THREADS + worker)
    }

    /// The ledger of a block's holder, which has been opened when it came to hold anything.
    #[inline]
    pub(crate) fn holding(region: Region, holder: Holder) -> OwnerLedger {
        OwnerLedger::numbered(region, holder.number())
    }

    #[inline]
    pub(super) fn numbered(region: Region, number: u32) -> OwnerLedger {
        let ledger = region.ledger(number);
        OwnerLedger {
            region,
            number,
            ledger,
        }
    }

    /// For what is in flight: a ledger that no owner has.
    pub(crate) fn nobodys() -> OwnerLedger {
        OwnerLedger::numbered(Region::get(), 0)
    }

    /// What another book has told.
    #[inline]
    pub(crate) fn told(region: Region, (number, ledger): (u32, &'static Ledger)) -> OwnerLedger {
        OwnerLedger {
            region,
            number,
            ledger,
        }
    }

    /// Its number, and where it is.
    #[inline]
    pub(crate) fn tell(self) -> (u32, &'static Ledger) {
        (self.number, self.ledger)
    }

    #[inline]
    pub(crate) fn region(self) -> Region {
        self.region
    }

    /// Makes the list of a ledger that was never used.
    #[inline]
    pub(super) fn open(self) {
        let head = Id::head(self.number);
        let record = self.region.record(head);
        // SAFETY: heads have records; only this owner's worker touches this one.
        unsafe {
            if (*record).next == Id::NONE {
                (*record).next = head;
                (*record).previous = head;
                self.ledger().limit.store(u64::MAX, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn ledger(self) -> &'static Ledger {
        self.ledger
    }

    /// Puts a block on the list. Who links it counts it.
    ///
    /// The latest waits beside the list until the next one comes: most messages are sent on before, or dropped.
    ///
    /// # Safety
    /// The block is on no list and the caller's alone; the calling worker is the owner's.
    #[inline]
    pub(crate) unsafe fn link(self, id: Id, holder: Holder) {
        let head = self.region.record(Id::head(self.number));
        // SAFETY: the list is this worker's, the block the caller's.
        unsafe {
            (*self.region.record(id)).holder = holder.held_by(self.number);
            let before = std::mem::replace(&mut (*head).work, id);
            if before != Id::NONE {
                self.enlist(before);
            }
        }
    }

    /// # Safety
    /// The block is the owner's and not in its list; the calling worker is the owner's.
    unsafe fn enlist(self, id: Id) {
        let head = self.region.record(Id::head(self.number));
        let record = self.region.record(id);
        // SAFETY: the list is whole and this worker's, as is the block.
        unsafe {
            let first = (*head).next;
            (*record).next = first;
            (*record).previous = Id::head(self.number);
            (*self.region.record(first)).previous = id;
            (*head).next = id;
        }
    }

    /// Takes a block off the list that it is on; it still counts.
    ///
    /// # Safety
    /// It is on one, and the calling worker is its owner's.
    #[inline]
    pub(crate) unsafe fn unlink(region: Region, id: Id) {
        let record = region.record(id);
        // SAFETY: the block has a holder, whose list is whole and this worker's.
        unsafe {
            let head = region.record(Id::head((*record).holder.number()));
            if (*head).work == id {
                (*head).work = Id::NONE;
            } else {
                let Record { next, previous, .. } = *record;
                (*region.record(previous)).next = next;
                (*region.record(next)).previous = previous;
            }
        }
    }

    /// The first block of the list.
    pub(crate) fn first(self) -> Option<Id> {
        let head = self.region.record(Id::head(self.number));
        // SAFETY: heads have records, and this worker is the owner's.
        let first = unsafe {
            let latest = std::mem::replace(&mut (*head).work, Id::NONE);
            if latest != Id::NONE {
                self.enlist(latest);
            }
            (*head).next
        };
        (first.as_head().is_none() && first != Id::NONE).then_some(first)
    }

    /// Shows every block on the list: where it begins, and its bytes. On the owner's worker.
    pub fn each_block(self, mut show: impl FnMut(usize, usize)) {
        self.each(|block, _| {
            let start = self.region.block(block).addr().get();
            show(start, block.class().bytes());
        });
    }

    /// Every block on the list, and whether it is an end of a channel.
    pub(crate) fn each(self, mut show: impl FnMut(Id, bool)) {
        let mut id = self.first();
        while let Some(current) = id {
            let record = self.region.record(current);
            // SAFETY: the list is whole and this worker's.
            let (next, holder) = unsafe { ((*record).next, (*record).holder) };
            show(current, holder.is_endpoint());
            id = next.as_head().is_none().then_some(next);
        }
    }

    /// Counts the messages of an end that is closed.
    pub(crate) fn count_sent(self, messages: u32) {
        let sent = &self.ledger().sent;
        let sum = sent.load(Ordering::Relaxed) + u64::from(messages);
        sent.store(sum, Ordering::Relaxed);
    }

    /// Messages that were sent from ends that are closed.
    pub(crate) fn sent(self) -> u64 {
        self.ledger().sent.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more are within the limit.
    #[inline]
    pub(crate) fn check(self, bytes: u64) -> Result<(), HeapError> {
        let ledger = self.ledger();
        if ledger.held().saturating_add(bytes) <= ledger.limit.load(Ordering::Relaxed) {
            return Ok(());
        }
        ledger.check_again(bytes)
    }

    /// Takes `bytes` off what the owner holds, which then is to be no more than it may.
    ///
    /// # Panics
    /// If it is more: the process ends. What it receives is taken beyond the limit, so that a message is
    /// never stuck, but nothing more until it has freed as much.
    #[inline]
    pub(crate) fn subtract_and_demand(self, bytes: u64) {
        let ledger = self.ledger();
        let held = ledger.held().saturating_sub(bytes);
        ledger.held.store(held, Ordering::Relaxed);
        if held > ledger.limit.load(Ordering::Relaxed) {
            ledger.demand_again();
        }
    }

    /// It holds so many bytes more.
    #[inline]
    pub fn add(self, bytes: u64) {
        let held = &self.ledger().held;
        held.store(held.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn subtract(self, bytes: u64) {
        self.ledger().subtract(bytes);
    }

    /// Who is to be given back what this one has paid for.
    pub fn debtor(self) -> Debtor {
        Debtor {
            number: self.number,
            generation: self.ledger().credit.generation(),
        }
    }

    pub(crate) fn set_limit(self, limit: u64) {
        self.ledger().limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn share(self) -> Share {
        self.ledger().share()
    }

    /// Empty again, for the next process with this number.
    pub(crate) fn reset(self) {
        let ledger = self.ledger();
        ledger.credit.end();
        ledger.held.store(0, Ordering::Relaxed);
        ledger.sent.store(0, Ordering::Relaxed);
        ledger.limit.store(u64::MAX, Ordering::Relaxed);
    }
}

// What is seldom needed has the ledger alone, so that a book need not lie in memory for it.
impl Ledger {
    #[inline]
    fn subtract(&self, bytes: u64) {
        self.held
            .store(self.held().saturating_sub(bytes), Ordering::Relaxed);
    }

    fn share(&self) -> Share {
        let returned = u64::from(self.credit.units()) * SMALLEST as u64;
        Share {
            held: self.held().saturating_sub(returned),
            limit: self.limit.load(Ordering::Relaxed),
        }
    }

    /// Takes what others have given back, and looks again.
    #[cold]
    fn check_again(&self, bytes: u64) -> Result<(), HeapError> {
        self.subtract(u64::from(self.credit.collect()) * SMALLEST as u64);
        let Share { held, limit } = self.share();
        if held.saturating_add(bytes) <= limit {
            return Ok(());
        }
        Err(HeapError::Limit {
            held,
            limit,
            wanted: bytes,
        })
    }

    #[cold]
    fn demand_again(&self) {
        if let Err(error) = self.check_again(0) {
            over_limit(error);
        }
    }
}

impl Debtor {
    /// Gives back `bytes`, from any worker; nothing if the owner has ended.
    pub(crate) fn give_back(self, bytes: u64) {
        let credit = &Region::get().ledger(self.number).credit;
        credit.give(self.generation, bytes / SMALLEST as u64);
    }
}

#[cold]
#[inline(never)]
fn over_limit(error: HeapError) -> ! {
    std::panic::panic_any(error)
}

#[cfg(test)]
mod tests {
    use super::super::accounts::of;
    use super::super::life::{sent, share_of};
    use super::*;
    use crate::exchange::{ExBox, walk};
    use mullion_sip_core::owner::Owner;
    use std::collections::BTreeSet;

    /// A process's worker opens its ledger. Whoever looks at the process before would write it at the same time, and put the
    /// limit away, or blocks off the list.
    #[test]
    fn who_looks_at_an_owner_opens_nothing() {
        let nobody = Owner::from_bits(1 << 32 | 77);
        let head = Region::get().record(Id::head(nobody.index()));
        let (share, sent) = (share_of(nobody), sent(nobody));
        // SAFETY: heads have records, and this process has never begun.
        assert!(unsafe { (*head).next } == Id::NONE);
        assert_eq!((share, sent), (Share::default(), 0));
    }

    /// What the list says, beside what was made, dropped and leaked: the latest block first of all or long after others.
    #[test]
    fn every_block_of_an_owner_is_found_and_only_those() {
        std::thread::spawn(|| {
            let book = of(Owner::HOST);
            let (mut kept, mut leaked) = (Vec::new(), BTreeSet::new());
            let address = |block: &ExBox<u64>| std::ptr::from_ref::<u64>(block).addr();
            let mut random = 1u32;
            for step in 0..if cfg!(miri) { 300 } else { 2_000u32 } {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let which = (random >> 8) as usize;
                match random >> 29 {
                    0..=3 => kept.push(ExBox::new(u64::from(step))),
                    4 if !kept.is_empty() => drop(kept.pop()),
                    5 | 6 if !kept.is_empty() => drop(kept.swap_remove(which % kept.len())),
                    7 if !kept.is_empty() => {
                        let block = kept.swap_remove(which % kept.len());
                        leaked.insert(address(&block));
                        std::mem::forget(block);
                    }
                    _ => {}
                }
                if step.is_multiple_of(7) {
                    let mut listed = Vec::new();
                    book.each_block(|start, _| listed.push(start));
                    let known: BTreeSet<_> =
                        kept.iter().map(address).chain(leaked.clone()).collect();
                    assert_eq!(listed.len(), known.len());
                    assert_eq!(BTreeSet::from_iter(listed), known);
                }
            }
            assert!(!leaked.is_empty() && !kept.is_empty());
            drop(kept);
            assert_eq!(book.share().held, leaked.len() as u64 * SMALLEST as u64);
            walk::end(book);
            assert_eq!((book.share().held, book.first()), (0, None));
        })
        .join()
        .expect("no panic");
    }
}
