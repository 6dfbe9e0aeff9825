//! POSIX extended regular expressions, run by an engine of linear time.
//!
//! The pattern is parsed by the rules of POSIX 1003.2 and written anew in the
//! `regex` crate's syntax, byte by byte; nothing of the pattern reaches the
//! engine as it stands. What POSIX leaves undefined is an error, and so makes
//! the test false: `\d` and its kin, a repetition of nothing or of a
//! repetition, an empty alternative, back references.
//!
//! One difference remains. POSIX reports the longest of the leftmost matches,
//! the engine the one that a backtracking matcher would find first. Whether a
//! string matches is the same; what `_1`, `_2` ... hold can differ when
//! alternatives are prefixes of each other, as in `(a|ab)(c|bcd)?`.

use super::bounds;
use super::syntax::Str;
use regex::bytes::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Why a pattern is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("regular expression, byte {at}: {problem}")]
pub struct PatternError {
    /// Offset in the pattern.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

/// The right side of `~=`, compiled once when it does not depend on a query.
pub(super) struct Pattern {
    pub(super) text: Str,
    fixed: Option<Vec<u8>>,
    compiled: OnceLock<Option<Compiled>>,
}

/// A pattern ready to run.
pub(super) struct Compiled {
    pub(super) regex: Regex,
    /// How many states it has at most: a match costs no more than this times
    /// the length of the text.
    pub(super) cost: usize,
}

impl Pattern {
    pub(super) fn new(text: Str) -> Self {
        let fixed = text.constant(&BTreeMap::new());
        Pattern {
            text,
            fixed,
            compiled: OnceLock::new(),
        }
    }

    /// The compiled form of a fixed pattern: `None` if the pattern is computed,
    /// `Some(None)` if it is wrong.
    pub(super) fn fixed(&self) -> Option<Option<&Compiled>> {
        let text = self.fixed.as_ref()?;
        Some(self.compiled.get_or_init(|| compile(text).ok()).as_ref())
    }
}

pub(super) fn compile(pattern: &[u8]) -> Result<Compiled, PatternError> {
    let (text, cost) = translate(pattern)?;
    let regex = RegexBuilder::new(&text)
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(bounds::PATTERN_MEMORY)
        .dfa_size_limit(bounds::PATTERN_MEMORY)
        .nest_limit(3 * bounds::NESTING as u32)
        .build();
    match regex {
        Ok(regex) => Ok(Compiled { regex, cost }),
        Err(_) => Err(PatternError {
            at: 0,
            problem: "it is too large when its repetitions are written out",
        }),
    }
}

/// Writes a POSIX extended regular expression in the `regex` crate's syntax.
///
/// # Errors
/// What POSIX does not define, or what is too large.
pub fn to_regex(pattern: &[u8]) -> Result<String, PatternError> {
    translate(pattern).map(|(text, _)| text)
}

/// What stands left of the next character.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// A beginning: of the pattern, a group or an alternative.
    Nothing,
    /// An anchor, or something that is repeated already.
    Unrepeatable,
    /// Something of this cost that may be repeated.
    Atom(usize),
}

struct Translator<'a> {
    pattern: &'a [u8],
    at: usize,
    out: String,
    /// Cost of what is complete, for each open group and the whole.
    costs: Vec<usize>,
    before: Before,
}

fn translate(pattern: &[u8]) -> Result<(String, usize), PatternError> {
    let mut translator = Translator {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() * 4),
        costs: vec![1],
        before: Before::Nothing,
    };
    if pattern.len() > bounds::PATTERN {
        return translator.fail("it is too long");
    }
    while let Some(&byte) = pattern.get(translator.at) {
        translator.one(byte)?;
    }
    if translator.before == Before::Nothing {
        return translator.fail("an alternative is empty");
    }
    if translator.costs.len() != 1 {
        return translator.fail("a `(` is not closed");
    }
    Ok((translator.out, translator.costs[0]))
}

