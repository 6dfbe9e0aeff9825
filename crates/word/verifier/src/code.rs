//! The linear pass over executable segments.
//!
//! Each instruction is decoded once, in ascending order. Branches mark their targets; an instruction that is
//! already known as a target starts a new straight line. A branch back to an instruction that is passed is
//! checked at the end. It is checked against the instructions' starts and against the ranges in which something relied on what
//! came before.
//!
//! The points behind a check are read when the check is met. So it is known what it covers, and once more in
//! their place. At the end each check must have points of its own.

mod access;
mod ends;
mod steps;

use crate::line::{Fact, Line, Made};
use crate::module::{Module, Segment};
use crate::sequence::{
    Broken, Compares, Near, Operand, Points, R11, Sequence, Target, View, is_aligned,
};
use crate::stats::Stats;
use crate::{Facts, Gate, Report};
use mullion_decoder::decode::{Instruction, R14, R15, RSP};
use mullion_decoder::marks::Marks;
use mullion_decoder::row::{self, Kind};
use mullion_word_abi as abi;
use mullion_word_rules::{Place, Rule, Violation};
use std::ops::Range;

/// An executable segment and what the pass has learnt about it.
struct Code<'a> {
    view: View<'a>,
    marks: Marks,
}

/// A check that was made.
struct Check {
    operand: Operand,
    /// What may rely on it, as displacements.
    read: Range<i64>,
    write: Range<i64>,
    /// Ends of both where the address of the operand is a multiple of four.
    aligned: (i64, i64),
    /// Whether it is: an access that would have faulted otherwise has been made since.
    exact: bool,
    /// Address of its first instruction.
    at: u32,
    /// Behind its last jump.
    end: u32,
    /// Up to here no branch may enter behind that.
    closed: u32,
    /// Behind its first compare.
    looked: u32,
    /// Behind the last access that relies on it; 0 if none does.
    relied: u32,
    /// Address of the points, and of the jump to them.
    cold: u32,
    jump: u32,
    /// Address of the trap, and the place of the first access.
    trap: u32,
    first: u32,
    writes: bool,
}

/// An access to memory.
#[derive(Clone, Copy)]
struct Access {
    operand: Operand,
    bytes: u32,
    write: bool,
    /// It may not happen although the instruction completes.
    lazy: bool,
    /// It faults, and touches nothing, if its address is not a multiple of four.
    aligned: bool,
    at: u32,
    end: u32,
}

/// Everything that the pass carries along.
struct Pass<'a> {
    module: &'a Module,
    codes: Vec<Code<'a>>,
    /// Which of them is passed over.
    number: usize,
    view: View<'a>,
    reads: bool,
    line: Line,
    /// Since which position nothing runs on.
    dead: Option<usize>,
    checks: Vec<Check>,
    /// Addresses at which points were met, in ascending order.
    points: Vec<u32>,
    /// Those of them into which the code in front runs on.
    falls: Vec<u32>,
    gates: Vec<Gate>,
    /// Addresses of checks that calls go to the module's own functions.
    near: Vec<u32>,
    /// Where the table's answer is relied on.
    ranges: Vec<Range<u32>>,
    stats: Stats,
}

/// Checks every executable segment of `module`.
pub(crate) fn check(module: &Module, report: &mut Report) -> (Facts, Stats) {
    let codes = module
        .segments()
        .iter()
        .filter(|segment| segment.permission().is_executable());
    let code = |segment: &Segment| {
        let bytes = module.contents(segment);
        Code {
            // A segment ends below 2 GiB; the file's checks saw to it.
            view: View {
                start: segment.address() as u32,
                bytes,
            },
            marks: Marks::new(bytes.len()),
        }
    };
    let mut pass = Pass {
        module,
        codes: codes.map(code).collect(),
        number: 0,
        view: View {
            start: 0,
            bytes: &[],
        },
        reads: module.protection() == abi::Protection::ReadWrite,
        line: Line::default(),
        dead: None,
        checks: Vec::new(),
        points: Vec::new(),
        falls: Vec::new(),
        gates: Vec::new(),
        near: Vec::new(),
        ranges: Vec::new(),
        stats: Stats::default(),
    };
    for number in 0..pass.codes.len() {
        pass.number = number;
        pass.scan(report);
    }
    pass.owners(report);
    pass.bodies(report);
    pass.branches(report);
    pass.labels(report);
    pass.finish()
}

