//! Memory accesses: which form each one takes.

use super::branch::prefix_text;
use super::facts::Address;
use super::{Emitter, R15, has_high_byte, put};
use crate::operand::{FLAGS, Gpr, Mem, Operand, Segment, integer, number};
use crate::options::Base;
use crate::refusal::Reason;
use crate::table::{Class, Role};
use crate::unit::{Instruction, Position};
use mullion_abi::{LABEL, MAX_DISPLACEMENT, Protection, THREAD_POINTER_SLOT};
use std::fmt::Write;

impl<'u> Emitter<'u> {
    /// Whether an access of this kind has to be confined.
    pub(super) fn confines(&self, role: Role) -> bool {
        match role {
            Role::Address => false,
            Role::Read => self.options.protection != Protection::WriteCall,
            Role::Write | Role::ReadWrite | Role::Maybe => true,
        }
    }

    /// An instruction of which only the operands change.
    pub(super) fn plain(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let delta = self.plans[position].delta;
        if self.word().is_some() && self.word_thread_pointer(position)? {
            return Ok(());
        }
        let high = self.high_byte_parent(position)?;
        if let ("mov", [Operand::Gpr(from), Operand::Gpr(to)]) =
            (instruction.base_mnemonic(), instruction.operands.as_slice())
            && from.number == number::RSP
            && from.width == 8
            && delta != 0
        {
            put!(self, "leaq\t{}(%r15), {to}", -delta);
            return Ok(());
        }
        if let ("xchg", [Operand::Gpr(a), Operand::Gpr(b)]) = (
            instruction.mnemonic.trim_end_matches(['w', 'l', 'q']),
            instruction.operands.as_slice(),
        ) && a.width > 1
            && a.number.min(b.number) == number::RAX
            && a.number.max(b.number) >= 8
        {
            self.exchange(*a, *b);
            return Ok(());
        }
        // An address or its check may want the scratch register that would hold the stack pointer's
        // value, so `%r15` is made that.
        let lead = if wants_stack_value(instruction) {
            -delta
        } else {
            0
        };
        self.step(lead);
        let delta = delta + lead;
        let unprobed = self.unprobed;
        let mut places: [Option<String>; 4] = [const { None }; 4];
        for (index, (operand, role)) in instruction.roles().enumerate() {
            places[index] = match operand {
                Operand::Mem(mem) => self.operand_place(position, mem, role, delta)?,
                Operand::Gpr(r) if r.number == number::RSP => {
                    if instruction
                        .operands
                        .iter()
                        .any(|o| matches!(o, Operand::Mem(m) if m.segment == Some(Segment::Fs)))
                    {
                        return Err(Reason::StackPointer);
                    }
                    Some(self.stack_value(delta, r.width).to_string())
                }
                Operand::Gpr(r) if r.high && high.is_some() => {
                    Some(Gpr::new(r.number, 1).to_string())
                }
                _ => None,
            };
        }
        let lazy = ["prefetch", "vmaskmov", "vpmaskmov"];
        if lazy
            .iter()
            .any(|name| instruction.mnemonic.starts_with(name))
        {
            // These need not fault, so they are no probes.
            self.unprobed = unprobed;
        }
        let mut spilled = None;
        if let Some(Operand::Imm(text)) = instruction.operands.first()
            && integer(text).is_some_and(holds_label)
        {
            if places.iter().flatten().any(|p| p.contains("%r11")) {
                spilled = Some(self.spill_one(instruction, delta)?);
            }
            let register = spilled.unwrap_or(number::R11);
            places[0] = Some(self.immediate_register(instruction, text, register)?);
        }
        self.swap_bytes(high);
        // A prefix may have stood in a statement of its own.
        if instruction.prefixes != 0
            || instruction.narrowed
            || self.block.is_some()
            || places.iter().any(Option::is_some)
        {
            self.with_places(instruction, &places);
        } else {
            put!(self, "{}", instruction.text);
        }
        self.swap_bytes(high);
        if let Some(register) = spilled {
            self.unspill(register, delta);
        }
        self.give_back();
        if instruction.mnemonic == "xgetbv" {
            self.hide_wide_vectors(position, delta);
        }
        self.step(-lead);
        Ok(())
    }

