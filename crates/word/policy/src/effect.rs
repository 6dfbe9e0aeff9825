//! Effects and sizes as text: `in(data, count * size)`.
//!
//! ```text
//!   effect     = name "(" [ parameter [ "," size ] ] ")"
//!   gives      = "gives" "(" size ")"
//!   into       = "into" "(" parameter "," size "," parameter ")"
//!   size       = sum | "string" | "list" | "strings" | "vectors" "(" sum ")"
//!   sum        = [ "-" ] term { ( "+" | "-" ) term }            at most three
//!   term       = factor { "*" factor }                          at most two values
//!   factor     = number | value
//!   value      = argument [ "@" offset ] [ ":" type ]           "@": a field of what the argument points to
//!   argument   = a name of the function's parameters, or "#" and its number from 0
//!   parameter  = a name of the function's parameters, or its number from 0
//! ```

use mullion_word_runtime::{Bits, Effect, Number, Size, Sum, Term};
use std::fmt::Write;
use thiserror::Error;

/// A parameter's number cannot be larger: the registers of the calling convention.
const PARAMETERS: usize = 6;

/// What is wrong with an effect, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct EffectError {
    /// Bytes from the beginning of the effect.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

type Answer<T> = Result<T, EffectError>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    parameters: &'a [String],
}

