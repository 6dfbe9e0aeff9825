//! Regular expressions that a module keeps in its own memory. The core's is elsewhere, and stands for the module's in each call.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::read;
use crate::object::Kind;
use crate::states::{by_row, real};
use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::Mutex;

/// `ap_regex_t`.
const PATTERN: u64 = 24;
/// As `ap_regcomp` answers if the text is no expression.
const INVALID: u64 = 2;

impl Walled {
    /// The core's expression for one in the module's memory.
    pub(crate) fn pattern(&self, at: u64) -> Option<u64> {
        let real = lock(&self.patterns).get(&at).copied();
        real.filter(|real| self.knows(*real, Kind::Regex))
    }
}

/// It lives as long as the pool in which the module has the place for it.
pub(crate) extern "C" fn ap_regcomp(to: u64, text: u64, flags: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, PATTERN)?;
        let text = copied::name(frame, text)?;
        let (pool, ..) = walled
            .block(to)
            .ok_or("ap_regcomp: the place is not a pool's")?;
        let real = apr::symbol("ap_pregcomp").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, and the pool lives, as the module has a block of it.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let made = real(pool, text.as_ptr() as u64, flags);
        if made == 0 {
            return Ok(INVALID);
        }
        walled.know(frame, Some(pool), made, Kind::Regex)?;
        lock(&walled.patterns).insert(to, made);
        // SAFETY: the module may write there, and sees how many parts the expression has.
        unsafe { (to as *mut [u64; 3]).write((made as *const [u64; 3]).read()) };
        Ok(0)
    })
}

/// A match of a pattern has no more parts.
const PARTS: u64 = 1024;

/// Where parts of a match are, as a copy. Each is in the string, which is a copy of ours, or there is none.
pub(crate) fn matches(frame: &Frame, from: u64, count: u64, text: u64) -> Answer<Box<[u64]>> {
    let length = match text {
        0 => None,
        // It was looked at as an argument of its own, and may be a copy of ours by now.
        text => {
            let length = copied::bare_length(text);
            Some(length.ok_or_else(|| format!("{text:#x} is no string"))? as u64)
        }
    };
    each_part(frame, from, count, |_, end| match length {
        // Then httpd looks at no part.
        None => Ok(()),
        Some(length) if end <= length => Ok(()),
        Some(length) => Err(format!("in a string of {length} bytes")),
    })
}

/// The same, and each part is looked at by its start and end.
fn each_part(
    frame: &Frame,
    from: u64,
    count: u64,
    look: impl Fn(u64, u64) -> Answer<()>,
) -> Answer<Box<[u64]>> {
    if count > PARTS {
        return Err(format!("{count} parts of a match are too many"));
    }
    let mut parts = vec![0u64; count as usize].into_boxed_slice();
    // SAFETY: it is our own memory.
    unsafe { copied::into(frame, from, parts.as_mut_ptr().cast(), 8 * parts.len()) }?;
    for part in &parts {
        let (start, end) = (*part as u32 as i32, (*part >> 32) as i32);
        let (Ok(first), Ok(last)) = (u64::try_from(start), u64::try_from(end)) else {
            continue;
        };
        let looked = match first <= last {
            true => look(first, last),
            false => Err("which ends before it starts".to_owned()),
        };
        looked.map_err(|what| format!("a part of a match from {start} to {end}, {what}"))?;
    }
    Ok(parts)
}

/// Evaluates an expression. It reads the parts of the match before, and leaves those of its own.
fn evaluate(name: &'static str, [r, expression, count, parts, source, error]: [u64; 6]) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        let count = u64::from(count as u32);
        walled.must_write(source, 8)?;
        // SAFETY: the module may write, and so read, there.
        let was = unsafe { read(source) };
        let text = match was {
            0 => None,
            text => {
                let text = copied::text(frame, text);
                let mut text = text.map_err(|what| format!("{name}: argument 4: {what}"))?;
                text.push(0);
                Some(text)
            }
        };
        let own = text.as_ref().map_or(0, |text| text.as_ptr() as u64);
        if count != 0 {
            walled.must_write(parts, count.saturating_mul(8))?;
        }
        let copy = matches(frame, parts, count, own);
        let mut copy = copy.map_err(|what| format!("{name}: argument 3: {what}"))?;
        let mut word = own;
        let places = [copy.as_mut_ptr() as u64, &raw mut word as u64];
        let arguments = [r, expression, count, places[0], places[1], error];
        let answer = by_row(frame, name, "r e . . . w8", Result_::Plain, &arguments)?;
        // SAFETY: `must_write` has seen that the module may write these words.
        unsafe {
            let (from, bytes) = (copy.as_ptr().cast::<u8>(), 8 * copy.len());
            if bytes != 0 {
                // Each part is two words of 32 bits, and no more aligned than that.
                (parts as *mut u8).copy_from_nonoverlapping(from, bytes);
            }
            let now = if word == own { was } else { word };
            (source as *mut u64).write_unaligned(now);
        }
        Ok(answer)
    })
}

pub(crate) extern "C" fn ap_expr_exec_re(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    evaluate("ap_expr_exec_re", [a, b, c, d, e, f])
}

pub(crate) extern "C" fn ap_expr_str_exec_re(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
) -> u64 {
    evaluate("ap_expr_str_exec_re", [a, b, c, d, e, f])
}

