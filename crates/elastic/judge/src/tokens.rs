//! The tokens of preprocessed text, with their places in the files that it was made from.
//!
//! This pass has no say about what is allowed: the tree decides that. It refuses what the tree would not show
//! (pragmas, names of the compiler, characters outside of ISO C). It bounds the nesting that the parser meets, and
//! finds the place of everything.

use crate::refusal::{SourcePlace, SourceRefusal};
use mullion_elastic::Rule;
use std::collections::HashMap;
use std::ops::Range;

/// The most bytes of preprocessed text.
const TEXT: usize = 1 << 20;
/// The most brackets that are open at once.
const NESTING: usize = 64;
/// The most tokens of one kind in a row that the parser recurses over: `- - -`, `* * *`, `else if`.
const RUN: usize = 64;

/// What a token is, as far as this pass looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    Text,
    Mark,
}

/// A token of preprocessed text.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
    file: usize,
    line: usize,
}

/// Preprocessed text as tokens.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    files: Vec<String>,
    tokens: Vec<Token>,
    sources: &'a HashMap<String, String>,
}

/// Names that mean something to gcc beside ISO C11, or to everyone, and the rule that refuses them.
fn rule_of_name(name: &str) -> Option<Rule> {
    let core = name.trim_matches('_');
    Some(match core {
        "asm" if name != "_asm" => Rule::InlineAssembly,
        "attribute" | "declspec" if name.starts_with("__") => Rule::Attributes,
        "typeof" | "auto_type" => Rule::TypeOf,
        "Pragma" | "pragma" if name.starts_with('_') => Rule::Pragmas,
        "alloca" | "builtin_alloca" | "builtin_alloca_with_align" => Rule::VariableArrays,
        "setjmp" | "longjmp" | "sigsetjmp" | "siglongjmp" | "builtin_setjmp"
        | "builtin_longjmp" => Rule::Setjmp,
        "label" if name == "__label__" => Rule::ComputedGoto,
        "builtin_va_arg" | "builtin_va_start" | "builtin_va_end" | "builtin_va_list"
        | "builtin_va_copy" => Rule::Variadic,
        _ if name.starts_with("__builtin_")
            || name.starts_with("__sync_")
            || name.starts_with("__atomic_") =>
        {
            Rule::Builtins
        }
        "extension" | "thread" | "inline" | "const" | "volatile" | "restrict" | "signed"
        | "alignof" | "real" | "imag" | "complex" | "int128" | "float128" | "float80" | "fp16"
        | "seg_fs" | "seg_gs"
            if name.starts_with("__") =>
        {
            Rule::Extension
        }
        _ => {
            let keyword = [
                "_Alignas",
                "_Alignof",
                "_Atomic",
                "_Bool",
                "_Complex",
                "_Generic",
                "_Imaginary",
                "_Noreturn",
                "_Static_assert",
                "_Thread_local",
            ];
            let reserved = name.starts_with("__")
                || (name.starts_with('_')
                    && name.as_bytes().get(1).is_some_and(u8::is_ascii_uppercase));
            return (reserved && !keyword.contains(&name)).then_some(Rule::ReservedName);
        }
    })
}

impl<'a> Tokens<'a> {
    /// Reads text. `sources` holds the files that it was made from, to show their lines.
    pub(crate) fn read(
        text: &'a str,
        sources: &'a HashMap<String, String>,
    ) -> (Self, Vec<SourceRefusal>) {
        let mut tokens = Tokens {
            text,
            files: vec![String::new()],
            tokens: Vec::new(),
            sources,
        };
        let mut refusals = Vec::new();
        if text.len() > TEXT {
            let construct = format!("{} bytes of source", text.len());
            refusals.push(SourceRefusal::nowhere(Rule::Bounds, construct));
            return (tokens, refusals);
        }
        tokens.scan(&mut refusals);
        tokens.bounds(&mut refusals);
        (tokens, refusals)
    }