fn violation(view: &View, position: usize, rule: Rule) -> Violation {
    let length = view
        .decode(position)
        .map_or(1, |instruction| usize::from(instruction.length));
    Violation {
        place: Place::Address(u64::from(view.at(position))),
        rule,
        bytes: view.rest(position).iter().take(length).copied().collect(),
    }
}

impl<'a> Pass<'a> {
    fn scan(&mut self, report: &mut Report) {
        let Some(code) = self.codes.get(self.number) else {
            return;
        };
        self.view = code.view;
        self.line.restart();
        self.dead = None;
        let mut position = 0;
        while position < self.view.bytes.len() {
            let mut broken = None;
            if self.start(position) {
                broken = self.settle().err().map(|rule| (position, rule));
                self.line.restart();
                self.dead = None;
            }
            let step = self.step(position);
            let length = match step {
                Ok(length) => length,
                Err((at, rule)) => {
                    broken = broken.or(Some((at, rule)));
                    self.skip(position, at)
                }
            };
            if let Some((at, rule)) = broken {
                self.line.restart();
                self.dead = None;
                report.add(|| violation(&self.view, at, rule));
            }
            position += length;
        }
        if let Err(rule) = self.settle() {
            report.add(|| violation(&self.view, position, rule));
        }
        // Behind the segment lies whatever the process has there.
        if self.dead.is_none() && !self.view.bytes.is_empty() {
            report.add(|| violation(&self.view, position, Rule::CodeEnd));
        }
        report.next_phase();
    }

    /// An instruction starts here. True if a branch that was passed comes here.
    #[inline]
    fn start(&mut self, position: usize) -> bool {
        let code = self.codes.get_mut(self.number);
        code.is_some_and(|code| code.marks.start(position))
    }

    /// What the pass does about a violation at `at` behind `position`: how far it goes on.
    #[cold]
    fn skip(&mut self, position: usize, at: usize) -> usize {
        let mut end = position;
        // Instructions of a sequence that are right.
        while end <= at {
            match self.view.decode(end) {
                Ok(instruction) => end += usize::from(instruction.length),
                Err(_) => return self.resume(end) - position,
            }
            if end <= at {
                self.start(end);
            }
        }
        end - position
    }

    /// After bytes that cannot be decoded: the next place that is surely an instruction, so that one hole is one violation.
    fn resume(&mut self, position: usize) -> usize {
        let mut end = position + 1;
        while !self.view.rest(end).is_empty() {
            let code = self.codes.get(self.number);
            let target = code.is_some_and(|code| code.marks.is_target(end));
            if target || self.view.rest(end).starts_with(&abi::LABEL_NOP) {
                break;
            }
            self.start(end);
            end += 1;
        }
        end
    }

    /// Passes what is at `position`: its length.
    fn step(&mut self, position: usize) -> Result<usize, Broken> {
        let here = |rule| (position, rule);
        let rest = self.view.rest(position);
        match rest {
            [0xf3, ..] if rest.starts_with(&abi::ENDBR64) => {
                if let Some((body, slot)) = self.view.gate(position)
                    && self.slot(slot) == Some(abi::SLOT_ENTER)
                {
                    return self.gate(position, body).map_err(here);
                }
            }
            [0xff, modrm @ (0x15 | 0x25), a, b, c, d, ..] => {
                let distance = i32::from_le_bytes([*a, *b, *c, *d]);
                return self
                    .slot_branch(position, distance, *modrm == 0x25)
                    .map_err(here);
            }
            _ => {}
        }
        let instruction = self.view.decode(position).map_err(here)?;
        if is_scratch_set(&instruction)
            && let Some(sequence) = self.view.sequence(position, &instruction)
        {
            return match sequence? {
                Sequence::Compares(compares) => self.compares(position, compares),
                Sequence::Points(points) => self.points_met(position, &points).map_err(here),
                Sequence::Near(near) => self.near_checked(position, &near).map_err(here),
                Sequence::Target(target) => self.target_checked(position, &target).map_err(here),
            };
        }
        self.instruction(&instruction, position).map_err(here)?;
        Ok(usize::from(instruction.length))
    }

