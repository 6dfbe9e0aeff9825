//! Strings and arrays that modules with checked loads put into requests and tables. They are looked at when modules call the host, and when
//! their calls end.

use super::structures::{ARRAY, LANGUAGES, TEXTS};
use super::{CALLS, Call, OF_REQUEST, Texts};
use crate::apr;
use crate::copied;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::slots::WIDE;
use crate::walled::{Answer, Walled};
use mullion_word_runtime::Granted;

/// What a request has in the fields that modules may set.
pub(super) fn fields() -> impl Iterator<Item = u64> {
    TEXTS.into_iter().chain([LANGUAGES])
}

/// Requests that a call's module may set fields of.
pub(super) fn all(frame: &Frame) -> impl Iterator<Item = u64> {
    frame.requests().chain(frame.walled.made(Kind::Request))
}

/// # Safety
/// It is a request of the core's, which lives.
pub(super) unsafe fn texts(r: u64) -> Texts {
    let mut texts = [0; TEXTS.len() + 1];
    for (text, at) in texts.iter_mut().zip(fields()) {
        // SAFETY: the caller has said that the request lives, and these are its fields.
        *text = unsafe { read(r + at) };
    }
    texts
}

/// The host has made a request for the call that runs.
pub(crate) fn made(frame: &Frame, r: u64) {
    CALLS.with_borrow_mut(|calls| {
        let call = calls.last_mut();
        if let Some(call) = call.filter(|call| std::ptr::eq(call.frame, frame)) {
            call.requests.retain(|(known, _)| *known != r);
            // SAFETY: the host has just made it.
            call.requests.push((r, unsafe { texts(r) }));
        }
    });
}

/// A call goes into a module.
pub(crate) fn enter(frame: &Frame, arguments: &[u64; WIDE]) -> Answer<()> {
    // Others see from now on all that the module below has set so far.
    let published = frame.outer().map_or(Ok(()), |outer| publish(outer, true));
    let mut requests: Vec<(u64, Texts)> = Vec::new();
    for r in all(frame) {
        if requests.iter().all(|(known, _)| *known != r) {
            // SAFETY: it is a request of the core's.
            requests.push((r, unsafe { texts(r) }));
        }
    }
    let call = Call {
        frame,
        arguments: *arguments,
        requests,
        granted: Vec::new(),
        copies: Vec::new(),
    };
    CALLS.with_borrow_mut(|calls| calls.push(call));
    published
}

/// A call comes out of a module.
pub(crate) fn leave(frame: &Frame) -> Answer<()> {
    let published = publish(frame, true);
    let call = CALLS.with_borrow_mut(|calls| match calls.last() {
        Some(call) if std::ptr::eq(call.frame, frame) => calls.pop(),
        _ => None,
    });
    if let Some(call) = call {
        for (_, copy) in call.copies {
            frame.walled.unpiece(copy);
        }
        if !call.granted.is_empty() {
            Granted::end_all(call.granted);
        }
    }
    published
}

/// What the module has put into requests since: its own strings become the request's, and it must be able to read others. The
/// core reads these fields, so they are looked at whenever the module calls the host, too. It may go on to write its own strings
/// then, so these are copied when the call ends, or another module is called.
pub(crate) fn publish(frame: &Frame, is_over: bool) -> Answer<()> {
    let known = CALLS.with_borrow_mut(|calls| {
        let call = calls.last_mut();
        let call = call.filter(|call| std::ptr::eq(call.frame, frame));
        call.map_or(Vec::new(), |call| std::mem::take(&mut call.requests))
    });
    if known.is_empty() {
        return Ok(());
    }
    let mut refused = Ok(());
    // Parts of requests may have gone.
    let here: Vec<u64> = all(frame).collect();
    let known = known.into_iter().filter(|(r, _)| here.contains(r));
    let known: Vec<(u64, Texts)> = known
        .map(|(r, mut texts)| {
            let looked = publish_one(frame, r, &mut texts, is_over);
            refused = std::mem::replace(&mut refused, Ok(())).and(looked);
            (r, texts)
        })
        .collect();
    CALLS.with_borrow_mut(|calls| {
        if let Some(call) = calls
            .last_mut()
            .filter(|call| std::ptr::eq(call.frame, frame))
        {
            call.requests = known;
        }
    });
    refused
}

pub(super) fn publish_one(frame: &Frame, r: u64, texts: &mut Texts, is_over: bool) -> Answer<()> {
    let mut refused = Ok(());
    for (text, field) in texts.iter_mut().zip(fields()) {
        // SAFETY: the request is the core's, and lives until its call ends.
        let now = unsafe { read(r + field) };
        if now == *text {
            continue;
        }
        // The module may not write there: a function of the host has, which has looked at what it was given.
        if frame.walled.reads && !OF_REQUEST.has(field) && !frame.walled.writes(now, 1) {
            *text = now;
            continue;
        }
        let made = match now {
            0 => Ok(None),
            now => published(frame, r, field, now, is_over),
        };
        // SAFETY: the field is the request's; it gets what was made in its pool, or what it had.
        let set = |word: u64| unsafe { ((r + field) as *mut u64).write(word) };
        match made {
            Ok(_) if !is_over => {}
            Ok(None) => *text = now,
            Ok(Some(made)) => {
                set(made);
                *text = made;
            }
            Err(why) => {
                set(*text);
                let what = layout::field_at("request_rec", field).unwrap_or("request_rec");
                refused = refused.and(Err(format!("`{what}`: {why}")));
            }
        }
    }
    refused
}