    fn scan(&mut self, refusals: &mut Vec<SourceRefusal>) {
        let bytes = self.text.as_bytes();
        let (mut at, mut file, mut line, mut fresh) = (0, 0, 1, true);
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            match byte {
                b'\n' => {
                    (line, fresh) = (line + 1, true);
                    at += 1;
                    continue;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    at += 1;
                    continue;
                }
                b'#' if fresh => {
                    let end = self.text[at..]
                        .find('\n')
                        .map_or(bytes.len(), |length| at + length);
                    let words = &self.text[at..end];
                    at = end;
                    match marker(words) {
                        Some((number, name)) => {
                            // The end of the marker's own line makes it this number.
                            line = number.saturating_sub(1);
                            file = self.file(name);
                        }
                        None => {
                            self.push(Kind::Mark, start..end, file, line);
                            let construct = format!("`{}`", words.trim_end());
                            self.refuse(refusals, Rule::Pragmas, construct);
                        }
                    }
                    continue;
                }
                b'"' | b'\'' => at = quoted(bytes, at),
                b'0'..=b'9' => at = number(bytes, at),
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => at = number(bytes, at),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    while bytes
                        .get(at)
                        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                    {
                        at += 1;
                    }
                    if matches!(bytes.get(at), Some(b'"' | b'\''))
                        && ["L", "u", "U", "u8"].contains(&&self.text[start..at])
                    {
                        at = quoted(bytes, at);
                    }
                }
                _ => at += mark(&self.text[at..]),
            }
            fresh = false;
            let (kind, legal) = match byte {
                _ if matches!(bytes[at - 1], b'"' | b'\'') && at - start > 1 => (Kind::Text, true),
                b'"' | b'\'' => (Kind::Text, false),
                b'0'..=b'9' => (Kind::Number, true),
                b'.' if at - start > 1 && bytes[start + 1] != b'.' => (Kind::Number, true),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Name, true),
                _ => (Kind::Mark, b"()[]{}<>=+-*/%&|^!~?:;,.".contains(&byte)),
            };
            self.push(kind, start..at, file, line);
            if !legal {
                let construct =
                    format!("`{}`, which is no token of ISO C11", &self.text[start..at]);
                self.refuse(refusals, Rule::Syntax, construct);
            }
            let digraphs = ["<:", ":>", "<%", "%>", "%:"];
            if digraphs.contains(&&self.text[start..at]) {
                let construct = format!("the digraph `{}`", &self.text[start..at]);
                self.refuse(refusals, Rule::Syntax, construct);
            }
            if kind == Kind::Name
                && let Some(rule) = rule_of_name(&self.text[start..at])
            {
                let construct = format!("`{}`", &self.text[start..at]);
                self.refuse(refusals, rule, construct);
            }
        }
    }

    fn bounds(&self, refusals: &mut Vec<SourceRefusal>) {
        let mut open = 0;
        let (mut run, mut elses) = (0, 0);
        for (index, token) in self.tokens.iter().enumerate() {
            let word = &self.text[token.span.clone()];
            match word {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.max(1) - 1,
                _ => {}
            }
            run = match word {
                "-" | "+" | "!" | "~" | "*" | "&" | "--" | "++" | "sizeof" | "const" | "if"
                | "else" | "while" | "for" | "switch" | "do" | "?" | ":" => run + 1,
                _ if token.kind == Kind::Mark => run,
                _ => 0,
            };
            elses = match word {
                "else" => elses + 1,
                "}" if self
                    .tokens
                    .get(index + 1)
                    .is_none_or(|next| &self.text[next.span.clone()] != "else") =>
                {
                    0
                }
                _ => elses,
            };
            if open > NESTING || run > RUN || elses > 2 * RUN {
                let construct = "nesting that deep".to_owned();
                refusals.push(self.refusal(index, Rule::Bounds, construct));
                return;
            }
        }
    }

    fn push(&mut self, kind: Kind, span: Range<usize>, file: usize, line: usize) {
        self.tokens.push(Token {
            kind,
            span,
            file,
            line,
        });
    }

    fn file(&mut self, name: String) -> usize {
        match self.files.iter().position(|known| *known == name) {
            Some(found) => found,
            None => {
                self.files.push(name);
                self.files.len() - 1
            }
        }
    }

    fn refuse(&self, refusals: &mut Vec<SourceRefusal>, rule: Rule, construct: String) {
        refusals.push(self.refusal(self.tokens.len() - 1, rule, construct));
    }

    /// A refusal of what begins with the token of that index.
    fn refusal(&self, index: usize, rule: Rule, construct: String) -> SourceRefusal {
        SourceRefusal {
            rule,
            construct,
            place: self.tokens.get(index).map(|_| self.place_of(index, None)),
            note: None,
        }
    }

    /// The names in the text.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        let names = self.tokens.iter().filter(|token| token.kind == Kind::Name);
        names.map(|token| &self.text[token.span.clone()])
    }

    /// The token at or behind this byte, as text.
    pub(crate) fn word(&self, offset: usize) -> Option<&'a str> {
        let token = self.tokens.get(self.index(offset))?;
        Some(&self.text[token.span.clone()])
    }

    /// The token in front of the one at or behind this byte, as text.
    pub(crate) fn word_before(&self, offset: usize) -> Option<&'a str> {
        let token = self.tokens.get(self.index(offset).checked_sub(1)?)?;
        Some(&self.text[token.span.clone()])
    }

    fn index(&self, offset: usize) -> usize {
        self.tokens
            .partition_point(|token| token.span.end <= offset)
    }

    /// The file and line of what stands at this byte.
    pub(crate) fn line(&self, offset: usize) -> Option<(&str, usize)> {
        let token = self.tokens.get(self.index(offset))?;
        Some((&self.files[token.file], token.line))
    }

    /// The place of these bytes of the text.
    pub(crate) fn place(&self, span: Range<usize>) -> Option<SourcePlace> {
        let index = self
            .index(span.start)
            .min(self.tokens.len().checked_sub(1)?);
        Some(self.place_of(index, Some(span.end)))
    }

    /// Where the token stands in its file. The preprocessor keeps lines and not columns, so the tokens that it put on
    /// this line are brought together with those that the line has; what is not among them came out of a macro.
    fn place_of(&self, index: usize, end: Option<usize>) -> SourcePlace {
        let token = &self.tokens[index];
        let same = |other: &Token| (other.file, other.line) == (token.file, token.line);
        let first = self.tokens[..index]
            .iter()
            .rposition(|other| !same(other))
            .map_or(0, |at| at + 1);
        let source = self.sources.get(&self.files[token.file]);
        let line = source.and_then(|text| text.split('\n').nth(token.line.checked_sub(1)?));
        let expanded: Vec<&str> = self.tokens[first..]
            .iter()
            .take_while(|other| same(other))
            .map(|other| &self.text[other.span.clone()])
            .collect();
        let mut place = SourcePlace {
            file: self.files[token.file].clone(),
            line: token.line,
            column: 1,
            length: 1,
            shown: line.unwrap_or_default().to_owned(),
            expanded: None,
        };
        let Some(line) = line else {
            place.shown = expanded.join(" ");
            return place;
        };
        let written = words(line);
        let nth = index - first;
        // The text has the line's tokens, but for what macros stand for: those are between what both ends have.
        let front = written
            .iter()
            .zip(&expanded)
            .take_while(|((_, word), there)| word == *there)
            .count();
        let back = written.iter().rev().zip(expanded.iter().rev());
        let back = back.take_while(|((_, word), there)| word == *there).count();
        let directive = line.trim_start();
        let found = match nth {
            _ if directive.starts_with('#') => {
                place.length = directive.trim_end().len();
                Some((line.len() - directive.len(), ""))
            }
            _ if nth < front => written.get(nth).copied(),
            _ if nth + back >= expanded.len() => (nth + written.len())
                .checked_sub(expanded.len())
                .and_then(|at| written.get(at).copied()),
            _ => {
                place.expanded = Some(expanded.join(" "));
                written.get(front).or(written.last()).copied()
            }
        };
        let Some((column, word)) = found else {
            return place;
        };
        (place.column, place.length) = (column + 1, place.length.max(word.len()));
        // As far as the construct goes on this line, if the line has it as it is in the text.
        if place.expanded.is_none()
            && let Some(whole) = end.and_then(|end| self.text.get(token.span.start..end))
            && line[column..].starts_with(whole)
        {
            place.length = whole.len();
        }
        place
    }

    /// The first token of the statement that this byte is in, and the one behind it, with their place.
    pub(crate) fn statement(&self, offset: usize) -> Option<(Range<usize>, &'a str, &'a str)> {
        let index = self.index(offset).min(self.tokens.len());
        let word = |token: &Token| &self.text[token.span.clone()];
        let ends = |token: &Token| [";", "{", "}"].contains(&word(token));
        let first = self.tokens[..index]
            .iter()
            .rposition(ends)
            .map_or(0, |at| at + 1);
        let token = self
            .tokens
            .get(first)
            .filter(|token| token.kind == Kind::Name)?;
        Some((
            token.span.clone(),
            word(token),
            word(self.tokens.get(first + 1)?),
        ))
    }
}

