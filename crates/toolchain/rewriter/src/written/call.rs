//! Macros: their parameters, what a call gives for them, and the body with that in its place.

use super::Piece;
use crate::lexer::symbol_length;

/// A macro of the source's own.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    parameters: Vec<Parameter>,
    pub(super) body: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    default: String,
    required: bool,
    /// Takes all that is left.
    rest: bool,
}

impl Macro {
    /// `name a, b=1, c:req, d:vararg`
    pub(super) fn read(text: &str, body: Vec<Piece>) -> Option<(String, Self)> {
        let (name, rest) = text.split_at(symbol_length(text));
        if name.is_empty() {
            return None;
        }
        let rest = rest.trim_start();
        let mut parameters = Vec::new();
        for word in arguments(rest.strip_prefix(',').unwrap_or(rest)) {
            let (word, default) = word.split_once('=').unwrap_or((&word, ""));
            let (name, kind) = word.trim().split_once(':').unwrap_or((word.trim(), ""));
            if symbol_length(name) != name.len()
                || name.is_empty()
                || !matches!(kind, "" | "req" | "vararg")
            {
                return None;
            }
            parameters.push(Parameter {
                name: name.to_owned(),
                default: default.trim().to_owned(),
                required: kind == "req",
                rest: kind == "vararg",
            });
        }
        Some((name.to_owned(), Self { parameters, body }))
    }

    /// What a call gives for each parameter. `None` if it gives too much, or not what it must.
    pub(super) fn given(&self, text: &str) -> Option<Vec<(String, String)>> {
        let mut values: Vec<Option<String>> = vec![None; self.parameters.len()];
        let mut next = 0;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let takes_all = self.parameters.get(next).is_some_and(|it| it.rest);
            if takes_all {
                values[next] = Some(rest.to_owned());
                break;
            }
            let (word, behind) = argument(rest);
            rest = behind;
            let keyword = word.split_once('=').and_then(|(name, value)| {
                let at = self
                    .parameters
                    .iter()
                    .position(|it| it.name == name.trim())?;
                Some((at, value.trim()))
            });
            match keyword {
                Some((at, value)) => values[at] = Some(unquoted(value)),
                None => {
                    *values.get_mut(next)? = Some(unquoted(word)).filter(|word| !word.is_empty());
                    next += 1;
                }
            }
        }
        let pairs = self.parameters.iter().zip(values);
        pairs
            .map(|(parameter, value)| {
                let value = match value {
                    Some(value) => value,
                    None if parameter.required => return None,
                    None => parameter.default.clone(),
                };
                Some((parameter.name.clone(), value))
            })
            .collect()
    }
}

/// The first argument, and what stands behind it and the comma or blank that ends it.
fn argument(text: &str) -> (&str, &str) {
    let (mut depth, mut quoted) = (0, false);
    let bytes = text.as_bytes();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if at == 0 || bytes[at - 1] != b'\\' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth -= 1,
            b',' if depth == 0 && !quoted => {
                return (text[..at].trim(), text[at + 1..].trim_start());
            }
            b' ' | b'\t' if depth == 0 && !quoted => {
                // A blank separates, unless it stands beside an operator.
                let (before, after) = (text[..at].trim_end(), text[at..].trim_start());
                if let Some(after) = after.strip_prefix(',') {
                    return (before, after.trim_start());
                }
                let operators = ['+', '-', '*', '/', '=', '|', '&', '<', '>', '^'];
                if !before.ends_with(operators) && !after.starts_with(operators) {
                    return (before, after);
                }
            }
            _ => {}
        }
    }
    (text.trim(), "")
}

/// All arguments.
pub(super) fn arguments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, behind) = argument(rest);
        found.push(unquoted(word));
        rest = behind;
    }
    found
}

fn unquoted(text: &str) -> String {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// The statements with parameters replaced, and with `\@` where they are a macro's. What they become may be several.
pub(super) fn substituted(
    pieces: &[Piece],
    values: &[(String, String)],
    call: Option<u32>,
) -> Vec<Piece> {
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if piece.text.starts_with('#') {
            continue;
        }
        let text = replaced(&piece.text, values, call);
        let line = piece.line;
        // A value may end in a separator. Strings with one in them are the source's own, and stay whole.
        let whole = crate::lexer::pieces(&text, |_, text| {
            out.push(Piece {
                line,
                text: text.to_owned(),
            });
        });
        if whole.is_err() {
            out.push(Piece { line, text });
        }
    }
    out
}

fn replaced(text: &str, values: &[(String, String)], call: Option<u32>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix("()") {
            rest = behind;
            continue;
        }
        if let (Some(behind), Some(call)) = (rest.strip_prefix('@'), call) {
            out.push_str(&call.to_string());
            rest = behind;
            continue;
        }
        let name = &rest[..symbol_length(rest)];
        match values.iter().find(|(parameter, _)| parameter == name) {
            Some((_, value)) if !name.is_empty() => {
                out.push_str(value);
                rest = &rest[name.len()..];
            }
            _ => {
                out.push('\\');
                // A backslash that is quoted itself.
                if let Some(behind) = rest.strip_prefix('\\') {
                    out.push('\\');
                    rest = behind;
                }
            }
        }
    }
    out.push_str(rest);
    out
}
