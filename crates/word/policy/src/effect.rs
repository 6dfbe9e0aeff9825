//! Effects and sizes as text: `in(data, count * size)`.
//!
//! ```text
//!   effect     = name "(" [ parameter [ "," size ] ] ")"
//!   gives      = "gives" "(" size ")"
//!   size       = number | value | value "*" value | "string"
//!   value      = a name of the function's parameters, or "#" and its number from 0
//!   parameter  = a name of the function's parameters, or its number from 0
//! ```

use mullion_word_runtime::{Effect, Size};
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
            "inout" => |reader| reader.sized().map(|(at, size)| Effect::InOut(at, size)),
            "takes" => |reader| reader.sized().map(|(at, size)| Effect::Takes(at, size)),
            "moves" => |reader| reader.sized().map(|(at, size)| Effect::Moves(at, size)),
            "gives" => |reader| reader.size().map(Effect::Gives),
            "frees" => |reader| reader.parameter().map(Effect::Frees),
            "callback" => |reader| reader.parameter().map(Effect::Callback),
            "string" => |reader| reader.parameter().map(|at| Effect::In(at, Size::Text)),
            _ => {
                self.at = start;
                return self.wrong(format!(
                    "`{name}` is no effect: in, out, inout, string, takes, gives, frees, moves or callback"
                ));
            }
        };
        self.wants('(')?;
        let effect = form(self)?;
        self.wants(')')?;
        let text = |size: Size| size == Size::Text;
        match effect {
            Effect::Out(_, size)
            | Effect::InOut(_, size)
            | Effect::Takes(_, size)
            | Effect::Moves(_, size)
            | Effect::Gives(size)
                if text(size) =>
            {
                self.at = start;
                self.wrong("only `in` may be as long as a string")
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
            Err(_) => self.parameters.iter().position(|known| known == word),
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
                    false => format!("`{word}` is none of {}", self.parameters.join(", ")),
                })
            }
        }
    }

    fn size(&mut self) -> Answer<Size> {
        self.space();
        let start = self.at;
        if self.rest().starts_with('#') {
            return self.values();
        }
        let word = self.word();
        if word == "string" && !self.parameters.iter().any(|known| known == word) {
            return Ok(Size::Text);
        }
        if let Ok(bytes) = word.parse() {
            return Ok(Size::Bytes(bytes));
        }
        self.at = start;
        self.values()
    }

    fn values(&mut self) -> Answer<Size> {
        let first = self.value()?;
        Ok(match self.takes('*') {
            true => Size::Product(first, self.value()?),
            false => Size::Argument(first),
        })
    }

    fn value(&mut self) -> Answer<u8> {
        self.space();
        let is_numbered = self.takes('#');
        let start = self.at;
        let is_number = self.rest().starts_with(|c: char| c.is_ascii_digit());
        if is_number != is_numbered {
            self.at = start;
            return self.wrong("a parameter is wanted: its name, or `#` and its number");
        }
        self.parameter()
    }
}

/// An effect as [`parse`] reads it.
pub(crate) fn write(effect: &Effect, parameters: &[String]) -> String {
    let name = |at: u8| parameters.get(usize::from(at)).cloned();
    let parameter = |at: u8| name(at).unwrap_or_else(|| at.to_string());
    let value = |at: u8| name(at).unwrap_or_else(|| format!("#{at}"));
    let size = |size: Size| match size {
        Size::Bytes(bytes) => bytes.to_string(),
        Size::Argument(at) => value(at),
        Size::Product(a, b) => format!("{} * {}", value(a), value(b)),
        Size::Text => "string".to_owned(),
    };
    let mut text = String::new();
    let sized = |text: &mut String, word: &str, at: u8, bytes: Size| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{word}({}, {})", parameter(at), size(bytes));
    };
    match *effect {
        Effect::In(at, Size::Text) => text = format!("string({})", parameter(at)),
        Effect::In(at, bytes) => sized(&mut text, "in", at, bytes),
        Effect::Out(at, bytes) => sized(&mut text, "out", at, bytes),
        Effect::InOut(at, bytes) => sized(&mut text, "inout", at, bytes),
        Effect::Takes(at, bytes) => sized(&mut text, "takes", at, bytes),
        Effect::Moves(at, bytes) => sized(&mut text, "moves", at, bytes),
        Effect::Gives(bytes) => text = format!("gives({})", size(bytes)),
        Effect::Frees(at) => text = format!("frees({})", parameter(at)),
        Effect::Callback(at) => text = format!("callback({})", parameter(at)),
    }
    text
}
