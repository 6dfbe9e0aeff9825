//! The form of the word wall (`docs/word-form.md`): addresses stay what they are. A check in front of an
//! access asks whether its words may be touched.
//!
//! One check serves all accesses of a straight line that have their registers in common and whose bytes adjoin. It
//! stands in front of the first of them, or in front of the instruction that sets the flags which would be lost there.

use super::facts::{Covered, Moved};
use super::spill::SPILL;
use super::{Emitter, R11, put};
use crate::operand::{Gpr, Mem, Operand, Segment, number};
use crate::refusal::Reason;
use crate::table::{Class, Role};
use crate::unit::{Instruction, Position, prefix};
use crate::width;
use mullion_word_abi::Protection as WordProtection;
use mullion_word_abi::{LINE, MAX_DISPLACEMENT, STACK_REGION, THREAD_POINTER_SLOT, WORD, right};
use std::fmt::Write;

/// So many instructions are looked at for accesses that one check can serve: what a loop is unrolled to.
const FAR_AHEAD: usize = 96;
/// A check is not made for more bytes than this at once.
const MOST: i64 = 128;
/// Where words would take so many compares, lines are compared. Fewer bytes are often all of a block that the host granted by
/// itself, whose lines are not all the domain's: such a check would always look at single points.
const MANY: i64 = 5;
/// From the last byte of the data stack's region to the thread pointer.
const TO_THREAD_POINTER: i64 = THREAD_POINTER_SLOT as i64 - (STACK_REGION as i64 - 1);

impl<'u> Emitter<'u> {
    fn word_confines(&self, role: Role) -> bool {
        match role {
            Role::Address => false,
            Role::Read => self.word() == Some(WordProtection::ReadWrite),
            Role::Write | Role::ReadWrite | Role::Maybe => true,
        }
    }

    /// The checks that are best made in front of an instruction: its own, while the flags are nobody's, and those
    /// of the accesses behind it that find flags which it leaves.
    pub(super) fn prepare(&mut self, position: Position) {
        let unit = self.unit;
        if self.flags_wanted_before(position) {
            return;
        }
        let mut moved = Moved::default();
        self.cover_ahead(position, &moved);
        moved.pass(&unit.instructions[position]);
        let mut at = position;
        while !ends_line(&unit.instructions[at])
            && let Some(next) = unit.next(at)
            && !unit.is_target(next)
            && self.flags_wanted_before(next)
        {
            self.cover_ahead(next, &moved);
            moved.pass(&unit.instructions[next]);
            at = next;
        }
    }

    /// What the instruction accesses and a check must cover, if nothing but registers and a number make its address.
    fn access(&self, position: Position) -> Option<Covered> {
        let instruction = &self.unit.instructions[position];
        if instruction.mnemonic.starts_with("prefetch") || instruction.row.class == Class::Nop {
            return None;
        }
        let (mem, role) = instruction
            .roles()
            .find_map(|(operand, role)| match operand {
                Operand::Mem(mem) | Operand::ThroughMem(mem) => Some((mem, role)),
                _ => None,
            })?;
        let plain = matches!(mem.segment, None | Some(Segment::Flat)) && !mem.rip;
        let whole = |r: &Gpr| r.width == 8 && r.number != number::RSP;
        if !plain
            || !self.word_confines(role)
            || !mem.base.iter().chain(&mem.index).all(whole)
            || self
                .frame_displacement(position, mem, self.plans[position].delta)
                .is_some()
        {
            return None;
        }
        let first = mem.number().filter(|n| i32::try_from(*n).is_ok())?;
        let whole = first + i64::from(width::bytes(instruction)?);
        Some(Covered {
            base: mem.base.map(|r| r.number),
            index: mem.index.map(|r| (r.number, mem.scale)),
            first,
            end: if is_aligned(instruction) {
                first
            } else {
                whole
            },
            whole,
            write: role.writes(),
        })
    }