    /// No image has AVX-512, so `xgetbv` says that the system does not save its registers: programs
    /// that choose among functions at run time then leave those alone.
    fn hide_wide_vectors(&mut self, position: Position, delta: i64) {
        let flags = self.live.after(position) & FLAGS != 0;
        if flags {
            self.save_flags(delta);
        }
        put!(self, "andl\t$0xffffff1f, %eax");
        if flags {
            self.restore_flags(delta);
        }
    }

    /// `xchgq %rax, %r8` and its like, for which assemblers write a `nop` with a prefix.
    fn exchange(&mut self, a: Gpr, b: Gpr) {
        let scratch = Gpr::new(number::R11, a.width);
        put!(self, "mov\t{a}, {scratch}");
        put!(self, "mov\t{b}, {a}");
        put!(self, "mov\t{scratch}, {b}");
        self.facts.forget(number::R11);
    }

    /// The two low bytes of a register change places, and back.
    fn swap_bytes(&mut self, low: Option<Gpr>) {
        if let Some(low) = low {
            let high = Gpr { high: true, ..low };
            put!(self, "xchgb\t{low}, {high}");
            self.facts.forget(low.number);
        }
    }

    fn with_places(&mut self, instruction: &Instruction<'_>, places: &[Option<String>; 4]) {
        self.out.push('\t');
        self.out.push_str(prefix_text(instruction.prefixes));
        // The register that replaces a wide immediate goes by the ordinary move.
        self.out.push_str(if self.block.is_some() {
            "mov"
        } else if instruction.mnemonic.starts_with("movabs") {
            "movq"
        } else {
            instruction.mnemonic
        });
        for (index, operand) in instruction.operands.iter().enumerate() {
            self.out.push_str(if index == 0 { "\t" } else { ", " });
            match &places[index] {
                Some(place) => self.out.push_str(place),
                None => write_operand(&mut self.out, operand),
            }
        }
        self.out.push('\n');
    }

    /// What stands for an immediate that holds the label, which is the first operand.
    fn immediate_register(
        &mut self,
        instruction: &Instruction<'_>,
        text: &str,
        register: u8,
    ) -> Result<String, Reason> {
        if instruction.operands.len() != 2 {
            return Err(Reason::LabelBytes);
        }
        let register = self
            .label_immediate(text, Gpr::new(register, width(instruction)))?
            .ok_or(Reason::LabelBytes)?;
        Ok(register.to_string())
    }

    /// The low byte's register if `%ah` or its like stands beside an address that needs a
    /// REX prefix: the two bytes change places around the instruction.
    fn high_byte_parent(&self, position: Position) -> Result<Option<Gpr>, Reason> {
        let instruction = &self.unit.instructions[position];
        // There every confined address is in `%r11` before the bytes change places.
        let register = self.options.base == Base::Register && self.word().is_none();
        let confined = |m: &Mem<'_>, role| register && !m.rip && self.confines(role);
        let extended = instruction.roles().any(|(o, role)| {
            matches!(o, Operand::Mem(m) if m.registers() >> 8 != 0
                || m.base.is_some_and(|b| b.number == number::RSP)
                || m.segment == Some(Segment::Fs)
                || confined(m, role))
        });
        let high = instruction.operands.iter().find_map(|o| match o {
            Operand::Gpr(r) if r.high => Some(*r),
            _ => None,
        });
        let Some(high) = high.filter(|_| extended) else {
            return Ok(None);
        };
        let shared = instruction.roles().any(|(o, role)| match o {
            Operand::Mem(m) => m.registers() & high.bit() != 0 && !confined(m, role),
            Operand::Gpr(r) => r != &high && r.number == high.number,
            _ => false,
        });
        // `cmpxchgb` finds the other byte in its place by itself.
        let implicit = instruction.row.implicit;
        if shared || (implicit.reads | implicit.writes) & high.bit() != 0 {
            Err(Reason::HighByte)
        } else {
            Ok(Some(Gpr::new(high.number, 1)))
        }
    }

