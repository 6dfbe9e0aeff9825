//! Splits assembler text into statements, as gas does for x86: comments are
//! dropped, `;` separates, strings may hold any byte, labels stand alone.

use std::borrow::Cow;

/// One statement, with the number of the line on which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statement<'a> {
    /// Line in the assembler text, from 1.
    pub(crate) line: u32,
    /// What it is.
    pub(crate) kind: StatementKind<'a>,
}

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind<'a> {
    /// A line that starts with `#`: a line marker, or a comment such as `#APP`.
    Marker(&'a str),
    /// `name:`
    Label(&'a str),
    /// `name = expression`
    Assign(&'a str, &'a str),
    /// `.name arguments`
    Directive(&'a str, &'a str),
    /// Anything else: a mnemonic with its operands.
    Instruction(&'a str),
}

/// An unfinished string or comment, on this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished(pub(crate) u32);

/// `source` with every block comment blanked out, lines kept.
///
/// # Errors
/// When a comment or a string before one does not end.
pub(crate) fn without_block_comments(source: &str) -> Result<Cow<'_, str>, Unfinished> {
    if !source.contains("/*") {
        return Ok(Cow::Borrowed(source));
    }
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len());
    let (mut at, mut kept, mut line) = (0, 0, 1);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at, &mut line).ok_or(Unfinished(line))?,
            b'\'' => at += 2,
            b'#' => at += memchr_newline(&source[at..]),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let length = source[at + 2..].find("*/").ok_or(Unfinished(line))? + 4;
                out.push_str(&source[kept..at]);
                out.extend(
                    source[at..at + length]
                        .chars()
                        .map(|c| if c == '\n' { c } else { ' ' }),
                );
                line += count_lines(&source[at..at + length]);
                at += length;
                kept = at;
            }
            byte => {
                line += u32::from(byte == b'\n');
                at += 1;
            }
        }
    }
    out.push_str(&source[kept..]);
    Ok(Cow::Owned(out))
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&b| b == b'\n').count()).unwrap_or(u32::MAX)
}

/// Splits `source`, which has no block comments, and hands every statement to
/// `sink` in order.
///
/// # Errors
/// When a string does not end.
pub(crate) fn split<'a>(
    source: &'a str,
    mut sink: impl FnMut(Statement<'a>),
) -> Result<(), Unfinished> {
    pieces(source, |line, text| match text.starts_with('#') {
        true => sink(Statement {
            line,
            kind: StatementKind::Marker(text),
        }),
        false => statement(text, line, &mut sink),
    })
}

/// The same without a look into the statements: each has its line and its text, which begins with `#` for a marker alone.
/// Empty ones are among them.
///
/// # Errors
/// When a string does not end.
pub(crate) fn pieces<'a>(
    source: &'a str,
    mut sink: impl FnMut(u32, &'a str),
) -> Result<(), Unfinished> {
    let mut line = 1;
    let mut rest = source;
    while !rest.is_empty() {
        let end = memchr_newline(rest);
        let (text, next) = (&rest[..end], rest.get(end + 1..).unwrap_or(""));
        let trimmed = text.trim_start_matches([' ', '\t', '\r']);
        if trimmed.starts_with('#') {
            sink(line, trimmed.trim_end());
        } else if trimmed.starts_with('/') {
            // gas: a line that starts with a slash is a comment.
        } else if trimmed
            .bytes()
            .any(|b| matches!(b, b'#' | b';' | b'"' | b'\''))
        {
            let used = split_hard(rest, line, &mut sink)?;
            line += count_lines(&rest[..used]);
            rest = &rest[used..];
            continue;
        } else {
            sink(line, trimmed);
        }
        line += 1;
        rest = next;
    }
    Ok(())
}

fn memchr_newline(text: &str) -> usize {
    text.as_bytes()
        .iter()
        .position(|&b| b == b'\n')
        .unwrap_or(text.len())
}

