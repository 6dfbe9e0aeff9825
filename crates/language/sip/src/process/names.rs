//! The name server: services by path, and who may bind and look up which.
//!
//! An end that waits at a name counts for the process that has given it, until it is accepted. That process's share of
//! the exchange heap is the bound. If the process ends first, the end still waits, for what was sent over it before, and
//! is nobody's. Of such ends, at most [`BACKLOG`] wait at all the names of one process; others are closed.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::SubAssign;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::name::well_formed;
pub use super::name::{NAMES, NameError, PATH};
use super::upstream::{self, Elsewhere, Place};
use crate::host::Host;
use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::owner::{self, Owner};
use mullion_sip_core::wait::{self, Waiter};
use mullion_sip_core::{Core, Hooks, Table};
use mullion_sip_exchange::channel::{AnyEndpoint, Info};
use mullion_sip_exchange::interior::Debtor;
use mullion_sip_exchange::interior::Parcel;

/// Clients that may wait for a service to accept them.
pub const BACKLOG: usize = 64;

/// What is bound, and who has given the ends that wait. Allocated as the host.
pub(crate) struct Names {
    bound: BTreeMap<Box<str>, Bound>,
    /// How many ends a living process has waiting at a path; never 0.
    given: BTreeMap<(Owner, Box<str>), u32>,
    /// How many ends of ended processes wait at all names of one; never 0.
    left: BTreeMap<Owner, usize>,
}

/// An end that waits at a name.
struct Waiting {
    end: Parcel<AnyEndpoint>,
    /// Who has given it: a process that lives, or the host. None once that process has ended.
    giver: Option<Owner>,
    /// Whose ledger counts it, and how much.
    debtor: Debtor,
    bytes: u64,
}

impl Names {
    const fn new() -> Names {
        Names {
            bound: BTreeMap::new(),
            given: BTreeMap::new(),
            left: BTreeMap::new(),
        }
    }

    /// Queues an end that the calling thread's owner gives, for which it pays from now on.
    fn give(&mut self, path: &str, giver: Owner, end: AnyEndpoint) {
        let Some(bound) = self.bound.get_mut(path) else {
            return;
        };
        let (end, bytes) = EXCHANGE.pack_counted(end);
        let book = EXCHANGE.ledger(giver);
        book.add(bytes);
        bound.ends.push_back(Waiting {
            end,
            giver: Some(giver),
            debtor: book.debtor(),
            bytes,
        });
        bound.wake();
        if giver != Owner::HOST {
            counts::of(giver).fetch_or(counts::GIVES, Ordering::Relaxed);
            *self.given.entry((giver, path.into())).or_default() += 1;
        }
    }

    /// An end waits no more at a path, which is `owner`'s: whoever has paid for it pays no more.
    fn settle(&mut self, path: &str, owner: Owner, waiting: Waiting) -> Parcel<AnyEndpoint> {
        EXCHANGE.give_back(waiting.debtor, waiting.bytes);
        match waiting.giver {
            Some(Owner::HOST) => {}
            Some(giver) => subtract_one(&mut self.given, (giver, path.into())),
            None => subtract_one(&mut self.left, owner),
        }
        waiting.end
    }

    /// Whoever waits at a path that is bound no more is told, and the ends there are the caller's to drop.
    fn empty(&mut self, path: &str, mut bound: Bound) -> Vec<Parcel<AnyEndpoint>> {
        bound.wake();
        if bound.ends.is_empty() {
            return Vec::new();
        }
        let ends = std::mem::take(&mut bound.ends);
        let settled = ends.into_iter();
        settled
            .map(|waiting| self.settle(path, bound.owner, waiting))
            .collect()
    }

    /// The ends that a process has given stay for what was sent over them, but not beyond the bound; the others are the
    /// caller's to drop.
    fn leave(&mut self, giver: Owner) -> Vec<Parcel<AnyEndpoint>> {
        let first = (giver, Box::default());
        let paths = self.given.range(first..);
        let paths: Vec<Box<str>> = paths
            .take_while(|((owner, _), _)| *owner == giver)
            .map(|((_, path), _)| path.clone())
            .collect();
        let mut gone = Vec::new();
        for path in paths {
            let Some(bound) = self.bound.get_mut(&path) else {
                continue;
            };
            let left = self.left.entry(bound.owner).or_default();
            for waiting in std::mem::take(&mut bound.ends) {
                match waiting.giver == Some(giver) {
                    true if *left >= BACKLOG => gone.push(waiting.end),
                    true => {
                        *left += 1;
                        bound.ends.push_back(Waiting {
                            giver: None,
                            ..waiting
                        });
                    }
                    false => bound.ends.push_back(waiting),
                }
            }
            self.given.remove(&(giver, path));
        }
        gone
    }
}

fn subtract_one<K: Ord, N: Copy + PartialOrd + From<u8> + SubAssign>(
    counts: &mut BTreeMap<K, N>,
    key: K,
) {
    let one = N::from(1);
    if let Some(count) = counts.get_mut(&key).filter(|count| **count > one) {
        *count -= one;
    } else {
        counts.remove(&key);
    }
}

