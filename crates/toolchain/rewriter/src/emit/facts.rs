//! What is known about registers within a straight line, by the verifier's rules. The facts are: which ones are
//! zero-extended, and which scratch registers hold the zero-extended lower half of another. Others were found to
//! point into the window.

use crate::operand::{Gpr, Mem, Operand, Set, integer, number};
use crate::table::{Class, Role};
use crate::unit::Instruction;
use mullion_abi::MAX_DISPLACEMENT;
use mullion_word_abi::{MAX_CHECKS, WORD};

/// Knowledge at one point of the output.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Registers whose last write was a 32-bit write.
    zero: Set,
    /// Those of which that was so in front of a label that branches go to. The verifier reads on through a label, so
    /// it still believes that.
    stale: Set,
    /// `copies[s]` is the register whose lower half `s` holds, zero-extended, if neither changed since.
    copies: [Option<u8>; 16],
    /// Addresses that checks of trap mode have found in the window.
    inside: Vec<Address>,
    /// The register that points into the window and whose value is in `%r11` as well, as a window pointer.
    pointer: Option<u8>,
    /// The address whose lower half `%r11` holds, zero-extended.
    computed: Option<Address>,
    /// What checks of the word wall cover, each with how many checks there had been.
    covered: Vec<(usize, Covered)>,
    /// How many checks of the word wall there were in this straight line.
    checks: usize,
    /// What registers hold at most, where that is known.
    most: [Option<u32>; 16],
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

/// Bytes of memory, by their distance from what two registers add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Covered {
    pub(super) base: Option<u8>,
    /// With its scale.
    pub(super) index: Option<(u8, u8)>,
    /// The first byte, and the one behind the last.
    pub(super) first: i64,
    pub(super) end: i64,
    /// The one behind the last for accesses that fault unless their address is a multiple of 16: `end` at least.
    pub(super) whole: i64,
    /// Whether they may be written; if not, they may be read.
    pub(super) write: bool,
}

/// What a piece of a straight line does to registers: those that constants were added to, and those that hold
/// something else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    sums: [i64; 16],
    lost: Set,
}

impl Moved {
    /// An instruction more.
    pub(super) fn pass(&mut self, instruction: &Instruction<'_>) {
        match step(instruction) {
            Some((register, by)) => self.sums[usize::from(register)] += by,
            None => self.lost |= instruction.effects().writes,
        }
    }

    /// What bytes behind the piece are in front of it.
    pub(super) fn back(&self, range: &Covered) -> Option<Covered> {
        let by = range.base.map_or(0, |r| self.sums[usize::from(r)])
            + range
                .index
                .map_or(0, |(r, scale)| self.sums[usize::from(r)] * i64::from(scale));
        let moved = range.moved(by);
        let fits = [moved.first, moved.whole + 8]
            .into_iter()
            .all(|n| i32::try_from(n).is_ok());
        (range.registers() & self.lost == 0 && fits).then_some(moved)
    }
}

