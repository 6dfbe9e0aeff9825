//! A series of faults that grows: a file with a line for each seed of each module, to which anybody can add.
//!
//! ```text
//!   7 bit-of-pointer ext2/dir.c:88 panic none Access:ext2_readdir goes-on 62983d9a9b15-0011aabb-2233ccdd
//!   seed, kind, place, the plain kernel, the walled one, what was caught, whether it goes on, the build
//!   8 - ext2                                                    the seed gives no fault of this module
//! ```
//!
//! Modules take turns, so a series that is stopped has as many runs of each.

use crate::kernel::{Setup, at};
use crate::subject::Subject;
use crate::trial::Trial;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Results that are there, and what is still to be run.
pub struct Series {
    place: PathBuf,
    file: File,
    /// The first seed, and how many runs each module is to have.
    from: u64,
    runs: u64,
    turns: Vec<Turn>,
}

/// A module's part of it.
struct Turn {
    subject: &'static Subject,
    /// The next seed.
    seed: u64,
    /// Runs from the first seed on: those that were there, those of this series, and those that are not at their end.
    done: u64,
    /// Seeds in a row that gave no fault.
    without: u64,
    /// Lines by seeds.
    known: BTreeMap<u64, String>,
}

/// So many seeds in a row without a fault: the source has no place for one. There are seventeen kinds.
const IN_VAIN: u64 = 100;

impl Turn {
    /// A seed has given a fault, or none.
    fn counts(&mut self, is_fault: bool) {
        self.done += u64::from(is_fault);
        self.without = if is_fault { 0 } else { self.without + 1 };
    }
}

/// A fault that is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Which of the series' modules.
    pub subject: usize,
    /// Of the fault.
    pub seed: u64,
}

impl Series {
    /// Of these modules, with so many runs each by seeds from the first one on. Those that the file has are not run again.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(
        place: &Path,
        subjects: &[&'static Subject],
        runs: u64,
        from: u64,
    ) -> Result<Series, Setup> {
        let old = match place.exists() {
            true => fs::read_to_string(place).map_err(at(place))?,
            false => String::new(),
        };
        let mut file = File::options();
        let file = file.create(true).append(true).open(place);
        let turn = |subject: &&'static Subject| Turn {
            subject,
            seed: from,
            done: 0,
            without: 0,
            known: lines_of(&old, subject.module),
        };
        Ok(Series {
            place: place.to_path_buf(),
            file: file.map_err(at(place))?,
            from,
            runs,
            turns: subjects.iter().map(turn).collect(),
        })
    }

    /// The next one: of the module that has the fewest runs. None: all have as many as they are to have.
    pub fn take(&mut self) -> Option<Next> {
        loop {
            let of_turns = self.turns.iter_mut().enumerate();
            let open = of_turns.filter(|(_, turn)| turn.done < self.runs && turn.without < IN_VAIN);
            let (subject, turn) = open.min_by_key(|(_, turn)| turn.done)?;
            let seed = turn.seed;
            turn.seed += 1;
            match turn.known.get(&seed) {
                // A seed that gives no fault is made up for.
                Some(line) => turn.counts(Trial::parse(line).is_some()),
                None => {
                    turn.done += 1;
                    return Some(Next { subject, seed });
                }
            }
        }
    }

    /// Writes down what came of it. None: the seed gives no fault.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&mut self, next: Next, trial: Option<&Trial>) -> Result<(), Setup> {
        let turn = &mut self.turns[next.subject];
        let (seed, module) = (next.seed, turn.subject.module);
        let line = match trial {
            Some(trial) => trial.to_string(),
            None => format!("{seed} - {module}"),
        };
        // It was counted when it was taken.
        turn.done -= 1;
        turn.counts(trial.is_some());
        // One write: others may add to the file at the same time.
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        turn.known.insert(seed, line);
        written.map_err(at(&self.place))
    }

    /// All runs of these modules by the seeds from the first one to the last one that was taken.
    #[must_use]
    pub fn trials(&self) -> Vec<Trial> {
        let of = |turn: &Turn| {
            let seeds = turn.known.range(self.from..turn.seed);
            let trials: Vec<Trial> = seeds.filter_map(|(_, line)| Trial::parse(line)).collect();
            trials
        };
        self.turns.iter().flat_map(of).collect()
    }
}

/// The lines that name a module, by their seeds.
fn lines_of(text: &str, module: &str) -> BTreeMap<u64, String> {
    let of = |line: &str| {
        let mut words = line.split(' ');
        let seed = words.next()?.parse().ok()?;
        let place = words.nth(1)?;
        let is_it = place.split('/').next() == Some(module);
        is_it.then(|| (seed, line.to_owned()))
    };
    text.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(subject: usize, seed: u64) -> Option<Next> {
        Some(Next { subject, seed })
    }

    #[test]
    fn modules_take_turns_and_what_is_there_is_not_run_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("faults.txt");
        let old = "# Seeds, and so on.\n1 deleted ext2/dir.c:1 none none - -\n2 - ext2\n3 deleted ext2x/dir.c:1 none none - -\n";
        fs::write(&place, old).expect("a file");
        let subjects = ["ext2", "md5"].map(|name| Subject::named(name).expect("a subject"));
        let mut series = Series::open(&place, &subjects, 2, 1).expect("a series");
        assert_eq!(series.take(), next(1, 1));
        assert_eq!(series.take(), next(0, 3));
        assert_eq!(series.take(), next(1, 2));
        assert_eq!(series.take(), None);
        // A seed without a fault is made up for.
        series
            .note(
                Next {
                    subject: 1,
                    seed: 2,
                },
                None,
            )
            .expect("a line");
        assert_eq!(series.take(), next(1, 3));
        assert_eq!(series.take(), None);
        let line =
            "3 branch md5/md5.c:7 panic none Access:f goes-on 62983d9a9b15-0011aabb-2233ccdd";
        let trial = Trial::parse(line);
        series
            .note(
                Next {
                    subject: 1,
                    seed: 3,
                },
                trial.as_ref(),
            )
            .expect("a line");
        assert_eq!(series.trials().len(), 2);
        let text = fs::read_to_string(&place).expect("the file");
        assert_eq!(text, format!("{old}2 - md5\n{line}\n"));
        // A module whose source has no place for any fault does not keep the others from theirs.
        let mut vain = Series::open(&place, &subjects, 3, 1000).expect("a series");
        for _ in 0..2 * IN_VAIN {
            let next = vain.take().expect("a seed");
            vain.note(next, None).expect("a line");
        }
        assert_eq!(vain.take(), None);
        let mut again = Series::open(&place, &subjects, 2, 1).expect("a series");
        assert_eq!(again.take(), next(1, 1));
        assert_eq!(again.take(), next(0, 3));
        assert_eq!(again.take(), None);
    }
}
