//! `sqlite3_mprintf` and its kin: formats and their arguments are a module's.
//!
//! A format says what each argument is, and so what SQLite would read. Here each string is read with the module's
//! rights first, and copied. `%n`, which writes, and letters that SQLite keeps for itself are refused.
//!
//! A variadic function gets integers in what is left of six registers, numbers of floating point in eight, and the
//! rest on the stack. So a function with all of these as parameters gets them, too.

use crate::api;
use crate::memory::adopt;
use crate::walled::{Answer, Frame, Handle, Walled, mediate, refused};
use std::ffi::{CString, c_char, c_int};

/// Integers and pointers of one call, at most; numbers of floating point, at most.
const INTEGERS: usize = 14;
const FLOATS: usize = 8;
/// Longest field or number of digits.
const WIDEST: i64 = 1 << 20;

/// Where arguments come from.
trait Source {
    fn integer(&mut self, walled: &Walled) -> Answer<u64>;
    fn float(&mut self, walled: &Walled) -> Answer<f64>;
}

/// Those of a call.
struct Passed<'a> {
    integers: &'a [u64],
    floats: &'a [f64],
    stacked: &'a [u64],
}

impl Source for Passed<'_> {
    fn integer(&mut self, _: &Walled) -> Answer<u64> {
        let from = match self.integers.is_empty() {
            true => &mut self.stacked,
            false => &mut self.integers,
        };
        let Some((first, rest)) = from.split_first() else {
            return refused("a format wants more arguments than are passed on");
        };
        *from = rest;
        Ok(*first)
    }

    fn float(&mut self, walled: &Walled) -> Answer<f64> {
        match self.floats.split_first() {
            Some((first, rest)) => {
                self.floats = rest;
                Ok(*first)
            }
            None => {
                self.integers = &[];
                self.integer(walled).map(f64::from_bits)
            }
        }
    }
}

/// Those of a `va_list`, which is the module's: every word is read with its rights.
struct List {
    integers: u64,
    floats: u64,
    saved: u64,
    stacked: u64,
}

impl List {
    fn new(walled: &Walled, at: u64) -> Answer<List> {
        let offsets = walled.read(at)?;
        Ok(List {
            integers: offsets & 0xffff_ffff,
            floats: offsets >> 32,
            stacked: walled.read(at.wrapping_add(8))?,
            saved: walled.read(at.wrapping_add(16))?,
        })
    }

    fn next(&mut self, walled: &Walled) -> Answer<u64> {
        let at = self.stacked;
        self.stacked = at.wrapping_add(8);
        walled.read(at)
    }
}

impl Source for List {
    fn integer(&mut self, walled: &Walled) -> Answer<u64> {
        if self.integers >= 48 {
            return self.next(walled);
        }
        let at = self.saved.wrapping_add(self.integers);
        self.integers += 8;
        walled.read(at)
    }

    fn float(&mut self, walled: &Walled) -> Answer<f64> {
        if self.floats >= 176 {
            return self.next(walled).map(f64::from_bits);
        }
        let at = self.saved.wrapping_add(self.floats);
        self.floats += 16;
        walled.read(at).map(f64::from_bits)
    }
}

/// A format and its arguments, read and copied.
struct Checked {
    format: CString,
    integers: [u64; INTEGERS],
    floats: [f64; FLOATS],
    /// What the integers may point to.
    _texts: Vec<CString>,
    /// Blocks that `%z` frees.
    freed: Vec<u64>,
}

struct Reader<'a> {
    walled: &'a Walled,
    source: &'a mut dyn Source,
    integers: Vec<u64>,
    floats: Vec<f64>,
    texts: Vec<CString>,
    freed: Vec<u64>,
}

fn check(frame: &Frame, format: u64, source: &mut dyn Source) -> Answer<Checked> {
    let walled = frame.walled;
    let format = walled.c_string(format)?;
    let mut reader = Reader {
        walled,
        source,
        integers: Vec::new(),
        floats: Vec::new(),
        texts: Vec::new(),
        freed: Vec::new(),
    };
    let mut rest = format.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = reader.conversion(&rest[at + 1..])?;
    }
    if reader.integers.len() > INTEGERS || reader.floats.len() > FLOATS {
        return refused("a format has more arguments than are passed on");
    }
    let mut checked = Checked {
        integers: [0; INTEGERS],
        floats: [0.0; FLOATS],
        _texts: reader.texts,
        freed: reader.freed,
        format,
    };
    checked.integers[..reader.integers.len()].copy_from_slice(&reader.integers);
    checked.floats[..reader.floats.len()].copy_from_slice(&reader.floats);
    Ok(checked)
}

