//! Puts small loops, and the beginnings of blocks, into as few cache lines as they need.
//!
//! Processors fetch 64-byte lines, and walled instructions are longer than the compiler believed. To
//! step from one line to the next costs about as much as a taken branch (`docs/benchmarks.md`). A
//! small loop that lies across one line more than it needs takes up to twice the time. So does code of
//! many short blocks whose first instructions are in one line and whose first branch is in the next.
//! So an innermost loop of at most two lines is moved to the next line if that saves one. So is
//! any other block if its first bytes lie across two. Only what the compiler itself has aligned. It does
//! that where it means the code to be fast and expects control to come by a jump.

use crate::length::{BRANCH_GROWTH, length};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Bytes that a processor fetches at once: a cache line.
const LINE: u32 = 64;
/// The largest loop that is moved, in lines.
const MAX_LINES: u32 = 2;
/// What of a block is kept in one line, in bytes: up to its first branch, as a rule. Of 24, 32, 40, 48
/// and 64 bytes the least did best, and adds least.
const MAX_BLOCK: u32 = 24;
/// What an alignment within a loop adds, in bytes: `.p2align 4,,10` on average, and a little.
const ALIGNMENT: u32 = 6;
/// The length of a direct call, in bytes.
const CALL: u32 = 5;
/// How far a branch reaches that is taken to be short: 127 bytes less what alignments may add.
const SHORT: u32 = 100;

/// The text with alignments added.
pub(crate) fn pad(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    let mut from = 0;
    let statements = statements(text);
    let mut moved: BTreeMap<usize, u32> = blocks(&statements).into_iter().collect();
    moved.extend(small_loops(&statements));
    for (place, size) in moved {
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
    /// The same, and control does not come to what follows.
    Stop(u32, Option<&'a str>),
    Call,
    Alignment,
    /// Another section, or a directive.
    Break,
}

fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut at = 0;
    let mut sections = Sections::default();
    for line in text.split_inclusive('\n') {
        let place = at;
        at += line.len();
        let statement = line.trim();
        if let Some(other) = sections.enter(statement) {
            if other {
                statements.push(Statement::Break);
            }
            continue;
        }
        if !sections.code() {
            continue;
        }
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
                name if name.starts_with(".cfi") || matches!(name, ".loc" | ".file") => continue,
                _ => Statement::Break,
            }
        } else if statement.starts_with("call") {
            Statement::Call
        } else {
            let target = statement.strip_prefix('j').and_then(|s| s.split_once('\t'));
            let target = target.map(|(_, name)| name);
            match statement.split('\t').next() {
                Some("jmp" | "ret" | "ud1" | "ud2") => Statement::Stop(length(statement), target),
                _ => Statement::Instruction(length(statement), target),
            }
        };
        statements.push(next);
    }
    statements
}

/// Follows the sections of a text: what stands in one without code is no concern of the code.
struct Sections<'a> {
    current: &'a str,
    previous: &'a str,
    stack: Vec<(&'a str, &'a str)>,
    /// The section with code that was in force last.
    last_code: &'a str,
}

impl Default for Sections<'_> {
    fn default() -> Self {
        Self {
            current: ".text",
            previous: ".text",
            stack: Vec::new(),
            last_code: ".text",
        }
    }
}

impl<'a> Sections<'a> {
    /// Whether the directive, if it is one of sections, leads to code of another section.
    fn enter(&mut self, statement: &'a str) -> Option<bool> {
        let (name, arguments) = statement.split_once(['\t', ' ']).unwrap_or((statement, ""));
        let before = (self.current, self.previous);
        match name {
            ".text" | ".data" | ".bss" => (self.current, self.previous) = (statement, before.0),
            ".section" => (self.current, self.previous) = (arguments, before.0),
            ".pushsection" => {
                self.stack.push(before);
                (self.current, self.previous) = (arguments, before.0);
            }
            ".popsection" => (self.current, self.previous) = self.stack.pop().unwrap_or(before),
            ".previous" => (self.current, self.previous) = (before.1, before.0),
            _ => return None,
        }
        let other = self.code() && self.current != self.last_code;
        if other {
            self.last_code = self.current;
        }
        Some(other)
    }

    fn code(&self) -> bool {
        let (name, flags) = self.current.split_once(',').unwrap_or((self.current, ""));
        match flags.split('"').nth(1) {
            Some(flags) => flags.contains('x'),
            None => [".text", ".init", ".fini"]
                .iter()
                .any(|code| name.trim().starts_with(code)),
        }
    }
}

/// A label that may turn out to be the head of a loop.
struct Head {
    place: usize,
    /// Bytes of code in front of it.
    offset: u32,
    /// Breaks in front of it.
    breaks: u32,
    /// Whether the compiler has aligned it.
    aligned: bool,
}

