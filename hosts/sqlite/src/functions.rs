//! Functions and collations of modules: what SQLite calls, and the way from there into the module.

use crate::api::host;
use crate::memory::drop_state;
use crate::values::fail;
use crate::walled::{Answer, Frame, Handle, Walled, gate, mediate};
use std::ffi::{c_char, c_int, c_void};

const NOMEM: c_int = 7;

/// A function, an aggregate or a window function of a module's.
pub(crate) struct Function {
    pub(crate) walled: &'static Walled,
    pub(crate) user: u64,
    pub(crate) step: u64,
    last: u64,
    value: u64,
    inverse: u64,
    destroy: u64,
    life: u64,
}

impl Function {
    pub(crate) fn plain(walled: &'static Walled, step: u64, user: u64) -> Function {
        Function {
            walled,
            user,
            step,
            last: 0,
            value: 0,
            inverse: 0,
            destroy: 0,
            life: walled.life.get(),
        }
    }
}

type Step = extern "C" fn(Handle, c_int, *const Handle);
type Last = extern "C" fn(Handle);
type Destroy = extern "C" fn(*mut c_void);

/// The function that a context is for.
fn of(context: Handle) -> &'static Function {
    let function = host!(user_data: fn(Handle) -> *const Function)(context);
    // SAFETY: only functions that were registered here have these callbacks, and SQLite keeps their data meanwhile.
    unsafe { &*function }
}

fn arguments<'a>(count: c_int, values: *const Handle) -> &'a [Handle] {
    match count {
        1.. => {
            // SAFETY: SQLite passes so many.
            unsafe { std::slice::from_raw_parts(values, count as usize) }
        }
        _ => &[],
    }
}

/// The values' handles as a module gets them.
pub(crate) fn lend_values(frame: &Frame, values: &[Handle]) -> Option<u64> {
    // SAFETY: a handle is a word.
    let words = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u64>(), values.len()) };
    frame.walled.lend_words(words)
}

fn run(function: &Function, context: Handle, at: u64, count: c_int, values: *const Handle) {
    let values = arguments(count, values);
    let done = function.walled.enter(context, values, |frame| {
        let lent = lend_values(frame, values)?;
        gate!(at, fn(Handle, c_int, u64))(context, count, lent);
        Some(())
    });
    if done.is_none() {
        fail(context, &function.walled.fault());
    }
}

fn end(function: &Function, context: Handle, at: u64) {
    let done = function.walled.enter(context, &[], |_| {
        gate!(at, fn(Handle))(context);
        Some(())
    });
    if done.is_none() {
        fail(context, &function.walled.fault());
    }
}

pub(crate) extern "C" fn call(context: Handle, count: c_int, values: *const Handle) {
    let function = of(context);
    run(function, context, function.step, count, values);
}

extern "C" fn inverse(context: Handle, count: c_int, values: *const Handle) {
    let function = of(context);
    run(function, context, function.inverse, count, values);
}

extern "C" fn last(context: Handle) {
    let function = of(context);
    end(function, context, function.last);
    drop_state(function.walled, context);
}

extern "C" fn value(context: Handle) {
    let function = of(context);
    end(function, context, function.value);
}

pub(crate) extern "C" fn destroy(function: *mut c_void) {
    // SAFETY: `create` has made it, and SQLite gives it back once.
    let function = unsafe { Box::from_raw(function.cast::<Function>()) };
    function.walled.forget((&raw const *function).cast());
    if function.destroy != 0 && function.life == function.walled.life.get() {
        function.walled.enter(std::ptr::null_mut(), &[], |_| {
            gate!(function.destroy, fn(u64))(function.user);
            Some(())
        });
    }
}

/// What a module wants to register.
struct Wanted {
    db: Handle,
    name: u64,
    arity: c_int,
    flags: c_int,
    function: Function,
    step: Option<Step>,
    is_window: bool,
}