    /// The new text of a memory operand, if it changes.
    fn operand_place(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        role: Role,
        delta: i64,
    ) -> Result<Option<String>, Reason> {
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        if mem.segment == Some(Segment::Gs) {
            return Err(Reason::Segment);
        }
        if mem.number().is_some_and(holds_label) {
            return Err(Reason::LabelBytes);
        }
        if role == Role::Address {
            if mem.segment == Some(Segment::Fs) {
                return Err(Reason::Segment);
            }
            return Ok(on_stack.then(|| {
                let (registers, _) = self.plain_address(mem, 0, delta);
                match mem.number() {
                    Some(disp) => format!("{}{registers}", disp - delta),
                    None => format!("{}-{delta}{registers}", mem.disp),
                }
            }));
        }
        if self.word().is_some() {
            return self.word_place(position, mem, role, delta);
        }
        // A prefetch of any address does no harm in the source, so it must not trap.
        if !self.unit.instructions[position]
            .mnemonic
            .starts_with("prefetch")
        {
            self.trap_check(position, mem, delta)?;
        }
        if mem.segment.is_none() && (mem.rip || (!self.confines(role) && !on_stack)) {
            self.stats.plain += 1;
            return Ok(None);
        }
        self.confined(position, mem, role, delta).map(Some)
    }

    /// The text of a memory operand that is accessed, in a form that cannot leave the window.
    pub(super) fn confined(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        role: Role,
        delta: i64,
    ) -> Result<String, Reason> {
        if self.word().is_some() {
            return self.word_confined(position, mem, role, delta);
        }
        if integer(mem.disp).is_some_and(holds_label) {
            return Err(Reason::LabelBytes);
        }
        match mem.segment {
            Some(Segment::Fs) => return self.thread_local(position, mem, delta),
            Some(Segment::Gs) => return Err(Reason::Segment),
            Some(Segment::Flat) | None => {}
        }
        if mem.rip {
            self.stats.plain += 1;
            return Ok(format!("{}(%rip)", mem.disp));
        }
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        if on_stack
            && mem.index.is_none()
            && let Some(disp) = mem.number()
        {
            return Ok(self.stack_slot(disp, delta));
        }
        if !self.confines(role) && !on_stack {
            self.stats.plain += 1;
            let mut text = String::new();
            write_operand(&mut text, &Operand::Mem(*mem));
            return Ok(text);
        }
        if let Some(disp) = self.frame_displacement(position, mem, delta) {
            return Ok(self.stack_slot(disp, delta));
        }
        if let Some(text) = self.register_form(position, mem, role) {
            return Ok(text);
        }
        if self.options.base == Base::Register {
            return Ok(self.computed_form(mem, delta));
        }
        if let Some(text) = self.chain_form(position, mem, role) {
            return Ok(text);
        }
        self.stats.segment += 1;
        if mem.base.is_none() && mem.index.is_none() {
            match mem.number() {
                // Only the offset counts, and the assembler warns of what it has to cut off.
                Some(address) => put!(self, "movl\t${:#x}, %r11d", address & 0xffff_ffff),
                None => put!(self, "movl\t${}, %r11d", mem.disp),
            }
            return Ok("%gs:(%r11d)".to_owned());
        }
        if !on_stack && mem.number().is_none() && (mem.base.is_some() || mem.index.is_some()) {
            // Relocations such as `x@tpoff` are signed and do not fit 32-bit addressing.
            let mut text = String::new();
            write_operand(&mut text, &Operand::Mem(*mem));
            put!(self, "leaq\t{text}, %r11");
            return Ok("%gs:(%r11d)".to_owned());
        }
        Ok(self.segment_form(mem, delta))
    }

    /// Where an operand off a frame pointer whose place is known lies, from the virtual stack pointer.
    pub(super) fn frame_displacement(
        &self,
        position: Position,
        mem: &Mem<'u>,
        delta: i64,
    ) -> Option<i64> {
        let frame = self.plans[position].frame?;
        let plain = mem.base.is_some_and(|b| b == Gpr::new(number::RBP, 8)) && mem.index.is_none();
        let disp = frame + mem.number().filter(|_| plain)?;
        ((disp - delta).abs() <= MAX_DISPLACEMENT
            && !has_high_byte(&self.unit.instructions[position]))
        .then_some(disp)
    }

