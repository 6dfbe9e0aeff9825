//! Variadic functions. A gate passes six integers in registers, eight numbers of floating point, and sixteen words of the
//! stack. So a function with all of these as parameters gets them, too.

use crate::apr;
use crate::back;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::interface::{Answer as Result_, back as kind};
use crate::layout::{self, read};
use crate::libraries::scanned;
use crate::listed::{self, List, Words};
use crate::object::Kind;
use crate::own::pass;
use crate::rings::Passing;
use crate::statements;
use crate::states::by_row;
use crate::walled::Answer;
use std::mem::MaybeUninit;

/// What a variadic call passes.
struct Passed {
    integers: [u64; 6],
    floats: [f64; 8],
    stacked: [u64; 16],
}

impl Passed {
    /// Integers from the one at `first` on.
    fn words(&self, first: usize) -> impl Iterator<Item = u64> {
        self.integers.into_iter().chain(self.stacked).skip(first)
    }

    /// Integers of a format: those from the one at `first` on.
    fn behind(&self, first: usize) -> Behind<'_> {
        Behind(self, first)
    }

    /// Pointers up to a null pointer.
    fn list(&self, first: usize) -> Answer<Vec<u64>> {
        let mut all = Vec::new();
        for word in self.words(first) {
            match word {
                0 => return Ok(all),
                word => all.push(word),
            }
        }
        Err("more arguments than the wall passes on".to_owned())
    }
}

/// Integers that a format may read.
struct Behind<'a>(&'a Passed, usize);

impl Words for Behind<'_> {
    fn word(&self, place: usize) -> Option<u64> {
        let Behind(passed, first) = self;
        let place = first + place;
        let behind = || passed.stacked.get(place.checked_sub(6)?).copied();
        passed.integers.get(place).copied().or_else(behind)
    }
}

macro_rules! variadic {
    ($($name:ident = $act:expr;)*) => { $(
        pub(crate) extern "C" fn $name(
            a: u64, b: u64, c: u64, d: u64, e: u64, f: u64,
            x0: f64, x1: f64, x2: f64, x3: f64, x4: f64, x5: f64, x6: f64, x7: f64,
            s0: u64, s1: u64, s2: u64, s3: u64, s4: u64, s5: u64, s6: u64, s7: u64,
            s8: u64, s9: u64, s10: u64, s11: u64, s12: u64, s13: u64, s14: u64, s15: u64,
        ) -> u64 {
            let passed = Passed {
                integers: [a, b, c, d, e, f],
                floats: [x0, x1, x2, x3, x4, x5, x6, x7],
                stacked: [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15],
            };
            let act: fn(&Frame, &Passed) -> Answer<u64> = $act;
            mediate(|frame| act(frame, &passed).map_err(|what| format!(concat!(stringify!($name), ": {}"), what)))
        }
    )* };
}

