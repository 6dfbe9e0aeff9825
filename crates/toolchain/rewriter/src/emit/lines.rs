//! Line numbers, placed so that gdb finds where a function's arguments are in their places.
//!
//! In unoptimised code an argument is on the stack once the prologue has stored it. gdb knows the prologue of gcc by
//! `push %rbp; mov %rsp,%rbp`, which rewritten code has not. Then it takes a breakpoint at a function's name to mean
//! its first instruction. If that one lies *within* the code of a line, though, gdb goes on to the next line number.
//! In unoptimised code that is where the prologue ends. So the first line of such a function begins at the
//! instruction in front of it, which nobody runs: its label, or a `nop`. It is no statement: a breakpoint at that
//! line is one at the next statement.

use super::{Emitter, put};
use crate::operand::{Operand, number};
use crate::table::Class;
use crate::unit::{Instruction, Item};

/// What has been done about line numbers.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The directives that were written early, by their places in the items.
    early: Vec<usize>,
    /// The assembler takes what comes for no statement, until it is told.
    no_statement: bool,
}

impl Emitter<'_> {
    /// If a function whose first instructions set up a frame pointer begins at this label: the
    /// directives that begin its first line, if that is plain.
    pub(super) fn opening(&self, index: usize, function: bool) -> Option<Vec<usize>> {
        let section = self.unit.items[index].1;
        if !function {
            return None;
        }
        let (mut numbers, mut early) = (0, Vec::new());
        let mut plain = true;
        for (place, (item, of, _)) in self.unit.items.iter().enumerate().skip(index + 1) {
            match item {
                _ if *of != section => {}
                Item::Directive(".file", _) => early.push(place),
                Item::Directive(".loc", arguments) => {
                    plain &= !arguments.contains("view") && !arguments.contains("is_stmt");
                    numbers += 1;
                    early.push(place);
                }
                Item::Instruction(position) => {
                    let first = &self.unit.instructions[*position];
                    let second = &self.unit.instructions[self.unit.next(*position)?];
                    let plain = plain && numbers == 1;
                    let early = if plain { early } else { Vec::new() };
                    return makes_frame(first, second).then_some(early);
                }
                Item::Align(..) => return None,
                _ => {}
            }
        }
        None
    }

    /// Begins the function's first line here.
    pub(super) fn begin_line_early(&mut self, opening: Option<Vec<usize>>) {
        let Some(early) = opening.filter(|early| !early.is_empty()) else {
            return;
        };
        for place in &early {
            match &self.unit.items[*place].0 {
                Item::Directive(".loc", arguments) => put!(self, ".loc\t{arguments} is_stmt 0"),
                Item::Directive(name, arguments) => self.directive(name, arguments),
                _ => {}
            }
        }
        self.lines = Lines {
            early,
            no_statement: true,
        };
    }

    /// Whether the item has been written already.
    pub(super) fn is_written(&self, index: usize) -> bool {
        self.lines.early.contains(&index)
    }

    pub(super) fn put_line_number(&mut self, arguments: &str) {
        let told = arguments.contains("is_stmt");
        if std::mem::take(&mut self.lines.no_statement) && !told {
            put!(self, ".loc\t{arguments} is_stmt 1");
        } else {
            put!(self, ".loc\t{arguments}");
        }
    }
}

/// `pushq %rbp; movq %rsp, %rbp`
fn makes_frame(first: &Instruction<'_>, second: &Instruction<'_>) -> bool {
    let is = |operand: Option<&Operand<'_>>, number| matches!(operand, Some(Operand::Gpr(register)) if register.number == number);
    first.row.class == Class::Push
        && is(first.operands.first(), number::RBP)
        && second.base_mnemonic() == "mov"
        && is(second.operands.first(), number::RSP)
        && is(second.operands.get(1), number::RBP)
}
