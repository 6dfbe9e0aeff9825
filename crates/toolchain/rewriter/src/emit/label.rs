//! Labels, alignment, and what ends a function.

use super::{Emitter, put};
use crate::cfi::Cfa;
use crate::table::Class;
use crate::unit::{Item, LabelId, Unit};
use mullion_abi::LABEL;
use std::borrow::Cow;
use std::fmt::Write;

/// Length of the label instruction, in bytes.
const LABEL_LENGTH: u32 = mullion_abi::LABEL_NOP.len() as u32;

/// Where the check of an access goes to if it fails, in trap mode, and where no step is left.
#[derive(Clone, Debug)]
pub(super) struct AccessTrap<'u> {
    pub(super) label: usize,
    /// `ud1` with the registers that say which trap it is; behind the word wall, what a check does when its first
    /// look does not decide.
    pub(super) instruction: Cow<'static, str>,
    /// The arguments of the `.loc` of the access.
    pub(super) place: Option<&'u str>,
    /// Where the canonical frame address is at the access.
    pub(super) cfa: Cfa,
}

impl Emitter<'_> {
    pub(super) fn label(&mut self, index: usize, id: LabelId, section: usize) {
        if self.word().is_some() && self.unit.sections[section].executable {
            return self.word_label(index, id, section);
        }
        let label = &self.unit.labels[id];
        if self.unit.sections[section].executable {
            self.mark_start(section);
            if label.is_target() {
                self.probe();
                self.facts.join();
            }
            let opening = self.opening(index, label.function);
            if label.is_indirect_target() && !self.labelled {
                self.begin_line_early(opening);
                self.put_label();
            } else if opening.is_some() && !self.labelled {
                self.begin_line_early(opening);
                put!(self, "nop");
            }
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{}:", label.name);
    }

    /// `nopl LABEL(%rax)`
    pub(super) fn put_label(&mut self) {
        put!(self, "nopl\t{LABEL:#x}(%rax)");
        self.facts.forget_all();
        self.stats.labels += 1;
        self.labelled = true;
    }

    /// An alignment in front of a function that needs a label aligns the function, not its label.
    pub(super) fn align(&mut self, index: usize, name: &str, arguments: &str, section: usize) {
        self.mark_start(section);
        self.labelled = false;
        let follows = labelled_function_follows(self.unit, index);
        match alignment(name, arguments).filter(|_| follows) {
            Some(alignment) => {
                // A function may end with a call that never returns; the line ends at the label of the next one.
                self.probe();
                let start = self.start_number(section);
                put!(
                    self,
                    ".skip\t(-{LABEL_LENGTH}-(.-.Lmullion_start{start}))&{}, 0x90",
                    alignment - 1
                );
                self.put_label();
            }
            None => put!(self, "{name}\t{arguments}"),
        }
    }

    /// Alignment is computed from the start of the section, which is aligned as strictly as anything in it. A function
    /// whose label comes in front of it is not aligned by a directive, so the section is told.
    pub(super) fn mark_start(&mut self, section: usize) {
        if !std::mem::replace(&mut self.section_starts[section], true) {
            let start = self.start_number(section);
            let strictest = self.strictest[section];
            if strictest > 1 {
                put!(self, ".balign\t{strictest}");
            }
            let _ = writeln!(self.out, ".Lmullion_start{start}:");
        }
    }

    /// The number of a section among those with code: others must not be seen in code.
    pub(super) fn start_number(&self, section: usize) -> usize {
        let before = self.unit.sections.iter().take(section);
        before.filter(|section| section.executable).count()
    }

    /// At the end of a function: the place where failed checks go.
    pub(super) fn end_of_function(&mut self, section: usize) {
        if self.unit.sections[section].executable && self.stops(section) {
            self.pending_traps(section);
        }
    }

    /// Whether control does not come from the last instruction to here.
    pub(super) fn stops(&self, section: usize) -> bool {
        self.last[section].is_some_and(|last| {
            let instruction = &self.unit.instructions[last];
            instruction.ends_path() || instruction.row.class == Class::Call
        })
    }

    /// What the checks of a section go to when they fail: `ud1 %eax, %eax` for a target without a label.
    pub(super) fn pending_traps(&mut self, section: usize) {
        if let Some(label) = self.traps[section].take() {
            let _ = writeln!(self.out, ".Lmullion{label}:");
            put!(self, "ud1\t%eax, %eax");
        }
        self.put_access_traps(section);
    }

    /// The traps of accesses, while call frame information still covers them.
    pub(super) fn access_traps_here(&mut self, section: usize) {
        if self.stops(section) {
            self.put_access_traps(section);
        }
    }

    /// A trap for each access that was checked in trap mode, and for each step: a debugger and a
    /// report find it at the place of the access in the source.
    fn put_access_traps(&mut self, section: usize) {
        for trap in std::mem::take(&mut self.access_traps[section]) {
            if let Some(place) = trap.place {
                // A view's name cannot be defined twice.
                let place = place.split(" view ").next().unwrap_or_default();
                self.put_line_number(place);
            }
            if self.cfi.is_open() {
                self.cfi.at(&mut self.out, trap.cfa);
            }
            let _ = writeln!(self.out, ".Lmullion{}:", trap.label);
            put!(self, "{}", trap.instruction);
        }
    }
}

fn labelled_function_follows(unit: &Unit<'_>, index: usize) -> bool {
    for (item, ..) in &unit.items[index + 1..] {
        match item {
            Item::Label(id) => {
                let label = &unit.labels[*id];
                return label.is_indirect_target() && !label.name.starts_with(".L");
            }
            Item::Directive(
                ".globl" | ".global" | ".weak" | ".type" | ".hidden" | ".protected" | ".internal",
                _,
            )
            | Item::Marker(_) => {}
            _ => return false,
        }
    }
    false
}

/// By section: the strictest alignment of a function that has a label in front of it.
pub(super) fn strictest(unit: &Unit<'_>) -> Vec<u32> {
    let mut strictest = vec![1; unit.sections.len()];
    for (index, (item, section, _)) in unit.items.iter().enumerate() {
        let Item::Align(name, arguments) = item else {
            continue;
        };
        let alignment =
            alignment(name, arguments).filter(|alignment| *alignment > strictest[*section]);
        if let Some(alignment) = alignment
            && unit.sections[*section].executable
            && labelled_function_follows(unit, index)
        {
            strictest[*section] = alignment;
        }
    }
    strictest
}

/// The alignment in bytes, if nothing but an alignment is asked for; LLVM says with what to fill, too.
fn alignment(name: &str, arguments: &str) -> Option<u32> {
    let number = arguments
        .split_once(',')
        .map_or(arguments, |(number, fill)| match fill.trim() {
            "0x90" => number,
            _ => "",
        });
    let number: u32 = number.trim().parse().ok()?;
    match name {
        ".p2align" if number < 16 => Some(1 << number),
        ".align" | ".balign" if number.is_power_of_two() && number <= 1 << 15 => Some(number),
        _ => None,
    }
}
