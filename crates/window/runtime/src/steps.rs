//! The limit on steps: a number in the domain's memory, which images that count take down by one
//! at each step, and trap where none is left (docs/window.md, "Steps").
//!
//! The domain can write that number. So nothing is relied on here: the host writes it when a life
//! begins, and reads it for people.

use crate::domain::{Domain, Inner};
use crate::error::Error;
use crate::fault::Cause;
use crate::memory::Claimed;

impl Domain {
    /// Steps that the domain has left of [`Limits::steps`](crate::Limits::steps), as its own memory
    /// says; `None` without that limit.
    #[must_use]
    pub fn steps_left(&self) -> Option<u64> {
        self.inner().steps_left()
    }
}

impl Inner {
    /// A life begins: all its steps, if they are limited.
    pub(crate) fn grant_steps(&self) -> Result<(), Error> {
        let Some(granted) = self.limits().steps else {
            return Ok(());
        };
        let place = self.steps_place().ok_or(Error::NotCounted)?;
        let number = granted.min(i64::MAX as u64).to_le_bytes();
        let written = self.memory().write(place, &number);
        written.map_err(|_| Error::NotCounted)
    }

    fn steps_left(&self) -> Option<u64> {
        self.limits().steps?;
        let number = self.memory().read_u64(self.steps_place()?).ok()?;
        Some(number.cast_signed().try_into().unwrap_or(0))
    }

    /// What the trap of a step means.
    pub(crate) fn no_step(&self) -> Cause {
        match (self.limits().steps, self.steps_left()) {
            (Some(granted), Some(0)) => Cause::StepLimit { granted },
            _ => Cause::Trap,
        }
    }

    fn steps_place(&self) -> Option<Claimed> {
        let offset = self.image().steps()?;
        Some(Claimed(self.memory().base() + offset))
    }
}
