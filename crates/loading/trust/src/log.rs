//! The record of decisions: lines of JSON, each bound to the one before.
//!
//! ```text
//!   {"seq":0,"prev":"000...","time":1795262400,"event":{...}}
//!   {"seq":1,"prev":"<SHA-256 of the line above>","time":...,"event":{...}}
//! ```
//!
//! A line that is missing, changed or moved breaks the chain where it was. What
//! is cut off at the end breaks nothing, so the number of lines and the last
//! one's digest stand in a second file, `FILE.head`. Who can write both can
//! still cut both. Against that a *checkpoint*, the head signed with a key and
//! kept elsewhere, says that so many lines were there ([`checkpoint`]).
//!
//! Writers hold a lock on the log. A line is one write, synchronised before the
//! head is replaced. A crash can leave a part of a line, and a version without
//! bounds may have left a long one. The next writer goes on in either case, and
//! says so in a line of its own. It writes that line over the part that it
//! removes, so that no crash can remove the part without the line.
//!
//! Every line that is written here has at most [`LINE`] bytes, whatever the event.
//!
//! Strangers' refusals leave room for others ([`strangers`]). Those without a line are counted, and the next line says how many
//! they were.

use crate::dsse::{self, EnvelopeError};
use crate::key::{PublicKey, SecretKey};
use crate::keynote::Work;
use crate::record::Sha256Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

mod line;
pub mod strangers;
mod tail;

pub use line::LINE;
use line::Line;
use strangers::{SHORT, Strangers};
use tail::LastLine;

/// The payload type of a checkpoint.
pub const CHECKPOINT_TYPE: &str = "application/vnd.mullion.log-checkpoint+json";
/// Bytes of the longest line that [`Log::verify`] reads: lines from before there was a bound.
const LONGEST: u64 = 64 << 20;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// From 0.
    pub seq: u64,
    /// SHA-256 of the line before, in hexadecimal; zeros on the first line.
    pub prev: String,
    /// Seconds since 1970, universal time.
    pub time: u64,
    /// What happened.
    pub event: Value,
}

/// How far a log goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How many lines.
    pub lines: u64,
    /// SHA-256 of the last one; zeros if there is none.
    pub last: String,
}

/// Why a log cannot be believed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A line is not of the form.
    #[error("line {line}: it is not a line of a log, or it was changed")]
    Malformed {
        /// From 1.
        line: u64,
    },
    /// The last line is not of the form.
    #[error("the last line is not a line of a log, or it was changed; see `mullion log verify`")]
    LastLine,
    /// A line does not follow from the one before.
    #[error(
        "line {line}: it does not follow the line before it; a line was changed, moved, added or removed here or just above"
    )]
    Broken {
        /// From 1.
        line: u64,
    },
    /// Something that no writer was about to write stands at the end.
    #[error(
        "line {line}: the last {bytes} bytes of the file are neither a line nor the beginning of the one that is due; a disk lost what was written, or somebody added them"
    )]
    Tail {
        /// From 1.
        line: u64,
        /// How many bytes.
        bytes: usize,
    },
    /// The end is missing.
    #[error(
        "the log has {found} lines, and {witness} says that it had {expected}; its end was cut off"
    )]
    Truncated {
        /// Lines that are there.
        found: u64,
        /// Lines that were there.
        expected: u64,
        /// Who says so.
        witness: &'static str,
    },
    /// The end is another.
    #[error("line {line} is not the one that {witness} speaks of; the log was written anew")]
    Rewritten {
        /// From 1.
        line: u64,
        /// Who says so.
        witness: &'static str,
    },
    /// No head.
    #[error(
        "{0} is missing or damaged; without it, or a checkpoint, nobody can say whether the end was cut off"
    )]
    NoHead(PathBuf),
    /// The checkpoint itself.
    #[error("the checkpoint: {0}")]
    Checkpoint(#[from] EnvelopeError),
    /// Somebody else's checkpoint.
    #[error("the checkpoint is signed by {0}, not by the key that was named")]
    Signer(PublicKey),
}

