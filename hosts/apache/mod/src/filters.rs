//! Filters. A filter has a word (`ctx`) in which its function keeps what it follows later. So nobody but the module of that function
//! may set it.
//!
//! ```text
//!   a module ──► ap_add_output_filter("NAME", word)       the function of NAME must be the module's, or the word null
//!                the function of another record, f ──►     the function gets a filter of ours, with the word that it has left
//! ```

use crate::apr;
use crate::back;
use crate::call::{self, checked, has, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::interface::{Answer as Result_, Param, back as kind};
use crate::layout::{self, read};
use crate::object::Kind;
use crate::owners;
use crate::pools;
use crate::slots::WIDE;
use crate::walled::{Answer, Walled, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A record of a filter, as `util_filter.h` has it: `ap_filter_rec_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    name: u64,
    function: u64,
    beginning: u64,
    next: u64,
    /// `mod_filter`'s own, which the core does not follow.
    providers: u64,
    /// `ftype`, and `debug`.
    kind: u64,
    /// `proto_flags`.
    flags: u64,
}

const RECORD: u64 = size_of::<Record>() as u64;
/// `AP_FTYPE_CONNECTION`: the core makes such a filter in the connection's pool, whatever request it is added for.
const OF_CONNECTIONS: i32 = 50;
const RECORD_FUNCTION: u64 = 8;
const RECORD_INIT: u64 = 16;

/// What the core gets for a module's record: nothing that the core follows is the module's.
/// The filter of a record for connections stays longer than a request, and so does the record.
fn own_record(frame: &Frame, record: u64, pool: u64, connection: u64) -> Answer<u64> {
    let [name, function, beginning, _, providers, kind_of, flags] =
        copied::words::<{ RECORD as usize / 8 }>(frame, record)?;
    let pool = match kind_of as u32 as i32 >= OF_CONNECTIONS {
        // SAFETY: it was seen to be a connection of the call.
        true => unsafe { read(connection + layout::C_POOL) },
        false => pool,
    };
    let stand_in = |own: u64, of: &str| match frame.walled.is_gate(own) {
        true => back::stand_in(frame, kind(of), own),
        // A filter without a beginning of its own, as far as the core is concerned.
        false => Ok(0),
    };
    let name = match name {
        0 => vec![0],
        name => copied::name(frame, name)?,
    };
    let fresh = Record {
        name: 0,
        function: stand_in(function, "output_filter")?,
        beginning: stand_in(beginning, "filter_init")?,
        next: 0,
        providers,
        kind: kind_of,
        flags,
    };
    if fresh.function == 0 {
        return Err("a filter's record without a function".to_owned());
    }
    // SAFETY: the pool lives, and gives room for both.
    unsafe {
        let text = apr::apr_palloc(pool, name.len() as u64);
        (text as *mut u8).copy_from_nonoverlapping(name.as_ptr(), name.len());
        let passed = apr::apr_palloc(pool, RECORD);
        (passed as *mut Record).write(Record {
            name: text,
            ..fresh
        });
        Ok(passed)
    }
}

/// A module may have a record of its own, as `mod_filter` does: the core gets a copy with functions of ours.
pub(crate) extern "C" fn ap_add_output_filter_handle(record: u64, ctx: u64, r: u64, c: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !(r == 0 || call::is_request(frame, r)) || !frame.has_connection(c) {
            return Err("ap_add_output_filter_handle: no request of the module".to_owned());
        }
        let pool = match r {
            // SAFETY: both were seen to be the core's.
            0 => unsafe { read(c + layout::C_POOL) },
            // SAFETY: it was seen to be a request of the core's.
            r => unsafe { read(r + layout::R_POOL) },
        };
        let mut passed = record;
        if !walled.knows(record, Kind::FilterRecord) {
            walled
                .must_write(record, RECORD)
                .map_err(|what| format!("ap_add_output_filter_handle: {what}"))?;
            passed = own_record(frame, record, pool, c)?;
        }
        // SAFETY: the core has made it, or it is a copy of ours.
        if ctx != 0 && !unsafe { is_own_record(walled, passed) } {
            return Err(format!(
                "ap_add_output_filter_handle: {ctx:#x} is a word of another's filter"
            ));
        }
        may_add(walled, passed, (r, c), true)
            .map_err(|what| format!("ap_add_output_filter_handle: {what}"))?;
        let real =
            apr::symbol("ap_add_output_filter_handle").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with what was looked at.
        let real: extern "C" fn(u64, u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let made = real(passed, ctx, r, c);
        walled.know(frame, Some(pool), made, Kind::Filter)?;
        Ok(made)
    })
}

/// The filter's functions, which `mod_filter` calls itself, become callable.
pub(crate) extern "C" fn ap_get_output_filter_handle(name: u64) -> u64 {
    mediate(|frame| {
        let mut text = copied::text(frame, name)?;
        text.push(0);
        let real =
            apr::symbol("ap_get_output_filter_handle").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function.
        let real: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(real) };
        let record = real(text.as_ptr() as u64);
        if record != 0 {
            frame.walled.know(frame, None, record, Kind::FilterRecord)?;
            // SAFETY: it is a record of the core's.
            if !unsafe { is_own_record(frame.walled, record) || does_without_word(record) } {
                return Ok(record);
            }
            // SAFETY: the core keeps records for good.
            let functions = unsafe { [read(record + RECORD_FUNCTION), read(record + RECORD_INIT)] };
            let [function, beginning] = functions;
            if beginning != 0 && !goes_with(beginning, function) {
                lock(&BEGINNINGS).push((beginning, function));
            }
            crate::out::offer_filter(frame.walled, function as usize, beginning as usize)?;
        }
        Ok(record)
    })
}

/// Whether the function of a filter's record is the module's.
///
/// # Safety
/// It is a record of the core's.
unsafe fn is_own_record(walled: &Walled, record: u64) -> bool {
    // SAFETY: the caller says that it is a record of the core's, whose words no module writes.
    record != 0 && back::is_of(walled, unsafe { read(record + RECORD_FUNCTION) })
}

/// Whether a filter's function is the module's. Nobody else follows its word then.
///
/// # Safety
/// It is a filter of the core's, which lives.
pub(crate) unsafe fn is_own(walled: &Walled, filter: u64) -> bool {
    // SAFETY: by the caller; modules may write nothing of filters but their words.
    unsafe { is_own_record(walled, read(filter + layout::F_FREC)) }
}

/// The core's record of a name, or null. Names are looked up without regard to case.
fn record_of(function: &str, name: u64) -> u64 {
    let is_output = function.contains("output");
    if !pools::serves() {
        return look_up(is_output, name);
    }
    // SAFETY: the name is a copy of ours, with a zero at its end.
    let text = unsafe { apr::text(name) };
    let mut known = lock(&RECORDS);
    let is_it = |one: &&Named| one.is_output == is_output && one.name == text;
    if let Some(found) = known.iter().find(is_it) {
        return found.record;
    }
    let record = look_up(is_output, name);
    if record != 0 && known.len() < RECORDS_MOST {
        known.push(Named {
            is_output,
            name: text.to_vec(),
            record,
        });
    }
    record
}

/// A record that a module has named while the server serves. A name has the same record until the configuration is read again.
struct Named {
    is_output: bool,
    name: Vec<u8>,
    record: u64,
}

static RECORDS: Mutex<Vec<Named>> = Mutex::new(Vec::new());
/// So many are remembered, and the others are looked up each time.
const RECORDS_MOST: usize = 32;

/// The configuration is read again.
pub(crate) fn forget_records() {
    lock(&RECORDS).clear();
}

fn look_up(is_output: bool, name: u64) -> u64 {
    let find = match is_output {
        true => "ap_get_output_filter_handle",
        false => "ap_get_input_filter_handle",
    };
    apr::symbol(find).map_or(0, |real| {
        // SAFETY: it is httpd's function, and the name is a copy of ours.
        let real: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(real) };
        real(name)
    })
}

/// Records whose direction is known, each with a bit that says whether it is of an input filter. A record lies at a multiple of 8, and
/// lives as long as the configuration, or is one of ours for answers.
static DIRECTIONS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// The configuration is read again: other records may lie there.
pub(crate) fn forget() {
    for one in &DIRECTIONS {
        one.store(0, Ordering::Relaxed);
    }
}

/// Whether a filter is one of what comes in. Its record is the one that the server has registered for input by its name.
///
/// # Safety
/// It is a filter of the core's or ours, which lives.
unsafe fn is_input(filter: u64) -> bool {
    // SAFETY: by the caller; no module writes this word.
    let record = unsafe { read(filter + layout::F_FREC) };
    let place = &DIRECTIONS[(record / 64 % 256) as usize];
    match place.load(Ordering::Relaxed) {
        known if known & !1 == record => known & 1 != 0,
        _ => {
            // SAFETY: it is a record of the core's or ours, whose name ends with a zero.
            let name = unsafe { read(record) };
            let is_input = name != 0 && record_of("input", name) == record;
            place.store(record | u64::from(is_input), Ordering::Relaxed);
            is_input
        }
    }
}

/// Whether a filter of the call's request takes what goes out, or is null. The core calls its function with two arguments.
pub(crate) fn leads_out(frame: &Frame, filter: u64) -> bool {
    // SAFETY: it was just seen to be a filter of a chain of the core's.
    frame.leads_to(filter) && (filter == 0 || !unsafe { is_input(filter) })
}

/// Whether it gives what comes in, or is null. The core calls its function with five arguments.
pub(crate) fn leads_in(frame: &Frame, filter: u64) -> bool {
    // SAFETY: `leads_to` has found it in a chain of the core's.
    frame.leads_to(filter) && (filter == 0 || unsafe { is_input(filter) })
}

/// Kinds of filters (`ap_filter_type`): those of bodies, and from this one on those of connections.
const RESOURCE: i32 = 10;
const PROTOCOL: i32 = 30;
const CONNECTION: i32 = 50;

/// # Safety
/// It is a record of the core's.
unsafe fn type_of(record: u64) -> i32 {
    // SAFETY: the caller has a record of the core's, which stays as long as the configuration.
    unsafe { (*(record as *const Record)).kind as i32 }
}

/// Whether a filter of others may be added or called by a module: their word is null then. Filters of connections, and the one in front
/// of all others, follow it without a look.
///
/// # Safety
/// It is a record of the core's.
unsafe fn does_without_word(record: u64) -> bool {
    // SAFETY: the caller has a record of the core's.
    (RESOURCE..CONNECTION).contains(&unsafe { type_of(record) })
}

/// Looks at a filter that a call adds: its first argument names it, and the last two are a request or null, and a connection.
pub(crate) fn may_be_added(
    frame: &Frame,
    function: &str,
    arguments: &[u64; WIDE],
    is_named: bool,
) -> Answer<()> {
    let record = match is_named {
        true => record_of(function, arguments[0]),
        false => arguments[0],
    };
    let is_output = function.contains("output");
    match record {
        // There is no such filter, and none is added.
        0 => Ok(()),
        record => may_add(
            frame.walled,
            record,
            (arguments[2], arguments[3]),
            is_output,
        )
        .map_err(|what| format!("{function}: {what}")),
    }
}

/// A filter goes with the request that it is for, or with the connection. So it hangs behind no filter of another request.
fn may_add(walled: &Walled, record: u64, (r, c): (u64, u64), is_output: bool) -> Answer<()> {
    // SAFETY: all was looked at: the core's record or a copy of ours, a request or null, and a connection.
    unsafe {
        if !is_own_record(walled, record) && !does_without_word(record) {
            return Err("a filter of others that follows a word".to_owned());
        }
        if r == 0 {
            return Ok(());
        }
        if read(r + layout::R_CONNECTION) != c {
            return Err(format!("{c:#x} is not the connection of that request"));
        }
        let kind = type_of(record);
        if read(r + layout::R_MAIN) == 0 || kind >= CONNECTION {
            return Ok(());
        }
        let [all, those_of_protocols, of_connection] = match is_output {
            true => [
                r + layout::R_OUTPUT_FILTERS,
                r + layout::R_PROTO_OUTPUT_FILTERS,
                c + layout::C_OUTPUT_FILTERS,
            ],
            false => [
                r + layout::R_INPUT_FILTERS,
                r + layout::R_PROTO_INPUT_FILTERS,
                c + layout::C_INPUT_FILTERS,
            ],
        }
        .map(|head| read(head));
        let head = if kind < PROTOCOL {
            all
        } else {
            those_of_protocols
        };
        let next = |f: u64| read(f + layout::F_NEXT);
        // As httpd has it.
        let is_before = |f: u64| {
            f == 0 || type_of(read(f + layout::F_FREC)) > kind || read(f + layout::F_C) != c
        };
        let mut behind = match is_before(head) {
            false => head,
            true if head == 0 || all == of_connection || all == head => return Ok(()),
            true => all,
        };
        for _ in 0..CHAIN {
            let is_there = match is_before(head) {
                true => behind == 0 || next(behind) == head,
                false => is_before(next(behind)),
            };
            if is_there {
                break;
            }
            behind = next(behind);
        }
        match behind == 0 || read(behind + layout::F_R) == r {
            true => Ok(()),
            false => Err("it would hang behind a filter of another request".to_owned()),
        }
    }
}

/// Whether the filter that a call's first argument names is the module's own: by a name, which is a copy by now, or by a record.
pub(crate) fn is_own_one(
    frame: &Frame,
    function: &str,
    params: &[Param],
    arguments: &[u64; WIDE],
) -> bool {
    let record = match params.first() {
        Some(Param::Text { .. }) => match record_of(function, arguments[0]) {
            // There is no such filter, and none is added.
            0 => return true,
            record => record,
        },
        // It was looked at: the core has made it.
        Some(Param::Object {
            kind: Kind::FilterRecord | Kind::InputRecord,
            ..
        }) => arguments[0],
        _ => 0,
    };
    // SAFETY: it is a record of the core's, or null.
    unsafe { is_own_record(frame.walled, record) }
}

/// A copy of a name that a module may register a filter by. The core has one record for a name, and looks at its own ones for filters
/// whose words it knows.
pub(crate) fn free_name(frame: &Frame, function: &str, name: u64) -> Answer<Vec<u8>> {
    let mut text = copied::text(frame, name)?;
    text.push(0);
    let record = record_of(function, text.as_ptr() as u64);
    let small = text[..text.len() - 1].to_ascii_lowercase();
    let is_its = owners::may_offer(&frame.walled.name, owners::Of::Filters, &small);
    // SAFETY: it is a record of the core's.
    match is_its && (record == 0 || unsafe { is_own_record(frame.walled, record) }) {
        true => Ok(text),
        false => Err(format!(
            "{} is a filter of another module or of the core",
            String::from_utf8_lossy(&text[..text.len() - 1])
        )),
    }
}

/// A filter of ours, as a function of another module or of the core gets it. It lies in the memory of the request's or the
/// connection's pool, where no module writes but by a right to its word.
#[repr(C)]
struct Stand {
    /// `ap_filter_t`.
    record: u64,
    word: u64,
    next: u64,
    request: u64,
    connection: u64,
    /// The module's filter that it stands for.
    of: u64,
    /// The function that keeps something in the word; null until then.
    function: u64,
    /// The function that the filter began with, or null.
    beginning: u64,
    /// Its record: whoever calls it calls the module's filter.
    own: Record,
}

/// The core meets a filter of ours in a chain, and calls it as any other.
extern "C" fn forward(stand: u64, brigade: u64) -> i32 {
    // SAFETY: the record with this function is that of a filter of ours, whose module's filter lives as long.
    let (filter, function) = unsafe {
        let filter = (*(stand as *const Stand)).of;
        (
            filter,
            read(read(filter + layout::F_FREC) + RECORD_FUNCTION),
        )
    };
    // SAFETY: it is the function of the module's filter, as the core has it.
    let function: extern "C" fn(u64, u64) -> i32 = unsafe { std::mem::transmute(function) };
    function(filter, brigade)
}

/// Beginnings of filters, with the functions that go with them.
static BEGINNINGS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn goes_with(beginning: u64, function: u64) -> bool {
    lock(&BEGINNINGS).contains(&(beginning, function))
}

/// What a function gets in the place of the module's filter.
fn stand_for(frame: &Frame, filter: u64, function: u64, begins: bool) -> Answer<*mut Stand> {
    let walled = frame.walled;
    // SAFETY: the filter was looked at: it is the core's, and lives.
    let [record, word, next, request, connection] = unsafe {
        [
            layout::F_FREC,
            layout::F_CTX,
            layout::F_NEXT,
            layout::F_R,
            layout::F_C,
        ]
        .map(|at| read(filter + at))
    };
    // SAFETY: the core's record of a filter.
    let own = unsafe { *(record as *const Record) };
    let fresh = Stand {
        record: 0,
        word: 0,
        next,
        request,
        connection,
        of: filter,
        function: if begins { 0 } else { function },
        beginning: if begins { function } else { 0 },
        own: Record {
            function: forward as *const () as u64,
            beginning: 0,
            ..own
        },
    };
    // SAFETY: the filter goes with one of these, which is the core's.
    let pool = unsafe {
        match request {
            0 => read(connection + layout::C_POOL),
            r => read(r + layout::R_POOL),
        }
    };
    if word == 0 {
        // SAFETY: the pool lives, and gives that much.
        let stand = unsafe {
            let stand = apr::apr_palloc(pool, size_of::<Stand>() as u64) as *mut Stand;
            stand.write(fresh);
            (*stand).record = &raw const (*stand).own as u64;
            stand
        };
        walled.know(frame, Some(pool), stand as u64, Kind::Stand)?;
        return Ok(stand);
    }
    let wrong = || format!("{word:#x} is not what this function has left in the filter");
    if begins || !walled.knows(word, Kind::Stand) {
        return Err(wrong());
    }
    let stand = word as *mut Stand;
    // SAFETY: `know` was told of it above, in a pool that has not gone.
    unsafe {
        let is_its = match (*stand).function {
            0 => goes_with((*stand).beginning, function),
            known => known == function,
        };
        if (*stand).of != filter || !is_its {
            return Err(wrong());
        }
        (*stand).next = next;
        (*stand).function = function;
    }
    Ok(stand)
}

/// So many filters of a chain are looked at.
const CHAIN: usize = 256;

/// Puts one filter in the place of another in the chains of its request and connection. Whether it was in one.
///
/// # Safety
/// Both are filters of the core's or ours, with this request or null, and this connection.
unsafe fn replace(from: u64, to: u64, request: u64, connection: u64) -> bool {
    let mut found = false;
    let mut heads = vec![connection + layout::C_OUTPUT_FILTERS];
    if request != 0 {
        heads.push(request + layout::R_OUTPUT_FILTERS);
        heads.push(request + layout::R_PROTO_OUTPUT_FILTERS);
    }
    for head in heads {
        let mut place = head;
        for _ in 0..CHAIN {
            // SAFETY: by the caller: places are words of the core's, which lead to filters that live.
            let filter = unsafe { read(place) };
            if filter == 0 {
                break;
            }
            if filter == from {
                // SAFETY: it is the word of the core's that was just read, and this thread works with the chain.
                unsafe { (place as *mut u64).write(to) };
                found = true;
                break;
            }
            place = filter + layout::F_NEXT;
        }
    }
    found
}

/// A module calls a function of another's filter with a filter of its own, as `mod_filter` does.
pub(crate) fn call(
    frame: &Frame,
    (name, real, begins): (&str, usize, bool),
    arguments: &[u64; WIDE],
) -> Answer<u64> {
    let filter = arguments[0];
    if !has(frame, Kind::Filter, filter) {
        return Err(format!(
            "{name}: {filter:#x} is no filter that the module was given or has made"
        ));
    }
    // SAFETY: it was just looked at.
    if unsafe { is_input(filter) } {
        return Err(format!("{name}: {filter:#x} is a filter of what comes in"));
    }
    let stand = stand_for(frame, filter, real as u64, begins);
    let stand = stand.map_err(|what| format!("{name}: {what}"))?;
    let mut arguments = *arguments;
    arguments[0] = stand as u64;
    let brigade = Param::Object {
        kind: Kind::Brigade,
        null: false,
    };
    let params = [Param::Any, brigade];
    let params = if begins { &params[..1] } else { &params[..] };
    // SAFETY: it was just made or found.
    let (request, connection) = unsafe { ((*stand).request, (*stand).connection) };
    // A function that takes its filter out of the chain takes the module's out.
    // SAFETY: both are filters of this request and connection.
    let was_there = unsafe { replace(filter, stand as u64, request, connection) };
    let done = checked(frame, name, params, Result_::Plain, real, &mut arguments);
    // With the pool both have gone.
    if !frame.walled.knows(stand as u64, Kind::Stand) {
        return done;
    }
    // SAFETY: both lie in a pool that has not gone.
    unsafe {
        if was_there {
            ((filter + layout::F_NEXT) as *mut u64).write((*stand).next);
            replace(stand as u64, filter, request, connection);
        }
        let word = if (*stand).word == 0 { 0 } else { stand as u64 };
        ((filter + layout::F_CTX) as *mut u64).write(word);
    }
    done
}
