//! Pages in HTML, by libxml2's parser. A parser is the library's own. It gets a table of ours for the module's functions, which are
//! called while the parser reads.

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::held::{self, Kind};
use crate::interface::back as kind;
use crate::walled::{Answer, Walled};
use std::ffi::c_int;

/// `htmlSAXHandler`: a table of functions with the parser's own words behind them.
const WORDS: usize = 32;
/// The functions that modules may have in it.
const FUNCTIONS: [(usize, &str); 5] = [
    (14, "page_begins"),
    (15, "page_ends"),
    (17, "page_text"),
    (20, "page_note"),
    (25, "page_text"),
];
/// The functions of a table; the words behind them are not looked at.
const LAST: usize = 27;

fn real(name: &str) -> Answer<usize> {
    apr::symbol(name).ok_or_else(|| format!("{name} is not in this system"))
}

/// The module's table with functions that stand for its own.
fn table(frame: &Frame, at: u64) -> Answer<[u64; WORDS]> {
    let mut table = [0; WORDS];
    if at < 4096 {
        return Err("a parser without functions".to_owned());
    }
    let own: [u64; LAST] = copied::words(frame, at)?;
    for (place, (slot, function)) in table.iter_mut().zip(own).enumerate() {
        let known = FUNCTIONS.iter().find(|(known, _)| *known == place);
        *slot = match (function, known) {
            (0, _) => 0,
            (function, Some((_, name))) => back::stand_in(frame, kind(name), function)?,
            (_, None) => return Err(format!("a parser's function {place} is not passed on")),
        };
    }
    Ok(table)
}

/// What a pool's cleanup has.
struct Parser {
    walled: &'static Walled,
    at: u64,
}

/// The pool goes, and the parser with it. One that another thread of the module works with stays.
extern "C" fn end(data: u64) -> c_int {
    // SAFETY: `htmlCreatePushParserCtxt` has made it, and the pool calls this once.
    let parser = unsafe { Box::from_raw(data as *mut Parser) };
    if held::take(parser.walled, parser.at, Kind::Parser).is_ok()
        && let Ok(real) = real("htmlFreeParserCtxt")
    {
        // SAFETY: it is the library's function. The parser is its own, and no call has it any more.
        let real: extern "C" fn(u64) = unsafe { std::mem::transmute(real) };
        real(parser.at);
    }
    0
}

#[expect(non_snake_case, reason = "libxml2's function")]
pub(crate) extern "C" fn htmlCreatePushParserCtxt(
    functions: u64,
    data: u64,
    from: u64,
    bytes: u64,
    name: u64,
    encoding: u64,
) -> u64 {
    mediate(|frame| {
        let pool = frame.home().ok_or("a parser without a request")?;
        let mut table = table(frame, functions)?;
        let bytes = u64::from(bytes as u32);
        frame.walled.must_find(from, bytes)?;
        let name = match name {
            0 => None,
            name => Some(copied::name(frame, name)?),
        };
        let name = name.as_ref().map_or(0, |name| name.as_ptr() as u64);
        let real = real("htmlCreatePushParserCtxt")?;
        // SAFETY: it is the library's function. It copies the table, which is ours, and reads what the module may read.
        let real: extern "C" fn(*mut u64, u64, u64, c_int, u64, c_int) -> u64 =
            unsafe { std::mem::transmute(real) };
        let (bytes, encoding) = (bytes as c_int, encoding as c_int);
        let made = real(table.as_mut_ptr(), data, from, bytes, name, encoding);
        if made != 0 {
            held::keep(frame.walled, made, Kind::Parser, 0);
            let parser = Parser {
                walled: frame.walled,
                at: made,
            };
            let parser = Box::into_raw(Box::new(parser)) as u64;
            let child = apr::apr_pool_cleanup_null as *const () as usize;
            let plain = end as *const () as usize;
            // SAFETY: the pool is that of the request or the connection that the call was given.
            unsafe { apr::apr_pool_cleanup_register(pool, parser, plain, child) };
        }
        Ok(made)
    })
}

/// The pool's own cleanup does it ([`end`]).
#[expect(non_snake_case, reason = "libxml2's function")]
pub(crate) extern "C" fn htmlFreeParserCtxt(_: u64) -> u64 {
    0
}

#[expect(non_snake_case, reason = "libxml2's function")]
pub(crate) extern "C" fn htmlParseChunk(parser: u64, from: u64, bytes: u64, last: u64) -> u64 {
    mediate(|frame| {
        let _held = held::hold(frame.walled, parser, Kind::Parser, false)?;
        let bytes = u64::from(bytes as u32);
        if bytes > i32::MAX as u64 {
            return Err("htmlParseChunk: a length below zero".to_owned());
        }
        frame.walled.must_find(from, bytes)?;
        // SAFETY: it is the library's function, with a parser that no other call has.
        let real: extern "C" fn(u64, u64, c_int, c_int) -> c_int =
            unsafe { std::mem::transmute(real("htmlParseChunk")?) };
        Ok(real(parser, from, bytes as c_int, last as c_int) as u32 as u64)
    })
}

#[expect(non_snake_case, reason = "libxml2's function")]
pub(crate) extern "C" fn xmlCtxtUseOptions(parser: u64, options: u64) -> u64 {
    mediate(|frame| {
        let _held = held::hold(frame.walled, parser, Kind::Parser, false)?;
        // SAFETY: it is the library's function, with a parser that no other call has.
        let real: extern "C" fn(u64, c_int) -> c_int =
            unsafe { std::mem::transmute(real("xmlCtxtUseOptions")?) };
        Ok(real(parser, options as c_int) as u32 as u64)
    })
}
