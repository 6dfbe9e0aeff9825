//! A module calls the host: its arguments are looked at, then httpd's or APR's own function runs.

mod lives;
mod looks;

use crate::apr;
use crate::back;
use crate::caught::caught;
use crate::copied::{self, Texts};
use crate::errors;
use crate::filters;
use crate::frame::{Frame, Root, now};
use crate::interface::{Answer as Result_, Needs, Param, Row, Text, Way, table};
use crate::layout::{self, read};
use crate::object::Kind;
use crate::outs::{Outs, Written};
use crate::pools;
use crate::rings::Passing;
use crate::slots::{self, COUNT, Slots, WIDE, Wide, slots};
use crate::walled::Answer;
use lives::{home_of_made, is_kept, keep, text_of_made, whole_of, with_bucket};
use looks::{is_below, look, look_quickly};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

extern "C" fn import<const PLACE: usize>(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    imported(PLACE, &[a, b, c, d, e, f])
}

/// What all of [`IMPORTS`] do. There are as many of those as rows, so each is this call and nothing more.
#[inline(never)]
extern "C" fn imported(place: usize, few: &[u64; 6]) -> u64 {
    mediate(|frame| {
        let row = &table().rows[place];
        match &row.simple {
            Some(params) => {
                begin(frame, row)?;
                if row.copies.is_some() && crate::reading::puts(frame, row.name, few)? {
                    return Ok(0);
                }
                simple(frame, (row.name, params), real(row), &mut few.clone())
            }
            None => {
                let [a, b, c, d, e, f] = *few;
                let arguments = &mut [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0];
                if row.is_nearly_simple
                    && let Way::Mediated(params, answer) = &row.way
                {
                    begin(frame, row)?;
                    return with_answer(frame, (row, params, *answer), real(row), arguments);
                }
                mediated(frame, place, arguments)
            }
        }
    })
}

static IMPORTS: Slots = slots!(import);

extern "C" fn cross<const PLACE: usize>(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
    i: u64,
    j: u64,
    k: u64,
    l: u64,
) -> u64 {
    crossed(PLACE, &[a, b, c, d, e, f, g, h, i, j, k, l])
}

/// What all of [`CROSS`] do.
#[inline(never)]
extern "C" fn crossed(place: usize, arguments: &[u64; WIDE]) -> u64 {
    mediate(|frame| match &table().rows[place] {
        row if row.way == Way::Cross => {
            if row.is_hook {
                pools::before_serving(row.name)?;
            }
            crate::partners::cross(frame, row.name, *arguments)
        }
        _ => mediated(frame, place, &mut arguments.clone()),
    })
}

static CROSS: Slots<Wide> = slots!(cross);

/// Does what a module asks for. If that is refused, the module's call ends when this returns.
pub(crate) fn mediate(act: impl FnOnce(&Frame) -> Answer<u64>) -> u64 {
    let Some(frame) = now() else {
        mullion_word_runtime::refuse("a call of the host outside of a call by the server");
        return 0;
    };
    frame.walled.asked.count();
    frame.may_wait();
    let kept = frame.kept();
    let answer = caught(|| {
        frame.walled.exchange(frame)?;
        if frame.walled.reads {
            crate::reading::publish(frame, false)?;
        }
        errors::around(frame, || act(frame))
    });
    frame.let_go(kept);
    match answer {
        Ok(answer) => {
            frame.walled.go_on_with_words();
            answer
        }
        Err(what) => {
            mullion_word_runtime::refuse(what);
            0
        }
    }
}

/// httpd's own function of a row. Those of other modules are looked up when they are called (`partners.rs`): they come and go with
/// the modules.
#[inline]
fn real(row: &Row) -> usize {
    match row.real.load(Ordering::Relaxed) {
        0 => find_real(row),
        at => at,
    }
}

#[cold]
fn find_real(row: &Row) -> usize {
    let at = apr::symbol(row.copies.unwrap_or(row.name)).unwrap_or(0);
    row.real.store(at, Ordering::Relaxed);
    at
}