    /// Makes a check for what the instruction at `from` accesses, and for what adjoins it further on, here: `moved` is
    /// between.
    fn cover_ahead(&mut self, from: Position, moved: &Moved) {
        let Some(access) = self.access(from) else {
            return;
        };
        if moved
            .back(&access)
            .is_none_or(|here| self.facts.covers(&here))
        {
            return;
        }
        let range = adjoining(access, &self.beside(from, access));
        if let Some(range) = moved.back(&range) {
            self.check(&range, 0);
            self.facts.cover(range);
        }
    }

    /// The accesses from here on in this straight line that surely come, and are made of the same registers.
    fn beside(&self, from: Position, access: Covered) -> Vec<Covered> {
        let unit = self.unit;
        let (mut found, mut at) = (Vec::new(), from);
        let mut moved = Moved::default();
        for _ in 0..FAR_AHEAD {
            let other = self.access(at).filter(|other| other.is_beside(&access));
            found.extend(other.and_then(|other| moved.back(&other)));
            let instruction = &unit.instructions[at];
            moved.pass(instruction);
            match unit.next(at) {
                Some(next)
                    if moved.back(&access).is_some()
                        && !ends_line(instruction)
                        && !unit.is_target(next) =>
                {
                    at = next;
                }
                _ => break,
            }
        }
        found
    }

    /// Writes a check. `%r11` and the flags are lost, but for flags that the instruction finds and somebody wants.
    /// `lead` is how far `%r15` has been moved for the instruction already.
    fn check(&mut self, range: &Covered, lead: i64) {
        let mut text = String::new();
        let base = range
            .base
            .map_or(String::new(), |r| Gpr::new(r, 8).to_string());
        // Writing to a string cannot fail.
        let _ = match range.index {
            Some((index, scale)) => write!(text, "({base},{},{scale})", Gpr::new(index, 8)),
            None if range.base.is_some() => write!(text, "({base})"),
            None => Ok(()),
        };
        let operand = |displacement: i64| format!("{displacement}{text}");
        let wanted = self.flags_wanted_before(self.at);
        let flags = wanted.then(|| self.plans[self.at].delta + lead);
        let bytes = range.whole - range.first;
        // What begins anywhere in a word reaches three bytes further.
        let words = ((range.end - range.first + 3).max(bytes) + 3) / WORD as i64;
        let operand = |by: i64| operand(range.first + by);
        self.check_words(&operand, (bytes, words), range.write, flags);
    }

    /// Writes a check of `bytes` bytes at an operand, which is written for each distance from the first of them.
    /// With `flags`, `%r15 - V`, the flags are kept: then `%rax` is no part of the operand.
    fn check_at(
        &mut self,
        operand: &dyn Fn(i64) -> String,
        bytes: i64,
        write: bool,
        flags: Option<i64>,
    ) {
        let words = (bytes + 3 + 3) / WORD as i64;
        self.check_words(operand, (bytes, words), write, flags);
    }

    /// As [`check_at`](Self::check_at), with so many words compared.
    fn check_words(
        &mut self,
        operand: &dyn Fn(i64) -> String,
        (bytes, words): (i64, i64),
        write: bool,
        flags: Option<i64>,
    ) {
        self.probe();
        if let Some(delta) = flags {
            self.save_flags(delta);
        }
        self.stats.trap_checks += 1;
        self.facts.made_check();
        self.labels += 2;
        let (back, refuse) = (self.labels - 1, self.labels);
        let cold = self.trap_of(self.at, cold(operand, bytes, write, back, refuse));
        put!(self, "leaq\t{}, %r11", operand(0));
        let lines = (words + 3) / 4 >= MANY;
        let mut left = if lines {
            put!(self, "notq\t%r11");
            put!(self, "sarq\t$6, %r11");
            // What begins anywhere in a line reaches so many bytes further.
            (bytes + 2 * (LINE as i64 - 1)) / LINE as i64
        } else {
            put!(self, "shrq\t$2, %r11");
            words
        };
        let mut place = 0;
        while left > 0 {
            let (compared, suffix, own) = match left {
                1 => (1, "w", "%r14w"),
                2 => (2, "l", "%r14d"),
                _ => (4, "q", "%r14"),
            };
            // A line's number lies in front of that of the line below it.
            let at = if lines {
                2 - 2 * (place + compared)
            } else {
                2 * place
            };
            if at == 0 {
                put!(self, "cmp{suffix}\t{own}, %gs:(%r11,%r11)");
            } else {
                put!(self, "cmp{suffix}\t{own}, %gs:{at}(%r11,%r11)");
            }
            put!(self, "jne\t.Lmullion{cold}");
            place += compared;
            left -= compared;
        }
        let _ = writeln!(self.out, ".Lmullion{back}:");
        if let Some(delta) = flags {
            self.restore_flags(delta);
        }
    }

