//! Which registers and flags are still wanted, by a backward pass over the
//! control flow of the file.

use crate::operand::{FLAGS, Operand, Set, number};
use crate::table::{Class, Effects};
use crate::unit::{Instruction, Position, Unit};
use std::collections::{HashMap, HashSet};

/// Registers that carry arguments to a function: `%rdi %rsi %rdx %rcx %r8 %r9`,
/// `%rax` (vector registers used by a variadic call) and `%r10` (static chain).
pub(crate) const ARGUMENTS: Set =
    1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9 | COUNT | CHAIN;
/// The static chain, `%r10`.
const CHAIN: Set = 1 << 10;
/// The number of vector registers that a variadic call uses, in `%al`. It is set right in front of
/// the call, and what writes it before wants it dead there.
const COUNT: Set = 1 << 0;
/// Registers that a callee preserves; `%rsp` and the reserved ones are always live.
pub(crate) const PRESERVED: Set = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15;
/// Registers with results: `%rax`, `%rdx`.
pub(crate) const RESULTS: Set = 1 << 0 | 1 << 2;

/// For each instruction, what may be read behind it.
pub(crate) struct Liveness {
    after: Vec<Set>,
    /// What functions may read that are called or jumped to.
    arguments: Set,
    /// What may be read at any target of an indirect jump within the function, by its number.
    indirect: HashMap<usize, Set>,
    /// Indirect jumps that surely stay within their function.
    switches: HashSet<Position>,
    /// What each function writes itself, by its number. Callers may keep the rest in registers
    /// across a call that no convention preserves (gcc's `-fipa-ra`).
    written: HashMap<usize, Set>,
}

impl Liveness {
    /// Registers and flags that may be read after this instruction.
    pub(crate) fn after(&self, position: Position) -> Set {
        self.after[position]
    }

    /// Registers and flags that may be read at or after this instruction.
    pub(crate) fn before(&self, unit: &Unit<'_>, position: Position) -> Set {
        live_before(unit, position, self.arguments, self.after[position])
    }

    /// Whether a register may be written freely in front of an indirect branch.
    pub(crate) fn is_free_at_indirect_branch(
        &self,
        unit: &Unit<'_>,
        position: Position,
        register: u8,
    ) -> bool {
        let wanted = match unit.instructions[position].row.class {
            Class::Call => ARGUMENTS & !CHAIN | PRESERVED,
            // Without a place within to go to it is a tail call, which may change what a call may.
            _ if !self.indirect.contains_key(&unit.functions[position]) => {
                ARGUMENTS & !CHAIN | PRESERVED
            }
            // A count for a variadic function may wait in %al.
            _ => {
                let written = self.written.get(&unit.functions[position]).copied();
                self.behind_indirect_jump(unit, position) | COUNT | !written.unwrap_or(0)
            }
        };
        wanted & (1 << register) == 0
    }

    /// Whether the register with the target of an indirect branch may be written freely in
    /// front of it. In `%rax` a target is no argument: that would be a count in `%al`.
    pub(crate) fn is_target_free(&self, unit: &Unit<'_>, position: Position, register: u8) -> bool {
        let wanted = match unit.instructions[position].row.class {
            Class::Call => 0,
            _ => self.behind_indirect_jump(unit, position),
        };
        self.is_free_at_indirect_branch(unit, position, register)
            || (register == number::RAX && wanted & COUNT == 0)
    }

    /// Whether a register may be written freely in front of an indirect branch, if no caller counts on what this
    /// function leaves alone (`-fno-ipa-ra`).
    pub(crate) fn is_free_for_target(
        &self,
        unit: &Unit<'_>,
        position: Position,
        register: u8,
    ) -> bool {
        let wanted = match unit.instructions[position].row.class {
            Class::Call => ARGUMENTS & !CHAIN | PRESERVED,
            _ if !self.has_targets(unit, position) => ARGUMENTS & !CHAIN | PRESERVED,
            _ => self.behind_indirect_jump(unit, position) | COUNT,
        };
        wanted & (1 << register) == 0
    }

    /// Whether anything in its function can be the target of an indirect jump.
    pub(crate) fn has_targets(&self, unit: &Unit<'_>, position: Position) -> bool {
        self.indirect.contains_key(&unit.functions[position])
    }

    /// Whether an indirect jump surely stays within its function.
    pub(crate) fn is_switch(&self, position: Position) -> bool {
        self.switches.contains(&position)
    }

