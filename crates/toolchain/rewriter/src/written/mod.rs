//! Assembler that people write: macros, repetitions and conditions are expanded here, and registers of the rewriter's
//! own are replaced ([`registers`]), before anything else sees the text.
//!
//! Each line stays where it is: what a macro becomes stands on the line that calls it. So a refusal names the right one.
//! What is not expanded stays, and the parser refuses it with its reason.

mod call;
pub(crate) mod registers;
pub(crate) mod tables;
mod value;

use crate::lexer::{self, symbol_length};
use crate::operand::split_operands;
use crate::refusal::{Reason, Refusal};
use call::Macro;
use std::collections::{HashMap, HashSet};
use value::Values;

/// Statements beyond which nothing is expanded.
const STATEMENTS: usize = 1 << 20;
/// Macros within macros.
const DEPTH: usize = 64;

/// The source with all macros, repetitions and conditions expanded; `None` if it has none.
pub(crate) fn expand(source: &str) -> Result<Option<String>, Refusal> {
    let begins = |line: &str| {
        let line = line.trim_start();
        [".macro", ".rept", ".irp", ".if"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    // One line may hold several, from the preprocessor.
    if !source.split(['\n', ';']).any(begins) {
        return Ok(None);
    }
    let mut pieces = Vec::new();
    let end = lexer::pieces(source, |line, text| {
        pieces.push(Piece {
            line,
            text: text.to_owned(),
        });
    });
    if let Err(lexer::Unfinished(line)) = end {
        return Err(Refusal::new(line, "", Reason::Unfinished));
    }
    let mut expander = Expander::default();
    expander.block(&pieces, None, 0)?;
    expander.text.text.push('\n');
    Ok(Some(expander.text.text))
}

/// The value of an expression of numbers alone.
pub(crate) fn constant(text: &str) -> Option<i64> {
    value::value(text, &Values::new())
}

/// A statement with its labels.
#[derive(Clone, Debug)]
struct Piece {
    line: u32,
    text: String,
}

/// How a block ended.
#[derive(PartialEq)]
enum End {
    Through,
    /// By `.exitm`.
    Left,
}

#[derive(Default)]
struct Expander {
    macros: HashMap<String, Macro>,
    values: Values,
    labels: HashSet<String>,
    /// `\@`
    calls: u32,
    statements: usize,
    text: Lines,
}

/// The word at the beginning, and what is behind it.
fn first_word(text: &str) -> (&str, &str) {
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// The statement without its labels.
fn behind_labels(mut text: &str) -> &str {
    loop {
        let length = symbol_length(text);
        let after = text[length..].trim_start();
        match after.strip_prefix(':') {
            Some(rest) if length > 0 => text = rest.trim_start(),
            _ => return text,
        }
    }
}

/// Where the block ends that begins in front of `from`: the index of the first of `ends` at its own depth.
fn end_of(pieces: &[Piece], from: usize, opens: fn(&str) -> bool, ends: &[&str]) -> Option<usize> {
    let mut depth = 0;
    for (at, piece) in pieces.iter().enumerate().skip(from) {
        let (name, _) = first_word(behind_labels(&piece.text));
        if depth == 0 && ends.contains(&name) {
            return Some(at);
        }
        if opens(name) {
            depth += 1;
        } else if ends.last() == Some(&name) {
            depth -= 1;
        }
    }
    None
}

fn opens_macro(name: &str) -> bool {
    name == ".macro"
}

fn opens_loop(name: &str) -> bool {
    matches!(name, ".rept" | ".irp" | ".irpc")
}

fn opens_condition(name: &str) -> bool {
    name.starts_with(".if")
}

impl Expander {
    /// Expands statements. `at` is the line on which they stand, if not their own.
    fn block(&mut self, pieces: &[Piece], at: Option<u32>, depth: usize) -> Result<End, Refusal> {
        let mut next = 0;
        while let Some(piece) = pieces.get(next) {
            next += 1;
            let line = at.unwrap_or(piece.line);
            if piece.text.starts_with('#') {
                self.text.marker(line, &piece.text);
                continue;
            }
            let rest = behind_labels(&piece.text);
            let labels = piece.text[..piece.text.len() - rest.len()].trim();
            if !labels.is_empty() {
                let names = labels.split(':').map(|name| name.trim().to_owned());
                self.labels.extend(names);
                self.put(line, labels)?;
            }
            let refuse = |reason| Refusal::new(line, rest, Reason::Directive(reason));
            let (name, arguments) = first_word(rest);
            match name {
                ".macro" => {
                    let end = end_of(pieces, next, opens_macro, &[".endm"]);
                    let end = end.ok_or_else(|| refuse("this macro has no .endm"))?;
                    let (name, made) = Macro::read(arguments, pieces[next..end].to_vec())
                        .ok_or_else(|| refuse("parameters of this macro are not understood"))?;
                    self.macros.insert(name, made);
                    next = end + 1;
                }
                ".rept" | ".irp" | ".irpc" => {
                    let end = end_of(pieces, next, opens_loop, &[".endr"]);
                    let end = end.ok_or_else(|| refuse("this repetition has no .endr"))?;
                    let rounds = self.rounds(name, arguments).ok_or_else(|| {
                        refuse("how often this is repeated is not known where it stands")
                    })?;
                    for round in rounds {
                        let body = call::substituted(&pieces[next..end], &round, None);
                        if self.block(&body, Some(line), self.deeper(depth, &refuse)?)? == End::Left
                        {
                            break;
                        }
                    }
                    next = end + 1;
                }
                _ if opens_condition(name) => {
                    let (body, end) = self
                        .chosen(pieces, next - 1)
                        .ok_or_else(|| refuse("this condition is not known where it stands"))?;
                    if self.block(&pieces[body], at, self.deeper(depth, &refuse)?)? == End::Left {
                        return Ok(End::Left);
                    }
                    next = end + 1;
                }
                ".exitm" => return Ok(End::Left),
                ".purgem" => {
                    self.macros.remove(arguments);
                }
                ".error" | ".err" => return Err(refuse("the source says that this is an error")),
                ".print" | ".warning" => {}
                ".set" | ".equ" | ".equiv" => {
                    if let Some((symbol, expression)) = arguments.split_once(',') {
                        self.set(line, symbol.trim(), expression.trim(), rest)?;
                    } else {
                        self.put(line, rest)?;
                    }
                }
                _ => match self.macros.get(name).cloned() {
                    Some(found) => {
                        let given = found
                            .given(arguments)
                            .ok_or_else(|| refuse("arguments of this macro are not understood"))?;
                        let body = call::substituted(&found.body, &given, Some(self.calls));
                        self.calls += 1;
                        self.block(&body, Some(line), self.deeper(depth, &refuse)?)?;
                    }
                    None => self.other(line, rest)?,
                },
            }
        }
        Ok(End::Through)
    }

    /// A statement that is none of these: `name = expression`, an instruction, a directive.
    fn other(&mut self, line: u32, text: &str) -> Result<(), Refusal> {
        let length = symbol_length(text);
        let after = text[length..].trim_start();
        if length > 0 && after.starts_with('=') && !text.starts_with('"') {
            let expression = after.trim_start_matches('=').trim();
            return self.set(line, &text[..length], expression, text);
        }
        let text = self.with_values(text);
        self.put(line, &text)
    }

    /// Remembers what a symbol is set to. The assembler is told as well.
    fn set(
        &mut self,
        line: u32,
        symbol: &str,
        expression: &str,
        whole: &str,
    ) -> Result<(), Refusal> {
        match value::value(expression, &self.values) {
            Some(value) => {
                self.values.insert(symbol.to_owned(), value);
                self.put(line, &format!(".set {symbol}, {value}"))
            }
            None => {
                self.values.remove(symbol);
                self.put(line, whole)
            }
        }
    }

    fn deeper(
        &self,
        depth: usize,
        refuse: &impl Fn(&'static str) -> Refusal,
    ) -> Result<usize, Refusal> {
        if depth >= DEPTH {
            return Err(refuse("macros are nested too deeply"));
        }
        Ok(depth + 1)
    }

    /// For each round of a repetition what its parameter is.
    fn rounds(&self, name: &str, arguments: &str) -> Option<Vec<Vec<(String, String)>>> {
        if name == ".rept" {
            let count = value::value(arguments, &self.values)?;
            let count = usize::try_from(count)
                .ok()
                .filter(|count| *count <= STATEMENTS)?;
            return Some(vec![Vec::new(); count]);
        }
        let end = symbol_length(arguments);
        let (parameter, rest) = arguments.split_at(end);
        let rest = rest.trim_start();
        let rest = rest.strip_prefix(',').unwrap_or(rest).trim();
        if parameter.is_empty() {
            return None;
        }
        let values: Vec<String> = match name {
            ".irpc" => rest.trim_matches('"').chars().map(String::from).collect(),
            _ => call::arguments(rest),
        };
        let round = |value: String| vec![(parameter.to_owned(), value)];
        // Without a value it is done once, with nothing.
        Some(match values.is_empty() {
            true => vec![round(String::new())],
            false => values.into_iter().map(round).collect(),
        })
    }

    /// The part of a condition that holds, and where the condition ends.
    fn chosen(&self, pieces: &[Piece], begin: usize) -> Option<(std::ops::Range<usize>, usize)> {
        const ENDS: [&str; 3] = [".elseif", ".else", ".endif"];
        let (mut at, mut taken) = (begin, None);
        loop {
            let (name, arguments) = first_word(behind_labels(&pieces[at].text));
            let end = end_of(pieces, at + 1, opens_condition, &ENDS)?;
            if taken.is_none() {
                let holds = match name {
                    ".else" => true,
                    ".elseif" => self.holds(".if", arguments)?,
                    _ => self.holds(name, arguments)?,
                };
                if holds {
                    taken = Some(at + 1..end);
                }
            }
            if first_word(&pieces[end].text).0 == ".endif" {
                return Some((taken.unwrap_or(end..end), end));
            }
            at = end;
        }
    }

    fn holds(&self, name: &str, arguments: &str) -> Option<bool> {
        let defined = || self.values.contains_key(arguments) || self.labels.contains(arguments);
        let pair = || {
            let mut parts = split_operands(arguments).map(|part| part.trim_matches('\''));
            Some((parts.next()?, parts.next().unwrap_or_default()))
        };
        let compared = |holds: fn(i64) -> bool| value::value(arguments, &self.values).map(holds);
        match name {
            ".if" | ".ifne" => compared(|value| value != 0),
            ".ifeq" => compared(|value| value == 0),
            ".ifgt" => compared(|value| value > 0),
            ".ifge" => compared(|value| value >= 0),
            ".iflt" => compared(|value| value < 0),
            ".ifle" => compared(|value| value <= 0),
            ".ifdef" => Some(defined()),
            ".ifndef" | ".ifnotdef" => Some(!defined()),
            ".ifb" => Some(arguments.is_empty()),
            ".ifnb" => Some(!arguments.is_empty()),
            ".ifc" | ".ifeqs" => pair().map(|(one, other)| one == other),
            ".ifnc" | ".ifnes" => pair().map(|(one, other)| one != other),
            _ => None,
        }
    }

    /// An instruction with the values that its operands have here; data, too.
    fn with_values(&self, text: &str) -> String {
        let (name, arguments) = first_word(text);
        if self.values.is_empty()
            || arguments.is_empty()
            || (name.starts_with('.') && !is_data(name))
        {
            return text.to_owned();
        }
        let folded = split_operands(arguments).map(|operand| self.folded(operand));
        format!("{name}\t{}", folded.collect::<Vec<_>>().join(", "))
    }

    /// `$expression`, `expression(%base)` or `expression` with its value, if that is made of symbols that were set.
    fn folded(&self, operand: &str) -> String {
        let (mark, rest) = match operand.strip_prefix('$') {
            Some(rest) => ("$", rest),
            None => ("", operand),
        };
        let (expression, behind) = match rest.find("(%").or_else(|| rest.find("(,")) {
            Some(open) if mark.is_empty() => rest.split_at(open),
            _ => (rest, ""),
        };
        let (mark, expression) = match expression.split_once(':') {
            Some((segment, rest)) if segment.starts_with('%') => {
                (&expression[..=segment.len()], rest)
            }
            _ => (mark, expression),
        };
        match value::value(expression, &self.values) {
            Some(value) => format!("{mark}{value}{behind}"),
            None => operand.to_owned(),
        }
    }

    fn put(&mut self, line: u32, text: &str) -> Result<(), Refusal> {
        self.statements += 1;
        if self.statements > STATEMENTS {
            let reason = Reason::Directive("macros and repetitions become too long a text");
            return Err(Refusal::new(line, text, reason));
        }
        self.text.put(line, text);
        Ok(())
    }
}

/// A text in which each statement stands on the line that it came from.
#[derive(Default)]
struct Lines {
    text: String,
    /// Newlines so far.
    count: u32,
    /// Whether the line that is being written is a marker, which swallows all behind it.
    marked: bool,
}

impl Lines {
    /// A line marker, which needs a line of its own.
    fn marker(&mut self, line: u32, text: &str) {
        self.go_to(line);
        if self.text.is_empty() || self.text.ends_with('\n') {
            self.text.push_str(text);
            self.marked = true;
        }
    }

    fn put(&mut self, line: u32, text: &str) {
        if text.is_empty() {
            return;
        }
        self.go_to(line);
        if self.marked {
            self.go_to(self.count + 2);
        }
        let begins = self.text.is_empty() || self.text.ends_with('\n');
        self.text.push_str(if begins { "\t" } else { "; " });
        self.text.push_str(text);
        // A string may have lines of its own.
        self.count += u32::try_from(text.matches('\n').count()).unwrap_or(0);
    }

    fn go_to(&mut self, line: u32) {
        while self.count + 1 < line {
            self.text.push('\n');
            self.count += 1;
            self.marked = false;
        }
    }
}

/// Directives whose operands are numbers.
fn is_data(name: &str) -> bool {
    matches!(
        name,
        ".byte"
            | ".2byte"
            | ".4byte"
            | ".8byte"
            | ".short"
            | ".hword"
            | ".value"
            | ".word"
            | ".long"
            | ".int"
            | ".quad"
            | ".octa"
            | ".zero"
            | ".skip"
            | ".space"
            | ".fill"
            | ".p2align"
            | ".align"
            | ".balign"
    )
}

#[cfg(test)]
mod tests;
