//! `RedisModule_Call` and what answers it; what is replicated; and what the server says of itself.
//!
//! A call's arguments are as a format says. They are read with the module's rights, and handed to Redis as an array of
//! strings. Which commands a module may run is in its policy: `[group] commands`.

use crate::api::{Context, NewText, OptionalContext, Reply, forward, host, known, mediators};
use crate::frame::{Frame, mediate};
use mullion_bridge::{Answer, refused};
use std::ffi::{CString, c_char, c_int};

forward! { FORWARDED;
    CallReplyType(reply: Reply) -> i32;
    CallReplyInteger(reply: Reply) -> i64;
    CallReplyDouble(reply: Reply) -> f64;
    CallReplyBool(reply: Reply) -> i32;
    CallReplyLength(reply: Reply) -> u64;
    CreateStringFromCallReply(reply: Reply) -> NewText;
    ReplicateVerbatim(context: Context) -> i32;
    GetSelectedDb(context: Context) -> i32;
    SelectDb(context: Context, number: i32) -> i32;
    GetClientId(context: Context) -> u64;
    GetContextFlags(context: OptionalContext) -> i32;
    DbSize(context: Context) -> u64;
    IsKeysPositionRequest(context: Context) -> i32;
    KeyAtPos(context: Context, at: i32);
    KeyAtPosWithFlags(context: Context, at: i32, flags: i32);
    Milliseconds() -> i64;
    MonotonicMicroseconds() -> u64;
    GetServerVersion() -> i32;
    GetContextFlagsAll() -> i32;
    GetUsedMemoryRatio() -> f32;
    SetModuleOptions(context: Context, options: i32);
}

mediators! { ALL;
    Call = call;
    Replicate = replicate;
    FreeCallReply = free;
    CallReplyStringPtr = text;
    CallReplyProto = protocol;
    CallReplyBigNumber = big_number;
    CallReplyVerbatim = verbatim;
    CallReplyAttribute = attribute;
    CallReplyAttributeElement = attribute_element;
    CallReplyArrayElement = array_element;
    CallReplySetElement = set_element;
    CallReplyMapElement = map_element;
    AutoMemory = automatic;
    GetCurrentCommandName = command_name;
}

/// Words behind the fixed arguments, in registers and on the stack.
pub(crate) struct Words<'a>(pub(crate) &'a [u64]);

impl Words<'_> {
    fn next(&mut self) -> Answer<u64> {
        let Some((first, rest)) = self.0.split_first() else {
            return refused("a format wants more arguments than are passed on");
        };
        self.0 = rest;
        Ok(*first)
    }
}

/// Strings of Redis's that were made for a call.
pub(crate) struct Arguments {
    /// All of them.
    pub(crate) all: Vec<usize>,
    made: Vec<usize>,
    /// `v`, and what the format says beside arguments.
    pub(crate) format: CString,
}

impl Drop for Arguments {
    fn drop(&mut self) {
        for text in &self.made {
            host!(FreeString: fn(usize, usize))(0, *text);
        }
    }
}

impl Arguments {
    pub(crate) fn read(frame: &Frame, format: u64, mut words: Words<'_>) -> Answer<Arguments> {
        let module = frame.walled.module;
        let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
        let mut read = Arguments {
            all: Vec::new(),
            made: Vec::new(),
            format: CString::default(),
        };
        let mut flags = vec![b'v'];
        for letter in module.c_string(format)?.to_bytes() {
            let made = match letter {
                b's' => {
                    read.all.push(frame.string(words.next()?)?);
                    continue;
                }
                b'v' => {
                    let (at, count) = (words.next()?, words.next()?);
                    for number in 0..count.min(1 << 20) {
                        let text = module.read(at.wrapping_add(8 * number))?;
                        read.all.push(frame.string(text)?);
                    }
                    continue;
                }
                b'c' => {
                    let text = module.text(words.next()?)?;
                    create(0, text.as_ptr(), text.len())
                }
                b'b' => {
                    let (at, bytes) = (words.next()?, words.next()?);
                    let text = module.bytes(at, bytes)?;
                    create(0, text.as_ptr(), text.len())
                }
                b'l' => host!(CreateStringFromLongLong: fn(usize, i64) -> usize)(
                    0,
                    words.next()? as i64,
                ),
                b'!' | b'A' | b'R' | b'0' | b'3' | b'C' | b'S' | b'W' | b'M' | b'E' => {
                    flags.push(*letter);
                    continue;
                }
                letter => {
                    let letter = char::from(*letter);
                    return refused(format!("`{letter}` in a call's format is not known"));
                }
            };
            read.made.push(made);
            read.all.push(made);
        }
        read.format = CString::new(flags).unwrap_or_default();
        Ok(read)
    }
}

/// Whether the policy lets the module run a command.
fn may_run(frame: &Frame, name: &CString) -> Answer<()> {
    let wanted = name.to_string_lossy().to_uppercase();
    let commands = &frame.walled.commands;
    match commands.contains("ALL") || commands.contains(&wanted) {
        true => Ok(()),
        false => refused(format!(
            "the command {wanted}, which `commands = [\"{wanted}\"]` in [group] of its policy would allow"
        )),
    }
}

type Variadic = unsafe extern "C" fn(usize, *const c_char, *const c_char, ...) -> usize;

