//! Keys of the database that a module has opened, and what is in them: strings, lists, sorted sets, hashes.

use crate::api::{
    Context, InOut, Key, NewText, OptionalKey, OptionalText, OthersText, Out, Text, forward, host,
    mediators,
};
use crate::frame::{Direct, Frame, mediate};
use mullion_bridge::{Answer, refused};
use std::ffi::c_int;

/// `REDISMODULE_WRITE`.
pub(crate) const WRITE: c_int = 2;
/// Fields of a hash are strings that end with a zero.
const C_FIELDS: c_int = 1 << 2;
/// `HashGet` says whether there is a field.
const EXISTS: c_int = 1 << 3;
/// A value that stands for a field's end.
const DELETE: u64 = 1;
/// Arguments that `HashSet` and `HashGet` get in registers, and on the stack.
const STACKED: usize = 12;

forward! { FORWARDED;
    KeyType(key: OptionalKey) -> i32;
    ValueLength(key: OptionalKey) -> u64;
    DeleteKey(key: Key) -> i32;
    UnlinkKey(key: Key) -> i32;
    StringSet(key: Key, text: Text) -> i32;
    GetExpire(key: Key) -> i64;
    SetExpire(key: Key, at: i64) -> i32;
    GetAbsExpire(key: Key) -> i64;
    SetAbsExpire(key: Key, at: i64) -> i32;
    SetLRU(key: Key, idle: i64) -> i32;
    GetLRU(key: Key, idle: Out<i64>) -> i32;
    SetLFU(key: Key, often: i64) -> i32;
    GetLFU(key: Key, often: Out<i64>) -> i32;
    KeyExists(context: Context, name: Text) -> i32;
    SignalModifiedKey(context: Context, name: Text) -> i32;
    GetKeyNameFromModuleKey(key: Key) -> OthersText;
    GetDbIdFromModuleKey(key: Key) -> i32;
    ListPush(key: OptionalKey, end: i32, text: Text) -> i32;
    ListPop(key: OptionalKey, end: i32) -> NewText;
    ListGet(key: OptionalKey, at: i64) -> NewText;
    ListSet(key: OptionalKey, at: i64, text: Text) -> i32;
    ListInsert(key: OptionalKey, at: i64, text: Text) -> i32;
    ListDelete(key: OptionalKey, at: i64) -> i32;
    ZsetAdd(key: Key, score: f64, text: Text, flags: InOut<i32>) -> i32;
    ZsetIncrby(key: Key, by: f64, text: Text, flags: InOut<i32>, score: Out<f64>) -> i32;
    ZsetScore(key: Key, text: Text, score: Out<f64>) -> i32;
    ZsetRem(key: Key, text: Text, deleted: Out<i32>) -> i32;
    ZsetRangeStop(key: Key);
    ZsetFirstInScoreRange(key: Key, least: f64, most: f64, without: i32, without_last: i32) -> i32;
    ZsetLastInScoreRange(key: Key, least: f64, most: f64, without: i32, without_last: i32) -> i32;
    ZsetFirstInLexRange(key: Key, least: Text, most: Text) -> i32;
    ZsetLastInLexRange(key: Key, least: Text, most: Text) -> i32;
    ZsetRangeCurrentElement(key: Key, score: Out<f64>) -> NewText;
    ZsetRangeNext(key: Key) -> i32;
    ZsetRangePrev(key: Key) -> i32;
    ZsetRangeEndReached(key: Key) -> i32;
    NotifyKeyspaceEvent(context: Context, kind: i32, event: crate::api::Words, key: OptionalText) -> i32;
}

mediators! { ALL;
    OpenKey = open;
    CloseKey = close;
    StringDMA = direct;
    StringTruncate = truncate;
    HashSet = hash_set;
    HashGet = hash_get;
}

extern "C" fn open(context: u64, name: u64, mode: c_int) -> u64 {
    mediate(|frame| {
        let (context, name) = (frame.context(context)?, frame.string(name)?);
        if mode & WRITE != 0 {
            frame.changes()?;
        }
        let open = host!(OpenKey: fn(usize, usize, c_int) -> usize);
        Ok(frame.give_key(open(context, name, mode)))
    })
}

extern "C" fn close(key: u64) {
    mediate(|frame| {
        if key == 0 {
            return Ok(());
        }
        let key = frame.key(key)?;
        if frame.is_lent_key(key) {
            return refused("the key is Redis's to close");
        }
        frame.write_back(Some(key));
        frame.drop_key(key);
        host!(CloseKey: fn(usize))(key);
        Ok(())
    });
}

