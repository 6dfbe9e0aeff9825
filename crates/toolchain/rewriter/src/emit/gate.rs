//! Calls, jumps and switch gates of the word wall (`docs/word-form.md`, "Control flow" and "Gates").

use super::branch::RETURNS_TWICE;
use super::{Emitter, put};
use crate::operand::{FLAGS, Gpr, Operand, number};
use crate::refusal::Reason;
use crate::table::{Class, Role};
use crate::unit::{Label, LabelId, Position};
use mullion_word_abi::{
    CALL_PREFIX, GATE_ALIGNMENT, GATE_TO_BODY, LABEL, SLOT_ENTER, SLOT_LEAVE, right,
};
use std::fmt::Write;

/// The slots of the module: the driver defines them.
const SLOTS: &str = "__mullion_slots";

/// Those of the functions that return twice that modules of checked code have (`sysroot/word/jumps.s`).
const MARKS: &[&str] = &[
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "__mullion_setjmp",
];

/// Where an indirect branch may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goes {
    /// To a function: a call, or a jump that ends its own.
    Away,
    /// To a label of its own function.
    Within,
    /// One of the two.
    Either,
}

impl<'u> Emitter<'u> {
    /// Whether a switch gate stands in front of what this names.
    fn has_gate(&self, label: &Label<'_>) -> bool {
        let code = label
            .section
            .is_some_and(|s| self.unit.sections[s].executable);
        code && label.is_indirect_target() && (label.function || !label.name.starts_with(".L"))
    }

    /// What a direct branch names.
    fn callee(&self, target: &str, label: Option<LabelId>) -> String {
        let name = target.trim_end_matches("@PLT");
        let Some(label) = label else {
            return name.to_owned();
        };
        let at = &self.unit.labels[self.unit.resolve(label)];
        let label = &self.unit.labels[label];
        let numeric = name.starts_with(|c: char| c.is_ascii_digit());
        if !numeric && ((at.section.is_none() && label.section.is_none()) || self.has_gate(at)) {
            format!("{CALL_PREFIX}{name}")
        } else {
            name.to_owned()
        }
    }

