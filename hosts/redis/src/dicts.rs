//! Dictionaries: Redis's radix trees. Their values are words to Redis, and it follows none of them.

use crate::api::{Dict, Iterator, Out, Text, Words, forward, host, mediators};
use crate::frame::{Frame, mediate};
use mullion_bridge::Answer;
use std::ffi::{c_char, c_int};

forward! { FORWARDED;
    DictSize(dict: Dict) -> u64;
    DictSet(dict: Dict, key: Text, value: u64) -> i32;
    DictReplace(dict: Dict, key: Text, value: u64) -> i32;
    DictGet(dict: Dict, key: Text, is_missing: Out<i32>) -> u64;
    DictDel(dict: Dict, key: Text, older: Out<u64>) -> i32;
    DictIteratorReseek(at: Iterator, how: Words, key: Text) -> i32;
    DictCompare(at: Iterator, how: Words, key: Text) -> i32;
}

mediators! { ALL;
    CreateDict = create;
    FreeDict = free;
    DictSetC = set;
    DictReplaceC = replace;
    DictGetC = get;
    DictDelC = delete;
    DictIteratorStart = start_string;
    DictIteratorStartC = start;
    DictIteratorStop = stop;
    DictNextC = next;
    DictPrevC = previous;
    DictNext = next_string;
    DictPrev = previous_string;
}

/// A dictionary without a context: automatic memory does not know it, so the module frees it, or its end does.
extern "C" fn create(context: u64) -> u64 {
    mediate(|frame| {
        frame.optional_context(context)?;
        let dict = host!(CreateDict: fn(usize) -> usize)(0);
        frame.walled.dicts.borrow_mut().insert(dict);
        Ok(dict as u64)
    })
}

extern "C" fn free(context: u64, dict: u64) {
    mediate(|frame| {
        frame.optional_context(context)?;
        let dict = frame.dict(dict)?;
        let mut iterators = frame.walled.iterators.borrow_mut();
        iterators.retain(|at, of| {
            if *of == dict {
                host!(DictIteratorStop: fn(usize))(*at);
            }
            *of != dict
        });
        drop(iterators);
        frame.walled.dicts.borrow_mut().remove(&dict);
        host!(FreeDict: fn(usize, usize))(0, dict);
        Ok(())
    });
}

macro_rules! sets {
    ($($function:ident, $name:ident;)*) => { $(
        extern "C" fn $function(dict: u64, at: u64, bytes: u64, value: u64) -> c_int {
            mediate(|frame| {
                let dict = frame.dict(dict)?;
                let key = frame.walled.module.bytes(at, bytes)?;
                let set = host!($name: fn(usize, *const u8, usize, u64) -> c_int);
                Ok(set(dict, key.as_ptr(), key.len(), value))
            })
        }
    )* };
}
sets! {
    set, DictSetC;
    replace, DictReplaceC;
}

extern "C" fn get(dict: u64, at: u64, bytes: u64, missing: u64) -> u64 {
    mediate(|frame| {
        let dict = frame.dict(dict)?;
        let key = frame.walled.module.bytes(at, bytes)?;
        let mut is_missing: c_int = 0;
        let get = host!(DictGetC: fn(usize, *const u8, usize, *mut c_int) -> u64);
        let value = get(dict, key.as_ptr(), key.len(), &raw mut is_missing);
        if missing != 0 {
            frame
                .walled
                .module
                .write(missing, &is_missing.to_ne_bytes())?;
        }
        Ok(value)
    })
}

extern "C" fn delete(dict: u64, at: u64, bytes: u64, older: u64) -> c_int {
    mediate(|frame| {
        let dict = frame.dict(dict)?;
        let key = frame.walled.module.bytes(at, bytes)?;
        let mut value = 0u64;
        let delete = host!(DictDelC: fn(usize, *const u8, usize, *mut u64) -> c_int);
        let code = delete(dict, key.as_ptr(), key.len(), &raw mut value);
        if older != 0 {
            frame.walled.module.write(older, &value.to_ne_bytes())?;
        }
        Ok(code)
    })
}

fn begun(frame: &Frame, dict: usize, at: usize) -> u64 {
    if at != 0 {
        frame.walled.iterators.borrow_mut().insert(at, dict);
    }
    at as u64
}

extern "C" fn start_string(dict: u64, how: u64, key: u64) -> u64 {
    mediate(|frame| {
        let (dict, how) = (frame.dict(dict)?, frame.walled.module.c_string(how)?);
        let key = frame.optional_string(key)?;
        let at = match key {
            // Redis would ask for the length of what is not there.
            0 => {
                let start = host!(DictIteratorStartC:
                    fn(usize, *const c_char, *const u8, usize) -> usize);
                start(dict, how.as_ptr(), std::ptr::null(), 0)
            }
            key => host!(DictIteratorStart: fn(usize, *const c_char, usize) -> usize)(
                dict,
                how.as_ptr(),
                key,
            ),
        };
        Ok(begun(frame, dict, at))
    })
}

extern "C" fn start(dict: u64, how: u64, at: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let (dict, how) = (frame.dict(dict)?, frame.walled.module.c_string(how)?);
        let key = frame.walled.module.bytes(at, bytes)?;
        let start = host!(DictIteratorStartC: fn(usize, *const c_char, *const u8, usize) -> usize);
        Ok(begun(
            frame,
            dict,
            start(dict, how.as_ptr(), key.as_ptr(), key.len()),
        ))
    })
}

extern "C" fn stop(at: u64) {
    mediate(|frame| {
        let at = frame.iterator(at)?;
        frame.walled.iterators.borrow_mut().remove(&at);
        host!(DictIteratorStop: fn(usize))(at);
        Ok(())
    });
}

type Step = extern "C" fn(usize, *mut usize, *mut u64) -> *const u8;

fn step(frame: &Frame, step: Step, at: u64, length: u64, value: u64) -> Answer<(*const u8, usize)> {
    let at = frame.iterator(at)?;
    let (mut bytes, mut found) = (0usize, 0u64);
    let key = step(at, &raw mut bytes, &raw mut found);
    if !key.is_null() {
        let module = frame.walled.module;
        for (to, number) in [(length, bytes as u64), (value, found)] {
            if to != 0 {
                module.write(to, &number.to_ne_bytes())?;
            }
        }
    }
    Ok((key, bytes))
}

macro_rules! steps {
    ($($function:ident, $string:ident, $name:ident;)*) => { $(
        extern "C" fn $function(at: u64, length: u64, value: u64) -> u64 {
            mediate(|frame| {
                let next: Step = host!($name: fn(usize, *mut usize, *mut u64) -> *const u8);
                let (key, bytes) = step(frame, next, at, length, value)?;
                Ok(frame.lend(key, bytes))
            })
        }

        extern "C" fn $string(context: u64, at: u64, value: u64) -> u64 {
            mediate(|frame| {
                let context = frame.optional_context(context)?;
                let next: Step = host!($name: fn(usize, *mut usize, *mut u64) -> *const u8);
                let (key, bytes) = step(frame, next, at, 0, value)?;
                if key.is_null() {
                    return Ok(0);
                }
                let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
                Ok(frame.give_string(create(context, key, bytes)))
            })
        }
    )* };
}
steps! {
    next, next_string, DictNextC;
    previous, previous_string, DictPrevC;
}
