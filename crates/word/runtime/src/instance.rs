//! Instances: one module, many requests or connections, each with memory that the others' code cannot touch (the principals
//! of LXFI).
//!
//! ```text
//!   the supervisor's   module ──┐
//!   domains            place 1 ─┼─► group: the module's code, constants, data and gates; what the host grants the module
//!                      place 2 ─┘
//!
//!   a thread's seats   module: its number, its data stack     place 1: its own number, its own data stack     ...
//! ```
//!
//! A *place* is a domain of the supervisor without code of its own. It is a member of its module's group, so it has what
//! the module has; what is granted to the place alone, nobody else has. A call for an instance runs the module's code with
//! the place's number in `%r14`, on the place's data stack: the checks do the rest. The gates know one domain, the module.
//!
//! When an instance ends, its place loses all that is not the group's, and its data stacks are cleared. The next instance
//! gets the place.

use crate::core::{Core, Domain, EndError, Instances, Principal};
use crate::gates::{Here, Registers, Seat, here};
use crate::holder::Holder;
use crate::memory::lock;
use crate::policy::{Effect, FunctionPolicy};
use crate::rights::{
    GrantError, ROOT, Raised, forget, lower_all, raise, right, take_all_away, words,
};
use crate::thread;
use crate::world::world;
use mullion_plain::Plain;
use mullion_supervisor::{Error, Permission};
use mullion_word_abi::{OWN_FIRST, OWN_LAST};
use mullion_word_table::barrier;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// An instance of a module: a request, a connection. Handles are copies, and of no use when it has ended.
#[derive(Clone, Copy)]
pub struct Instance {
    principal: &'static Principal,
    life: u64,
}

/// Why there is no instance, or it cannot have a name.
#[derive(Debug, Error)]
pub enum InstanceError {
    /// The module's policy has none.
    #[error("the policy of {0} has no instances")]
    None(Plain),
    /// Another one has this name.
    #[error("an instance of {module} is called {name:#x} already")]
    Taken {
        /// Which module.
        module: Plain,
        /// The name.
        name: u64,
    },
    /// It has ended.
    #[error("the instance has ended")]
    Ended,
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] Error),
}

impl Instances {
    fn place(&self, core: &'static Core) -> Result<&'static Principal, Error> {
        if let Some(free) = lock(&self.free).pop() {
            return Ok(free);
        }
        let none = || Error::NoRoom { words: 1 };
        let word = world().words.take().ok_or_else(none)?;
        let mut supervisor = world().supervisor();
        let id = supervisor.pd_subdivide(&ROOT, word, Permission::None)?;
        supervisor.group_join(&id, self.group)?;
        let view = supervisor.mechanism().view(id).ok_or_else(none)?;
        drop(supervisor);
        debug_assert!((OWN_FIRST..=OWN_LAST).contains(&view.number()));
        let made: &'static Principal = Box::leak(Box::new(Principal {
            holder: Holder::new(id, id.into(), view).instance_of(&core.holder),
            core,
            life: AtomicU64::new(0),
            turn: Mutex::default(),
        }));
        lock(&self.all).push(made);
        Ok(made)
    }

    /// For which instance a call is, and its life. An argument that the policy names says it; otherwise the host's scope;
    /// otherwise it is the one that has called the host.
    pub(crate) fn choose(
        &self,
        core: &'static Core,
        policy: Option<&FunctionPolicy>,
        registers: &Registers,
    ) -> Result<Option<(&'static Principal, u64)>, String> {
        let named = policy.and_then(|policy| {
            policy.effects.iter().find_map(|effect| match effect {
                Effect::Instance(at) => Some((*at, registers.argument(*at))),
                _ => None,
            })
        });
        let living = |principal: &'static Principal| {
            let life = principal.life.load(Ordering::Acquire);
            (life % 2 == 1).then_some((principal, life))
        };
        if let Some((argument, name)) = named {
            if name == 0 {
                return Ok(None);
            }
            let found = lock(&self.named).get(&name).copied();
            let found = found.and_then(living);
            return match found {
                Some(found) => Ok(Some(found)),
                None => Err(format!(
                    "argument {argument}, {name:#x}, is the name of no instance"
                )),
            };
        }
        let thread = thread::this().map_err(|error| error.to_string())?;
        let mut scopes = thread.scopes.iter().rev();
        let scope = scopes.find(|(principal, _)| ptr::eq(principal.core, core));
        if let Some((principal, life)) = scope.copied() {
            // The place may be another instance's by now.
            return match principal.is_live(life) {
                true => Ok(Some((principal, life))),
                false => Err("the instance that it is called for has ended".to_owned()),
            };
        }
        // SAFETY: it is the thread's own, and so is its newest frame, which lives.
        let frame = unsafe { (*here()).frame.as_ref() };
        let caller = frame.map(|frame| of(frame.seat));
        match caller.flatten().filter(|caller| ptr::eq(caller.core, core)) {
            Some(caller) => match living(caller) {
                Some(found) => Ok(Some(found)),
                None => Err("the instance that has called has ended".to_owned()),
            },
            None => Ok(None),
        }
    }

    /// With the module's end: the supervisor forgets the places.
    pub(crate) fn end(&self) -> Result<(), Error> {
        for principal in self.all() {
            let _turn = lock(&principal.turn);
            let life = principal.life.load(Ordering::Relaxed);
            principal.life.store(life + life % 2, Ordering::Release);
            let mut supervisor = world().supervisor();
            supervisor.pd_free(&ROOT, principal.holder.id)?;
            forget(&mut supervisor, &principal.holder);
            drop(supervisor);
            // Nobody has anything there any more.
            for region in lock(&principal.holder.stacks).drain(..) {
                world().stacks.give(region);
            }
        }
        lock(&self.named).clear();
        Ok(())
    }
}

