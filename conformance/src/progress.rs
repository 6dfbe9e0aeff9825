//! What a long run has found so far, kept in a file, so that it can be stopped and taken up again.

use crate::Common;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What came of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every build did what the native one did.
    Same,
    /// There was nothing to compare with.
    Skipped,
    /// A build did something else, or did not come about.
    Different(String),
}

/// The programs that are done, by name. Nothing is remembered without a file.
#[derive(Default)]
pub(crate) struct Progress {
    known: BTreeMap<String, Verdict>,
    file: Option<Mutex<File>>,
}

impl Progress {
    /// Takes up what `path` holds, if its first line is `identity`; begins anew otherwise.
    pub(crate) fn open(path: &Path, identity: &str) -> anyhow::Result<Progress> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines();
        let same = lines.next() == Some(identity);
        let known = lines.filter(|_| same).filter_map(line).collect();
        if !same {
            fs::write(path, format!("{identity}\n")).with_context(|| path.display().to_string())?;
        }
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .with_context(|| path.display().to_string())?;
        Ok(Progress {
            known,
            file: Some(Mutex::new(file)),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Verdict> {
        self.known.get(name).cloned()
    }

    /// Writes a verdict down. A difference is not: it is looked at again the next time.
    pub(crate) fn keep(&self, name: &str, verdict: Verdict) -> anyhow::Result<Verdict> {
        let word = match verdict {
            Verdict::Same => "same",
            Verdict::Skipped => "skipped",
            Verdict::Different(_) => return Ok(verdict),
        };
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(file, "{name} {word}")?;
        }
        Ok(verdict)
    }
}

/// What results depend on: the command under test, and how it is asked.
pub(crate) fn identity(common: &Common, more: impl Hash) -> anyhow::Result<String> {
    let command = fs::read(&common.tested.mullion).context("the command under test")?;
    // Behind the word wall, the host is another program.
    let host = fs::read(common.tested.mullion.with_file_name("word-host")).unwrap_or_default();
    let mut hash = DefaultHasher::new();
    (command, host, &common.levels, &common.protections).hash(&mut hash);
    common.base.hash(&mut hash);
    (common.seconds, more).hash(&mut hash);
    Ok(format!("mullion {:016x}", hash.finish()))
}

/// `NAME WORD`; a line that was cut off by the end of the run is none.
fn line(text: &str) -> Option<(String, Verdict)> {
    let (name, word) = text.rsplit_once(' ')?;
    let verdict = match word {
        "same" => Verdict::Same,
        "skipped" => Verdict::Skipped,
        _ => return None,
    };
    Some((name.to_owned(), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_taken_up_by_the_same_build_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let first = Progress::open(&path, "one").unwrap();
        first.keep("7", Verdict::Same).unwrap();
        first.keep("8", Verdict::Skipped).unwrap();
        first
            .keep("9", Verdict::Different("status".to_owned()))
            .unwrap();
        drop(first);
        let again = Progress::open(&path, "one").unwrap();
        let seeds = ["7", "8", "9"].map(|seed| again.get(seed));
        assert_eq!(seeds, [Some(Verdict::Same), Some(Verdict::Skipped), None]);
        again.keep("9", Verdict::Same).unwrap();
        drop(again);
        let third = Progress::open(&path, "one").unwrap();
        assert_eq!(third.get("9"), Some(Verdict::Same));
        assert_eq!(third.get("7"), Some(Verdict::Same));
        let other = Progress::open(&path, "two").unwrap();
        assert_eq!(other.get("7"), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    }

    #[test]
    fn a_line_that_was_cut_off_is_none() {
        assert_eq!(line("12 sam"), None);
        assert_eq!(line("12"), None);
        assert_eq!(line("12 same"), Some(("12".to_owned(), Verdict::Same)));
    }
}
