//! The core calls a module. A function of ours that stands for the module's makes a frame, grants what the call needs,
//! and goes through the gate.

use crate::apr;
use crate::call::has;
use crate::caught::caught;
use crate::copied;
use crate::deeds;
use crate::frame::{self, Frame, Root, Roots};
use crate::interface::{Answer as Result_, Back, Given};
use crate::layout::{self, read};
use crate::leaving;
use crate::object::Kind;
use crate::own;
use crate::partners;
use crate::quick::Map;
use crate::reading;
use crate::slots::{self, COUNT, Slots, WIDE, Wide, slots};
use crate::sources;
use crate::stopped;
use crate::swaps::Rule;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

extern "C" fn stand<const PLACE: usize>(
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
    call(PLACE, &[a, b, c, d, e, f, g, h, i, j, k, l])
}

static STANDS: Slots<Wide> = slots!(stand);

extern "C" fn stand_few<const PLACE: usize>(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    call_few(PLACE, &[a, b, c, d, e, f])
}

/// The same for functions of at most six arguments, as nearly all are. They read nothing of the stack.
static FEW: Slots = slots!(stand_few);

/// A function of a module, as the core may call it.
pub(crate) struct Slot {
    walled: &'static Walled,
    /// A gate of the module, or a function of ours that works for it.
    function: u64,
    kind: &'static Back,
    /// Whether nothing is done for a call but what the module's deeds ask for.
    is_plain: bool,
    /// Whether an argument is granted, copied or shown.
    is_seen_to: bool,
    /// Whether it is a filter's function: a brigade is shown, and nothing else is done.
    is_filter: bool,
}

static SLOTS: [OnceLock<Slot>; COUNT] = [const { OnceLock::new() }; COUNT];
static NEXT: AtomicUsize = AtomicUsize::new(0);

const DECLINED: u64 = -1i64 as u64;

/// One call in so many is timed.
const TIMED: u64 = 32;

/// So many arguments come in registers.
const FEW_MOST: usize = 6;

/// So many functions of one module have a function of ours that stands for them. All modules share [`COUNT`].
const MOST: usize = COUNT / 4;