    /// Form 2 for any address: its offset is computed in `%r11`, unless a near one is there.
    fn computed_form(&mut self, mem: &Mem<'u>, delta: i64) -> String {
        self.stats.register += 1;
        let known = Address::of(mem).filter(|a| a.base.is_some() || a.index.is_some());
        if let Some(displacement) = known.and_then(|a| self.facts.distance(a)) {
            return format!("{displacement}(%r14,%r11)");
        }
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        let whole = |r: Gpr| Gpr::new(r.number, 8);
        let whole = Mem {
            base: if on_stack {
                Some(R15)
            } else {
                mem.base.map(whole)
            },
            index: mem.index.map(whole),
            segment: None,
            ..*mem
        };
        match (mem.number(), mem.base.or(mem.index)) {
            (Some(address), None) => put!(self, "movl\t${:#x}, %r11d", address & 0xffff_ffff),
            (None, None) => put!(self, "movl\t${}, %r11d", mem.disp),
            (number, Some(_)) => {
                let (registers, _) = self.plain_address(&whole, 0, 0);
                match number.filter(|_| on_stack) {
                    Some(number) => put!(self, "leal\t{}{registers}, %r11d", number - delta),
                    None if on_stack => {
                        put!(self, "leal\t{}{:+}{registers}, %r11d", mem.disp, -delta);
                    }
                    None if number.is_some() => {
                        put!(self, "leal\t{}{registers}, %r11d", mem.disp);
                    }
                    None => self.offset_of(&format!("{}{registers}", mem.disp)),
                }
            }
        }
        self.stats.copies += 1;
        if let Some(address) = known {
            self.facts.computed(address);
        }
        "(%r14,%r11)".to_owned()
    }

    /// Form 2 for a read that later reads wait for, as in `state = table[state]`: its value replaces a register of its
    /// own address. There latency counts: a `%gs` base that is not 0 costs Intel's processors two cycles, and `lea`
    /// one, if it has two parts. So a displacement stays with the access. It moves what is read by less than the
    /// window's guards are wide, and nothing mapped is so near to an end that the sum wraps.
    fn chain_form(&mut self, position: Position, mem: &Mem<'u>, role: Role) -> Option<String> {
        let instruction = &self.unit.instructions[position];
        let Some(Operand::Gpr(to)) = instruction.operands.last() else {
            return None;
        };
        let displacement = Address::of(mem)?.displacement;
        let chain = role == Role::Read
            && instruction
                .row
                .roles
                .last()
                .is_some_and(|role| role.writes())
            && mem.index.is_some()
            && mem.registers() & to.bit() != 0
            && matches!(mem.segment, None | Some(Segment::Flat))
            && displacement.abs() <= MAX_DISPLACEMENT
            && self.options.protection != Protection::Trap
            && !has_high_byte(instruction);
        if !chain {
            return None;
        }
        let (registers, _) = self.plain_address(mem, 0, 0);
        put!(self, "leal\t{registers}, %r11d");
        self.stats.register += 1;
        self.stats.copies += 1;
        Some(format!("{}(%r14,%r11)", mem.disp))
    }

    /// The offset of an address that a relocation is part of: such as `x@tpoff` are signed, and
    /// go into 64-bit instructions only.
    fn offset_of(&mut self, address: &str) {
        put!(self, "leaq\t{address}, %r11");
        put!(self, "movl\t%r11d, %r11d");
    }

    /// Form 2, `disp(%r14,%rN)`, if the base is at hand zero-extended or worth a copy.
    fn register_form(&mut self, position: Position, mem: &Mem<'u>, role: Role) -> Option<String> {
        let base = suits_register_form(&self.unit.instructions[position], mem)?;
        if self.options.protection == Protection::Trap {
            let made = self.facts.pointer() == Some(base);
            self.stats.register += u64::from(made);
            return made.then(|| format!("{}(%r11)", mem.disp));
        }
        let register = match self.facts.zero_extended(base) {
            Some(register) => register,
            None => {
                let uses = self.uses_ahead(position, base);
                if !self.worth_a_copy(position, role, uses) {
                    return None;
                }
                put!(self, "movl\t{}, %r11d", Gpr::new(base, 4));
                self.facts.copied(number::R11, base);
                self.stats.copies += 1;
                number::R11
            }
        };
        self.stats.register += 1;
        Some(format!("{}(%r14,{})", mem.disp, Gpr::new(register, 8)))
    }

