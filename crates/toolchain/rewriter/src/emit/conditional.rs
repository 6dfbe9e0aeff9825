//! Conditional moves that were better a branch.
//!
//! gcc makes conditional moves of a short block when all that it moves is at hand. Without `%r11`,
//! `%r14` and `%r15` more of it is in spill slots. Then a load, and what is done at an address,
//! wait for the comparison, where a branch would have been predicted. A merge of lists took twice
//! the time. So a run of moves on one condition that loads from the stack becomes a block again.

use super::{Emitter, put};
use crate::operand::{Operand, number};
use crate::unit::{Instruction, Position};
use std::fmt::Write;

/// A block that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The label behind it.
    label: usize,
    /// The last of its moves.
    last: Position,
}

/// Conditions and their opposites, and the other way round.
const CONDITIONS: [(&str, &str); 15] = [
    ("e", "ne"),
    ("z", "nz"),
    ("s", "ns"),
    ("o", "no"),
    ("p", "np"),
    ("pe", "po"),
    ("b", "nb"),
    ("c", "nc"),
    ("nae", "ae"),
    ("a", "na"),
    ("nbe", "be"),
    ("l", "ge"),
    ("nl", "nge"),
    ("g", "le"),
    ("ng", "nle"),
];

impl Emitter<'_> {
    /// Begins a block if a run of conditional moves begins here that is better one.
    pub(super) fn begin_block(&mut self, position: Position) {
        if self.block.is_some() {
            return;
        }
        if let Some((opposite, last)) = self.run(position) {
            self.probe();
            self.labels += 1;
            let label = self.labels;
            put!(self, "j{opposite}\t.Lmullion{label}");
            self.block = Some(Block { label, last });
        }
    }

    /// Ends the block behind its last move.
    pub(super) fn end_block(&mut self, position: Position) {
        if let Some(block) = self.block.take_if(|block| block.last == position) {
            self.probe();
            // Writing to a string cannot fail.
            let _ = writeln!(self.out, ".Lmullion{}:", block.label);
            self.facts.join();
        }
    }

    /// The opposite condition and the last move, if a run that loads from the stack begins here.
    fn run(&self, position: Position) -> Option<(&'static str, Position)> {
        let unit = self.unit;
        let opposite = opposite(&unit.instructions[position])?;
        let (mut last, mut loads) = (position, loads_from_stack(&unit.instructions[position]));
        while let Some(next) = unit.next(last)
            && !unit.is_target(next)
            && self::opposite(&unit.instructions[next]) == Some(opposite)
        {
            loads |= loads_from_stack(&unit.instructions[next]);
            last = next;
        }
        (loads && last > position).then_some((opposite, last))
    }
}

/// The opposite of a conditional move's condition. A 32-bit move clears the upper half even
/// if it does not move, which matters unless it was narrowed.
fn opposite(instruction: &Instruction<'_>) -> Option<&'static str> {
    let name = instruction.mnemonic.strip_prefix("cmov")?;
    let Some(Operand::Gpr(to)) = instruction.operands.last() else {
        return None;
    };
    if to.width != 8 && !instruction.narrowed {
        return None;
    }
    let find = |name: &str| {
        CONDITIONS.iter().find_map(|&(one, other)| match name {
            _ if name == one => Some(other),
            _ if name == other => Some(one),
            _ => None,
        })
    };
    find(name).or_else(|| find(name.strip_suffix('q')?))
}

fn loads_from_stack(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.operands.first(), Some(Operand::Mem(mem))
        if mem.base.is_some_and(|b| b.number == number::RSP) && mem.index.is_none())
}
