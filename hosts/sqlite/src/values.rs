//! What a function of a module is called with, and what it answers: `sqlite3_value_*`, `sqlite3_result_*`.

use crate::api::host;
use crate::memory::dispose;
use crate::walled::{Answer, Frame, Handle, gate, mediate, refused};
use std::ffi::{c_char, c_int, c_void};

/// SQLite copies what it is given.
pub(crate) const TRANSIENT: isize = -1;

/// A value that SQLite made for a module and that nobody needs any more.
pub(crate) fn free_value(value: Handle) {
    host!(value_free: fn(Handle))(value);
}

/// A getter of a number.
macro_rules! number {
    ($($name:ident -> $result:ty;)*) => { $(
        pub(crate) extern "C" fn $name(value: Handle) -> $result {
            mediate(|frame| Ok(host!($name: fn(Handle) -> $result)(frame.value(value)?)))
        }
    )* };
}

number! {
    value_int -> c_int;
    value_int64 -> i64;
    value_double -> f64;
    value_type -> c_int;
    value_numeric_type -> c_int;
    value_bytes -> c_int;
    value_bytes16 -> c_int;
    value_subtype -> u32;
    value_nochange -> c_int;
    value_frombind -> c_int;
    value_encoding -> c_int;
}

/// A getter of text or bytes; the first says how, the second how much there is.
macro_rules! memory {
    ($($name:ident, $length:ident, $zeros:expr;)*) => { $(
        pub(crate) extern "C" fn $name(value: Handle) -> u64 {
            mediate(|frame| {
                let value = frame.value(value)?;
                let get = |value| {
                    let at = host!($name: fn(Handle) -> *const c_void)(value);
                    (at, host!($length: fn(Handle) -> c_int)(value) as u64)
                };
                let walled = frame.walled;
                Ok(walled.until_return(walled.lend_value(value, get, $zeros)))
            })
        }
    )* };
}

memory! {
    value_text, value_bytes, 1;
    value_blob, value_bytes, 0;
    value_text16, value_bytes16, 2;
    value_text16le, value_bytes16, 2;
    value_text16be, value_bytes16, 2;
}

pub(crate) extern "C" fn value_dup(value: Handle) -> Handle {
    mediate(|frame| {
        let copy = host!(value_dup: fn(Handle) -> Handle)(frame.value(value)?);
        if !copy.is_null() {
            frame.walled.kept.borrow_mut().insert(copy as usize);
        }
        Ok(copy)
    })
}

pub(crate) extern "C" fn value_free(value: Handle) {
    mediate(|frame| {
        let known = frame.walled.kept.borrow_mut().remove(&(value as usize));
        match (known, value.is_null()) {
            (true, _) => free_value(value),
            (false, true) => {}
            (false, false) => return refused(format!("{value:p} is no copy of a value")),
        }
        Ok(())
    });
}

/// A result that is a number, or nothing.
macro_rules! plain {
    ($($name:ident($($kind:ty)?);)*) => { $( plain!(@ $name $($kind)?); )* };
    (@ $name:ident $kind:ty) => {
        pub(crate) extern "C" fn $name(context: Handle, value: $kind) {
            mediate(|frame| {
                host!($name: fn(Handle, $kind))(frame.context(context)?, value);
                Ok(())
            });
        }
    };
    (@ $name:ident) => {
        pub(crate) extern "C" fn $name(context: Handle) {
            mediate(|frame| {
                host!($name: fn(Handle))(frame.context(context)?);
                Ok(())
            });
        }
    };
}

plain! {
    result_int(c_int);
    result_int64(i64);
    result_double(f64);
    result_null();
    result_error_nomem();
    result_error_toobig();
    result_error_code(c_int);
    result_subtype(u32);
    result_zeroblob(c_int);
}

pub(crate) extern "C" fn result_zeroblob64(context: Handle, bytes: u64) -> c_int {
    mediate(|frame| {
        Ok(host!(result_zeroblob64: fn(Handle, u64) -> c_int)(
            frame.context(context)?,
            bytes,
        ))
    })
}

pub(crate) extern "C" fn result_value(context: Handle, value: Handle) {
    mediate(|frame| {
        let (context, value) = (frame.context(context)?, frame.value(value)?);
        host!(result_value: fn(Handle, Handle))(context, value);
        Ok(())
    });
}