    /// No branch may go to the bytes from `from` up to `to`, addresses of this segment.
    fn close(&mut self, from: u32, to: u32) {
        let start = self.view.start;
        let position = |at: u32| at.saturating_sub(start) as usize;
        if let Some(code) = self.codes.get_mut(self.number) {
            code.marks.close(position(from), position(to));
        }
    }

    /// A straight line may end here.
    #[inline]
    fn settle(&self) -> Result<(), Rule> {
        match self.line.stepped {
            None => Ok(()),
            Some(_) => Err(Rule::StackProbe),
        }
    }

    /// The straight line ends behind this instruction.
    #[inline]
    fn end(&mut self) -> Result<(), Rule> {
        self.settle()?;
        self.line.restart();
        Ok(())
    }

    /// The instructions of a sequence start there, and no branch goes behind the first one's start.
    fn mark(&mut self, position: usize, end: usize) {
        let mut at = position;
        while at < end {
            if at > position {
                self.start(at);
            }
            self.stats.instructions += 1;
            at += self
                .view
                .decode(at)
                .map_or(end, |instruction| usize::from(instruction.length));
        }
        let (from, to) = (self.view.at(position) + 1, self.view.at(end));
        self.close(from, to);
    }

    /// A gate: the runtime comes here from outside, and goes on at `body`.
    fn gate(&mut self, position: usize, body: i64) -> Result<usize, Rule> {
        self.settle()?;
        self.line.restart();
        let end = position + abi::GATE_BYTES as usize;
        // The jump through memory has no row: its start, and those of the others, by hand.
        self.start(position + 4);
        self.start(position + 11);
        self.stats.instructions += 3;
        self.close(self.view.at(position) + 1, self.view.at(end));
        self.target(body)?;
        self.gates.push(Gate {
            address: u64::from(self.view.at(position)),
            body: body as u64,
        });
        self.dead = Some(end);
        Ok(end - position)
    }

    /// The number of the slot at an address.
    fn slot(&self, address: i64) -> Option<u64> {
        let slots = self.module.slots();
        let address = u64::try_from(address).ok()?;
        let distance = address.checked_sub(slots.start)?;
        (slots.contains(&address) && distance.is_multiple_of(8)).then_some(distance / 8)
    }

    /// `call` or `jmp` through a word of memory relative to `%rip`.
    fn slot_branch(&mut self, position: usize, distance: i32, jump: bool) -> Result<usize, Rule> {
        let length = 6;
        let end = i64::from(self.view.at(position)) + length as i64;
        self.stats.instructions += 1;
        self.stats.slots += 1;
        match self.slot(end + i64::from(distance)) {
            Some(
                abi::SLOT_LEAVE
                | abi::SLOT_MARK
                | abi::SLOT_UNWIND
                | abi::SLOT_READ
                | abi::SLOT_FIRST_IMPORT..,
            ) => {}
            Some(abi::SLOT_ENTER) => return Err(Rule::SlotEnter),
            _ => return Err(Rule::SlotCall),
        }
        self.end()?;
        self.dead = jump.then_some(position + length);
        Ok(length)
    }

    /// A check: what it covers holds from here on.
    fn compares(&mut self, position: usize, compares: Compares) -> Result<usize, Broken> {
        let jump = compares.looked;
        let form = |rule| (jump, rule);
        let mut codes = self.codes.iter().map(|code| code.view);
        let (view, cold) = codes
            .find_map(|view| Some((view, view.position(compares.cold)?)))
            .ok_or(form(Rule::BranchOutside))?;
        let points = view.points(cold).map_err(|(_, rule)| form(rule))?;
        if points.back != i64::from(self.view.at(compares.end)) {
            return Err(form(Rule::ColdForm));
        }
        if !points.operand.is_beside(&compares.operand) {
            return Err(form(Rule::ColdOperand));
        }
        let both = |range: &Range<i64>| {
            range.start.max(compares.covered.start)..range.end.min(compares.covered.end)
        };
        // Whole words, if the operand's address is a multiple of four. Of a line, four bytes at least are behind it then.
        let words = compares.covered.end + 3;
        let aligned = (points.read.end.min(words), points.write.end.min(words));
        self.mark(position, compares.end);
        self.line.forget(R11);
        let Operand {
            base, index, scale, ..
        } = compares.operand;
        self.line
            .check(self.checks.len() as u32, base, index, scale);
        self.checks.push(Check {
            operand: compares.operand,
            read: both(&points.read),
            write: both(&points.write),
            aligned,
            exact: false,
            at: self.view.at(position),
            end: self.view.at(compares.end),
            closed: self.view.at(compares.end),
            looked: self.view.at(compares.looked),
            relied: 0,
            cold: view.at(cold),
            jump: self.view.at(jump),
            trap: view.at(points.trap),
            first: 0,
            writes: false,
        });
        self.dead = None;
        self.stats.checks += 1;
        Ok(compares.end - position)
    }

