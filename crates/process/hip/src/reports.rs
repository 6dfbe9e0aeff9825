//! How much a domain can have its host report: a domain that breaks channel upon channel is not to fill the host's log.

use std::time::{Duration, Instant};

/// Reports of one domain that are passed on within a second; of others there is their number.
pub const REPORTS: u32 = 20;

const SECOND: Duration = Duration::from_secs(1);

/// What of one domain was passed on, and what was not.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// When the second began, and what was passed on in it.
    second: Option<(Instant, u32)>,
    left_out: u64,
}

/// What is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Told {
    /// How many there were before that were not told.
    pub(crate) left_out: u64,
    /// Whether this one is.
    pub(crate) this: bool,
}

impl Reports {
    /// There is another report.
    pub(crate) fn next(&mut self, now: Instant) -> Told {
        let (began, told) = match self.second {
            Some((began, told)) if now.duration_since(began) < SECOND => (began, told),
            _ => (now, 0),
        };
        if told >= REPORTS {
            self.left_out += 1;
            return Told::default();
        }
        self.second = Some((began, told + 1));
        Told {
            left_out: self.rest(),
            this: true,
        }
    }

    /// How many were not told since that was last asked.
    pub(crate) fn rest(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_told_in_a_second_and_the_number_of_the_others() {
        let mut reports = Reports::default();
        let begin = Instant::now();
        let told = |left_out| Told {
            left_out,
            this: true,
        };
        for _ in 0..REPORTS {
            assert_eq!(reports.next(begin), told(0));
        }
        let late = begin + SECOND - Duration::from_nanos(1);
        for at in [begin, late, late] {
            assert_eq!(reports.next(at), Told::default());
        }
        assert_eq!(reports.next(begin + SECOND), told(3));
        for _ in 1..REPORTS {
            assert_eq!(reports.next(begin + SECOND), told(0));
        }
        assert_eq!(reports.next(begin + SECOND), Told::default());
        assert_eq!((reports.rest(), reports.rest()), (1, 0));
    }
}