/// Text and bytes of a module's, whose length may be left out: up to the zero then.
pub(crate) fn counted(frame: &Frame, at: u64, bytes: c_int) -> Answer<&[u8]> {
    match u64::try_from(bytes) {
        Ok(bytes) => frame.walled.bytes(at, bytes),
        Err(_) => frame.walled.text(at),
    }
}

/// Text of 16-bit units, whose length in bytes may be left out.
pub(crate) fn counted16(frame: &Frame, at: u64, bytes: c_int) -> Answer<&[u8]> {
    if let Ok(bytes) = u64::try_from(bytes) {
        return frame.walled.bytes(at, bytes & !1);
    }
    let mut length = 0;
    while frame.walled.bytes(at.wrapping_add(length), 2)? != [0, 0] {
        length += 2;
    }
    frame.walled.bytes(at, length)
}

macro_rules! bytes {
    ($($name:ident, $counted:ident;)*) => { $(
        pub(crate) extern "C" fn $name(context: Handle, at: u64, bytes: c_int, destructor: u64) {
            mediate(|frame| {
                let context = frame.context(context)?;
                if at == 0 {
                    host!(result_null: fn(Handle))(context);
                    return Ok(());
                }
                let text = $counted(frame, at, bytes)?;
                let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
                let set = host!($name: fn(Handle, *const u8, c_int, isize));
                // What is empty has an address all the same: SQLite takes null for NULL.
                let from = if text.is_empty() { c"".as_ptr().cast() } else { text.as_ptr() };
                set(context, from, length, TRANSIENT);
                dispose(frame.walled, destructor, at)
            });
        }
    )* };
}

bytes! {
    result_text, counted;
    result_text16, counted16;
    result_text16le, counted16;
    result_text16be, counted16;
}

pub(crate) extern "C" fn result_blob(context: Handle, at: u64, bytes: c_int, destructor: u64) {
    result_blob64(context, at, u64::try_from(bytes).unwrap_or(0), destructor);
}

pub(crate) extern "C" fn result_blob64(context: Handle, at: u64, bytes: u64, destructor: u64) {
    mediate(|frame| {
        let context = frame.context(context)?;
        if at == 0 {
            host!(result_null: fn(Handle))(context);
            return Ok(());
        }
        let blob = frame.walled.bytes(at, bytes)?;
        let from = if blob.is_empty() {
            c"".as_ptr().cast()
        } else {
            blob.as_ptr()
        };
        host!(result_blob64: fn(Handle, *const u8, u64, isize))(context, from, bytes, TRANSIENT);
        dispose(frame.walled, destructor, at)
    });
}

pub(crate) extern "C" fn result_text64(
    context: Handle,
    at: u64,
    bytes: u64,
    destructor: u64,
    encoding: u8,
) {
    mediate(|frame| {
        let context = frame.context(context)?;
        if at == 0 {
            host!(result_null: fn(Handle))(context);
            return Ok(());
        }
        let text = frame.walled.bytes(at, bytes)?;
        let from = if text.is_empty() {
            c"".as_ptr().cast()
        } else {
            text.as_ptr()
        };
        let set = host!(result_text64: fn(Handle, *const u8, u64, isize, u8));
        set(context, from, bytes, TRANSIENT, encoding);
        dispose(frame.walled, destructor, at)
    });
}

pub(crate) extern "C" fn result_error(context: Handle, at: u64, bytes: c_int) {
    mediate(|frame| {
        let context = frame.context(context)?;
        let text = counted(frame, at, bytes)?;
        let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
        let from = if text.is_empty() {
            c"".as_ptr().cast()
        } else {
            text.as_ptr()
        };
        host!(result_error: fn(Handle, *const u8, c_int))(context, from, length);
        Ok(())
    });
}

/// Ends a call of SQLite's with this error.
pub(crate) fn fail(context: Handle, what: &str) {
    let length = c_int::try_from(what.len()).unwrap_or(c_int::MAX);
    host!(result_error: fn(Handle, *const u8, c_int))(context, what.as_ptr(), length);
}

pub(crate) extern "C" fn context_db_handle(context: Handle) -> Handle {
    mediate(|frame| {
        Ok(host!(context_db_handle: fn(Handle) -> Handle)(
            frame.context(context)?,
        ))
    })
}

pub(crate) extern "C" fn vtab_nochange(context: Handle) -> c_int {
    mediate(|frame| {
        Ok(host!(vtab_nochange: fn(Handle) -> c_int)(
            frame.context(context)?,
        ))
    })
}

