//! Restarting children, by their parent.

use std::time::{Duration, Instant};

use mullion_sip_core::process::{Child, Exit, SpawnError};
use mullion_sip_core::wait;

/// When a parent starts a child again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Never.
    #[default]
    Never,
    /// When it ended otherwise than by its own success. The waits double from `first` to `most`, and begin
    /// anew after a life longer than `most`.
    OnFailure {
        /// Before the first restart.
        first: Duration,
        /// Before any.
        most: Duration,
    },
    /// Whenever it ends, at once.
    Always,
}

impl Policy {
    /// How long to wait before the next life; `None` for no next life. `failures` counts the short lives
    /// that ended just before, this one included.
    pub fn pause(self, exit: &Exit, failures: u32) -> Option<Duration> {
        match self {
            Policy::Never => None,
            Policy::Always => Some(Duration::ZERO),
            Policy::OnFailure { .. } if exit.cause.is_success() => None,
            Policy::OnFailure { first, most } => {
                let doubled = 1u32
                    .checked_shl(failures.saturating_sub(1))
                    .unwrap_or(u32::MAX);
                Some(first.saturating_mul(doubled).min(most))
            }
        }
    }

    /// Whether a life was long enough for the waits to begin anew.
    pub fn is_long(self, life: Duration) -> bool {
        matches!(self, Policy::OnFailure { most, .. } if life > most)
    }
}

/// Makes a child with `make`, and again by `policy` whenever it has ended; gives the last end. It blocks, so
/// a parent runs it in a thread of its own.
pub fn supervise(
    policy: Policy,
    mut make: impl FnMut() -> Result<Child, SpawnError>,
) -> Result<Exit, SpawnError> {
    let mut failures = 0u32;
    loop {
        let begin = Instant::now();
        let exit = make()?.wait();
        failures = if policy.is_long(begin.elapsed()) {
            1
        } else {
            failures.saturating_add(1)
        };
        match policy.pause(&exit, failures) {
            None => return Ok(exit),
            Some(pause) => sleep(pause),
        }
    }
}

fn sleep(pause: Duration) {
    let deadline = Instant::now() + pause;
    while Instant::now() < deadline {
        wait::park_until(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_sip_core::process::Cause;

    #[test]
    fn waits_double_up_to_the_most() {
        let policy = Policy::OnFailure {
            first: Duration::from_millis(10),
            most: Duration::from_millis(75),
        };
        let failed = Exit::from(Cause::Panic);
        let waits: Vec<_> = (1..=5)
            .filter_map(|failures| policy.pause(&failed, failures))
            .collect();
        assert_eq!(waits, [10, 20, 40, 75, 75].map(Duration::from_millis));
        assert_eq!(policy.pause(&failed, 1000), Some(Duration::from_millis(75)));
        assert_eq!(policy.pause(&Cause::Exited(0).into(), 1), None);
        assert_eq!(Policy::Never.pause(&failed, 1), None);
        assert_eq!(
            Policy::Always.pause(&Cause::Returned.into(), 9),
            Some(Duration::ZERO)
        );
    }
}