    /// What stands for a memory operand: nothing if it stays as it is.
    pub(super) fn word_place(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        role: Role,
        delta: i64,
    ) -> Result<Option<String>, Reason> {
        let instruction = &self.unit.instructions[position];
        let plain = matches!(mem.segment, None | Some(Segment::Flat));
        if instruction.mnemonic.starts_with("prefetch") && plain && !mem.rip {
            let (registers, _) = self.plain_address(mem, 0, delta);
            let number = mem.number().ok_or(Reason::Operand("no such prefetch"))?;
            if registers.starts_with("(%r15") {
                return Ok(Some(format!("{}{registers}", number - delta)));
            }
            let whole = mem.base.iter().chain(&mem.index).all(|r| r.width == 8);
            if whole && (mem.base.is_some() || mem.index.is_some()) {
                self.prefetch_shadow(position, &format!("{number}{registers}"));
            }
            return Ok(None);
        }
        if instruction.mnemonic.starts_with("movabs") {
            return Err(Reason::Address);
        }
        self.word_confined(position, mem, role, delta).map(Some)
    }

    /// The text of a memory operand that is accessed, with a check in front of it where it needs one that there is not.
    pub(super) fn word_confined(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        role: Role,
        delta: i64,
    ) -> Result<String, Reason> {
        match mem.segment {
            Some(Segment::Fs) => return self.word_thread_local(position, mem, role, delta),
            Some(Segment::Gs) => return Err(Reason::Segment),
            Some(Segment::Flat) | None => {}
        }
        if mem.rip {
            self.stats.plain += 1;
            return Ok(format!("{}(%rip)", mem.disp));
        }
        if mem.base.iter().chain(&mem.index).any(|r| r.width != 8) {
            return Err(Reason::Address);
        }
        let on_stack = mem.base.is_some_and(|b| b.number == number::RSP);
        let near = |disp: &i64| (disp - delta).abs() <= MAX_DISPLACEMENT;
        let number = mem.number();
        if on_stack
            && mem.index.is_none()
            && let Some(disp) = number.filter(near)
        {
            return Ok(self.stack_slot(disp, delta));
        }
        if let Some(disp) = self.frame_displacement(position, mem, delta) {
            return Ok(self.stack_slot(disp, delta));
        }
        if number.is_some_and(|n| i32::try_from(n).is_err()) {
            return Err(Reason::Address);
        }
        let (registers, _) = self.plain_address(mem, 0, delta);
        let registers = if mem.base.is_none() && mem.index.is_none() {
            String::new()
        } else {
            registers
        };
        let operand = |by: i64| match number {
            Some(number) if on_stack => format!("{}{registers}", number - delta + by),
            Some(number) => format!("{}{registers}", number + by),
            None if on_stack => format!("{}{:+}{registers}", mem.disp, by - delta),
            None if by == 0 => format!("{}{registers}", mem.disp),
            None => format!("{}{by:+}{registers}", mem.disp),
        };
        if !self.word_confines(role) || (on_stack && self.is_near_stack(mem, delta)) {
            self.stats.plain += 1;
            return Ok(operand(0));
        }
        let access = self.access(position).filter(|_| !on_stack);
        if access.is_some_and(|access| self.facts.covers(&access)) {
            return Ok(operand(0));
        }
        let instruction = &self.unit.instructions[position];
        let bytes = i64::from(width::bytes(instruction).ok_or(Reason::Width)?);
        let write = role.writes();
        if !self.flags_wanted_before(position) {
            self.check_at(&operand, bytes, write, None);
            return Ok(operand(0));
        }
        if mem.registers() & (1 << number::RAX) == 0 {
            self.check_at(&operand, bytes, write, Some(delta));
            if let Some(access) = access {
                self.facts.cover(access);
            }
            return Ok(operand(0));
        }
        // Flags are kept by way of `%rax`, so the address goes elsewhere.
        let register = self.borrow_register(instruction, delta)?;
        put!(self, "leaq\t{}, {register}", operand(0));
        let address = |by: i64| format!("{by}({register})");
        self.check_at(&address, bytes, write, Some(delta));
        Ok(format!("({register})"))
    }

