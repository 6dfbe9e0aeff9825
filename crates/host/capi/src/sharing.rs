//! Domains that call each other, and pages that they share.

use crate::domain::{self, Domain, Function};
use crate::pointers::{place, string, text};
use crate::policy::{file_of, host};
use crate::recipe::change;
use crate::status::{CANNOT_WRITE, Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value::{self, CallLimits, Pointer, User, Value};
use mullion_host::{Callee, Identity};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

/// `mullion_link_options`.
#[repr(C)]
pub(crate) struct LinkOptions {
    pub(crate) size: usize,
    pub(crate) reals: u32,
    pub(crate) integers: u32,
    pub(crate) limits: *const CallLimits,
    pub(crate) failed: *const Value,
}

/// `mullion_link_info`.
#[repr(C)]
pub(crate) struct LinkInfo {
    pub(crate) size: usize,
    pub(crate) import: *const c_char,
    pub(crate) callee: Handle,
    pub(crate) export: *const c_char,
    pub(crate) calls: u64,
}

/// `mullion_link_visitor`.
type Visitor = unsafe extern "C" fn(*mut c_void, *const LinkInfo);

/// A function for another domain to call.
///
/// # Safety
/// The pointer is null or points to a structure whose `size` is set, and whose
/// pointers are as the header says.
unsafe fn callee(function: &Function, options: *const LinkOptions) -> Result<Callee, Failure> {
    let callee = function.callee()?;
    // SAFETY: the first member is there in every version of the structure.
    let Some(size) = (unsafe { options.cast::<usize>().as_ref() }) else {
        return Ok(callee);
    };
    if *size != size_of::<LinkOptions>() {
        return Err(Failure::argument(
            "`size` is not sizeof(mullion_link_options)",
        ));
    }
    // SAFETY: null or a structure of the size that it says: this function's condition.
    let options = unsafe { options.read() };
    let mut callee = callee
        .doubles(options.reals != 0)
        .integers(options.integers as usize);
    // SAFETY: null, or what mullion.h says, for the call: `options.limits` a structure that says its size.
    if let Some(limits) = unsafe { value::call_limits(options.limits) }? {
        callee = callee.limited(limits);
    }
    // SAFETY: null or a value that stays for the call, as mullion.h has it; the structure was copied whole.
    if let Some(failed) = unsafe { options.failed.as_ref() } {
        callee = callee.or(value::returned(failed)?);
    }
    Ok(callee)
}

/// Who asks: none is the host.
fn asker(handle: Handle) -> Result<Option<Arc<Identity>>, Failure> {
    if handle.is_none() {
        return Ok(None);
    }
    let domain = table::find(handle, Object::domain)?;
    Ok(Some(domain.loaded()?.identity().clone()))
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_imports_link(
    imports: Handle,
    name: *const c_char,
    function: Handle,
    options: *const LinkOptions,
) -> Status {
    guarded(|| {
        // SAFETY: `name` is null or a string that stays as it is for the call, by mullion.h.
        let name = unsafe { text(name) }?;
        let function = table::find(function, Object::function)?;
        // SAFETY: null, or what mullion.h says, for the call: `options` a structure that says its size.
        let callee = unsafe { callee(&function, options) }?;
        change(imports, |list| list.link(name, callee))
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_imports_link_later(imports: Handle, name: *const c_char) -> Status {
    guarded(|| {
        // SAFETY: `name` is null or a string that stays as it is for the call, by mullion.h.
        let name = unsafe { text(name) }?;
        change(imports, |list| list.link_later(name))
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_link(
    asks: Handle,
    caller: Handle,
    import: *const c_char,
    function: Handle,
    options: *const LinkOptions,
) -> Status {
    guarded(|| {
        // SAFETY: `import` is null or a string that stays as it is for the call, by mullion.h.
        let import = unsafe { text(import) }?;
        let (asker, caller) = (asker(asks)?, table::find(caller, Object::domain)?);
        let function = table::find(function, Object::function)?;
        // SAFETY: null, or what mullion.h says, for the call: `options` a structure that says its size.
        let callee = unsafe { callee(&function, options) }?;
        Ok(caller.loaded()?.link(asker.as_deref(), import, callee)?)
    })
}

/// # Safety
/// As the header has it: `visitor` may be called with `user`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_links(
    domain: Handle,
    visitor: Option<Visitor>,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        let visitor = visitor.ok_or_else(Failure::null)?;
        let user = User(user);
        for link in table::find(domain, Object::domain)?.loaded()?.links()? {
            let import = CString::new(link.import).unwrap_or_default();
            let export = CString::new(link.export.unwrap_or_default()).unwrap_or_default();
            let info = LinkInfo {
                size: size_of::<LinkInfo>(),
                import: import.as_ptr(),
                callee: (link.callee.as_deref()).map_or(Handle { number: 0 }, domain::handle_of),
                export: export.as_ptr(),
                calls: link.calls,
            };
            // SAFETY: the host's promise; the strings live until it returns.
            unsafe { visitor(user.0, &info) };
        }
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_called_by(domain: Handle, caller: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: `caller` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(caller) }?;
        let domain = table::find(domain, Object::domain)?;
        let by = domain.calling(|caller| Ok(caller.called_by()))?;
        place.write(by.map_or(Handle { number: 0 }, |by| domain::handle_of(&by)));
        Ok(())
    })
}

// ---- Pages

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_shared_new(
    name: *const c_char,
    length: u64,
    shared: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, `shared` a place for the result.
        let (name, place) = unsafe { (text(name)?, place(shared)?) };
        place.write(table::add(Object::Shared(host()?.share(name, length)?))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_shared_free(shared: Handle) -> Status {
    guarded(|| table::free_handle(shared, Object::shared))
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_shared_bytes(
    shared: Handle,
    bytes: *mut *mut c_void,
    length: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `bytes` a place for the result, `length` a place for
        // the result.
        let (at, count) = unsafe { (place(bytes)?, place(length)?) };
        let shared = table::find(shared, Object::shared)?;
        // Atomic bytes may be written through a pointer from a shared reference.
        at.write(shared.bytes().as_ptr().cast_mut().cast());
        count.write(shared.len());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_grant(
    shared: Handle,
    asks: Handle,
    domain: Handle,
    offset: u64,
    length: u64,
    permission: u32,
) -> Status {
    guarded(|| {
        let permission = value::permission(permission)?;
        let shared = table::find(shared, Object::shared)?;
        let (asker, domain) = (asker(asks)?, table::find(domain, Object::domain)?);
        let bytes = offset..offset.saturating_add(length);
        Ok(shared.grant(asker.as_deref(), domain.loaded()?, bytes, permission)?)
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_shared_pointer(
    shared: Handle,
    domain: Handle,
    offset: u64,
    pointer: *mut Pointer,
) -> Status {
    guarded(|| {
        // SAFETY: `pointer` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(pointer) }?;
        let shared = table::find(shared, Object::shared)?;
        let domain: Arc<Domain> = table::find(domain, Object::domain)?;
        let address = domain.shared_pointer(&shared, offset)?;
        place.write(Pointer { address });
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_snapshot(path: *const c_char) -> Status {
    guarded(|| {
        // SAFETY: `path` is null or a string that stays as it is for the call, by mullion.h.
        let path = file_of(unsafe { string(path) }?);
        let written = std::fs::write(&path, mullion_host::snapshot().to_json());
        written
            .map_err(|error| Failure::with(CANNOT_WRITE, &format!("{}: {error}", path.display())))
    })
}
