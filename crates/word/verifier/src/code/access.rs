//! Accesses to memory: by what each is covered, and what it tells.

use super::{Access, Pass};
use crate::line::Fact;
use crate::sequence::Operand;
use mullion_decoder::decode::{Instruction, NONE, R15, RIP};
use mullion_decoder::row::Kind;
use mullion_word_abi as abi;
use mullion_word_rules::Rule;

const RDI: u8 = 7;
const RSI: u8 = 6;

impl Pass<'_> {
    pub(super) fn string(
        &mut self,
        instruction: &Instruction,
        at: u32,
        end: u32,
    ) -> Result<(), Rule> {
        if instruction.repeat {
            return Err(Rule::StringRepeat);
        }
        self.stats.strings += 1;
        let bytes = match instruction.opcode & 1 {
            0 => 1,
            _ => u32::from(instruction.size),
        };
        let kind = instruction.row.kind;
        let writes = matches!(kind, Kind::Movs | Kind::Stos);
        let source = matches!(kind, Kind::Movs | Kind::Lods | Kind::Cmps);
        let destination = !matches!(kind, Kind::Lods);
        let pointers = [
            destination.then_some((RDI, writes)),
            source.then_some((RSI, false)),
        ];
        for (base, write) in pointers.into_iter().flatten() {
            self.access(&Access {
                operand: Operand {
                    base,
                    index: NONE,
                    scale: 0,
                    displacement: 0,
                },
                bytes,
                write,
                lazy: false,
                aligned: false,
                at,
                end,
            })?;
        }
        Ok(())
    }

    /// Whether an access is covered as far as it must be.
    #[inline]
    pub(super) fn access(&mut self, access: &Access) -> Result<(), Rule> {
        let Operand {
            base,
            index,
            displacement,
            ..
        } = access.operand;
        let stack = base == R15 && index == NONE;
        if stack && i64::from(displacement).abs() <= abi::MAX_DISPLACEMENT {
            self.stats.stack += 1;
            if !access.lazy {
                self.probe(access.at);
            }
            return Ok(());
        }
        if base == RIP {
            let target = i64::from(access.end) + i64::from(displacement);
            self.stats.rip += 1;
            return match self.module.holds(target, access.bytes, access.write) {
                true => Ok(()),
                false if !access.write && !self.reads => Ok(()),
                false => Err(Rule::RipTarget),
            };
        }
        if !access.write && !self.reads {
            self.stats.free += 1;
            return Ok(());
        }
        let covers = |(number, shift): &(u32, i64)| {
            let check = self.checks.get(*number as usize);
            check.is_some_and(|check| {
                // Where the access is, by the registers as the check found them.
                let near = i64::from(displacement) + shift;
                let (range, whole) = match access.write {
                    true => (&check.write, check.aligned.1),
                    false => (&check.read, check.aligned.0),
                };
                let distance = near - i64::from(check.operand.displacement);
                let exact = access.aligned && distance % abi::WORD as i64 == 0;
                let end = match exact || check.exact {
                    true => whole,
                    false => range.end,
                };
                check.operand.is_beside(&access.operand)
                    && range.start <= near
                    && near + i64::from(access.bytes) <= end
            })
        };
        let Some((number, _)) = self.line.checks(base, index).find(covers) else {
            // Behind the checks: what is relied on closes a range, in which a branch to a check's own line may be.
            if base == R15 && index != NONE && self.near_stack(access) {
                return Ok(());
            }
            return Err(match (stack, access.write) {
                (true, _) => Rule::Displacement,
                (_, true) => Rule::WriteUnchecked,
                _ => Rule::ReadUnchecked,
            });
        };
        self.rely(number, access);
        Ok(())
    }

    /// Whether an access of the data stack with an index stays as near to the data stack pointer as a displacement may.
    fn near_stack(&mut self, access: &Access) -> bool {
        let Operand {
            index,
            scale,
            displacement,
            ..
        } = access.operand;
        let Some((most, made)) = self.line.most(index) else {
            return false;
        };
        let first = i64::from(displacement);
        let last = first + (i64::from(most) << (scale & 3));
        if first < -abi::MAX_DISPLACEMENT || last > abi::MAX_DISPLACEMENT {
            return false;
        }
        self.close(made.since, access.at + 1);
        self.line.relied(Fact::Index, index, access.at + 1);
        self.stats.stack += 1;
        true
    }

    /// What faults unless its address is a multiple of 16 tells of the checks with its registers.
    pub(super) fn tells_alignment(&mut self, access: &Access) {
        if !access.aligned {
            return;
        }
        let Operand { base, index, .. } = access.operand;
        let displacement = i64::from(access.operand.displacement);
        for (number, shift) in self.line.checks(base, index) {
            if let Some(check) = self.checks.get_mut(number as usize)
                && check.operand.is_beside(&access.operand)
            {
                let distance = displacement + shift - i64::from(check.operand.displacement);
                check.exact |= distance % abi::WORD as i64 == 0;
            }
        }
    }

    fn rely(&mut self, number: u32, access: &Access) {
        self.stats.checked += 1;
        let Some(check) = self.checks.get_mut(number as usize) else {
            return;
        };
        if check.relied == 0 {
            check.first = access.at;
        }
        check.relied = access.end;
        check.writes |= access.write;
        // From where the last access that relied on it left off.
        let from = std::mem::replace(&mut check.closed, access.at + 1);
        self.close(from, access.at + 1);
    }

    /// An access to the data stack, which faults if the steps left the mapped part far behind.
    #[inline]
    fn probe(&mut self, at: u32) {
        if let Some(from) = self.line.stepped.take() {
            self.line.steps = 0;
            self.close(from + 1, at + 1);
        }
    }
}