/// Reads an effect of a function with these parameters.
pub(crate) fn parse(text: &str, parameters: &[String]) -> Answer<Effect> {
    let mut reader = Reader {
        text,
        at: 0,
        parameters,
    };
    let effect = reader.effect()?;
    reader.space();
    match reader.rest().is_empty() {
        true => Ok(effect),
        false => reader.wrong(format!("`{}` is behind the effect", reader.rest())),
    }
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Answer<T> {
        Err(EffectError {
            at: self.at,
            what: what.into(),
        })
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn takes(&mut self, sign: char) -> bool {
        self.space();
        let is = self.rest().starts_with(sign);
        self.at += if is { sign.len_utf8() } else { 0 };
        is
    }

    fn wants(&mut self, sign: char) -> Answer<()> {
        match self.takes(sign) {
            true => Ok(()),
            false => self.wrong(format!("`{sign}` is wanted here")),
        }
    }

    fn effect(&mut self) -> Answer<Effect> {
        self.space();
        let start = self.at;
        let name = self.word();
        let form: fn(&mut Self) -> Answer<Effect> = match name {
            "in" => |reader| reader.sized().map(|(at, size)| Effect::In(at, size)),
            "out" => |reader| reader.sized().map(|(at, size)| Effect::Out(at, size)),
            "copyin" => |reader| reader.sized().map(|(at, size)| Effect::CopyIn(at, size)),
            "copyinout" => |reader| reader.sized().map(|(at, size)| Effect::CopyInOut(at, size)),
            "inout" => |reader| reader.sized().map(|(at, size)| Effect::InOut(at, size)),
            "into" => |reader| {
                let (at, size) = reader.sized()?;
                reader.wants(',')?;
                Ok(Effect::Into(at, size, reader.parameter()?))
            },
            "takes" => |reader| reader.sized().map(|(at, size)| Effect::Takes(at, size)),
            "moves" => |reader| reader.sized().map(|(at, size)| Effect::Moves(at, size)),
            "gives" => |reader| reader.size().map(Effect::Gives),
            "frees" => |reader| reader.parameter().map(Effect::Frees),
            "callback" => |reader| reader.parameter().map(Effect::Callback),
            "instance" => |reader| reader.parameter().map(Effect::Instance),
            "string" => |reader| reader.parameter().map(|at| Effect::In(at, Size::Text)),
            "list" => |reader| reader.parameter().map(|at| Effect::In(at, Size::List)),
            "strings" => |reader| reader.parameter().map(|at| Effect::In(at, Size::Texts)),
            _ => {
                self.at = start;
                return self.wrong(format!(
                    "`{name}` is no effect: in, out, into, inout, copyin, copyinout, string, list, strings, takes, gives, frees, moves, callback or instance"
                ));
            }
        };
        self.wants('(')?;
        let effect = form(self)?;
        self.wants(')')?;
        let ends = |size: Size| matches!(size, Size::Text | Size::List | Size::Texts);
        let is_vectors = |size: Size| matches!(size, Size::Vectors(_));
        match effect {
            Effect::Out(_, size)
            | Effect::Into(_, size, _)
            | Effect::InOut(_, size)
            | Effect::Takes(_, size)
            | Effect::Moves(_, size)
            | Effect::Gives(size)
                if ends(size) =>
            {
                self.at = start;
                self.wrong("only `in` may be as long as a string or a list")
            }
            Effect::Into(_, Size::Vectors(_), _)
            | Effect::Takes(_, Size::Vectors(_))
            | Effect::Moves(_, Size::Vectors(_))
            | Effect::Gives(Size::Vectors(_)) => {
                self.at = start;
                self.wrong("only `in`, `out` and `inout` may be of vectors")
            }
            Effect::CopyInOut(_, size) if ends(size) || is_vectors(size) => {
                self.at = start;
                self.wrong("only what has a size of its own is written back")
            }
            Effect::CopyIn(_, size)
                if matches!(size, Size::List | Size::Texts) || is_vectors(size) =>
            {
                self.at = start;
                self.wrong("lists and vectors are always copied: `in` is enough")
            }
            effect => Ok(effect),
        }
    }

    fn sized(&mut self) -> Answer<(u8, Size)> {
        let at = self.parameter()?;
        self.wants(',')?;
        Ok((at, self.size()?))
    }

    fn parameter(&mut self) -> Answer<u8> {
        self.space();
        let start = self.at;
        let word = self.word();
        let number = match word.parse::<usize>() {
            Ok(number) => Some(number),
            Err(_) => named(self.parameters, word),
        };
        match number {
            Some(number) if number < PARAMETERS => Ok(number as u8),
            Some(number) => {
                self.at = start;
                self.wrong(format!(
                    "parameter {number} is not passed in a register: effects are for the first {PARAMETERS}"
                ))
            }
            None => {
                self.at = start;
                self.wrong(match self.parameters.is_empty() {
                    true => format!("`{word}` is no parameter: `parameters` names none"),
                    false => {
                        let names = self.parameters.iter().map(|known| split(known).1);
                        format!(
                            "`{word}` is none of {}",
                            names.collect::<Vec<_>>().join(", ")
                        )
                    }
                })
            }
        }
    }

    fn size(&mut self) -> Answer<Size> {
        self.space();
        let start = self.at;
        let word = self.word();
        let is_name = self.parameters.iter().any(|known| split(known).1 == word);
        match word {
            "string" if !is_name => return Ok(Size::Text),
            "list" if !is_name => return Ok(Size::List),
            "strings" if !is_name => return Ok(Size::Texts),
            "vectors" if !is_name => {
                self.wants('(')?;
                let sum = self.sum()?;
                self.wants(')')?;
                return Ok(Size::Vectors(sum));
            }
            // A number alone may be larger than one in a sum.
            _ => {
                let number = word.parse();
                self.space();
                if let (Ok(bytes), true) = (number, self.rest().starts_with([')', ','])) {
                    return Ok(Size::Bytes(bytes));
                }
            }
        }
        self.at = start;
        Ok(plain(self.sum()?))
    }

    fn sum(&mut self) -> Answer<Sum> {
        let mut sum = Sum::default();
        let mut sign = if self.takes('-') { -1 } else { 1 };
        for place in 0.. {
            let at = self.at;
            let term = self.term(sign)?;
            let Some(slot) = sum.0.get_mut(place) else {
                self.at = at;
                return self.wrong("a size is a sum of at most three products");
            };
            *slot = Some(term);
            sign = match (self.takes('+'), self.takes('-')) {
                (true, _) => 1,
                (_, true) => -1,
                _ => break,
            };
        }
        Ok(sum)
    }

    fn term(&mut self, sign: i64) -> Answer<Term> {
        let mut term = Term {
            times: sign,
            factors: [None; 2],
        };
        loop {
            self.space();
            let start = self.at;
            if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
                let factor = self.word().parse::<i64>().ok();
                let times = factor.and_then(|factor| term.times.checked_mul(factor));
                let Some(times) = times else {
                    self.at = start;
                    return self.wrong("a whole number below 2^63 is wanted");
                };
                term.times = times;
            } else {
                let value = self.value()?;
                let Some(slot) = term.factors.iter_mut().find(|slot| slot.is_none()) else {
                    self.at = start;
                    return self.wrong("a product has at most two values");
                };
                *slot = Some(value);
            }
            if !self.takes('*') {
                return Ok(term);
            }
        }
    }

    fn value(&mut self) -> Answer<Number> {
        self.space();
        let is_numbered = self.takes('#');
        let start = self.at;
        let is_number = self.rest().starts_with(|c: char| c.is_ascii_digit());
        if is_number != is_numbered {
            self.at = start;
            return self.wrong("a parameter is wanted: its name, or `#` and its number");
        }
        let argument = self.parameter()?;
        let field = match self.takes('@') {
            true => {
                let start = self.at;
                let Ok(offset) = self.word().parse() else {
                    self.at = start;
                    return self
                        .wrong("behind `@` stands how many bytes behind the pointer a field is");
                };
                Some(offset)
            }
            false => None,
        };
        let usual = match field {
            Some(_) => None,
            None => Some(bits_of(self.parameters, argument)),
        };
        let start = self.at;
        let bits = match (self.takes(':'), usual) {
            (false, Some(bits)) => bits,
            (false, None) => return self.wrong("a field has a type: `:u32` or the like"),
            (true, _) => match bits(self.word()) {
                Some(bits) => bits,
                None => {
                    self.at = start;
                    return self.wrong("a type is wanted: u8, i8, u16, i16, u32, i32, u64 or i64");
                }
            },
        };
        Ok(Number {
            argument,
            field,
            bits,
        })
    }
}

