//! Which registers and flags are still wanted, by a backward pass over the
//! control flow of the file.

use crate::operand::{FLAGS, Set};
use crate::table::Class;
use crate::unit::{Position, Unit};

/// Registers that carry arguments to a function: `%rdi %rsi %rdx %rcx %r8 %r9`,
/// `%rax` (vector registers used by a variadic call) and `%r10` (static chain).
const ARGUMENTS: Set = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9 | 1 << 0 | 1 << 10;
/// Registers that a callee preserves; `%rsp` and the reserved ones are always live.
const PRESERVED: Set = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15;
/// Registers with results: `%rax`, `%rdx`.
const RESULTS: Set = 1 << 0 | 1 << 2;

/// For each instruction, the registers and flags that may be read behind it.
pub(crate) struct Liveness {
    after: Vec<Set>,
    /// What may be read at any target of an indirect jump within the file.
    indirect: Set,
}

impl Liveness {
    /// Registers and flags that may be read after this instruction.
    pub(crate) fn after(&self, position: Position) -> Set {
        self.after[position]
    }

    /// Registers and flags that may be read at or after this instruction.
    pub(crate) fn before(&self, unit: &Unit<'_>, position: Position) -> Set {
        live_before(unit, position, self.after[position])
    }

    /// Whether a register may be written freely in front of an indirect branch.
    pub(crate) fn is_free_at_indirect_branch(
        &self,
        unit: &Unit<'_>,
        position: Position,
        register: u8,
    ) -> bool {
        let wanted = match unit.instructions[position].row.class {
            Class::Call => ARGUMENTS & !(1 << 10) | PRESERVED,
            _ => self.indirect | ARGUMENTS & !(1 << 10) | PRESERVED,
        };
        wanted & (1 << register) == 0
    }
}

fn live_before(unit: &Unit<'_>, position: Position, after: Set) -> Set {
    let (reads, _, kills) = unit.instructions[position].effects();
    let (reads, kills) = match unit.instructions[position].row.class {
        Class::Call => (reads | ARGUMENTS, kills | FLAGS | (0xffff & !PRESERVED)),
        Class::Ret => (reads | RESULTS | PRESERVED, 0),
        _ => (reads, kills),
    };
    (after & !kills) | reads
}

/// Solves the equations for the whole file.
pub(crate) fn liveness(unit: &Unit<'_>) -> Liveness {
    let count = unit.instructions.len();
    let mut after = vec![0; count];
    let mut entry_before: Vec<Set> = vec![0; count];
    let mut indirect = 0;
    let everything = ARGUMENTS | PRESERVED;
    // Few rounds are needed: backward order settles all but loops at once.
    loop {
        let mut changed = false;
        let mut before_next = 0;
        for position in (0..count).rev() {
            let instruction = &unit.instructions[position];
            let falls = if unit.next(position).is_some() {
                before_next
            } else {
                everything
            };
            let live = match instruction.row.class {
                Class::Jmp => match unit.branch_target(position) {
                    Some(target) => entry_before[target],
                    None => indirect | everything,
                },
                Class::Jcc => {
                    falls
                        | unit
                            .branch_target(position)
                            .map_or(everything, |t| entry_before[t])
                }
                Class::Ret | Class::Stop => 0,
                _ => falls,
            };
            if after[position] != live {
                after[position] = live;
                changed = true;
            }
            before_next = live_before(unit, position, live);
            if !unit.labels_at[position].is_empty() {
                if entry_before[position] != before_next {
                    entry_before[position] = before_next;
                    changed = true;
                }
                let within = unit.labels_at[position]
                    .iter()
                    .any(|&l| unit.labels[l].is_indirect_target() && !unit.labels[l].is_entry());
                if within && indirect | before_next != indirect {
                    indirect |= before_next;
                    changed = true;
                }
            }
        }
        if !changed {
            return Liveness { after, indirect };
        }
    }
}
