//! Which ledger is whose.

use mullion_sip_core::owner::Owner;

use super::ledger::OwnerLedger;
use super::region::Region;
use super::worker;

/// The ledger of an owner, on the owner's worker; of the calling thread, if that is the host.
#[inline]
pub(crate) fn of(owner: Owner) -> OwnerLedger {
    let worker = worker::current();
    let book = if owner == Owner::HOST {
        OwnerLedger::of_thread(worker.region(), worker.number())
    } else {
        OwnerLedger::numbered(worker.region(), owner.index())
    };
    book.open();
    book
}

/// The ledger of a process, to be read on any thread. It may never have been opened: then all of it is 0.
pub(super) fn look(owner: Owner) -> OwnerLedger {
    OwnerLedger::numbered(Region::get(), owner.index())
}