/// The module gets a copy of the text. What it has written goes to Redis when the key is closed, cut, or the call returns.
extern "C" fn direct(key: u64, length: u64, mode: c_int) -> u64 {
    mediate(|frame| {
        let key = frame.key(key)?;
        frame.write_back(Some(key));
        let mut bytes = 0usize;
        let find = host!(StringDMA: fn(usize, *mut usize, c_int) -> *mut u8);
        let at = find(key, &raw mut bytes, mode);
        if length != 0 {
            let module = frame.walled.module;
            module.write(length, &bytes.to_ne_bytes())?;
        }
        let block = frame.lend(at, bytes);
        if block != 0 && mode & WRITE != 0 {
            frame.direct.borrow_mut().push(Direct {
                key,
                block,
                bytes: bytes as u64,
            });
        }
        Ok(block)
    })
}

extern "C" fn truncate(key: u64, length: u64) -> c_int {
    mediate(|frame| {
        let key = frame.key(key)?;
        frame.write_back(Some(key));
        Ok(host!(StringTruncate: fn(usize, usize) -> c_int)(
            key,
            length as usize,
        ))
    })
}

/// Pairs of words up to a null.
struct Pairs {
    words: [u64; 4 + STACKED],
    at: usize,
}

impl Pairs {
    fn next(&mut self) -> Answer<Option<(u64, u64)>> {
        match self.words.get(self.at..self.at + 2) {
            Some([0, _]) => Ok(None),
            Some([field, value]) => {
                self.at += 2;
                Ok(Some((*field, *value)))
            }
            _ => refused("more fields than are passed on in one call: 7 at most"),
        }
    }
}

/// A field's name as a string of Redis's, and whether it was made here.
fn field(frame: &Frame, flags: c_int, field: u64) -> Answer<(usize, bool)> {
    if flags & C_FIELDS == 0 {
        return Ok((frame.string(field)?, false));
    }
    let name = frame.walled.module.text(field)?;
    let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
    Ok((create(0, name.as_ptr(), name.len()), true))
}

fn drop_field((text, is_made): (usize, bool)) {
    if is_made {
        host!(FreeString: fn(usize, usize))(0, text);
    }
}

fn set(frame: &Frame, key: u64, flags: c_int, mut pairs: Pairs) -> Answer<c_int> {
    let key = frame.key(key)?;
    type Set = unsafe extern "C" fn(usize, c_int, ...) -> c_int;
    let at = crate::api::known("RedisModule_HashSet\0");
    // SAFETY: this is the function's type.
    let set = unsafe { std::mem::transmute::<usize, Set>(at) };
    let mut changed = 0;
    while let Some((name, value)) = pairs.next()? {
        let value = match value {
            DELETE => DELETE as usize,
            value => frame.string(value)?,
        };
        let name = field(frame, flags, name)?;
        // SAFETY: a pair of strings of Redis's, and the end.
        changed += unsafe { set(key, flags & !C_FIELDS, name.0, value, 0usize) };
        drop_field(name);
    }
    Ok(changed)
}

fn get(frame: &Frame, key: u64, flags: c_int, mut pairs: Pairs) -> Answer<c_int> {
    let key = frame.key(key)?;
    type Get = unsafe extern "C" fn(usize, c_int, ...) -> c_int;
    let at = crate::api::known("RedisModule_HashGet\0");
    // SAFETY: this is the function's type.
    let get = unsafe { std::mem::transmute::<usize, Get>(at) };
    while let Some((name, to)) = pairs.next()? {
        let name = field(frame, flags, name)?;
        let mut found = 0usize;
        // SAFETY: a string of Redis's, room for a pointer or an int, and the end.
        let code = unsafe { get(key, flags & !C_FIELDS, name.0, &raw mut found, 0usize) };
        drop_field(name);
        if code != 0 {
            return Ok(code);
        }
        let module = frame.walled.module;
        match flags & EXISTS != 0 {
            true => module.write(to, &(found as u32).to_ne_bytes())?,
            false => module.write(to, &frame.give_string(found).to_ne_bytes())?,
        }
    }
    Ok(0)
}

macro_rules! variadic {
    ($name:ident, $act:ident) => {
        #[allow(clippy::too_many_arguments)]
        extern "C" fn $name(
            key: u64,
            flags: c_int,
            a: u64,
            b: u64,
            c: u64,
            d: u64,
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
        ) -> c_int {
            let words = [a, b, c, d, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11];
            mediate(|frame| $act(frame, key, flags, Pairs { words, at: 0 }))
        }
    };
}
variadic!(hash_set, set);
variadic!(hash_get, get);
