//! `include/mullion.h`: the host's interface in C. The header describes every
//! function; here is how it is kept.
//!
//! ```text
//! lib.rs      the functions of the header, each guarded: no panic leaves it
//! table.rs    handles: numbers with a generation, checked at each use
//! call.rs     calls that are started, and cancelled
//! domain.rs   domains, and the host functions that they call
//! pool.rs     domains kept ready
//! live.rs     domains that are replaced behind their functions
//! held.rs     what host functions register with a call
//! sharing.rs  links between domains, and pages that they share
//! policy.rs   who may load, call and share
//! recipe.rs   what domains are made of
//! value.rs    values and structures as C lays them out
//! pointers.rs what C's pointers point to
//! status.rs   statuses; what went wrong last on this thread
//! jump.rs     what is seen of a `longjmp` out of a host function
//! log.rs      the library's log, handed to a function of the host's
//! ```
//!
//! Handles are never dereferenced, only looked up; so a stale one is an error.
//! What remains to be believed are C's own pointers: that each points to what the
//! header says, for the time of the call.

mod call;
mod domain;
mod held;
mod jump;
mod live;
mod log;
mod metrics;
mod pointers;
mod policy;
mod pool;
mod recipe;
mod sharing;
mod status;
mod table;
mod value;

#[cfg(test)]
mod header_tests;

use domain::{Domain, Exported, Function};
use mullion_host::{Buffer, CallArguments, Imports};
use pointers::{bytes, place, string, text};
use policy::{file_of, host};
use recipe::{Recipe, change};
use status::{Failure, Status, guarded};
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};
use table::{Handle, Object};
use value::{Pointer, User, Value};

// ---- Results