impl Reader<'_> {
    /// What is behind a `%`; answers with what is behind the conversion.
    fn conversion<'f>(&mut self, mut rest: &'f [u8]) -> Answer<&'f [u8]> {
        let mut precision = None;
        let mut is_precision = false;
        let mut is_characters = false;
        loop {
            let Some((letter, behind)) = rest.split_first() else {
                return Ok(rest);
            };
            rest = behind;
            match letter {
                b'-' | b'+' | b' ' | b'#' | b'0' | b',' | b'l' => {}
                b'!' => is_characters = true,
                b'1'..=b'9' => {
                    let digits = rest
                        .iter()
                        .take_while(|digit| digit.is_ascii_digit())
                        .count();
                    let (more, behind) = rest.split_at(digits);
                    let number = more
                        .iter()
                        .try_fold(i64::from(letter - b'0'), |number, digit| {
                            let number = number * 10 + i64::from(digit - b'0');
                            (number <= WIDEST).then_some(number)
                        });
                    let Some(number) = number else {
                        return refused("a format has a field that is too wide");
                    };
                    rest = behind;
                    if is_precision {
                        precision = Some(number);
                    }
                }
                b'*' => {
                    let number = self.source.integer(self.walled)?;
                    let value = i64::from(number as u32 as i32);
                    if value.abs() > WIDEST {
                        return refused("a format has a field that is too wide");
                    }
                    self.integers.push(number);
                    if is_precision {
                        precision = (value >= 0).then_some(value);
                    }
                }
                b'.' => {
                    is_precision = true;
                    precision = Some(0);
                }
                b'%' => return Ok(rest),
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'p' | b'r' => {
                    let number = self.source.integer(self.walled)?;
                    self.integers.push(number);
                    return Ok(rest);
                }
                b'f' | b'e' | b'E' | b'g' | b'G' => {
                    let number = self.source.float(self.walled)?;
                    self.floats.push(number);
                    return Ok(rest);
                }
                b's' | b'q' | b'Q' | b'w' | b'z' => {
                    self.text(*letter, precision, is_characters)?;
                    return Ok(rest);
                }
                letter => {
                    let letter = char::from(*letter);
                    return refused(format!("`%{letter}` in a format is not for modules"));
                }
            }
        }
    }

    fn text(&mut self, letter: u8, precision: Option<i64>, is_characters: bool) -> Answer<()> {
        let at = self.source.integer(self.walled)?;
        if at == 0 {
            self.integers.push(0);
            return Ok(());
        }
        // A character has four bytes at most.
        let scale = if is_characters { 4 } else { 1 };
        let most = precision.map_or(u64::MAX, |bytes| bytes as u64 * scale);
        let text = self.walled.text_up_to(at, most)?;
        let text = CString::new(text).unwrap_or_default();
        // SQLite frees what `%z` names: here, the module's block goes, and SQLite gets a copy to free.
        if letter == b'z' {
            self.integers
                .push(crate::memory::allocated(text.as_bytes()) as u64);
            self.freed.push(at);
        } else {
            self.integers.push(text.as_ptr() as u64);
            self.texts.push(text);
        }
        Ok(())
    }
}

/// What of a format is SQLite's to do, with the arguments in the places where a variadic function looks for them.
fn print(checked: &Checked) -> *mut c_char {
    const MPRINTF: usize = api::place("mprintf");
    type Mprintf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;
    // SAFETY: this is `sqlite3_mprintf`'s type.
    let mprintf =
        unsafe { std::mem::transmute::<*const std::ffi::c_void, Mprintf>(api::at(MPRINTF)) };
    let (i, f) = (&checked.integers, &checked.floats);
    // SAFETY: `check` has seen that the format asks for no more than these, and each is what it says.
    unsafe {
        mprintf(
            checked.format.as_ptr(),
            i[0],
            i[1],
            i[2],
            i[3],
            i[4],
            f[0],
            f[1],
            f[2],
            f[3],
            f[4],
            f[5],
            f[6],
            f[7],
            i[5],
            i[6],
            i[7],
            i[8],
            i[9],
            i[10],
            i[11],
            i[12],
            i[13],
        )
    }
}

