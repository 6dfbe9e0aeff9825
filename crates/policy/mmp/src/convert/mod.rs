//! Traces that other programs wrote, as events of ours.
//!
//! ```text
//!   valgrind's lackey --\                         map (domains, regions, gates)
//!                        >-- instructions, ----->  follower  ----->  events
//!   QEMU's execlog -----/    loads, stores
//! ```
//!
//! Such a trace has addresses and nothing else. A [`Map`], which a person writes, says which addresses belong to
//! which domain, and which functions are gates. The [follower](self) finds calls and returns in what was pushed
//! and popped. One line is held at a time, so memory does not grow with the trace.

mod boot;
mod execlog;
mod follower;
mod lackey;
mod lines;
mod map;

pub use map::{Map, SymbolMapError};

use crate::event::TraceEvent;
use follower::Follower;
use lines::Lines;
use std::io::BufRead;
use thiserror::Error;

/// Who wrote the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// QEMU's plugin `execlog`, for x86-64 guests.
    Qemu,
}

/// What a conversion found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events written, those of the start included.
    pub events: u64,
    /// Instructions.
    pub instructions: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Calls of functions that the map calls gates.
    pub calls: u64,
    /// Returns from them.
    pub returns: u64,
}

/// Why a trace is not converted. `E` is what the sink says.
#[derive(Debug, Error)]
pub enum ConvertError<E> {
    /// The file could not be read.
    #[error("line {line}: the file cannot be read: {error}")]
    Read {
        /// The line that was being read.
        line: u64,
        /// What the system says.
        error: std::io::Error,
    },
    /// A line is not what the program writes, or cannot be an event.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// No instruction in the file.
    #[error("the file holds no instruction")]
    Empty,
    /// The sink failed.
    #[error(transparent)]
    Sink(E),
}

/// Why a step of the trace was not taken.
enum Stop<E> {
    What(String),
    Sink(E),
}

impl<E> Stop<E> {
    fn what(text: impl Into<String>) -> Self {
        Stop::What(text.into())
    }
}

/// Reads a trace to its end and hands its events, in order, to `sink`.
pub fn convert<E>(
    source: TraceSource,
    input: impl BufRead,
    map: &Map,
    sink: impl FnMut(TraceEvent) -> Result<(), E>,
) -> Result<Summary, ConvertError<E>> {
    let mut lines = Lines::new(input);
    let mut follower = Follower::new(map, sink);
    let at = |line: u64| {
        move |stop| match stop {
            Stop::What(what) => ConvertError::Line { line, what },
            Stop::Sink(error) => ConvertError::Sink(error),
        }
    };
    boot::boot(map, &mut |event| follower.emit(event)).map_err(ConvertError::Sink)?;
    let mut execlog = execlog::TraceReader::new(map.access_bytes());
    loop {
        let number = lines.number() + 1;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(lines::Failure::TooLong) => {
                let what = format!("it has more than {} bytes", lines::MAX_BYTES);
                return Err(ConvertError::Line { line: number, what });
            }
            Err(lines::Failure::Io(error)) => {
                return Err(ConvertError::Read {
                    line: number,
                    error,
                });
            }
        };
        match source {
            TraceSource::Lackey => lackey::line(line, &mut follower),
            TraceSource::Qemu => execlog.line(line, &mut follower),
        }
        .map_err(at(number))?;
    }
    let last = lines.number();
    if source == TraceSource::Qemu {
        execlog.finish(&mut follower).map_err(at(last))?;
    }
    let summary = follower.finish().map_err(ConvertError::Sink)?;
    match summary.instructions {
        0 => Err(ConvertError::Empty),
        _ => Ok(summary),
    }
}

/// A number written in base 16, all of it.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value = 0;
    for &digit in digits {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        value = value << 4 | u64::from(digit);
    }
    Some(value)
}

/// A number written in base 10, all of it, of at most nine digits.
fn decimal(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    digits.iter().try_fold(0, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(value * 10 + u32::from(digit))
    })
}

/// The first bytes of a line, for a message.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(60)]);
    format!("`{}`", text.escape_debug())
}