/// The tokens of a line as it was written, with their columns.
fn words(line: &str) -> Vec<(usize, &str)> {
    let bytes = line.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        match byte {
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'"' | b'\'' => at = quoted(bytes, at),
            b'0'..=b'9' => at = number(bytes, at),
            _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                while bytes
                    .get(at)
                    .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                {
                    at += 1;
                }
            }
            _ => at += mark(&line[at..]),
        }
        found.push((start, &line[start..at]));
    }
    found
}

/// The line and file of a line marker.
fn marker(words: &str) -> Option<(usize, String)> {
    let rest = words.strip_prefix("# ")?;
    let (number, rest) = rest.split_once(' ')?;
    let rest = rest.trim().strip_prefix('"')?;
    let (mut name, mut escaped) = (String::new(), false);
    for letter in rest.chars() {
        match letter {
            _ if escaped => {
                name.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((number.parse().ok()?, name)),
            _ => name.push(letter),
        }
    }
    None
}

/// Behind a literal that begins here; at the end of the line if it does not end.
fn quoted(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return at,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Behind a preprocessing number that begins here.
fn number(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        let sign = matches!(byte, b'+' | b'-')
            && matches!(
                bytes[at - usize::from(at > start)],
                b'e' | b'E' | b'p' | b'P'
            );
        if !(sign || byte == b'.' || byte == b'_' || byte.is_ascii_alphanumeric()) {
            break;
        }
        at += 1;
    }
    at
}

/// The length of the mark that the text begins with.
fn mark(text: &str) -> usize {
    let marks = [
        "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
        "*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "<:", ":>", "<%", "%>", "%:", "##",
    ];
    let found = marks.iter().find(|mark| text.starts_with(**mark));
    found.map_or_else(
        || text.chars().next().map_or(1, char::len_utf8),
        |mark| mark.len(),
    )
}
