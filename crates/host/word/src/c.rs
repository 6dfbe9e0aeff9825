//! The functions of `include/mullion_word.h`, which describes them.
//!
//! What remains to be believed are C's own pointers: that each points to what the header says, for the time of the call.

use crate::effect::{CEffect, CRow, row};
use crate::report::{CNote, CReport, Hook, Texts};
use crate::runtime::{
    Domain, EndError, ErrorValue, FunctionPolicy, GrantError, Host, InstanceError, Lease, Limits,
    LoadError, Note, Policy, caller, calling,
};
use crate::status::{self, Failure, Status, guarded};
use crate::table::{self, Object};
use crate::{OpenError, module, read};
use mullion_word_policy::{File, Interface, allocator};
use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

type OnFault = extern "C" fn(*mut c_void, *const CReport);
type OnNote = extern "C" fn(*mut c_void, *const CNote);

/// `mullion_word_limits`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CLimits {
    nanoseconds: u64,
    memory: u64,
    stack: u64,
    image: u64,
}

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Failure {
        Failure::new(Status::REFUSED, error)
    }
}

impl From<EndError> for Failure {
    fn from(error: EndError) -> Failure {
        let status = match &error {
            EndError::InUse(..) => Status::IN_USE,
            EndError::Gone => Status::BAD_HANDLE,
            _ => Status::REFUSED,
        };
        Failure::new(status, error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let status = match &error {
            OpenError::File(_) => Status::CANNOT_OPEN,
            OpenError::Rejected(_) => Status::REJECTED,
            OpenError::Module(_) => Status::CANNOT_LOAD,
        };
        Failure::new(status, error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Failure::new(Status::CANNOT_LOAD, error)
    }
}

fn missing() -> Failure {
    Failure::new(Status::BAD_ARGUMENT, "a null pointer, or no text")
}

pub(crate) fn host() -> Result<Host, Failure> {
    Host::new().map_err(|error| Failure::new(Status::NO_WALL, error))
}

pub(crate) fn text<'a>(text: *const c_char) -> Result<&'a CStr, Failure> {
    match text.is_null() {
        true => Err(missing()),
        // SAFETY: the header wants a string with its end, for the time of the call.
        false => Ok(unsafe { CStr::from_ptr(text) }),
    }
}

pub(crate) fn name<'a>(of: *const c_char) -> Result<&'a str, Failure> {
    text(of)?.to_str().map_err(|_| missing())
}

fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(missing());
    }
    // SAFETY: the header wants a place for it.
    unsafe { place.write(value) };
    Ok(())
}

/// Fails before anything is done whose result has no place.
fn has_place<T>(place: *mut T) -> Result<(), Failure> {
    match place.is_null() {
        true => Err(missing()),
        false => Ok(()),
    }
}

fn row_of(at: *const CRow) -> Result<Option<FunctionPolicy>, Failure> {
    // SAFETY: the header wants a row, or null, for the time of the call.
    let Some(given) = (unsafe { at.as_ref() }) else {
        return Ok(None);
    };
    let effects: &[CEffect] = match (given.effects.is_null(), given.count) {
        (_, 0) => &[],
        (true, _) => return Err(missing()),
        // SAFETY: the header wants so many of them there.
        (false, count) => unsafe { std::slice::from_raw_parts(given.effects, count) },
    };
    let policy = row(given, effects)?;
    Ok(Some(match given.allocator.is_null() {
        true => policy,
        false => policy.allocator(allocator(name(given.allocator)?)),
    }))
}