/// A name's owner, and the ends that wait there to be accepted.
struct Bound {
    owner: Owner,
    digest: [u8; 32],
    /// What the service speaks, if that is known here.
    contract: Option<&'static Info>,
    /// A [`Service`](super::Service) has it: threads that accept there rely on it as long as they borrow that.
    served: bool,
    /// Who takes ends instead of the queue, for a service in another OS process.
    elsewhere: Option<Arc<dyn Elsewhere>>,
    ends: VecDeque<Waiting>,
    /// Threads of the owner's: whoever comes wakes them all, and who finds nothing waits again.
    waiting: Vec<Waiter>,
}

impl Bound {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(wait::unpark);
    }
}

mullion_sip_core::__state!(Mutex<Names> = Mutex::new(Names::new()));

fn names() -> MutexGuard<'static, Names> {
    state()
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Gives the calling process a name at which it takes ends of channels whose contract has this digest, until
/// [`unbind`] or its end. [`serve`](super::serve) does it for a contract.
pub fn bind(path: &str, digest: [u8; 32]) -> Result<(), NameError> {
    bind_to(path, digest, None, false, None)
}

/// [`bind`] for a contract that is known, so that ends can be made for clients in other OS processes.
pub(super) fn bind_contract(
    path: &str,
    contract: &'static Info,
    served: bool,
) -> Result<(), NameError> {
    bind_to(path, contract.digest.0, Some(contract), served, None)
}

/// [`bind`] for a service in another OS process.
pub(crate) fn bind_elsewhere(
    path: &str,
    digest: [u8; 32],
    elsewhere: Arc<dyn Elsewhere>,
) -> Result<(), NameError> {
    bind_to(path, digest, None, false, Some(elsewhere))
}

fn bind_to(
    path: &str,
    digest: [u8; 32],
    contract: Option<&'static Info>,
    served: bool,
    elsewhere: Option<Arc<dyn Elsewhere>>,
) -> Result<(), NameError> {
    let _host = CORE.as_host();
    let owner = CORE.caller().ok_or(NameError::NoProcess)?;
    well_formed(path)?;
    if !CORE.with_rights(owner, |rights| rights.may_bind(path)) {
        return Err(NameError::NotPermitted);
    }
    let mut names = names();
    if names.bound.contains_key(path) {
        return Err(NameError::Taken);
    }
    let count = counts::of(owner);
    if owner != Owner::HOST && counts::names(count) as usize >= NAMES {
        return Err(NameError::TooMany);
    }
    count.fetch_add(1, Ordering::Relaxed);
    let bound = Bound {
        owner,
        digest,
        contract,
        served,
        elsewhere,
        ends: VecDeque::new(),
        waiting: Vec::new(),
    };
    names.bound.insert(path.into(), bound);
    Ok(())
}

/// Gives up a name that the calling process has bound.
///
/// # Errors
/// It has not, or by [`serve`](super::serve): then its [`Service`](super::Service) is to be dropped.
pub fn unbind(path: &str) -> Result<(), NameError> {
    give_up(path, false)
}

/// [`unbind`] by the service itself.
pub(super) fn unbind_service(path: &str) -> Result<(), NameError> {
    give_up(path, true)
}

fn give_up(path: &str, by_service: bool) -> Result<(), NameError> {
    let _host = CORE.as_host();
    let owner = CORE.caller().ok_or(NameError::NoProcess)?;
    let mut names = names();
    let gone = match names.bound.get(path) {
        None => return Err(NameError::Unbound),
        Some(bound) if bound.owner != owner => return Err(NameError::NotPermitted),
        Some(bound) if bound.served && !by_service => return Err(NameError::Served),
        Some(_) => names.bound.remove(path),
    };
    // Another thread of the process may wait there, by the path.
    let ends = gone.map(|bound| names.empty(path, bound));
    counts::of(owner).fetch_sub(1, Ordering::Relaxed);
    drop(names);
    drop(ends);
    upstream::unbound(path);
    Ok(())
}

/// Queues one end of a channel at a name, and wakes who waits there. All in one critical piece, so that the end is the
/// caller's, the name's or whoever's elsewhere at any time.
///
/// # Errors
/// The end comes back.
pub(crate) fn connect(
    path: &str,
    digest: [u8; 32],
    end: AnyEndpoint,
) -> Result<(), (NameError, AnyEndpoint)> {
    let _host = CORE.as_host();
    let Some(owner) = CORE.caller() else {
        return Err((NameError::NoProcess, end));
    };
    if !CORE.with_rights(owner, |rights| rights.may_look_up(path)) {
        return Err((NameError::NotPermitted, end));
    }
    let mut names = names();
    match acceptor(&mut names, path, digest) {
        Err(error) => Err((error, end)),
        Ok(Bound {
            elsewhere: Some(elsewhere),
            ..
        }) => {
            let elsewhere = elsewhere.clone();
            drop(names);
            let connected = elsewhere.connect(path, EXCHANGE.pack(end));
            connected.map_err(|(error, end)| (error, EXCHANGE.open(end)))
        }
        Ok(_) => {
            names.give(path, owner, end);
            Ok(())
        }
    }
}