/// Prints for a module; SQLite has allocated what it answers.
fn printed(frame: &Frame, format: u64, source: &mut dyn Source) -> Answer<*mut c_char> {
    let checked = check(frame, format, source)?;
    let text = print(&checked);
    for block in &checked.freed {
        frame.walled.free(*block)?;
    }
    Ok(text)
}

/// To a buffer of the module's; answers with the buffer.
fn to_buffer(frame: &Frame, room: c_int, buffer: u64, text: *mut c_char) -> Answer<u64> {
    let all = match text.is_null() {
        true => Vec::new(),
        // SAFETY: SQLite's strings end with a zero.
        false => unsafe { std::ffi::CStr::from_ptr(text) }
            .to_bytes()
            .to_vec(),
    };
    api::host!(free: fn(*mut c_char))(text);
    let room = usize::try_from(room).unwrap_or(0);
    if room > 0 {
        let mut bytes = all;
        bytes.truncate(room - 1);
        bytes.push(0);
        frame.walled.write(buffer, &bytes)?;
    }
    Ok(buffer)
}

fn append(frame: &Frame, to: Handle, text: *mut c_char) -> Answer<()> {
    let to = crate::strings::known(frame, to);
    if let Ok(to) = to {
        api::host!(str_appendall: fn(Handle, *const c_char))(to, text);
    }
    api::host!(free: fn(*mut c_char))(text);
    to.map(drop)
}

/// Defines a function with the registers and the stack of a variadic call.
macro_rules! variadic {
    ($name:ident($($fixed:ident: $kind:ty),*)($($i:ident),*) -> $result:ty, |$frame:ident, $source:ident| $act:expr) => {
        #[allow(clippy::too_many_arguments)]
        pub(crate) extern "C" fn $name(
            $($fixed: $kind,)* $($i: u64,)*
            f0: f64, f1: f64, f2: f64, f3: f64, f4: f64, f5: f64, f6: f64, f7: f64,
            s0: u64, s1: u64, s2: u64, s3: u64, s4: u64, s5: u64, s6: u64, s7: u64,
        ) -> $result {
            mediate(|$frame| {
                let $source = &mut Passed {
                    integers: &[$($i),*],
                    floats: &[f0, f1, f2, f3, f4, f5, f6, f7],
                    stacked: &[s0, s1, s2, s3, s4, s5, s6, s7],
                };
                $act
            })
        }
    };
}

variadic!(mprintf(format: u64)(i0, i1, i2, i3, i4) -> u64, |frame, source| {
    printed(frame, format, source).map(|text| adopt(frame.walled, text))
});

variadic!(xsnprintf(room: c_int, buffer: u64, format: u64)(i0, i1, i2) -> u64, |frame, source| {
    let text = printed(frame, format, source)?;
    to_buffer(frame, room, buffer, text)
});

variadic!(str_appendf(to: Handle, format: u64)(i0, i1, i2, i3) -> (), |frame, source| {
    let text = printed(frame, format, source)?;
    append(frame, to, text)
});

pub(crate) extern "C" fn vmprintf(format: u64, list: u64) -> u64 {
    mediate(|frame| {
        let mut source = List::new(frame.walled, list)?;
        printed(frame, format, &mut source).map(|text| adopt(frame.walled, text))
    })
}

pub(crate) extern "C" fn xvsnprintf(room: c_int, buffer: u64, format: u64, list: u64) -> u64 {
    mediate(|frame| {
        let mut source = List::new(frame.walled, list)?;
        let text = printed(frame, format, &mut source)?;
        to_buffer(frame, room, buffer, text)
    })
}

pub(crate) extern "C" fn str_vappendf(to: Handle, format: u64, list: u64) {
    mediate(|frame| {
        let mut source = List::new(frame.walled, list)?;
        let text = printed(frame, format, &mut source)?;
        append(frame, to, text)
    });
}