variadic! {
    apr_pstrcat = |frame, passed| {
        let mut text = Vec::new();
        for piece in passed.list(1)? {
            text.extend(copied::text(frame, piece)?);
        }
        frame.walled.copy(frame, passed.integers[0], &text)
    };
    apr_psprintf = |frame, passed| {
        let [pool, format, c, d, e, f] = passed.integers;
        let format = checked(frame, format, &passed.behind(2), true)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // Nearly all are short: what fits here is copied once.
        let mut line = [const { MaybeUninit::<u8>::uninit() }; LINE];
        // SAFETY: it is as long as is said, and the format writes nothing by its arguments.
        let length = unsafe { apr::apr_snprintf(line.as_mut_ptr() as u64, LINE as u64, format.at(), c, d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) };
        if let Ok(length) = usize::try_from(length)
            && length < LINE - 1
        {
            // SAFETY: APR has written so many bytes there, and says less if there was no room.
            let text = unsafe { std::slice::from_raw_parts(line.as_ptr().cast::<u8>(), length) };
            return frame.walled.copy(frame, pool, text);
        }
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        // SAFETY: the pool lives, and the format writes nothing by its arguments.
        let made = unsafe { apr::apr_psprintf(pool, format.at(), c, d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) };
        // SAFETY: APR's strings end with a zero.
        frame.walled.copy(frame, pool, unsafe { apr::text(made) })
    };
    apr_snprintf = |frame, passed| {
        let [to, bytes, format, d, e, f] = passed.integers;
        frame.walled.must_write(to, bytes)?;
        let format = checked(frame, format, &passed.behind(3), true)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: the module may write so much there, and the format writes nothing by its arguments.
        Ok(unsafe { apr::apr_snprintf(to, bytes, format.at(), d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) } as u64)
    };
    snprintf = |frame, passed| {
        let [to, bytes, format, d, e, f] = passed.integers;
        frame.walled.must_write(to, bytes)?;
        let format = checked(frame, format, &passed.behind(3), false)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: the module may write so much there, and the format writes nothing by its arguments.
        Ok(unsafe { libc::snprintf(to as *mut _, bytes as usize, format.at() as *const _, d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) } as u64)
    };
    ap_rprintf = |frame, passed| {
        let [r, format, c, d, e, f] = passed.integers;
        a_request(frame, r)?;
        let format = checked(frame, format, &passed.behind(2), true)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: it is a request, and the format writes nothing by its arguments.
        Ok(unsafe { apr::ap_rprintf(r, format.at(), c, d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) } as u64)
    };
    ap_rvputs = |frame, passed| {
        let r = passed.integers[0];
        a_request(frame, r)?;
        let mut sum = 0u64;
        for piece in passed.list(1)? {
            let text = copied::text(frame, piece)?;
            let bytes = text.len();
            let length = i32::try_from(bytes).map_err(|_| "a string is too long")?;
            // SAFETY: it is a request, and a string of ours of this length.
            if unsafe { apr::ap_rwrite(text.as_ptr() as u64, length, r) } < 0 {
                return Ok(u64::from(u32::MAX));
            }
            sum += bytes as u64;
        }
        Ok(sum)
    };
    ap_log_error_ = |frame, passed| {
        let server = passed.integers[5];
        if server != 0 && !frame.has_server(server) {
            return Err(format!("{server:#x} is no server"));
        }
        log(frame, passed, apr::ap_log_error_)
    };
    ap_log_rerror_ = |frame, passed| {
        a_request(frame, passed.integers[5])?;
        log(frame, passed, apr::ap_log_rerror_)
    };
    ap_log_cerror_ = |frame, passed| match frame.has_connection(passed.integers[5]) {
        true => log(frame, passed, apr::ap_log_cerror_),
        false => Err(format!("{:#x} is no connection that the module was given", passed.integers[5])),
    };
    ap_log_perror_ = |frame, passed| {
        frame.only_computes();
        if passed.integers[5] != 0 {
            frame.walled.pool(frame, passed.integers[5])?;
        }
        log(frame, passed, apr::ap_log_perror_)
    };
    ap_allow_methods = |frame, passed| allow(frame, passed, false);
    ap_allow_standard_methods = |frame, passed| allow(frame, passed, true);
    ap_pass_brigade_fchk = |frame, passed| {
        let [r, brigade, format, ..] = passed.integers;
        a_request(frame, r)?;
        // SAFETY: it is a request.
        let first = unsafe { read(r + layout::R_OUTPUT_FILTERS) };
        let _unused = format;
        // Its own text for the log is not written: the core's is.
        pass(frame, first, brigade)
    };
    apr_brigade_printf = |frame, passed| {
        let [brigade, flush, filter, format, e, f] = passed.integers;
        let flush = flushing(frame, flush, filter)?;
        let format = checked(frame, format, &passed.behind(4), true)?;
        let mut passing = Passing::new(frame);
        let brigade = passing.brigade(brigade)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: the brigade is the core's, and the format writes nothing by its arguments.
        let status = unsafe { apr::apr_brigade_printf(brigade, flush, filter, format.at(), e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) };
        passing.end()?;
        Ok(status as u64)
    };
    apr_brigade_putstrs = |frame, passed| {
        let [brigade, flush, filter, ..] = passed.integers;
        let flush = flushing(frame, flush, filter)?;
        strings(frame, (brigade, flush, filter), &passed.list(3)?)
    };
    ap_fprintf = |frame, passed| {
        let [filter, brigade, format, d, e, f] = passed.integers;
        behind(frame, filter)?;
        let format = checked(frame, format, &passed.behind(3), true)?;
        let mut passing = Passing::new(frame);
        let brigade = passing.brigade(brigade)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: filter and brigade are the core's, and the format writes nothing by its arguments.
        let status = unsafe { apr::ap_fprintf(filter, brigade, format.at(), d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) };
        passing.end()?;
        Ok(status as u32 as u64)
    };
    ap_fputstrs = |frame, passed| {
        let [filter, brigade, ..] = passed.integers;
        behind(frame, filter)?;
        let flush = apr::symbol("ap_filter_flush").ok_or("the server does not have it")? as u64;
        strings(frame, (brigade, flush, filter), &passed.list(2)?)
    };
    __isoc99_sscanf = |frame, passed| {
        let [text, format, ..] = passed.integers;
        // Copies: what the function writes may lie over the module's own.
        let of = copied::with_zero;
        let (text, format) = (of(text)?, of(format)?);
        let until_zero = |copy: &[u8]| copy.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let sizes = scanned(&until_zero(&format), &until_zero(&text))?;
        let places: Vec<u64> = passed.words(2).take(sizes.len()).collect();
        if places.len() < sizes.len() {
            return Err("more arguments than the wall passes on".to_owned());
        }
        for (at, bytes) in places.iter().zip(sizes) {
            frame.walled.must_write(*at, bytes)?;
        }
        let [_, _, c, d, e, f] = passed.integers;
        let s = &passed.stacked;
        // SAFETY: both are strings; the format writes nothing but what was looked at.
        Ok(unsafe { libc::sscanf(text.as_ptr().cast(), format.as_ptr().cast(), c, d, e, f,
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) } as u64)
    };
    apr_file_printf = |frame, passed| {
        let [file, format, c, d, e, f] = passed.integers;
        if !frame.walled.knows(file, Kind::File) {
            return Err(format!("{file:#x} is no file that the module has opened"));
        }
        let format = checked(frame, format, &passed.behind(2), true)?;
        let (x, s) = (&passed.floats, &passed.stacked);
        // SAFETY: it is the module's file, and the format writes nothing by its arguments.
        Ok(unsafe { apr::apr_file_printf(file, format.at(), c, d, e, f, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15]) } as u64)
    };
    apr_table_do = |frame, passed| {
        let [each, data, table, ..] = passed.integers;
        let each = match back::stand_in(frame, kind("each"), each)? {
            0 => return Err("no function".to_owned()),
            each => each,
        };
        // Tables of the configurations of others are read, as the module may itself. One of the module's stays meanwhile.
        frame.only_computes();
        let is_known = call::has(frame, Kind::Table, table);
        let keys = passed.list(3)?.into_iter().map(|key| copied::name(frame, key).map(Some));
        let keys: Vec<_> = keys.collect::<Answer<_>>()?;
        let entries = |key: Option<Vec<u8>>| match is_known {
            true => Ok(entries(table, copied::place(key.as_ref()))),
            false => read_entries(frame, table, key.as_deref()),
        };
        let passes: Vec<_> = match keys.is_empty() {
            true => vec![entries(None)?],
            // APR, too, goes through the table once for each key.
            false => keys.into_iter().map(entries).collect::<Answer<_>>()?,
        };
        frame.end_turns();
        // SAFETY: it stands for a function of the module's, and takes three words.
        let each = unsafe { std::mem::transmute::<u64, extern "C" fn(u64, u64, u64) -> i32>(each) };
        let mut answer = 1;
        for pass in passes {
            if pass.into_iter().any(|[key, value]| each(data, key, value) == 0) {
                answer = 0;
            }
        }
        Ok(answer)
    };
    ap_cookie_write = |frame, passed| cookie(frame, passed, "ap_cookie_write", (2, 5));
    ap_cookie_write2 = |frame, passed| cookie(frame, passed, "ap_cookie_write2", (2, 5));
    ap_cookie_remove = |frame, passed| cookie(frame, passed, "ap_cookie_remove", (1, 3));
    ap_cookie_remove2 = |frame, passed| cookie(frame, passed, "ap_cookie_remove2", (1, 3));
    apr_dbd_pvselect = |frame, passed| database(frame, passed, "apr_dbd_pvselect", (true, false));
    apr_dbd_pvquery = |frame, passed| database(frame, passed, "apr_dbd_pvquery", (false, false));
    apr_dbd_pvbselect = |frame, passed| database(frame, passed, "apr_dbd_pvbselect", (true, true));
    apr_dbd_pvbquery = |frame, passed| database(frame, passed, "apr_dbd_pvbquery", (false, true));
    apr_dbd_pquery = |frame, passed| {
        let [driver, pool, handle, to, statement, count] = passed.integers;
        let values = statements::listed(frame, statement, passed.stacked[0])?;
        let arguments = [driver, pool, handle, to, statement, count, values.at()];
        by_row(frame, "apr_dbd_pquery", "V p H w4 Q . .", Result_::Plain, &arguments)
    };
    apr_dbd_pselect = |frame, passed| {
        let [driver, pool, handle, to, statement, random] = passed.integers;
        let values = statements::listed(frame, statement, passed.stacked[1])?;
        let arguments = [driver, pool, handle, to, statement, random, passed.stacked[0], values.at()];
        by_row(frame, "apr_dbd_pselect", "V p H >O Q . . .", Result_::Plain, &arguments)
    };
    ap_log_rdata_ = |frame, passed| {
        let ([file, line, index, level, r, label], s) = (passed.integers, &passed.stacked);
        module_index(index)?;
        let arguments = [file, line, index, level, r, label, s[0], s[1], s[2]];
        by_row(frame, "ap_log_rdata_", "\"? . . . r \"? '*7 . .", Result_::Plain, &arguments)
    };
    ap_expr_parse_cmd_mi = |frame, passed| {
        let [cmd, text, flags, error, lookup, index] = passed.integers;
        if !frame.roots.contains(&crate::frame::Root::Command(cmd)) {
            return Err(format!("{cmd:#x} is no state of this directive"));
        }
        let text = copied::name(frame, text)?;
        let text = text.as_ptr() as u64;
        module_index(index)?;
        frame.walled.must_write(error, 8)?;
        let lookup = match lookup {
            0 => 0,
            own if frame.walled.is_gate(own) => back::stand_in(frame, kind("lookup"), own)?,
            other if Some(other as usize) == apr::symbol("ap_expr_lookup_default") => other,
            other => return Err(format!("{other:#x} is no function of the module")),
        };
        // httpd asks the word that it has just written whether there is a tree.
        let mut why = 0u64;
        let place = &raw mut why as u64;
        // SAFETY: the state is the core's, the error's place ours, the function one that the module may pass.
        let made = unsafe { apr::ap_expr_parse_cmd_mi(cmd, text, flags, place, lookup, index) };
        frame.walled.must_write(error, 8)?;
        // SAFETY: the module may write there.
        unsafe { (error as *mut u64).write_unaligned(why) };
        // SAFETY: `cmd` is the state that the core has passed to this call.
        let pool = unsafe { read(cmd + layout::CMD_POOL) };
        frame.walled.know(frame, Some(pool), made, Kind::Expression)?;
        Ok(made)
    };
}

