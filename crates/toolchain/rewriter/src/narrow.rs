//! Makes 64-bit instructions 32-bit ones where nobody reads the upper half of
//! what they compute.
//!
//! A confined access takes only the lower half of its registers, so pointers
//! that are only followed need not be more. A 32-bit result is zero-extended:
//! the access that follows needs no copy, and the instruction is shorter.

use crate::flow::{ARGUMENTS, Liveness, PRESERVED, RESULTS, solve};
use crate::operand::{FLAGS, Gpr, Operand, Set, integer, number};
use crate::table::{self, Class, Effects, Role};
use crate::unit::{Instruction, Position, Unit};
use mullion_abi::Protection;

/// The general registers of a [`Set`].
const REGISTERS: Set = 0xffff;
/// What a call reads beyond the lower half: all arguments but the count in `%al`.
const WHOLE_ARGUMENTS: Set = ARGUMENTS & !(1 << number::RAX);

/// Changes the instructions. `live` stays true: registers and flags are those of before.
pub(crate) fn narrow(unit: &mut Unit<'_>, live: &Liveness, protection: Protection) {
    if protection == Protection::Trap {
        // There the whole address is checked.
        return;
    }
    let upper = solve(unit, WHOLE_ARGUMENTS, |position, after| {
        upper_before(unit, position, live.after(position), after, protection)
    });
    for position in 0..unit.instructions.len() {
        let instruction = &mut unit.instructions[position];
        if let Some(to) = narrowable(instruction, live.after(position))
            && upper.after(position) & to.bit() == 0
        {
            make_narrow(instruction);
        }
    }
}

/// Registers whose upper half is wanted in front of an instruction, by those behind it.
fn upper_before(
    unit: &Unit<'_>,
    position: Position,
    live_after: Set,
    after: Set,
    protection: Protection,
) -> Set {
    let instruction = &unit.instructions[position];
    let Effects { whole, kills, .. } = instruction.effects();
    let addresses = addresses(instruction, protection);
    match instruction.row.class {
        Class::Call => {
            // As in `flow`: the callee may leave any register alone.
            let left = match unit.is_known_call(position) {
                true => REGISTERS,
                false => PRESERVED,
            };
            return after & left | WHOLE_ARGUMENTS | addresses;
        }
        Class::Ret => return RESULTS | PRESERVED,
        _ => {}
    }
    if let Some(to) = narrowable(instruction, live_after) {
        // The upper half of the result is made of those of the sources.
        let sources = if after & to.bit() == 0 { 0 } else { whole };
        return after & !to.bit() | sources | addresses;
    }
    after & !kills & REGISTERS | whole | addresses
}

/// Registers that address memory as a whole: where the access is not confined.
fn addresses(instruction: &Instruction<'_>, protection: Protection) -> Set {
    let mut whole = 0;
    for (operand, role) in instruction.roles() {
        let confined = match role {
            Role::Address => continue,
            Role::Read => protection == Protection::ReadWriteCall,
            Role::Write | Role::ReadWrite | Role::Maybe => true,
        };
        if let Operand::Mem(mem) | Operand::ThroughMem(mem) = operand
            && (!confined || mem.segment.is_some())
        {
            whole |= mem.registers();
        }
    }
    whole
}

/// The destination, if a 32-bit instruction would compute the lower half of the same result.
fn narrowable(instruction: &Instruction<'_>, live_after: Set) -> Option<Gpr> {
    let Some(Operand::Gpr(to)) = instruction.operands.last().copied() else {
        return (instruction.mnemonic == "cltq").then(|| Gpr::new(number::RAX, 8));
    };
    let name = instruction.base_mnemonic();
    let sources = &instruction.operands[..instruction.operands.len() - 1];
    let keeps_flags = matches!(name, "mov" | "movsl" | "lea" | "not") || name.starts_with("cmov");
    let permitted = to.width == 8
        && to.number != number::RSP
        && instruction.prefixes == 0
        && (keeps_flags || live_after & FLAGS == 0)
        && sources.iter().all(is_plain_source);
    let shape = match (name, sources) {
        ("mov", [Operand::Gpr(_) | Operand::Mem(_)]) => true,
        ("movsl", [Operand::Gpr(from)]) => from.width == 4,
        ("movsl", [Operand::Mem(_)]) => true,
        ("lea", [Operand::Mem(mem)]) => mem.base.is_none_or(|b| b.number != number::RSP),
        ("add" | "sub" | "and" | "or" | "xor" | "imul", [_]) => true,
        ("imul", [Operand::Imm(_), Operand::Gpr(_) | Operand::Mem(_)]) => true,
        ("sal" | "shl", [Operand::Imm(count)]) => {
            integer(count).is_some_and(|n| (1..32).contains(&n))
        }
        ("neg" | "not" | "inc" | "dec", []) => true,
        (cmov, [Operand::Gpr(_) | Operand::Mem(_)]) => cmov.starts_with("cmov"),
        _ => false,
    };
    (permitted && shape).then_some(to)
}

/// No stack pointer, whose place is followed elsewhere; no relocation but a plain one.
fn is_plain_source(source: &Operand<'_>) -> bool {
    match source {
        Operand::Gpr(r) => r.number != number::RSP,
        Operand::Imm(text) => integer(text).is_some_and(|n| i32::try_from(n).is_ok()),
        Operand::Mem(mem) => mem.segment.is_none() && !mem.disp.contains('@'),
        _ => false,
    }
}

fn make_narrow(instruction: &mut Instruction<'_>) {
    if instruction.mnemonic == "cltq" {
        instruction.operands = vec![Operand::Gpr(Gpr::new(number::RAX, 4)); 2];
    }
    instruction.mnemonic = match instruction.base_mnemonic() {
        "mov" | "movsl" | "clt" => "movl",
        "lea" => "leal",
        "add" => "addl",
        "sub" => "subl",
        "and" => "andl",
        "or" => "orl",
        "xor" => "xorl",
        "imul" => "imull",
        "sal" | "shl" => "sall",
        "neg" => "negl",
        "not" => "notl",
        "inc" => "incl",
        "dec" => "decl",
        // Without a suffix: the registers tell the width.
        _ => instruction
            .mnemonic
            .strip_suffix('q')
            .unwrap_or(instruction.mnemonic),
    };
    for operand in &mut instruction.operands {
        if let Operand::Gpr(register) = operand {
            register.width = 4;
        }
    }
    if let Some(row) = table::instruction(instruction.mnemonic, instruction.operands.len()) {
        instruction.row = row;
    }
    instruction.narrowed = true;
}