/// Where calls of a function of the host lead.
pub(crate) fn resolve(name: &str) -> Option<usize> {
    match table().find(name) {
        Some((place, row)) => match &row.way {
            Way::Direct => Some(real(row)).filter(|at| *at != 0),
            Way::Mediated(params, _) if place < COUNT && real(row) != 0 => match params.len() > 6 {
                true => Some(slots::at(&CROSS, place)),
                false => Some(slots::at(&IMPORTS, place)),
            },
            Way::Mediated(..) => None,
            Way::Cross => (place < COUNT).then(|| slots::at(&CROSS, place)),
            Way::Own { .. } => crate::own::find(name),
        },
        None => apr::symbol(name).or_else(|| crate::partners::data(name)),
    }
}

#[cold]
fn lacks<T>(name: &str, at: usize, value: u64, what: &str) -> Answer<T> {
    Err(format!(
        "{name}: argument {at}, {value:#x}, is no {what} that the module was given or has made"
    ))
}

/// Whether the module may pass an object.
pub(crate) fn has(frame: &Frame, kind: Kind, object: u64) -> bool {
    let is_given = match kind {
        Kind::Table => frame.has_table(object),
        Kind::Allocator => frame.has_allocator(object),
        Kind::Filter => frame.has_filter(object),
        // Null ends each chain, and is no filter.
        Kind::AnyFilter => object != 0 && filters::leads_out(frame, object),
        Kind::RemovableFilter => {
            let is_own = frame.has_filter(object) || frame.walled.knows(object, Kind::Filter);
            is_own || frame.walled.removes_filters && object != 0 && frame.leads_to(object)
        }
        Kind::Thing => frame.has_thing(object) || frame.walled.has_thing(object),
        Kind::Lock => frame.has_lock(object),
        Kind::Score => frame.has_score(object),
        // One that is only read may be one that may be changed, too.
        Kind::ReadHash => frame.walled.knows_or_shares(object, Kind::Hash),
        _ => false,
    };
    is_given || frame.walled.knows_or_shares(object, kind)
}

/// A request that the module was given, or a part of one that it has made.
pub(crate) fn is_request(frame: &Frame, r: u64) -> bool {
    frame.has_request(r) || frame.walled.knows_or_shares(r, Kind::Request)
}

/// A connection that the module was given, or has made.
pub(crate) fn is_connection(frame: &Frame, c: u64) -> bool {
    frame.has_connection(c) || frame.walled.knows_or_shares(c, Kind::Connection)
}

/// Where the port of a socket's address is.
const ADDRESS_PORT: u64 = 24;

/// The pool in whose life a result is good.
fn pool_of(params: &[Param], arguments: &[u64; WIDE]) -> Option<u64> {
    let all = || params.iter().zip(arguments);
    // Of several the last one: a pool for the time being comes in front.
    let pool = all().rfind(|(param, _)| matches!(param, Param::Pool));
    if let Some((_, pool)) = pool {
        return Some(*pool);
    }
    let cmd = all().find(|(param, _)| matches!(param, Param::Command));
    if let Some((_, cmd)) = cmd {
        // SAFETY: it was seen to be the state of a directive.
        return Some(unsafe { read(cmd + layout::CMD_POOL) });
    }
    let r = all().find(|(param, at)| matches!(param, Param::Request { .. }) && **at != 0);
    if let Some((_, r)) = r {
        // SAFETY: it was seen to be a request.
        return Some(unsafe { read(r + layout::R_POOL) });
    }
    let c = all().find(|(param, at)| matches!(param, Param::Connection { .. }) && **at != 0);
    // SAFETY: it was seen to be a connection.
    c.map(|(_, c)| unsafe { read(c + layout::C_POOL) })
}

/// The first step of a call, in front of the look at its arguments.
#[inline(always)]
fn begin(frame: &Frame, row: &Row) -> Answer<()> {
    if row.is_hook {
        pools::before_serving(row.name)?;
    }
    if row.computes {
        frame.only_computes();
    }
    Ok(())
}