/// What a verified log is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How far it goes.
    pub head: Head,
    /// The last line is younger than the head: a writer was interrupted
    /// between the two. The next one repairs it.
    pub head_behind: bool,
    /// Bytes of a line that a crash interrupted, at the end.
    pub torn: usize,
}

/// A log that can be appended to.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    strangers: Arc<Mutex<Strangers>>,
}

impl Log {
    /// The log in that file, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Log {
            path: path.into(),
            strangers: Arc::default(),
        }
    }

    fn io(&self) -> impl Fn(io::Error) -> LogError + use<> {
        let path = self.path.clone();
        move |error| LogError::Io {
            path: path.clone(),
            error,
        }
    }

    fn head_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".head");
        name.into()
    }

    /// Appends an event, and returns the head after it. On return it is on the
    /// disk. An event that does not fit into a line of [`LINE`] bytes is cut.
    ///
    /// # Errors
    /// If the end of the log is not what its head says, or writing fails. In
    /// both cases nothing has been appended.
    pub fn append(&self, event: Value) -> Result<Head, LogError> {
        self.append_within(event, LINE)
    }

    /// Appends the refusal of a stranger, in a line of at most [`SHORT`] bytes. If strangers have written much, or the disk has little
    /// room, it is counted and has no line.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_of_a_stranger(&self, event: Value) -> Result<(), LogError> {
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let mut strangers = self.strangers();
        if !strangers.may(directory, Instant::now()) {
            strangers.left_out += 1;
            return Ok(());
        }
        drop(strangers);
        self.append_within(event, SHORT).map(drop)
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn append_within(&self, event: Value, most: usize) -> Result<Head, LogError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path).map_err(self.io())?;
        file.lock().map_err(self.io())?;
        let mut head = self.recover(&mut file)?;
        let left_out = std::mem::take(&mut self.strangers().left_out);
        if left_out > 0 {
            let event = serde_json::json!({ "kind": "refused", "left_out": left_out });
            let told = self.write(&mut file, &head, event, SHORT);
            head = told.inspect_err(|_| self.strangers().left_out += left_out)?;
        }
        self.write(&mut file, &head, event, most)
    }

    /// The head of what is really there, behind what this had to mend.
    fn recover(&self, file: &mut File) -> Result<Head, LogError> {
        let length = file.metadata().map_err(self.io())?.len();
        let whole = tail::whole_length(file, length).map_err(self.io())?;
        let last = tail::last_line(file, whole, self.io())?;
        let mut head = self.actual(last.as_ref())?;
        if whole < length {
            head = self.replace_torn(file, &head, whole, length)?;
        } else if let Some(last) = last.filter(|last| last.length >= LINE as u64) {
            let long = serde_json::json!({ "line": last.seq + 1, "bytes": last.length });
            let event = serde_json::json!({ "kind": "recovered", "long_line": long });
            head = self.write(file, &head, event, LINE)?;
        }
        Ok(head)
    }

    /// The head of what is really there, which may be one line further than
    /// the head file says.
    fn actual(&self, last: Option<&LastLine>) -> Result<Head, LogError> {
        let stored = read_head(&self.head_path());
        let Some(last) = last else {
            return match stored {
                None => Ok(empty()),
                Some(head) if head.lines == 0 => Ok(empty()),
                Some(head) => Err(truncated(0, &head, "its head")),
            };
        };
        let actual = last.head();
        match stored {
            Some(head) if head == actual => Ok(actual),
            Some(head) if head.lines == last.seq && head.last == last.prev => Ok(actual),
            None if last.seq == 0 && last.prev == empty().last => Ok(actual),
            None => Err(LogError::NoHead(self.head_path())),
            Some(head) if head.lines > actual.lines => {
                Err(truncated(actual.lines, &head, "its head"))
            }
            Some(head) => Err(LogError::Rewritten {
                line: head.lines,
                witness: "its head",
            }),
        }
    }

    /// Writes over what a crash left of a line, from `whole` to `length`, the line that says so.
    fn replace_torn(
        &self,
        file: &File,
        head: &Head,
        whole: u64,
        length: u64,
    ) -> Result<Head, LogError> {
        let removed = tail::digest(file, whole, length).map_err(self.io())?;
        let event = serde_json::json!({
            "kind": "recovered",
            "removed_bytes": length - whole,
            "removed_sha256": removed,
        });
        let line = Line::new(head, now(), event, LINE);
        let write = || {
            let over = OpenOptions::new().write(true).open(&self.path)?;
            let (one, other) = (file.metadata()?, over.metadata()?);
            if (one.dev(), one.ino()) != (other.dev(), other.ino()) {
                return Err(io::Error::other("the log was replaced by another file"));
            }
            // What is torn stays torn until all of this has been done.
            over.write_all_at(&line.bytes, whole)?;
            over.set_len(whole + line.bytes.len() as u64)?;
            over.sync_data()?;
            self.write_head(&line.head)
        };
        write().map_err(self.io())?;
        Ok(line.head)
    }

    fn write(
        &self,
        file: &mut File,
        head: &Head,
        event: Value,
        most: usize,
    ) -> Result<Head, LogError> {
        let line = Line::new(head, now(), event, most);
        file.write_all(&line.bytes).map_err(self.io())?;
        file.sync_data().map_err(self.io())?;
        self.write_head(&line.head).map_err(self.io())?;
        Ok(line.head)
    }

    fn write_head(&self, head: &Head) -> io::Result<()> {
        let path = self.head_path();
        let mut name = path.clone().into_os_string();
        name.push(".new");
        let temporary = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&temporary)?;
        writeln!(file, "{}", serde_json::to_string(head)?)?;
        file.sync_data()?;
        fs::rename(&temporary, &path)
    }

    /// Reads the whole log, checks it, and gives every line to `visit`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self, visit: impl FnMut(&LogEntry)) -> Result<Report, LogError> {
        let (report, _) = self.check(visit, None)?;
        Ok(report)
    }

    /// As [`Log::verify`], and checks that the log goes on from a checkpoint
    /// of `signer`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_since(
        &self,
        checkpoint: &str,
        signer: &PublicKey,
        visit: impl FnMut(&LogEntry),
    ) -> Result<Report, LogError> {
        let mut work = Work::unbounded();
        let opened = dsse::open(checkpoint, CHECKPOINT_TYPE, &mut work);
        let (payload, signers) =
            opened.unwrap_or_else(|error| Err(EnvelopeError::Malformed(error.to_string())))?;
        if let Some(other) = signers.iter().find(|key| *key != signer) {
            return Err(LogError::Signer(*other));
        }
        let head: Head = serde_json::from_slice(&payload)
            .map_err(|error| EnvelopeError::Malformed(error.to_string()))?;
        let (report, seen) = self.check(visit, Some(&head))?;
        if report.head.lines < head.lines {
            return Err(truncated(report.head.lines, &head, "the checkpoint"));
        }
        if !seen {
            return Err(LogError::Rewritten {
                line: head.lines,
                witness: "the checkpoint",
            });
        }
        Ok(report)
    }

    fn check(
        &self,
        mut visit: impl FnMut(&LogEntry),
        wanted: Option<&Head>,
    ) -> Result<(Report, bool), LogError> {
        let file = File::open(&self.path).map_err(self.io())?;
        file.lock_shared().map_err(self.io())?;
        let mut reader = BufReader::new(&file);
        let mut head = empty();
        let mut previous = empty();
        let mut seen = wanted == Some(&head);
        let torn = loop {
            let mut line = Vec::new();
            let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            if read.map_err(self.io())? == 0 {
                break 0;
            }
            let number = head.lines + 1;
            if line.last() != Some(&b'\n') {
                if !is_beginning(&line, &head) {
                    let bytes = line.len();
                    return Err(LogError::Tail {
                        line: number,
                        bytes,
                    });
                }
                break line.len();
            }
            line.pop();
            let entry: LogEntry =
                serde_json::from_slice(&line).map_err(|_| LogError::Malformed { line: number })?;
            // One spelling only, so that every change of a byte is a change.
            if serde_json::to_vec(&entry).ok().as_deref() != Some(&line) {
                return Err(LogError::Malformed { line: number });
            }
            if entry.seq != head.lines || entry.prev != head.last {
                return Err(LogError::Broken { line: number });
            }
            previous = head;
            head = Head {
                lines: number,
                last: Sha256Digest::of(&line).to_string(),
            };
            seen |= wanted == Some(&head);
            visit(&entry);
        };
        let head_behind = self.compare(&head, &previous)?;
        Ok((
            Report {
                head,
                head_behind,
                torn,
            },
            seen,
        ))
    }

    /// Whether the head file is one line behind.
    fn compare(&self, actual: &Head, previous: &Head) -> Result<bool, LogError> {
        match read_head(&self.head_path()) {
            Some(stored) if stored == *actual => Ok(false),
            Some(stored) if stored == *previous && actual.lines > 0 => Ok(true),
            Some(stored) if stored.lines > actual.lines => {
                Err(truncated(actual.lines, &stored, "its head"))
            }
            Some(stored) => Err(LogError::Rewritten {
                line: stored.lines,
                witness: "its head",
            }),
            None if actual.lines <= 1 && !self.head_path().exists() => Ok(actual.lines == 1),
            None => Err(LogError::NoHead(self.head_path())),
        }
    }
}

