//! Formats of the kernel's messages: what a conversion points to is read by the kernel, so it has to be the module's to read.
//!
//! ```text
//!   module ──► gate ──► mediator: "%s: bad block %lu": may the module read the text? ──► _printk
//! ```
//!
//! `%pV` leads to another format, with arguments of its own in the module's memory. Extensions of `%p` that follow more than one
//! pointer are refused: `%pfw` calls functions that it finds there.

use crate::{live, rights, types};
use mullion_word::runtime::Domain;
use mullion_word_table::Access;

/// A message has fewer bytes.
const MOST: u64 = 1 << 12;
/// A format within a format.
const NESTED: u32 = 2;

/// Where a conversion's next argument is.
trait Arguments {
    /// None: there is no such argument, or it lies where the module may not read.
    fn next(&mut self) -> Option<u64>;
}

/// Those of a call: from registers and words of the stack.
struct Passed<'a>(std::slice::Iter<'a, u64>);

impl Arguments for Passed<'_> {
    fn next(&mut self) -> Option<u64> {
        self.0.next().copied()
    }
}

/// A `va_list` in the memory of a module.
struct Listed<'a> {
    domain: &'a Domain,
    registers: u32,
    saved: u64,
    stacked: u64,
}

impl Listed<'_> {
    fn of(domain: &Domain, list: u64) -> Option<Listed<'_>> {
        let word = |at: u64| readable(domain, list.checked_add(at)?);
        Some(Listed {
            domain,
            // Behind it come registers of floating-point numbers, of which the kernel has none.
            registers: word(0)? as u32,
            stacked: word(8)?,
            saved: word(16)?,
        })
    }
}

impl Arguments for Listed<'_> {
    fn next(&mut self) -> Option<u64> {
        let at = if self.registers <= 40 {
            let at = self.saved.checked_add(u64::from(self.registers))?;
            self.registers += 8;
            at
        } else {
            let at = self.stacked;
            self.stacked = at.checked_add(8)?;
            at
        };
        readable(self.domain, at)
    }
}

/// A word that the module may read.
fn readable(domain: &Domain, at: u64) -> Option<u64> {
    let may = domain.view().allows(at, 8, Access::READ);
    // SAFETY: the module may read this word, so memory is there.
    may.then(|| unsafe { (at as *const u64).read_unaligned() })
}

/// A byte that the module may read, or that lies in the data of another module, of which it has got a text.
fn byte(domain: &Domain, at: u64) -> Option<u8> {
    let may = rights::may_byte(domain, at, false) || live::data(at).is_some();
    // SAFETY: the kernel has memory there: the module may read it, or another one has it.
    may.then(|| unsafe { (at as *const u8).read_volatile() })
}

/// Whether the kernel may print this for a module. The format is one that the module may read, or a copy that the kernel's side has.
pub(crate) fn fits(domain: &Domain, format: u64, arguments: &[u64], is_copy: bool) -> bool {
    let mut next = Passed(arguments.iter());
    text(domain, format, is_copy).is_some_and(|text| prints(domain, &text, &mut next, NESTED))
}

/// A text that a module hands on: its own, or the gate's copy.
pub(crate) fn text(domain: &Domain, start: u64, is_copy: bool) -> Option<Vec<u8>> {
    match is_copy {
        true => copied(start),
        false => own(domain, start, MOST),
    }
}

/// The gate has made it, and it ends with a zero.
fn copied(format: u64) -> Option<Vec<u8>> {
    // SAFETY: the gate's copy of a text, which lasts as long as the call.
    let text = unsafe { std::ffi::CStr::from_ptr(format as *const std::ffi::c_char) };
    Some(text.to_bytes().to_vec())
}

/// A text of at most so many bytes, all of which the module may read. It ends there, or with a zero.
fn own(domain: &Domain, start: u64, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for at in 0..most {
        match byte(domain, start.checked_add(at)?)? {
            0 => return Some(bytes),
            one => bytes.push(one),
        }
    }
    (most < MOST).then_some(bytes)
}

