//! How much of a log is for refusals of strangers. Keys cost nothing, and each refused request is a line. Without a bound strangers would
//! fill the disk, and then nobody could load.

use rustix::fs::statvfs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Lines that may follow each other at once.
pub const LINES: u32 = 100;
/// Then there is one more line in each such time.
pub const EACH: Duration = Duration::from_secs(10);
/// Bytes of such a line, at most.
pub const SHORT: usize = 4 << 10;
/// Bytes that such lines leave free on the log's disk.
pub const KEPT: u64 = 64 << 20;

/// What strangers have written.
#[derive(Debug)]
pub(super) struct Strangers {
    /// Lines of [`LINES`] that were written; each [`EACH`] behind `since` gives one back.
    spent: u32,
    since: Instant,
    /// Refusals without a line, since the last one that was told.
    pub(super) left_out: u64,
    /// [`KEPT`].
    pub(super) kept: u64,
}

impl Default for Strangers {
    fn default() -> Strangers {
        Strangers {
            spent: 0,
            since: Instant::now(),
            left_out: 0,
            kept: KEPT,
        }
    }
}

impl Strangers {
    /// Whether one more line may be written now, to a log in this directory; then it counts.
    pub(super) fn may(&mut self, directory: &Path, now: Instant) -> bool {
        let whole = (now - self.since).as_secs() / EACH.as_secs();
        let given = u32::try_from(whole).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_sub(given);
        self.since = match self.spent {
            0 => now,
            _ => self.since + EACH * given,
        };
        let may = self.spent < LINES && room(directory) >= self.kept;
        self.spent += u32::from(may);
        may
    }
}

/// Bytes that are free there; none if nobody says.
fn room(directory: &Path) -> u64 {
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    statvfs(directory).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_more_line_in_each_time() {
        let mut strangers = Strangers::default();
        let start = strangers.since;
        let mut at = |seconds: u64| {
            let now = start + Duration::from_secs(seconds);
            (0..1000)
                .filter(|_| strangers.may(Path::new(""), now))
                .count()
        };
        let each = EACH.as_secs();
        assert_eq!(at(0), LINES as usize);
        assert_eq!([at(each - 1), at(each), at(each)], [0, 1, 0]);
        assert_eq!(
            [at(4 * each + 5), at(5 * each - 1), at(5 * each)],
            [3, 0, 1]
        );
        assert_eq!(at(1000 * each), LINES as usize);
        assert_eq!(at(1001 * each - 1), 0, "unused time is not kept");
    }
}