    /// Whether an index is known to be so small that the access is as near to `%r15` as a displacement may lead.
    fn is_near_stack(&self, mem: &Mem<'u>, delta: i64) -> bool {
        let (Some(index), Some(number)) = (mem.index, mem.number()) else {
            return false;
        };
        let first = number - delta;
        index.width == 8
            && index.number != number::RSP
            && self.facts.most(index.number).is_some_and(|most| {
                let last = first + i64::from(most) * i64::from(mem.scale.max(1));
                first >= -MAX_DISPLACEMENT && last <= MAX_DISPLACEMENT
            })
    }

    /// What an instruction that was written tells of its address.
    pub(super) fn note_alignment(&mut self, position: Position) {
        if self.word().is_some()
            && is_aligned(&self.unit.instructions[position])
            && let Some(access) = self.access(position)
        {
            self.facts.tell_alignment(&access);
        }
    }

    /// What will be accessed will be checked, too: the words of the shadow are fetched ahead with those that they are of.
    fn prefetch_shadow(&mut self, position: Position, operand: &str) {
        if self.flags_wanted_before(position) {
            return;
        }
        let name = self.unit.instructions[position].mnemonic;
        put!(self, "leaq\t{operand}, %r11");
        put!(self, "shrq\t$2, %r11");
        put!(self, "{name}\t%gs:(%r11,%r11)");
    }

    /// Keeps a register that the instruction does not name, until it has been written.
    pub(super) fn borrow_register(
        &mut self,
        instruction: &Instruction<'_>,
        delta: i64,
    ) -> Result<Gpr, Reason> {
        let effects = instruction.effects();
        let free = |r: &u8| (effects.reads | effects.writes) & (1 << r) == 0;
        let register = [1, 2, 6, 7].into_iter().find(free);
        let register = register.ok_or(Reason::Scratch)?;
        if self.spilled.is_some() {
            return Err(Reason::Scratch);
        }
        let whole = Gpr::new(register, 8);
        put!(self, "movq\t{whole}, {}(%r15)", BORROWED - delta);
        self.unprobed = 0;
        self.facts.forget(register);
        self.spilled = Some((register, delta));
        Ok(whole)
    }

    /// Gives back what was borrowed for the instruction.
    pub(super) fn give_back(&mut self) {
        if let Some((register, delta)) = self.spilled.take() {
            let whole = Gpr::new(register, 8);
            put!(self, "movq\t{}(%r15), {whole}", BORROWED - delta);
            self.facts.forget(register);
        }
    }

    /// A place so far from `%r15` that it needs a check.
    pub(super) fn far_slot(&mut self, disp: i64) -> String {
        let operand = |by: i64| format!("{}(%r15)", disp + by);
        let flags = self.flags_wanted_before(self.at);
        let delta = self.plans[self.at].delta;
        self.check_at(&operand, 8, true, flags.then_some(delta));
        operand(0)
    }

    /// `movq %fs:0, %rN`: the thread pointer itself; whether that is what the instruction is.
    pub(super) fn word_thread_pointer(&mut self, position: Position) -> Result<bool, Reason> {
        let instruction = &self.unit.instructions[position];
        let [Operand::Mem(mem), Operand::Gpr(to)] = instruction.operands.as_slice() else {
            return Ok(false);
        };
        let bare = mem.segment == Some(Segment::Fs) && is_bare(mem);
        if !bare || instruction.base_mnemonic() != "mov" || to.width != 8 {
            return Ok(false);
        }
        let delta = self.plans[position].delta;
        let flags = self.flags_wanted_before(position);
        if flags && to.number == number::RAX || to.number == number::RSP {
            return Ok(false);
        }
        self.thread_pointer(*to, flags.then_some(delta));
        Ok(true)
    }