    /// Points, in their place.
    fn points_met(&mut self, position: usize, points: &Points) -> Result<usize, Rule> {
        let at = self.view.at(position);
        self.settle()?;
        let from = match self.dead {
            Some(dead) => self.view.at(dead),
            // What runs on into them looks at the operand as it is, and goes to the check's end.
            None => {
                self.falls.push(at);
                at
            }
        };
        self.mark(position, points.end);
        // Not even the first instruction is a target.
        self.close(from, at + 1);
        self.points.push(self.view.at(position));
        // All of them, and the trap: they may run between another check and its access.
        self.ranges
            .push(self.view.at(position)..self.view.at(points.end));
        self.line.restart();
        self.dead = Some(points.end);
        Ok(points.end - position)
    }

    /// The check of a branch's target.
    fn target_checked(&mut self, position: usize, target: &Target) -> Result<usize, Rule> {
        self.settle()?;
        for away in target.away.into_iter().flatten() {
            self.target(away)?;
        }
        self.mark(position, target.end);
        self.line.forget(R11);
        let made = Made {
            since: self.view.at(target.end),
            looked: self.view.at(target.looked),
        };
        let fact = if target.own {
            Fact::Labelled
        } else {
            Fact::Enter
        };
        self.line.learn(fact, target.register, made);
        self.dead = None;
        Ok(target.end - position)
    }

    /// The check that a call is to one of the module's own functions.
    fn near_checked(&mut self, position: usize, near: &Near) -> Result<usize, Rule> {
        self.settle()?;
        self.target(near.far)?;
        self.mark(position, near.end);
        self.line.forget(R11);
        let made = Made {
            since: self.view.at(near.end),
            looked: self.view.at(near.looked),
        };
        self.line.learn(Fact::Body, R11, made);
        self.near.push(self.view.at(position));
        self.dead = None;
        Ok(near.end - position)
    }

    #[inline]
    fn instruction(&mut self, instruction: &Instruction, position: usize) -> Result<(), Rule> {
        self.stats.instructions += 1;
        let row = instruction.row;
        operands(instruction)?;
        // To prefetch what a check will read is no access of it.
        if instruction.gs && (!is_prefetch(instruction) || instruction.narrow) {
            return Err(Rule::CheckForm);
        }
        let at = self.view.at(position);
        let end = at + u32::from(instruction.length);
        if row.has(row::WEAK) {
            return Err(Rule::WriteOrder);
        }
        if instruction.memory && !row.has(row::NO_ACCESS) && !is_prefetch(instruction) {
            let access = Access {
                operand: Operand::of(instruction),
                bytes: instruction.memory_bytes(),
                write: row.has(row::RM_WRITE),
                lazy: row.has(row::LAZY),
                aligned: is_aligned(instruction),
                at,
                end,
            };
            self.access(&access)?;
            self.tells_alignment(&access);
        }
        self.stats.x87 |= row.has(row::X87);
        self.stats.mxcsr |= row.has(row::MXCSR);
        let (was_dead, mut dead) = (self.dead.take(), None);
        match row.kind {
            Kind::Plain
            | Kind::X87
            | Kind::Move
            | Kind::MoveImmediate
            | Kind::AddTo
            | Kind::AddFrom
            | Kind::Shift => {
                if instruction.opcode == 0x90 && instruction.plane == 0 && !instruction.memory {
                    dead = was_dead;
                }
            }
            Kind::Arithmetic | Kind::Lea => {
                if self.stack_step(instruction, position)? {
                    return Ok(());
                }
                if let Some((register, by)) = self.constant_step(instruction, position) {
                    self.line.step(register, by);
                    return Ok(());
                }
            }
            Kind::Nop if self.view.rest(position).starts_with(&abi::LABEL_NOP) => {
                self.stats.labels += 1;
                self.end()?;
            }
            Kind::Nop => dead = was_dead,
            Kind::Conditional => {
                self.settle()?;
                self.target(self.branch(instruction, position))?;
            }
            Kind::Jump | Kind::Call => {
                self.target(self.branch(instruction, position))?;
                self.end()?;
                dead = (row.kind == Kind::Jump).then_some((end - self.view.start) as usize);
            }
            Kind::Return => {
                self.end()?;
                dead = Some((end - self.view.start) as usize);
            }
            Kind::Indirect => {
                let jump = instruction.reg & 7 == 4;
                self.indirect(instruction.rm, jump, at, end)?;
                self.end()?;
                dead = jump.then_some((end - self.view.start) as usize);
            }
            Kind::Movs | Kind::Cmps | Kind::Stos | Kind::Scas | Kind::Lods => {
                self.string(instruction, at, end)?;
            }
            // Nothing behind it in this line is ever executed.
            Kind::Stop => {
                self.line.restart();
                dead = Some((end - self.view.start) as usize);
            }
            Kind::Breakpoint => {
                self.end()?;
                dead = was_dead;
            }
        }
        self.dead = dead;
        self.writes(instruction, position, at)
    }