impl Translator<'_> {
    fn fail<T>(&self, problem: &'static str) -> Result<T, PatternError> {
        Err(PatternError {
            at: self.at,
            problem,
        })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn atom(&mut self, cost: usize) {
        self.before = Before::Atom(cost);
        self.charge(cost);
    }

    fn charge(&mut self, cost: usize) {
        if let Some(total) = self.costs.last_mut() {
            *total = total.saturating_add(cost);
        }
    }

    fn one(&mut self, byte: u8) -> Result<(), PatternError> {
        match byte {
            b'(' => {
                if self.costs.len() > bounds::NESTING {
                    return self.fail("groups are nested too deeply");
                }
                self.out.push('(');
                self.costs.push(1);
                self.before = Before::Nothing;
            }
            b')' if self.costs.len() == 1 => return self.fail("a `)` closes nothing"),
            b')' | b'|' if self.before == Before::Nothing => {
                return self.fail("an alternative is empty");
            }
            b')' => {
                self.out.push(')');
                let cost = self.costs.pop().unwrap_or(1);
                self.atom(cost);
            }
            b'|' => {
                self.out.push('|');
                self.charge(1);
                self.before = Before::Nothing;
            }
            b'^' | b'$' => {
                self.out.push(char::from(byte));
                self.before = Before::Unrepeatable;
            }
            b'.' => {
                self.out.push('.');
                self.atom(1);
            }
            b'*' | b'+' | b'?' => {
                self.repeat(if byte == b'+' { 2 } else { 1 })?;
                self.out.push(char::from(byte));
            }
            b'{' => return self.bound(),
            b'[' => return self.bracket(),
            b'\\' => {
                match self.peek(1) {
                    None => return self.fail("a backslash is the last character"),
                    Some(next) if next.is_ascii_alphanumeric() => {
                        return self
                            .fail("POSIX gives a backslash before a letter or digit no meaning");
                    }
                    Some(next) => self.literal(next),
                }
                self.at += 1;
            }
            byte => self.literal(byte),
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, byte: u8) {
        push_byte(&mut self.out, byte);
        self.atom(1);
    }

    /// Accounts for a repetition of what stands before.
    fn repeat(&mut self, times: usize) -> Result<(), PatternError> {
        let Before::Atom(cost) = self.before else {
            return self.fail("a repetition has nothing to repeat");
        };
        self.charge(cost.saturating_mul(times.max(1) - 1).saturating_add(1));
        self.before = Before::Unrepeatable;
        Ok(())
    }

    fn number(&mut self) -> Option<u32> {
        let digits = self.pattern[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = std::str::from_utf8(&self.pattern[self.at..self.at + digits]).ok()?;
        self.at += digits;
        text.parse().ok().filter(|number| *number <= 255)
    }

    fn bound(&mut self) -> Result<(), PatternError> {
        let Before::Atom(_) = self.before else {
            return self.fail("a repetition has nothing to repeat");
        };
        self.at += 1;
        let Some(least) = self.number() else {
            return self.fail("a bound is {m}, {m,} or {m,n}, up to 255");
        };
        let mut most = Some(least);
        if self.peek(0) == Some(b',') {
            self.at += 1;
            most = match self.peek(0) {
                Some(b'}') => None,
                _ => match self.number() {
                    Some(most) if most >= least => Some(most),
                    _ => return self.fail("a bound is {m}, {m,} or {m,n}, up to 255"),
                },
            };
        }
        if self.peek(0) != Some(b'}') {
            return self.fail("a bound is {m}, {m,} or {m,n}, up to 255");
        }
        self.repeat(most.unwrap_or(least + 1) as usize)?;
        self.at += 1;
        let _ = match most {
            None => write!(self.out, "{{{least},}}"),
            Some(most) => write!(self.out, "{{{least},{most}}}"),
        };
        Ok(())
    }

    /// A bracket expression, as the set of its bytes.
    fn bracket(&mut self) -> Result<(), PatternError> {
        let mut set = [false; 256];
        self.at += 1;
        let negated = self.peek(0) == Some(b'^');
        if negated {
            self.at += 1;
        }
        let mut first = true;
        loop {
            match self.peek(0) {
                None => return self.fail("a `[` is not closed"),
                Some(b']') if !first => break,
                Some(b'[') if self.peek(1) == Some(b':') => self.class(&mut set)?,
                _ => self.range(&mut set)?,
            }
            first = false;
        }
        self.at += 1;
        self.out.push('[');
        if negated {
            self.out.push('^');
        }
        for (byte, _) in (0..=255_u8).zip(set).filter(|(_, member)| *member) {
            push_byte(&mut self.out, byte);
        }
        self.out.push(']');
        self.atom(1);
        Ok(())
    }

    fn class(&mut self, set: &mut [bool; 256]) -> Result<(), PatternError> {
        let rest = &self.pattern[self.at + 2..];
        let length = rest.windows(2).position(|pair| pair == b":]");
        let member: fn(&u8) -> bool = match length.map(|length| &rest[..length]) {
            Some(b"alpha") => u8::is_ascii_alphabetic,
            Some(b"digit") => u8::is_ascii_digit,
            Some(b"alnum") => u8::is_ascii_alphanumeric,
            Some(b"upper") => u8::is_ascii_uppercase,
            Some(b"lower") => u8::is_ascii_lowercase,
            Some(b"space") => |byte| matches!(byte, b' ' | 0x09..=0x0d),
            Some(b"blank") => |byte| matches!(byte, b' ' | b'\t'),
            Some(b"punct") => u8::is_ascii_punctuation,
            Some(b"print") => |byte| matches!(byte, 0x20..=0x7e),
            Some(b"graph") => u8::is_ascii_graphic,
            Some(b"cntrl") => u8::is_ascii_control,
            Some(b"xdigit") => u8::is_ascii_hexdigit,
            _ => return self.fail("there is no such character class"),
        };
        for (byte, present) in (0..=255_u8).zip(set.iter_mut()) {
            *present |= member(&byte);
        }
        self.at += length.unwrap_or(0) + 4;
        Ok(())
    }

    fn range(&mut self, set: &mut [bool; 256]) -> Result<(), PatternError> {
        let start = self.element()?;
        let mut end = start;
        if self.peek(0) == Some(b'-') && self.peek(1).is_some_and(|next| next != b']') {
            self.at += 1;
            if self.peek(0) == Some(b'[') && self.peek(1) == Some(b':') {
                return self.fail("a range ends with a character class");
            }
            end = self.element()?;
        }
        if start > end {
            return self.fail("a range runs backwards");
        }
        set[usize::from(start)..=usize::from(end)].fill(true);
        Ok(())
    }

    /// One character: itself, `[.x.]` or `[=x=]`.
    fn element(&mut self) -> Result<u8, PatternError> {
        let Some(byte) = self.peek(0) else {
            return self.fail("a `[` is not closed");
        };
        if byte == b'[' && matches!(self.peek(1), Some(b'.' | b'=')) {
            let mark = self.peek(1);
            let (Some(byte), true) = (
                self.peek(2),
                self.peek(3) == mark && self.peek(4) == Some(b']'),
            ) else {
                return self.fail("a collating element is one character: [.x.] or [=x=]");
            };
            self.at += 5;
            return Ok(byte);
        }
        self.at += 1;
        Ok(byte)
    }
}

fn push_byte(out: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "\\x{byte:02x}");
    }
}
