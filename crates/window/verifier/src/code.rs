//! The linear pass over executable segments.
//!
//! Each instruction is decoded once, in ascending order. Branches mark their
//! targets; an instruction that is already known as a target starts a new
//! straight line. A branch back to an instruction that is passed is checked at
//! the end. It is held against the instructions' starts and against the intervals in which
//! something relied on what came before.

use crate::Report;
use crate::image::Image;
use crate::line::{Check, Line, Value};
use crate::stats::Stats;
use mullion_abi as abi;
use mullion_decoder::decode::{self, Instruction, NONE, R14, R15, RIP, RSP, WINDOW};
use mullion_decoder::marks::Marks;
use mullion_decoder::row::{self, Kind};
use mullion_image::{Permission, Segment};
use mullion_rules::{Place, Rule, Violation};

/// An access to memory by an operand.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) write: bool,
    /// It may not happen although the instruction completes.
    pub(crate) lazy: bool,
    pub(crate) gs: bool,
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) scale: u8,
    pub(crate) displacement: i32,
    /// Bytes of the instruction.
    pub(crate) length: u32,
}

impl Access {
    /// Whether what an operand relative to `%rip` reaches lies in the window.
    #[inline(always)]
    fn is_inside(&self, at: u32) -> bool {
        let target = i64::from(at) + i64::from(self.length) + i64::from(self.displacement);
        let inside = abi::GUARD_SIZE as i64..(abi::WINDOW_SIZE - abi::GUARD_SIZE) as i64;
        inside.contains(&target)
    }
}

/// An executable segment and what the pass has learnt about it.
#[derive(Default)]
pub(crate) struct Code<'a> {
    pub(crate) start: u32,
    pub(crate) bytes: &'a [u8],
    pub(crate) marks: Marks,
}

impl Code<'_> {
    #[inline]
    fn position(&self, offset: u64) -> Option<usize> {
        let position = usize::try_from(offset.checked_sub(u64::from(self.start))?).ok()?;
        (position < self.bytes.len()).then_some(position)
    }
}

/// Everything that the pass carries along.
pub(crate) struct Pass<'a> {
    /// The segment that is passed over; an empty one stands in its place in `codes`.
    pub(crate) code: Code<'a>,
    pub(crate) codes: Vec<Code<'a>>,
    pub(crate) confine_reads: bool,
    pub(crate) imports: u64,
    pub(crate) line: Line,
    pub(crate) stats: Stats,
}

/// Checks every executable segment of `image`.
pub(crate) fn check(image: &Image, report: &mut Report) -> Stats {
    let codes = image
        .segments()
        .iter()
        .filter(|segment| matches!(segment.permission, Permission::ReadExecute));
    let mut pass = Pass {
        code: Code::default(),
        codes: codes.map(|segment| code(image, segment)).collect(),
        confine_reads: image.protection() != abi::Protection::WriteCall,
        imports: image.imports().len() as u64,
        line: Line::new(),
        stats: Stats::new(image.imports().len()),
    };
    for number in 0..pass.codes.len() {
        pass.exchange(number);
        pass.scan(report);
        pass.exchange(number);
    }
    pass.branches(report);
    pass.labels(report);
    pass.stats
}

fn code<'a>(image: &'a Image, segment: &Segment) -> Code<'a> {
    let bytes = image.contents(segment);
    // A segment ends below 4 GiB; the image's checks saw to it.
    Code {
        start: segment.offset as u32,
        bytes,
        marks: Marks::new(bytes.len()),
    }
}

/// The first [`WINDOW`] bytes, and how many an instruction may have; where there
/// are fewer, the zeros of `copy` follow them.
#[inline(always)]
fn window<'a>(bytes: &'a [u8], copy: &'a mut [u8; WINDOW]) -> (&'a [u8; WINDOW], usize) {
    match bytes.first_chunk() {
        Some(window) => (window, decode::LONGEST),
        None => {
            *copy = [0; WINDOW];
            copy.iter_mut()
                .zip(bytes)
                .for_each(|(to, from)| *to = *from);
            (copy, bytes.len().min(decode::LONGEST))
        }
    }
}

fn violation(code: &Code, position: usize, length: usize, rule: Rule) -> Violation {
    let bytes = code
        .bytes
        .iter()
        .skip(position)
        .take(length)
        .copied()
        .collect();
    Violation {
        place: Place::Window(u64::from(code.start) + position as u64),
        rule,
        bytes,
    }
}

