//! Which ledger is whose.

use mullion_sip_core::owner::Owner;

use super::ledger::Book;
use super::region::Region;
use super::worker;

/// The ledger of an owner, on the owner's worker; of the calling thread, if that is the host.
#[inline]
pub(crate) fn of(owner: Owner) -> Book {
    let worker = worker::current();
    let book = if owner == Owner::HOST {
        Book::of_thread(worker.region(), worker.number())
    } else {
        Book::numbered(worker.region(), owner.index())
    };
    book.open();
    book
}

/// The ledger of a process, to be read on any thread. It may never have been opened: then all of it is 0.
pub(super) fn look(owner: Owner) -> Book {
    Book::numbered(Region::get(), owner.index())
}
