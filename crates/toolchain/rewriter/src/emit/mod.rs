//! Writes a [`Unit`] out again in the form that `docs/window.md` or `docs/word-form.md` prescribes.

mod access;
mod branch;
mod conditional;
mod facts;
mod gate;
mod label;
mod lines;
mod spill;
mod stack;
mod steps;
mod trap;
mod word;

use crate::cfi;
use crate::flow::Liveness;
use crate::operand::{FLAGS, Gpr, Operand, number};
use crate::options::{Options, Stats, Wall};
use crate::refusal::{Reason, Refusal};
use crate::stack::Plan;
use crate::table::Class;
use crate::unit::{Instruction, Item, Position, Unit, prefix};
use mullion_word_abi::Protection as WordProtection;
use std::collections::HashMap;
use std::fmt::Write;

/// Writes the file.
pub(crate) fn emit(
    unit: &Unit<'_>,
    plans: &[Plan],
    live: &Liveness,
    options: &Options,
    capacity: usize,
    refusals: &mut Vec<Refusal>,
) -> (String, Stats) {
    let mut emitter = Emitter {
        unit,
        plans,
        live,
        options,
        out: String::with_capacity(capacity),
        stats: Stats::default(),
        cfi: cfi::Writer::default(),
        unprobed: 0,
        facts: facts::Facts::default(),
        section: 0,
        interrupted: unit.sections.iter().map(|_| Line::default()).collect(),
        labels: 0,
        traps: vec![None; unit.sections.len()],
        access_traps: vec![Vec::new(); unit.sections.len()],
        place: vec![None; unit.sections.len()],
        lines: lines::Lines::default(),
        section_starts: vec![false; unit.sections.len()],
        strictest: label::strictest(unit),
        section_ends: vec![false; unit.sections.len()],
        within: sections_within(unit),
        labelled: false,
        first: first_instructions(unit),
        last: vec![None; unit.sections.len()],
        block: None,
        at: 0,
        spilled: None,
        body: false,
        counted: match options.count && options.wall == Wall::Window {
            true => steps::places(unit),
            false => Vec::new(),
        },
    };
    for (index, (item, section, line)) in unit.items.iter().enumerate() {
        if let Err(reason) = emitter.item(index, item, *section) {
            let text = match item {
                Item::Instruction(position) => unit.instructions[*position].text,
                Item::Directive(name, _) | Item::Cfi(name, _) | Item::Align(name, _) => name,
                _ => "",
            };
            refusals.push(Refusal::new(*line, text, reason));
        }
    }
    emitter.finish();
    (emitter.out, emitter.stats)
}

fn first_instructions(unit: &Unit<'_>) -> Vec<Option<Position>> {
    let mut first = vec![None; unit.sections.len()];
    for (position, instruction) in unit.instructions.iter().enumerate().rev() {
        first[instruction.section] = Some(position);
    }
    first
}

/// By function: where its indirect jumps may lead, if that is one section.
fn sections_within(unit: &Unit<'_>) -> HashMap<usize, Option<usize>> {
    let mut within = HashMap::new();
    for (position, labels) in unit.labels_at.iter().enumerate() {
        let inner = |label: &usize| {
            unit.labels[*label].is_indirect_target() && !unit.labels[*label].is_entry()
        };
        if position < unit.instructions.len() && labels.iter().any(inner) {
            let section = unit.instructions[position].section;
            let known = within
                .entry(unit.functions[position])
                .or_insert(Some(section));
            *known = known.filter(|known| *known == section);
        }
    }
    within
}

