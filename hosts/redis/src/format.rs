//! `RedisModule_Log` and `RedisModule_CreateStringPrintf`: formats and their arguments are a module's.
//!
//! Each conversion is done by itself, by the C library, with an argument that was looked at. `%n`, which writes, is refused.

use crate::api::{host, known, mediators};
use crate::frame::{Frame, mediate};
use mullion_bridge::{Answer, refused};
use std::ffi::{CString, c_char};
use std::io::Write;

mediators! { ALL;
    Log = log;
    LogIOError = log_io;
    CreateStringPrintf = create;
}

/// The widest field, and most digits.
const WIDEST: i64 = 1 << 16;

/// A variadic function gets integers in what is left of six registers, numbers of floating point in eight, and the rest
/// on the stack.
struct Arguments<'a> {
    integers: &'a [u64],
    floats: &'a [f64],
    stacked: &'a [u64],
}

fn next<T: Copy>(from: &mut &[T]) -> Option<T> {
    let (first, rest) = from.split_first()?;
    *from = rest;
    Some(*first)
}

impl Arguments<'_> {
    fn integer(&mut self) -> Answer<u64> {
        let found = next(&mut self.integers).or_else(|| next(&mut self.stacked));
        match found {
            Some(found) => Ok(found),
            None => refused("a format wants more arguments than are passed on"),
        }
    }

    fn float(&mut self) -> Answer<f64> {
        match next(&mut self.floats) {
            Some(found) => Ok(found),
            None => match next(&mut self.stacked) {
                Some(bits) => Ok(f64::from_bits(bits)),
                None => refused("a format wants more arguments than are passed on"),
            },
        }
    }
}

/// A field's width, or digits, written out.
fn number(frame: &mut Arguments<'_>, letter: u8, into: &mut Vec<u8>) -> Answer<()> {
    if letter == b'*' {
        let value = i64::from(frame.integer()? as u32 as i32);
        into.extend(value.to_string().bytes());
    } else {
        into.push(letter);
    }
    Ok(())
}

/// Prints one conversion with one argument.
macro_rules! convert {
    ($conversion:expr, $argument:expr) => {{
        let conversion = CString::new($conversion.as_slice()).unwrap_or_default();
        let mut made = vec![0u8; 512];
        loop {
            // SAFETY: there is room for as much as is said, and the conversion takes one argument of this kind.
            let wanted = unsafe {
                libc::snprintf(made.as_mut_ptr().cast(), made.len(), conversion.as_ptr(), $argument)
            };
            let wanted = usize::try_from(wanted).unwrap_or(0);
            if wanted < made.len() {
                made.truncate(wanted);
                break made;
            }
            made.resize(wanted + 1, 0);
        }
    }};
}

fn print(frame: &Frame, format: u64, mut arguments: Arguments<'_>) -> Answer<Vec<u8>> {
    let module = frame.walled.module;
    let format = module.c_string(format)?;
    let mut rest = format.as_bytes().iter().copied().peekable();
    let mut printed = Vec::new();
    while let Some(letter) = rest.next() {
        if letter != b'%' {
            printed.push(letter);
            continue;
        }
        let mut conversion = vec![b'%'];
        let mut precision = None;
        loop {
            let Some(letter) = rest.next() else {
                return refused("a format ends in the middle");
            };
            match letter {
                b'-' | b'+' | b' ' | b'#' | b'0'..=b'9' | b'*' => {
                    number(&mut arguments, letter, &mut conversion)?;
                }
                b'.' => {
                    conversion.push(letter);
                    let mut digits = Vec::new();
                    while let Some(digit @ (b'0'..=b'9' | b'*')) = rest.peek().copied() {
                        rest.next();
                        number(&mut arguments, digit, &mut digits)?;
                    }
                    let text = String::from_utf8_lossy(&digits).into_owned();
                    precision = Some(text.parse::<i64>().unwrap_or(0));
                    conversion.extend(digits);
                }
                b'h' | b'l' | b'z' | b'j' | b't' => conversion.push(letter),
                b'%' => {
                    printed.push(b'%');
                    break;
                }
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'p' => {
                    conversion.push(letter);
                    narrow(&conversion)?;
                    let value = arguments.integer()?;
                    printed.extend(convert!(conversion, value));
                    break;
                }
                b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                    conversion.push(letter);
                    narrow(&conversion)?;
                    let value = arguments.float()?;
                    printed.extend(convert!(conversion, value));
                    break;
                }
                b's' => {
                    conversion.push(letter);
                    narrow(&conversion)?;
                    let at = arguments.integer()?;
                    let most = precision
                        .filter(|most| *most >= 0)
                        .map_or(u64::MAX, |most| most as u64);
                    let text = match at {
                        0 => b"(null)",
                        at => module.text_up_to(at, most)?,
                    };
                    let text = CString::new(text).unwrap_or_default();
                    printed.extend(convert!(conversion, text.as_ptr()));
                    break;
                }
                letter => {
                    let letter = char::from(letter);
                    return refused(format!("`%{letter}` in a format is not for modules"));
                }
            }
        }
    }
    Ok(printed)
}