/// All entries of a table, or those of a key. The module's function may change the table while it is told of it, so APR has gone through
/// the table before.
fn entries(table: u64, key: u64) -> Vec<[u64; 2]> {
    extern "C" fn note(to: u64, key: u64, value: u64) -> i32 {
        // SAFETY: `entries` has passed its own list, and waits.
        unsafe { &mut *(to as *mut Vec<[u64; 2]>) }.push([key, value]);
        1
    }
    let mut all: Vec<[u64; 2]> = Vec::new();
    let (note, to) = (note as *const () as u64, &raw mut all as u64);
    // SAFETY: the module may read tables; ours is called with a list of ours.
    unsafe { apr::apr_table_do(note, to, table, key, 0u64) };
    all
}

/// The same of a table that the module was not given: read as a copy, because it may be none.
fn read_entries(frame: &Frame, table: u64, key: Option<&[u8]>) -> Answer<Vec<[u64; 2]>> {
    /// More than any table has.
    const MOST: u64 = 1 << 20;
    const ENTRY: u64 = 32;
    let [_, counts, _, elements] = copied::words(frame, table)?;
    // A size of 32 bits, and a count of as many.
    let count = counts >> 32;
    if count > MOST {
        return Err(format!("{table:#x} is no table"));
    }
    let wanted = key.and_then(|key| key.strip_suffix(&[0]));
    let mut all = Vec::new();
    for place in 0..count {
        let [name, value]: [u64; 2] = copied::words(frame, elements.wrapping_add(ENTRY * place))?;
        let is_wanted = match wanted {
            None => true,
            Some(wanted) => copied::text(frame, name)?.eq_ignore_ascii_case(wanted),
        };
        if is_wanted && name != 0 {
            all.push([name, value]);
        }
    }
    Ok(all)
}

