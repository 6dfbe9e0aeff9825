//! `RedisModuleString`: handles that a module is given, holds and gives back.

use crate::api::{Context, NewText, OptionalContext, Out, Text, forward, host, mediators};
use crate::frame::mediate;
use mullion_bridge::refused;
use std::ffi::c_int;

forward! { FORWARDED;
    CreateStringFromLongLong(context: OptionalContext, number: i64) -> NewText;
    CreateStringFromULongLong(context: OptionalContext, number: u64) -> NewText;
    CreateStringFromDouble(context: OptionalContext, number: f64) -> NewText;
    CreateStringFromString(context: OptionalContext, text: Text) -> NewText;
    StringToLongLong(text: Text, to: Out<i64>) -> i32;
    StringToULongLong(text: Text, to: Out<u64>) -> i32;
    StringToDouble(text: Text, to: Out<f64>) -> i32;
    StringCompare(a: Text, b: Text) -> i32;
    TrimStringAllocation(text: Text);
    GetClientNameById(context: Context, client: u64) -> NewText;
    GetClientUserNameById(context: Context, client: u64) -> NewText;
    GetCurrentUserName(context: Context) -> NewText;
    RandomKey(context: Context) -> NewText;
}

mediators! { ALL;
    CreateString = create;
    StringPtrLen = pointer;
    StringAppendBuffer = append;
    FreeString = free;
    RetainString = retain;
    HoldString = hold;
    MallocSizeString = malloc_size;
}

extern "C" fn create(context: u64, at: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let context = frame.optional_context(context)?;
        let text = frame.walled.module.bytes(at, bytes)?;
        let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
        Ok(frame.give_string(create(context, text.as_ptr(), text.len())))
    })
}

extern "C" fn pointer(text: u64, length: u64) -> u64 {
    mediate(|frame| {
        let module = frame.walled.module;
        if text == 0 {
            // As Redis answers.
            let what = "(NULL string reply referenced in module)";
            if length != 0 {
                module.write(length, &what.len().to_ne_bytes())?;
            }
            return Ok(frame.lend(what.as_ptr(), what.len()));
        }
        let text = frame.string(text)?;
        let mut bytes = 0usize;
        let find = host!(StringPtrLen: fn(usize, *mut usize) -> *const u8);
        let at = find(text, &raw mut bytes);
        if length != 0 {
            module.write(length, &bytes.to_ne_bytes())?;
        }
        Ok(frame.lend(at, bytes))
    })
}

extern "C" fn append(context: u64, text: u64, at: u64, bytes: u64) -> c_int {
    mediate(|frame| {
        let (context, text) = (frame.optional_context(context)?, frame.string(text)?);
        let more = frame.walled.module.bytes(at, bytes)?;
        let append = host!(StringAppendBuffer: fn(usize, usize, *const u8, usize) -> c_int);
        Ok(append(context, text, more.as_ptr(), more.len()))
    })
}

extern "C" fn free(context: u64, text: u64) {
    mediate(|frame| {
        let context = frame.optional_context(context)?;
        match frame.drop_string(text as usize) {
            true => host!(FreeString: fn(usize, usize))(context, text as usize),
            false => return refused(format!("{text:#x} is no string that the module holds")),
        }
        Ok(())
    });
}

extern "C" fn retain(context: u64, text: u64) {
    mediate(|frame| {
        let (context, text) = (frame.optional_context(context)?, frame.string(text)?);
        host!(RetainString: fn(usize, usize))(context, text);
        frame.keep_string(text);
        Ok(())
    });
}

extern "C" fn hold(context: u64, text: u64) -> u64 {
    mediate(|frame| {
        let (context, text) = (frame.optional_context(context)?, frame.string(text)?);
        let held = host!(HoldString: fn(usize, usize) -> usize)(context, text);
        if held != 0 {
            frame.keep_string(held);
        }
        Ok(held as u64)
    })
}

extern "C" fn malloc_size(text: u64) -> u64 {
    mediate(|frame| {
        let text = frame.string(text)?;
        Ok(host!(MallocSizeString: fn(usize) -> usize)(text) as u64)
    })
}