fn named(parameters: &[String], name: &str) -> Option<usize> {
    let mut names = parameters.iter().map(|known| split(known).1);
    names.position(|known| known == name)
}

/// The number of a parameter that has a name and is in a register.
pub(crate) fn place(parameters: &[String], name: &str) -> Option<u8> {
    let number = named(parameters, name).filter(|number| *number < PARAMETERS)?;
    u8::try_from(number).ok()
}

/// The type, as far as it is written, and the name of a parameter.
pub(crate) fn split(parameter: &str) -> (&str, &str) {
    parameter.rsplit_once(' ').unwrap_or(("", parameter))
}

fn bits_of(parameters: &[String], at: u8) -> Bits {
    let written = parameters.get(usize::from(at)).map(|known| split(known).0);
    written.and_then(bits).unwrap_or_default()
}

/// The integer of this name, of Rust's or of C's on x86-64.
pub(crate) fn bits(name: &str) -> Option<Bits> {
    Some(match name {
        "u8" | "uint8_t" | "unsigned char" | "bool" | "_Bool" => Bits::U8,
        "i8" | "int8_t" | "char" | "signed char" => Bits::I8,
        "u16" | "uint16_t" | "unsigned short" => Bits::U16,
        "i16" | "int16_t" | "short" => Bits::I16,
        "u32" | "uint32_t" | "unsigned" | "unsigned int" => Bits::U32,
        "i32" | "int32_t" | "int" => Bits::I32,
        "u64" | "uint64_t" | "size_t" | "unsigned long" | "unsigned long long" => Bits::U64,
        "i64" | "int64_t" | "ssize_t" | "long" | "long long" => Bits::I64,
        _ => return None,
    })
}

