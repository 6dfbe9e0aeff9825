//! Replies to clients. Redis's protocol has one reply to a command, in as many parts as it says. A module that was
//! stopped in the middle would leave its client waiting. So what it still owes is counted, and is sent in its place.

use crate::api::{host, mediators};
use crate::frame::{Frame, c_string, mediate};
use crate::memory::OK;
use mullion_bridge::{Answer, refused};
use std::ffi::{c_char, c_int, c_long, c_longlong};

/// Parts of one reply, at most.
const MOST: i64 = 1 << 24;
/// `REDISMODULE_POSTPONED_LEN`.
const POSTPONED: i64 = -1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    Map,
    Set,
}

/// A part of a reply that has parts.
struct Level {
    kind: Kind,
    /// Parts that are left, or, where that is said later, that were sent.
    parts: i64,
    postponed: bool,
}

/// What was replied in a call.
#[derive(Default)]
pub(crate) struct Account {
    levels: Vec<Level>,
    replies: u32,
}

impl Account {
    /// Whether everything was said.
    fn is_over(&self) -> bool {
        self.levels.is_empty() && self.replies > 0
    }

    /// A reply, or a part of one.
    fn one(&mut self) {
        match self.levels.last_mut() {
            None => self.replies += 1,
            Some(level) if level.postponed => level.parts += 1,
            Some(level) => level.parts -= 1,
        }
    }

    /// Parts that are complete are left.
    fn close(&mut self) {
        while let Some(level) = self.levels.last()
            && !level.postponed
            && level.parts <= 0
        {
            self.levels.pop();
        }
    }

    fn open(&mut self, kind: Kind, length: i64) {
        let parts = match kind {
            Kind::Map => length.saturating_mul(2),
            Kind::Array | Kind::Set => length,
        };
        let postponed = length == POSTPONED;
        self.levels.push(Level {
            kind,
            parts: if postponed { 0 } else { parts },
            postponed,
        });
        self.close();
    }

    /// Says how many parts there were; whether a reply waited for that.
    fn say(&mut self, kind: Kind) -> bool {
        let waits = self
            .levels
            .last()
            .is_some_and(|level| level.postponed && level.kind == kind);
        if waits {
            self.levels.pop();
            self.close();
        }
        waits
    }

    /// Sends what is owed: the error first, then nothing as often as needed.
    pub(crate) fn complete(&mut self, context: usize, why: &str) {
        let text = format!("ERR {}", why.replace(['\r', '\n'], " "));
        let text = c_string(&text);
        let error =
            || host!(ReplyWithError: fn(usize, *const c_char) -> c_int)(context, text.as_ptr());
        if self.replies == 0 {
            error();
            return;
        }
        let mut was_said = false;
        let mut send = || match std::mem::replace(&mut was_said, true) {
            false => error(),
            true => host!(ReplyWithNull: fn(usize) -> c_int)(context),
        };
        while let Some(level) = self.levels.pop() {
            if !level.postponed {
                (0..level.parts).for_each(|_| {
                    send();
                });
                continue;
            }
            let mut parts = level.parts;
            if level.kind == Kind::Map && parts % 2 == 1 {
                send();
                parts += 1;
            }
            set_length(context, level.kind, parts);
        }
    }
}

fn set_length(context: usize, kind: Kind, parts: i64) {
    match kind {
        Kind::Array => host!(ReplySetArrayLength: fn(usize, c_long))(context, parts),
        Kind::Map => host!(ReplySetMapLength: fn(usize, c_long))(context, parts / 2),
        Kind::Set => host!(ReplySetSetLength: fn(usize, c_long))(context, parts),
    }
}

/// A command has one reply.
fn may(frame: &Frame) -> Answer<()> {
    match frame.answers() && frame.account().borrow().is_over() {
        true => refused("a second reply to one command"),
        false => Ok(()),
    }
}

/// Counts a reply, and sends it.
fn reply(frame: &Frame, context: u64, send: impl FnOnce(usize) -> Answer<c_int>) -> Answer<c_int> {
    let context = frame.context(context)?;
    may(frame)?;
    let code = send(context)?;
    // Redis has sent nothing if it says so.
    if code == OK {
        let mut account = frame.account().borrow_mut();
        account.one();
        account.close();
    }
    Ok(code)
}

/// Replies without memory.
macro_rules! simple {
    ($($function:ident, $name:ident($($p:ident: $kind:ty),*);)*) => { $(
        extern "C" fn $function(context: u64 $(, $p: $kind)*) -> c_int {
            mediate(|frame| reply(frame, context, |context| {
                Ok(host!($name: fn(usize $(, $kind)*) -> c_int)(context $(, $p)*))
            }))
        }
    )* };
}
simple! {
    wrong_arity, WrongArity();
    integer, ReplyWithLongLong(number: c_longlong);
    double, ReplyWithDouble(number: f64);
    boolean, ReplyWithBool(value: c_int);
    null, ReplyWithNull();
    null_array, ReplyWithNullArray();
    empty_array, ReplyWithEmptyArray();
    empty_string, ReplyWithEmptyString();
}

/// Replies that are strings with an end.
macro_rules! texts {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(context: u64, text: u64) -> c_int {
            mediate(|frame| {
                let text = frame.walled.module.c_string(text)?;
                reply(frame, context, |context| {
                    Ok(host!($name: fn(usize, *const c_char) -> c_int)(context, text.as_ptr()))
                })
            })
        }
    )* };
}
texts! {
    c_text, ReplyWithCString;
}