/// Signs a head; keep what comes back where the log's writers cannot write.
#[must_use]
pub fn checkpoint(head: &Head, key: &SecretKey) -> String {
    let payload = serde_json::to_vec(head).unwrap_or_default();
    dsse::seal(CHECKPOINT_TYPE, &payload, key)
}

fn empty() -> Head {
    Head {
        lines: 0,
        last: "0".repeat(64),
    }
}

fn truncated(found: u64, head: &Head, witness: &'static str) -> LogError {
    LogError::Truncated {
        found,
        expected: head.lines,
        witness,
    }
}

/// Whether a line after `head` begins with `text`, which is shorter than any line may be.
fn is_beginning(text: &[u8], head: &Head) -> bool {
    let due = format!(
        "{{\"seq\":{},\"prev\":\"{}\",\"time\":",
        head.lines, head.last
    );
    let common = due.len().min(text.len());
    text[..common] == due.as_bytes()[..common] && (text.len() as u64) < LONGEST
}

fn read_head(path: &Path) -> Option<Head> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strangers::LINES;

    /// Lines with a kind, and refusals that were told to have none.
    fn told(log: &Log) -> (usize, u64) {
        let (mut lines, mut left_out) = (0, 0);
        let mut visit = |entry: &LogEntry| match entry.event["left_out"].as_u64() {
            Some(count) => left_out += count,
            None => lines += 1,
        };
        log.verify(&mut visit).expect("a sound log");
        (lines, left_out)
    }

    #[test]
    fn strangers_write_little_and_all_of_them_are_counted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let log = Log::new(&path);
        let long =
            json!({ "kind": "refused", "reason": "x".repeat(9000), "obstacles": vec!["y"; 9000] });
        for _ in 0..5000 {
            log.append_of_a_stranger(long.clone()).expect("room");
        }
        let most = LINES as usize + 1;
        assert!((LINES as usize..=most).contains(&told(&log).0));
        let bytes = fs::metadata(&path).expect("a file").len();
        assert!(bytes <= (most * SHORT) as u64, "{bytes}");
        // Others are not bounded, and the log says what it lacks.
        for _ in 0..2 {
            log.append(json!({ "kind": "admitted" })).expect("room");
        }
        let (lines, left_out) = told(&log);
        assert_eq!(lines as u64 + left_out, 5002);
    }

    #[test]
    fn where_there_is_little_room_only_others_write() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = Log::new(directory.path().join("log"));
        log.strangers().kept = u64::MAX;
        for _ in 0..3 {
            log.append_of_a_stranger(json!({ "kind": "refused" }))
                .expect("counted");
        }
        assert!(!directory.path().join("log").exists());
        log.append(json!({ "kind": "admitted" })).expect("room");
        assert_eq!(told(&log), (1, 3));
    }
}