/// No field is too wide.
fn narrow(conversion: &[u8]) -> Answer<()> {
    let mut numbers = conversion.split(|byte| !byte.is_ascii_digit());
    let fits = numbers.all(|digits| {
        let text = String::from_utf8_lossy(digits).into_owned();
        text.is_empty() || text.parse::<i64>().is_ok_and(|number| number <= WIDEST)
    });
    match fits {
        true => Ok(()),
        false => refused("a format has a field that is too wide"),
    }
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
    let text = print(frame, format, arguments)?;
    write(frame, context, level, text)
});

variadic!(log_io(io, level, format)(a, b, c) -> (), |frame, arguments| {
    frame.io(io)?;
    let text = print(frame, format, arguments)?;
    write(frame, 0, level, text)
});

/// To a buffer of the module's, of which `room` bytes are written at most.
fn to_buffer(frame: &Frame, buffer: u64, room: u64, mut text: Vec<u8>) -> Answer<i32> {
    let all = i32::try_from(text.len()).unwrap_or(i32::MAX);
    if room > 0 {
        text.truncate(usize::try_from(room - 1).unwrap_or(usize::MAX));
        text.push(0);
        frame.walled.module.write(buffer, &text)?;
    }
    Ok(all)
}

variadic!(print_to(buffer, room, format)(a, b, c) -> i32, |frame, arguments| {
    let text = print(frame, format, arguments)?;
    to_buffer(frame, buffer, room, text)
});

variadic!(print_all(buffer, format)(a, b, c, d) -> i32, |frame, arguments| {
    let text = print(frame, format, arguments)?;
    to_buffer(frame, buffer, u64::MAX, text)
});

variadic!(print_out(format)(a, b, c, d, e) -> i32, |frame, arguments| {
    let text = print(frame, format, arguments)?;
    let mut output = std::io::stdout().lock();
    // As the C library says it: how many bytes, or a number below zero.
    Ok(match output.write_all(&text).and_then(|()| output.flush()) {
        Ok(()) => i32::try_from(text.len()).unwrap_or(i32::MAX),
        Err(_) => -1,
    })
});

/// The C library's, for modules that print to their own memory.
pub(crate) fn of_c_library(name: &str) -> Option<usize> {
    match name {
        "snprintf" => Some(print_to as *const () as usize),
        "printf" => Some(print_out as *const () as usize),
        "sprintf" => Some(print_all as *const () as usize),
        _ => None,
    }
}

variadic!(create(context, format)(a, b, c, d) -> u64, |frame, arguments| {
    let context = frame.optional_context(context)?;
    let text = print(frame, format, arguments)?;
    let create = host!(CreateString: fn(usize, *const u8, usize) -> usize);
    Ok(frame.give_string(create(context, text.as_ptr(), text.len())))
});
