//! Running a trace file through a machine.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use mullion_mmp::config::Config;
use mullion_mmp::machine::Machine;
use mullion_mmp::measurement::Measurement;
use mullion_mmp::trace::TraceReader;
use std::fs::File;
use std::path::Path;

/// A bar over the bytes of some files; it shows itself on a terminal only.
pub(super) fn progress(bytes: u64) -> ProgressBar {
    let template = "{wide_bar} {bytes} of {total_bytes}, {eta} left";
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The size of a file in bytes.
pub(super) fn size(path: &Path) -> anyhow::Result<u64> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    Ok(metadata.len())
}

/// Runs the trace in a file on a machine of this configuration.
pub(super) fn run(path: &Path, config: &Config, bar: &ProgressBar) -> anyhow::Result<Measurement> {
    run_file(path, config, bar).with_context(|| path.display().to_string())
}

fn run_file(path: &Path, config: &Config, bar: &ProgressBar) -> anyhow::Result<Measurement> {
    let mut reader = TraceReader::new(File::open(path)?)?;
    let mut machine = Machine::new(config, reader.header().address_bits)?;
    let mut position = 0;
    loop {
        let Some(block) = reader.next_block()? else {
            return Ok(machine.report());
        };
        let mut events = block.events();
        let mut at = events.position();
        while let Some(event) = events.next() {
            machine.step_at(at, &event?)?;
            at = events.position();
        }
        bar.inc(reader.position() - position);
        position = reader.position();
    }
}