fn create(frame: &Frame, wanted: Wanted) -> Answer<c_int> {
    let db = frame.db(wanted.db)?;
    let walled = frame.walled;
    let name = walled.c_string(wanted.name)?;
    let function = &wanted.function;
    for at in [
        function.step,
        function.last,
        function.value,
        function.inverse,
        function.destroy,
    ] {
        walled.function(at)?;
    }
    let has = |at: u64, callback: Last| (at != 0).then_some(callback);
    let last_step = has(function.last, last);
    let step = (function.step != 0).then_some(call as Step);
    let (value_step, inverse_step) = (
        has(function.value, value),
        (function.inverse != 0).then_some(inverse as Step),
    );
    let (arity, flags) = (wanted.arity, wanted.flags);
    let shape = [
        wanted.step.is_some(),
        step.is_some(),
        last_step.is_some(),
        wanted.is_window,
    ];
    let key = format!(
        "function {} {arity} {flags} {shape:?}",
        name.to_string_lossy()
    );
    let mut function = wanted.function;
    let replace = |earlier: &mut Function| {
        std::mem::swap(earlier, &mut function);
        true
    };
    if walled.take_over(&key, |function: &Function| function.life, replace) {
        return Ok(0);
    }
    let data = Box::into_raw(Box::new(function)).cast::<c_void>();
    let code = match wanted.is_window {
        true => host!(create_window_function: fn(Handle, *const c_char, c_int, c_int, *mut c_void,
            Option<Step>, Option<Last>, Option<Last>, Option<Step>, Destroy) -> c_int)(
            db,
            name.as_ptr(),
            arity,
            flags,
            data,
            step,
            last_step,
            value_step,
            inverse_step,
            destroy,
        ),
        false => host!(create_function_v2: fn(Handle, *const c_char, c_int, c_int, *mut c_void,
            Option<Step>, Option<Step>, Option<Last>, Destroy) -> c_int)(
            db,
            name.as_ptr(),
            arity,
            flags,
            data,
            wanted.step,
            if last_step.is_some() { step } else { None },
            last_step,
            destroy,
        ),
    };
    // With any other code SQLite has given it back already.
    if code == 0 {
        walled.registered.borrow_mut().insert(key, data as usize);
    }
    Ok(code)
}

