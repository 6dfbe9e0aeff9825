//! Instructions that move the virtual stack pointer.

use super::{Emitter, R11, R11D, R15, put};
use crate::operand::{Gpr, Mem, Operand, Segment, number};
use crate::options::Base;
use crate::refusal::Reason;
use crate::table::{Class, Role};
use crate::unit::Position;
use mullion_abi::MAX_DISPLACEMENT;

impl<'u> Emitter<'u> {
    /// Moves `%r15` by a constant, without touching flags.
    pub(super) fn step(&mut self, amount: i64) {
        if amount == 0 {
            return;
        }
        self.facts.forget(number::R15);
        if self.word().is_some() {
            return self.word_step(amount);
        }
        if self.unprobed + amount.abs() > MAX_DISPLACEMENT {
            self.probe();
        }
        if amount.abs() > MAX_DISPLACEMENT {
            put!(self, "leal\t{amount}(%r15), %r11d");
            put!(self, "leaq\t(%r14,%r11), %r15");
        } else {
            put!(self, "leaq\t{amount}(%r15), %r15");
            self.unprobed += amount.abs();
        }
        self.cfi.stepped(&mut self.out, amount);
    }

    /// An access at `%r15`, if there was none since it moved.
    pub(super) fn probe(&mut self) {
        if self.unprobed != 0 {
            put!(self, "movl\t-8(%r15), %r11d");
            self.unprobed = 0;
            self.stats.probes += 1;
        }
    }

    /// A place at `disp` from the virtual stack pointer, when `%r15` is `delta` above it.
    pub(super) fn stack_slot(&mut self, disp: i64, delta: i64) -> String {
        let disp = disp - delta;
        if disp.abs() <= MAX_DISPLACEMENT {
            self.unprobed = 0;
            self.stats.stack += 1;
            if disp == 0 {
                "(%r15)".to_owned()
            } else {
                format!("{disp}(%r15)")
            }
        } else if self.word().is_some() {
            self.far_slot(disp)
        } else if self.options.base == Base::Register {
            self.stats.register += 1;
            put!(self, "leal\t{disp}(%r15), %r11d");
            "(%r14,%r11)".to_owned()
        } else {
            self.stats.segment += 1;
            format!("%gs:{disp}(%r15d)")
        }
    }

    /// The same for what waits in `%r11`.
    fn slot_for_scratch(&mut self, disp: i64, delta: i64) -> Result<String, Reason> {
        let computes = self.options.base == Base::Register || self.word().is_some();
        if computes && (disp - delta).abs() > MAX_DISPLACEMENT {
            return Err(Reason::Scratch);
        }
        Ok(self.stack_slot(disp, delta))
    }

    /// `push`, `pop` and `leave`.
    pub(super) fn stack_instruction(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let plan = self.plans[position];
        self.step(plan.lead);
        let delta = plan.delta + plan.lead;
        match (instruction.row.class, instruction.operands.as_slice()) {
            (Class::Push, [Operand::Imm(text)]) => {
                let register = self.label_immediate(text, R11)?;
                let immediate = register.map_or_else(|| format!("${text}"), |r| r.to_string());
                let slot = if register.is_some() {
                    self.slot_for_scratch(-8, delta)?
                } else {
                    self.stack_slot(-8, delta)
                };
                put!(self, "movq\t{immediate}, {slot}");
            }
            (Class::Push, [Operand::Gpr(r)]) if r.number == number::RSP => {
                put!(self, "leaq\t{}(%r15), %r11", -delta);
                let slot = self.slot_for_scratch(-8, delta)?;
                put!(self, "movq\t%r11, {slot}");
            }
            (Class::Push, [Operand::Gpr(r)]) => {
                let slot = self.stack_slot(-8, delta);
                put!(self, "movq\t{r}, {slot}");
            }
            (Class::Push, [Operand::Mem(mem)]) => {
                self.trap_check(position, mem, delta)?;
                let place = self.confined(position, mem, Role::Read, delta)?;
                put!(self, "movq\t{place}, %r11");
                let slot = self.slot_for_scratch(-8, delta)?;
                put!(self, "movq\t%r11, {slot}");
            }
            (Class::Pop, [Operand::Gpr(r)]) => {
                let slot = self.stack_slot(0, delta);
                put!(self, "movq\t{slot}, {r}");
            }
            (Class::Pop, [Operand::Mem(mem)]) => {
                if mem.segment == Some(Segment::Fs) {
                    return Err(Reason::Segment);
                }
                self.trap_check(position, mem, plan.after)?;
                // The address is computed with the stack pointer already raised.
                let place = self.confined(position, mem, Role::Write, plan.after)?;
                let slot = self.slot_for_scratch(0, delta)?;
                if place.contains("%r11") {
                    self.spill(number::RAX, delta);
                    put!(self, "movq\t{slot}, %rax");
                    put!(self, "movq\t%rax, {place}");
                    self.unspill(number::RAX, delta);
                } else {
                    put!(self, "movq\t{slot}, %r11");
                    put!(self, "movq\t%r11, {place}");
                }
            }
            (Class::Leave, []) => match plan.step {
                Some(step) => {
                    // The step goes up to just above the saved frame pointer.
                    let slot = self.stack_slot(-step - 8, delta);
                    put!(self, "movq\t{slot}, %rbp");
                }
                None if self.word().is_some() => {
                    let above = 8 + plan.after;
                    self.probe();
                    put!(self, "leaq\t{above}(%rbp), %r11");
                    self.set_stack_pointer(position)?;
                    put!(self, "movq\t{}(%r15), %rbp", -above);
                }
                None => {
                    self.probe();
                    let above = 8 + plan.after;
                    put!(self, "leal\t{above}(%rbp), %r11d");
                    put!(self, "movq\t{}(%r14,%r11), %rbp", -above);
                    put!(self, "leaq\t(%r14,%r11), %r15");
                }
            },
            _ => return Err(Reason::StackPointer),
        }
        Ok(())
    }

