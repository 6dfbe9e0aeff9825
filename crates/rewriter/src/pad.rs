//! Puts small loops into as few cache lines as they need.
//!
//! Processors fetch 64-byte blocks, and walled instructions are longer than the
//! compiler believed: a small loop that lies across one line more than it needs
//! takes up to twice the cycles (`docs/benchmarks.md`). So an innermost loop of
//! at most two lines is moved to the next line if that saves one. Only loops
//! that the compiler itself has aligned: it does that where it means the code
//! to be fast and expects the loop to run.

use crate::length::{BRANCH_GROWTH, length};
use std::collections::HashMap;
use std::fmt::Write;

/// Bytes that a processor fetches at once: a cache line.
const LINE: u32 = 64;
/// The largest loop that is moved, in lines.
const MAX_LINES: u32 = 2;
/// What an alignment within a loop adds, in bytes: `.p2align 4,,10` on average, and a little.
const ALIGNMENT: u32 = 6;
/// How far a branch reaches that is taken to be short: 127 bytes less what alignments may add.
const SHORT: u32 = 100;

/// The text with alignments added in front of small loops.
pub(crate) fn loops(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    let mut from = 0;
    for (place, size) in small_loops(&statements(text)) {
        out.push_str(&text[from..place]);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\t.p2align\t6,,{}", (size - 1) % LINE);
        from = place;
    }
    out.push_str(&text[from..]);
    out
}

/// What matters here of a line.
enum Statement<'a> {
    /// A label, and where in the text the labels that stand at one place begin.
    Label(&'a str, usize),
    /// An instruction of this length, and the label that it branches to.
    Instruction(u32, Option<&'a str>),
    Call,
    Alignment,
    /// Whatever may lead to another section.
    Break,
}

fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let place = at;
        at += line.len();
        let statement = line.trim();
        let next = if let Some(name) = statement.strip_suffix(':') {
            match statements.last() {
                Some(Statement::Label(_, first)) => Statement::Label(name, *first),
                _ => Statement::Label(name, place),
            }
        } else if statement.is_empty() || statement.starts_with(['#', '/']) {
            continue;
        } else if statement.starts_with('.') {
            match statement.split_whitespace().next().unwrap_or_default() {
                ".p2align" | ".balign" | ".align" => Statement::Alignment,
                name if name.starts_with(".cfi") || name == ".loc" => continue,
                _ => Statement::Break,
            }
        } else if statement.starts_with("call") {
            Statement::Call
        } else {
            let target = statement.strip_prefix('j').and_then(|s| s.split_once('\t'));
            Statement::Instruction(length(statement), target.map(|(_, name)| name))
        };
        statements.push(next);
    }
    statements
}

/// A label that may turn out to be the head of a loop.
struct Head {
    place: usize,
    /// Bytes of code in front of it.
    offset: u32,
    /// Calls and breaks in front of it.
    obstacles: u32,
    /// Whether the compiler has aligned it.
    aligned: bool,
}

/// Where the loops to be moved begin, and their sizes in bytes, in the order of the text.
fn small_loops(statements: &[Statement<'_>]) -> Vec<(usize, u32)> {
    let offsets = label_offsets(statements);
    let mut found: Vec<(usize, u32)> = Vec::new();
    let mut heads: HashMap<&str, Head> = HashMap::new();
    let (mut offset, mut obstacles, mut aligned) = (0, 0, false);
    for statement in statements {
        match statement {
            Statement::Label(name, place) => {
                heads.insert(
                    name,
                    Head {
                        place: *place,
                        offset,
                        obstacles,
                        aligned,
                    },
                );
            }
            Statement::Alignment => {
                offset += if aligned { 0 } else { ALIGNMENT };
                aligned = true;
            }
            Statement::Call | Statement::Break => {
                (obstacles, aligned) = (obstacles + 1, false);
            }
            Statement::Instruction(length, target) => {
                aligned = false;
                offset += length;
                let Some(target) = target else { continue };
                let reach = offsets.get(target).map(|o| o.abs_diff(offset));
                if reach.is_none_or(|bytes| bytes > SHORT) {
                    offset += BRANCH_GROWTH;
                }
                let Some(head) = heads.get(target) else {
                    continue;
                };
                let size = offset - head.offset;
                let innermost = found.last().is_none_or(|&(last, _)| last <= head.place);
                if size <= LINE * MAX_LINES
                    && obstacles == head.obstacles
                    && head.aligned
                    && innermost
                {
                    found.retain(|&(place, _)| place != head.place);
                    found.push((head.place, size));
                }
            }
        }
    }
    found
}

/// Where each label lies, in bytes, if all branches were short.
fn label_offsets<'a>(statements: &[Statement<'a>]) -> HashMap<&'a str, u32> {
    let mut offsets = HashMap::new();
    let mut offset = 0;
    for statement in statements {
        match statement {
            Statement::Label(name, _) => _ = offsets.insert(*name, offset),
            Statement::Instruction(length, _) => offset += length,
            Statement::Alignment => offset += ALIGNMENT,
            Statement::Call => offset += 5,
            // What lies in another section, or behind one, is far.
            Statement::Break => offset += SHORT,
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(text: &str) -> Vec<String> {
        let text = loops(text);
        let lines = text.lines().filter(|l| l.contains(".p2align\t6"));
        lines.map(|l| l.trim().to_owned()).collect()
    }

    const ALIGNED: &str = "\t.p2align 4,,10\n\t.p2align 3\n";

    #[test]
    fn a_small_loop_is_moved_if_that_saves_a_line() {
        let body = "\taddl\t$1, %eax\n".repeat(3);
        let text = format!("{ALIGNED}.L1:\n{body}\tjne\t.L1\n");
        assert_eq!(padded(&text), [".p2align\t6,,10"]);
        let body = "\taddl\t$1, %eax\n".repeat(30);
        let text = format!("{ALIGNED}.L1:\n{body}\tjne\t.L1\n");
        assert_eq!(padded(&text), [".p2align\t6,,27"]);
    }

    #[test]
    fn other_loops_are_left_alone() {
        let one = "\taddl\t$1, %eax\n";
        for (what, text) in [
            ("not aligned", format!(".L1:\n{one}\tjne\t.L1\n")),
            (
                "a call",
                format!("{ALIGNED}.L1:\n{one}\tcall\tf\n\tjne\t.L1\n"),
            ),
            (
                "too large",
                format!("{ALIGNED}.L1:\n{}\tjne\t.L1\n", one.repeat(50)),
            ),
            (
                "another section",
                format!("{ALIGNED}.L1:\n{one}\t.section\t.x\n\tjne\t.L1\n"),
            ),
            ("forward", format!("\tjne\t.L1\n{one}{ALIGNED}.L1:\n")),
        ] {
            assert_eq!(padded(&text), [""; 0], "{what}");
        }
    }

    #[test]
    fn of_nested_loops_the_inner_one_is_moved() {
        let text = format!("{ALIGNED}.L1:\n\tnop\n{ALIGNED}.L2:\n\tnop\n\tjne\t.L2\n\tjne\t.L1\n");
        assert_eq!(padded(&text), [".p2align\t6,,2"]);
        assert!(loops(&text).contains("\t.p2align 3\n\t.p2align\t6,,2\n.L2:"));
    }
}
