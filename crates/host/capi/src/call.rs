//! Calls that are started, and waited for, cancelled and closed later.

use crate::pointers::place;
use crate::status::{Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value::{self, Value};
use mullion_host::CallArguments;
use std::sync::Arc;

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_call_start(
    function: Handle,
    arguments: *const Value,
    count: usize,
    limits: *const value::CallLimits,
    call: *mut Handle,
) -> Status {
    guarded(|| {
        let mut given = CallArguments::default();
        // SAFETY: null, or what mullion.h says, for the call: `arguments` so many values.
        unsafe { value::arguments(arguments, count, &mut given) }?;
        // SAFETY: null, or what mullion.h says, for the call: `call` a place for the result, `limits` a structure
        // that says its size.
        let (place, limits) = unsafe { (place(call)?, value::call_limits(limits)?) };
        let function = table::find(function, Object::function)?;
        let started = function.start(&given, limits.as_ref())?;
        place.write(table::add(Object::Call(Arc::new(started)))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_call_wait(
    call: Handle,
    nanoseconds: u64,
    result: *mut Value,
) -> Status {
    guarded(|| {
        // SAFETY: `result` is null or where the host wants the result, by mullion.h.
        unsafe { value::check_result(result) }?;
        let call = table::find(call, Object::call)?;
        let Some(returned) = call.wait_for(value::at_most(nanoseconds)) else {
            return Err(match call.has_ended() {
                true => Failure::argument("the call's result has been given"),
                false => Failure::timed_out("the call goes on"),
            });
        };
        // SAFETY: `result` is null or where the host wants the result, by mullion.h.
        unsafe { value::set_result(result, &returned?) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_call_cancel(call: Handle) -> Status {
    guarded(|| {
        table::find(call, Object::call)?.cancel();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_call_close(call: Handle) -> Status {
    guarded(|| {
        // Others may be waiting for it.
        let found = table::find(call, Object::call)?;
        table::free_handle(call, Object::call)?;
        found.cancel();
        Ok(())
    })
}