/// A row that is not simple.
fn mediated(frame: &Frame, place: usize, arguments: &mut [u64; WIDE]) -> Answer<u64> {
    let row = &table().rows[place];
    begin(frame, row)?;
    match &row.way {
        Way::Mediated(params, answer) => {
            let what = (row.name, &params[..], *answer, row.needs);
            looked_at(frame, what, real(row), arguments)
        }
        _ => Err(format!("{} is not offered", row.name)),
    }
}

/// What the core gets for `ap_filter_flush` with a filter behind it, or for null. A module may have its address from what the
/// module imports, which is ours.
pub(crate) fn flush(frame: &Frame, flush: u64, filter: u64) -> Option<u64> {
    const NAME: &str = "ap_filter_flush";
    static FLUSH: OnceLock<(Option<usize>, Option<usize>)> = OnceLock::new();
    let (real, ours) = *FLUSH.get_or_init(|| (apr::symbol(NAME), resolve(NAME)));
    if flush == 0 {
        return Some(0);
    }
    let is_flush = [real, ours].contains(&Some(flush as usize));
    let real = real.filter(|_| is_flush && filters::leads_out(frame, filter));
    real.map(|real| real as u64)
}

#[cold]
fn with_name(name: &str, what: &str) -> String {
    format!("{name}: {what}")
}

#[cold]
fn with_place(name: &str, at: usize, what: &str) -> String {
    format!("{name}: argument {at}: {what}")
}

/// Calls a function of the host that gets objects alone, as most do.
fn simple(
    frame: &Frame,
    (name, params): (&str, &[(usize, Param)]),
    real: usize,
    arguments: &mut [u64; 6],
) -> Answer<u64> {
    let texts = &mut Texts::new();
    for (at, param) in params {
        arguments[*at] = look_quickly(frame, (name, *at, param), &arguments[..], texts)?;
    }
    // SAFETY: it is httpd's function of this name, with integers and pointers as arguments that were looked at above.
    let call = unsafe { std::mem::transmute::<usize, slots::Function>(real) };
    let [a, b, c, d, e, f] = *arguments;
    Ok(texts.theirs(call(a, b, c, d, e, f)))
}

/// The same of one that writes a few words besides, or whose result is looked at. It is what [`looked_at`] does for such parameters
/// (`Param::is_nearly_simple`), in the same order: places of ours, then all else, the call, and what the module gets.
fn with_answer(
    frame: &Frame,
    (row, params, answer): (&Row, &[Param], Result_),
    real: usize,
    arguments: &mut [u64; WIDE],
) -> Answer<u64> {
    let (name, outs, texts) = (row.name, &mut Outs::new(), &mut Texts::new());
    if row.needs.outs {
        let taken = outs.take_over(frame, params, arguments);
        taken.map_err(|what| with_name(name, &what))?;
    }
    for (at, param) in params.iter().enumerate().take(WIDE) {
        match *param {
            Param::Any => {}
            Param::Out { null: false, .. } if arguments[at] == 0 => {
                return lacks(name, at, 0, "place to write to");
            }
            Param::Out { .. } => {}
            Param::Most { most, wide } => is_below(name, at, arguments[at], (most, wide))?,
            _ => arguments[at] = look_quickly(frame, (name, at, param), &arguments[..], texts)?,
        }
    }
    // SAFETY: it is httpd's function of this name, with integers and pointers as arguments that were looked at above.
    let call = unsafe { std::mem::transmute::<usize, slots::Function>(real) };
    let [a, b, c, d, e, f, ..] = *arguments;
    let mut result = call(a, b, c, d, e, f);
    if row.needs.outs {
        result = outs.answer(result);
        if !texts.is_empty() {
            outs.show(|word| texts.theirs(word));
        }
        outs.give_back(frame)?;
    }
    answered(
        frame,
        (name, params, answer),
        texts.theirs(result),
        arguments,
    )
}

/// Calls a function of the host with arguments that were looked at.
pub(crate) fn checked(
    frame: &Frame,
    name: &str,
    params: &[Param],
    answer: Result_,
    real: usize,
    arguments: &mut [u64; WIDE],
) -> Answer<u64> {
    let needs = Needs::of(params, answer);
    looked_at(frame, (name, params, answer, needs), real, arguments)
}