/// What a module keeps with an argument of a statement.
struct Kept {
    walled: &'static crate::walled::Walled,
    data: u64,
    destructor: u64,
    life: u64,
}

extern "C" fn drop_kept(kept: *mut c_void) {
    // SAFETY: `set_auxdata` and `result_pointer` have made it, and SQLite gives it back once.
    let kept = unsafe { Box::from_raw(kept.cast::<Kept>()) };
    let (walled, destructor) = (kept.walled, kept.destructor);
    if kept.life == walled.life.get() && !matches!(destructor as isize, 0 | TRANSIENT) {
        walled.enter(std::ptr::null_mut(), &[], |_| {
            match destructor == crate::memory::free as *const () as u64 {
                true => drop(walled.free(kept.data)),
                false => gate!(destructor, fn(u64))(kept.data),
            }
            Some(())
        });
    }
}

/// The function that frees, or a function of the module's own.
pub(crate) fn destructor(frame: &Frame, at: u64) -> Answer<u64> {
    let is_known =
        matches!(at as isize, 0 | TRANSIENT) || at == crate::memory::free as *const () as u64;
    match is_known {
        true => Ok(at),
        false => frame.walled.function(at),
    }
}

fn keep(frame: &Frame, data: u64, at: u64) -> Answer<*mut c_void> {
    Ok(Box::into_raw(Box::new(Kept {
        walled: frame.walled,
        data,
        destructor: destructor(frame, at)?,
        life: frame.walled.life.get(),
    }))
    .cast())
}

pub(crate) extern "C" fn set_auxdata(context: Handle, at: c_int, data: u64, free: u64) {
    mediate(|frame| {
        let context = frame.context(context)?;
        let kept = keep(frame, data, free)?;
        let set = host!(set_auxdata: fn(Handle, c_int, *mut c_void, extern "C" fn(*mut c_void)));
        set(context, at, kept, drop_kept);
        Ok(())
    });
}

/// What is kept, if this module keeps it.
fn kept(frame: &Frame, kept: *mut c_void) -> u64 {
    // SAFETY: null, or what `keep` has made: functions of a walled module are all that see its contexts' data.
    match unsafe { kept.cast::<Kept>().as_ref() } {
        Some(kept)
            if std::ptr::eq(kept.walled, frame.walled) && kept.life == frame.walled.life.get() =>
        {
            kept.data
        }
        _ => 0,
    }
}

pub(crate) extern "C" fn get_auxdata(context: Handle, at: c_int) -> u64 {
    mediate(|frame| {
        let context = frame.context(context)?;
        let found = host!(get_auxdata: fn(Handle, c_int) -> *mut c_void)(context, at);
        Ok(kept(frame, found))
    })
}

/// Names of pointers' types by module and name: SQLite compares them, and keeps the addresses.
fn pointer_type(frame: &Frame, at: u64) -> Answer<*const c_char> {
    use std::collections::HashMap;
    use std::ffi::CString;
    use std::sync::Mutex;
    static NAMES: Mutex<Option<HashMap<String, &'static CString>>> = Mutex::new(None);
    let name = frame.walled.c_string(at)?;
    let name = format!("mullion {:p} {}", frame.walled, name.to_string_lossy());
    let mut names = NAMES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let names = names.get_or_insert_default();
    let fresh = || &*Box::leak(Box::new(CString::new(name.clone()).unwrap_or_default()));
    Ok(names.entry(name.clone()).or_insert_with(fresh).as_ptr())
}

pub(crate) extern "C" fn result_pointer(context: Handle, data: u64, kind: u64, free: u64) {
    mediate(|frame| {
        let context = frame.context(context)?;
        let (kind, kept) = (pointer_type(frame, kind)?, keep(frame, data, free)?);
        let set = host!(result_pointer: fn(Handle, *mut c_void, *const c_char, extern "C" fn(*mut c_void)));
        set(context, kept, kind, drop_kept);
        Ok(())
    });
}

pub(crate) extern "C" fn value_pointer(value: Handle, kind: u64) -> u64 {
    mediate(|frame| {
        let (value, kind) = (frame.value(value)?, pointer_type(frame, kind)?);
        let get = host!(value_pointer: fn(Handle, *const c_char) -> *mut c_void);
        Ok(kept(frame, get(value, kind)))
    })
}
