//! The linear pass over executable segments.
//!
//! Each instruction is decoded once, in ascending order. Branches mark their
//! targets in a bitmap; an instruction that is already known as a target starts
//! a new straight line. A branch back to an instruction that is passed is
//! checked at the end, against the instructions' starts and against the
//! intervals in which something relied on what came before.

use crate::bitmap::Bitmap;
use crate::decode::{self, Instruction, R14, R15, RIP, RSP, WINDOW};
use crate::image::{Image, Segment};
use crate::line::{Line, Value};
use crate::report::Report;
use crate::row::{self, Kind};
use crate::rule::{Place, Rule, Violation};
use crate::stats::Stats;
use mullion_abi as abi;

/// The form in which an instruction accesses memory, in the page's numbering.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Gs,
    Offset,
    Pointer,
    Stack,
    Rip,
}

/// An executable segment and what the pass has learnt about it.
struct Code<'a> {
    start: u32,
    bytes: &'a [u8],
    starts: Bitmap,
    targets: Bitmap,
    /// Where no branch may enter.
    closed: Bitmap,
}

impl Code<'_> {
    fn position(&self, offset: u64) -> Option<usize> {
        let position = usize::try_from(offset.checked_sub(u64::from(self.start))?).ok()?;
        (position < self.bytes.len()).then_some(position)
    }

    /// Positions that are branched to but must not be.
    fn conflicts(&self) -> Bitmap {
        let mut conflicts = Bitmap::new(self.bytes.len());
        let words = self
            .targets
            .words()
            .iter()
            .zip(self.starts.words())
            .zip(self.closed.words());
        for (number, ((targets, starts), closed)) in words.enumerate() {
            let mut word = targets & (closed | !starts);
            while word != 0 {
                conflicts.set(number * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        conflicts
    }
}

/// Everything that the pass carries along.
struct Pass<'a> {
    codes: Vec<Code<'a>>,
    confine_reads: bool,
    imports: u64,
    line: Line,
    stats: Stats,
}

/// Checks every executable segment of `image`.
pub(crate) fn check(image: &Image, report: &mut Report) -> Stats {
    let codes = image
        .segments()
        .iter()
        .filter(|segment| segment.permission().is_executable());
    let mut pass = Pass {
        codes: codes.map(|segment| code(image, segment)).collect(),
        confine_reads: image.protection() != abi::Protection::WriteCall,
        imports: image.imports().len() as u64,
        line: Line::new(),
        stats: Stats::new(image.imports().len()),
    };
    for number in 0..pass.codes.len() {
        pass.scan(number, report);
    }
    pass.branches(report);
    pass.labels(report);
    pass.stats
}

fn code<'a>(image: &'a Image, segment: &Segment) -> Code<'a> {
    let bytes = image.contents(segment);
    let bitmap = || Bitmap::new(bytes.len());
    // A segment ends below 4 GiB; the image's checks saw to it.
    Code {
        start: segment.offset() as u32,
        bytes,
        starts: bitmap(),
        targets: bitmap(),
        closed: bitmap(),
    }
}