fn change(handle: u64, change: impl FnOnce(Policy) -> Policy) -> Result<(), Failure> {
    table::with(handle, |object| match object {
        Object::Policy(policy) => {
            *policy = change(std::mem::take(policy));
            Some(())
        }
        _ => None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_error_message() -> *const c_char {
    status::message()
}

// ---- Modules

#[unsafe(no_mangle)]
extern "C" fn mullion_word_module_open(path: *const c_char, opened: *mut u64) -> Status {
    guarded(|| {
        has_place(opened)?;
        let path = Path::new(OsStr::from_bytes(text(path)?.to_bytes()));
        put(opened, table::add(Object::Module(read(path)?)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_module_from_bytes(
    called: *const c_char,
    bytes: *const u8,
    length: usize,
    opened: *mut u64,
) -> Status {
    guarded(|| {
        has_place(opened)?;
        if bytes.is_null() {
            return Err(missing());
        }
        // SAFETY: the header wants so many bytes there, for the time of the call.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec();
        let made = module(name(called)?, bytes)?;
        put(opened, table::add(Object::Module(made)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_module_free(handle: u64) -> Status {
    guarded(|| table::take(handle, |object| matches!(object, Object::Module(_))).map(drop))
}

// ---- Policies

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_new(made: *mut u64) -> Status {
    guarded(|| {
        has_place(made)?;
        put(made, table::add(Object::Policy(Policy::new())))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_parse(written: *const c_char, made: *mut u64) -> Status {
    guarded(|| {
        has_place(made)?;
        let wrong = |error: String| Failure::new(Status::BAD_ARGUMENT, error);
        let file = File::parse(name(written)?).map_err(|error| wrong(error.to_string()))?;
        let policy = Interface::new(&[]).policy(&file);
        let policy = policy.map_err(|error| wrong(error.to_string()))?;
        put(made, table::add(Object::Policy(policy)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_free(handle: u64) -> Status {
    guarded(|| table::take(handle, |object| matches!(object, Object::Policy(_))).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_allocators(policy: u64) -> Status {
    guarded(|| change(policy, Policy::allocators))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_allow(
    policy: u64,
    function: *const c_char,
    row: *const CRow,
) -> Status {
    guarded(|| {
        let (name, row) = (name(function)?, row_of(row)?);
        change(policy, |policy| match row {
            Some(row) => policy.allow_with(name, row),
            None => policy.allow(name),
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_offer(
    policy: u64,
    function: *const c_char,
    address: *const c_void,
    row: *const CRow,
) -> Status {
    guarded(|| {
        let (name, row) = (name(function)?, row_of(row)?);
        if address.is_null() {
            return Err(missing());
        }
        change(policy, |policy| {
            // SAFETY: the header says that the host answers for the function and its row.
            unsafe { policy.offer(name, address as usize, row) }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_export(
    policy: u64,
    function: *const c_char,
    row: *const CRow,
) -> Status {
    guarded(|| {
        let (name, row) = (name(function)?, row_of(row)?.ok_or_else(missing)?);
        change(policy, |policy| policy.export(name, row))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_error(policy: u64, integer: i64, float: f64) -> Status {
    guarded(|| change(policy, |policy| policy.error(ErrorValue { integer, float })))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_limits(policy: u64, limits: *const CLimits) -> Status {
    guarded(|| {
        // SAFETY: the header wants limits there, for the time of the call.
        let given = unsafe { limits.as_ref() }.ok_or_else(missing)?;
        let mut limits = Limits::default();
        if given.nanoseconds != 0 {
            limits.time = Some(Duration::from_nanos(given.nanoseconds));
        }
        if given.memory != 0 {
            limits.memory = given.memory;
        }
        if given.stack != 0 {
            limits.stack = given.stack;
        }
        if given.image != 0 {
            limits.image = given.image;
        }
        change(policy, |policy| policy.limits(limits))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_data(
    policy: u64,
    variable: *const c_char,
    bytes: u64,
    write: i32,
) -> Status {
    guarded(|| {
        let (name, bytes) = (name(variable)?, (bytes != 0).then_some(bytes));
        change(policy, |policy| policy.data(name, bytes, write != 0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_stays_mapped(policy: u64) -> Status {
    guarded(|| change(policy, Policy::stays_mapped))
}

// ---- Domains

#[unsafe(no_mangle)]
extern "C" fn mullion_word_load(module: u64, policy: u64, loaded: *mut u64) -> Status {
    guarded(|| {
        has_place(loaded)?;
        let (module, policy) = (table::module(module)?, table::policy(policy)?);
        let domain = host()?.load(&module, policy)?;
        put(loaded, table::add(Object::Domain(domain)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_learn(
    module: u64,
    policy: u64,
    function: Option<OnNote>,
    user: *mut c_void,
    loaded: *mut u64,
) -> Status {
    guarded(|| {
        has_place(loaded)?;
        let (module, policy) = (table::module(module)?, table::policy(policy)?);
        let function = function.ok_or_else(missing)?;
        let hook = Hook { function, user };
        let tell = move |note: &Note<'_>| {
            let (function, user) = hook.parts();
            let mut texts = Texts::default();
            function(user, &CNote::new(note, &mut texts));
        };
        // SAFETY: the header says that the host bears what the module does.
        let domain = unsafe { host()?.learn(&module, policy, tell) }?;
        put(loaded, table::add(Object::Domain(domain)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_function(
    domain: u64,
    called: *const c_char,
    found: *mut *const c_void,
) -> Status {
    guarded(|| find(domain, called, found, Domain::function))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_symbol(
    domain: u64,
    called: *const c_char,
    found: *mut *const c_void,
) -> Status {
    guarded(|| find(domain, called, found, Domain::symbol))
}

fn find(
    domain: u64,
    called: *const c_char,
    found: *mut *const c_void,
    by: impl FnOnce(&Domain, &str) -> Option<*const c_void>,
) -> Result<(), Failure> {
    has_place(found)?;
    let (domain, name) = (table::domain(domain)?, name(called)?);
    let none = || Failure::new(Status::NO_EXPORT, format!("it does not export `{name}`"));
    put(found, by(&domain, name).ok_or_else(none)?)
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_base(domain: u64, base: *mut usize) -> Status {
    guarded(|| put(base, table::domain(domain)?.base()))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_has_data(domain: u64, address: *const c_void, bytes: usize) -> i32 {
    let found = table::domain(domain).map(|domain| domain.has_data(address as usize, bytes));
    found.unwrap_or(false).into()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_has_function(domain: u64, address: *const c_void) -> i32 {
    let found = table::domain(domain).map(|domain| domain.has_function(address as usize));
    found.unwrap_or(false).into()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_caller(found: *mut u64) -> Status {
    guarded(|| {
        has_place(found)?;
        let handle = caller().and_then(|domain| table::handle_of(&domain));
        put(found, handle.ok_or_else(no_caller)?)
    })
}

fn no_caller() -> Failure {
    Failure::new(Status::NOTHING, "no module has called on this thread")
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_is_ended(domain: u64) -> i32 {
    let ended = table::domain(domain).map(|domain| domain.is_ended());
    ended.unwrap_or(true).into()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_restart(domain: u64) -> Status {
    guarded(|| Ok(table::domain(domain)?.restart()?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_unload(handle: u64) -> Status {
    guarded(|| {
        table::domain(handle)?.unload()?;
        table::take(handle, |object| matches!(object, Object::Domain(_))).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_link(from: u64, to: u64, function: *const c_char) -> Status {
    guarded(|| {
        let (from, to) = (table::domain(from)?, table::domain(to)?);
        Ok(host()?.link(&from, &to, name(function)?)?)
    })
}

// ---- Memory

#[unsafe(no_mangle)]
extern "C" fn mullion_word_grant(
    domain: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
) -> Status {
    guarded(|| {
        let domain = table::domain(domain)?;
        // SAFETY: the header says that the host bears what the domain does there.
        Ok(unsafe { host()?.grant(&domain, address as usize, bytes, write != 0) }?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_revoke(address: *const c_void, bytes: usize) -> Status {
    guarded(|| Ok(host()?.revoke(address as usize, bytes)?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_grant_for(
    domain: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
    granted: *mut u64,
) -> Status {
    guarded(|| {
        has_place(granted)?;
        let domain = table::domain(domain)?;
        // SAFETY: the header says that the host bears what the domain does with the range.
        let grant = unsafe { host()?.grant_for(&domain, address as usize, bytes, write != 0) }?;
        put(granted, table::add(Object::Granted(grant)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_grant_end(handle: u64) -> Status {
    guarded(|| table::take(handle, |object| matches!(object, Object::Granted(_))).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_prepare(
    domain: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
    prepared: *mut u64,
) -> Status {
    guarded(|| {
        has_place(prepared)?;
        let domain = table::domain(domain)?;
        // SAFETY: the header says that the host bears what the domain does with the range, once it is granted.
        let made = unsafe { host()?.prepare(&domain, address as usize, bytes, write != 0) }?;
        put(prepared, table::add(Object::Prepared(made)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_prepared_grant(handle: u64) -> Status {
    guarded(|| Ok(table::with_prepared(handle, |prepared| prepared.grant())??))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_prepared_revoke(handle: u64) -> Status {
    guarded(|| table::with_prepared(handle, |prepared| prepared.revoke()))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_prepared_free(handle: u64) -> Status {
    guarded(|| table::take(handle, |object| matches!(object, Object::Prepared(_))).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_new(made: *mut u64) -> Status {
    guarded(|| {
        has_place(made)?;
        put(made, table::add(Object::Lease(Lease::new().into())))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_grant(
    lease: u64,
    domain: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
) -> Status {
    guarded(|| {
        let (lease, domain) = (table::lease(lease)?, table::domain(domain)?);
        // SAFETY: the header says that the host bears what the domain does with memory that it grants.
        Ok(unsafe { lease.grant(domain, address as usize, bytes, write != 0) }?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_grant_caller(
    lease: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
) -> Status {
    guarded(|| {
        let lease = table::lease(lease)?;
        let caller = calling().ok_or_else(no_caller)?;
        // SAFETY: the header says that the host bears what the domain does with memory that it grants.
        Ok(unsafe { lease.grant(caller, address as usize, bytes, write != 0) }?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_clear(lease: u64) -> Status {
    guarded(|| {
        table::lease(lease)?.end();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_end(handle: u64) -> Status {
    guarded(|| {
        let lease = table::lease(handle)?;
        table::take(handle, |object| matches!(object, Object::Lease(_)))?;
        lease.end();
        Ok(())
    })
}

// ---- Instances

impl From<InstanceError> for Failure {
    fn from(error: InstanceError) -> Failure {
        let status = match &error {
            InstanceError::Taken { .. } | InstanceError::None(_) => Status::BAD_ARGUMENT,
            InstanceError::Ended => Status::BAD_HANDLE,
            InstanceError::Refused(_) => Status::REFUSED,
        };
        Failure::new(status, error)
    }
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_policy_instances(policy: u64) -> Status {
    guarded(|| change(policy, Policy::instances))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_new(
    domain: u64,
    name: *const c_void,
    made: *mut u64,
) -> Status {
    guarded(|| {
        has_place(made)?;
        let instance = table::domain(domain)?.instance(name as u64)?;
        put(made, table::add(Object::Instance(instance)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_also(instance: u64, name: *const c_void) -> Status {
    guarded(|| Ok(table::instance(instance)?.also(name as u64)?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_grant(
    instance: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
) -> Status {
    guarded(|| {
        let instance = table::instance(instance)?;
        // SAFETY: the header says that the host bears what the domain does with memory that it grants.
        Ok(unsafe { instance.grant(address as usize, bytes, write != 0) }?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_lease_grant_instance(
    lease: u64,
    instance: u64,
    address: *const c_void,
    bytes: usize,
    write: i32,
) -> Status {
    guarded(|| {
        let (lease, instance) = (table::lease(lease)?, table::instance(instance)?);
        // SAFETY: the header says that the host bears what the domain does with memory that it grants.
        Ok(unsafe { lease.grant(instance, address as usize, bytes, write != 0) }?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_enter(instance: u64) -> Status {
    guarded(|| {
        table::instance(instance)?.enter();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_leave(instance: u64) -> Status {
    guarded(|| {
        table::instance(instance)?.leave();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_instance_end(handle: u64) -> Status {
    guarded(|| {
        table::instance(handle)?.end()?;
        table::take(handle, |object| matches!(object, Object::Instance(_))).map(drop)
    })
}

// ---- Faults

#[unsafe(no_mangle)]
extern "C" fn mullion_word_prepare_thread() -> Status {
    guarded(|| {
        let prepared = host()?.prepare_thread();
        prepared.map_err(|error| Failure::new(Status::NO_WALL, error))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_on_fault(function: Option<OnFault>, user: *mut c_void) -> Status {
    guarded(|| {
        let function = function.ok_or_else(missing)?;
        let hook = Hook { function, user };
        host()?.on_fault(move |report| {
            let (function, user) = hook.parts();
            let mut texts = Texts::default();
            function(user, &CReport::new(report, &mut texts));
        });
        Ok(())
    })
}

thread_local! {
    static LATEST: RefCell<Texts> = RefCell::default();
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_take_report(handle: u64, report: *mut CReport) -> Status {
    guarded(|| {
        has_place(report)?;
        let none = || Failure::new(Status::NOTHING, "there is no report");
        let next = table::domain(handle)?.take_report().ok_or_else(none)?;
        LATEST.with_borrow_mut(|texts| {
            *texts = Texts::default();
            put(report, CReport::new(&next, texts))
        })
    })
}