/// The simplest size that says the same.
fn plain(sum: Sum) -> Size {
    let Sum([Some(term), None, None]) = sum else {
        return Size::Sum(sum);
    };
    let whole = |number: Number| {
        let is_whole = number.field.is_none() && number.bits == Bits::U64;
        is_whole.then_some(number.argument)
    };
    let [first, second] = term.factors.map(|number| number.map(whole));
    match (term.times, first, second) {
        (times, None, None) if times >= 0 => Size::Bytes(times as u64),
        (1, Some(Some(a)), None) => Size::Argument(a),
        (1, Some(Some(a)), Some(Some(b))) => Size::Product(a, b),
        _ => Size::Sum(sum),
    }
}

fn write_sum(sum: &Sum, value: &dyn Fn(Number) -> String) -> String {
    let mut text = String::new();
    for (place, term) in sum.0.iter().flatten().enumerate() {
        let sign = match (place, term.times < 0) {
            (0, true) => "-",
            (0, false) => "",
            (_, true) => " - ",
            (_, false) => " + ",
        };
        let times = term.times.unsigned_abs();
        let mut factors: Vec<String> = term.factors.iter().flatten().map(|n| value(*n)).collect();
        if times != 1 || factors.is_empty() {
            factors.push(times.to_string());
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{sign}{}", factors.join(" * "));
    }
    text
}

/// An effect as [`parse`] reads it.
pub(crate) fn write(effect: &Effect, parameters: &[String]) -> String {
    let name = |at: u8| parameters.get(usize::from(at)).map(|known| split(known).1);
    let parameter = |at: u8| name(at).map_or_else(|| at.to_string(), str::to_owned);
    let value = |number: Number| {
        let at = number.argument;
        let mut text = name(at).map_or_else(|| format!("#{at}"), str::to_owned);
        if let Some(offset) = number.field {
            let _ = write!(text, "@{offset}");
        }
        if number.field.is_some() || number.bits != bits_of(parameters, at) {
            let _ = write!(text, ":{}", format!("{:?}", number.bits).to_lowercase());
        }
        text
    };
    let whole = |at| value(Number::of(at, Bits::U64));
    let size = |size: Size| match size {
        Size::Bytes(bytes) => bytes.to_string(),
        Size::Argument(at) => whole(at),
        Size::Product(a, b) => format!("{} * {}", whole(a), whole(b)),
        Size::Sum(sum) => write_sum(&sum, &value),
        Size::Vectors(sum) => format!("vectors({})", write_sum(&sum, &value)),
        Size::Text => "string".to_owned(),
        Size::List => "list".to_owned(),
        Size::Texts => "strings".to_owned(),
    };
    let mut text = String::new();
    let sized = |text: &mut String, word: &str, at: u8, bytes: Size| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{word}({}, {})", parameter(at), size(bytes));
    };
    match *effect {
        Effect::In(at, Size::Text) => text = format!("string({})", parameter(at)),
        Effect::In(at, Size::List) => text = format!("list({})", parameter(at)),
        Effect::In(at, Size::Texts) => text = format!("strings({})", parameter(at)),
        Effect::In(at, bytes) => sized(&mut text, "in", at, bytes),
        Effect::Out(at, bytes) => sized(&mut text, "out", at, bytes),
        Effect::Into(at, bytes, of) => {
            text = format!(
                "into({}, {}, {})",
                parameter(at),
                size(bytes),
                parameter(of)
            );
        }
        Effect::InOut(at, bytes) => sized(&mut text, "inout", at, bytes),
        Effect::CopyIn(at, bytes) => sized(&mut text, "copyin", at, bytes),
        Effect::CopyInOut(at, bytes) => sized(&mut text, "copyinout", at, bytes),
        Effect::Takes(at, bytes) => sized(&mut text, "takes", at, bytes),
        Effect::Moves(at, bytes) => sized(&mut text, "moves", at, bytes),
        Effect::Gives(bytes) => text = format!("gives({})", size(bytes)),
        Effect::Frees(at) => text = format!("frees({})", parameter(at)),
        Effect::Callback(at) => text = format!("callback({})", parameter(at)),
        Effect::Instance(at) => text = format!("instance({})", parameter(at)),
    }
    text
}
