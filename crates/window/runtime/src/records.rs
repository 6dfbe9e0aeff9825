//! The supervisor of the process: which domains there are, what each may do with which memory, and who may call whom,
//! with [`Order::Strict`]. The host is its root. Windows and entry points stand there at their addresses, pages of
//! shared objects at the host's. So one row shows what every domain may do with a page.
//!
//! Nothing that changes who may touch what can be done without its yes:
//!
//! ```text
//! ask  -- refused --> a typed error; nothing has been done
//!  | yes: a Decided
//! do   -- the kernel refuses --> its error; the records stay as they were
//!  | done
//! commit
//! ```
//! The functions that map, protect or take away pages take a [`Decided`], and so does the one that puts a link in
//! force. Only this file makes one. Asked when something changes, never on the way of a call.

use crate::access::Access;
use crate::regions::Regions;
use crate::window::Window;
use mullion_abi::{GATE_AREA_SIZE, GATE_BASE, WINDOW_SIZE};
use mullion_report::error::Error as Failure;
use mullion_supervisor::{
    Change, DomainId, Error, Family, Level, Mechanism, Order, Permission, Range, Rule, Snapshot,
    Supervisor,
};
use std::ops::Range as Offsets;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kernel's page tables are the mechanism. `window` writes them between the question and the commit,
/// since the kernel, unlike a [`Mechanism`], may refuse.
#[derive(Clone, Copy, Debug)]
pub struct PageTables;

impl Mechanism for PageTables {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

type Records = Supervisor<PageTables>;

static RECORDS: Mutex<Option<Records>> = Mutex::new(None);

const HOST: DomainId = DomainId::SUPERVISOR;

fn lock() -> MutexGuard<'static, Option<Records>> {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || Supervisor::with(Range::everything(), PageTables, Family, Order::Strict);
    records.get_or_insert_with(new);
    records
}

/// One question to the supervisor. Every change of the records begins here.
fn ask<T, E: From<Error>>(
    question: &'static str,
    decide: impl FnOnce(&mut Records) -> Result<T, E>,
) -> Result<T, E> {
    #[cfg(test)]
    refusing::ask(question)?;
    #[cfg(not(test))]
    let _ = question;
    match lock().as_mut() {
        Some(records) => decide(records),
        // `lock` has made them.
        None => Err(Error::Exhausted.into()),
    }
}

/// What the supervisor of the run time holds now; `mullion_picture::State` turns
/// it into what `mullion map` paints.
#[must_use]
pub fn snapshot() -> Snapshot {
    supervisor().snapshot()
}

/// A copy of the supervisor of the run time, to which others may add what they know: it enforces nothing.
#[must_use]
pub fn supervisor() -> Supervisor<PageTables> {
    let new = || Supervisor::with(Range::everything(), PageTables, Family, Order::Strict);
    lock().clone().unwrap_or_else(new)
}

/// The supervisor's yes to a change, good for what was asked and as long as the change is made.
#[derive(Debug)]
pub(crate) struct Decided<'a>(Yes<'a>);

#[derive(Debug)]
enum Yes<'a> {
    /// Pages of the window with this base become so.
    Pages(u64, &'a [Wanted]),
    /// These addresses are nobody's but the host's, which does there what it likes.
    Hosts(Offsets<u64>),
    /// The entry at this address is called by whoever asked for it.
    Entry(u64),
}

impl Decided<'_> {
    /// Whether these addresses may become so.
    pub(crate) fn allows(&self, addresses: &Offsets<u64>, access: Access) -> bool {
        let within = |all: Offsets<u64>| all.start <= addresses.start && addresses.end <= all.end;
        match &self.0 {
            Yes::Pages(base, wanted) => wanted.iter().any(|wanted| {
                let offsets = wanted.offsets();
                wanted.access() == access && within(base + offsets.start..base + offsets.end)
            }),
            Yes::Hosts(all) => within(all.clone()),
            Yes::Entry(_) => false,
        }
    }

    /// Whether a link to this address may be put in force.
    pub(crate) fn allows_entry(&self, address: u64) -> bool {
        matches!(self.0, Yes::Entry(asked) if asked == address)
    }
}

/// A change of what a domain may do with pages of its window.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Its own memory at these offsets.
    Own(Offsets<u64>, Access),
    /// Pages of an object.
    Shared {
        /// Offsets in windows.
        place: Offsets<u64>,
        /// Where the host has them.
        host: u64,
        /// What it may do there.
        access: Access,
    },
}