/// The place that a seat is of, if it is not the module's own.
fn of(seat: *const Seat) -> Option<&'static Principal> {
    // SAFETY: a frame's seat lives as long as the frame, and a place for ever.
    unsafe { (*seat).principal.cast::<Principal>().as_ref() }
}

/// Who runs on a seat.
pub(crate) fn of_seat(seat: *const Seat) -> &'static Holder {
    match of(seat) {
        Some(principal) => &principal.holder,
        // SAFETY: as in `of`; a domain lives for ever.
        None => unsafe { &(*(*seat).inner).core().holder },
    }
}

/// Who runs, or has called the host: the newest frame's.
pub(crate) fn holder(here: &Here) -> &'static Holder {
    // SAFETY: a domain runs or has called, so there is a frame.
    unsafe { of_seat((*here.frame).seat) }
}

/// Whether an instance that was chosen lives still: asked when the call is counted.
pub(crate) fn lives(chosen: Option<(&'static Principal, u64)>) -> bool {
    chosen.is_none_or(|(principal, life)| principal.is_live(life))
}

/// The instance for which the module runs that has called the function of the host that runs.
pub(crate) fn calling() -> Option<Instance> {
    // SAFETY: as in `holder`, if there is one.
    let frame = unsafe { (*here()).frame.as_ref() }?;
    let principal = of(frame.seat)?;
    let life = principal.life.load(Ordering::Acquire);
    Some(Instance { principal, life })
}

impl Domain {
    /// Makes an instance of the module under a name, which is not 0: the address of a request, say. Exports whose policies
    /// have [`Effect::Instance`] are called for the instance that their argument names.
    pub fn instance(&self, name: u64) -> Result<Instance, InstanceError> {
        let core = self.core;
        let module = || core.module.name.clone();
        let instances = core.instances.as_ref();
        let instances = instances.ok_or_else(|| InstanceError::None(module()))?;
        let life = lock(&core.life);
        if life.is_gone {
            return Err(InstanceError::Ended);
        }
        let mut named = lock(&instances.named);
        if name == 0 || named.contains_key(&name) {
            let module = module();
            return Err(InstanceError::Taken { module, name });
        }
        let principal = instances.place(core)?;
        lock(&principal.turn).names.push(name);
        let life = principal.life.fetch_add(1, Ordering::AcqRel) + 1;
        named.insert(name, principal);
        Ok(Instance { principal, life })
    }
}

impl Instance {
    /// Lets this instance alone read, or read and write, memory of the host until it ends, or until
    /// [`Host::revoke`](crate::Host::revoke).
    ///
    /// # Safety
    /// The host bears what it writes there.
    pub unsafe fn grant(
        &self,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        self.with(|holder, kept| {
            let mut supervisor = world().supervisor();
            kept.push(raise(&mut supervisor, holder, range, right(write))?);
            Ok(())
        })
    }

    /// Another name for it: of a connection's request, or of its pool.
    pub fn also(&self, name: u64) -> Result<(), InstanceError> {
        let core = self.principal.core;
        let instances = core.instances.as_ref().ok_or(InstanceError::Ended)?;
        let mut named = lock(&instances.named);
        let mut kept = lock(&self.principal.turn);
        if !self.principal.is_live(self.life) {
            return Err(InstanceError::Ended);
        }
        if name == 0 || named.contains_key(&name) {
            let module = core.module.name.clone();
            return Err(InstanceError::Taken { module, name });
        }
        kept.names.push(name);
        named.insert(name, self.principal);
        Ok(())
    }

    /// The module.
    #[must_use]
    pub fn domain(&self) -> Domain {
        let core = self.principal.core;
        Domain { core }
    }

    /// Calls of the module on this thread are for this instance until `call` returns, if no argument says another one.
    pub fn run<T>(&self, call: impl FnOnce() -> T) -> T {
        /// Takes the scope off the list, also when a panic goes through.
        struct Scope;
        impl Drop for Scope {
            fn drop(&mut self) {
                if let Ok(thread) = thread::this() {
                    thread.scopes.pop();
                }
            }
        }
        let _scope = self
            .is_live()
            .then(|| thread::this().ok())
            .flatten()
            .map(|thread| {
                thread.scopes.push((self.principal, self.life));
                Scope
            });
        call()
    }

    /// As the beginning of [`run`](Self::run), until [`leave`](Self::leave): for hosts in C.
    pub fn enter(&self) {
        if let Some(thread) = thread::this().ok().filter(|_| self.is_live()) {
            thread.scopes.push((self.principal, self.life));
        }
    }

    /// Ends the latest [`enter`](Self::enter) of this thread for this instance.
    pub fn leave(&self) {
        if let Ok(thread) = thread::this()
            && let Some(at) = thread
                .scopes
                .iter()
                .rposition(|(one, life)| ptr::eq(*one, self.principal) && *life == self.life)
        {
            thread.scopes.remove(at);
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.principal.is_live(self.life)
    }

    /// What it may do with a word besides what its module may.
    #[must_use]
    pub fn permission(&self, address: usize) -> Permission {
        let id = self.principal.holder.id;
        match self.is_live() {
            true => world().supervisor().permission(id, address as u64 / 4),
            false => Permission::None,
        }
    }

    /// Runs with the holder while the instance cannot end; `keep` is for grants that last as long as it.
    pub(crate) fn with<T>(
        &self,
        grant: impl FnOnce(&'static Holder, &mut Vec<Raised>) -> Result<T, GrantError>,
    ) -> Result<T, GrantError> {
        let mut kept = lock(&self.principal.turn);
        match self.is_live() {
            true => grant(&self.principal.holder, &mut kept.raised),
            false => Err(GrantError::Ended),
        }
    }

    /// Ends it: what was granted to it goes, allocators get its blocks back, and its data stacks are cleared.
    /// Refused while a call for it has not returned.
    pub fn end(self) -> Result<(), EndError> {
        let (principal, core) = (self.principal, self.principal.core);
        let instances = core.instances.as_ref().ok_or(EndError::Gone)?;
        let mut named = lock(&instances.named);
        let mut kept = lock(&principal.turn);
        if !self.is_live() {
            return Err(EndError::Gone);
        }
        // A call counts its entry first and looks at the life then: behind this barrier either its count is seen here,
        // or it sees that the life is over.
        principal.life.store(self.life + 1, Ordering::SeqCst);
        barrier();
        let inside = depth(core, principal);
        if inside != 0 {
            principal.life.store(self.life, Ordering::SeqCst);
            return Err(EndError::InUse(inside, core.module.name.clone()));
        }
        for name in kept.names.drain(..) {
            named.remove(&name);
        }
        let raised = std::mem::take(&mut kept.raised);
        // Nobody grants it anything from here on, and allocators of the host are called.
        drop(kept);
        drop(named);
        core.give_back(&principal.holder);
        let mut supervisor = world().supervisor();
        lower_all(&mut supervisor, raised.into_iter());
        take_all_away(&mut supervisor, &principal.holder);
        drop(supervisor);
        // A place that cannot be cleared is not used again.
        thread::clear_stacks(core, principal)?;
        lock(&instances.free).push(principal);
        Ok(())
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, name) = (self.principal.holder.id, &self.principal.core.module.name);
        write!(f, "Instance({id}, {name})")
    }
}

/// Calls for an instance that have not returned.
fn depth(core: &Core, of: &'static Principal) -> u64 {
    let seats = lock(&core.seats);
    let theirs = seats.iter().filter(|seat| {
        // SAFETY: a seat on the list lives, and this does not change in it.
        let principal = unsafe { (*seat.0).principal };
        ptr::eq(principal.cast::<Principal>(), of)
    });
    // SAFETY: as above; the depth is atomic.
    theirs
        .map(|seat| unsafe { (*seat.0).depth.load(Ordering::Acquire) })
        .sum()
}