/// Where the loops to be moved begin, and their sizes in bytes, in the order of the text.
fn small_loops(statements: &[Statement<'_>]) -> Vec<(usize, u32)> {
    let offsets = label_offsets(statements);
    let mut found: Vec<(usize, u32)> = Vec::new();
    let mut heads: HashMap<&str, Head> = HashMap::new();
    let (mut offset, mut breaks, mut aligned) = (0, 0, false);
    for statement in statements {
        match statement {
            Statement::Label(name, place) => {
                heads.insert(
                    name,
                    Head {
                        place: *place,
                        offset,
                        breaks,
                        aligned,
                    },
                );
            }
            Statement::Alignment => {
                offset += if aligned { 0 } else { ALIGNMENT };
                aligned = true;
            }
            Statement::Call => (offset, aligned) = (offset + CALL, false),
            Statement::Break => (breaks, aligned) = (breaks + 1, false),
            Statement::Instruction(length, target) | Statement::Stop(length, target) => {
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
                if size <= LINE * MAX_LINES && breaks == head.breaks && head.aligned && innermost {
                    found.retain(|&(place, _)| place != head.place);
                    found.push((head.place, size));
                }
            }
        }
    }
    found
}

/// Where aligned blocks begin, and how much of each is to be kept together, in bytes.
fn blocks(statements: &[Statement<'_>]) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    let mut aligned = false;
    for (number, statement) in statements.iter().enumerate() {
        match statement {
            Statement::Label(_, place) if aligned => {
                found.push((*place, block_size(&statements[number + 1..])));
            }
            Statement::Label(..) => {}
            _ => aligned = matches!(statement, Statement::Alignment),
        }
    }
    found.retain(|&(_, size)| size > 1);
    found
}

/// Bytes to the end of a block, or [`MAX_BLOCK`].
fn block_size(statements: &[Statement<'_>]) -> u32 {
    let mut size = 0;
    for statement in statements {
        match statement {
            Statement::Instruction(length, _) => size += length,
            Statement::Label(..) => {}
            Statement::Stop(length, _) => {
                size += length;
                break;
            }
            Statement::Call => {
                size += CALL;
                break;
            }
            Statement::Alignment | Statement::Break => break,
        }
    }
    size.min(MAX_BLOCK)
}

/// Where each label lies, in bytes, if all branches were short.
fn label_offsets<'a>(statements: &[Statement<'a>]) -> HashMap<&'a str, u32> {
    let mut offsets = HashMap::new();
    let mut offset = 0;
    for statement in statements {
        match statement {
            Statement::Label(name, _) => _ = offsets.insert(*name, offset),
            Statement::Instruction(length, _) | Statement::Stop(length, _) => offset += length,
            Statement::Alignment => offset += ALIGNMENT,
            Statement::Call => offset += CALL,
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
        let text = pad(text);
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
            ("forward", format!("\tjne\t.L1\n{one}{ALIGNED}.L1:\n")),
        ] {
            assert_eq!(padded(&text), [""; 0], "{what}");
        }
        for (what, text) in [
            (
                "too large",
                format!("{ALIGNED}.L1:\n{}\tjne\t.L1\n", one.repeat(50)),
            ),
            (
                "another section",
                format!(
                    "{ALIGNED}.L1:\n{}\t.section\t.x\n\tjne\t.L1\n",
                    one.repeat(10)
                ),
            ),
        ] {
            assert_eq!(
                padded(&text),
                [".p2align\t6,,23"],
                "{what}: as a block only"
            );
        }
    }

    #[test]
    fn a_loop_with_a_call_is_moved_too() {
        let text = format!("{ALIGNED}.L1:\n\tmovl\t%eax, %edi\n\tcall\tf\n\tjne\t.L1\n");
        assert_eq!(padded(&text), [".p2align\t6,,8"]);
    }

    #[test]
    fn the_beginning_of_a_block_is_kept_together() {
        let one = "\taddl\t$1, %eax\n";
        for (what, body, wanted) in [
            ("up to its jump", format!("{one}\tjmp\t*%rax\n{one}"), 4),
            ("up to its return", format!("{one}{one}\tret\n{one}"), 6),
            ("up to its call", format!("{one}\tcall\tf\n{one}"), 7),
            ("and no more than so much", one.repeat(20), 23),
        ] {
            let text = format!("{one}{ALIGNED}.L1:\n{body}");
            assert_eq!(padded(&text), [format!(".p2align\t6,,{wanted}")], "{what}");
        }
        assert_eq!(padded(&format!("{ALIGNED}.L1:\n\tret\n")), [""; 0]);
    }

    #[test]
    fn of_nested_loops_the_inner_one_is_moved() {
        let text = format!("{ALIGNED}.L1:\n\tnop\n{ALIGNED}.L2:\n\tnop\n\tjne\t.L2\n\tjne\t.L1\n");
        assert_eq!(padded(&text), [".p2align\t6,,2"]);
        assert!(pad(&text).contains("\t.p2align 3\n\t.p2align\t6,,2\n.L2:"));
    }
}