    /// Calls, jumps and returns.
    pub(super) fn word_branch(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let mnemonic = instruction.mnemonic;
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
                let register = self.branch_register(position)?;
                put!(self, "movq\t{symbol}@GOTPCREL(%rip), {register}");
                self.word_indirect(position, register, delta)?;
            }
            (_, Some(Operand::Target(target))) => {
                let callee = self.callee(target, instruction.target);
                let name = target.trim_end_matches("@PLT");
                if RETURNS_TWICE.contains(&name) {
                    if instruction.row.class != Class::Call || !MARKS.contains(&name) {
                        return Err(Reason::ReturnsTwice);
                    }
                    self.call_that_marks(&callee);
                } else {
                    put!(self, "{mnemonic}\t{callee}");
                }
            }
            (_, Some(Operand::ThroughGpr(register))) => {
                self.word_indirect(position, *register, delta)?;
            }
            (_, Some(Operand::ThroughMem(mem))) => {
                let symbol = mem.got_symbol();
                if let Some(symbol) = symbol.filter(|symbol| !unit.may_be_absent(symbol)) {
                    let label = unit.labels.iter().position(|l| l.name == symbol);
                    let callee = self.callee(symbol, label);
                    put!(self, "{mnemonic}\t{callee}");
                } else {
                    let free = self.branch_register(position);
                    let place = self.word_confined(position, mem, Role::Read, delta)?;
                    if self.spilled.is_some() {
                        return Err(Reason::Scratch);
                    }
                    let register = match free {
                        // Where all are wanted behind the jump, one is kept until the target is in `%r11`.
                        Err(_) if self.goes(position) == Goes::Within => {
                            self.borrow_register(instruction, delta)?
                        }
                        free => free?,
                    };
                    put!(self, "movq\t{place}, {register}");
                    self.word_indirect(position, register, delta)?;
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

    /// `setjmp` is told in `%rdx`, which is no argument of it, where `longjmp` will go: it cannot read its own return
    /// address.
    fn call_that_marks(&mut self, callee: &str) {
        self.labels += 1;
        let back = self.labels;
        put!(self, "leaq\t.Lmullion{back}(%rip), %rdx");
        put!(self, "call\t{callee}");
        self.put_label();
        let _ = writeln!(self.out, ".Lmullion{back}:");
    }

    /// A register for the target of an indirect branch, which nobody wants behind it.
    fn branch_register(&self, position: Position) -> Result<Gpr, Reason> {
        let free = |r: &u8| self.live.is_free_for_target(self.unit, position, *r);
        let mut registers = [number::R10, number::RAX, 2, 1, 6, 7, 8, 9].into_iter();
        let register = registers.find(free).ok_or(Reason::Scratch)?;
        Ok(Gpr::new(register, 8))
    }

    fn goes(&self, position: Position) -> Goes {
        let unit = self.unit;
        let plan = &self.plans[position];
        let calls = unit.instructions[position].row.class == Class::Call;
        if calls || !self.live.has_targets(unit, position) {
            Goes::Away
        } else if self.live.is_switch(position) || (!plan.unsettled && plan.delta != 8) {
            Goes::Within
        } else {
            Goes::Either
        }
    }

    /// An indirect branch: to a gate that may be entered, to a function of the host, or to a label of its own function.
    fn word_indirect(
        &mut self,
        position: Position,
        register: Gpr,
        delta: i64,
    ) -> Result<(), Reason> {
        let mnemonic = self.unit.instructions[position]
            .mnemonic
            .trim_end_matches('q');
        let goes = self.goes(position);
        let mut register = register;
        let flags = goes != Goes::Away && self.live.after(position) & FLAGS != 0;
        if flags {
            if register.number == number::RAX {
                let other = self.branch_register(position)?;
                if other.number == number::RAX {
                    return Err(Reason::Scratch);
                }
                put!(self, "movq\t{register}, {other}");
                register = other;
            }
            self.save_flags(delta);
        }
        if goes == Goes::Away {
            self.near(position, register, mnemonic);
            return Ok(());
        }
        if goes != Goes::Within {
            let away = self.away(position, register, mnemonic);
            self.labels += 1;
            let otherwise = self.labels;
            self.look_up(register, right::ENTER);
            put!(self, "je\t.Lmullion{otherwise}");
            put!(self, "{mnemonic}\t*{register}");
            self.stats.checks += 1;
            let _ = writeln!(self.out, ".Lmullion{otherwise}:");
            // Nothing of its own: then it may be a function of the host.
            self.look_up(register, right::EXECUTE);
            put!(self, "je\t.Lmullion{away}");
        } else if !self.is_within(position, register) {
            self.look_up(register, right::EXECUTE);
            let trap = self.label_trap(position);
            put!(self, "je\t.Lmullion{trap}");
        }
        let trap = self.label_trap(position);
        put!(self, "movl\t${:#x}, %r11d", LABEL.wrapping_neg());
        put!(self, "addl\t-4({register}), %r11d");
        put!(self, "jne\t.Lmullion{trap}");
        if flags {
            self.restore_flags(delta);
        }
        if self.spilled.is_some() {
            put!(self, "movq\t{register}, %r11");
            self.give_back();
            put!(self, "jmp\t*%r11");
        } else {
            put!(self, "jmp\t*{register}");
        }
        self.stats.checks += 1;
        Ok(())
    }

    /// Checks by the distance that a target is in the section, if it can only be there.
    fn is_within(&mut self, position: Position, register: Gpr) -> bool {
        let unit = self.unit;
        let section = unit.instructions[position].section;
        let targets = self.within.get(&unit.functions[position]);
        if targets != Some(&Some(section)) || !self.section_starts[section] {
            return false;
        }
        self.section_ends[section] = true;
        let trap = self.label_trap(position);
        let number = self.start_number(section);
        put!(self, "leaq\t.Lmullion_start{number}+4(%rip), %r11");
        put!(self, "subq\t{register}, %r11");
        put!(
            self,
            "cmpq\t$.Lmullion_start{number}+4-.Lmullion_end{number}, %r11"
        );
        put!(self, "jbe\t.Lmullion{trap}");
        true
    }

    /// Looks up what the word at the address in a register is to this domain.
    fn look_up(&mut self, register: Gpr, right: u8) {
        put!(self, "movq\t{register}, %r11");
        put!(self, "shrq\t$2, %r11");
        put!(self, "movzwl\t%gs:(%r11,%r11), %r11d");
        put!(self, "testb\t${right}, %gs:(%r14d,%r11d)");
    }

    /// A call, or a jump that ends its function: to the body of a function of the module's own, or, out of the way, to
    /// what else may be called.
    fn near(&mut self, position: Position, register: Gpr, mnemonic: &str) {
        self.labels += 3;
        let (back, away, slot) = (self.labels - 1, self.labels, 8 * SLOT_LEAVE);
        let mut text = format!(
            "movq\t{register}, %r11\n\tshrq\t$2, %r11\n\tmovzwl\t%gs:(%r11,%r11), %r11d\n\ttestb\t${}, %gs:(%r14d,%r11d)\n\t\
             je\t.Lmullion{away}\n\t{mnemonic}\t*{register}\n",
            right::ENTER
        );
        let goes_on = if mnemonic == "call" {
            format!("\n\tjmp\t.Lmullion{back}")
        } else {
            String::new()
        };
        if mnemonic == "call" {
            let _ = writeln!(text, "\tjmp\t.Lmullion{back}");
        }
        let _ = write!(
            text,
            ".Lmullion{away}:\n\tmovq\t{register}, %r11\n\t{mnemonic}\t*{SLOTS}+{slot}(%rip){goes_on}"
        );
        let far = self.trap_of(position, text);
        put!(self, "movq\t{register}, %r11");
        put!(self, "shrq\t$2, %r11");
        put!(self, "movzwl\t%gs:(%r11,%r11), %r11d");
        put!(self, "movzbl\t%gs:(%r14d,%r11d), %r11d");
        put!(self, "andl\t${}, %r11d", right::EXECUTE | right::ENTER);
        put!(self, "xorl\t${}, %r11d", right::EXECUTE | right::ENTER);
        put!(self, "jne\t.Lmullion{far}");
        put!(self, "movq\t{register}, %r11");
        put!(self, "andq\t$-{GATE_ALIGNMENT}, %r11");
        put!(self, "addq\t${GATE_TO_BODY}, %r11");
        put!(self, "{mnemonic}\t*%r11");
        if mnemonic == "call" {
            let _ = writeln!(self.out, ".Lmullion{back}:");
        }
        self.stats.checks += 1;
    }

    /// The place where a jump goes that leaves the domain for a function of the host.
    fn away(&mut self, position: Position, register: Gpr, mnemonic: &str) -> usize {
        let slot = 8 * SLOT_LEAVE;
        let text = format!("movq\t{register}, %r11\n\t{mnemonic}\t*{SLOTS}+{slot}(%rip)");
        self.trap_of(position, text)
    }

    fn label_trap(&mut self, position: Position) -> usize {
        let section = self.unit.instructions[position].section;
        match self.traps[section] {
            Some(trap) => trap,
            None => *self.traps[section].insert({
                self.labels += 1;
                self.labels
            }),
        }
    }

    /// A label in code: a function whose address leaves its file begins with a switch gate.
    pub(super) fn word_label(&mut self, index: usize, id: LabelId, section: usize) {
        let label = &self.unit.labels[id];
        self.mark_start(section);
        if label.is_target() {
            self.probe();
            self.facts.join();
        }
        let opening = self.opening(index, label.function);
        if self.has_gate(label) {
            self.gate(label, section, opening);
            return;
        }
        if label.is_indirect_target() && !self.labelled {
            self.begin_line_early(opening);
            self.put_label();
        } else if opening.is_some() && !self.labelled {
            self.begin_line_early(opening);
            put!(self, "nop");
        }
        let _ = writeln!(self.out, "{}:", label.name);
    }

    fn gate(&mut self, label: &Label<'_>, section: usize, opening: Option<Vec<usize>>) {
        let name = label.name;
        if self.body || (self.last[section].is_some() && !self.stops(section)) {
            put!(self, "jmp\t{CALL_PREFIX}{name}");
        }
        put!(self, ".balign\t16, 0xcc");
        let _ = writeln!(self.out, "{name}:");
        put!(self, "endbr64");
        put!(self, "leaq\t{CALL_PREFIX}{name}(%rip), %r11");
        put!(self, "jmp\t*{SLOTS}+{}(%rip)", 8 * SLOT_ENTER);
        // A line's first instruction for debuggers, which nobody runs.
        let early = opening.is_some();
        // Behind 17 bytes of the gate, up to the body.
        put!(self, ".skip\t{}, 0xcc", 15 - i32::from(early));
        if early {
            self.begin_line_early(opening);
            put!(self, "nop");
        }
        self.bind_body(label);
        let _ = writeln!(self.out, "{CALL_PREFIX}{name}:");
        self.body = true;
        self.labelled = true;
        self.facts.forget_all();
        self.stats.labels += 1;
    }

    /// A body is seen where its gate is seen, within the module.
    fn bind_body(&mut self, label: &Label<'_>) {
        let name = label.name;
        if label.global {
            let binding = if label.weak { ".weak" } else { ".globl" };
            put!(self, "{binding}\t{CALL_PREFIX}{name}");
            put!(self, ".hidden\t{CALL_PREFIX}{name}");
        }
        if label.function {
            put!(self, ".type\t{CALL_PREFIX}{name}, @function");
        }
    }

    /// Another name of a function is another name of its body, too.
    pub(super) fn assign_body(&mut self, name: &str) {
        let unit = self.unit;
        let Some(label) = unit.labels.iter().find(|label| label.name == name) else {
            return;
        };
        if let Some(of) = label.alias_of
            && self.word().is_some()
        {
            let target = &unit.labels[unit.resolve(of)];
            if self.has_gate(target) {
                self.bind_body(label);
                let (prefix, target) = (CALL_PREFIX, target.name);
                put!(self, "{prefix}{name} = {prefix}{target}");
            }
        }
    }

    /// `.size f, .-f` is the size of the body, too.
    pub(super) fn size_of_body(&mut self, arguments: &str) {
        let Some((name, size)) = arguments.split_once(',') else {
            return;
        };
        let (name, unit) = (name.trim(), self.unit);
        let label = unit.labels.iter().find(|label| label.name == name);
        if self.word().is_some()
            && label.is_some_and(|label| self.has_gate(label))
            && size.trim().replace(' ', "") == format!(".-{name}")
        {
            put!(self, ".size\t{CALL_PREFIX}{name}, .-{CALL_PREFIX}{name}");
        }
    }
}