impl Pass<'_> {
    /// Takes segment `number` out of the list, or puts it back.
    fn exchange(&mut self, number: usize) {
        if let Some(code) = self.codes.get_mut(number) {
            std::mem::swap(code, &mut self.code);
        }
    }

    fn scan(&mut self, report: &mut Report) {
        let (start, bytes) = (self.code.start, self.code.bytes);
        let mut position = 0;
        self.line = Line::new();
        while let Some(rest @ [_, ..]) = bytes.get(position..) {
            let at = start + position as u32;
            let mut broken = None;
            if self.code.marks.start(position) {
                broken = self.settle().err();
                self.line.restart();
            }
            position += match rest.first_chunk() {
                Some(window) if broken.is_none() => match self.fast_path(window, at) {
                    Some(length) => length as usize,
                    None => self.slow_path(position, rest, broken, report),
                },
                _ => self.slow_path(position, rest, broken, report),
            };
        }
        if let Err(rule) = self.settle() {
            report.add(|| violation(&self.code, bytes.len(), 0, rule));
        }
        report.next_phase();
    }

    /// Passes any instruction, and returns its length. A rule may be broken already.
    #[inline(never)]
    fn slow_path(
        &mut self,
        position: usize,
        rest: &[u8],
        mut broken: Option<Rule>,
        report: &mut Report,
    ) -> usize {
        let length = match decode::decode(window(rest, &mut [0; WINDOW])) {
            Ok(instruction) => {
                let at = self.code.start + position as u32;
                let outcome = self.instruction(&instruction, at, rest);
                broken = broken.or(outcome.err());
                usize::from(instruction.length)
            }
            Err(refusal) => {
                broken = Some(refusal.into());
                self.resume(position)
            }
        };
        if let Some(rule) = broken {
            self.line.restart();
            report.add(|| violation(&self.code, position, length.min(15), rule));
        }
        length
    }

    /// After bytes that cannot be decoded: how far it is to the next place that
    /// is surely an instruction, so that one hole is one violation.
    #[cold]
    fn resume(&mut self, position: usize) -> usize {
        let mut end = position + 1;
        while let Some(rest @ [_, ..]) = self.code.bytes.get(end..) {
            if self.code.marks.is_target(end) || rest.starts_with(&abi::LABEL_NOP) {
                break;
            }
            self.code.marks.start(end);
            end += 1;
        }
        end - position
    }

    /// A straight line may end here.
    #[inline]
    pub(crate) fn settle(&self) -> Result<(), Rule> {
        if self.line.unfinished() {
            return Err(Rule::StackUnfinished);
        }
        if self.line.stepped.is_some() {
            return Err(Rule::StackProbe);
        }
        Ok(())
    }

    /// No branch may go behind `from` up to `at`.
    #[inline]
    pub(crate) fn close(&mut self, from: u32, at: u32) {
        let position = |offset: u32| offset.saturating_sub(self.code.start) as usize;
        let (from, to) = (position(from) + 1, position(at) + 1);
        self.code.marks.close(from, to);
    }

    #[inline]
    fn rely(&mut self, register: u8, at: u32) {
        let from = self.line.rely(register, at);
        self.close(from, at);
    }

    #[inline]
    pub(crate) fn instruction(
        &mut self,
        instruction: &Instruction,
        at: u32,
        bytes: &[u8],
    ) -> Result<(), Rule> {
        self.stats.instructions += 1;
        let row = instruction.row;
        if instruction.names(RSP) {
            operands(instruction)?;
        }
        if instruction.memory && !row.has(row::NO_ACCESS) {
            let access = Access {
                write: row.has(row::RM_WRITE),
                lazy: row.has(row::LAZY),
                gs: instruction.gs,
                base: instruction.base,
                index: instruction.index,
                scale: instruction.scale,
                displacement: instruction.displacement,
                length: u32::from(instruction.length),
            };
            self.access(&access, at)?;
        }
        if row.has(row::X87 | row::MXCSR) {
            self.stats.x87 |= row.has(row::X87);
            self.stats.mxcsr |= row.has(row::MXCSR);
        }
        let done = match row.kind {
            Kind::Plain => false,
            Kind::Move => self.line.labelled && self.copy(instruction, at),
            _ => self.special(instruction, at, bytes)?,
        };
        if done {
            return Ok(());
        }
        self.writes(instruction, at, bytes)
    }

    /// Instructions that mean more than their operands say. True: nothing is left to do.
    #[inline]
    fn special(&mut self, instruction: &Instruction, at: u32, bytes: &[u8]) -> Result<bool, Rule> {
        let wide = instruction.size == 8;
        let registers = !instruction.memory;
        match instruction.row.kind {
            Kind::MoveImmediate
                if instruction.size == 4
                    && instruction.immediate(bytes) as u32 == abi::LABEL.wrapping_neg() =>
            {
                if instruction.rm == R15 {
                    return Ok(false);
                }
                self.line.set(instruction.rm, Value::COMPLEMENT, at);
                return Ok(instruction.rm != R14);
            }
            Kind::AddTo if registers && wide && instruction.reg == R14 => {
                return self.base_added(instruction.rm, instruction.rm, at);
            }
            Kind::AddFrom if registers && wide && instruction.rm == R14 => {
                return self.base_added(instruction.reg, instruction.reg, at);
            }
            Kind::AddFrom if instruction.memory && instruction.size == 4 => {
                self.label_load(instruction, at)?;
                return Ok(false);
            }
            Kind::Arithmetic
                if registers
                    && wide
                    && instruction.rm == R15
                    && matches!(instruction.reg & 7, 0 | 5) =>
            {
                let step = if instruction.reg & 7 == 0 {
                    instruction.immediate(bytes)
                } else {
                    -instruction.immediate(bytes)
                };
                return self.step(step, at);
            }
            Kind::Lea if wide => return self.lea(instruction, at),
            Kind::Nop if bytes.starts_with(&abi::LABEL_NOP) => {
                self.stats.labels += 1;
                self.end()?;
            }
            Kind::Conditional => {
                self.settle()?;
                self.target(instruction.branch(bytes, at))?;
                if let Some(check) = self.line.check
                    && check.end == at
                    && instruction.opcode & 15 == 5
                {
                    self.close(check.made, at);
                    self.labelled(check.register, at);
                }
            }
            Kind::Jump | Kind::Call => {
                self.target(instruction.branch(bytes, at))?;
                self.end()?;
            }
            Kind::Return => self.end()?,
            Kind::Indirect => {
                if !self
                    .line
                    .value(instruction.rm)
                    .is(Value::WINDOW.and(Value::LABELLED))
                {
                    return Err(Rule::IndirectUnchecked);
                }
                self.rely(instruction.rm, at);
                self.stats.indirect += 1;
                self.end()?;
            }
            Kind::Movs | Kind::Cmps => {
                self.string(at, &[(7, true), (6, false)], instruction.row.kind)?
            }
            Kind::Stos | Kind::Scas => self.string(at, &[(7, true)], instruction.row.kind)?,
            Kind::Lods => self.string(at, &[(6, false)], instruction.row.kind)?,
            // Nothing behind it in this line is ever executed.
            Kind::Stop => self.line.restart(),
            Kind::Breakpoint => self.end()?,
            _ => {}
        }
        Ok(false)
    }

    /// `jne` was not taken: `register` holds the offset of a labelled place.
    #[inline]
    fn labelled(&mut self, register: u8, at: u32) {
        self.line.labelled = true;
        if self.line.value(register).is(Value::ZERO) {
            self.rely(register, at);
            self.line
                .set(register, Value::ZERO.and(Value::LABELLED), at);
        } else {
            self.line.set(register, Value::LABELLED, at);
        }
    }

    /// The straight line ends behind this instruction.
    #[inline]
    pub(crate) fn end(&mut self) -> Result<(), Rule> {
        self.settle()?;
        self.line.restart();
        Ok(())
    }

    /// `movl` between registers hands a label check on.
    #[inline]
    fn copy(&mut self, instruction: &Instruction, at: u32) -> bool {
        let load = instruction.opcode == 0x8b;
        let (to, from) = if load {
            (instruction.reg, instruction.rm)
        } else {
            (instruction.rm, instruction.reg)
        };
        let narrow = !instruction.memory && instruction.size == 4;
        if !narrow || !self.line.value(from).is(Value::LABELLED) || to == R14 || to == R15 {
            return false;
        }
        self.rely(from, at);
        self.line.set(to, Value::ZERO.and(Value::LABELLED), at);
        true
    }

    /// `to` becomes the sum of the window's base and `offset`.
    #[inline]
    fn base_added(&mut self, to: u8, offset: u8, at: u32) -> Result<bool, Rule> {
        let value = self.line.value(offset);
        if to == R14 || !value.is(Value::ZERO) {
            return Ok(false);
        }
        self.rely(offset, at);
        if to == R15 {
            self.line.stepped = None;
            self.line.steps = 0;
            self.line.set(R15, Value::WINDOW, at);
        } else if value.is(Value::LABELLED) {
            self.line.set(to, Value::WINDOW.and(Value::LABELLED), at);
        } else {
            self.line.set(to, Value::WINDOW, at);
        }
        Ok(true)
    }

    /// `leaq`: a step of the data stack pointer, or the making of a window pointer.
    #[inline]
    fn lea(&mut self, instruction: &Instruction, at: u32) -> Result<bool, Rule> {
        if instruction.reg == R15 && instruction.base == R15 && instruction.index == NONE {
            return self.step(i64::from(instruction.displacement), at);
        }
        if instruction.base == R14 && instruction.scale == 0 && instruction.displacement == 0 {
            return self.base_added(instruction.reg, instruction.index, at);
        }
        Ok(false)
    }

    /// A constant step of `%r15`.
    pub(crate) fn step(&mut self, step: i64, at: u32) -> Result<bool, Rule> {
        if self.line.unfinished() {
            return Err(Rule::RegisterR15);
        }
        let line = &mut self.line;
        let steps = line.steps + step;
        if steps.abs() > abi::MAX_DISPLACEMENT {
            return Err(Rule::StackStep);
        }
        line.stepped.get_or_insert(at);
        line.steps = steps;
        Ok(true)
    }

    /// The load of a label check, if it is one: `addl` of the four bytes in front
    /// of the target to the label's complement.
    fn label_load(&mut self, instruction: &Instruction, at: u32) -> Result<(), Rule> {
        let (sum, base, index) = (instruction.reg, instruction.base, instruction.index);
        if !self.line.value(sum).is(Value::COMPLEMENT) || instruction.displacement != -4 {
            return Ok(());
        }
        let offset = match (instruction.gs, base, index) {
            (true, base, NONE) if base < NONE => base,
            (false, R14, index)
                if instruction.scale == 0 && self.line.value(index).is(Value::ZERO) =>
            {
                index
            }
            _ => return Ok(()),
        };
        if offset == sum || offset == R14 || offset == R15 {
            return Ok(());
        }
        self.rely(sum, at);
        if !instruction.gs {
            self.rely(offset, at);
        }
        self.line.check = Some(Check {
            register: offset,
            made: at,
            end: at + u32::from(instruction.length),
        });
        Ok(())
    }

    #[inline]
    fn string(&mut self, at: u32, pointers: &[(u8, bool)], kind: Kind) -> Result<(), Rule> {
        self.stats.strings += 1;
        for &(register, destination) in pointers {
            let written = destination && matches!(kind, Kind::Movs | Kind::Stos);
            if !written && !self.confine_reads {
                continue;
            }
            if !self.line.value(register).is(Value::WINDOW) {
                return Err(Rule::StringUnconfined);
            }
            self.rely(register, at);
        }
        Ok(())
    }

    /// A direct branch.
    #[inline]
    pub(crate) fn target(&mut self, target: i64) -> Result<(), Rule> {
        let target = u64::try_from(target).map_err(|_| Rule::BranchOutside)?;
        if let Some(position) = self.code.position(target) {
            self.code.marks.target(position);
            return Ok(());
        }
        if (abi::GATE_BASE..abi::GATE_BASE + abi::GATE_AREA_SIZE).contains(&target) {
            return self.gate(target - abi::GATE_BASE);
        }
        for code in &mut self.codes {
            if let Some(position) = code.position(target) {
                code.marks.target(position);
                return Ok(());
            }
        }
        Err(Rule::BranchOutside)
    }

    fn gate(&mut self, distance: u64) -> Result<(), Rule> {
        let slot = distance / abi::GATE_SLOT_SIZE;
        let built_in = (1..abi::GATE_BUILTIN_END).contains(&slot);
        let import =
            (abi::GATE_FIRST_IMPORT..abi::GATE_FIRST_IMPORT + self.imports).contains(&slot);
        if !distance.is_multiple_of(abi::GATE_SLOT_SIZE) || !(built_in || import) {
            return Err(Rule::GateSlot);
        }
        self.stats.count_gate(slot);
        Ok(())
    }

    /// Whether a memory operand is confined as far as it must be, by one of the forms
    /// of the page. Which of them it is follows no pattern, so it is not branched on
    /// without need. Changes nothing where the answer is no.
    #[inline(always)]
    pub(crate) fn access(&mut self, access: &Access, at: u32) -> Result<(), Rule> {
        let (base, index) = (access.base, access.index);
        let near = access.displacement.unsigned_abs() <= abi::MAX_DISPLACEMENT as u32;
        let stack = (base == R15) & (index == NONE) & !self.line.unfinished();
        let zero = self.line.value(index).is(Value::ZERO);
        let offset = (base == R14) & (access.scale == 0) & zero;
        let pointer = (index == NONE) & (base != R15) & self.line.value(base).is(Value::WINDOW);
        let rip = (base == RIP) & access.is_inside(at);
        let free = !(access.write | self.confine_reads);
        if !(access.gs | rip | free | (near & (stack | offset | pointer))) {
            return Err(self.denial(*access));
        }
        if access.gs {
            // Whether or not it must be confined: `Verified::needs_gs_base` relies on this.
            self.stats.gs += 1;
        } else if free {
            self.stats.reads_unconfined += 1;
        } else if offset {
            self.rely(index, at);
            self.stats.offset += 1;
        } else if pointer {
            self.rely(base, at);
            self.stats.pointer += 1;
        } else {
            self.stats.stack += u64::from(stack);
            self.stats.rip += u64::from(rip);
        }
        if stack & near & !access.gs & !access.lazy {
            self.probe(at);
        }
        Ok(())
    }

    /// Why it is not confined.
    #[cold]
    fn denial(&self, access: Access) -> Rule {
        let (base, index) = (access.base, access.index);
        let zero = self.line.value(index).is(Value::ZERO);
        if base == R15 && index == NONE && self.line.unfinished() {
            Rule::StackUnfinished
        } else if base == RIP {
            Rule::RipTarget
        } else if (base == R15 && index == NONE)
            || (base == R14 && access.scale == 0 && zero)
            || (index == NONE && self.line.value(base).is(Value::WINDOW))
        {
            Rule::Displacement
        } else if access.write {
            Rule::WriteUnconfined
        } else {
            Rule::ReadUnconfined
        }
    }

    /// An access to the data stack, which faults if the steps left the window.
    #[inline]
    pub(crate) fn probe(&mut self, at: u32) {
        if let Some(from) = self.line.stepped.take() {
            self.line.steps = 0;
            self.close(from, at);
        }
    }

    /// What the instruction does to general registers.
    #[inline]
    fn writes(&mut self, instruction: &Instruction, at: u32, bytes: &[u8]) -> Result<(), Rule> {
        let row = instruction.row;
        if row.has(row::INTRICATE) {
            return self.intricate_writes(instruction, at, bytes);
        }
        let (register, loose) = if row.has(row::REG_WRITE) {
            (instruction.reg, row.has(row::REG_LOOSE))
        } else if row.has(row::RM_WRITE) {
            (instruction.rm, row.has(row::RM_LOOSE))
        } else {
            return Ok(());
        };
        self.write(register, loose, instruction, at)
    }

    /// As above, where there may be several registers, or one of 8 bits.
    fn intricate_writes(
        &mut self,
        instruction: &Instruction,
        at: u32,
        bytes: &[u8],
    ) -> Result<(), Rule> {
        let row = instruction.row;
        self.line.clobber(row.clobbers, at);
        if row.has(row::REG_WRITE) {
            let register = byte_register(instruction, instruction.reg, row::REG_BYTE);
            let loose = row.has(row::REG_LOOSE | row::REG_BYTE);
            self.write(register, loose, instruction, at)?;
        }
        if row.has(row::RM_WRITE) && row.has(row::RM_GPR) && !instruction.memory {
            let register = byte_register(instruction, instruction.rm, row::RM_BYTE);
            let by_zero = row.kind == Kind::Shift && instruction.immediate(bytes) & 31 == 0;
            let loose = row.has(row::RM_LOOSE | row::RM_BYTE) || by_zero;
            self.write(register, loose, instruction, at)?;
        }
        if row.has(row::V_WRITE) {
            self.write(instruction.vvvv, false, instruction, at)?;
        }
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        register: u8,
        loose: bool,
        instruction: &Instruction,
        at: u32,
    ) -> Result<(), Rule> {
        let zero_extends = !loose & ((instruction.size == 4) | instruction.row.has(row::FIXED32));
        if register == R14 {
            return Err(Rule::RegisterR14);
        }
        if register == R15 {
            if !zero_extends {
                return Err(Rule::RegisterR15);
            }
            self.line.stepped = None;
            self.line.steps = 0;
        }
        self.line.set(register, Value::zero_if(zero_extends), at);
        Ok(())
    }

    /// Branches to where none may go.
    fn branches(&self, report: &mut Report) {
        if !self.codes.iter().any(|code| code.marks.has_conflict()) {
            return;
        }
        for code in &self.codes {
            let mut position = 0;
            while let Some(start) = code.marks.next_start(position) {
                position = start + 1;
                let rest = code.bytes.get(start..).unwrap_or(&[]);
                let Ok(instruction) = decode::decode(window(rest, &mut [0; WINDOW])) else {
                    continue;
                };
                let length = usize::from(instruction.length);
                if !matches!(
                    instruction.row.kind,
                    Kind::Conditional | Kind::Jump | Kind::Call
                ) {
                    continue;
                }
                let target = instruction.branch(rest, code.start + start as u32);
                let place = u64::try_from(target).ok().and_then(|target| {
                    let mut codes = self.codes.iter();
                    codes.find_map(|code| Some((code, code.position(target)?)))
                });
                if let Some((other, position)) = place
                    && other.marks.is_conflict(position)
                {
                    let known = other.marks.is_start(position);
                    let rule = if known {
                        Rule::BranchSequence
                    } else {
                        Rule::BranchTarget
                    };
                    report.add(|| violation(code, start, length, rule));
                }
            }
        }
        report.next_phase();
    }

    /// Occurrences of the label that are no label instruction.
    fn labels(&self, report: &mut Report) {
        let label = abi::LABEL.to_le_bytes();
        for code in &self.codes {
            let fragment = (1..label.len()).any(|cut| {
                label
                    .get(cut..)
                    .is_some_and(|tail| code.bytes.starts_with(tail))
            });
            if fragment {
                report.add(|| violation(code, 0, label.len(), Rule::LabelFragment));
            }
            for found in mullion_decoder::label::occurrences(code.bytes, label) {
                let nop = found.checked_sub(abi::LABEL_NOP.len() - label.len());
                let proper = nop.is_some_and(|start| {
                    code.marks.is_start(start)
                        && code
                            .bytes
                            .get(start..)
                            .is_some_and(|bytes| bytes.starts_with(&abi::LABEL_NOP))
                });
                if !proper {
                    report.add(|| violation(code, found, label.len(), Rule::LabelStray));
                }
            }
        }
        report.next_phase();
    }
}

/// The register of an operand that may be one of `%ah`, `%ch`, `%dh`, `%bh`.
#[inline]
fn byte_register(instruction: &Instruction, register: u8, byte: u64) -> u8 {
    match instruction.row.has(byte) && !instruction.rex && register >= 4 {
        true => register - 4,
        false => register,
    }
}

/// `%rsp` is no operand.
#[inline]
fn operands(instruction: &Instruction) -> Result<(), Rule> {
    let row = instruction.row;
    let rm = if instruction.memory {
        instruction.base == RSP
    } else {
        row.has(row::RM_GPR) && byte_register(instruction, instruction.rm, row::RM_BYTE) == RSP
    };
    let reg =
        row.has(row::REG_GPR) && byte_register(instruction, instruction.reg, row::REG_BYTE) == RSP;
    let vvvv = row.has(row::V_GPR) && instruction.vvvv == RSP;
    if rm || reg || vvvv {
        Err(Rule::RegisterRsp)
    } else {
        Ok(())
    }
}
