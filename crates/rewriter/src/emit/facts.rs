//! What is known about registers within a straight line, by the verifier's
//! rules: which ones are zero-extended, which scratch registers hold the
//! zero-extended lower half of another, and which ones were found to point into the window.

use crate::operand::{Operand, Set, number};
use crate::table::{Class, Role};
use crate::unit::Instruction;

/// Knowledge at one point of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// Registers whose last write was a 32-bit write.
    zero: Set,
    /// `copies[s]` is the register whose lower half `s` holds, zero-extended, if neither changed since.
    copies: [Option<u8>; 16],
    /// Registers that a check of trap mode has found to point into the window.
    inside: Set,
    /// The register of them whose value is in `%r11` as well, as a window pointer.
    pointer: Option<u8>,
}

impl Facts {
    /// A new straight line: nothing is known.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// A register was written in some way.
    pub(super) fn forget(&mut self, register: u8) {
        self.zero &= !(1 << register);
        self.inside &= !(1 << register);
        if register == number::R11 || self.pointer == Some(register) {
            self.pointer = None;
        }
        self.copies[usize::from(register)] = None;
        for copy in &mut self.copies {
            if *copy == Some(register) {
                *copy = None;
            }
        }
    }

    /// `scratch` now holds the zero-extended lower half of `of`.
    pub(super) fn copied(&mut self, scratch: u8, of: u8) {
        self.forget(scratch);
        self.zero |= 1 << scratch;
        self.copies[usize::from(scratch)] = Some(of);
    }

    /// A check found that a register points into the window, and made `%r11` the same as a window pointer.
    pub(super) fn checked(&mut self, register: u8) {
        self.forget(number::R11);
        self.inside |= 1 << register;
        self.pointer = Some(register);
    }

    /// Whether a check found that the register, unchanged since, points into the window.
    pub(super) fn is_inside(&self, register: u8) -> bool {
        self.inside & (1 << register) != 0
    }

    /// The register whose value `%r11` holds as a window pointer.
    pub(super) fn pointer(&self) -> Option<u8> {
        self.pointer
    }

    /// A register that holds the zero-extended lower half of this one: itself, or a copy.
    pub(super) fn zero_extended(&self, register: u8) -> Option<u8> {
        if self.zero & (1 << register) != 0 {
            return Some(register);
        }
        (0..16).find(|&s| self.copies[usize::from(s)] == Some(register))
    }

    /// Takes note of an instruction of the source that was passed through.
    pub(super) fn note(&mut self, instruction: &Instruction<'_>) {
        if matches!(instruction.row.class, Class::Call) {
            return self.forget_all();
        }
        let (_, writes, _) = instruction.effects();
        for register in (0..16_u8).filter(|r| writes & (1 << r) != 0) {
            self.forget(register);
        }
        if let Some(register) = zero_extends(instruction) {
            self.zero |= 1 << register;
        }
    }
}

/// The register of which the instruction surely clears the upper half. Only those whose
/// doing so is beyond doubt (`docs/window.md`, "Data accesses") count.
fn zero_extends(instruction: &Instruction<'_>) -> Option<u8> {
    let Operand::Gpr(register) = instruction.operands.last()? else {
        return None;
    };
    let role = *instruction.row.roles.last()?;
    if register.width != 4 || !role.writes() || register.number == number::RSP {
        return None;
    }
    let name = instruction
        .mnemonic
        .strip_suffix('l')
        .unwrap_or(instruction.mnemonic);
    let surely = match name {
        "mov" | "movzb" | "movzw" | "movsb" | "movsw" | "lea" | "add" | "sub" | "and" | "or"
        | "xor" | "neg" | "not" | "inc" | "dec" => true,
        "imul" => instruction.operands.len() > 1,
        "sal" | "shl" | "sar" | "shr" => {
            instruction.operands.len() == 2
                && matches!(instruction.operands[0], Operand::Imm(text) if crate::operand::integer(text).is_some_and(|n| (1..32).contains(&n)))
        }
        _ => instruction.mnemonic.starts_with("cmov") && role == Role::ReadWrite,
    };
    surely.then_some(register.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_holds_until_its_register_changes() {
        let mut facts = Facts::default();
        facts.checked(3);
        assert_eq!((facts.is_inside(3), facts.pointer()), (true, Some(3)));
        facts.forget(number::R11);
        assert_eq!((facts.is_inside(3), facts.pointer()), (true, None));
        facts.checked(3);
        facts.forget(3);
        assert_eq!((facts.is_inside(3), facts.pointer()), (false, None));
    }

    #[test]
    fn a_copy_ends_with_either_register() {
        for written in [3, 11] {
            let mut facts = Facts::default();
            facts.copied(11, 3);
            assert_eq!(facts.zero_extended(3), Some(11));
            facts.forget(written);
            assert_eq!(facts.zero_extended(3), None);
        }
    }
}