    /// `add`, `sub`, `and`, `lea` and `mov` to the stack pointer.
    pub(super) fn stack_arithmetic(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let plan = self.plans[position];
        let base = instruction.base_mnemonic();
        if matches!(base, "add" | "sub" | "and") && self.flags_read_behind(position) {
            return Err(Reason::StackFlags);
        }
        if plan.step.is_some() {
            self.step(plan.lead);
            return Ok(());
        }
        if self.is_nonlocal_goto(position) {
            return Err(Reason::NonlocalGoto);
        }
        self.probe();
        if self.word().is_some() {
            return self.word_stack_arithmetic(position);
        }
        let delta = plan.delta;
        let above = plan.after;
        let from = &instruction.operands[0];
        match (base, from) {
            ("mov", Operand::Gpr(r)) => {
                let r = Gpr::new(r.number, if above == 0 { 4 } else { 8 });
                if above == 0 {
                    put!(self, "movl\t{r}, %r11d")
                } else {
                    put!(self, "leal\t{above}({r}), %r11d")
                }
            }
            ("mov", Operand::Mem(mem)) => {
                self.trap_check(position, mem, delta)?;
                let place = self.confined(position, mem, Role::Read, delta)?;
                put!(self, "movl\t{place}, %r11d");
                if above != 0 {
                    put!(self, "leal\t{above}(%r11), %r11d");
                }
            }
            ("lea", Operand::Mem(mem)) => {
                let disp = mem.number().ok_or(Reason::StackPointer)?;
                let (address, adjusted) = self.plain_address(mem, disp + above, delta);
                put!(self, "leal\t{adjusted}{address}, %r11d");
            }
            ("add" | "sub" | "and", Operand::Gpr(_) | Operand::Imm(_)) => {
                put!(self, "leal\t{}(%r15), %r11d", -delta);
                match from {
                    Operand::Gpr(r) => put!(self, "{base}l\t{}, %r11d", Gpr::new(r.number, 4)),
                    Operand::Imm(text) => put!(self, "{base}l\t${text}, %r11d"),
                    _ => {}
                }
                if above != 0 {
                    put!(self, "leal\t{above}(%r11), %r11d");
                }
            }
            _ => return Err(Reason::StackPointer),
        }
        put!(self, "leaq\t(%r14,%r11), %r15");
        Ok(())
    }

    /// `__builtin_longjmp` and its kin: frame and stack pointer are loaded, then comes an indirect jump.
    fn is_nonlocal_goto(&self, position: Position) -> bool {
        let near = position.saturating_sub(8)..(position + 8).min(self.unit.instructions.len());
        let near = &self.unit.instructions[near];
        let loads_frame = near.iter().any(|i| {
            i.base_mnemonic() == "mov"
                && matches!(i.operands.as_slice(), [Operand::Mem(_) | Operand::Gpr(_), Operand::Gpr(r)] if r.number == number::RBP)
                && !matches!(i.operands[0], Operand::Gpr(r) if r.number == number::RSP)
        });
        let jumps = near.iter().any(|i| {
            i.row.class == Class::Jmp
                && matches!(
                    i.operands[0],
                    Operand::ThroughGpr(_) | Operand::ThroughMem(_)
                )
        });
        loads_frame && jumps
    }

    /// The registers of an address in which `%r15` stands for the stack pointer, and the displacement.
    pub(super) fn plain_address(&self, mem: &Mem<'u>, disp: i64, delta: i64) -> (String, i64) {
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        let base = if on_stack { Some(R15) } else { mem.base };
        let base = base.map_or(String::new(), |b| b.to_string());
        let registers = match mem.index {
            Some(index) => format!("({base},{index},{})", mem.scale),
            None => format!("({base})"),
        };
        (registers, if on_stack { disp - delta } else { disp })
    }

    /// Reads of the stack pointer's value: the register that holds it.
    pub(super) fn stack_value(&mut self, delta: i64, width: u8) -> Gpr {
        if delta == 0 {
            return Gpr::new(R15.number, width);
        }
        put!(self, "leaq\t{}(%r15), {R11}", -delta);
        if width == 4 { R11D } else { R11 }
    }
}