#[unsafe(no_mangle)]
extern "C" fn mullion_error_message() -> *const c_char {
    status::message()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_status_name(status: Status) -> *const c_char {
    status::name(status).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[unsafe(no_mangle)]
extern "C" fn mullion_prepare_thread() -> Status {
    guarded(|| Ok(mullion_host::prepare_thread()?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_refusal() -> Status {
    status::refusal()
}

/// # Safety
/// `fault` is null or points to a structure whose `size` is set.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_last_fault(fault: *mut status::Fault) -> Status {
    // SAFETY: null, or what mullion.h says, for the call: `fault` a structure that says its size.
    guarded(|| unsafe { status::last_fault(fault) })
}

// ---- Images

/// # Safety
/// As the header has it: `path` is a string, `image` a place for a handle.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_image_open(path: *const c_char, image: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `path` a string, `image` a place for the result.
        let (path, place) = unsafe { (string(path)?, place(image)?) };
        place.write(table::add(Object::Image(host()?.open(file_of(path))?))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_image_from_memory(
    name: *const c_char,
    content: *const c_void,
    length: usize,
    image: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, `content` so many bytes, `image` a
        // place for the result.
        let (name, content, place) =
            unsafe { (text(name)?, bytes(content, length)?, place(image)?) };
        place.write(table::add(Object::Image(host()?.image(name, content)?))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_image_prepare(image: Handle, domains: usize) -> Status {
    guarded(|| Ok(table::find(image, Object::image)?.prepare(domains)?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_image_free(image: Handle) -> Status {
    guarded(|| table::free_handle(image, Object::image))
}

// ---- Functions of the host

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_imports_new(imports: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: `imports` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(imports) }?;
        let list = Arc::new(Mutex::new(Imports::new()));
        place.write(table::add(Object::Imports(list))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it: `function` may be called with `user` from every thread
/// that calls a domain loaded with the list.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_imports_add(
    imports: Handle,
    name: *const c_char,
    function: Option<domain::HostFunction>,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        // SAFETY: `name` is null or a string that stays as it is for the call, by mullion.h.
        let name = unsafe { text(name) }?;
        let function = function.ok_or_else(Failure::null)?;
        let user = User(user);
        change(imports, |list| {
            list.raw(name, move |caller, arguments| {
                // SAFETY: the host's promise when it added the function.
                unsafe { domain::call_host(function, user, caller, arguments) }
            })
        })
    })
}

/// # Safety
/// As the header has it: as [`mullion_imports_add`], and `release` may be called with `user`,
/// once, on any thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_imports_add_owned(
    imports: Handle,
    name: *const c_char,
    function: Option<domain::HostFunction>,
    user: *mut c_void,
    release: Option<held::Release>,
) -> Status {
    guarded(|| {
        // SAFETY: `name` is null or a string that stays as it is for the call, by mullion.h.
        let name = unsafe { text(name) }?;
        let function = function.ok_or_else(Failure::null)?;
        let release = release.ok_or_else(Failure::null)?;
        change(imports, |list| {
            // Goes with the closure, which every domain of the list has a share of.
            let user = held::Guard::new(release, User(user));
            list.raw(name, move |caller, arguments| {
                // SAFETY: the host's promise when it added the function.
                unsafe { domain::call_host(function, user.user(), caller, arguments) }
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_imports_free(imports: Handle) -> Status {
    guarded(|| table::free_handle(imports, Object::imports))
}

// ---- Domains

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_load(
    image: Handle,
    name: *const c_char,
    imports: Handle,
    limits: *const value::Limits,
    domain: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: `domain` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(domain) }?;
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, the limits a structure that says its
        // size.
        let recipe = unsafe { Recipe::new(image, name, imports, limits) }?;
        place.write(Domain::load(recipe.builder())?.handle());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_domain_restart(domain: Handle) -> Status {
    guarded(|| table::find(domain, Object::domain)?.restart(None))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_domain_restart_when_idle(domain: Handle, nanoseconds: u64) -> Status {
    let at_most = value::at_most(nanoseconds);
    guarded(|| table::find(domain, Object::domain)?.restart(Some(at_most)))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_domain_unload(domain: Handle) -> Status {
    guarded(|| {
        table::find(domain, Object::domain)?.unload()?;
        table::free_handle(domain, Object::domain)
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_has_ended(domain: Handle, ended: *mut c_int) -> Status {
    guarded(|| {
        // SAFETY: `ended` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(ended) }?;
        place.write(
            table::find(domain, Object::domain)?
                .loaded()?
                .has_ended()?
                .into(),
        );
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_restarts(domain: Handle, count: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: `count` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(count) }?;
        place.write(table::find(domain, Object::domain)?.restarts()?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_base(domain: Handle, base: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: `base` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(base) }?;
        place.write(table::find(domain, Object::domain)?.loaded()?.base());
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_memory(domain: Handle, in_use: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: `in_use` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(in_use) }?;
        place.write(
            table::find(domain, Object::domain)?
                .loaded()?
                .memory_in_use()?,
        );
        Ok(())
    })
}

// ---- Calls

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_function_find(
    domain: Handle,
    name: *const c_char,
    function: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, `function` a place for the result.
        let (name, place) = unsafe { (text(name)?, place(function)?) };
        let found = Exported::find(table::find(domain, Object::domain)?, name)?;
        let found = Arc::new(Function::Of(found));
        place.write(table::add(Object::Function(found))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it: `parameters` are `count` types.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_function_check(
    function: Handle,
    result: u32,
    parameters: *const u32,
    count: usize,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `parameters` so many numbers.
        let parameters = unsafe { value::classes(parameters, count) }?;
        let result = value::result_class(result)?;
        table::find(function, Object::function)?.check(&parameters, result)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_function_free(function: Handle) -> Status {
    guarded(|| table::free_handle(function, Object::function))
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_call(
    function: Handle,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    // SAFETY: the same pointers, with the same conditions, and no limits.
    unsafe { mullion_call_limited(function, arguments, count, std::ptr::null(), result) }
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_call_limited(
    function: Handle,
    arguments: *const Value,
    count: usize,
    limits: *const value::CallLimits,
    result: *mut Value,
) -> Status {
    guarded(|| {
        let mut given = CallArguments::default();
        // SAFETY: null, or what mullion.h says, for the call: `arguments` so many values.
        unsafe { value::arguments(arguments, count, &mut given) }?;
        // SAFETY: `result` is null or where the host wants the result, by mullion.h.
        unsafe { value::check_result(result) }?;
        // SAFETY: `limits` is null or a structure that says its size, by mullion.h.
        let limits = unsafe { value::call_limits(limits) }?;
        table::with(function, Object::function, |function| {
            function.call(&given, limits.as_ref(), |returned| {
                // SAFETY: `result` is null or where the host wants the result, by mullion.h.
                unsafe { value::set_result(result, returned) };
            })
        })
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_call_pointer(
    domain: Handle,
    function: Pointer,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    guarded(|| {
        let domain = table::find(domain, Object::domain)?;
        let mut given = CallArguments::default();
        // SAFETY: null, or what mullion.h says, for the call: `arguments` so many values.
        unsafe { value::arguments(arguments, count, &mut given) }?;
        // SAFETY: `result` is null or where the host wants the result, by mullion.h.
        unsafe { value::check_result(result) }?;
        let returned = domain.call_pointer(function, &given)?;
        // SAFETY: `result` is null or where the host wants the result, by mullion.h.
        unsafe { value::set_result(result, &returned) };
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_argument(domain: Handle, index: u32, value: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: `value` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(value) }?;
        let domain = table::find(domain, Object::domain)?;
        place.write(domain.calling(|caller| caller.argument(index))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_charge_output(domain: Handle, bytes: u64) -> Status {
    guarded(|| {
        let domain = table::find(domain, Object::domain)?;
        domain.calling(|caller| caller.charge_output(bytes))
    })
}

// ---- Memory of domains

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_read(
    domain: Handle,
    from: Pointer,
    to: *mut c_void,
    length: usize,
) -> Status {
    guarded(|| {
        table::with(domain, Object::domain, |domain| {
            if length == 0 {
                return Ok(());
            }
            // SAFETY: `to` is null or has room for `length` bytes, by mullion.h.
            domain.read(from, unsafe { value::room(to.cast(), length) }?)
        })
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_write(
    domain: Handle,
    to: Pointer,
    from: *const c_void,
    length: usize,
) -> Status {
    guarded(|| {
        table::with(domain, Object::domain, |domain| {
            // SAFETY: `from` has `length` bytes that stay as they are for the call, by mullion.h.
            domain.write(to, unsafe { bytes(from, length) }?)
        })
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_read_string(
    domain: Handle,
    from: Pointer,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        let domain = table::find(domain, Object::domain)?;
        // SAFETY: `to` is null or has room for `capacity` bytes, by mullion.h.
        let to = unsafe { value::room(to.cast(), capacity) }?;
        let string = domain.read_string(from, capacity)?;
        let with_zero = string.as_bytes_with_nul();
        to[..with_zero.len()].copy_from_slice(with_zero);
        if !length.is_null() {
            // SAFETY: not null, and a place for a length by mullion.h.
            unsafe { length.write(with_zero.len() - 1) };
        }
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_alloc(domain: Handle, length: u64, pointer: *mut Pointer) -> Status {
    guarded(|| {
        // SAFETY: `pointer` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(pointer) }?;
        place.write(table::find(domain, Object::domain)?.alloc(length)?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_copy_in(
    domain: Handle,
    from: *const c_void,
    length: usize,
    pointer: *mut Pointer,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `pointer` a place for the result, `from` so many bytes.
        let (place, content) = unsafe { (place(pointer)?, bytes(from, length)?) };
        place.write(table::find(domain, Object::domain)?.copy_in(content)?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_string_in(
    domain: Handle,
    content: *const c_char,
    pointer: *mut Pointer,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `pointer` a place for the result, `content` a string.
        let (place, content) = unsafe { (place(pointer)?, string(content)?) };
        let domain = table::find(domain, Object::domain)?;
        place.write(domain.copy_in(content.to_bytes_with_nul())?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_free(domain: Handle, pointer: Pointer) -> Status {
    guarded(|| table::find(domain, Object::domain)?.free(pointer, |_| true))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_free_since(domain: Handle, pointer: Pointer, restarts: u64) -> Status {
    guarded(|| {
        let is_it = |buffer: &Buffer<u8>| buffer.restarts() == restarts;
        table::find(domain, Object::domain)?.free(pointer, is_it)
    })
}

// ---- The host's log

/// # Safety
/// As the header has it: `log` may be called with `user` from every thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_set_log(
    function: Option<log::Function>,
    user: *mut c_void,
    level: c_int,
) -> Status {
    guarded(|| {
        let function = function.ok_or_else(Failure::null)?;
        // SAFETY: `function` may be called with `user` from any thread until another one is set, by mullion.h.
        unsafe { log::set(function, User(user), level) }
    })
}