fn prints(domain: &Domain, format: &[u8], next: &mut dyn Arguments, nested: u32) -> bool {
    let mut at = 0;
    while let Some(begin) = format
        .get(at..)
        .and_then(|rest| rest.iter().position(|c| *c == b'%'))
    {
        let Some((conversion, end)) = Conversion::read(format, at + begin + 1, next) else {
            return false;
        };
        at = end;
        if !conversion.is_right(domain, &format[end..], next, nested) {
            return false;
        }
    }
    true
}

/// One conversion of a format.
struct Conversion {
    kind: u8,
    precision: Option<u64>,
    width: u64,
}

impl Conversion {
    /// From behind the sign on, and where it ends.
    fn read(format: &[u8], mut at: usize, next: &mut dyn Arguments) -> Option<(Conversion, usize)> {
        let mut number = |at: &mut usize| -> Option<u64> {
            if format.get(*at) == Some(&b'*') {
                *at += 1;
                return Some(u64::from((next.next()? as i32).max(0).unsigned_abs()));
            }
            let digits = format[*at..].iter().take_while(|c| c.is_ascii_digit());
            let digits: Vec<u8> = digits.copied().collect();
            *at += digits.len();
            Some(String::from_utf8_lossy(&digits).parse().unwrap_or(0))
        };
        while matches!(format.get(at), Some(b'-' | b'+' | b' ' | b'#' | b'0')) {
            at += 1;
        }
        let width = number(&mut at)?;
        let precision = match format.get(at) {
            Some(b'.') => {
                at += 1;
                Some(number(&mut at)?)
            }
            _ => None,
        };
        while matches!(
            format.get(at),
            Some(b'h' | b'l' | b'L' | b'z' | b'Z' | b't')
        ) {
            at += 1;
        }
        let conversion = Conversion {
            kind: *format.get(at)?,
            precision,
            width,
        };
        Some((conversion, at + 1))
    }

    fn is_right(
        &self,
        domain: &Domain,
        rest: &[u8],
        next: &mut dyn Arguments,
        nested: u32,
    ) -> bool {
        match self.kind {
            b'%' => true,
            b'c' | b'd' | b'i' | b'u' | b'x' | b'X' | b'o' => next.next().is_some(),
            b's' => next.next().is_some_and(|pointer| {
                // The kernel writes that it is none.
                let is_none = !(4096..=u64::MAX - 4096).contains(&pointer);
                is_none || own(domain, pointer, self.precision.unwrap_or(MOST)).is_some()
            }),
            b'p' => next
                .next()
                .is_some_and(|pointer| self.points(domain, rest, pointer, nested)),
            _ => false,
        }
    }

    /// What behind `%p` says how the pointer is followed.
    fn points(&self, domain: &Domain, rest: &[u8], pointer: u64, nested: u32) -> bool {
        let has = |bytes: u64| rights::may_bytes(domain, (pointer, bytes), false);
        let is = |name: &str| types::is_a(domain, name, pointer);
        match rest.first() {
            // The address is mixed up, or written as a number.
            Some(b'x') | None => true,
            Some(other) if !other.is_ascii_alphanumeric() => true,
            _ if pointer < 4096 => true,
            Some(b'V') => nested != 0 && nests(domain, pointer, nested),
            Some(b'd') => is("dentry"),
            Some(b'D') => is("file"),
            Some(b'g') => is("block_device"),
            Some(b'a') => has(8),
            Some(b'h') => has(self.width.clamp(1, 64)),
            Some(b'U') => has(16),
            Some(b'M' | b'm') => has(6),
            Some(_) => false,
        }
    }
}

/// `struct va_format`: a format, and where its arguments are.
fn nests(domain: &Domain, pointer: u64, nested: u32) -> bool {
    let word = |at: u64| readable(domain, pointer.checked_add(at)?);
    let (Some(format), Some(list)) = (word(0), word(8)) else {
        return false;
    };
    let (Some(format), Some(mut next)) = (own(domain, format, MOST), Listed::of(domain, list))
    else {
        return false;
    };
    prints(domain, &format, &mut next, nested - 1)
}