    /// Loads the thread pointer, which the last slot of the data stack's region holds.
    fn thread_pointer(&mut self, to: Gpr, flags: Option<i64>) {
        self.probe();
        if let Some(delta) = flags {
            self.save_flags(delta);
        }
        put!(self, "movq\t%r15, {to}");
        put!(self, "orq\t${:#x}, {to}", STACK_REGION - 1);
        self.facts.forget(to.number);
        if self.word_confines(Role::Read) {
            let operand = |by: i64| format!("{}({to})", TO_THREAD_POINTER + by);
            self.check_at(&operand, 8, false, None);
        }
        put!(self, "movq\t{TO_THREAD_POINTER}({to}), {to}");
        if let Some(delta) = flags {
            self.restore_flags(delta);
        }
        self.stats.thread_local += 1;
    }

    /// `%fs:x`: relative to the thread pointer, in a borrowed register.
    fn word_thread_local(
        &mut self,
        position: Position,
        mem: &Mem<'u>,
        role: Role,
        delta: i64,
    ) -> Result<String, Reason> {
        let instruction = &self.unit.instructions[position];
        let stack = |r: &Gpr| r.number == number::RSP;
        if mem.rip || mem.base.iter().chain(&mem.index).any(stack) {
            return Err(Reason::Segment);
        }
        let flags = self.flags_wanted_before(position);
        let register = self.borrow_register(instruction, delta)?;
        self.thread_pointer(register, flags.then_some(delta));
        if is_bare(mem) && role == Role::Read {
            // What is read is the thread pointer itself, by its own address in the slot.
            let slot = Gpr::new(register.number, 8);
            put!(self, "movq\t{slot}, {}(%r15)", BORROWED + 8 - delta);
            return Ok(format!("{}(%r15)", BORROWED + 8 - delta));
        }
        if let (Some(base), Some(_)) = (mem.base, mem.index) {
            put!(self, "leaq\t({register},{base}), {register}");
        }
        let (other, scale) = match (mem.base, mem.index) {
            (Some(_), Some(index)) => (Some(index), mem.scale),
            (Some(base), None) => (Some(base), 1),
            (None, index) => (index, mem.scale),
        };
        let other = other.map_or(String::new(), |r| format!(",{r},{scale}"));
        put!(self, "leaq\t{}({register}{other}), {register}", mem.disp);
        if self.word_confines(role) {
            let bytes = i64::from(width::bytes(instruction).ok_or(Reason::Width)?);
            let operand = |by: i64| format!("{by}({register})");
            self.check_at(&operand, bytes, role.writes(), flags.then_some(delta));
        }
        Ok(format!("({register})"))
    }

    /// Moves `%r15` by a constant, in steps that each end in a probe if there is more than one.
    pub(super) fn word_step(&mut self, amount: i64) {
        let mut left = amount;
        while left != 0 {
            let part = left.clamp(-MAX_DISPLACEMENT, MAX_DISPLACEMENT);
            if self.unprobed + part.abs() > MAX_DISPLACEMENT {
                self.probe();
            }
            put!(self, "leaq\t{part}(%r15), %r15");
            self.unprobed += part.abs();
            left -= part;
        }
        self.cfi.stepped(&mut self.out, amount);
    }

    /// Gives `%r15` the value in `%r11`, but for the bits that name the stack's region.
    pub(super) fn set_stack_pointer(&mut self, position: Position) -> Result<(), Reason> {
        if self.flags_read_behind(position) {
            return Err(Reason::StackFlags);
        }
        put!(self, "xorq\t%r15, %r11");
        put!(self, "andl\t${:#x}, %r11d", STACK_REGION - 1);
        put!(self, "xorq\t%r11, %r15");
        self.facts.forget(number::R15);
        Ok(())
    }

