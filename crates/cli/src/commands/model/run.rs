//! `mullion model run`.

use super::{load_config, trace};
use crate::output::{outln, print};
use mullion_mmp::table::Format;
use std::path::PathBuf;
use std::process::ExitCode;

/// What to run, on which machine.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The trace, a .mmt file (docs/trace-format.md).
    trace: PathBuf,
    /// The machine, as TOML; what it does not name keeps the paper's value (docs/model.md).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The permission tables' format, instead of the configuration's: sorted, vector or runs.
    #[arg(long)]
    format: Option<Format>,
    /// Entries of the protection lookaside buffer, instead of the configuration's; 0 is none.
    #[arg(long, value_name = "ENTRIES")]
    plb: Option<u32>,
    /// Bytes in the smallest unit with a permission of its own, instead of the configuration's.
    #[arg(long, value_name = "BYTES")]
    granularity: Option<u64>,
    /// Print everything that was measured, and the machine, as JSON.
    #[arg(long)]
    json: bool,
    /// Exit with status 1 if anything in the trace was refused.
    #[arg(long)]
    strict: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut config = load_config(self.config.as_deref())?;
        config.tables.format = self.format.unwrap_or(config.tables.format);
        config.plb.entries = self.plb.unwrap_or(config.plb.entries);
        config.tables.granularity = self.granularity.unwrap_or(config.tables.granularity);
        let bar = trace::progress(trace::size(&self.trace)?);
        let report = trace::run(&self.trace, &config, &bar)?;
        bar.finish_and_clear();
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&report)?)?;
        } else {
            let name = self.trace.file_stem().unwrap_or_default();
            print(&report.render(&name.to_string_lossy())?)?;
        }
        let refused = report.refused_accesses + report.refused_calls > 0;
        Ok(ExitCode::from(u8::from(self.strict && refused)))
    }
}