/// A line with quotes, separators or comments; it may end on a later line, if
/// a string does. Answers how many bytes it took.
fn split_hard<'a>(
    text: &'a str,
    first: u32,
    sink: &mut impl FnMut(u32, &'a str),
) -> Result<usize, Unfinished> {
    let bytes = text.as_bytes();
    let mut line = first;
    let (mut start, mut start_line) = (0, first);
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                sink(start_line, blank_trimmed(&text[start..at]));
                return Ok(at + 1);
            }
            b'"' => at = string_end(bytes, at, &mut line).ok_or(Unfinished(first))?,
            b'\'' => {
                at += if bytes.get(at + 1) == Some(&b'\\') {
                    3
                } else {
                    2
                }
            }
            b';' => {
                sink(start_line, blank_trimmed(&text[start..at]));
                at += 1;
                (start, start_line) = (at, line);
            }
            b'#' => {
                sink(start_line, blank_trimmed(&text[start..at]));
                return Ok(text.len().min(at + memchr_newline(&text[at..]) + 1));
            }
            _ => at += 1,
        }
    }
    sink(start_line, blank_trimmed(&text[start.min(text.len())..]));
    Ok(text.len())
}

fn blank_trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r'])
}

/// The index behind the string that starts at `at`.
fn string_end(bytes: &[u8], mut at: usize, line: &mut u32) -> Option<usize> {
    at += 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            b'\n' => {
                *line += 1;
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// One statement without comments: its labels first, then what they label.
fn statement<'a>(text: &'a str, line: u32, sink: &mut impl FnMut(Statement<'a>)) {
    let mut text = blank_trimmed(text);
    while !text.is_empty() {
        let name = symbol_length(text);
        let after = text[name..].trim_start_matches([' ', '\t']);
        if name == 0 || !after.starts_with([':', '=']) {
            break;
        }
        if let Some(expression) = after.strip_prefix('=') {
            let expression = expression.strip_prefix('=').unwrap_or(expression).trim();
            sink(Statement {
                line,
                kind: StatementKind::Assign(&text[..name], expression),
            });
            return;
        }
        sink(Statement {
            line,
            kind: StatementKind::Label(&text[..name]),
        });
        text = after[1..].trim_start_matches([' ', '\t']);
    }
    if text.is_empty() {
        return;
    }
    let kind = if text.starts_with('.') {
        let end = text.find([' ', '\t']).unwrap_or(text.len());
        StatementKind::Directive(&text[..end], text[end..].trim_start())
    } else {
        StatementKind::Instruction(text)
    };
    sink(Statement { line, kind });
}

/// Length of the symbol (or local number) at the start of `text`.
pub(crate) fn symbol_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'"') {
        return string_end(bytes, 0, &mut 0).unwrap_or(0);
    }
    bytes
        .iter()
        .position(|&b| !is_symbol_byte(b))
        .unwrap_or(bytes.len())
}

/// Whether a symbol may contain this byte.
pub(crate) fn is_symbol_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<StatementKind<'_>> {
        let mut out = Vec::new();
        split(text, |s| out.push(s.kind)).expect("finished");
        out
    }

    #[test]
    fn block_comments_become_blanks() {
        let text = without_block_comments("a /* \"x\n */, b # /* c\n\"/*\" '/*").expect("finished");
        assert_eq!(text, "a      \n   , b # /* c\n\"/*\" '/*");
        assert_eq!(without_block_comments("\n/* nop"), Err(Unfinished(2)));
    }

    #[test]
    fn labels_separators_and_comments() {
        use StatementKind::{Directive, Instruction, Label, Marker};
        assert_eq!(
            kinds(
                "a: b: nop; ret # no\n# 1 \"x;y.c\"\n\tlock; incl (%rax); hlt\n.ascii \"a;#\\\"b\"\n"
            ),
            [
                Label("a"),
                Label("b"),
                Instruction("nop"),
                Instruction("ret"),
                Marker("# 1 \"x;y.c\""),
                Instruction("lock"),
                Instruction("incl (%rax)"),
                Instruction("hlt"),
                Directive(".ascii", "\"a;#\\\"b\""),
            ]
        );
    }

    #[test]
    fn character_literals_do_not_start_comments() {
        assert_eq!(
            kinds("cmpb $'#', %al\nx = 3\n"),
            [
                StatementKind::Instruction("cmpb $'#', %al"),
                StatementKind::Assign("x", "3")
            ]
        );
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let mut lines = Vec::new();
        split("\nnop\nret; .ascii \"a\nb\"\nhlt", |s| lines.push(s.line)).expect("finished");
        assert_eq!(lines, [2, 3, 3, 5]);
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert_eq!(split("nop\n.ascii \"a\n", |_| ()), Err(Unfinished(2)));
    }
}
