//! Calls, jumps and returns.

use super::{Emitter, put};
use crate::operand::{FLAGS, Gpr, Operand, number};
use crate::options::Base;
use crate::refusal::Reason;
use crate::table::{Class, Role};
use crate::unit::{Position, prefix};
use mullion_abi::{LABEL, Protection};

/// Functions that return twice, as gcc knows them: where they return to must be labelled.
pub(super) const RETURNS_TWICE: &[&str] = &[
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "__mullion_setjmp",
    "savectx",
    "getcontext",
    "vfork",
];

impl<'u> Emitter<'u> {
    pub(super) fn branch(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let plan = self.plans[position];
        self.step(plan.leave);
        let delta = plan.delta + plan.leave;
        self.probe();
        match (instruction.row.class, instruction.operands.first()) {
            (Class::Ret, _) => put!(self, "ret"),
            (Class::Call | Class::Jmp, Some(Operand::Target(target)))
                if unit.may_go_nowhere(position) =>
            {
                let symbol = target.trim_end_matches("@PLT");
                put!(self, "movl\t{symbol}@GOTPCREL(%rip), %r11d");
                self.checked(position, None);
            }
            (_, Some(Operand::Target(target))) => {
                put!(self, "{}\t{target}", instruction.mnemonic);
                if instruction.row.class == Class::Call
                    && RETURNS_TWICE.contains(&target.trim_end_matches("@PLT"))
                {
                    self.put_label();
                    if self.options.count {
                        self.count_step(position);
                    }
                }
            }
            (_, Some(Operand::ThroughGpr(register))) => self.checked(position, Some(*register)),
            (_, Some(Operand::ThroughMem(mem))) => {
                let symbol = mem
                    .got_symbol()
                    .filter(|symbol| !unit.may_be_absent(symbol));
                if let Some(symbol) = symbol {
                    put!(self, "{}\t{symbol}@PLT", instruction.mnemonic);
                } else {
                    // Only the offset is wanted, and a 32-bit load leaves it zero-extended.
                    self.trap_check(position, mem, delta)?;
                    let place = self.confined(position, mem, Role::Read, delta)?;
                    put!(self, "movl\t{place}, %r11d");
                    self.checked(position, None);
                }
            }
            _ => return Err(Reason::BranchTarget),
        }
        if instruction.row.class == Class::Jcc {
            self.step(-plan.leave);
        } else if plan.leave != 0 {
            self.cfi.stepped(&mut self.out, -plan.leave);
        }
        Ok(())
    }