/// Errors and simple strings end with a line: a module that could send another line could answer for Redis.
macro_rules! lines {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(context: u64, text: u64) -> c_int {
            mediate(|frame| {
                let text = frame.walled.module.c_string(text)?;
                if text.to_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                    return refused("a reply of one line has more lines");
                }
                reply(frame, context, |context| {
                    Ok(host!($name: fn(usize, *const c_char) -> c_int)(context, text.as_ptr()))
                })
            })
        }
    )* };
}
lines! {
    error, ReplyWithError;
    simple_string, ReplyWithSimpleString;
}

/// Replies of so many bytes.
macro_rules! buffers {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(context: u64, at: u64, bytes: u64) -> c_int {
            mediate(|frame| {
                let text = frame.walled.module.bytes(at, bytes)?;
                reply(frame, context, |context| {
                    let send = host!($name: fn(usize, *const u8, usize) -> c_int);
                    Ok(send(context, text.as_ptr(), text.len()))
                })
            })
        }
    )* };
}
buffers! {
    buffer, ReplyWithStringBuffer;
    verbatim, ReplyWithVerbatimString;
}

extern "C" fn big_number(context: u64, at: u64, bytes: u64) -> c_int {
    mediate(|frame| {
        let text = frame.walled.module.bytes(at, bytes)?;
        if !text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'-')
        {
            return refused("a big number has other signs than digits");
        }
        reply(frame, context, |context| {
            let send = host!(ReplyWithBigNumber: fn(usize, *const u8, usize) -> c_int);
            Ok(send(context, text.as_ptr(), text.len()))
        })
    })
}

extern "C" fn string(context: u64, text: u64) -> c_int {
    mediate(|frame| {
        let text = frame.string(text)?;
        reply(frame, context, |context| {
            Ok(host!(ReplyWithString: fn(usize, usize) -> c_int)(
                context, text,
            ))
        })
    })
}

extern "C" fn call_reply(context: u64, from: u64) -> c_int {
    mediate(|frame| {
        let from = frame.reply(from)?;
        reply(frame, context, |context| {
            Ok(host!(ReplyWithCallReply: fn(usize, usize) -> c_int)(
                context, from,
            ))
        })
    })
}

/// Replies with parts.
fn opened(frame: &Frame, context: u64, kind: Kind, length: c_long) -> Answer<c_int> {
    if !(POSTPONED..=MOST).contains(&length) {
        return refused(format!("a reply of {length} parts"));
    }
    let context = frame.context(context)?;
    may(frame)?;
    let code = match kind {
        Kind::Array => host!(ReplyWithArray: fn(usize, c_long) -> c_int)(context, length),
        Kind::Map => host!(ReplyWithMap: fn(usize, c_long) -> c_int)(context, length),
        Kind::Set => host!(ReplyWithSet: fn(usize, c_long) -> c_int)(context, length),
    };
    if code == OK {
        let mut account = frame.account().borrow_mut();
        account.one();
        account.open(kind, length);
    }
    Ok(code)
}

extern "C" fn array(context: u64, length: c_long) -> c_int {
    mediate(|frame| opened(frame, context, Kind::Array, length))
}

extern "C" fn map(context: u64, length: c_long) -> c_int {
    mediate(|frame| opened(frame, context, Kind::Map, length))
}

extern "C" fn set(context: u64, length: c_long) -> c_int {
    mediate(|frame| opened(frame, context, Kind::Set, length))
}

fn said(context: u64, kind: Kind, length: c_long) {
    mediate(|frame| {
        let real = frame.context(context)?;
        let mut account = frame.account().borrow_mut();
        let wanted = match kind {
            Kind::Map => length.saturating_mul(2),
            Kind::Array | Kind::Set => length,
        };
        let sent = account.levels.last().map(|level| level.parts);
        if sent != Some(wanted) || !account.say(kind) {
            return refused(format!(
                "a length of {length} where {sent:?} parts were sent"
            ));
        }
        set_length(real, kind, wanted);
        Ok(())
    });
}

extern "C" fn set_array(context: u64, length: c_long) {
    said(context, Kind::Array, length);
}

extern "C" fn set_map(context: u64, length: c_long) {
    said(context, Kind::Map, length);
}

extern "C" fn set_set(context: u64, length: c_long) {
    said(context, Kind::Set, length);
}

mediators! { ALL;
    WrongArity = wrong_arity;
    ReplyWithLongLong = integer;
    ReplyWithDouble = double;
    ReplyWithBool = boolean;
    ReplyWithNull = null;
    ReplyWithNullArray = null_array;
    ReplyWithEmptyArray = empty_array;
    ReplyWithEmptyString = empty_string;
    ReplyWithError = error;
    ReplyWithSimpleString = simple_string;
    ReplyWithCString = c_text;
    ReplyWithStringBuffer = buffer;
    ReplyWithVerbatimString = verbatim;
    ReplyWithBigNumber = big_number;
    ReplyWithString = string;
    ReplyWithCallReply = call_reply;
    ReplyWithArray = array;
    ReplyWithMap = map;
    ReplyWithSet = set;
    ReplySetArrayLength = set_array;
    ReplySetMapLength = set_map;
    ReplySetSetLength = set_set;
}