    /// How many accesses from here on in this straight line go through the same base, unchanged.
    fn uses_ahead(&self, position: Position, base: u8) -> u32 {
        let mut uses = 0;
        for at in position..(position + LOOK_AHEAD).min(self.unit.instructions.len()) {
            let instruction = &self.unit.instructions[at];
            if at != position
                && (instruction.section != self.unit.instructions[position].section
                    || self.unit.is_target(at))
            {
                break;
            }
            for (operand, role) in instruction.roles() {
                if let Operand::Mem(mem) = operand
                    && suits_register_form(instruction, mem) == Some(base)
                    && self.confines(role)
                {
                    uses += 1;
                }
            }
            let writes = instruction.effects().writes;
            let ends = writes & (1 << base | 1 << number::R11) != 0
                || instruction.ends_path()
                || instruction.row.class == Class::Call;
            if ends {
                break;
            }
        }
        uses
    }

    /// A copy pays for itself from the second access on, and at once where an integer is
    /// read: that is what loops wait for, and the segment costs it a cycle.
    fn worth_a_copy(&self, position: Position, role: Role, uses: u32) -> bool {
        let operands = &self.unit.instructions[position].operands;
        self.options.base == Base::Register
            || uses >= 2
            || (role == Role::Read && operands.iter().any(|o| matches!(o, Operand::Gpr(_))))
    }

    /// Form 1: `%gs:` with 32-bit addressing.
    fn segment_form(&self, mem: &Mem<'u>, delta: i64) -> String {
        let mut text = String::from("%gs:");
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        text.push_str(mem.disp);
        if on_stack && delta != 0 {
            let _ = write!(text, "{:+}", -delta);
        }
        let narrow = |r: Gpr| {
            Gpr::new(
                if r.number == number::RSP {
                    number::R15
                } else {
                    r.number
                },
                4,
            )
        };
        // Writing to a string cannot fail.
        let _ = match (mem.base, mem.index) {
            (Some(base), None) => write!(text, "({})", narrow(base)),
            (Some(base), Some(index)) => {
                write!(text, "({},{},{})", narrow(base), narrow(index), mem.scale)
            }
            (None, Some(index)) => write!(text, "(,{},{})", narrow(index), mem.scale),
            (None, None) => Ok(()),
        };
        text
    }

    /// `%fs:x`: relative to the thread pointer, which the last slot of the data stack's region holds.
    fn thread_local(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        delta: i64,
    ) -> Result<String, Reason> {
        let flags = self.flags_wanted_before(position);
        if flags {
            self.save_flags(delta);
        }
        put!(self, "movl\t${THREAD_POINTER_SLOT:#x}, %r11d");
        put!(self, "orl\t%r15d, %r11d");
        if flags {
            self.restore_flags(delta);
        }
        self.stats.thread_local += 1;
        if mem.base.is_none() && mem.index.is_none() && mem.number() == Some(0) {
            return Ok("(%r14,%r11)".to_owned());
        }
        put!(self, "movl\t(%r14,%r11), %r11d");
        if mem.base.is_some_and(|b| b.number == number::RSP) || mem.rip {
            return Err(Reason::Segment);
        }
        let (other, scale) = match (mem.base, mem.index) {
            (Some(base), Some(_)) => {
                put!(self, "leaq\t(%r11,{base}), %r11");
                (mem.index, mem.scale)
            }
            (base, index) => (index.or(base), mem.scale),
        };
        if self.options.base == Base::Register {
            let other = other.map_or(String::new(), |r| {
                format!(",{},{scale}", Gpr::new(r.number, 8))
            });
            if mem.number().is_some() {
                put!(self, "leal\t{}(%r11{other}), %r11d", mem.disp);
            } else {
                self.offset_of(&format!("{}(%r11{other})", mem.disp));
            }
            return Ok("(%r14,%r11)".to_owned());
        }
        let numeric = mem.number().is_some();
        if !numeric {
            // Relocations such as `x@tpoff` are signed and do not fit 32-bit addressing.
            put!(self, "leaq\t{}(%r11), %r11", mem.disp);
        }
        let mut text = format!("%gs:{}(%r11d", if numeric { mem.disp } else { "" });
        if let Some(other) = other {
            let _ = write!(text, ",{},{scale}", Gpr::new(other.number, 4));
        }
        text.push(')');
        Ok(text)
    }