/// Strings into a brigade, which is passed to the filter when it is long.
fn strings(
    frame: &Frame,
    (brigade, flush, filter): (u64, u64, u64),
    pieces: &[u64],
) -> Answer<u64> {
    let mut passing = Passing::new(frame);
    let brigade = passing.brigade(brigade)?;
    let mut status = 0;
    for piece in pieces {
        let text = copied::text(frame, *piece)?;
        let (at, bytes) = (text.as_ptr() as u64, text.len() as u64);
        // SAFETY: the brigade is the core's, and the string of ours has this length. A copy lies there behind the call.
        status = unsafe { apr::apr_brigade_write(brigade, flush, filter, at, bytes) };
        if status != 0 {
            break;
        }
    }
    passing.end()?;
    Ok(status as u32 as u64)
}

/// A filter that follows.
fn behind(frame: &Frame, filter: u64) -> Answer<()> {
    match filter != 0 && crate::filters::leads_out(frame, filter) {
        true => Ok(()),
        false => Err(format!("{filter:#x} is no filter of this request")),
    }
}

/// Behind a request come so many strings, then attributes, which there need not be. From the second number on come tables, up to a null pointer.
fn cookie(
    frame: &Frame,
    passed: &Passed,
    name: &str,
    (strings, first): (usize, usize),
) -> Answer<u64> {
    a_request(frame, passed.integers[0])?;
    let mut texts = Vec::new();
    for text in passed.words(1).take(strings) {
        texts.push(copied::name(frame, text)?);
    }
    let attributes = copied::name_or_null(frame, passed.integers[1 + strings])?;
    for table in passed.list(first)? {
        if !call::has(frame, Kind::Table, table) {
            return Err(format!("{table:#x} is no table of the module"));
        }
    }
    let mut integers = passed.integers;
    let copies = texts.iter().map(Some).chain([attributes.as_ref()]);
    for (place, copy) in integers[1..].iter_mut().zip(copies) {
        *place = copied::place(copy);
    }
    let [r, b, c, d, e, f] = integers;
    let s = &passed.stacked;
    let real = apr::symbol(name).ok_or("the server does not have it")?;
    // SAFETY: it is httpd's function, with a request, strings of ours, and tables that were looked at.
    let status = unsafe {
        let real: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, ...) -> i32 =
            std::mem::transmute(real);
        real(
            r, b, c, d, e, f, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10],
            s[11], s[12], s[13], s[14], s[15],
        )
    };
    Ok(status as u32 as u64)
}