/// What a request gets in the place of a module's own string or array of strings.
pub(super) fn published(
    frame: &Frame,
    r: u64,
    field: u64,
    at: u64,
    is_over: bool,
) -> Answer<Option<u64>> {
    let walled = frame.walled;
    // SAFETY: the request is the core's.
    let pool = unsafe { read(r + layout::R_POOL) };
    if field != LANGUAGES {
        let text = copied::text_of(walled, at)?;
        // SAFETY: the request's thread takes memory of its pool.
        return Ok((is_over && walled.writes(at, 1)).then(|| unsafe { copied::keep(pool, &text) }));
    }
    if !walled.writes(at, ARRAY) {
        walled.must_read(at, ARRAY)?;
        return Ok(None);
    }
    names(frame, pool, at, is_over).map(Some)
}

/// Words of a module, of which this need not be the newest call.
pub(super) fn words<const N: usize>(walled: &'static Walled, from: u64) -> Answer<[u64; N]> {
    let mut words = [0u64; N];
    walled.must_read(from, 8 * N as u64)?;
    // SAFETY: the module may read there, and there is room.
    match unsafe { mullion_word_runtime::copy_at(from as usize, words.as_mut_ptr().cast(), 8 * N) }
    {
        bytes if bytes == 8 * N => Ok(words),
        _ => Err(format!("{from:#x} cannot be read")),
    }
}

/// A copy of an array of strings in a pool.
pub(super) fn names(frame: &Frame, pool: u64, at: u64, is_kept: bool) -> Answer<u64> {
    let walled = frame.walled;
    let head: [u64; 4] = words(walled, at)?;
    let count = head[1] >> 32;
    if count > 1024 || head[1] as u32 != 8 {
        return Err("is no array of strings".to_owned());
    }
    let mut made = Vec::new();
    for n in 0..count {
        let [text] = words(walled, head[3] + 8 * n)?;
        let text = copied::text_of(walled, text)?;
        if is_kept {
            // SAFETY: the pool is the request's or the table's, with which this thread works.
            made.push(unsafe { copied::keep(pool, &text) });
        }
    }
    if !is_kept {
        return Ok(0);
    }
    // SAFETY: as above; an array has a head and its elements.
    unsafe {
        let array = apr::apr_palloc(pool, ARRAY + 8 * count.max(1));
        let elements = array + ARRAY;
        (array as *mut [u64; 4]).write([pool, count << 32 | 8, count, elements]);
        for (n, text) in (0..).zip(made) {
            ((elements + 8 * n) as *mut u64).write(text);
        }
        Ok(array)
    }
}

/// What certain modules put into tables, and is no string: an array of strings, and structures of their own by names that begin so.
const ARRAY_NAME: &[u8] = b"ap-mime-exceptions-list";
const STRUCTURES: [(&str, &[u8]); 2] = [
    ("session_cookie_module", b"mod_session_cookie"),
    ("session_dbd_module", b"mod_session_dbd"),
];

/// Whether a call puts such a thing into a table, which is done then. The table gets a copy of the array, as of its name. A structure's
/// address is all that others see.
pub(crate) fn puts(frame: &Frame, name: &str, arguments: &[u64]) -> Answer<bool> {
    let [table, key, value, ..] = *arguments else {
        return Ok(false);
    };
    if name != "apr_table_setn" || value == 0 {
        return Ok(false);
    }
    let begins = STRUCTURES.iter().find(|(own, _)| *own == frame.walled.name);
    let length = copied::bare_length(key).unwrap_or(0);
    if begins.is_none() && length != ARRAY_NAME.len() {
        return Ok(false);
    }
    let key = copied::text(frame, key)?;
    let is_array = key == ARRAY_NAME;
    let is_structure = begins.is_some_and(|(_, begins)| key.starts_with(begins));
    if !(is_array || is_structure) || !crate::call::has(frame, Kind::Table, table) {
        return Ok(false);
    }
    // SAFETY: the table is one that the module may pass, and begins with its pool, with which this thread works.
    unsafe {
        let pool = read(table);
        let value = match is_array {
            true => names(frame, pool, value, true)?,
            false => value,
        };
        let key = copied::keep(pool, &key);
        apr::apr_table_setn(table, key as *const _, value as *const _);
    }
    Ok(true)
}

/// The function that copies what it puts into a table, for one that does not: others read what a module puts there.
pub(crate) fn copies(name: &str) -> Option<&'static str> {
    match name {
        "apr_table_setn" => Some("apr_table_set"),
        "apr_table_addn" => Some("apr_table_add"),
        "apr_table_mergen" => Some("apr_table_merge"),
        _ => None,
    }
}