fn run(
    frame: &Frame,
    function: &str,
    context: u64,
    name: u64,
    format: u64,
    words: &[u64],
) -> Answer<usize> {
    let context = frame.context(context)?;
    let name = frame.walled.module.c_string(name)?;
    may_run(frame, &name)?;
    frame.changes()?;
    frame.write_back(None);
    let arguments = Arguments::read(frame, format, Words(words))?;
    // SAFETY: this is the function's type.
    let call = unsafe { std::mem::transmute::<usize, Variadic>(known(function)) };
    let (all, format) = (&arguments.all, &arguments.format);
    // SAFETY: the format has one array of strings of Redis's, with its length.
    Ok(unsafe {
        call(
            context,
            name.as_ptr(),
            format.as_ptr(),
            all.as_ptr(),
            all.len(),
        )
    })
}

macro_rules! variadic {
    ($name:ident -> $result:ty, |$frame:ident, $context:ident, $command:ident, $format:ident, $words:ident| $act:expr) => {
        #[allow(clippy::too_many_arguments)]
        pub(crate) extern "C" fn $name(
            $context: u64,
            $command: u64,
            $format: u64,
            a: u64,
            b: u64,
            c: u64,
            s0: u64,
            s1: u64,
            s2: u64,
            s3: u64,
            s4: u64,
            s5: u64,
            s6: u64,
            s7: u64,
            s8: u64,
            s9: u64,
            s10: u64,
            s11: u64,
        ) -> $result {
            let $words = &[a, b, c, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11];
            mediate(|$frame| $act)
        }
    };
}
pub(crate) use variadic;

variadic!(call -> u64, |frame, context, name, format, words| {
    let reply = run(frame, "RedisModule_Call\0", context, name, format, words)?;
    Ok(frame.give_reply(reply))
});

variadic!(replicate -> c_int, |frame, context, name, format, words| {
    Ok(run(frame, "RedisModule_Replicate\0", context, name, format, words)? as c_int)
});

extern "C" fn free(reply: u64) {
    mediate(|frame| {
        if reply == 0 {
            return Ok(());
        }
        let reply = frame.reply(reply)?;
        // Redis frees parts with the whole, and does nothing for a part.
        if frame.drop_reply(reply) {
            host!(FreeCallReply: fn(usize))(reply);
        }
        Ok(())
    });
}

macro_rules! pieces {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(reply: u64, length: u64) -> u64 {
            mediate(|frame| {
                let reply = frame.reply(reply)?;
                let mut bytes = 0usize;
                let at = host!($name: fn(usize, *mut usize) -> *const u8)(reply, &raw mut bytes);
                if length != 0 {
                    frame.walled.module.write(length, &bytes.to_ne_bytes())?;
                }
                Ok(frame.lend(at, bytes))
            })
        }
    )* };
}
pieces! {
    text, CallReplyStringPtr;
    protocol, CallReplyProto;
    big_number, CallReplyBigNumber;
}

macro_rules! elements {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(reply: u64, at: u64) -> u64 {
            mediate(|frame| {
                let reply = frame.reply(reply)?;
                let part = host!($name: fn(usize, usize) -> usize)(reply, at as usize);
                Ok(frame.give_part(reply, part))
            })
        }
    )* };
}
elements! {
    array_element, CallReplyArrayElement;
    set_element, CallReplySetElement;
}

macro_rules! pairs {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(reply: u64, at: u64, key: u64, value: u64) -> c_int {
            mediate(|frame| {
                let reply = frame.reply(reply)?;
                let mut found = [0usize; 2];
                let find = host!($name: fn(usize, usize, *mut usize, *mut usize) -> c_int);
                let [first, second] = &mut found;
                let code = find(reply, at as usize, first, second);
                for (to, part) in [key, value].into_iter().zip(found) {
                    let part = frame.give_part(reply, part);
                    if to != 0 {
                        frame.walled.module.write(to, &part.to_ne_bytes())?;
                    }
                }
                Ok(code)
            })
        }
    )* };
}
pairs! {
    map_element, CallReplyMapElement;
    attribute_element, CallReplyAttributeElement;
}

extern "C" fn attribute(reply: u64) -> u64 {
    mediate(|frame| {
        let reply = frame.reply(reply)?;
        let part = host!(CallReplyAttribute: fn(usize) -> usize)(reply);
        Ok(frame.give_part(reply, part))
    })
}

extern "C" fn verbatim(reply: u64, length: u64, format: u64) -> u64 {
    mediate(|frame| {
        let (reply, module) = (frame.reply(reply)?, frame.walled.module);
        let (mut bytes, mut kind) = (0usize, std::ptr::null::<u8>());
        let find = host!(CallReplyVerbatim: fn(usize, *mut usize, *mut *const u8) -> *const u8);
        let at = find(reply, &raw mut bytes, &raw mut kind);
        if length != 0 {
            module.write(length, &bytes.to_ne_bytes())?;
        }
        if format != 0 {
            // The format of such a reply has three letters.
            let lent = frame.lend(kind, if kind.is_null() { 0 } else { 3 });
            module.write(format, &lent.to_ne_bytes())?;
        }
        Ok(frame.lend(at, bytes))
    })
}

extern "C" fn automatic(context: u64) {
    mediate(|frame| {
        let context = frame.context(context)?;
        host!(AutoMemory: fn(usize))(context);
        frame.automatic();
        Ok(())
    });
}

extern "C" fn command_name(context: u64) -> u64 {
    mediate(|frame| {
        let context = frame.context(context)?;
        let name = host!(GetCurrentCommandName: fn(usize) -> *const c_char)(context);
        match name.is_null() {
            true => Ok(0),
            // SAFETY: Redis's names end with a zero.
            false => Ok(frame.lend(name.cast(), unsafe { libc::strlen(name) })),
        }
    })
}