impl Covered {
    /// Whether both are made of the same registers.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.base, self.index) == (other.base, other.index)
    }

    /// So much further up.
    fn moved(&self, by: i64) -> Self {
        Self {
            first: self.first + by,
            end: self.end + by,
            whole: self.whole + by,
            ..*self
        }
    }

    /// How often a register is part of the sum.
    fn factor(&self, register: u8) -> i64 {
        let index = self.index.filter(|i| i.0 == register);
        i64::from(self.base == Some(register)) + index.map_or(0, |(_, scale)| i64::from(scale))
    }

    /// The registers, as a set.
    pub(super) fn registers(&self) -> Set {
        self.base.map_or(0, |r| 1 << r) | self.index.map_or(0, |(r, _)| 1 << r)
    }
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

    /// Branches come here, too.
    pub(super) fn join(&mut self) {
        *self = Self {
            stale: self.stale | self.zero,
            ..Self::default()
        };
    }

    /// Whether the verifier may know of a register what holds on one way to here only.
    pub(super) fn is_stale(&self, register: u8) -> bool {
        (self.stale & !self.zero) & (1 << register) != 0
    }

    /// A register was written in some way.
    pub(super) fn forget(&mut self, register: u8) {
        self.zero &= !(1 << register);
        self.stale &= !(1 << register);
        self.inside.retain(|address| address.factor(register) == 0);
        self.covered
            .retain(|(_, range)| range.registers() & (1 << register) == 0);
        if register == number::R11 || self.pointer == Some(register) {
            self.pointer = None;
        }
        let made_of = |address: &mut Address| address.factor(register) != 0;
        if register == number::R11 || self.computed.as_mut().is_some_and(made_of) {
            self.computed = None;
        }
        self.copies[usize::from(register)] = None;
        self.most[usize::from(register)] = None;
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

    /// `%r11` now holds the zero-extended lower half of an address.
    pub(super) fn computed(&mut self, address: Address) {
        self.forget(number::R11);
        self.zero |= 1 << number::R11;
        self.computed = Some(address);
    }

    /// How far the address is from the one in `%r11`, if a displacement reaches it. What is
    /// mapped lies further from the window's ends than that, so nothing wraps on the way.
    pub(super) fn distance(&self, address: Address) -> Option<i64> {
        let known = self
            .computed
            .filter(|known| (known.base, known.index) == (address.base, address.index))?;
        let distance = address.displacement - known.displacement;
        (distance.abs() <= MAX_DISPLACEMENT).then_some(distance)
    }

    /// A check found an address in the window.
    pub(super) fn checked(&mut self, address: Address) {
        if self.inside.len() == REMEMBERED {
            self.inside.remove(0);
        }
        self.inside.push(address);
    }

    /// A check of the word wall was made. The verifier remembers the latest ones, whether they still hold or not.
    pub(super) fn made_check(&mut self) {
        self.checks += 1;
        let oldest = (self.checks + 1).saturating_sub(MAX_CHECKS);
        self.covered.retain(|(number, _)| *number >= oldest);
    }

    /// The check that was made last covers this.
    pub(super) fn cover(&mut self, range: Covered) {
        self.covered.push((self.checks, range));
    }

    /// An access was made that faults unless its address is a multiple of 16: so are multiples of four what checks by
    /// its registers have looked at from there on.
    pub(super) fn tell_alignment(&mut self, access: &Covered) {
        for (_, known) in &mut self.covered {
            if known.is_beside(access) && (access.first - known.first) % WORD as i64 == 0 {
                known.end = known.whole;
            }
        }
    }

    /// What a register holds at most, if that is known.
    pub(super) fn most(&self, register: u8) -> Option<u32> {
        self.most[usize::from(register)]
    }

    /// Whether a check covers all of it.
    pub(super) fn covers(&self, access: &Covered) -> bool {
        self.covered.iter().any(|(_, known)| {
            // An aligned address tells of whole words what is so many of them from it.
            let words = (access.first - known.first) % WORD as i64 == 0;
            known.is_beside(access)
                && known.write >= access.write
                && known.first <= access.first
                && access.end <= known.end
                && access.whole <= if words { known.whole } else { known.end }
        })
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

    /// The instruction adds a constant to a register, or to its lower half: known addresses lie so
    /// much nearer to it. Of a computed one only the lower half counts.
    fn moved(&mut self, register: u8, by: i64, whole: bool) {
        let (inside, computed) = (self.inside.clone(), self.computed);
        self.forget(register);
        self.computed = computed.filter(|_| register != number::R11);
        if whole {
            self.inside = inside;
        } else {
            self.zero |= 1 << register;
        }
        for address in self.inside.iter_mut().chain(&mut self.computed) {
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
        // The verifier forgets with the instruction that ends a straight line, whether or not a label follows.
        if matches!(
            instruction.row.class,
            Class::Call | Class::Jmp | Class::Ret | Class::Stop
        ) {
            return self.forget_all();
        }
        let mut covered = match step(instruction) {
            Some((register, by)) => {
                let moved = |(number, range): &(usize, Covered)| {
                    (*number, range.moved(-by * range.factor(register)))
                };
                Some(self.covered.iter().map(moved).collect())
            }
            None => None,
        };
        if let Some((register, by)) = constant_step(instruction) {
            self.moved(register.number, by, register.width == 8);
            self.covered = covered.unwrap_or_else(|| std::mem::take(&mut self.covered));
            return;
        }
        let writes = instruction.effects().writes;
        for register in (0..16_u8).filter(|r| writes & (1 << r) != 0) {
            self.forget(register);
        }
        if let Some(covered) = covered.take() {
            self.covered = covered;
        }
        if let Some(register) = zero_extends(instruction) {
            self.zero |= 1 << register;
        }
        if let Some((register, most)) = at_most(instruction) {
            self.most[usize::from(register)] = Some(most);
        }
    }
}

/// A number added to all of a register in a form that the word wall's verifier knows as a step: the register, and the
/// number.
fn step(instruction: &Instruction<'_>) -> Option<(u8, i64)> {
    if let [Operand::Mem(mem), Operand::Gpr(to)] = instruction.operands.as_slice() {
        let same = mem
            .base
            .is_some_and(|base| base.width == 8 && base.number == to.number);
        let plain = mem.segment.is_none() && !mem.rip && mem.index.is_none();
        let by = mem.number().filter(|by| i32::try_from(*by).is_ok())?;
        let lea = instruction.row.class == Class::Lea && to.width == 8 && to.number != number::RSP;
        return (lea && same && plain).then_some((to.number, by));
    }
    let (to, by) = constant_step(instruction).filter(|(to, _)| to.width == 8)?;
    // The short form of longer numbers for `%rax` is another instruction.
    let short = i8::try_from(by).is_ok() && i8::try_from(-by).is_ok();
    (to.number != number::RAX || short).then_some((to.number, by))
}

/// What an instruction leaves in a register at most, in a form that the word wall's verifier knows.
fn at_most(instruction: &Instruction<'_>) -> Option<(u8, u32)> {
    let Operand::Gpr(to) = instruction.operands.last()? else {
        return None;
    };
    let immediate = match instruction.operands.first()? {
        Operand::Imm(text) => integer(text).and_then(|value| u32::try_from(value).ok()),
        _ => None,
    };
    let most = match instruction.mnemonic {
        "movzbl" | "movzbq" => 0xff,
        "movzwl" | "movzwq" => 0xffff,
        "andl" | "and" if to.width == 4 => immediate.filter(|most| i32::try_from(*most).is_ok())?,
        "shrl" | "shr" if to.width == 4 && instruction.operands.len() == 2 => {
            u32::MAX >> immediate.filter(|count| (2..32).contains(count))?
        }
        _ => return None,
    };
    (to.width >= 4 && to.number != number::RSP).then_some((to.number, most))
}

/// `addq $8, %rax`, `addl $8, %eax` and their like: the register and what is added.
fn constant_step(instruction: &Instruction<'_>) -> Option<(Gpr, i64)> {
    let [Operand::Imm(text), Operand::Gpr(to)] = instruction.operands.as_slice() else {
        return None;
    };
    let by = integer(text).filter(|by| i32::try_from(*by).is_ok())?;
    let sign = match instruction.base_mnemonic() {
        "add" | "addl" => 1,
        "sub" | "subl" => -1,
        _ => return None,
    };
    (to.width >= 4 && to.number != number::RSP).then_some((*to, sign * by))
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
        facts.moved(5, 2, true);
        assert!(facts.is_inside(address(MAX_DISPLACEMENT - 16)));
        assert!(!facts.is_inside(address(MAX_DISPLACEMENT - 15)));
        facts.forget(5);
        assert!(!facts.is_inside(address(0)));
    }

    #[test]
    fn a_check_is_forgotten_when_the_verifier_forgets_it() {
        let range = |base| Covered {
            base: Some(base),
            index: None,
            first: 0,
            end: 4,
            whole: 4,
            write: true,
        };
        let mut facts = Facts::default();
        facts.made_check();
        facts.cover(range(3));
        for _ in 1..MAX_CHECKS {
            assert!(facts.covers(&range(3)));
            facts.made_check();
            facts.cover(range(5));
            facts.forget(5);
        }
        // It is the oldest of as many as are remembered.
        assert!(facts.covers(&range(3)));
        facts.made_check();
        assert!(!facts.covers(&range(3)));
    }

    #[test]
    fn a_window_pointer_ends_with_either_register() {
        for written in [3, number::R11] {
            let mut facts = Facts::default();
            facts.made_pointer(3);
            assert_eq!(facts.pointer(), Some(3));
            facts.moved(written, 8, true);
            assert_eq!(facts.pointer(), None);
        }
    }

    #[test]
    fn a_computed_address_moves_with_its_registers() {
        let address = |displacement| Address {
            base: Some(3),
            index: Some((5, 8)),
            displacement,
        };
        let mut facts = Facts::default();
        facts.computed(address(100_000));
        assert_eq!(facts.distance(address(100_008)), Some(8));
        assert_eq!(facts.distance(address(0)), None);
        // The upper half of a register is no part of it.
        facts.moved(5, 2, false);
        assert_eq!(facts.distance(address(100_000)), Some(16));
        facts.moved(3, -16, true);
        assert_eq!(facts.distance(address(100_000)), Some(0));
        for written in [3, 5, number::R11] {
            let mut facts = facts.clone();
            facts.forget(written);
            assert_eq!(facts.distance(address(100_000)), None);
        }
        facts.moved(number::R11, 8, true);
        assert_eq!(facts.distance(address(100_000)), None);
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