/// A prepared statement with its values: the driver reads as many as it has counted.
fn database(
    frame: &Frame,
    passed: &Passed,
    name: &str,
    (selects, is_binary): (bool, bool),
) -> Answer<u64> {
    let walled = frame.walled;
    let [driver, pool, handle, to, statement, random] = passed.integers;
    for (object, kind) in [
        (driver, Kind::DbDriver),
        (handle, Kind::DbHandle),
        (statement, Kind::Statement),
    ] {
        if !walled.knows_or_shares(object, kind) {
            return Err(format!(
                "{object:#x} is nothing of a database of the module's"
            ));
        }
    }
    walled.pool(frame, pool)?;
    walled.must_write(to, if selects { 8 } else { 4 })?;
    let mut results = match selects {
        // SAFETY: the module may write, and so read, there.
        true => unsafe { read(to) },
        false => 0,
    };
    if results != 0 && !walled.knows_or_shares(results, Kind::Results) {
        return Err(format!("{results:#x} is no result of the module's"));
    }
    // Values are behind the statement, or behind the number that says whether rows come in any order.
    let first = if selects { 6 } else { 5 };
    let words: Vec<u64> = passed.words(first).collect();
    let values = statements::passed(frame, statement, is_binary, &words)?;
    let all = values.passed();
    let (random, s) = match selects {
        true => (random, &all[..]),
        false => (all[0], &all[1..]),
    };
    let last = s.get(15).copied().unwrap_or(0);
    let real = apr::symbol(name).ok_or("the server does not have it")?;
    // SAFETY: it is APR's function, with objects and values that were looked at, and a word of ours.
    let status = unsafe {
        let real: unsafe extern "C" fn(u64, u64, u64, *mut u64, u64, u64, ...) -> i32 =
            std::mem::transmute(real);
        real(
            driver,
            pool,
            handle,
            &mut results,
            statement,
            random,
            s[0],
            s[1],
            s[2],
            s[3],
            s[4],
            s[5],
            s[6],
            s[7],
            s[8],
            s[9],
            s[10],
            s[11],
            s[12],
            s[13],
            s[14],
            last,
        )
    };
    // SAFETY: the module may write there.
    unsafe {
        match selects {
            true => {
                let home = walled.home_of(handle).unwrap_or(0);
                let home = crate::pools::first_to_go(pool, home)
                    .ok_or("a result in a pool that the connection has nothing to do with")?;
                walled.know(frame, Some(home), results, Kind::Results)?;
                walled.know_part(results, handle);
                (to as *mut u64).write(results);
            }
            false => (to as *mut u32).write(results as u32),
        }
    }
    Ok(status as u32 as u64)
}