/// The same as [`checked`], where it is known what the parameters need.
fn looked_at(
    frame: &Frame,
    (name, params, answer, needs): (&str, &[Param], Result_, Needs),
    real: usize,
    arguments: &mut [u64; WIDE],
) -> Answer<u64> {
    let walled = frame.walled;
    // To flush is to pass on.
    let is_passed_on = params
        .iter()
        .zip(&*arguments)
        .any(|(param, value)| *param == Param::Flush && *value != 0);
    let mut passing = match name.starts_with("apr_b") && !is_passed_on {
        true => Passing::within_apr(frame),
        false => Passing::new(frame),
    };
    // A count that says how much is written: which argument has it, its value, how many bytes it is, and where the module's is.
    let mut counted = None::<(usize, u64, u64, u64)>;
    let outs = &mut Outs::new();
    if needs.outs {
        let taken = outs.take_over(frame, params, arguments);
        taken.map_err(|what| with_name(name, &what))?;
    }
    // An object that the function ends, when all else has been looked at.
    let mut ended = None::<(usize, Kind)>;
    let texts = &mut Texts::new();
    let mut keeps = false;
    // A word that the function moves on, and where the module's is.
    let mut moved = None::<(usize, Box<u64>, u64)>;
    // What the function reads twice, no thread of the module changes meanwhile.
    let mut copies: Vec<Vec<u8>> = Vec::new();
    let mut addresses: Vec<Box<[u64]>> = Vec::new();
    // What it writes, of any length.
    let mut written = Written::default();
    let has_rings = needs.rings;
    // A request's thread works with its buckets without a lock. With those of a pool that a module has made itself, one thread at a time
    // works (`rings/ends.rs`).
    if matches!(answer, Result_::Object(Kind::Allocator | Kind::Brigade))
        && let Some(pool) = pool_of(params, arguments)
        && crate::pools::serves()
        && !crate::pools::is_bound(pool)
        && !crate::pools::is_made(pool)
    {
        return Err(format!(
            "{name}: {pool:#x} is a pool of no request or connection"
        ));
    }
    // Brigades first: a bucket may be the end of one.
    let mut brigade = None;
    if has_rings {
        for (at, param) in params.iter().enumerate().take(WIDE) {
            if let Param::Object {
                kind: Kind::Brigade,
                null,
            } = *param
                && !(null && arguments[at] == 0)
            {
                if let Some(real) = walled.brigade_of_backend(arguments[at]) {
                    arguments[at] = real;
                    continue;
                }
                let real = passing
                    .brigade(arguments[at])
                    .map_err(|what| format!("{name}: {what}"))?;
                // APR moves buckets from one to the other, or clears one of them first.
                if brigade == Some(real) {
                    return Err(format!("{name}: argument {at} is the same brigade again"));
                }
                brigade = brigade.or(Some(real));
                arguments[at] = real;
            }
        }
    }
    for (at, param) in params.iter().enumerate().take(WIDE) {
        let value = arguments[at];
        match *param {
            Param::Any => {}
            Param::Pool
            | Param::Request { .. }
            | Param::Connection { .. }
            | Param::Server { .. } => {
                arguments[at] = look(frame, name, at, param, arguments, Some(outs), texts)?;
            }
            Param::Command => {
                if !frame.roots.contains(&Root::Command(value)) {
                    return lacks(name, at, value, "state of a directive");
                }
            }
            Param::Object {
                kind: Kind::Brigade,
                ..
            } => {}
            Param::Object {
                kind: Kind::Bucket,
                null,
            } if !(null && value == 0) => {
                let real = passing
                    .bucket(value)
                    .map_err(|what| format!("{name}: {what}"))?;
                // APR cuts the ring there.
                if brigade.is_some_and(|brigade| !passing.is_within(brigade, real)) {
                    return Err(format!("{name}: {value:#x} is no bucket of that brigade"));
                }
                arguments[at] = real;
            }
            Param::Most { most, wide } => is_below(name, at, value, (most, wide))?,
            Param::Flush => {
                let filter = arguments.get(at + 1).copied().unwrap_or(0);
                match flush(frame, value, filter) {
                    Some(real) => arguments[at] = real,
                    None => return lacks(name, at, value, "way to flush"),
                }
            }
            Param::Kept(kind, by) => {
                let keeper = arguments.get(by).copied().unwrap_or(0);
                is_kept(frame, kind, value, keeper).map_err(|what| with_place(name, at, &what))?;
            }
            Param::Ended(kind) => ended = Some((at, kind)),
            Param::Object {
                kind: Kind::Provided,
                ..
            } if value != 0 => {
                look(frame, name, at, param, arguments, Some(outs), texts)?;
                let is_its = crate::partners::goes_with(walled, value, real);
                is_its.map_err(|what| with_place(name, at, &what))?;
            }
            Param::Object { .. } | Param::Read { .. } => {
                arguments[at] = look(frame, name, at, param, arguments, Some(outs), texts)?;
            }
            Param::Moved => {
                walled
                    .must_write(value, 8)
                    .map_err(|what| format!("{name}: {what}"))?;
                // SAFETY: the module may write, and so read, there. The function follows what it finds, so null is none.
                let copy = texts.copy(frame, unsafe { read(value) });
                let text = copy.map_err(|what| with_place(name, at, &what))?;
                moved = Some((at, Box::new(text), value));
            }
            // The others are `outs` already.
            Param::Out {
                bytes, here: true, ..
            } if value != 0 => {
                walled
                    .must_write(value, bytes)
                    .map_err(|what| format!("{}: {what}", name))?;
            }
            Param::Out { bytes, .. } if value != 0 && param.out().is_none() => {
                let own = written.take_over(frame, at, value, bytes);
                arguments[at] = own.map_err(|what| with_name(name, &what))?;
            }
            // Nothing is written where there is none, if there is no room.
            Param::OutBy { by, scale, null } if value != 0 || !null => {
                let bytes = arguments
                    .get(by)
                    .copied()
                    .unwrap_or(0)
                    .saturating_mul(scale);
                // Of no elements none is written, wherever they would be.
                arguments[at] = match (bytes, scale) {
                    (0, 2..) => 0,
                    _ => written
                        .take_over(frame, at, value, bytes)
                        .map_err(|what| with_name(name, &what))?,
                };
            }
            Param::OutAt(by, wide) => {
                let count = arguments.get(by).copied().unwrap_or(0);
                walled.must_write(count, wide)?;
                // SAFETY: the module may write, and so read, there.
                let bytes = unsafe {
                    match wide {
                        4 => u64::from((count as *const u32).read()),
                        _ => read(count),
                    }
                };
                walled
                    .must_write(value, bytes)
                    .map_err(|what| format!("{}: {what}", name))?;
                counted = Some((by, bytes, wide, count));
            }
            Param::Address { null: true } if value == 0 => {}
            Param::Address { .. } => {
                let copy = crate::addresses::copy(frame, value);
                let copy = copy.map_err(|what| format!("{name}: argument {at}: {what}"))?;
                arguments[at] = copy.as_ptr() as u64;
                addresses.push(copy);
            }
            Param::Matches { text, count } => {
                let [text, count] = [text, count].map(|of| arguments.get(of).copied().unwrap_or(0));
                let copy = crate::patterns::matches(frame, value, count, text);
                let copy = copy.map_err(|what| format!("{name}: argument {at}: {what}"))?;
                arguments[at] = copy.as_ptr() as u64;
                addresses.push(copy);
            }
            // When the pool has been looked at.
            Param::Text {
                what: Text::Kept, ..
            } => keeps = true,
            Param::Text { .. } => {
                arguments[at] = look(frame, name, at, param, arguments, Some(outs), texts)?;
            }
            Param::Names { null: true } if value == 0 => {}
            Param::Names { .. } => {
                crate::pools::before_serving(name)?;
                let names = copied::Names::of(frame, value);
                let names = names.map_err(|what| with_place(name, at, &what))?;
                // SAFETY: the server does not serve yet, so one thread alone works with the pool.
                arguments[at] = unsafe { crate::pools::lasting_names(&names)? };
            }
            Param::FilterName => {
                let text = filters::free_name(frame, name, value);
                let text = text.map_err(|what| format!("{name}: argument {at}: {what}"))?;
                arguments[at] = text.as_ptr() as u64;
                copies.push(text);
            }
            Param::LockName => {
                let text = crate::names::lock(frame, value);
                let text = text.map_err(|what| with_place(name, at, &what))?;
                arguments[at] = text.as_ptr() as u64;
                copies.push(text);
            }
            Param::Context if value == 0 => {}
            Param::Context => {
                if !filters::is_own_one(frame, name, params, arguments) {
                    return Err(format!("{name}: {value:#x} is a word of another's filter"));
                }
            }
            Param::Out { null: false, .. } if value == 0 => {
                return lacks(name, at, value, "place to write to");
            }
            Param::Out { .. } | Param::OutObject(_) | Param::OutBy { .. } => {}
            Param::Callback(kind) => {
                if value == 0 && !kind.may_be_null() {
                    return lacks(name, at, value, "function");
                }
                arguments[at] = back::stand_in(frame, kind, value)
                    .map_err(|what| format!("{}: {what}", name))?;
            }
        }
    }
    // Such a bucket lasts longer than the look at its bytes.
    const OF_PLACES: [&str; 3] = [
        "apr_bucket_immortal_create",
        "apr_bucket_transient_create",
        "apr_bucket_pool_create",
    ];
    if OF_PLACES.contains(&name) && crate::segments::is_shared(arguments[0], arguments[1]) {
        return Err(format!("{name}: memory that processes share, which may go"));
    }
    if let Some((at, kind)) = ended {
        let taken = walled.take_object(arguments[at], kind);
        if !taken.map_err(|what| with_place(name, at, &what))? {
            return Ok(0);
        }
    }
    if keeps {
        keep(frame, name, params, arguments)?;
    }
    if params.contains(&Param::Context) {
        let is_named = matches!(params.first(), Some(Param::Text { .. }));
        filters::may_be_added(frame, name, arguments, is_named)?;
    }
    // What is looked at is what is passed on: another thread of the module may change its own word meanwhile.
    if let Some((at, text, _)) = &mut moved {
        arguments[*at] = &raw mut **text as u64;
    }
    if let Some((by, bytes, ..)) = &mut counted {
        arguments[*by] = &raw mut *bytes as u64;
    }
    let [a, b, c, d, e, f, ..] = *arguments;
    let result = match params.len() > 6 {
        // SAFETY: it is httpd's or a module's function of this name, with arguments that were looked at above.
        true => unsafe { slots::call_wide(real as u64, arguments) },
        false => {
            // SAFETY: it is httpd's function of this name, with integers and pointers as arguments that were looked at above.
            let call = unsafe { std::mem::transmute::<usize, slots::Function>(real) };
            call(a, b, c, d, e, f)
        }
    };
    let result = texts.theirs(written.answer(outs.answer(result)));
    written.give_back(frame, arguments)?;
    if let Some((at, text, to)) = moved {
        arguments[at] = to;
        // SAFETY: the module may write there, as was looked at.
        unsafe { (to as *mut u64).write(texts.theirs(*text)) };
    }
    if let Some((by, bytes, wide, count)) = counted {
        arguments[by] = count;
        // SAFETY: the module may write there, as was looked at.
        unsafe {
            match wide {
                4 => (count as *mut u32).write(bytes as u32),
                _ => (count as *mut u64).write(bytes),
            }
        }
    }
    let pool = || pool_of(params, arguments);
    if has_rings {
        passing.end()?;
    }
    if needs.outs {
        for (at, param) in params.iter().enumerate().take(WIDE) {
            let Param::OutObject(kind) = *param else {
                continue;
            };
            // A function that fails leaves the word alone: what the module has put there is no object.
            let made = outs.word(at).unwrap_or(0);
            if kind == Kind::Text {
                outs.give(at, text_of_made(frame, pool(), made)?);
                continue;
            }
            if made == 0 {
                continue;
            }
            if kind == Kind::Bucket {
                outs.give(at, passing.made(made)?);
                continue;
            }
            let lasts = match kind {
                // A socket's own one, which may go with the socket: it is the module's to pass in this request alone.
                Kind::Address => pool().or_else(|| frame.any_home()),
                _ => {
                    home_of_made(frame, params, arguments).map_err(|what| with_name(name, &what))?
                }
            };
            if kind == Kind::Backend && !crate::backends::lies_right(made) {
                return Err(format!("{name}: {made:#x} is no connection of mod_proxy's"));
            }
            walled.know(frame, lasts, made, kind)?;
            if kind == Kind::Provided {
                walled.know_part(made, real as u64);
            }
            if let Kind::Statement | Kind::Results | Kind::DbRow = kind
                && let Some(whole) = whole_of(frame, params, arguments)
            {
                walled.know_part(made, whole);
            }
            if kind == Kind::Address
                && let Some(pool) = pool()
            {
                // Modules set the port of an address themselves that was made for them.
                walled.lend(frame, pool, made + ADDRESS_PORT, 4)?;
            }
            outs.give(at, made);
        }
        if !texts.is_empty() {
            outs.show(|word| texts.theirs(word));
        }
        outs.give_back(frame)?;
    }
    match answer {
        Result_::Bytes(count) if result != 0 && walled.reads => {
            crate::reading::copy(frame, 0, result, outs.word(count).unwrap_or(0))
        }
        Result_::Object(Kind::Bucket) => {
            if name == "apr_brigade_insert_file" && result != 0 {
                // SAFETY: they are the core's own brigade and buckets of files.
                unsafe { crate::rings::unmapped(arguments[0]) };
            }
            let with = with_bucket(frame, name, params, arguments);
            passing.made_of(result, with.map_err(|what| with_name(name, &what))?)
        }
        Result_::Object(Kind::Brigade) => passing.made_brigade(result),
        Result_::Request => {
            if result != 0 {
                // SAFETY: the core has made it.
                let pool = unsafe { read(result + layout::R_POOL) };
                // The module uses the pool, and ends it with the request alone (`pools.rs`).
                crate::pools::add_part(walled, pool);
                walled.know(frame, None, pool, Kind::OfRequest)?;
                walled.know(frame, Some(pool), result, Kind::Request)?;
                crate::reading::made(frame, result);
                walled.touch(frame, Root::Request(result))?;
            }
            Ok(result)
        }
        _ => answered(frame, (name, params, answer), result, arguments),
    }
}

