//! What is known about registers within a straight line, by the verifier's
//! rules: which ones are zero-extended, which scratch registers hold the
//! zero-extended lower half of another, and which ones were found to point into the window.

use crate::operand::{Mem, Operand, Set, integer, number};
use crate::table::{Class, Role};
use crate::unit::Instruction;
use mullion_abi::MAX_DISPLACEMENT;

/// Knowledge at one point of the output.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Registers whose last write was a 32-bit write.
    zero: Set,
    /// `copies[s]` is the register whose lower half `s` holds, zero-extended, if neither changed since.
    copies: [Option<u8>; 16],
    /// Addresses that checks of trap mode have found in the window.
    inside: Vec<Address>,
    /// The register that points into the window and whose value is in `%r11` as well, as a window pointer.
    pointer: Option<u8>,
}

/// Checked addresses that are remembered at most: long straight lines must not take long.
const REMEMBERED: usize = 32;

/// `displacement(base,index,scale)`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) base: Option<u8>,
    /// With its scale.
    pub(super) index: Option<(u8, u8)>,
    pub(super) displacement: i64,
}

impl Address {
    /// The address, if its registers are whole ones and its displacement is a number.
    pub(super) fn of(mem: &Mem<'_>) -> Option<Self> {
        let registers = mem.base.into_iter().chain(mem.index);
        let whole = registers
            .into_iter()
            .all(|r| r.width == 8 && r.number != number::RSP);
        let displacement = mem
            .number()
            .filter(|d| whole && d.abs() <= i64::from(u32::MAX))?;
        Some(Self {
            base: mem.base.map(|r| r.number),
            index: mem.index.map(|r| (r.number, mem.scale)),
            displacement,
        })
    }

    /// How often a register is part of the sum.
    fn factor(&self, register: u8) -> i64 {
        let index = self.index.filter(|i| i.0 == register);
        i64::from(self.base == Some(register)) + index.map_or(0, |(_, scale)| i64::from(scale))
    }
}

impl Facts {
    /// A new straight line: nothing is known.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// A register was written in some way.
    pub(super) fn forget(&mut self, register: u8) {
        self.zero &= !(1 << register);
        self.inside.retain(|address| address.factor(register) == 0);
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

    /// A check found an address in the window.
    pub(super) fn checked(&mut self, address: Address) {
        if self.inside.len() == REMEMBERED {
            self.inside.remove(0);
        }
        self.inside.push(address);
    }

    /// `%r11` is the value of this register, made a window pointer.
    pub(super) fn made_pointer(&mut self, register: u8) {
        self.forget(number::R11);
        self.pointer = Some(register);
    }

    /// Whether the address is so near to one found in the window that it is there or in a guard.
    pub(super) fn is_inside(&self, address: Address) -> bool {
        self.inside.iter().any(|known| {
            let distance = known.displacement - address.displacement;
            (known.base, known.index) == (address.base, address.index)
                && distance.abs() <= MAX_DISPLACEMENT
        })
    }

    /// The instruction adds a constant to a register: checked addresses lie so much nearer to it.
    fn moved(&mut self, register: u8, by: i64) {
        let moved = self.inside.clone();
        self.forget(register);
        self.inside = moved;
        for address in &mut self.inside {
            address.displacement -= by * address.factor(register);
        }
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
        if let Some((register, by)) = constant_step(instruction) {
            return self.moved(register, by);
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

/// `addq $8, %rax` and its like: the register and what is added.
fn constant_step(instruction: &Instruction<'_>) -> Option<(u8, i64)> {
    let [Operand::Imm(text), Operand::Gpr(to)] = instruction.operands.as_slice() else {
        return None;
    };
    let by = integer(text).filter(|by| i32::try_from(*by).is_ok())?;
    let sign = match instruction.base_mnemonic() {
        "add" => 1,
        "sub" => -1,
        _ => return None,
    };
    (to.width == 8 && to.number != number::RSP).then_some((to.number, sign * by))
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
                && matches!(instruction.operands[0], Operand::Imm(text) if integer(text).is_some_and(|n| (1..32).contains(&n)))
        }
        _ => instruction.mnemonic.starts_with("cmov") && role == Role::ReadWrite,
    };
    surely.then_some(register.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_holds_until_its_registers_change() {
        let address = |displacement| Address {
            base: Some(3),
            index: Some((5, 8)),
            displacement,
        };
        let mut facts = Facts::default();
        facts.checked(address(0));
        assert!(facts.is_inside(address(-MAX_DISPLACEMENT)));
        assert!(!facts.is_inside(address(MAX_DISPLACEMENT + 1)));
        let other = Address {
            index: Some((5, 4)),
            ..address(0)
        };
        assert!(!facts.is_inside(other));
        facts.moved(5, 2);
        assert!(facts.is_inside(address(MAX_DISPLACEMENT - 16)));
        assert!(!facts.is_inside(address(MAX_DISPLACEMENT - 15)));
        facts.forget(5);
        assert!(!facts.is_inside(address(0)));
    }

    #[test]
    fn a_window_pointer_ends_with_either_register() {
        for written in [3, number::R11] {
            let mut facts = Facts::default();
            facts.made_pointer(3);
            assert_eq!(facts.pointer(), Some(3));
            facts.moved(written, 8);
            assert_eq!(facts.pointer(), None);
        }
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