type Key = (usize, u64, &'static str);
static KNOWN: Mutex<Option<HashMap<Key, usize>>> = Mutex::new(None);

/// What stands for a function of the module that is called; null stays null.
pub(crate) fn stand_in(frame: &Frame, kind: &'static Back, function: u64) -> Answer<u64> {
    if function == 0 || Some(function as usize) == nothing() {
        return Ok(function);
    }
    if Some(function as usize) == apr::symbol("ap_pool_cleanup_set_null") {
        return of(frame.walled, kind, sources::set_null as *const () as u64);
    }
    // A parser goes with its pool anyway (`pages.rs`).
    if Some(function as usize) == own::find("htmlFreeParserCtxt") {
        return Ok(nothing().unwrap_or(0) as u64);
    }
    match frame.walled.is_gate(function) {
        true => of(frame.walled, kind, function),
        false => Err(format!("{function:#x} is no function of the module")),
    }
}

/// `apr_pool_cleanup_null`, which modules pass where there is nothing to do.
fn nothing() -> Option<usize> {
    static NOTHING: OnceLock<Option<usize>> = OnceLock::new();
    *NOTHING.get_or_init(|| apr::symbol("apr_pool_cleanup_null"))
}

/// What stands for a function that was seen to be the module's, or that is ours.
pub(crate) fn of(walled: &'static Walled, kind: &'static Back, function: u64) -> Answer<u64> {
    if kind.given.len() > 6 && !walled.is_wide {
        return Err(format!(
            "{}: the module's file does not name this kind of function, which has words on the stack",
            kind.name
        ));
    }
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_with(HashMap::new);
    let key = (std::ptr::from_ref(walled) as usize, function, kind.name);
    let place = match known.get(&key) {
        Some(place) => *place,
        None => {
            let own = known.keys().filter(|(of, ..)| *of == key.0).count();
            if own >= MOST {
                return Err(format!(
                    "{own} functions of the module have one that stands for them: no more are passed on"
                ));
            }
            let place = NEXT.fetch_add(1, Ordering::Relaxed);
            let slot = SLOTS
                .get(place)
                .ok_or("there are no more functions to stand for the module's")?;
            let is_seen_to = kind.is_seen_to || walled.reads && kind.given.contains(&Given::Shown);
            let _new = slot.set(Slot {
                walled,
                function,
                kind,
                is_seen_to,
                is_plain: !is_seen_to && kind.answer.is_plain() && kind.given.len() <= 6,
                is_filter: kind.is_filter && !walled.reads,
            });
            known.insert(key, place);
            place
        }
    };
    Ok(match kind.given.len() > FEW_MOST {
        true => slots::at(&STANDS, place),
        false => slots::at(&FEW, place),
    } as u64)
}

/// Whether a function is one of ours that stands for one of this module's.
pub(crate) fn is_of(walled: &Walled, function: u64) -> bool {
    behind(function).is_some_and(|(whose, _)| std::ptr::eq(whose, walled))
}

/// The function of a module that one of ours stands for, and whose it is.
pub(crate) fn behind(function: u64) -> Option<(&'static Walled, u64)> {
    static PLACES: OnceLock<Map<usize>> = OnceLock::new();
    let both =
        |place| [slots::at(&STANDS, place), slots::at(&FEW, place)].map(|at| (at as u64, place));
    let place = PLACES
        .get_or_init(|| (0..COUNT).flat_map(both).collect())
        .get(&function);
    let slot = place.and_then(|place| SLOTS[*place].get())?;
    Some((slot.walled, slot.function))
}

/// The whole text behind a directive's name, which the module may take apart in its place, is a copy of the module's.
fn raw(frame: &Frame, arguments: &mut [u64; WIDE]) -> Answer<()> {
    const RAW: u32 = 0;
    let [cmd, _, text, ..] = *arguments;
    // SAFETY: the core has passed the state of a directive, with its row and strings that end with zeros.
    unsafe {
        let how = read(read(cmd + layout::CMD_COMMAND) + layout::COMMAND_HOW) as u32;
        if how == RAW && text != 0 {
            let pool = read(cmd + layout::CMD_POOL);
            arguments[2] = frame.walled.copy(frame, pool, apr::text(text))?;
        }
    }
    Ok(())
}

/// States of directives of a call whose module may have directives read from elsewhere.
fn sourced(frame: &Frame) -> impl Iterator<Item = u64> {
    let may = if frame.walled.swaps.sources {
        usize::MAX
    } else {
        0
    };
    let states = frame.roots.iter().take(may);
    states.filter_map(|root| match *root {
        Root::Command(cmd) => Some(cmd),
        _ => None,
    })
}

/// The pool for what a call answers.
pub(crate) fn pool(frame: &Frame) -> Option<u64> {
    let of = |root: &Root| match *root {
        // SAFETY: the core has passed the state of the directive.
        Root::Command(cmd) => Some(unsafe { read(cmd + layout::CMD_POOL) }),
        Root::Pool(pool) => Some(pool),
        _ => None,
    };
    frame.any_home().or_else(|| frame.roots.iter().find_map(of))
}

/// A copy of what a module answers, for the core.
fn given(frame: &Frame, bytes: &[u8]) -> Answer<u64> {
    let pool = pool(frame).ok_or("an answer without a pool")?;
    // SAFETY: the pool of what the call was given lives, and this thread works with it.
    unsafe {
        let at = apr::apr_palloc(pool, bytes.len() as u64);
        (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Ok(at)
    }
}

/// What all of [`STANDS`] do. There are as many of those as slots, so each is this call and nothing more.
#[inline(never)]
extern "C" fn call(place: usize, arguments: &[u64; WIDE]) -> u64 {
    match SLOTS.get(place).and_then(OnceLock::get) {
        Some(slot) => slot.call(arguments),
        None => 0,
    }
}

/// What all of [`FEW`] do.
#[inline(never)]
extern "C" fn call_few(place: usize, arguments: &[u64; FEW_MOST]) -> u64 {
    match SLOTS.get(place).and_then(OnceLock::get) {
        Some(slot) => slot.call_few(arguments),
        None => 0,
    }
}

/// Counts a call; a few stand for all, because clocks cost.
#[inline(always)]
fn is_timed(walled: &Walled) -> bool {
    walled.calls.count().is_multiple_of(TIMED)
}

/// A call's answer, or 0 if it has ended: the reason is noted.
#[inline(always)]
fn noted(answer: Answer<u64>, why: &mut Option<String>) -> u64 {
    match answer {
        Ok(result) => result,
        Err(error) => {
            *why = Some(error);
            0
        }
    }
}

/// With nothing behind the sixth.
#[inline]
fn all(&[a, b, c, d, e, f]: &[u64; FEW_MOST]) -> [u64; WIDE] {
    [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0]
}

impl Slot {
    /// What an ended call answers.
    fn error(&self, why: &str) -> u64 {
        match self.kind.error {
            Some(number) => number,
            // A directive's error is a text, which the core prints before it ends.
            None => CString::new(why).unwrap_or_default().into_raw() as u64,
        }
    }

    /// What an ended call answers, after it has seen to the request.
    #[cold]
    fn ended(&self, arguments: &[u64; WIDE], why: &str) -> u64 {
        self.walled.give_back();
        let answer = stopped::behind(self.walled, self.kind, arguments);
        answer.unwrap_or_else(|| self.error(&format!("mullion: {why}")))
    }

    #[inline(always)]
    fn fill(&self, arguments: &[u64], roots: &mut Roots) {
        for (at, given) in &self.kind.roots {
            let value = arguments.get(*at).copied().unwrap_or(0);
            if value != 0 {
                roots.push(given.root(value));
            }
        }
        // The frame of the call is not entered yet.
        if self.kind.inherits
            && let Some(caller) = frame::now()
        {
            caller.given().for_each(|root| roots.push(root));
        }
    }

    fn call(&self, arguments: &[u64; WIDE]) -> u64 {
        self.call_closely(arguments, None)
    }

    /// Whether the module has done nothing that its calls are looked at for but to write fields, and runs.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        !self.walled.deeds.has(deeds::CLOSELY) && !self.walled.domain.is_ended()
    }

    #[inline(always)]
    fn call_few(&self, arguments: &[u64; FEW_MOST]) -> u64 {
        let walled = self.walled;
        // Nearly all calls. All else is for deeds, and for modules that have ended.
        if !(self.is_plain || self.is_filter) || !self.is_quiet() || reading::any() {
            return self.call_closely(&all(arguments), None);
        }
        if is_timed(walled) {
            return self.call_closely(&all(arguments), Some(true));
        }
        let now = frame::place();
        let mut frame = Frame::new(walled, now);
        self.fill(arguments, &mut frame.roots);
        // SAFETY: the frame stays where it is, and is ended below.
        unsafe { frame.begin(now) };
        let mut why = None;
        let result = if self.is_plain && !walled.deeds.has(deeds::WROTE) {
            let result = self.invoke_few(arguments);
            match self.is_quiet() {
                true => result,
                false => noted(self.behind(&frame, result), &mut why),
            }
        } else {
            noted(self.with_care(&frame, arguments), &mut why)
        };
        // SAFETY: it has begun above, in this thread.
        unsafe { frame.end(now) };
        match why {
            None => result,
            Some(why) => self.ended_for(arguments, why),
        }
    }

    #[cold]
    #[inline(never)]
    fn ended_for(&self, arguments: &[u64; FEW_MOST], why: String) -> u64 {
        self.ended(&all(arguments), &why)
    }

    /// A call of a filter, or of a module that has written fields.
    #[inline(never)]
    fn with_care(&self, frame: &Frame, arguments: &[u64; FEW_MOST]) -> Answer<u64> {
        if self.is_filter {
            return self.filter(frame, arguments);
        }
        self.touched(frame)?;
        let result = self.invoke_few(arguments);
        match self.is_quiet() {
            true => Ok(result),
            false => self.behind(frame, result),
        }
    }

    /// Grants what the module has written of late of what the call was given.
    fn touched(&self, frame: &Frame) -> Answer<()> {
        let touched = caught(|| {
            let mut given = frame.given();
            given.try_for_each(|root| self.walled.touch(frame, root))
        });
        match touched {
            Ok(()) => Ok(()),
            Err(why) => self.settled(frame, Err(why)).map(drop),
        }
    }

    /// A filter's function. The second argument is its brigade, of which the module gets a copy, as in `seen_to`.
    fn filter(&self, frame: &Frame, arguments: &[u64; FEW_MOST]) -> Answer<u64> {
        let result = caught(|| self.filtered(frame, *arguments));
        // A call that leaves nothing to see to.
        if self.is_quiet() && result.is_ok() {
            return result;
        }
        self.settled(frame, result)
    }

    #[inline(always)]
    fn filtered(&self, frame: &Frame, mut arguments: [u64; FEW_MOST]) -> Answer<u64> {
        let walled = self.walled;
        if walled.deeds.has(deeds::WROTE) {
            for root in frame.given() {
                walled.touch(frame, root)?;
            }
        }
        let mut shown = None;
        if arguments[1] != 0 {
            let home = frame.home().ok_or("a brigade without a connection")?;
            let (copy, is_known) = walled.show_brigade(frame, home, arguments[1])?;
            shown = Some((copy, is_known));
            arguments[1] = copy;
        }
        let result = self.invoke_few(&arguments);
        walled.exchange(frame)?;
        if let Some((copy, is_known)) = shown {
            walled.end_brigade(frame, copy, is_known)?;
        }
        Ok(result)
    }

    /// Behind a plain call, if there is more to look at.
    #[cold]
    #[inline(never)]
    fn behind(&self, frame: &Frame, result: u64) -> Answer<u64> {
        let looked = caught(|| self.walled.exchange(frame)).map(|()| result);
        self.settled(frame, looked)
    }

    /// What the module's call comes to.
    fn settled(&self, frame: &Frame, result: Answer<u64>) -> Answer<u64> {
        let walled = self.walled;
        let result = match result {
            // This reason comes before all that the call has left behind.
            _ if walled.domain.is_ended() => Err(walled.tell()),
            Ok(result) => Ok(result),
            Err(why) => {
                let why = format!("{}: {why}", walled.name);
                apr::log(0, &why);
                Err(why)
            }
        };
        walled.settle(frame, result.is_err());
        result
    }

    #[inline(never)]
    fn call_closely(&self, arguments: &[u64; WIDE], counted: Option<bool>) -> u64 {
        let (walled, kind) = (self.walled, self.kind);
        if let Some(answer) = stopped::before(walled, kind, arguments) {
            return answer;
        }
        let is_timed = counted.unwrap_or_else(|| is_timed(walled));
        let begun = is_timed.then(Instant::now);
        if walled.domain.is_ended() && !walled.revive() {
            leaving::leave(&walled.name);
            return self.ended(arguments, &format!("{} was stopped", walled.name));
        }
        let fill = |roots: &mut Roots| self.fill(arguments, roots);
        let result = Frame::enter(walled, fill, |frame| {
            if reading::any() {
                caught(|| reading::enter(frame, arguments)).unwrap_or_else(|why| {
                    mullion_word_runtime::refuse(why);
                });
            }
            let granted = match self.is_plain && walled.deeds.none() {
                true => {
                    let result = self.invoke(arguments);
                    caught(|| walled.exchange(frame)).map(|()| result)
                }
                false => caught(|| self.granted(frame, arguments)),
            };
            let granted = match reading::any() {
                true => {
                    let left = caught(|| reading::leave(frame));
                    granted.and_then(|result| left.map(|()| result))
                }
                false => granted,
            };
            self.settled(frame, granted)
        });
        let result = result.unwrap_or_else(|why| self.ended(arguments, &why));
        if let Some(begun) = begun {
            let time = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            walled.time.add(time.saturating_mul(TIMED));
        }
        result
    }

    /// Calls the module with what its frame gives it.
    fn granted(&self, frame: &Frame, arguments: &[u64; WIDE]) -> Answer<u64> {
        if self.is_seen_to {
            return self.seen_to(frame, *arguments);
        }
        let walled = self.walled;
        if walled.deeds.has(deeds::WROTE) {
            for root in frame.given() {
                walled.touch(frame, root)?;
            }
        }
        walled.begin_words(frame);
        let result = self.invoke(arguments);
        walled.exchange(frame)?;
        self.looked_at(frame, result)
    }

    /// Arguments with their places, if there is something to do for them.
    #[inline(always)]
    fn all_given(&self, is_needed: bool) -> impl Iterator<Item = (usize, &'static Given)> {
        let most = if is_needed { WIDE } else { 0 };
        self.kind.given.iter().enumerate().take(most)
    }

    /// Through the gate.
    #[inline]
    fn invoke(&self, arguments: &[u64; WIDE]) -> u64 {
        if self.kind.given.len() > 6 {
            // SAFETY: as below; the module gets so many words of its arguments on the stack (`Policy::stacked`).
            return unsafe { slots::call_wide(self.function, arguments) };
        }
        let [a, b, c, d, e, f, ..] = *arguments;
        self.invoke_few(&[a, b, c, d, e, f])
    }

    /// The same for at most six arguments.
    #[inline(always)]
    fn invoke_few(&self, &[a, b, c, d, e, f]: &[u64; FEW_MOST]) -> u64 {
        // SAFETY: it was seen to be a gate of the module, whose text stays mapped, or it is a function of ours for six
        // integers. A gate takes any arguments: they are numbers to the module.
        let function = unsafe { std::mem::transmute::<u64, slots::Function>(self.function) };
        function(a, b, c, d, e, f)
    }

    /// What the module answers.
    #[inline]
    fn looked_at(&self, frame: &Frame, result: u64) -> Answer<u64> {
        match self.kind.answer {
            Result_::Null if result != 0 => Err(format!(
                "{result:#x} is answered, which the core would follow"
            )),
            // One of our functions answers a text of httpd's.
            Result_::Text if result != 0 && self.walled.is_gate(self.function) => {
                given(frame, &copied::name(frame, result)?)
            }
            Result_::Copied(bytes) if result != 0 => {
                let mut copy = vec![0; bytes];
                // SAFETY: there is room for so many bytes.
                unsafe { copied::into(frame, result, copy.as_mut_ptr(), bytes) }?;
                given(frame, &copy)
            }
            Result_::Object(kind @ (Kind::Table | Kind::Thing))
                if result != 0 && !has(frame, kind, result) =>
            {
                let kind = kind.name();
                Err(format!(
                    "{result:#x} is answered, which is no {kind} of the module"
                ))
            }
            Result_::Declined => Ok(DECLINED),
            _ => Ok(result),
        }
    }

    /// The same for a call for whose length something is granted, copied or shown.
    fn seen_to(&self, frame: &Frame, arguments: [u64; WIDE]) -> Answer<u64> {
        let walled = self.walled;
        if self.kind.name == "register" {
            // The core has just given the module its number.
            crate::load::number(walled);
        }
        let mut granted = Vec::new();
        // Words in which the module leaves strings, and what they had before.
        let mut left = Vec::new();
        for (at, given) in self.all_given(self.kind.grants) {
            let value = arguments[at];
            match given {
                _ if value == 0 => {}
                Given::Out(bytes) => granted.push(walled.grant(value, *bytes)?),
                Given::OutText => {
                    // SAFETY: the core or a module that calls has a word there, as was looked at.
                    left.push((value, unsafe { read(value) }));
                    granted.push(walled.grant(value, 8)?);
                }
                Given::OutAt(count) => {
                    let count = arguments.get(*count).copied().unwrap_or(0);
                    // SAFETY: the core or a module that calls has 32 bits there, as was looked at.
                    let bytes = u64::from(unsafe { (count as *const u32).read() });
                    granted.push(walled.grant(value, bytes)?);
                    granted.push(walled.grant(count, 4)?);
                }
                Given::OutString => {
                    granted.push(walled.grant(value, 8)?);
                    // SAFETY: the core or a module that calls has a word there, as was looked at.
                    let text = unsafe { read(value) };
                    if let Some(caller) = frame.outer().filter(|_| text != 0) {
                        let bytes = copied::length(text)? as u64 + 1;
                        caller.walled.must_write(text, bytes)?;
                        granted.push(walled.grant(text, bytes)?);
                    }
                }
                Given::OutBy(by) => {
                    // The caller has passed a place of so many bytes.
                    let bytes = arguments.get(*by).map_or(0, |by| *by as u32);
                    granted.push(walled.grant(value, u64::from(bytes))?);
                }
                Given::Callback(kind) => {
                    crate::out::offer_back(walled, value as usize, crate::interface::back(kind))?;
                }
                Given::Within(at, kind) => {
                    partners::offer_within(frame, value.wrapping_add(*at), kind)?;
                }
                _ => {}
            }
        }
        for root in frame.given() {
            walled.touch(frame, root)?;
            if let Root::Command(cmd) = root {
                if walled.places.2 {
                    // SAFETY: the core has passed it.
                    let all =
                        unsafe { read(read(cmd + layout::CMD_SERVER) + layout::S_MODULE_CONFIG) };
                    granted.push(walled.grant(all + 8 * walled.index(), 8)?);
                }
                if walled.swaps.sources {
                    walled.know_source(frame, cmd)?;
                }
                for (at, bytes) in &walled.command {
                    granted.push(walled.grant(cmd + at, *bytes)?);
                }
            }
        }
        let mut arguments = arguments;
        if self.kind.name == "directive" {
            raw(frame, &mut arguments)?;
            if walled.reads {
                // SAFETY: the core calls a directive with its state and arguments.
                unsafe { reading::directive(frame, &mut arguments) }?;
            }
        }
        for (at, given) in self.all_given(self.kind.copies) {
            if *given == Given::Copy && arguments[at] != 0 {
                let home = frame.home().ok_or("a string without a request")?;
                // SAFETY: the core's strings end with a zero.
                arguments[at] = walled.copy(frame, home, unsafe { apr::text(arguments[at]) })?;
            }
        }
        for (at, given) in self.all_given(walled.reads) {
            if *given == Given::Shown && arguments[at] != 0 {
                // SAFETY: the core's strings end with a zero.
                let text = unsafe { apr::text(arguments[at]) };
                arguments[at] = walled.copy(frame, reading::home(frame), text)?;
            }
        }
        // A call gets two brigades at most.
        let mut shown = [None; 2];
        for (at, given) in self.all_given(self.kind.shows) {
            if *given == Given::Brigade && arguments[at] != 0 {
                let home = frame.home().ok_or("a brigade without a connection")?;
                let (copy, is_known) = walled.show_brigade(frame, home, arguments[at])?;
                let place = shown.iter_mut().find(|place| place.is_none());
                *place.ok_or("a call with many brigades")? = Some((copy, is_known));
                arguments[at] = copy;
            }
        }
        // What is noted here is over behind the call: nothing in between returns.
        for cmd in sourced(frame) {
            // SAFETY: the core has passed it.
            unsafe { walled.note_word(cmd + sources::FILE, Rule::Source, 0) };
        }
        walled.begin_words(frame);
        let result = self.invoke(&arguments);
        let exchanged = walled.exchange(frame);
        for cmd in sourced(frame) {
            walled.swaps.end(cmd + sources::FILE);
        }
        exchanged?;
        for (copy, is_known) in shown.into_iter().flatten() {
            walled.end_brigade(frame, copy, is_known)?;
        }
        if !left.is_empty() {
            // No thread of the module writes there behind that.
            Granted::end_all(granted);
        }
        for (word, before) in left {
            // SAFETY: the core or a module that calls has this word until the call returns.
            let text = unsafe { read(word) };
            if text != before && text != 0 {
                let copy = copied::name(frame, text).and_then(|text| given(frame, &text));
                // SAFETY: the word is there until the call returns. The core gets no address that is no string.
                unsafe { (word as *mut u64).write(copy.as_ref().copied().unwrap_or(before)) };
                copy?;
            }
        }
        self.looked_at(frame, result)
    }
}
