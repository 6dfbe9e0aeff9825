//! What modules of the word wall have reached for, for their reports.

use crate::{CodeState, Symbols};
use mullion_word_runtime::{Reached, ReachedField};

impl Symbols {
    /// What an address is to an instruction of a module, for `Module::set_fields`.
    #[must_use]
    pub fn reached_field(&mut self, reach: &Reached<'_>) -> Option<ReachedField> {
        let memory = |address| reach.stack.and_then(|stack| stack.word(address));
        let state = CodeState {
            registers: reach.registers,
            memory: &memory,
        };
        let at = (&state, reach.address);
        let found = self.reached(reach.instruction, at, reach.variable, reach.export)?;
        Some(ReachedField {
            variable: found.variable,
            of: found.of,
            bytes: found.bytes,
            member: found.member,
            distance: found.distance,
            parameter: found.parameter,
        })
    }
}
