//! A supervisor's log, from its beginning, as a trace's file.

mod run;

pub use run::{RunEvent, write_run};

use crate::recorder::{ADDRESS_BITS, TraceRecordError, TraceRecorder};
use crate::trace::{Header, TraceWriter};
use mullion_supervisor::AuditLog;
use std::io::{self, Write};
use thiserror::Error;

/// Why there is no trace.
#[derive(Debug, Error)]
pub enum LogTraceError {
    /// Decisions at the beginning have made way for later ones: the log had no room for them.
    #[error("the log has lost its first {0} decisions")]
    Cut(u64),
    /// It holds what a trace cannot, or the output takes no more.
    #[error(transparent)]
    Record(#[from] TraceRecordError<io::Error>),
    /// The output takes no more.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Writes a log that was begun before the first domain (of the word wall: `Host::start_audit`) as a
/// file for `mullion model run`. `note` says how it came to be, for people.
pub fn write_trace<W: Write>(log: &AuditLog, note: &str, to: W) -> Result<W, LogTraceError> {
    let lost = log.iter().next().map_or(0, |first| first.number);
    if lost != 0 {
        return Err(LogTraceError::Cut(lost));
    }
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: note.to_owned(),
    };
    let mut writer = TraceWriter::new(to, &header)?;
    let mut recorder = TraceRecorder::new(|event| writer.write(&event));
    for decision in log.iter() {
        recorder.decision(decision)?;
    }
    Ok(writer.finish()?)
}