    /// An immediate that holds the label goes through `register`, by its complement: what replaces it.
    pub(super) fn label_immediate(
        &mut self,
        text: &str,
        register: Gpr,
    ) -> Result<Option<Gpr>, Reason> {
        let Some(value) = integer(text).filter(|v| holds_label(*v)) else {
            return Ok(None);
        };
        if holds_label(!value) {
            return Err(Reason::LabelBytes);
        }
        if register.width == 8 {
            put!(self, "movabsq\t${}, {register}", !value);
            put!(self, "notq\t{register}");
        } else {
            let whole = Gpr::new(register.number, 4);
            put!(self, "movl\t${}, {whole}", !value & 0xffff_ffff);
            put!(self, "notl\t{whole}");
        }
        Ok(Some(register))
    }
}

/// Instructions looked at for further uses of a base.
pub(super) const LOOK_AHEAD: usize = 24;

/// The base, if nothing but a base and a small displacement make the address.
pub(super) fn suits_register_form(instruction: &Instruction<'_>, mem: &Mem<'_>) -> Option<u8> {
    let base = mem
        .base
        .filter(|b| b.width == 8 && b.number != number::RSP)?
        .number;
    let small = mem.number().is_some_and(|d| d.abs() <= MAX_DISPLACEMENT);
    (small
        && mem.index.is_none()
        && matches!(mem.segment, None | Some(Segment::Flat))
        && !has_high_byte(instruction))
    .then_some(base)
}

/// Whether the stack pointer's value goes to memory or is compared with it.
fn wants_stack_value(instruction: &Instruction<'_>) -> bool {
    let value = |o: &Operand<'_>| matches!(o, Operand::Gpr(r) if r.number == number::RSP);
    let memory = |o: &Operand<'_>| matches!(o, Operand::Mem(m) if m.segment != Some(Segment::Fs));
    instruction.operands.iter().any(value) && instruction.operands.iter().any(memory)
}

/// Whether the bytes of a number hold the label.
fn holds_label(value: i64) -> bool {
    value
        .to_le_bytes()
        .windows(4)
        .any(|w| w == LABEL.to_le_bytes())
}

/// Width of the operation, in bytes, as far as the registers tell; 8 if they do not.
fn width(instruction: &Instruction<'_>) -> u8 {
    let register = instruction.operands.iter().rev().find_map(|o| match o {
        Operand::Gpr(r) => Some(r.width),
        _ => None,
    });
    register.unwrap_or(match instruction.mnemonic.as_bytes().last() {
        Some(b'b') => 1,
        Some(b'w') => 2,
        Some(b'l') => 4,
        _ => 8,
    })
}

/// An operand as it was.
pub(super) fn write_operand(out: &mut String, operand: &Operand<'_>) {
    // Writing to a string cannot fail.
    let _ = match operand {
        Operand::Gpr(r) => write!(out, "{r}"),
        Operand::Other(text) | Operand::Target(text) => write!(out, "{text}"),
        Operand::Imm(text) => write!(out, "${text}"),
        Operand::ThroughGpr(r) => write!(out, "*{r}"),
        Operand::Mem(mem) | Operand::ThroughMem(mem) => match (mem.rip, mem.base, mem.index) {
            (true, ..) => write!(out, "{}(%rip)", mem.disp),
            (_, Some(base), None) => write!(out, "{}({base})", mem.disp),
            (_, Some(base), Some(index)) => {
                write!(out, "{}({base},{index},{})", mem.disp, mem.scale)
            }
            (_, None, Some(index)) => write!(out, "{}(,{index},{})", mem.disp, mem.scale),
            (_, None, None) => write!(out, "{}", mem.disp),
        },
    };
}
