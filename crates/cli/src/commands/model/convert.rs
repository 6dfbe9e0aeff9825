//! `mullion model convert`.

use crate::output::{file_by, outln};
use anyhow::Context;
use mullion_mmp::convert::{ConvertError, Map, TraceSource, convert};
use mullion_mmp::trace::{Header, TraceWriter};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to convert, and what it does not say itself.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The trace that another program wrote; `-` is standard input.
    trace: PathBuf,
    /// Who wrote it.
    #[arg(long, value_name = "PROGRAM")]
    from: From,
    /// The domains, regions, gates and threads, as TOML (docs/model.md).
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    /// Where to write the trace.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum From {
    /// `valgrind --tool=lackey --trace-mem=yes --log-file=FILE`.
    Lackey,
    /// QEMU's plugin `execlog`, for x86-64 guests.
    Qemu,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let text = mullion_trust::text::read(&self.map);
        let text = text.with_context(|| self.map.display().to_string())?;
        let map = Map::from_toml(&text).with_context(|| self.map.display().to_string())?;
        let (source, name) = match self.from {
            From::Lackey => (TraceSource::Lackey, "lackey"),
            From::Qemu => (TraceSource::Qemu, "qemu"),
        };
        let input: Box<dyn BufRead> = match self.trace == Path::new("-") {
            true => Box::new(io::stdin().lock()),
            false => {
                let file = File::open(&self.trace);
                let file = file.with_context(|| self.trace.display().to_string())?;
                Box::new(BufReader::with_capacity(1 << 16, file))
            }
        };
        let header = Header {
            address_bits: map.address_bits(),
            note: format!("mullion model convert --from {name}"),
        };
        let mut summary = None;
        file_by(&self.output, |file| -> anyhow::Result<()> {
            let mut writer = TraceWriter::new(BufWriter::new(file), &header)?;
            let converted = convert(source, input, &map, |event| writer.write(&event));
            summary = Some(converted.map_err(|error| match error {
                ConvertError::Sink(error) => error.into(),
                other => anyhow::Error::new(other).context(self.trace.display().to_string()),
            })?);
            writer.finish()?;
            Ok(())
        })?;
        if let Some(summary) = summary {
            outln!(
                "{} instructions, {} accesses, {} calls of gates, {} returns, {} events",
                summary.instructions,
                summary.accesses,
                summary.calls,
                summary.returns,
                summary.events
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
