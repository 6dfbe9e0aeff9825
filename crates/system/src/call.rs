//! One call as the functions of the table see it.

use crate::{Grants, State, Stop, System};
use mullion_runtime::{Caller, Claimed, Memory};
use rustix::io::Errno;
use std::sync::MutexGuard;

/// Longest path that is looked at, in bytes, as Linux has it.
const LONGEST_PATH: usize = 4096;

/// A call with its arguments, none of which is checked.
pub(crate) struct Call<'a, 'b> {
    system: &'a System,
    caller: &'a Caller<'b>,
    arguments: [u64; 6],
}

impl<'a, 'b> Call<'a, 'b> {
    pub(crate) fn new(system: &'a System, caller: &'a Caller<'b>) -> Self {
        Self {
            system,
            arguments: caller.integers(),
            caller,
        }
    }

    /// Linux' number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.caller.number()
    }

    pub(crate) fn grants(&self) -> &Grants {
        self.system.grants()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.system.state()
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.caller.memory()
    }

    /// Argument `index`, 0 to 5; beyond them 0.
    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }

    /// The low half of an argument, as C's `int`.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    pub(crate) fn pointer(&self, index: usize) -> Claimed {
        Claimed(self.argument(index))
    }

    /// Counts what the program is about to write to its output or error.
    pub(crate) fn charge_output(&self, bytes: u64) -> Result<(), Stop> {
        self.caller.charge_output(bytes).map_err(Stop::End)
    }

    /// A string argument. Not UTF-8 and too long are errors of the program's.
    pub(crate) fn path(&self, index: usize) -> Result<String, Stop> {
        let bytes = self
            .memory()
            .read_string(self.pointer(index), LONGEST_PATH)?
            .ok_or(Errno::NAMETOOLONG)?;
        String::from_utf8(bytes).map_err(|_| Errno::ILSEQ.into())
    }

    /// Repeats what a signal interrupted, unless the program's time is up.
    pub(crate) fn retry<T>(&self, mut action: impl FnMut() -> Result<T, Stop>) -> Result<T, Stop> {
        loop {
            match action() {
                Err(Stop::Error(Errno::INTR)) if !self.caller.is_out_of_time() => {}
                other => return other,
            }
        }
    }
}