/// What an error's number means. httpd takes any number below zero for a place in its list.
pub(crate) extern "C" fn ap_regerror(error: u64, pattern: u64, to: u64, room: u64) -> u64 {
    mediate(|frame| {
        if (error as i32) < 0 {
            return Err(format!("ap_regerror: {} is no error", error as i32));
        }
        let copy: [u64; PATTERN as usize / 8] = match pattern {
            0 => [0; PATTERN as usize / 8],
            pattern => copied::words(frame, pattern)?,
        };
        let own = if pattern == 0 {
            0
        } else {
            copy.as_ptr() as u64
        };
        let arguments = [error, own, to, room];
        by_row(
            frame,
            "ap_regerror",
            ". . w*3 .",
            Result_::Plain,
            &arguments,
        )
    })
}

/// What was matched of late, by expressions: copies, which an expression refers to (`ap_rxplus_t.match`) until it is used again.
static MATCHES: Mutex<Option<HashMap<u64, Vec<u8>>>> = Mutex::new(None);

extern "C" fn forget(expression: u64) -> i32 {
    lock(&MATCHES).get_or_insert_default().remove(&expression);
    0
}

/// An expression that replaces something writes what comes out, and others write nothing. One thread at a time works with it.
pub(crate) extern "C" fn ap_rxplus_exec(pool: u64, expression: u64, text: u64, to: u64) -> u64 {
    const NAME: &str = "ap_rxplus_exec";
    mediate(|frame| {
        if !call::has(frame, Kind::Replacement, expression) {
            return Err(format!("{NAME}: {expression:#x} is no expression"));
        }
        let home = frame.walled.home_of(expression).ok_or("no pool")?;
        // SAFETY: httpd has made it.
        let replaces = unsafe { read(expression + REPLACEMENT) } != 0;
        let words = if replaces { "p 3 . w8" } else { "p 3 . w8?" };
        let text = copied::name(frame, text).map_err(|what| format!("{NAME}: {what}"))?;
        let arguments = [pool, expression, text.as_ptr() as u64, to];
        let answer = by_row(frame, NAME, words, Result_::Plain, &arguments);
        // A copy of before is let go now: the expression refers to this one, or to none.
        let known = lock(&MATCHES)
            .get_or_insert_default()
            .insert(expression, text);
        if known.is_none() {
            let act = forget as *const () as usize;
            let none = apr::apr_pool_cleanup_null as *const () as usize;
            // SAFETY: the expression's pool lives, and our function stays.
            unsafe { apr::apr_pool_cleanup_register(home, expression, act, none) };
        }
        answer
    })
}

/// `ap_rxplus_t`: what replaces a match, what was matched, how many parts there are, and where they are.
const REPLACEMENT: u64 = 32;
const MATCHED: u64 = 40;
const COUNT: u64 = 48;
const PLACES: u64 = 56;

/// A part of what was matched.
pub(crate) extern "C" fn ap_rxplus_pmatch(pool: u64, expression: u64, number: u64) -> u64 {
    const NAME: &str = "ap_rxplus_pmatch";
    mediate(|frame| {
        if !call::has(frame, Kind::Replacement, expression) {
            return Err(format!("{NAME}: {expression:#x} is no expression"));
        }
        // SAFETY: httpd has made it.
        let [matched, count, places] =
            [MATCHED, COUNT, PLACES].map(|part| unsafe { read(expression + part) });
        let number = u64::from(number as u32);
        if number >= count || matched == 0 {
            return Ok(0);
        }
        // SAFETY: httpd has made so many.
        let part = unsafe { read(places + 8 * number) };
        let (start, end) = (part as u32 as i32, (part >> 32) as i32);
        let known = lock(&MATCHES);
        let text = known.as_ref().and_then(|known| known.get(&expression));
        let text = text.cloned().ok_or("nothing was matched")?;
        drop(known);
        let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else {
            return frame.walled.copy(frame, pool, b"");
        };
        let part = text.get(start..end);
        let part = part.ok_or_else(|| format!("{NAME}: no part of the string"))?;
        frame.walled.copy(frame, pool, part)
    })
}

/// What a match makes of a text, up to so many bytes.
pub(crate) fn substitute(
    frame: &Frame,
    pool: u64,
    [input, source]: [u64; 2],
    (count, parts): (u64, u64),
    most: u64,
) -> Answer<(i32, u64)> {
    let mut input = copied::text(frame, input)?;
    input.push(0);
    // Bytes need not end with a zero: httpd reads the parts alone.
    let parts = each_part(frame, parts, count, |start, end| {
        frame
            .walled
            .must_find(source.wrapping_add(start), end - start)
    })?;
    let mut made = 0u64;
    // SAFETY: it is httpd's function, with a text and a word of ours; the bytes of each part are there.
    let status = unsafe {
        let real: extern "C" fn(u64, *mut u64, *const u8, *const u8, u64, *const u64, u64) -> i32 =
            std::mem::transmute(real("ap_pregsub_ex")?);
        real(
            pool,
            &mut made,
            input.as_ptr(),
            source as *const u8,
            count,
            parts.as_ptr(),
            most,
        )
    };
    Ok((status, made))
}

pub(crate) extern "C" fn ap_pregsub_ex(
    pool: u64,
    to: u64,
    input: u64,
    source: u64,
    count: u64,
    parts: u64,
    most: u64,
) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        frame.walled.must_write(to, 8)?;
        let made = substitute(frame, pool, [input, source], (count, parts), most);
        let (status, made) = made.map_err(|what| format!("ap_pregsub_ex: {what}"))?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(made) };
        Ok(status as u32 as u64)
    })
}