fn flushing(frame: &Frame, flush: u64, filter: u64) -> Answer<u64> {
    call::flush(frame, flush, filter).ok_or_else(|| format!("{flush:#x} is no way to flush"))
}

fn a_request(frame: &Frame, r: u64) -> Answer<()> {
    match call::is_request(frame, r) {
        true => Ok(()),
        false => Err(format!("{r:#x} is no request that the module was given")),
    }
}

/// So long a text is made on the stack.
const LINE: usize = 512;
/// So long a format is kept there.
const SHORT: usize = 64;

/// A format that writes nothing by its arguments. It is a copy: what the function writes may lie over the module's own, and
/// another thread of the module may change that one meanwhile.
pub(crate) struct Format {
    short: [u8; SHORT],
    long: Vec<u8>,
}

impl Format {
    fn read(frame: &Frame, from: u64) -> Answer<Format> {
        let length = frame.walled.length(from, u64::MAX)?;
        let (mut short, mut long) = ([0; SHORT], Vec::new());
        // One byte is left for the end, which is a zero already.
        match short[..SHORT - 1].get_mut(..length) {
            Some(place) => copied::bytes(from, place)?,
            None => long = copied::name(frame, from)?,
        }
        Ok(Format { short, long })
    }

    fn bytes(&self) -> &[u8] {
        match self.long.as_slice() {
            [] => &self.short,
            long => long,
        }
    }

    /// Where it is; it ends with a zero.
    pub(crate) fn at(&self) -> u64 {
        self.bytes().as_ptr() as u64
    }
}

/// A format of the module's that writes nothing by its arguments, and reads what is there.
pub(crate) fn checked(
    frame: &Frame,
    format: u64,
    words: &impl Words,
    is_apr: bool,
) -> Answer<Format> {
    let format = Format::read(frame, format)?;
    listed::arguments(frame.walled, format.bytes(), words, is_apr)?;
    Ok(format)
}

/// A line of the log that is of no module (`APLOG_NO_MODULE`).
const NO_MODULE: i32 = -1;
/// For so many modules httpd has levels, and for more where some are part of it (`DYNAMIC_MODULE_LIMIT`).
const MODULES: i32 = 256;

