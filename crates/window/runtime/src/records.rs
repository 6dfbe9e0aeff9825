//! The books: which domains there are, what each may do with which memory, and
//! who may call whom, in one supervisor for the process, with
//! [`Order::Strict`]. The host is its root. Windows and entry points stand there
//! at their addresses, pages of shared objects at the host's: so one row shows
//! what every domain may do with a page.
//!
//! Written when something changes, never on the way of a call.

use crate::regions::Regions;
use crate::window::Access;
use mullion_abi::{GATE_AREA_SIZE, GATE_BASE, WINDOW_SIZE};
use mullion_supervisor::{
    Change, DomainId, Error, Family, Level, Mechanism, Order, Permission, Range, Snapshot,
    Supervisor,
};
use std::ops::Range as Offsets;
use std::sync::{Mutex, PoisonError};

/// The kernel's page tables are the mechanism; `window` writes them.
#[derive(Clone, Copy, Debug)]
pub struct PageTables;

impl Mechanism for PageTables {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

static BOOKS: Mutex<Option<Supervisor<PageTables>>> = Mutex::new(None);

const HOST: DomainId = DomainId::SUPERVISOR;

fn with_books<T>(work: impl FnOnce(&mut Supervisor<PageTables>) -> T) -> T {
    let mut books = BOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || Supervisor::with(Range::everything(), PageTables, Family, Order::Strict);
    work(books.get_or_insert_with(new))
}

/// What the supervisor of the run time holds now; `mullion_picture::State` turns
/// it into what `mullion map` paints.
#[must_use]
pub fn snapshot() -> Snapshot {
    with_books(|books| books.snapshot())
}

/// A copy of the supervisor of the run time, to which others may add what they know: it enforces nothing.
#[must_use]
pub fn books() -> Supervisor<PageTables> {
    with_books(|books| books.clone())
}

/// A domain's place in the books; its end there when dropped, if not before.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: DomainId,
    base: u64,
    closed: bool,
}

impl Record {
    /// A domain with a window, in which it has the gate area and its image's regions.
    pub(crate) fn new(base: u64, regions: &Regions, end: u64) -> Result<Self, Error> {
        let id = with_books(|books| -> Result<DomainId, Error> {
            let window = bytes(base, 0..WINDOW_SIZE)?;
            books.pd_subdivide(&HOST, window, Permission::None)
        })?;
        let record = Self {
            id,
            base,
            closed: false,
        };
        // Code right behind the gate area is one piece with it.
        let mut gates = GATE_BASE..GATE_BASE + GATE_AREA_SIZE;
        for region in regions.parts(&(0..end)) {
            if region.access == Access::ReadExecute && region.range.start == gates.end {
                gates.end = region.range.end;
            } else {
                record.set(region.range, region.access)?;
            }
        }
        record.set(gates, Access::ReadExecute)?;
        Ok(record)
    }

    /// The domain's own memory at these offsets, as it is already.
    pub(crate) fn set(&self, offsets: Offsets<u64>, access: Access) -> Result<(), Error> {
        with_books(|books| books.mprot(&self.id, bytes(self.base, offsets)?, permission(access)))
    }

    /// The domain's own memory at these offsets, once `work` has made it so: if it may be.
    pub(crate) fn set_after<T, E: From<Error>>(
        &self,
        offsets: Offsets<u64>,
        access: Access,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let change = Change::Own {
            range: bytes(self.base, offsets)?,
            permission: permission(access),
        };
        after(&[(self.id, change)], work)
    }

    /// As [`Record::set`] for all offsets, as the regions say.
    pub(crate) fn follow(&self, offsets: &Offsets<u64>, regions: &Regions) -> Result<(), Error> {
        self.set(offsets.clone(), Access::None)?;
        for part in regions.parts(offsets) {
            self.set(part.range, part.access)?;
        }
        Ok(())
    }

    /// Bytes of a shared object, at the host's addresses, once `work` has made it so: if it
    /// may be.
    pub(crate) fn share_after<T, E: From<Error>>(
        &self,
        addresses: Offsets<u64>,
        access: Access,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let change = Change::Export {
            target: self.id.into(),
            range: bytes(0, addresses)?,
            permission: permission(access),
            export: Level::None,
        };
        after(&[(HOST, change)], work)
    }

    /// `caller` may enter this domain at this address, once `work` has made it so: if it may.
    pub(crate) fn link_after<T, E: From<Error>>(
        &self,
        caller: &Self,
        address: u64,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let permission = Permission::SwitchGate { to: self.id };
        let range = bytes(0, address & !3..(address & !3) + 4)?;
        let own = Change::Own { range, permission };
        let export = Change::Export {
            target: caller.id.into(),
            range,
            permission,
            export: Level::None,
        };
        after(&[(self.id, own), (self.id, export)], work)
    }
}

impl Record {
    /// The domain's end in the books. Must come before anybody else may have its window.
    pub(crate) fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            // It lives, and the host is its parent: nothing to refuse.
            let _ = with_books(|books| books.pd_free(&HOST, self.id));
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ask, do, commit: nothing of a change that is refused is ever in force.
fn after<T, E: From<Error>>(
    changes: &[(DomainId, Change)],
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    #[cfg(test)]
    refusing::ask()?;
    with_books(|books| books.change_after(changes, work))
}

fn bytes(base: u64, offsets: Offsets<u64>) -> Result<Range, Error> {
    Range::bytes(base + offsets.start, offsets.end - offsets.start).map_err(Into::into)
}

/// Keeps the latest `capacity` decisions of the supervisor from now on; [`books`] has them with its copy. Nothing is
/// kept before. A call of a domain is no decision, and costs the same with and without.
pub fn start_audit(capacity: usize) {
    let new = || Supervisor::with(Range::everything(), PageTables, Family, Order::Strict);
    let mut books = BOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    books.get_or_insert_with(new).start_audit(capacity);
}

fn permission(access: Access) -> Permission {
    match access {
        Access::None => Permission::None,
        Access::Read => Permission::Read,
        Access::ReadWrite => Permission::ReadWrite,
        Access::ReadExecute => Permission::ExecuteRead,
    }
}

/// Tests have a question refused, whatever it is: the supervisor's own rules leave little to refuse.
#[cfg(test)]
pub(crate) mod refusing {
    use super::Error;
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Refuses the question after so many on this thread; then no more.
    pub(crate) fn after(questions: Option<u32>) {
        LEFT.set(questions);
    }

    pub(super) fn ask() -> Result<(), Error> {
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                Err(Error::Exhausted)
            }
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
