//! `mullion model sweep`.

mod charts;
mod plan;
mod rows;

use super::{load_config, trace};
use crate::output::{file, outln, print};
use crate::units;
use anyhow::Context;
use mullion_mmp::config::Config;
use mullion_mmp::measurement::Measurement;
use mullion_mmp::table::Format;
use plan::Plan;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which machines to try.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The trace, a .mmt file.
    trace: PathBuf,
    /// The directory for sweep.csv and the charts; made if it is not there. Without it a table goes to standard
    /// output.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print a line of JSON for each run instead of the table: the columns of sweep.csv by name.
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// The machine that the sweep starts from, as TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Entries of the protection lookaside buffer [default: 16,32,64,128,256,512].
    #[arg(long, value_name = "ENTRIES", value_delimiter = ',')]
    plb: Vec<u32>,
    /// Formats of the permission tables [default: sorted,vector,runs].
    #[arg(long, value_delimiter = ',')]
    format: Vec<Format>,
    /// Bytes in the smallest unit with a permission of its own [default: 4,64,4096].
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    granularity: Vec<u64>,
    /// Entries of the gate lookaside buffer.
    ///
    /// With this or a cache among the options, an option that is not given keeps the configuration's value
    /// instead of its default.
    #[arg(long, value_name = "ENTRIES", value_delimiter = ',')]
    glb: Vec<u32>,
    /// Sizes of the level-one instruction cache, like 8K,16K.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = units::bytes)]
    instruction_cache: Vec<u64>,
    /// Sizes of the level-one data cache.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = units::bytes)]
    data_cache: Vec<u64>,
    /// Sizes of the level-two cache.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = units::bytes)]
    unified_cache: Vec<u64>,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
}

/// One machine and what it did.
struct Run {
    config: Config,
    report: Measurement,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let base = load_config(self.config.as_deref())?;
        let plan = self.plan(&base);
        let configs = plan.machines(&base)?;
        match &self.output {
            Some(directory) => {
                let shown = directory.display().to_string();
                let made = !directory.exists();
                std::fs::create_dir_all(directory).with_context(|| shown.clone())?;
                let runs = self.run_all(configs).inspect_err(|_| {
                    if made {
                        let _absent = std::fs::remove_dir(directory);
                    }
                })?;
                let save = |name: &str, text: String| -> anyhow::Result<()> {
                    let path = directory.join(name);
                    file(&path, text)?;
                    outln!("{}", path.display())
                };
                save("sweep.csv", rows::csv(&runs)?)?;
                for (name, chart) in charts::all(&plan, &runs, &self.trace_name()) {
                    save(&name, chart.render()?)?;
                }
            }
            None if self.json => {
                for run in self.run_all(configs)? {
                    outln!("{}", rows::json(&run))?;
                }
            }
            None => {
                let runs = self.run_all(configs)?;
                print(&rows::table(&plan, &runs, &self.trace_name())?)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What is to be tried. The defaults are those of the protection lookaside buffer; a sweep of something else
    /// keeps to what it names.
    fn plan(&self, base: &Config) -> Plan {
        let caches = [
            &self.instruction_cache,
            &self.data_cache,
            &self.unified_cache,
        ];
        let named_other = !self.glb.is_empty() || caches.iter().any(|sizes| !sizes.is_empty());
        let default = |values: &[u64]| match named_other {
            true => Vec::new(),
            false => values.to_vec(),
        };
        let given = |values: Vec<u64>, otherwise: &[u64]| match values.is_empty() {
            true => default(otherwise),
            false => values,
        };
        let wide = |values: &[u32]| values.iter().copied().map(u64::from).collect();
        let formats = match self.format.is_empty() {
            true if named_other => vec![base.tables.format],
            true => Format::ALL.to_vec(),
            false => self.format.clone(),
        };
        Plan::new(
            base,
            formats,
            [
                given(self.granularity.clone(), &[4, 64, 4096]),
                given(wide(&self.plb), &[16, 32, 64, 128, 256, 512]),
                wide(&self.glb),
                self.instruction_cache.clone(),
                self.data_cache.clone(),
                self.unified_cache.clone(),
            ],
        )
    }

    fn trace_name(&self) -> String {
        let name = self.trace.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn run_all(&self, configs: Vec<Config>) -> anyhow::Result<Vec<Run>> {
        let bar = trace::progress(trace::size(&self.trace)? * configs.len() as u64);
        let cores = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let jobs = self.jobs.unwrap_or(cores).get().min(configs.len());
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(config) = configs.get(index) else {
                            return;
                        };
                        let result = trace::run(&self.trace, config, &bar);
                        if result.is_err() {
                            // The other machines would fail on the same trace.
                            next.store(configs.len(), Ordering::Relaxed);
                        }
                        if let Ok(mut done) = done.lock() {
                            done.push((index, result));
                        }
                    }
                });
            }
        });
        bar.finish_and_clear();
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|(index, _)| *index);
        done.into_iter()
            .map(|(_, result)| {
                let report = result?;
                let config = report.config.clone();
                Ok(Run { config, report })
            })
            .collect()
    }
}