    /// What an indirect jump may find read behind it: by the rest of its function, or, if it
    /// may be a tail call, by a function. No static chain goes through a pointer: that
    /// takes code on the stack.
    fn behind_indirect_jump(&self, unit: &Unit<'_>, position: Position) -> Set {
        let function = unit.functions[position];
        let within = self.indirect.get(&function).copied().unwrap_or(0);
        if self.switches.contains(&position) {
            within
        } else {
            within | self.arguments & !CHAIN | PRESERVED
        }
    }
}

fn live_before(unit: &Unit<'_>, position: Position, arguments: Set, after: Set) -> Set {
    let Effects { reads, kills, .. } = unit.instructions[position].effects();
    let (reads, kills) = match unit.instructions[position].row.class {
        // A caller within the file may know what the callee leaves alone (gcc's `-fipa-ra`).
        Class::Call if unit.is_known_call(position) => (reads | arguments, kills | FLAGS),
        Class::Call => (reads | arguments, kills | FLAGS | (0xffff & !PRESERVED)),
        Class::Ret => (reads | RESULTS | PRESERVED, 0),
        _ => (reads, kills),
    };
    (after & !kills) | reads
}

/// Which registers and flags are wanted.
pub(crate) fn liveness(unit: &Unit<'_>) -> Liveness {
    let wanted = |arguments| {
        solve(unit, arguments, |position, after| {
            live_before(unit, position, arguments, after)
        })
    };
    let live = wanted(ARGUMENTS & !COUNT & !CHAIN);
    // A static chain goes to functions of this file only, and some of them reads it.
    let mut entries = (0..unit.instructions.len()).filter(|&p| unit.is_entry(p));
    if entries.any(|p| live.before(unit, p) & CHAIN != 0) {
        return wanted(ARGUMENTS & !COUNT);
    }
    live
}

/// Solves a backward problem for the whole file; `before` tells what is wanted in front of an
/// instruction by what is wanted behind it, `arguments` what other functions may want.
pub(crate) fn solve(
    unit: &Unit<'_>,
    arguments: Set,
    before: impl Fn(Position, Set) -> Set,
) -> Liveness {
    let count = unit.instructions.len();
    let mut live = Liveness {
        after: vec![0; count],
        arguments,
        indirect: HashMap::new(),
        switches: switches(unit),
        written: written(unit),
    };
    let mut entry_before: Vec<Set> = vec![0; count];
    let everything = arguments | PRESERVED;
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
            let wanted = match instruction.row.class {
                Class::Jmp => match (unit.branch_target(position), instruction.target) {
                    (Some(target), _) => entry_before[target],
                    (None, Some(_)) => everything,
                    (None, None) => live.behind_indirect_jump(unit, position),
                },
                Class::Jcc => {
                    falls
                        | unit
                            .branch_target(position)
                            .map_or(everything, |t| entry_before[t])
                }
                // What a landing pad reads must survive the call that throws.
                Class::Call if !unit.landing_pads.is_empty() => {
                    falls
                        | live
                            .indirect
                            .get(&unit.functions[position])
                            .copied()
                            .unwrap_or(0)
                }
                Class::Ret | Class::Stop => 0,
                _ => falls,
            };
            if live.after[position] != wanted {
                live.after[position] = wanted;
                changed = true;
            }
            before_next = before(position, wanted);
            if !unit.labels_at[position].is_empty() {
                if entry_before[position] != before_next {
                    entry_before[position] = before_next;
                    changed = true;
                }
                let within = unit.labels_at[position]
                    .iter()
                    .any(|&l| unit.labels[l].is_indirect_target() && !unit.labels[l].is_entry());
                if within {
                    let indirect = live.indirect.entry(unit.functions[position]).or_default();
                    changed |= *indirect | before_next != *indirect;
                    *indirect |= before_next;
                }
            }
        }
        if !changed {
            return live;
        }
    }
}

fn written(unit: &Unit<'_>) -> HashMap<usize, Set> {
    let mut written: HashMap<usize, Set> = HashMap::new();
    for (instruction, function) in unit.instructions.iter().zip(&unit.functions) {
        *written.entry(*function).or_default() |= instruction.effects().writes;
    }
    written
}

