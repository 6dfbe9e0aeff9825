//! Numbers that are added to registers, and the data stack pointer.

use super::Pass;
use crate::line::Fact;
use mullion_decoder::decode::{Instruction, NONE, R15};
use mullion_decoder::row::Kind;
use mullion_word_abi as abi;
use mullion_word_rules::Rule;

impl Pass<'_> {
    /// A number added to all of a register, if that is what the instruction does.
    pub(super) fn constant_step(
        &self,
        instruction: &Instruction,
        position: usize,
    ) -> Option<(u8, i64)> {
        if instruction.size != 8 {
            return None;
        }
        let Instruction {
            reg,
            base,
            index,
            displacement,
            ..
        } = *instruction;
        match instruction.row.kind {
            Kind::Lea => (reg == base && index == NONE && !instruction.narrow)
                .then_some((reg, i64::from(displacement))),
            Kind::Arithmetic if !instruction.memory => {
                let immediate = instruction.immediate(self.view.rest(position));
                match reg & 7 {
                    0 => Some((instruction.rm, immediate)),
                    5 => Some((instruction.rm, -immediate)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A constant step of `%r15`, if it is one.
    pub(super) fn stack_step(
        &mut self,
        instruction: &Instruction,
        position: usize,
    ) -> Result<bool, Rule> {
        if instruction.size != 8 {
            return Ok(false);
        }
        let step = match instruction.row.kind {
            Kind::Lea
                if (instruction.reg, instruction.base, instruction.index) == (R15, R15, NONE) =>
            {
                i64::from(instruction.displacement)
            }
            Kind::Arithmetic if !instruction.memory && instruction.rm == R15 => {
                let immediate = instruction.immediate(self.view.rest(position));
                match instruction.reg & 7 {
                    0 => immediate,
                    5 => -immediate,
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        };
        let steps = self.line.steps + step;
        if steps.abs() > abi::MAX_DISPLACEMENT {
            return Err(Rule::StackStep);
        }
        self.line.forget(R15);
        self.line.stepped.get_or_insert(self.view.at(position));
        self.line.steps = steps;
        Ok(true)
    }

    /// `xor` of a register that is below 8 MiB to `%r15`, if it is one.
    pub(super) fn stack_xor(&mut self, instruction: &Instruction, at: u32) -> Result<bool, Rule> {
        let (to, from) = match (instruction.plane, instruction.opcode) {
            (0, 0x31) => (instruction.rm, instruction.reg),
            (0, 0x33) => (instruction.reg, instruction.rm),
            _ => return Ok(false),
        };
        if to != R15 || instruction.memory || instruction.size != 8 {
            return Ok(false);
        }
        let made = self
            .line
            .known(Fact::Small, from)
            .ok_or(Rule::RegisterR15)?;
        self.settle()?;
        self.close(made.since, at + 1);
        self.line.relied(Fact::Small, from, at + 1);
        self.line.forget(R15);
        Ok(true)
    }
}
