//! From text to a [`File`]. What is not known is an error with its line and column.

use crate::effect;
use crate::file::{Call, Export, File, HostVariable, Limits};
use mullion_word_runtime::{Effect, ErrorValue};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;
use toml::Spanned;

/// Most words of arguments on the stack.
const STACKED: u8 = 16;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct TextError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Written {
    module: Option<Spanned<String>>,
    entry: Option<Spanned<String>>,
    allow: Vec<Spanned<String>>,
    reasons: BTreeMap<String, String>,
    error: Option<Value>,
    limits: WrittenLimits,
    group: BTreeMap<String, Vec<Spanned<String>>>,
    list: BTreeMap<String, Vec<String>>,
    call: BTreeMap<String, Spanned<WrittenCall>>,
    export: BTreeMap<String, Spanned<WrittenExport>>,
    data: BTreeMap<String, Spanned<WrittenData>>,
    stays_mapped: bool,
    instances: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenData {
    bytes: Option<u64>,
    write: bool,
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenLimits {
    time: Option<Spanned<String>>,
    memory: Option<Spanned<String>>,
    stack: Option<Spanned<String>>,
    image: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenCall {
    parameters: Vec<Spanned<String>>,
    effects: Vec<Spanned<String>>,
    callback: BTreeMap<String, Spanned<WrittenCallback>>,
    stacked: Option<Spanned<u8>>,
    allocator: Option<Spanned<String>>,
    reason: Option<String>,
}

/// A module passes a function to one of the host's. This says what the host's calls of it mean.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenCallback {
    parameters: Vec<Spanned<String>>,
    effects: Vec<Spanned<String>>,
    stacked: Option<Spanned<u8>>,
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenExport {
    parameters: Vec<Spanned<String>>,
    effects: Vec<Spanned<String>>,
    stacked: Option<Spanned<u8>>,
    reason: Option<String>,
    error: Option<Value>,
}

/// An integer, or a floating-point number.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Value {
    Integer(i64),
    Float(f64),
}

impl From<Value> for ErrorValue {
    fn from(value: Value) -> ErrorValue {
        match value {
            Value::Integer(integer) => ErrorValue {
                integer,
                float: 0.0,
            },
            Value::Float(float) => ErrorValue { integer: 0, float },
        }
    }
}

/// The text, to tell lines.
struct Source<'a>(&'a str);

type Answer<T> = Result<T, TextError>;

impl Source<'_> {
    fn error(&self, at: usize, what: impl Into<String>) -> TextError {
        let mut at = at.min(self.0.len());
        while !self.0.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.0[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        TextError {
            line,
            column,
            what: what.into(),
        }
    }

    /// A name of C's, or a field as `structure.field`: a host may offer fields by such names.
    fn name(&self, name: Spanned<String>) -> Answer<String> {
        let at = name.span().start;
        let name = name.into_inner();
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        match first
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        {
            true => Ok(name),
            false => Err(self.error(
                at,
                format!("`{name}` is no name of a function or parameter"),
            )),
        }
    }

    /// A parameter's name, possibly behind the type of an integer.
    fn parameter(&self, text: Spanned<String>) -> Answer<String> {
        let (at, span) = (text.span().start, text.span());
        let words: Vec<&str> = text.get_ref().split_ascii_whitespace().collect();
        let Some((name, kind)) = words.split_last() else {
            return self.name(text);
        };
        let (name, kind) = (
            self.name(Spanned::new(span, (*name).to_owned()))?,
            kind.join(" "),
        );
        match kind.as_str() {
            "" => Ok(name),
            kind if effect::bits(kind).is_some() => Ok(format!("{kind} {name}")),
            kind => Err(self.error(
                at,
                format!("`{kind}` is no type of an integer that is known here"),
            )),
        }
    }

    /// `usual` are the names of parameters, if it has none itself.
    fn call(&self, written: WrittenCall, usual: Vec<String>) -> Answer<Call> {
        let mut parameters = match written.parameters.is_empty() {
            true => usual,
            false => Vec::new(),
        };
        for name in written.parameters {
            let parameter = self.parameter(name.clone())?;
            let (at, called) = (name.span().start, effect::split(&parameter).1);
            if parameters
                .iter()
                .any(|known| effect::split(known).1 == called)
            {
                return Err(self.error(at, format!("two parameters are called `{called}`")));
            }
            parameters.push(parameter);
        }
        let effects = written.effects.into_iter().map(|text| {
            let start = text.span().start;
            effect::parse(text.get_ref(), &parameters)
                .map_err(|wrong| self.error(start + 1 + wrong.at, wrong.what))
        });
        let effects = effects.collect::<Answer<Vec<_>>>()?;
        let stacked = match written.stacked {
            Some(words) if *words.get_ref() > STACKED => {
                let what = format!("at most {STACKED} words of arguments can be on the stack");
                return Err(self.error(words.span().start, what));
            }
            Some(words) => words.into_inner(),
            None => 0,
        };
        let place = written.allocator.as_ref().map(|name| name.span().start);
        let allocator = written.allocator.map(|name| self.name(name)).transpose()?;
        let callbacks = self.callbacks(written.callback, &parameters, &effects)?;
        let call = Call {
            parameters,
            effects,
            callbacks,
            stacked,
            allocator,
            reason: written.reason,
        };
        match place.filter(|_| !call.allocates()) {
            Some(at) => {
                let what = "only what gives, frees or moves blocks is of an allocator";
                Err(self.error(at, what))
            }
            None => Ok(call),
        }
    }

    /// Each is of a parameter that is a function.
    fn callbacks(
        &self,
        written: BTreeMap<String, Spanned<WrittenCallback>>,
        parameters: &[String],
        effects: &[Effect],
    ) -> Answer<BTreeMap<String, Call>> {
        let mut callbacks = BTreeMap::new();
        for (name, callback) in written {
            let start = callback.span().start;
            let place = effect::place(parameters, &name)
                .filter(|at| effects.contains(&Effect::Callback(*at)));
            if place.is_none() {
                let what = format!("`{name}` is no parameter with `callback({name})`");
                return Err(self.error(start, what));
            }
            let callback = callback.into_inner();
            let call = WrittenCall {
                parameters: callback.parameters,
                effects: callback.effects,
                stacked: callback.stacked,
                reason: callback.reason,
                ..WrittenCall::default()
            };
            let call = self.call(call, Vec::new())?;
            callbacks.insert(name, call);
        }
        Ok(callbacks)
    }

    fn limits(&self, written: WrittenLimits) -> Answer<Limits> {
        let bytes = |text: Option<Spanned<String>>| text.map(|text| self.bytes(&text)).transpose();
        Ok(Limits {
            time: written.time.map(|text| self.time(&text)).transpose()?,
            memory: bytes(written.memory)?,
            stack: bytes(written.stack)?,
            image: bytes(written.image)?,
        })
    }

    /// A number with a unit.
    fn unit(&self, text: &Spanned<String>, units: &[(&str, u64)]) -> Answer<u64> {
        let written = text.get_ref().trim();
        let digits = written.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = written.split_at(digits.unwrap_or(written.len()));
        let unit = unit.trim();
        let scale = units.iter().find(|(name, _)| *name == unit);
        let value = number.parse::<u64>().ok().zip(scale);
        value
            .and_then(|(number, (_, scale))| number.checked_mul(*scale))
            .ok_or_else(|| {
                let names: Vec<_> = units.iter().map(|(name, _)| format!("`{name}`")).collect();
                let what = format!("a whole number and one of {} is wanted", names.join(", "));
                self.error(text.span().start, what)
            })
    }

    fn time(&self, text: &Spanned<String>) -> Answer<Duration> {
        self.unit(text, TIMES).map(Duration::from_micros)
    }

    fn bytes(&self, text: &Spanned<String>) -> Answer<u64> {
        self.unit(text, BYTES)
    }
}

/// Units of time, in microseconds, the largest last.
pub(crate) const TIMES: &[(&str, u64)] = &[("us", 1), ("ms", 1_000), ("s", 1_000_000)];

/// Units of memory, in bytes, the largest last.
pub(crate) const BYTES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl File {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong first, and where.
    pub fn parse(text: &str) -> Result<File, TextError> {
        File::parse_with(text, &|_| Vec::new())
    }

    /// As [`parse`](Self::parse). `parameters` says what the parameters of a function are called, if the file does not.
    ///
    /// # Errors
    /// As there.
    pub fn parse_with(
        text: &str,
        parameters: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<File, TextError> {
        let source = Source(text);
        let written: Written = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            source.error(at, error.message())
        })?;
        let optional =
            |name: Option<Spanned<String>>| name.map(|name| source.name(name)).transpose();
        let listed = |names: Vec<Spanned<String>>| -> Answer<Vec<String>> {
            names.into_iter().map(|name| source.allowed(name)).collect()
        };
        let mut file = File {
            module: written.module.map(Spanned::into_inner),
            entry: optional(written.entry)?,
            allow: listed(written.allow)?,
            reasons: written.reasons,
            lists: written.list,
            error: written.error.map(Into::into),
            limits: source.limits(written.limits)?,
            ..File::default()
        };
        for (name, members) in written.group {
            file.groups.insert(name, listed(members)?);
        }
        for (name, call) in written.call {
            let name = source.name(Spanned::new(call.span(), name))?;
            let usual = parameters(&name);
            file.calls
                .insert(name, source.call(call.into_inner(), usual)?);
        }
        for (name, export) in written.export {
            let name = source.name(Spanned::new(export.span(), name))?;
            let export = export.into_inner();
            let error = export.error.map(Into::into);
            let written = WrittenCall {
                parameters: export.parameters,
                effects: export.effects,
                stacked: export.stacked,
                reason: export.reason,
                ..WrittenCall::default()
            };
            let call = source.call(written, parameters(&name))?;
            file.exports.insert(name, Export { call, error });
        }
        for (name, data) in written.data {
            let name = source.name(Spanned::new(data.span(), name))?;
            let WrittenData {
                bytes,
                write,
                reason,
            } = data.into_inner();
            let data = HostVariable {
                bytes,
                write,
                reason,
            };
            file.data.insert(name, data);
        }
        file.stays_mapped = written.stays_mapped;
        file.instances = written.instances;
        Ok(file)
    }
}

impl Source<'_> {
    /// A function's name, or a group's.
    fn allowed(&self, name: Spanned<String>) -> Answer<String> {
        match name.get_ref().strip_prefix('@') {
            Some(group) if !group.is_empty() => Ok(name.into_inner()),
            _ => self.name(name),
        }
    }
}
