//! A program in a domain during one of its calls.

use crate::grants::Grants;
use crate::stop::told;
use mullion_calls::{CallStop, Program, ProgramState};
use mullion_runtime::{CallEnd, Error, GateCall, MAX_STACK_SIZE, MAX_STACKS};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system interface of one domain.
pub struct System {
    pub(crate) grants: Grants,
    pub(crate) state: Mutex<ProgramState>,
}

impl System {
    pub(crate) fn state(&self) -> MutexGuard<'_, ProgramState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program that has made a call.
pub(crate) struct Caller<'a, 'b> {
    pub(crate) system: &'a System,
    pub(crate) caller: &'a GateCall<'b>,
    /// Why it ends, if it does.
    pub(crate) end: Cell<Option<CallEnd>>,
}

impl Program for Caller<'_, '_> {
    fn number(&self) -> u64 {
        self.caller.number()
    }

    fn arguments(&self) -> [u64; 6] {
        self.caller.integers()
    }

    fn stack_size(&self) -> u64 {
        MAX_STACK_SIZE
    }

    fn most_stacks(&self) -> u64 {
        u64::from(MAX_STACKS)
    }

    fn with_state(&self, change: &mut dyn FnMut(&mut ProgramState)) {
        change(&mut self.system.state());
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), CallStop> {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += self.retry(|| {
                rustix::rand::getrandom(&mut *rest, GetRandomFlags::empty()).map_err(told)
            })?;
        }
        Ok(())
    }

    /// In a domain that has ended nobody waits: what is waited for may be up to the very call that ended it.
    fn wait_a_moment(&self) -> Result<(), CallStop> {
        if self.caller.has_ended() {
            return Err(self.ends(CallEnd::Refused(Box::new(Error::Ended))));
        }
        std::thread::yield_now();
        Ok(())
    }

    fn is_out_of_time(&self) -> bool {
        self.caller.is_out_of_time()
    }
}

impl Caller<'_, '_> {
    /// Keeps why the program ends.
    pub(crate) fn ends(&self, end: CallEnd) -> CallStop {
        self.end.set(Some(end));
        CallStop::Ended
    }

    /// Repeats what a signal interrupted, unless the program's time is up.
    pub(crate) fn retry<T>(
        &self,
        mut action: impl FnMut() -> Result<T, CallStop>,
    ) -> Result<T, CallStop> {
        let interrupted = told(Errno::INTR);
        loop {
            match action() {
                Err(stop) if stop == interrupted && !self.is_out_of_time() => {}
                other => return other,
            }
        }
    }
}
