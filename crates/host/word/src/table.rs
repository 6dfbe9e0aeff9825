//! Handles of C: numbers with a generation, so that a stale one is an error and no more.

use crate::runtime::{Domain, Granted, Module, Policy, PreparedGrant};
use crate::status::{Failure, Status};
use std::sync::{Arc, Mutex, PoisonError};

/// What a handle stands for.
pub(crate) enum Object {
    Module(Arc<Module>),
    /// Policies are built in steps.
    Policy(Policy),
    Domain(Domain),
    #[expect(dead_code, reason = "it is kept for its end")]
    Granted(Granted),
    Prepared(Arc<Mutex<PreparedGrant>>),
}

struct Slot {
    generation: u32,
    object: Option<Object>,
}

static SLOTS: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

/// Generation and place; 0 is no handle, because generations begin at 1.
pub(crate) fn add(object: Object) -> u64 {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = slots
        .iter()
        .position(|slot| slot.object.is_none() && slot.generation < u32::MAX);
    let at = free.unwrap_or_else(|| {
        slots.push(Slot {
            generation: 0,
            object: None,
        });
        slots.len() - 1
    });
    let slot = &mut slots[at];
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
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let object = of(&mut slots, handle).and_then(Option::as_mut);
    object.and_then(find).ok_or_else(bad)
}

/// Takes what `is_it` of the handle away. It is dropped by the caller, behind the lock.
pub(crate) fn take(handle: u64, is_it: impl Fn(&Object) -> bool) -> Result<Object, Failure> {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = of(&mut slots, handle).filter(|object| object.as_ref().is_some_and(is_it));
    found.and_then(Option::take).ok_or_else(bad)
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

pub(crate) fn prepared(handle: u64) -> Result<Arc<Mutex<PreparedGrant>>, Failure> {
    with(handle, |object| match object {
        Object::Prepared(prepared) => Some(Arc::clone(prepared)),
        _ => None,
    })
}
