//! `sqlite3_str`: strings that SQLite builds for a module.

use crate::api::host;
use crate::memory::adopt;
use crate::values::counted;
use crate::walled::{Answer, Frame, Handle, mediate, refused};
use std::ffi::{c_char, c_int};

pub(crate) fn drop_string(text: Handle) {
    let text = host!(str_finish: fn(Handle) -> *mut c_char)(text);
    host!(free: fn(*mut c_char))(text);
}

/// It must be one that the module has.
pub(crate) fn known(frame: &Frame, text: Handle) -> Answer<Handle> {
    let known = frame.walled.strings.borrow().contains(&(text as usize));
    match known {
        true => Ok(text),
        false => refused(format!("{text:p} is no sqlite3_str of the module's")),
    }
}

pub(crate) extern "C" fn str_new(db: Handle) -> Handle {
    mediate(|frame| {
        let db = if db.is_null() { db } else { frame.db(db)? };
        let text = host!(str_new: fn(Handle) -> Handle)(db);
        frame.walled.strings.borrow_mut().insert(text as usize);
        Ok(text)
    })
}

pub(crate) extern "C" fn str_finish(text: Handle) -> u64 {
    mediate(|frame| {
        let text = known(frame, text)?;
        frame.walled.strings.borrow_mut().remove(&(text as usize));
        let text = host!(str_finish: fn(Handle) -> *mut c_char)(text);
        Ok(adopt(frame.walled, text))
    })
}

pub(crate) extern "C" fn str_append(text: Handle, at: u64, bytes: c_int) {
    mediate(|frame| {
        let (text, more) = (known(frame, text)?, counted(frame, at, bytes)?);
        let append = host!(str_append: fn(Handle, *const u8, c_int));
        append(
            text,
            more.as_ptr(),
            c_int::try_from(more.len()).unwrap_or(0),
        );
        Ok(())
    });
}

pub(crate) extern "C" fn str_appendall(text: Handle, at: u64) {
    str_append(text, at, -1);
}

pub(crate) extern "C" fn str_appendchar(text: Handle, count: c_int, letter: c_char) {
    mediate(|frame| {
        host!(str_appendchar: fn(Handle, c_int, c_char))(known(frame, text)?, count, letter);
        Ok(())
    });
}

pub(crate) extern "C" fn str_reset(text: Handle) {
    mediate(|frame| {
        host!(str_reset: fn(Handle))(known(frame, text)?);
        Ok(())
    });
}

pub(crate) extern "C" fn str_errcode(text: Handle) -> c_int {
    mediate(|frame| Ok(host!(str_errcode: fn(Handle) -> c_int)(known(frame, text)?)))
}

pub(crate) extern "C" fn str_length(text: Handle) -> c_int {
    mediate(|frame| Ok(host!(str_length: fn(Handle) -> c_int)(known(frame, text)?)))
}

/// A copy that is good until the call returns. SQLite's own would be good until the string changes, and could be written.
pub(crate) extern "C" fn str_value(text: Handle) -> u64 {
    mediate(|frame| {
        let at = host!(str_value: fn(Handle) -> *const c_char)(known(frame, text)?);
        Ok(frame.walled.lend_text(at))
    })
}