struct Emitter<'u> {
    unit: &'u Unit<'u>,
    plans: &'u [Plan],
    live: &'u Liveness,
    options: &'u Options,
    out: String,
    stats: Stats,
    cfi: cfi::Writer,
    /// Sum of the steps of `%r15` since the last probe, in bytes.
    unprobed: i64,
    /// What is known about registers in this straight line.
    facts: facts::Facts,
    /// The executable section that is being written, and what the straight line that each of the
    /// others was left in is like.
    section: usize,
    interrupted: Vec<Line>,
    /// Labels made so far.
    labels: usize,
    /// By section: the label that failed checks of the current function go to.
    traps: Vec<Option<usize>>,
    /// By section: traps of accesses that are still to be written.
    access_traps: Vec<Vec<label::AccessTrap<'u>>>,
    /// By section: the arguments of the last `.loc`.
    place: Vec<Option<&'u str>>,
    lines: lines::Lines,
    /// By section: whether its start has been marked (`.Lmullion_start`).
    section_starts: Vec<bool>,
    /// By section: the strictest alignment that is computed from its start.
    strictest: Vec<u32>,
    /// By section: whether its end will be named (`.Lmullion_end`).
    section_ends: Vec<bool>,
    /// By function: the section of all that indirect jumps may go to in it, if it is one.
    within: HashMap<usize, Option<usize>>,
    /// A label for indirect branches stands right here.
    labelled: bool,
    /// By section: its first instruction.
    first: Vec<Option<Position>>,
    /// By section: the instruction written last.
    last: Vec<Option<Position>>,
    /// The block that conditional moves are made into.
    block: Option<conditional::Block>,
    /// The instruction that is being written.
    at: Position,
    /// Behind the word wall: a register that the instruction being written wants back, and `%r15 - V` where it was kept.
    spilled: Option<(u8, i64)>,
    /// Behind the word wall: a function's body has begun, and has no instruction yet.
    body: bool,
    /// By position: where a step is counted; nowhere if it is empty.
    counted: Vec<bool>,
}

/// What a straight line goes on with when its section is taken up again: other sections in
/// between change nothing.
#[derive(Default)]
struct Line {
    unprobed: i64,
    facts: facts::Facts,
    labelled: bool,
}

/// Appends a line of assembler.
macro_rules! put {
    ($emitter:expr, $($format:tt)*) => { $emitter.line(format_args!($($format)*)) };
}
use put;

const R11: Gpr = Gpr::new(number::R11, 8);
const R11D: Gpr = Gpr::new(number::R11, 4);
const R15: Gpr = Gpr::new(number::R15, 8);

