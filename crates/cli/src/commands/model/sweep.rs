//! `mullion model sweep`.

use super::chart::{Chart, Series};
use super::{load_config, trace};
use crate::output::{file, outln};
use anyhow::Context;
use mullion_mmp::config::Config;
use mullion_mmp::measurement::Report;
use mullion_mmp::table::Format;
use std::fmt::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which machines to try.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The trace, a .mmt file.
    trace: PathBuf,
    /// The directory for sweep.csv and the charts; made if it is not there.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The machine that the sweep starts from, as TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Entries of the protection lookaside buffer.
    #[arg(long, value_delimiter = ',', default_value = "16,32,64,128,256,512")]
    plb: Vec<u32>,
    /// Formats of the permission tables.
    #[arg(long, value_delimiter = ',', default_value = "sorted,vector,runs")]
    format: Vec<Format>,
    /// Bytes in the smallest unit with a permission of its own.
    #[arg(long, value_delimiter = ',', default_value = "4,64,4096")]
    granularity: Vec<u64>,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
}

/// One machine and what it did.
struct Run {
    format: Format,
    granularity: u64,
    plb: u32,
    report: Report,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let base = load_config(self.config.as_deref())?;
        let mut configs = Vec::new();
        for &format in &self.format {
            for &granularity in &self.granularity {
                for &plb in &self.plb {
                    let mut config = base.clone();
                    config.tables.format = format;
                    config.tables.granularity = granularity;
                    config.plb.entries = plb;
                    config.check()?;
                    configs.push(config);
                }
            }
        }
        let shown = self.output.display().to_string();
        let made = !self.output.exists();
        std::fs::create_dir_all(&self.output).with_context(|| shown.clone())?;
        let runs = self.run_all(&configs).inspect_err(|_| {
            if made {
                let _absent = std::fs::remove_dir(&self.output);
            }
        })?;
        let save = |name: &str, text: String| -> anyhow::Result<()> {
            let path = self.output.join(name);
            file(&path, text)?;
            outln!("{}", path.display())
        };
        save("sweep.csv", csv(&runs)?)?;
        for (name, chart) in self.charts(&runs) {
            save(name, chart.render()?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn run_all(&self, configs: &[Config]) -> anyhow::Result<Vec<Run>> {
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
                Ok(Run {
                    format: report.config.tables.format,
                    granularity: report.config.tables.granularity,
                    plb: report.config.plb.entries,
                    report,
                })
            })
            .collect()
    }

    fn charts(&self, runs: &[Run]) -> Vec<(&'static str, Chart)> {
        let trace = file_name(&self.trace);
        let mut charts = Vec::new();
        if self.plb.len() > 1 {
            let finest = self.granularity.iter().copied().min().unwrap_or(4);
            let subtitle = format!("{trace}, granularity {finest} bytes");
            let by_plb = |value: fn(&Report) -> f64| {
                let series = |&format: &Format| {
                    let mine = runs
                        .iter()
                        .filter(|run| run.format == format && run.granularity == finest);
                    Series {
                        name: format.to_string(),
                        points: mine.map(|run| value(&run.report)).collect(),
                    }
                };
                self.format.iter().map(series).collect::<Vec<_>>()
            };
            let chart = |title: &str, unit: &str, value| Chart {
                title: title.to_owned(),
                subtitle: subtitle.clone(),
                x_title: "entries of the protection lookaside buffer".to_owned(),
                x_labels: self.plb.iter().map(u32::to_string).collect(),
                unit: unit.to_owned(),
                series: by_plb(value),
                bars: false,
            };
            charts.extend([
                (
                    "plb-miss-rate.svg",
                    chart("PLB miss rate", "%", |report| {
                        report.plb_miss_rate() * 100.0
                    }),
                ),
                (
                    "plb-time.svg",
                    chart("Time in PLB refills", "%", |report| {
                        report.plb_time() * 100.0
                    }),
                ),
                (
                    "slowdown.svg",
                    chart("Slowdown over no protection", "%", |report| {
                        report.slowdown().unwrap_or_default() * 100.0
                    }),
                ),
            ]);
        }
        charts.extend(self.granularity_charts(runs, &trace));
        charts
    }

    /// What the grain of protection changes, at the largest buffer.
    fn granularity_charts(&self, runs: &[Run], trace: &str) -> Vec<(&'static str, Chart)> {
        let plb = self.plb.iter().copied().max().unwrap_or(0);
        let chart = |title: &str, unit: &str, value: fn(&Report) -> f64| {
            let series = |&format: &Format| {
                let mine = runs
                    .iter()
                    .filter(|run| run.format == format && run.plb == plb);
                Series {
                    name: format.to_string(),
                    points: mine.map(|run| value(&run.report)).collect(),
                }
            };
            Chart {
                title: title.to_owned(),
                subtitle: format!("{trace}, {plb} PLB entries"),
                x_title: "granularity in bytes".to_owned(),
                x_labels: self.granularity.iter().map(u64::to_string).collect(),
                unit: unit.to_owned(),
                series: self.format.iter().map(series).collect(),
                bars: true,
            }
        };
        vec![
            (
                "table-memory.svg",
                chart("Memory of the tables at its peak", " KiB", |report| {
                    report.table_bytes() as f64 / 1024.0
                }),
            ),
            (
                "table-writes.svg",
                chart("Table words written", " k", |report| {
                    report.tables.written as f64 / 1000.0
                }),
            ),
            (
                "exposed.svg",
                chart(
                    "Words open to a domain that it was not given",
                    " k",
                    |report| report.exposed_words as f64 / 1000.0,
                ),
            ),
        ]
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn csv(runs: &[Run]) -> Result<String, std::fmt::Error> {
    let mut out = String::from(
        "format,granularity,plb_entries,cycles,slowdown,mbot,mtop,kern,crossing_time,\
         cycles_per_call,plb_time,plb_miss_rate,plb_lookups,plb_misses,table_bytes_peak,\
         table_bytes_end,words_written,words_read,exposed_words,refused_accesses,refused_calls\n",
    );
    for run in runs {
        let report = &run.report;
        let or_empty =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        writeln!(
            out,
            "{},{},{},{},{},{:.6},{:.6},{},{:.6},{},{:.6},{:.6},{},{},{},{},{},{},{},{},{}",
            run.format,
            run.granularity,
            run.plb,
            report.cycles.total(),
            or_empty(report.slowdown()),
            report.share(report.cycles.bottom),
            report.share(report.cycles.top),
            or_empty(report.kernel()),
            report.crossing_time(),
            or_empty(report.cycles_per_call()),
            report.plb_time(),
            report.plb_miss_rate(),
            report.plb.lookups,
            report.plb.misses,
            report.table_bytes(),
            report.tables.in_use * 4,
            report.tables.written,
            report.tables.read,
            report.exposed_words,
            report.refused_accesses,
            report.refused_calls,
        )?;
    }
    Ok(out)
}
