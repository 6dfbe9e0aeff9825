//! Counting. A number in memory goes down by one at each place that a run passes again and again if
//! it never ends. Where it would be less than 0 the run traps. The same input so ends at the same
//! instruction, however fast the machine is.
//!
//! Such places are the entries of functions, the targets of backward branches, and all that an
//! indirect branch may go to. The points where `setjmp` returns are among them. Every circle that
//! control can go round has one: its direct branches cannot all go forward.
//!
//! The number lies in the domain's own memory, where the code may write it. So this is a tool
//! for those who replay, and no wall.

use super::{Emitter, put};
use crate::table::Class;
use crate::unit::{Position, Unit};

/// Where the number lies: in a section that all objects have in common.
const DEFINITION: &str = "\t.section\t.mullion.steps,\"awG\",@progbits,__mullion_steps,comdat\n\
    \t.balign\t8\n\
    \t.weak\t__mullion_steps\n\
    \t.hidden\t__mullion_steps\n\
    \t.type\t__mullion_steps, @object\n\
    \t.size\t__mullion_steps, 8\n\
    __mullion_steps:\n\
    \t.quad\t0x3fffffffffffffff\n";

/// By position: whether a step is counted in front of the instruction.
pub(super) fn places(unit: &Unit<'_>) -> Vec<bool> {
    let mut counted: Vec<bool> = (0..unit.instructions.len())
        .map(|position| {
            let mut labels = unit.labels_at[position].iter();
            labels.any(|&label| {
                let label = &unit.labels[label];
                label.is_indirect_target() || label.called
            })
        })
        .collect();
    for position in 0..counted.len() {
        if let Some(target) = unit.branch_target(position) {
            let is_call = unit.instructions[position].row.class == Class::Call;
            counted[target] |= is_call || target <= position;
        }
    }
    counted
}

impl Emitter<'_> {
    /// Counts a step in front of the instruction, if there is one to count.
    pub(super) fn step_at(&mut self, position: Position) {
        if !self.counted.get(position).copied().unwrap_or(false) {
            return;
        }
        let plan = &self.plans[position];
        let delta = plan.delta - plan.enter;
        let flags = self.flags_wanted_before(position);
        if flags {
            self.save_flags(delta);
        }
        self.count_step(position);
        if flags {
            self.restore_flags(delta);
        }
    }

    /// Counts a step where nobody wants the flags.
    pub(super) fn count_step(&mut self, position: Position) {
        self.probe();
        let trap = self.trap_of(position, "ud1\t%edx, %eax");
        put!(self, "subq\t$1, __mullion_steps(%rip)");
        put!(self, "js\t.Lmullion{trap}");
        self.stats.steps += 1;
    }

    /// The number, if anything is counted.
    pub(super) fn define_steps(&mut self) {
        if self.stats.steps > 0 {
            self.out.push_str(DEFINITION);
        }
    }
}