    /// The check of an indirect branch's target, which is in `register`, or its offset in `%r11d`.
    fn checked(&mut self, position: Position, register: Option<Gpr>) {
        let mnemonic = self.unit.instructions[position]
            .mnemonic
            .trim_end_matches('q');
        let section = self.unit.instructions[position].section;
        let complement = LABEL.wrapping_neg();
        let trap = match self.traps[section] {
            Some(trap) => trap,
            None => *self.traps[section].insert({
                self.labels += 1;
                self.labels
            }),
        };
        // A case of a switch may begin with a conditional branch on what was compared in front of the
        // jump. (No function looks at the flags of its caller.)
        let flags = self.unit.instructions[position].row.class == Class::Jmp
            && self.live.after(position) & FLAGS != 0;
        let plan = &self.plans[position];
        let delta = plan.delta + plan.leave;
        if flags {
            self.save_flags(delta);
        }
        let in_place = register.filter(|r| {
            !flags
                && self.facts.zero_extended(r.number) == Some(r.number)
                && self.live.is_target_free(self.unit, position, r.number)
        });
        if let Some(register) = in_place {
            let whole = Gpr::new(register.number, 8);
            put!(self, "movl\t${complement:#x}, %r11d");
            put!(self, "addl\t-4(%r14,{whole}), %r11d");
            put!(self, "jne\t.Lmullion{trap}");
            put!(self, "addq\t%r14, {whole}");
            put!(self, "{mnemonic}\t*{whole}");
            self.stats.checks += 1;
            return;
        }
        let free = |r: u8| self.live.is_free_at_indirect_branch(self.unit, position, r);
        let scratch = [number::R10, number::RAX, 2, 1, 6, 7, 8, 9]
            .into_iter()
            .find(|&r| free(r))
            .or_else(|| {
                // The register that holds the target has served when the offset is taken.
                let free = |&r: &u8| self.live.is_target_free(self.unit, position, r);
                register.map(|r| r.number).filter(free)
            });
        match (scratch, register) {
            (Some(scratch), _) => {
                if let Some(register) = register {
                    put!(self, "movl\t{}, %r11d", Gpr::new(register.number, 4));
                }
                let scratch = Gpr::new(scratch, 4);
                put!(self, "movl\t${complement:#x}, {scratch}");
                put!(self, "addl\t-4(%r14,%r11), {scratch}");
                put!(self, "jne\t.Lmullion{trap}");
            }
            (None, _) if self.options.base == Base::Register => {
                if let Some(register) = register {
                    put!(self, "movl\t{}, %r11d", Gpr::new(register.number, 4));
                }
                // Nothing is free: below the red zone there is room for one register.
                self.spill(number::R10, delta);
                put!(self, "movl\t${complement:#x}, %r10d");
                put!(self, "addl\t-4(%r14,%r11), %r10d");
                put!(self, "jne\t.Lmullion{trap}");
                self.unspill(number::R10, delta);
            }
            (None, Some(register)) => {
                if self.facts.is_stale(register.number) {
                    // The check relies on what the verifier knows of the register, and then no branch may go to the
                    // label in between. This move changes nothing, and is taken for a write of anything.
                    let whole = Gpr::new(register.number, 8);
                    put!(self, "movq\t{whole}, {whole}");
                }
                let register = Gpr::new(register.number, 4);
                put!(self, "movl\t${complement:#x}, %r11d");
                put!(self, "addl\t%gs:-4({register}), %r11d");
                put!(self, "jne\t.Lmullion{trap}");
                put!(self, "movl\t{register}, %r11d");
            }
            (None, None) => {
                self.spill(number::R10, delta);
                put!(self, "movl\t%r11d, %r10d");
                put!(self, "movl\t${complement:#x}, %r11d");
                put!(self, "addl\t%gs:-4(%r10d), %r11d");
                put!(self, "jne\t.Lmullion{trap}");
                put!(self, "movl\t%r10d, %r11d");
                self.unspill(number::R10, delta);
            }
        }
        if flags {
            put!(self, "leaq\t(%r14,%r11), %r11");
            self.restore_flags(delta);
        } else {
            put!(self, "addq\t%r14, %r11");
        }
        put!(self, "{mnemonic}\t*%r11");
        self.stats.checks += 1;
    }

    /// String instructions: each register that they access through becomes a window pointer first.
    pub(super) fn string(&mut self, position: Position) -> Result<(), Reason> {
        let instruction = &self.unit.instructions[position];
        let name = &instruction.mnemonic[..4];
        let writes = self.confines(Role::Write);
        let reads = self.confines(Role::Read);
        let destination = match name {
            "movs" | "stos" => writes,
            "scas" | "cmps" => reads,
            _ => false,
        };
        let source = matches!(name, "movs" | "lods" | "cmps") && reads;
        let pointers = [(destination, "%edi", "%rdi"), (source, "%esi", "%rsi")];
        if self.options.protection == Protection::Trap {
            let delta = self.plans[position].delta;
            for (_, _, whole) in pointers.iter().filter(|(wanted, ..)| *wanted) {
                self.trap_unless_inside(
                    position,
                    &format!("({whole})"),
                    instruction.prefixes != 0,
                    delta,
                );
            }
        }
        for (_, low, whole) in pointers.iter().filter(|(wanted, ..)| *wanted) {
            put!(self, "movl\t{low}, {low}");
            put!(self, "leaq\t(%r14,{whole}), {whole}");
        }
        put!(
            self,
            "{}{}",
            prefix_text(instruction.prefixes),
            instruction.mnemonic
        );
        self.stats.strings += 1;
        Ok(())
    }
}

/// The prefixes as text.
pub(super) fn prefix_text(prefixes: u8) -> &'static str {
    match prefixes {
        prefix::LOCK => "lock ",
        prefix::REP => "rep ",
        prefix::REPNE => "repne ",
        _ => "",
    }
}