    /// `add`, `sub`, `and`, `lea` and `mov` to the stack pointer, where it is not by a constant.
    pub(super) fn word_stack_arithmetic(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        let (delta, above) = (self.plans[position].delta, self.plans[position].after);
        let base = instruction.base_mnemonic();
        let mut raise = above;
        match (base, &instruction.operands[0]) {
            ("mov", Operand::Gpr(from)) => {
                put!(self, "leaq\t{above}({}), %r11", Gpr::new(from.number, 8));
                raise = 0;
            }
            ("mov", Operand::Mem(mem)) => {
                let place = self.word_confined(position, mem, Role::Read, delta)?;
                put!(self, "movq\t{place}, %r11");
                self.give_back();
            }
            ("lea", Operand::Mem(mem)) => {
                let disp = mem.number().ok_or(Reason::StackPointer)?;
                let (address, adjusted) = self.plain_address(mem, disp + above, delta);
                put!(self, "leaq\t{adjusted}{address}, %r11");
                raise = 0;
            }
            ("add" | "sub" | "and", from @ (Operand::Gpr(_) | Operand::Imm(_))) => {
                put!(self, "leaq\t{}(%r15), %r11", -delta);
                match from {
                    Operand::Gpr(r) => put!(self, "{base}q\t{}, %r11", Gpr::new(r.number, 8)),
                    Operand::Imm(text) => put!(self, "{base}q\t${text}, %r11"),
                    _ => {}
                }
            }
            _ => return Err(Reason::StackPointer),
        }
        if raise != 0 {
            put!(self, "leaq\t{raise}(%r11), %r11");
        }
        self.set_stack_pointer(position)
    }

    /// String instructions: an access each; with `rep`, a loop of them.
    pub(super) fn word_string(&mut self, position: Position) -> Result<(), Reason> {
        let instruction = &self.unit.instructions[position];
        let name = instruction.mnemonic;
        let repeats = instruction.prefixes & (prefix::REP | prefix::REPNE) != 0;
        self.stats.strings += 1;
        let delta = self.plans[position].delta;
        let flags = self.flags_wanted_before(position);
        if !repeats {
            self.check_string(instruction, flags.then_some(delta))?;
            put!(self, "{name}");
            return Ok(());
        }
        self.probe();
        self.labels += 3;
        let (again, last, done) = (self.labels - 2, self.labels - 1, self.labels);
        let compares = name.starts_with("scas") || name.starts_with("cmps");
        if flags {
            self.save_flags(delta);
        }
        put!(self, "testq\t%rcx, %rcx");
        if compares && flags {
            // Without any comparison the flags stay what they were.
            put!(self, "jne\t.Lmullion{again}");
            self.restore_flags(delta);
            put!(self, "jmp\t.Lmullion{done}");
        } else {
            put!(self, "je\t.Lmullion{done}");
        }
        let _ = writeln!(self.out, ".Lmullion{again}:");
        self.facts.join();
        self.check_string(instruction, None)?;
        if compares {
            // The last comparison's flags are what is left, so it has a place of its own.
            put!(self, "subq\t$1, %rcx");
            put!(self, "je\t.Lmullion{last}");
            put!(self, "{name}");
            let on = if instruction.prefixes & prefix::REPNE != 0 {
                "jne"
            } else {
                "je"
            };
            put!(self, "{on}\t.Lmullion{again}");
            put!(self, "jmp\t.Lmullion{done}");
            let _ = writeln!(self.out, ".Lmullion{last}:");
            self.facts.join();
            self.check_string(instruction, None)?;
            put!(self, "{name}");
        } else {
            put!(self, "{name}");
            put!(self, "subq\t$1, %rcx");
            put!(self, "jne\t.Lmullion{again}");
        }
        let _ = writeln!(self.out, ".Lmullion{done}:");
        self.facts.join();
        if flags && !compares {
            self.restore_flags(delta);
        }
        Ok(())
    }