    fn branch(&self, instruction: &Instruction, position: usize) -> i64 {
        instruction.branch(self.view.rest(position), self.view.at(position))
    }

    /// A direct branch goes there.
    #[inline]
    fn target(&mut self, target: i64) -> Result<(), Rule> {
        if let Some(position) = self.view.position(target)
            && let Some(code) = self.codes.get_mut(self.number)
        {
            code.marks.target(position);
            return Ok(());
        }
        for code in &mut self.codes {
            if let Some(position) = code.view.position(target) {
                code.marks.target(position);
                return Ok(());
            }
        }
        Err(Rule::BranchOutside)
    }

    fn indirect(&mut self, register: u8, jump: bool, at: u32, end: u32) -> Result<(), Rule> {
        let labelled = self.line.known(Fact::Labelled, register).filter(|_| jump);
        let made = self
            .line
            .known(Fact::Enter, register)
            .or(labelled)
            .or(self.line.known(Fact::Body, register))
            .ok_or(Rule::IndirectUnchecked)?;
        self.close(made.since, at + 1);
        self.ranges.push(made.looked..end);
        self.stats.indirect += 1;
        Ok(())
    }

    /// What the instruction does to general registers.
    #[inline]
    fn writes(&mut self, instruction: &Instruction, position: usize, at: u32) -> Result<(), Rule> {
        let row = instruction.row;
        let mut clobbers = u32::from(row.clobbers);
        while clobbers != 0 {
            self.line.forget(clobbers.trailing_zeros() as u8);
            clobbers &= clobbers - 1;
        }
        if row.has(row::REG_WRITE) {
            self.write(
                byte_register(instruction, instruction.reg, row::REG_BYTE),
                instruction,
                position,
                at,
            )?;
        }
        if row.has(row::RM_WRITE) && row.has(row::RM_GPR) && !instruction.memory {
            self.write(
                byte_register(instruction, instruction.rm, row::RM_BYTE),
                instruction,
                position,
                at,
            )?;
        }
        if row.has(row::V_WRITE) {
            self.write(instruction.vvvv, instruction, position, at)?;
        }
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        register: u8,
        instruction: &Instruction,
        position: usize,
        at: u32,
    ) -> Result<(), Rule> {
        if register == R15 {
            return match self.stack_xor(instruction, at)? {
                true => Ok(()),
                false => Err(Rule::RegisterR15),
            };
        }
        let labelled = match is_copy_to_scratch(instruction) {
            Some(from) => self.line.known(Fact::Labelled, from),
            None => None,
        };
        self.line.forget(register);
        if let Some(made) = labelled {
            self.line.learn(Fact::Labelled, R11, made);
        }
        let made = Made {
            since: at + 1,
            looked: at,
        };
        if let Some(most) = self.at_most(instruction, position) {
            self.line.bound(register, most, made);
        }
        // `and` of a number below 8 MiB to 32 bits.
        let group = instruction.row.kind == Kind::Arithmetic && instruction.reg & 7 == 4;
        let accumulator = instruction.plane == 0 && instruction.opcode == 0x25;
        if (group || accumulator) && !instruction.memory && instruction.size == 4 {
            let mask = instruction.immediate(self.view.rest(position));
            if (0..abi::STACK_REGION as i64).contains(&mask) {
                self.line.learn(Fact::Small, register, made);
            }
        }
        Ok(())
    }