/// httpd has a level for each module. It does not look whether it has this one.
pub(crate) fn module_index(index: u64) -> Answer<i32> {
    let index = index as i32;
    match (NO_MODULE..MODULES).contains(&index) {
        true => Ok(index),
        false => Err(format!("{index} is the number of no module")),
    }
}

type Log = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, ...);

/// The format is the first word on the stack.
fn log(frame: &Frame, passed: &Passed, to: Log) -> Answer<u64> {
    let ([file, line, index, level, status, of], x, s) =
        (passed.integers, &passed.floats, &passed.stacked);
    let file = copied::name_or_null(frame, file)?;
    let file = copied::place(file.as_ref());
    let index = module_index(index)?;
    let format = checked(frame, s[0], &passed.behind(7), true)?;
    // SAFETY: it is httpd's function; it reads a string and a level that are there, and the format writes nothing by its arguments.
    unsafe {
        to(
            file,
            line,
            index as u64,
            level,
            status,
            of,
            x[0],
            x[1],
            x[2],
            x[3],
            x[4],
            x[5],
            x[6],
            x[7],
            format.at(),
            s[1],
            s[2],
            s[3],
            s[4],
            s[5],
            s[6],
            s[7],
            s[8],
            s[9],
            s[10],
            s[11],
            s[12],
            s[13],
            s[14],
            s[15],
        );
    }
    Ok(0)
}

/// So many methods are passed on at most: four in registers, and sixteen on the stack.
const METHODS: usize = 20;

/// Names of methods, or their numbers up to -1.
fn allow(frame: &Frame, passed: &Passed, numbers: bool) -> Answer<u64> {
    let [r, reset, ..] = passed.integers;
    a_request(frame, r)?;
    let ends = |word: u64| match numbers {
        true => word as u32 == u32::MAX,
        false => word == 0,
    };
    if !passed.words(2).any(ends) {
        return Err("more arguments than the wall passes on".to_owned());
    }
    let words: Vec<u64> = passed.words(2).take_while(|word| !ends(*word)).collect();
    let mut list = [if numbers { u64::from(u32::MAX) } else { 0 }; METHODS + 1];
    // SAFETY: it was seen to be a request.
    let pool = unsafe { read(r + layout::R_POOL) };
    for (place, word) in list.iter_mut().zip(words) {
        *place = match numbers {
            true => word,
            false => {
                let text = copied::text(frame, word)?;
                // The request keeps the name's address.
                // SAFETY: it is the request's pool.
                unsafe { copied::keep(pool, &text) }
            }
        };
    }
    let [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        n,
        o,
        p,
        q,
        s,
        t,
        u,
        v,
    ] = list;
    // SAFETY: it is a request, and the list ends. Names are copies of ours.
    unsafe {
        let to = match numbers {
            true => apr::ap_allow_standard_methods,
            false => apr::ap_allow_methods,
        };
        to(
            r, reset, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, s, t, u, v,
        );
    }
    Ok(0)
}

pub(crate) extern "C" fn apr_pvsprintf(pool: u64, format: u64, list: u64) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        let list = List::of(frame.walled, list)?;
        let format = checked(frame, format, &list, true)?;
        // SAFETY: the pool lives; the list is a copy, and what the format reads is there.
        let made = unsafe { apr::apr_pvsprintf(pool, format.at(), list.at()) };
        // SAFETY: APR's strings end with a zero.
        frame.walled.copy(frame, pool, unsafe { apr::text(made) })
    })
}

pub(crate) extern "C" fn apr_brigade_vprintf(
    brigade: u64,
    flush: u64,
    filter: u64,
    format: u64,
    list: u64,
) -> u64 {
    mediate(|frame| {
        let flush = flushing(frame, flush, filter)?;
        let list = List::of(frame.walled, list)?;
        let format = checked(frame, format, &list, true)?;
        let mut passing = Passing::new(frame);
        let brigade = passing.brigade(brigade)?;
        // SAFETY: the brigade is the core's; the list is a copy, and what the format reads is there.
        let status =
            unsafe { apr::apr_brigade_vprintf(brigade, flush, filter, format.at(), list.at()) };
        passing.end()?;
        Ok(status as u64)
    })
}
