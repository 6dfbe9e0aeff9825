//! Formats and their arguments are a module's.
//!
//! Each conversion is done by itself, by the C library, with an argument that was looked at. `%n`, which writes, is refused.

use crate::module::{Answer, Reach, refused};
use std::ffi::CString;

/// The widest field, and most digits.
const WIDEST: i64 = 1 << 16;

/// A variadic function gets integers in what is left of six registers, numbers of floating point in eight, and the rest
/// on the stack.
pub struct Arguments<'a> {
    /// In registers, behind those that are fixed.
    pub integers: &'a [u64],
    /// In registers for numbers of floating point.
    pub floats: &'a [f64],
    /// On the stack.
    pub stacked: &'a [u64],
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
fn number(arguments: &mut Arguments<'_>, letter: u8, into: &mut Vec<u8>) -> Answer<()> {
    if letter == b'*' {
        let value = i64::from(arguments.integer()? as u32 as i32);
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

/// Prints what a module's format says, with arguments that were looked at.
///
/// # Errors
/// It may not read what it names, or the format is not for modules.
pub fn print(module: &Reach<'_>, format: u64, mut arguments: Arguments<'_>) -> Answer<Vec<u8>> {
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
