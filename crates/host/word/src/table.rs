//! Handles of C: numbers with a generation, so that a stale one is an error and no more.

use crate::runtime::{
    Biased, Domain, Granted, Guard, Instance, Lease, Module, Policy, PreparedGrant,
};
use crate::status::{Failure, Status};
use std::sync::Arc;

/// What a handle stands for.
pub(crate) enum Object {
    Module(Arc<Module>),
    /// Policies are built in steps.
    Policy(Policy),
    Domain(Domain),
    #[expect(dead_code, reason = "it is kept for its end")]
    Granted(Granted),
    Prepared(PreparedGrant),
    Lease(Arc<Lease>),
    Instance(Instance),
}

struct Slot {
    generation: u32,
    object: Option<Object>,
}

/// All slots, and those that are free.
struct Slots {
    all: Vec<Slot>,
    free: Vec<usize>,
}

static SLOTS: Biased<Slots> = Biased::new(Slots {
    all: Vec::new(),
    free: Vec::new(),
});

#[inline]
fn lock() -> Guard<'static, Slots> {
    SLOTS.lock()
}

/// Generation and place; 0 is no handle, because generations begin at 1.
pub(crate) fn add(object: Object) -> u64 {
    let mut slots = lock();
    let at = slots.free.pop().unwrap_or_else(|| {
        slots.all.push(Slot {
            generation: 0,
            object: None,
        });
        slots.all.len() - 1
    });
    let slot = &mut slots.all[at];
    slot.generation += 1;
    slot.object = Some(object);
    u64::from(slot.generation) << 32 | at as u64
}

fn of(slots: &mut [Slot], handle: u64) -> Option<&mut Option<Object>> {
    let slot = slots.get_mut((handle & u64::from(u32::MAX)) as usize)?;
    (u64::from(slot.generation) == handle >> 32).then_some(&mut slot.object)
}

/// Looks a handle up, under the lock.
pub(crate) fn with<T>(
    handle: u64,
    find: impl FnOnce(&mut Object) -> Option<T>,
) -> Result<T, Failure> {
    let mut slots = lock();
    let object = of(&mut slots.all, handle).and_then(Option::as_mut);
    object.and_then(find).ok_or_else(bad)
}

/// Takes what `is_it` of the handle away. It is dropped by the caller, behind the lock.
pub(crate) fn take(handle: u64, is_it: impl Fn(&Object) -> bool) -> Result<Object, Failure> {
    let mut slots = lock();
    let Slots { all, free } = &mut *slots;
    let found = of(all, handle).filter(|object| object.as_ref().is_some_and(is_it));
    let taken = found.and_then(Option::take).ok_or_else(bad)?;
    // A place whose generations are used up is not given out again.
    if handle >> 32 < u64::from(u32::MAX) {
        free.push((handle & u64::from(u32::MAX)) as usize);
    }
    Ok(taken)
}

fn bad() -> Failure {
    Failure::new(
        Status::BAD_HANDLE,
        "the handle was freed, or is none, or of something else",
    )
}

pub(crate) fn module(handle: u64) -> Result<Arc<Module>, Failure> {
    with(handle, |object| match object {
        Object::Module(module) => Some(Arc::clone(module)),
        _ => None,
    })
}

pub(crate) fn domain(handle: u64) -> Result<Domain, Failure> {
    with(handle, |object| match object {
        Object::Domain(domain) => Some(*domain),
        _ => None,
    })
}

pub(crate) fn policy(handle: u64) -> Result<Policy, Failure> {
    with(handle, |object| match object {
        Object::Policy(policy) => Some(policy.clone()),
        _ => None,
    })
}

/// Runs with it under the lock: a lock less for what is to be quick. Whoever waits for threads that run checked code holds
/// up nobody whom these wait for, because they are past their checks without the host.
pub(crate) fn with_prepared<T>(
    handle: u64,
    run: impl FnOnce(&mut PreparedGrant) -> T,
) -> Result<T, Failure> {
    with(handle, |object| match object {
        Object::Prepared(prepared) => Some(run(prepared)),
        _ => None,
    })
}

pub(crate) fn instance(handle: u64) -> Result<Instance, Failure> {
    with(handle, |object| match object {
        Object::Instance(instance) => Some(*instance),
        _ => None,
    })
}

pub(crate) fn lease(handle: u64) -> Result<Arc<Lease>, Failure> {
    with(handle, |object| match object {
        Object::Lease(lease) => Some(Arc::clone(lease)),
        _ => None,
    })
}

/// The handle of a domain that was made by the interface in C.
pub(crate) fn handle_of(domain: &Domain) -> Option<u64> {
    let slots = lock();
    let is_it = |slot: &Slot| matches!(&slot.object, Some(Object::Domain(found)) if found.id() == domain.id());
    let at = slots.all.iter().position(is_it)?;
    Some(u64::from(slots.all[at].generation) << 32 | at as u64)
}
