//! What the supervisor decided while the program ran, as a trace for the hardware model.

use crate::output::file_by;
use anyhow::{Context, bail};
use mullion_mmp::recorder::{ADDRESS_BITS, TraceRecordError, TraceRecorder};
use mullion_mmp::trace::{Header, TraceWriter};
use std::io::BufWriter;
use std::path::Path;

/// The most decisions of a run. A program that changes its own mappings makes one with each change.
const MAX_DECISIONS: usize = 1 << 20;

/// Has the supervisor keep its decisions. Before the first domain is made.
pub(super) fn start() {
    mullion_host::start_audit(MAX_DECISIONS);
}

/// Writes what it has kept to a file.
pub(super) fn write(file: &Path) -> anyhow::Result<()> {
    let mut records = mullion_host::records().supervisor;
    let log = records.stop_audit().context("the supervisor kept no log")?;
    if log.total() > MAX_DECISIONS as u64 {
        bail!(
            "{}: the run made {} decisions, and a trace holds {MAX_DECISIONS}",
            file.display(),
            log.total()
        );
    }
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: "mullion run --trace".to_owned(),
    };
    file_by(file, |out| -> anyhow::Result<()> {
        let mut writer = TraceWriter::new(BufWriter::new(out), &header)?;
        let mut recorder = TraceRecorder::new(|event| writer.write(&event));
        for decision in log.iter() {
            recorder.decision(decision).map_err(|error| match error {
                TraceRecordError::Sink(error) => error.into(),
                other => anyhow::Error::new(other),
            })?;
        }
        writer.finish()?;
        Ok(())
    })
}