fn acceptor<'a>(
    names: &'a mut Names,
    path: &str,
    digest: [u8; 32],
) -> Result<&'a mut Bound, NameError> {
    let bound = names.bound.get_mut(path).ok_or(NameError::Unbound)?;
    if bound.digest != digest {
        return Err(NameError::ContractDiffers);
    }
    if bound.ends.len() >= BACKLOG {
        return Err(NameError::Busy);
    }
    Ok(bound)
}

/// The next end at a name of the calling process's own that it may have; others are closed. If there is none, `waiting` is
/// woken by the next to come. The caller is in a critical piece of the kernel.
pub(super) fn take(path: &str, waiting: Waiter) -> Option<Parcel<AnyEndpoint>> {
    loop {
        let end = next(path, waiting)?;
        if EXCHANGE.ask(&end, owner::current()).is_ok() {
            return Some(end);
        }
    }
}

fn next(path: &str, waiting: Waiter) -> Option<Parcel<AnyEndpoint>> {
    let mut names = names();
    let owner = owner::current();
    let bound = names
        .bound
        .get_mut(path)
        .filter(|bound| bound.owner == owner)?;
    let end = bound.ends.pop_front();
    let me = wait::current();
    bound.waiting.retain(|waiter| *waiter != me);
    if end.is_none() && waiting != Waiter::NONE {
        bound.waiting.push(waiting);
    }
    end.map(|end| names.settle(path, owner, end))
}

/// [`take`], if the name is the calling process's own and no other of its threads waits there. The caller is in a
/// critical piece of the kernel.
pub(crate) fn take_own(
    path: &str,
    waiting: Waiter,
) -> Result<Option<Parcel<AnyEndpoint>>, NameError> {
    match names().bound.get(path) {
        Some(bound) if bound.owner == owner::current() => {
            let me = wait::current();
            if bound.waiting.iter().any(|waiter| *waiter != me) {
                return Err(NameError::Busy);
            }
        }
        _ => return Err(NameError::Unbound),
    }
    Ok(take(path, waiting))
}

/// Where the service of a name is; `None` if nobody has bound it.
pub(crate) fn place_of(path: &str) -> Option<Place> {
    let _host = CORE.as_host();
    let names = names();
    let bound = names.bound.get(path)?;
    Some(match &bound.elsewhere {
        Some(elsewhere) => Place::There(elsewhere.clone()),
        None => Place::Here(bound.contract),
    })
}

impl Host {
    /// Every name that is bound, with its owner and the digest of its contract.
    pub fn names(&self) -> Vec<(String, Owner, [u8; 32])> {
        let names = names();
        let all = names
            .bound
            .iter()
            .map(|(path, bound)| (path.to_string(), bound.owner, bound.digest));
        all.collect()
    }
}

/// How many names a process has bound.
pub(super) fn count(owner: Owner) -> u32 {
    counts::names(counts::of(owner))
}

/// How many names each process has bound, by its place, and whether it has given ends to services: changed under the lock of
/// the names, and read without.
pub(crate) mod counts {
    use super::*;

    /// Of all places.
    pub(crate) type State = OnceLock<Table<AtomicU32, { Core::PLACES }>>;

    mullion_sip_core::__state!(State = OnceLock::new());

    /// The process has given ends to services, which may still wait at their names.
    pub(super) const GIVES: u32 = 1 << 31;

    /// The names alone.
    pub(super) fn names(count: &AtomicU32) -> u32 {
        count.load(Ordering::Relaxed) & !GIVES
    }

    /// Reserves the table, once.
    pub(crate) fn reserve() -> io::Result<()> {
        if state().get().is_none() {
            let _ = state().set(CORE.table()?);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn of(owner: Owner) -> &'static AtomicU32 {
        // Before workers start there is the host alone, whose names nobody counts.
        static NOBODY: AtomicU32 = AtomicU32::new(0);
        let places = state().get();
        places
            .and_then(|places| places.get(owner.index() as usize))
            .unwrap_or(&NOBODY)
    }
}

/// At a process's end its names are free.
pub(crate) const HOOKS: Hooks = Hooks {
    process_ended: Some(forget),
    ..Hooks::NONE
};

/// The names of an ended process are free, and the ends that it has given and nobody has accepted are nobody's.
fn forget(owner: Owner) {
    let (mut paths, mut ends) = (Vec::new(), Vec::new());
    let had = counts::of(owner).swap(0, Ordering::Relaxed);
    if had == 0 {
        return;
    }
    let mut names = names();
    if had & !counts::GIVES > 0 {
        let gone: Vec<_> = (names.bound)
            .extract_if(.., |_, bound| bound.owner == owner)
            .collect();
        for (path, bound) in gone {
            ends.append(&mut names.empty(&path, bound));
            paths.push(path);
        }
    }
    ends.append(&mut names.leave(owner));
    drop(names);
    drop(ends);
    paths.iter().for_each(|path| upstream::unbound(path));
}