    fn check_string(
        &mut self,
        instruction: &Instruction<'_>,
        flags: Option<i64>,
    ) -> Result<(), Reason> {
        let bytes = i64::from(width::bytes(instruction).ok_or(Reason::Width)?);
        let (destination, source) = match &instruction.mnemonic[..4] {
            "movs" => (Some(Role::Write), Some(Role::Read)),
            "stos" => (Some(Role::Write), None),
            "lods" => (None, Some(Role::Read)),
            "scas" => (Some(Role::Read), None),
            _ => (Some(Role::Read), Some(Role::Read)),
        };
        for (role, register) in [(destination, 7), (source, 6)] {
            if let Some(role) = role.filter(|role| self.word_confines(*role)) {
                let register = Gpr::new(register, 8);
                let operand = |by: i64| format!("{by}({register})");
                self.check_at(&operand, bytes, role.writes(), flags);
            }
        }
        Ok(())
    }
}

/// Where a borrowed register is kept, from the source's stack pointer: above what the flags and `%rax` are kept in.
const BORROWED: i64 = SPILL + 16;

/// `%fs:0`
fn is_bare(mem: &Mem<'_>) -> bool {
    mem.base.is_none() && mem.index.is_none() && mem.number() == Some(0)
}

/// Whether what comes behind the instruction need not come, or is not known to find registers as they are.
fn ends_line(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.row.class,
        Class::Jcc | Class::Jmp | Class::Call | Class::Ret | Class::Stop | Class::String
    )
}

/// The bytes around an access that others of the same straight line touch in the same way, without a gap of a word.
fn adjoining(access: Covered, others: &[Covered]) -> Covered {
    let around = |write: bool| {
        let mut range = access;
        loop {
            let before = range;
            for other in others.iter().filter(|other| other.write == write) {
                let near = other.first <= range.whole + 3 && range.first <= other.whole + 3;
                let both = together(&range, other);
                if near && both.whole - both.first <= MOST {
                    range = both;
                }
            }
            if range == before {
                return range;
            }
        }
    };
    if access.write {
        return around(true);
    }
    // A read that is a write as well, further on, is checked as one.
    let written = others
        .iter()
        .find(|other| other.write && other.first <= access.first && access.whole <= other.whole);
    match written {
        // Of an aligned store the words are checked, and the read may need more.
        Some(written) => adjoining(together(written, &access), others),
        None => around(false),
    }
}

/// The bytes of both, and those between.
fn together(a: &Covered, b: &Covered) -> Covered {
    let (first, whole) = (a.first.min(b.first), a.whole.max(b.whole));
    let end = match (a.first - b.first) % WORD as i64 {
        0 => a.end.max(b.end),
        _ => whole,
    };
    Covered {
        first,
        end,
        whole,
        ..*a
    }
}

/// Whether an access faults unless its address is a multiple of 16 (`docs/word-form.md`).
fn is_aligned(instruction: &Instruction<'_>) -> bool {
    let name = instruction.mnemonic;
    matches!(
        name.strip_prefix('v').unwrap_or(name),
        "movaps" | "movapd" | "movdqa"
    )
}

/// What is done where a word is not the domain's own: each point is looked at by itself.
fn cold(
    operand: &dyn Fn(i64) -> String,
    bytes: i64,
    write: bool,
    back: usize,
    refuse: usize,
) -> String {
    let right = if write { right::WRITE } else { right::READ };
    let mut points: Vec<i64> = (0..bytes - 1).step_by(WORD as usize).collect();
    points.push(bytes - 1);
    let mut text = String::new();
    for (number, point) in points.iter().enumerate() {
        let last = number + 1 == points.len();
        let _ = write!(
            text,
            "leaq\t{}, {R11}\n\tshrq\t$2, %r11\n\tmovzwl\t%gs:(%r11,%r11), %r11d\n\ttestb\t${right}, %gs:(%r14d,%r11d)\n\t",
            operand(*point)
        );
        if last {
            let _ = writeln!(text, "jne\t.Lmullion{back}");
        } else {
            let _ = write!(text, "je\t.Lmullion{refuse}\n\t");
        }
    }
    let _ = write!(text, ".Lmullion{refuse}:\n\tud1\t%ecx, %eax");
    text
}