/// The first [`WINDOW`] bytes, zero-filled behind the end.
#[inline]
fn window(bytes: &[u8]) -> [u8; WINDOW] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut window = [0; WINDOW];
        window
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        window
    })
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
    fn scan(&mut self, number: usize, report: &mut Report) {
        let Some((start, bytes)) = self.codes.get(number).map(|code| (code.start, code.bytes))
        else {
            return;
        };
        let mut position = 0;
        self.line = Line::new();
        while let Some(rest @ [_, ..]) = bytes.get(position..) {
            let Some(code) = self.codes.get_mut(number) else {
                return;
            };
            code.starts.set(position);
            let mut broken = None;
            if code.targets.get(position) {
                broken = self.settle().err();
                self.line = Line::new();
            }
            let window = window(rest);
            let mut instruction = Instruction::blank();
            let length = match decode::decode_into(&mut instruction, &window, rest.len()) {
                Ok(()) => {
                    let at = start + position as u32;
                    let outcome = self.instruction(number, &instruction, at, &window);
                    broken = broken.or(outcome.err());
                    usize::from(instruction.length)
                }
                Err(rule) => {
                    broken = Some(rule);
                    self.resume(number, position)
                }
            };
            if let Some(rule) = broken {
                self.line = Line::new();
                if let Some(code) = self.codes.get(number) {
                    report.add(|| violation(code, position, length.min(15), rule));
                }
            }
            position += length;
        }
        if let (Err(rule), Some(code)) = (self.settle(), self.codes.get(number)) {
            report.add(|| violation(code, bytes.len(), 0, rule));
        }
        report.next_phase();
    }

    /// After bytes that cannot be decoded: how far it is to the next place that
    /// is surely an instruction, so that one hole is one violation.
    fn resume(&mut self, number: usize, position: usize) -> usize {
        let Some(code) = self.codes.get_mut(number) else {
            return 1;
        };
        let mut end = position + 1;
        while let Some(rest @ [_, ..]) = code.bytes.get(end..) {
            if code.targets.get(end) || rest.starts_with(&abi::LABEL_NOP) {
                break;
            }
            end += 1;
        }
        code.starts.set_range(position, end);
        end - position
    }

    /// A straight line may end here.
    #[inline]
    fn settle(&self) -> Result<(), Rule> {
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
    fn close(&mut self, number: usize, from: u32, at: u32) {
        if let Some(code) = self.codes.get_mut(number) {
            let position = |offset: u32| offset.saturating_sub(code.start) as usize;
            code.closed.set_range(position(from) + 1, position(at) + 1);
        }
    }

    #[inline]
    fn rely(&mut self, number: usize, register: u8, at: u32) {
        let from = self.line.rely(register, at);
        self.close(number, from, at);
    }

    #[inline]
    fn instruction(
        &mut self,
        number: usize,
        instruction: &Instruction,
        at: u32,
        window: &[u8; WINDOW],
    ) -> Result<(), Rule> {
        self.stats.instructions += 1;
        let row = instruction.row;
        operands(instruction)?;
        let check = self.line.check.take();
        if instruction.memory && !row.has(row::NO_ACCESS) {
            self.access(number, instruction, at)?;
        }
        if row.has(row::X87 | row::MXCSR) {
            self.stats.x87 |= row.has(row::X87);
            self.stats.mxcsr |= row.has(row::MXCSR);
        }
        if row.kind != Kind::Plain && self.special(number, instruction, at, window, check)? {
            return Ok(());
        }
        self.writes(instruction, at)
    }

    /// Instructions that mean more than their operands say. True: nothing is left to do.
    #[inline]
    fn special(
        &mut self,
        number: usize,
        instruction: &Instruction,
        at: u32,
        window: &[u8; WINDOW],
        check: Option<(u8, u32)>,
    ) -> Result<bool, Rule> {
        let wide = instruction.size == 8;
        let registers = !instruction.memory;
        match instruction.row.kind {
            Kind::Move if registers && instruction.size == 4 => {
                return Ok(self.copy(number, instruction, at));
            }
            Kind::MoveImmediate
                if instruction.size == 4
                    && instruction.immediate as u32 == abi::LABEL.wrapping_neg() =>
            {
                if instruction.rm == R15 {
                    return Ok(false);
                }
                self.line.set(instruction.rm, Value::Complement, at);
                return Ok(instruction.rm != R14);
            }
            Kind::AddTo if registers && wide && instruction.reg == R14 => {
                return self.base_added(number, instruction.rm, instruction.rm, at);
            }
            Kind::AddFrom if registers && wide && instruction.rm == R14 => {
                return self.base_added(number, instruction.reg, instruction.reg, at);
            }
            Kind::AddFrom if instruction.memory && instruction.size == 4 => {
                self.label_load(number, instruction, at)?;
                return Ok(false);
            }
            Kind::Arithmetic
                if registers
                    && wide
                    && instruction.rm == R15
                    && matches!(instruction.reg & 7, 0 | 5) =>
            {
                let step = if instruction.reg & 7 == 0 {
                    instruction.immediate
                } else {
                    -instruction.immediate
                };
                return self.step(step, at);
            }
            Kind::Lea if wide => return self.lea(number, instruction, at),
            Kind::Nop if window.starts_with(&abi::LABEL_NOP) => {
                self.stats.labels += 1;
                self.end()?;
            }
            Kind::Conditional => {
                self.settle()?;
                self.target(number, instruction, at)?;
                if let (Some((register, made)), 5) = (check, instruction.opcode & 15) {
                    self.close(number, made, at);
                    self.labelled(number, register, at);
                }
            }
            Kind::Jump | Kind::Call => {
                self.target(number, instruction, at)?;
                self.end()?;
            }
            Kind::Return => self.end()?,
            Kind::Indirect => {
                if self.line.value(instruction.rm) != Value::WindowLabelled {
                    return Err(Rule::IndirectUnchecked);
                }
                self.rely(number, instruction.rm, at);
                self.stats.indirect += 1;
                self.end()?;
            }
            Kind::Movs | Kind::Cmps => {
                self.string(number, at, &[(7, true), (6, false)], instruction.row.kind)?
            }
            Kind::Stos | Kind::Scas => {
                self.string(number, at, &[(7, true)], instruction.row.kind)?
            }
            Kind::Lods => self.string(number, at, &[(6, false)], instruction.row.kind)?,
            // Nothing behind it in this line is ever executed.
            Kind::Stop => self.line = Line::new(),
            Kind::Breakpoint => self.end()?,
            _ => {}
        }
        Ok(false)
    }

    /// `jne` was not taken: `register` holds the offset of a labelled place.
    #[inline]
    fn labelled(&mut self, number: usize, register: u8, at: u32) {
        if self.line.value(register).is_zero_extended() {
            self.rely(number, register, at);
            self.line.set(register, Value::ZeroLabelled, at);
        } else {
            self.line.set(register, Value::LowLabelled, at);
        }
    }

    /// The straight line ends behind this instruction.
    #[inline]
    fn end(&mut self) -> Result<(), Rule> {
        self.settle()?;
        self.line = Line::new();
        Ok(())
    }

    /// `movl` between registers hands a label check on.
    #[inline]
    fn copy(&mut self, number: usize, instruction: &Instruction, at: u32) -> bool {
        let load = instruction.opcode == 0x8b;
        let (to, from) = if load {
            (instruction.reg, instruction.rm)
        } else {
            (instruction.rm, instruction.reg)
        };
        if !self.line.value(from).is_labelled() || to == R14 || to == R15 {
            return false;
        }
        self.rely(number, from, at);
        self.line.set(to, Value::ZeroLabelled, at);
        true
    }

    /// `to` becomes the sum of the window's base and `offset`.
    #[inline]
    fn base_added(&mut self, number: usize, to: u8, offset: u8, at: u32) -> Result<bool, Rule> {
        let value = self.line.value(offset);
        if to == R14 || !value.is_zero_extended() {
            return Ok(false);
        }
        self.rely(number, offset, at);
        if to == R15 {
            self.line.stepped = None;
            self.line.steps = 0;
            self.line.set(R15, Value::Any, at);
        } else if value == Value::ZeroLabelled {
            self.line.set(to, Value::WindowLabelled, at);
        } else {
            self.line.set(to, Value::Window, at);
        }
        Ok(true)
    }

    /// `leaq`: a step of the data stack pointer, or the making of a window pointer.
    #[inline]
    fn lea(&mut self, number: usize, instruction: &Instruction, at: u32) -> Result<bool, Rule> {
        if instruction.reg == R15 && instruction.base == R15 && instruction.index == decode::NONE {
            return self.step(i64::from(instruction.displacement), at);
        }
        if instruction.base == R14 && instruction.scale == 0 && instruction.displacement == 0 {
            return self.base_added(number, instruction.reg, instruction.index, at);
        }
        Ok(false)
    }

    /// A constant step of `%r15`.
    fn step(&mut self, step: i64, at: u32) -> Result<bool, Rule> {
        if self.line.unfinished() {
            return Err(Rule::RegisterR15);
        }
        let line = &mut self.line;
        line.stepped.get_or_insert(at);
        line.steps += step;
        if line.steps.abs() > abi::MAX_DISPLACEMENT {
            return Err(Rule::StackStep);
        }
        Ok(true)
    }

    /// The load of a label check, if it is one: `addl` of the four bytes in front
    /// of the target to the label's complement.
    fn label_load(
        &mut self,
        number: usize,
        instruction: &Instruction,
        at: u32,
    ) -> Result<(), Rule> {
        let (sum, base, index) = (instruction.reg, instruction.base, instruction.index);
        if self.line.value(sum) != Value::Complement || instruction.displacement != -4 {
            return Ok(());
        }
        let offset = match (instruction.gs, base, index) {
            (true, base, decode::NONE) if base < decode::NONE => base,
            (false, R14, index)
                if instruction.scale == 0 && self.line.value(index).is_zero_extended() =>
            {
                index
            }
            _ => return Ok(()),
        };
        if offset == sum || offset == R14 || offset == R15 {
            return Ok(());
        }
        self.rely(number, sum, at);
        if !instruction.gs {
            self.rely(number, offset, at);
        }
        self.line.check = Some((offset, at));
        Ok(())
    }

    #[inline]
    fn string(
        &mut self,
        number: usize,
        at: u32,
        pointers: &[(u8, bool)],
        kind: Kind,
    ) -> Result<(), Rule> {
        self.stats.strings += 1;
        for &(register, destination) in pointers {
            let written = destination && matches!(kind, Kind::Movs | Kind::Stos);
            if !written && !self.confine_reads {
                continue;
            }
            if !self.line.value(register).is_window() {
                return Err(Rule::StringUnconfined);
            }
            self.rely(number, register, at);
        }
        Ok(())
    }

    /// A direct branch.
    #[inline]
    fn target(&mut self, number: usize, instruction: &Instruction, at: u32) -> Result<(), Rule> {
        let target = i64::from(at) + i64::from(instruction.length) + instruction.immediate;
        let target = u64::try_from(target).map_err(|_| Rule::BranchOutside)?;
        let own = self.codes.get_mut(number);
        if let Some((code, position)) =
            own.and_then(|code| code.position(target).map(|position| (code, position)))
        {
            code.targets.set(position);
            return Ok(());
        }
        if (abi::GATE_BASE..abi::GATE_BASE + abi::GATE_AREA_SIZE).contains(&target) {
            return self.gate(target - abi::GATE_BASE);
        }
        for code in &mut self.codes {
            if let Some(position) = code.position(target) {
                code.targets.set(position);
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

    /// Whether a memory operand is confined as far as it must be.
    #[inline]
    fn access(&mut self, number: usize, instruction: &Instruction, at: u32) -> Result<(), Rule> {
        let row = instruction.row;
        let write = row.has(row::RM_WRITE);
        let form = self.form(instruction, at);
        if form == Ok(Form::Stack) && !row.has(row::LAZY) {
            self.probe(number, at);
        }
        if !write && !self.confine_reads {
            self.stats.reads_unconfined += 1;
            return Ok(());
        }
        match form.map_err(|rule| {
            if rule == Rule::ReadUnconfined && write {
                Rule::WriteUnconfined
            } else {
                rule
            }
        })? {
            Form::Gs => self.stats.gs += 1,
            Form::Offset => {
                self.rely(number, instruction.index, at);
                self.stats.offset += 1;
            }
            Form::Pointer => {
                self.rely(number, instruction.base, at);
                self.stats.pointer += 1;
            }
            Form::Stack => self.stats.stack += 1,
            Form::Rip => self.stats.rip += 1,
        }
        Ok(())
    }

    #[inline]
    fn form(&self, instruction: &Instruction, at: u32) -> Result<Form, Rule> {
        let (base, index) = (instruction.base, instruction.index);
        let displacement = i64::from(instruction.displacement);
        if instruction.gs {
            return Ok(Form::Gs);
        }
        if base == RIP {
            let target = i64::from(at) + i64::from(instruction.length) + displacement;
            let inside = (abi::GUARD_SIZE as i64..(abi::WINDOW_SIZE - abi::GUARD_SIZE) as i64)
                .contains(&target);
            return if inside {
                Ok(Form::Rip)
            } else {
                Err(Rule::RipTarget)
            };
        }
        let form = match (base, index) {
            (R15, decode::NONE) if self.line.unfinished() => return Err(Rule::StackUnfinished),
            (R15, decode::NONE) => Form::Stack,
            (R14, index) if instruction.scale == 0 && self.line.value(index).is_zero_extended() => {
                Form::Offset
            }
            (base, decode::NONE) if self.line.value(base).is_window() => Form::Pointer,
            _ => return Err(Rule::ReadUnconfined),
        };
        if displacement.abs() > abi::MAX_DISPLACEMENT {
            return Err(Rule::Displacement);
        }
        Ok(form)
    }

    #[inline]
    fn probe(&mut self, number: usize, at: u32) {
        if let Some(from) = self.line.stepped.take() {
            self.line.steps = 0;
            self.close(number, from, at);
        }
    }

    /// What the instruction does to general registers.
    #[inline]
    fn writes(&mut self, instruction: &Instruction, at: u32) -> Result<(), Rule> {
        let row = instruction.row;
        if row.clobbers != 0 {
            self.line.clobber(row.clobbers, at);
        }
        if row.has(row::REG_WRITE) {
            let loose = row.has(row::REG_LOOSE | row::REG_BYTE);
            self.write(
                byte_register(instruction, instruction.reg, row::REG_BYTE),
                loose,
                instruction,
                at,
            )?;
        }
        if row.has(row::RM_WRITE) && row.has(row::RM_GPR) && !instruction.memory {
            let by_zero = row.kind == Kind::Shift && instruction.immediate & 31 == 0;
            let loose = row.has(row::RM_LOOSE | row::RM_BYTE) || by_zero;
            self.write(
                byte_register(instruction, instruction.rm, row::RM_BYTE),
                loose,
                instruction,
                at,
            )?;
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
        let zero_extends = !loose && (instruction.size == 4 || instruction.row.has(row::FIXED32));
        match register {
            R14 => return Err(Rule::RegisterR14),
            R15 if !zero_extends => return Err(Rule::RegisterR15),
            R15 => {
                self.line.stepped = None;
                self.line.steps = 0;
            }
            _ => {}
        }
        self.line.set(
            register,
            if zero_extends {
                Value::Zero
            } else {
                Value::Any
            },
            at,
        );
        Ok(())
    }

    /// Branches to where none may go.
    fn branches(&self, report: &mut Report) {
        let conflicts: Vec<_> = self.codes.iter().map(Code::conflicts).collect();
        if conflicts.iter().all(|bitmap| bitmap.next(0).is_none()) {
            return;
        }
        for code in &self.codes {
            let mut position = 0;
            while let Some(start) = code.starts.next(position) {
                position = start + 1;
                let rest = code.bytes.get(start..).unwrap_or(&[]);
                let Ok(instruction) = decode::decode(&window(rest), rest.len()) else {
                    continue;
                };
                let length = usize::from(instruction.length);
                if !matches!(
                    instruction.row.kind,
                    Kind::Conditional | Kind::Jump | Kind::Call
                ) {
                    continue;
                }
                let target =
                    i64::from(code.start) + (start + length) as i64 + instruction.immediate;
                let place = u64::try_from(target).ok().and_then(|target| {
                    let mut places = self.codes.iter().zip(&conflicts);
                    places.find_map(|(code, bitmap)| {
                        code.position(target)
                            .map(|position| (code, bitmap, position))
                    })
                });
                if let Some((other, bitmap, position)) = place
                    && bitmap.get(position)
                {
                    let known = other.starts.get(position);
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
            for found in crate::label::occurrences(code.bytes) {
                let nop = found.checked_sub(abi::LABEL_NOP.len() - label.len());
                let proper = nop.is_some_and(|start| {
                    code.starts.get(start)
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
fn byte_register(instruction: &Instruction, register: u8, byte: u32) -> u8 {
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