impl Wanted {
    fn offsets(&self) -> Offsets<u64> {
        match self {
            Self::Own(offsets, _) => offsets.clone(),
            Self::Shared { place, .. } => place.clone(),
        }
    }

    fn access(&self) -> Access {
        match self {
            Self::Own(_, access) | Self::Shared { access, .. } => *access,
        }
    }

    fn change(&self, domain: DomainId, base: u64) -> Result<(DomainId, Change), Error> {
        Ok(match self {
            Self::Own(offsets, access) => {
                let range = bytes(base, offsets.clone())?;
                let permission = permission(*access);
                (domain, Change::Own { range, permission })
            }
            Self::Shared {
                place,
                host,
                access,
            } => {
                let change = Change::Export {
                    target: domain.into(),
                    range: bytes(*host, 0..place.end - place.start)?,
                    permission: permission(*access),
                    export: Level::None,
                };
                (HOST, change)
            }
        })
    }
}

/// Does `work` with addresses that are the host's own: if no domain has anything there.
pub(crate) fn for_the_host<T>(
    addresses: Offsets<u64>,
    work: impl FnOnce(&Decided<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    ask("memory of the host's", |records| {
        is_the_hosts(records, addresses.clone())
    })?;
    work(&Decided(Yes::Hosts(addresses)))
}

fn is_the_hosts(records: &Records, addresses: Offsets<u64>) -> Result<(), Error> {
    for (at, holding) in records.regions(bytes(0, addresses)?) {
        if holding.owner != HOST {
            return Err(Error::NotOwner {
                rule: Rule::Ownership,
                caller: HOST,
                owner: holding.owner,
                at,
            });
        }
        if let Some((holder, _)) = holding.grants.first() {
            return Err(Error::Shared {
                rule: Rule::Ownership,
                holder: *holder,
                at,
            });
        }
    }
    Ok(())
}

/// A window that no domain has, as the supervisor has said. Nobody runs there: the host prepares it as it
/// likes. Goes back to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Vacant {
    window: Window,
}

impl Vacant {
    /// One from the pool, empty.
    pub(crate) fn new() -> Result<Self, Failure> {
        end_those_that_wait();
        let window = Window::new()?;
        let all = window.base()..window.base() + WINDOW_SIZE;
        match ask("an empty window", |records| is_the_hosts(records, all)) {
            Ok(()) => Ok(Self { window }),
            Err(refused) => {
                window.put_back();
                Err(refused.into())
            }
        }
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Its evidence, for all of the window.
    pub(crate) fn decided(&self) -> Decided<'_> {
        let base = self.window.base();
        Decided(Yes::Hosts(base..base + WINDOW_SIZE))
    }
}

impl Drop for Vacant {
    fn drop(&mut self) {
        let window = std::mem::replace(&mut self.window, Window::nowhere());
        let base = window.base();
        if base != 0 {
            window.give_back(&Decided(Yes::Hosts(base..base + WINDOW_SIZE)));
        }
    }
}

/// A domain's place in the records, and its window.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: DomainId,
    window: Window,
}

impl Record {
    /// A domain that has the window, in which it has what is wanted, once `work` has made it so.
    ///
    /// # Errors
    /// The window as it was, and why it is still nobody's.
    pub(crate) fn new(
        mut vacant: Vacant,
        wanted: &[Wanted],
        work: impl FnOnce(&Window, &Decided<'_>) -> Result<(), Failure>,
    ) -> Result<Self, (Vacant, Failure)> {
        let whole = bytes(vacant.window.base(), 0..WINDOW_SIZE);
        // At first it has its window, and may touch nothing of it.
        let id = whole.and_then(|whole| {
            ask("a domain", |records| {
                records.pd_subdivide(&HOST, whole, Permission::None)
            })
        });
        let id = match id {
            Ok(id) => id,
            Err(refused) => return Err((vacant, refused.into())),
        };
        let window = std::mem::replace(&mut vacant.window, Window::nowhere());
        let mut record = Self { id, window };
        match record.change("a domain's first memory", wanted, work) {
            Ok(()) => Ok(record),
            Err(error) => {
                // What has just been made, and has nothing, is no question.
                let undone = lock().as_mut().map(|records| records.pd_free(&HOST, id));
                debug_assert_eq!(undone, Some(Ok(())));
                vacant.window = std::mem::replace(&mut record.window, Window::nowhere());
                Err((vacant, error))
            }
        }
    }

    /// What a new domain has of an image: its regions, and the gate area.
    pub(crate) fn first(regions: &Regions, end: u64) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        // Code right behind the gate area is one piece with it.
        let mut gates = GATE_BASE..GATE_BASE + GATE_AREA_SIZE;
        for region in regions.parts(&(0..end)) {
            if region.access == Access::ReadExecute && region.range.start == gates.end {
                gates.end = region.range.end;
            } else {
                wanted.push(Wanted::Own(region.range, region.access));
            }
        }
        wanted.push(Wanted::Own(gates, Access::ReadExecute));
        wanted
    }

