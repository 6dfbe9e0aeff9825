//! `RedisModule_Log` and `RedisModule_CreateStringPrintf`: formats and their arguments are a module's.
//!
//! What they name is read with the module's rights (hosts/bridge).

use crate::api::{host, known, mediators};
use crate::frame::{Frame, mediate};
use mullion_bridge::{Answer, Arguments, print};
use std::ffi::{CString, c_char};

mediators! { ALL;
    Log = log;
    LogIOError = log_io;
    CreateStringPrintf = create;
}

macro_rules! variadic {
    ($name:ident($($fixed:ident),*)($($i:ident),*) -> $result:ty, |$frame:ident, $arguments:ident| $act:expr) => {
        #[allow(clippy::too_many_arguments)]
        extern "C" fn $name(
            $($fixed: u64,)* $($i: u64,)*
            f0: f64, f1: f64, f2: f64, f3: f64, f4: f64, f5: f64, f6: f64, f7: f64,
            s0: u64, s1: u64, s2: u64, s3: u64, s4: u64, s5: u64,
            s6: u64, s7: u64, s8: u64, s9: u64, s10: u64, s11: u64,
        ) -> $result {
            let $arguments = Arguments {
                integers: &[$($i),*],
                floats: &[f0, f1, f2, f3, f4, f5, f6, f7],
                stacked: &[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11],
            };
            mediate(|$frame| $act)
        }
    };
}

fn write(frame: &Frame, context: usize, level: u64, text: Vec<u8>) -> Answer<()> {
    let level = frame.walled.module.c_string(level)?;
    let text = CString::new(text).unwrap_or_default();
    type Log = unsafe extern "C" fn(usize, *const c_char, *const c_char, ...);
    // SAFETY: this is the function's type, and the format has one string.
    unsafe {
        let log = std::mem::transmute::<usize, Log>(known("RedisModule_Log\0"));
        log(context, level.as_ptr(), c"%s".as_ptr(), text.as_ptr());
    }
    Ok(())
}

variadic!(log(context, level, format)(a, b, c) -> (), |frame, arguments| {
    let context = frame.optional_context(context)?;
    let text = print(&frame.walled.module.reach(), format, arguments)?;
    write(frame, context, level, text)
});

variadic!(log_io(io, level, format)(a, b, c) -> (), |frame, arguments| {
    frame.io(io)?;
    let text = print(&frame.walled.module.reach(), format, arguments)?;
    write(frame, 0, level, text)
});

variadic!(create(context, format)(a, b, c, d) -> u64, |frame, arguments| {
    let context = frame.optional_context(context)?;
    let text = print(&frame.walled.module.reach(), format, arguments)?;
    let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
    Ok(frame.give_string(create(context, text.as_ptr(), text.len())))
});