/// The word that the module gets for a result which is no bucket, brigade or request.
fn answered(
    frame: &Frame,
    (name, params, answer): (&str, &[Param], Result_),
    result: u64,
    arguments: &[u64; WIDE],
) -> Answer<u64> {
    let walled = frame.walled;
    let pool = || pool_of(params, arguments);
    match answer {
        Result_::Plain
        | Result_::Null
        | Result_::Declined
        | Result_::Copied(_)
        | Result_::Bytes(_)
        | Result_::Request => Ok(result),
        Result_::Object(kind) => {
            let home = home_of_made(frame, params, arguments);
            let home = home.map_err(|what| with_name(name, &what))?;
            walled.know(frame, home, result, kind)?;
            if kind == Kind::Allocator && result != 0 {
                walled.begin_allocator(result);
            }
            // SAFETY: the core has just made it.
            let is_own =
                kind == Kind::Filter && result != 0 && unsafe { filters::is_own(walled, result) };
            if is_own {
                walled.touch(frame, Root::Filter(result))?;
            }
            Ok(result)
        }
        Result_::Shown if result == 0 || !walled.reads => Ok(result),
        Result_::Shown => {
            let pool = pool().or_else(|| frame.home());
            let pool = pool.unwrap_or_else(crate::reading::configuration);
            // SAFETY: the core's strings end with a zero.
            walled.copy(frame, pool, unsafe { apr::text(result) })
        }
        Result_::Text if result == 0 || walled.writes(result, 1) => Ok(result),
        Result_::Text => {
            let pool = pool().or_else(|| crate::back::pool(frame));
            let pool = pool.ok_or("no pool for a result")?;
            // SAFETY: the core's strings end with a zero.
            walled.copy(frame, pool, unsafe { apr::text(result) })
        }
    }
}