    #[inline]
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// All that is wanted, or nothing of it, once `work` has made it so: if it may be.
    pub(crate) fn change<T, E: From<Error>>(
        &self,
        question: &'static str,
        wanted: &[Wanted],
        work: impl FnOnce(&Window, &Decided<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let base = self.window.base();
        let changes: Result<Vec<_>, Error> = wanted
            .iter()
            .map(|wanted| wanted.change(self.id, base))
            .collect();
        let changes = changes?;
        ask(question, |records| {
            records.change_after(&changes, || {
                work(&self.window, &Decided(Yes::Pages(base, wanted)))
            })
        })
    }

    /// `caller` may enter this domain at this address, once `work` has made it so: if it may.
    pub(crate) fn link_after<T, E: From<Error>>(
        &self,
        caller: &Self,
        address: u64,
        work: impl FnOnce(&Decided<'_>) -> Result<T, E>,
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
        let changes = [(self.id, own), (self.id, export)];
        ask("a link", |records| {
            records.change_after(&changes, || work(&Decided(Yes::Entry(address))))
        })
    }

    /// The domain's end: its window is nobody's then. If that is refused, the domain stays in the records, with
    /// all that it has and takes no calls; it is asked again at each next end, and for each new window. `kept`
    /// stays as long.
    pub(crate) fn end(&mut self, kept: Box<dyn Send>) -> Option<Vacant> {
        let window = std::mem::replace(&mut self.window, Window::nowhere());
        if window.base() == 0 {
            return None;
        }
        end_those_that_wait();
        let ending = Ending {
            id: self.id,
            window,
            _kept: kept,
        };
        ending.end().map_err(wait).ok()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.end(Box::new(()));
    }
}

/// A domain that nobody can use any more, and that is in the records.
struct Ending {
    id: DomainId,
    window: Window,
    /// The objects of which it has pages: they keep their places meanwhile.
    _kept: Box<dyn Send>,
}

/// Those whose end was refused.
static WAITING: Mutex<Vec<Ending>> = Mutex::new(Vec::new());

impl Ending {
    fn end(self) -> Result<Vacant, Self> {
        match ask("a domain's end", |records| records.pd_free(&HOST, self.id)) {
            Ok(()) => Ok(Vacant {
                window: self.window,
            }),
            Err(_) => Err(self),
        }
    }
}

fn waiting() -> MutexGuard<'static, Vec<Ending>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(ending: Ending) {
    waiting().push(ending);
}

/// Asks again for the ends that were refused.
pub(crate) fn end_those_that_wait() {
    let all = std::mem::take(&mut *waiting());
    for ending in all {
        if let Err(ending) = ending.end() {
            wait(ending);
        }
    }
}

fn bytes(base: u64, offsets: Offsets<u64>) -> Result<Range, Error> {
    Range::bytes(base + offsets.start, offsets.end - offsets.start).map_err(Into::into)
}

/// Keeps the latest `capacity` decisions of the supervisor from now on; [`supervisor`] has them with its copy. Nothing is
/// kept before. A call of a domain is no decision, and costs the same with and without.
pub fn start_audit(capacity: usize) {
    let new = || Supervisor::with(Range::everything(), PageTables, Family, Order::Strict);
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    records.get_or_insert_with(new).start_audit(capacity);
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
        static REFUSED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Refuses the question after so many on this thread; then no more.
    pub(crate) fn after(questions: Option<u32>) {
        LEFT.set(questions);
        REFUSED.set(None);
    }

    /// Which question has been refused since.
    pub(crate) fn refused() -> Option<&'static str> {
        REFUSED.get()
    }

    /// How many are left until one is, to hand the count to another thread.
    pub(crate) fn left() -> Option<u32> {
        LEFT.get()
    }

    /// What another thread has left of the count.
    pub(crate) fn hand_back(refused: Option<&'static str>, left: Option<u32>) {
        LEFT.set(left);
        REFUSED.set(refused);
    }

    pub(super) fn ask(question: &'static str) -> Result<(), Error> {
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                REFUSED.set(Some(question));
                Err(Error::Exhausted)
            }
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