impl<'u> Emitter<'u> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.push('\t');
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
        if self.out.ends_with("%r11d") || self.out.ends_with("%r11") {
            self.facts.forget(number::R11);
        }
        self.out.push('\n');
    }

    /// What is checked, behind the word wall.
    fn word(&self) -> Option<WordProtection> {
        match self.options.wall {
            Wall::Window => None,
            Wall::Word(protection) => Some(protection),
        }
    }

    fn directive(&mut self, name: &str, arguments: &str) {
        let gap = if arguments.is_empty() { "" } else { "\t" };
        self.line(format_args!("{name}{gap}{arguments}"));
    }

    fn item(&mut self, index: usize, item: &Item<'u>, section: usize) -> Result<(), Reason> {
        self.enter_section(section);
        match item {
            Item::Marker(text) => {
                self.out.push_str(text);
                self.out.push('\n');
            }
            Item::Label(id) => self.label(index, *id, section),
            Item::Directive(name, arguments) => {
                if *name == ".size" {
                    self.end_of_function(section);
                    self.size_of_body(arguments);
                }
                if *name == ".loc" {
                    self.place[section] = Some(arguments);
                }
                match *name {
                    _ if self.is_written(index) => {}
                    ".loc" => self.put_line_number(arguments),
                    name => self.directive(name, arguments),
                }
            }
            Item::Align(name, arguments) => match self.word() {
                Some(_) => put!(self, "{name}\t{arguments}"),
                None => self.align(index, name, arguments, section),
            },
            Item::Cfi(name, arguments) => {
                if *name == ".cfi_endproc" {
                    self.access_traps_here(section);
                }
                let delta = self.delta_here(section);
                self.cfi.directive(&mut self.out, name, arguments, delta);
            }
            Item::Assign(name, expression) => {
                put!(self, "{name} = {expression}");
                self.assign_body(name);
            }
            Item::Instruction(position) => {
                self.labelled = false;
                self.body = false;
                self.at = *position;
                self.last[section] = Some(*position);
                self.step_at(*position);
                self.step(self.plans[*position].enter);
                self.begin_block(*position);
                self.instruction(*position)?;
                self.note_alignment(*position);
                self.facts.note(&self.unit.instructions[*position]);
                self.end_block(*position);
                self.step(self.plans[*position].fall);
            }
        }
        Ok(())
    }

    /// Takes up the straight line of another executable section.
    fn enter_section(&mut self, section: usize) {
        if section == self.section || !self.unit.sections[section].executable {
            return;
        }
        let line = std::mem::take(&mut self.interrupted[section]);
        self.interrupted[self.section] = Line {
            unprobed: std::mem::replace(&mut self.unprobed, line.unprobed),
            facts: std::mem::replace(&mut self.facts, line.facts),
            labelled: std::mem::replace(&mut self.labelled, line.labelled),
        };
        self.section = section;
    }

    /// `%r15 - V` where the item stands: as the next instruction of its section finds it.
    fn delta_here(&self, section: usize) -> i64 {
        let next = match self.last[section] {
            Some(position) => self.unit.next(position),
            None => self.first[section],
        };
        match (next, self.last[section]) {
            (Some(next), _) => self.plans[next].delta - self.plans[next].enter,
            (None, Some(last)) => self.plans[last].after,
            (None, None) => 8,
        }
    }

    fn instruction(&mut self, position: Position) -> Result<(), Reason> {
        let unit = self.unit;
        let instruction = &unit.instructions[position];
        if self.word().is_some() {
            self.prepare(position);
        }
        match instruction.row.class {
            Class::Drop => Ok(()),
            Class::Nop => {
                // "rep nop" is how older code spells a pause.
                let text = if instruction.prefixes & prefix::REP != 0 {
                    "pause"
                } else {
                    instruction.text
                };
                put!(self, "{text}");
                Ok(())
            }
            Class::Stop => {
                self.probe();
                put!(self, "{}", instruction.text);
                Ok(())
            }
            Class::Jcc | Class::Jmp | Class::Call | Class::Ret => match self.word() {
                Some(_) => self.word_branch(position),
                None => self.branch(position),
            },
            Class::Push | Class::Pop | Class::Leave => self.stack_instruction(position),
            Class::String => match self.word() {
                Some(_) => self.word_string(position),
                None => self.string(position),
            },
            Class::Plain | Class::Lea | Class::Bit => {
                if crate::stack::writes_stack_pointer(instruction) {
                    self.stack_arithmetic(position)
                } else {
                    self.plain(position)
                }
            }
        }
    }

    /// Whether the flags that the instruction finds, or those that it leaves, are read later.
    fn flags_wanted_before(&self, position: Position) -> bool {
        self.live.before(self.unit, position) & FLAGS != 0
    }

    /// Whether the straight line behind the instruction reads the flags that it leaves. A
    /// repeated comparison, which reads them only if its count is 0, does not count.
    fn flags_read_behind(&self, position: Position) -> bool {
        if self.live.after(position) & FLAGS == 0 {
            return false;
        }
        let mut left = FLAGS;
        let mut at = position;
        while let Some(next) = self.unit.next(at).filter(|_| left != 0) {
            let instruction = &self.unit.instructions[next];
            let effects = instruction.effects();
            if effects.reads & left != 0 {
                return true;
            }
            if instruction.ends_path()
                || matches!(instruction.row.class, Class::Call | Class::String)
            {
                return false;
            }
            left &= !effects.kills;
            at = next;
        }
        false
    }

    fn finish(&mut self) {
        for section in 0..self.traps.len() {
            let pending = self.traps[section].is_some() || !self.access_traps[section].is_empty();
            if pending || self.section_ends[section] {
                let (name, arguments) = self.unit.sections[section].directive;
                self.directive(name, arguments);
                self.pending_traps(section);
            }
            if self.section_ends[section] {
                let number = self.start_number(section);
                let _ = writeln!(self.out, ".Lmullion_end{number}:");
            }
        }
        self.define_steps();
    }
}

/// Whether the instruction names `%ah` or one of its like.
fn has_high_byte(instruction: &Instruction<'_>) -> bool {
    instruction
        .operands
        .iter()
        .any(|o| matches!(o, Operand::Gpr(r) if r.high))
}
