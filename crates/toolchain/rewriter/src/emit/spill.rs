//! Registers and flags put aside while the rewriter needs them.

use super::{Emitter, put};
use crate::operand::{Gpr, number};
use crate::refusal::Reason;
use crate::unit::Instruction;

/// Where registers are spilled, from the source's stack pointer: below its red zone of 128 bytes.
pub(super) const SPILL: i64 = -256;

impl Emitter<'_> {
    /// Saves the flags below the red zone of the source's stack; `%r11` is not touched.
    pub(super) fn save_flags(&mut self, delta: i64) {
        let (register, flags) = (SPILL - delta, SPILL + 8 - delta);
        put!(self, "movq\t%rax, {register}(%r15)");
        put!(self, "lahf");
        put!(self, "seto\t%al");
        put!(self, "movw\t%ax, {flags}(%r15)");
        put!(self, "movq\t{register}(%r15), %rax");
        self.facts.forget(number::RAX);
        self.unprobed = 0;
        self.stats.flags_saved += 1;
    }

    pub(super) fn restore_flags(&mut self, delta: i64) {
        let (register, flags) = (SPILL - delta, SPILL + 8 - delta);
        put!(self, "movq\t%rax, {register}(%r15)");
        put!(self, "movw\t{flags}(%r15), %ax");
        // 1 + 127 overflows, 0 + 127 does not; sahf sets the others and leaves the overflow flag alone.
        put!(self, "addb\t$127, %al");
        put!(self, "sahf");
        put!(self, "movq\t{register}(%r15), %rax");
    }

    /// Keeps a register that the instruction does not name below the red zone.
    pub(super) fn spill_one(
        &mut self,
        instruction: &Instruction<'_>,
        delta: i64,
    ) -> Result<u8, Reason> {
        let effects = instruction.effects();
        let free = |r: &u8| (effects.reads | effects.writes) & (1 << r) == 0;
        let register = [number::RAX, 1, 2].into_iter().find(free);
        let register = register.ok_or(Reason::Scratch)?;
        self.spill(register, delta);
        Ok(register)
    }

    /// Keeps a register below the red zone; `%r11` and the flags are not touched.
    pub(super) fn spill(&mut self, register: u8, delta: i64) {
        put!(
            self,
            "movq\t{}, {}(%r15)",
            Gpr::new(register, 8),
            SPILL - delta
        );
        self.facts.forget(register);
        self.unprobed = 0;
    }

    pub(super) fn unspill(&mut self, register: u8, delta: i64) {
        put!(
            self,
            "movq\t{}(%r15), {}",
            SPILL - delta,
            Gpr::new(register, 8)
        );
    }
}