#[allow(clippy::too_many_arguments)]
pub(crate) extern "C" fn create_function_v2(
    db: Handle,
    name: u64,
    arity: c_int,
    flags: c_int,
    user: u64,
    plain: u64,
    step: u64,
    last: u64,
    destroy: u64,
) -> c_int {
    mediate(|frame| {
        let first = if plain != 0 { plain } else { step };
        let mut function = Function::plain(frame.walled, first, user);
        function.last = last;
        function.destroy = destroy;
        create(
            frame,
            Wanted {
                db,
                name,
                arity,
                flags,
                function,
                step: (plain != 0).then_some(call as Step),
                is_window: false,
            },
        )
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) extern "C" fn create_function(
    db: Handle,
    name: u64,
    arity: c_int,
    flags: c_int,
    user: u64,
    plain: u64,
    step: u64,
    last: u64,
) -> c_int {
    create_function_v2(db, name, arity, flags, user, plain, step, last, 0)
}

#[allow(clippy::too_many_arguments)]
pub(crate) extern "C" fn create_window_function(
    db: Handle,
    name: u64,
    arity: c_int,
    flags: c_int,
    user: u64,
    step: u64,
    last: u64,
    value: u64,
    inverse: u64,
    destroy: u64,
) -> c_int {
    mediate(|frame| {
        let mut function = Function::plain(frame.walled, step, user);
        function.last = last;
        function.value = value;
        function.inverse = inverse;
        function.destroy = destroy;
        let wanted = Wanted {
            db,
            name,
            arity,
            flags,
            function,
            step: None,
            is_window: true,
        };
        create(frame, wanted)
    })
}

pub(crate) extern "C" fn user_data(context: Handle) -> u64 {
    mediate(|frame| Ok(of(frame.context(context)?).user))
}

/// A collation of a module's.
struct Collation {
    walled: &'static Walled,
    user: u64,
    compare: u64,
    destroy: u64,
    life: u64,
}

type Compare = extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *const c_void) -> c_int;

extern "C" fn compare(
    data: *mut c_void,
    bytes_a: c_int,
    a: *const c_void,
    bytes_b: c_int,
    b: *const c_void,
) -> c_int {
    // SAFETY: `create_collation_v2` has made it.
    let collation = unsafe { &*data.cast::<Collation>() };
    let answer = collation.walled.enter(std::ptr::null_mut(), &[], |frame| {
        let a = frame.walled.lend(a, bytes_a as u64);
        let b = frame.walled.lend(b, bytes_b as u64);
        let compare = gate!(collation.compare, fn(u64, c_int, u64, c_int, u64) -> c_int);
        Some(compare(collation.user, bytes_a, a, bytes_b, b))
    });
    // SQLite has no error here: with a module that has ended, everything is equal.
    answer.unwrap_or(0)
}

extern "C" fn destroy_collation(data: *mut c_void) {
    // SAFETY: `create_collation_v2` has made it, and SQLite gives it back once.
    let collation = unsafe { Box::from_raw(data.cast::<Collation>()) };
    collation.walled.forget(data);
    if collation.destroy != 0 && collation.life == collation.walled.life.get() {
        collation.walled.enter(std::ptr::null_mut(), &[], |_| {
            gate!(collation.destroy, fn(u64))(collation.user);
            Some(())
        });
    }
}

pub(crate) extern "C" fn create_collation_v2(
    db: Handle,
    name: u64,
    encoding: c_int,
    user: u64,
    at: u64,
    destroy: u64,
) -> c_int {
    mediate(|frame| {
        let (db, walled) = (frame.db(db)?, frame.walled);
        let name = walled.c_string(name)?;
        let collation = Collation {
            walled,
            user,
            compare: walled.function(at)?,
            destroy: walled.function(destroy)?,
            life: walled.life.get(),
        };
        let key = format!(
            "collation {} {encoding} {}",
            name.to_string_lossy(),
            at != 0
        );
        let mut collation = collation;
        let replace = |earlier: &mut Collation| {
            std::mem::swap(earlier, &mut collation);
            true
        };
        if walled.take_over(&key, |collation: &Collation| collation.life, replace) {
            return Ok(0);
        }
        let data = Box::into_raw(Box::new(collation)).cast::<c_void>();
        let has = (at != 0).then_some(compare as Compare);
        let code = host!(create_collation_v2: fn(Handle, *const c_char, c_int, *mut c_void, Option<Compare>, Destroy)
            -> c_int)(db, name.as_ptr(), encoding, data, has, destroy_collation);
        if code != 0 {
            // SQLite does not give it back then.
            // SAFETY: it was made above, and nobody else has it.
            drop(unsafe { Box::from_raw(data.cast::<Collation>()) });
        } else {
            walled.registered.borrow_mut().insert(key, data as usize);
        }
        Ok(code)
    })
}

pub(crate) extern "C" fn create_collation(
    db: Handle,
    name: u64,
    encoding: c_int,
    user: u64,
    at: u64,
) -> c_int {
    create_collation_v2(db, name, encoding, user, at, 0)
}

pub(crate) extern "C" fn overload_function(db: Handle, name: u64, arity: c_int) -> c_int {
    mediate(|frame| {
        let (db, name) = (frame.db(db)?, frame.walled.c_string(name)?);
        Ok(
            host!(overload_function: fn(Handle, *const c_char, c_int) -> c_int)(
                db,
                name.as_ptr(),
                arity,
            ),
        )
    })
}

/// For a module that lacks memory.
pub(crate) const fn no_memory() -> c_int {
    NOMEM
}