/// Jumps through tables of `switch`: `movslq (%rB,%rI,4),%rT`, `addq %rB,%rT`, `jmp *%rT`, where
/// all that `%rB` is ever set to in the function is the address of a `.L5` or the like. Compilers
/// name tables so, and never data of the source, which might be a table of functions to call.
fn switches(unit: &Unit<'_>) -> HashSet<Position> {
    let mut bases: HashMap<(usize, u8), bool> = HashMap::new();
    let found: HashMap<Position, u8> = (0..unit.instructions.len())
        .filter_map(|position| Some((position, switch_base(unit, position)?)))
        .collect();
    if found.is_empty() {
        return HashSet::new();
    }
    for (position, instruction) in unit.instructions.iter().enumerate() {
        let writes = instruction.effects().writes;
        let table = is_table_address(instruction);
        for register in (0..16).filter(|r| writes & (1 << r) != 0) {
            let only_tables = bases
                .entry((unit.functions[position], register))
                .or_insert(true);
            *only_tables &= table;
        }
    }
    let surely = |(&position, &base): (&Position, &u8)| {
        let known = bases.get(&(unit.functions[position], base)) == Some(&true);
        (known && !is_reached_unwritten(unit, position, base)).then_some(position)
    };
    found.iter().filter_map(surely).collect()
}

/// Whether there is a way from an entry of the function that does not write the register.
fn is_reached_unwritten(unit: &Unit<'_>, position: Position, register: u8) -> bool {
    let function = unit.functions[position];
    let own = (0..unit.functions.len()).filter(|&p| unit.functions[p] == function);
    let (entries, inner): (Vec<_>, Vec<_>) = own
        .filter(|&p| p == function || !unit.labels_at[p].is_empty())
        .partition(|&p| p == function || unit.is_entry(p));
    let is_indirect = |p: &Position| {
        let labels = &unit.labels_at[*p];
        labels.iter().any(|&l| unit.labels[l].is_indirect_target())
    };
    let inner: Vec<Position> = inner.into_iter().filter(is_indirect).collect();
    let (mut seen, mut open) = (HashSet::new(), entries);
    while let Some(at) = open.pop() {
        if at == position {
            return true;
        }
        let instruction = &unit.instructions[at];
        if !seen.insert(at) || instruction.effects().writes & (1 << register) != 0 {
            continue;
        }
        match instruction.row.class {
            Class::Jmp if instruction.target.is_none() => open.extend(&inner),
            Class::Jmp | Class::Jcc => open.extend(unit.branch_target(at)),
            _ => {}
        }
        if !instruction.ends_path() {
            open.extend(unit.next(at));
        }
    }
    false
}

/// The base register, if this is an indirect jump behind the sum of a base and what a table holds.
fn switch_base(unit: &Unit<'_>, jump: Position) -> Option<u8> {
    let instruction = &unit.instructions[jump];
    let (Class::Jmp, [Operand::ThroughGpr(target)]) =
        (instruction.row.class, instruction.operands.as_slice())
    else {
        return None;
    };
    let add = last_write(unit, jump, target.number)?;
    let [Operand::Gpr(base), Operand::Gpr(_)] = unit.instructions[add].operands.as_slice() else {
        return None;
    };
    let load = last_write(unit, add, target.number)?;
    let table = match unit.instructions[load].operands.as_slice() {
        [Operand::Mem(mem), _] => mem.base == Some(*base) && mem.scale == 4,
        _ => false,
    };
    (unit.instructions[add].base_mnemonic() == "add"
        && unit.instructions[load].mnemonic == "movslq"
        && table)
        .then_some(base.number)
}

/// The last instruction in front of this one, in its straight line, that writes the register.
fn last_write(unit: &Unit<'_>, position: Position, register: u8) -> Option<Position> {
    let mut at = position;
    while !unit.is_target(at) && at > 0 && unit.next(at - 1) == Some(at) {
        at -= 1;
        let instruction = &unit.instructions[at];
        if instruction.ends_path() || instruction.row.class == Class::Call {
            return None;
        }
        if instruction.effects().writes & (1 << register) != 0 {
            return Some(at);
        }
    }
    None
}

/// `leaq .L5(%rip), %rB`
fn is_table_address(instruction: &Instruction<'_>) -> bool {
    match instruction.operands.as_slice() {
        [Operand::Mem(mem), Operand::Gpr(_)] if instruction.row.class == Class::Lea => {
            let number = mem.disp.strip_prefix(".L").unwrap_or_default();
            mem.rip && number.parse::<u32>().is_ok()
        }
        _ => false,
    }
}