    /// What the register that the instruction writes holds at most, with its upper half.
    fn at_most(&self, instruction: &Instruction, position: usize) -> Option<u32> {
        let zero_extended = usize::from(instruction.plane) == row::plane(1, 0);
        let immediate = || instruction.immediate(self.view.rest(position));
        match (instruction.row.kind, instruction.opcode) {
            _ if instruction.size < 4 => None,
            (_, 0xb6) if zero_extended => Some(0xff),
            (_, 0xb7) if zero_extended => Some(0xffff),
            _ if instruction.memory || instruction.size != 4 || instruction.plane != 0 => None,
            (_, 0x25) => u32::try_from(immediate()).ok(),
            (Kind::Arithmetic, _) if instruction.reg & 7 == 4 => u32::try_from(immediate()).ok(),
            (Kind::Shift, 0xc1) if instruction.reg & 7 == 5 => {
                let count = u32::try_from(immediate() & 0xff).ok()?;
                (1..32).contains(&count).then(|| u32::MAX >> count)
            }
            _ => None,
        }
    }
}

/// `lea` or `mov` of 64 bits to `%r11`: a sequence may begin.
#[inline]
fn is_scratch_set(instruction: &Instruction) -> bool {
    match instruction.row.kind {
        Kind::Lea => instruction.reg == R11 && instruction.size == 8,
        Kind::Move if instruction.opcode == 0x8b => {
            instruction.reg == R11 && instruction.size == 8 && !instruction.memory
        }
        Kind::Move => instruction.rm == R11 && instruction.size == 8 && !instruction.memory,
        _ => false,
    }
}

/// The register of which `%r11` is made a copy.
fn is_copy_to_scratch(instruction: &Instruction) -> Option<u8> {
    let whole = instruction.row.kind == Kind::Move && instruction.size == 8 && !instruction.memory;
    match (instruction.opcode, instruction.reg, instruction.rm) {
        (0x8b, R11, from) | (0x89, from, R11) if whole => Some(from),
        _ => None,
    }
}

/// Prefetches access nothing.
fn is_prefetch(instruction: &Instruction) -> bool {
    usize::from(instruction.plane) == row::plane(1, 0) && matches!(instruction.opcode, 0x0d | 0x18)
}

/// The register of an operand that may be one of `%ah`, `%ch`, `%dh`, `%bh`.
#[inline]
fn byte_register(instruction: &Instruction, register: u8, byte: u64) -> u8 {
    match instruction.row.has(byte) && !instruction.rex && register >= 4 {
        true => register - 4,
        false => register,
    }
}

/// `%rsp` and `%r14` are no operands.
#[inline]
fn operands(instruction: &Instruction) -> Result<(), Rule> {
    let index = instruction.memory & (instruction.index == R14);
    if !(instruction.names(RSP) | instruction.names(R14) | index) {
        return Ok(());
    }
    let row = instruction.row;
    let names = |register: u8| {
        let rm = if instruction.memory {
            instruction.base == register || instruction.index == register
        } else {
            row.has(row::RM_GPR)
                && byte_register(instruction, instruction.rm, row::RM_BYTE) == register
        };
        let reg = row.has(row::REG_GPR)
            && byte_register(instruction, instruction.reg, row::REG_BYTE) == register;
        rm || reg || (row.has(row::V_GPR) && instruction.vvvv == register)
    };
    if names(RSP) {
        Err(Rule::RegisterRsp)
    } else if names(R14) {
        Err(Rule::RegisterR14)
    } else {
        Ok(())
    }
}
