//! `mullion-bench`: what each wall costs, side by side, in one run.
//!
//! Builds every workload natively, behind Mullion's walls and as WebAssembly, runs them in
//! turn on one core. It compares their results, and writes a table, JSON and a page.
#![forbid(unsafe_code)]

mod arguments;
mod builder;
mod catalogue;
mod column;
mod crossing;
mod elf;
mod html;
mod machine;
mod markdown;
mod measure;
mod plots;
mod report;
mod results;
mod side;
mod sources;
mod stats;
mod table;
mod tools;

use anyhow::{Context, Result, bail};
use arguments::{Arguments, Command};
use builder::{Builder, Program};
use catalogue::{Catalogue, Workload};
use clap::Parser;
use column::Column;
use indicatif::{ProgressBar, ProgressStyle};
use measure::Case;
use results::{Cell, Results, Row};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use tools::Tools;

/// Set to anything, it turns an absent peer into a failure.
const REQUIRE_PEERS: &str = "MULLION_BENCH_REQUIRE_PEERS";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        None => bench(arguments),
        Some(Command::Report(again)) => report::again(again),
        Some(Command::Answer(question)) => {
            crossing::answer(question)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn bench(arguments: &Arguments) -> Result<ExitCode> {
    fs::create_dir_all(&arguments.build)
        .with_context(|| format!("making {}", arguments.build.display()))?;
    let (bench, build) = (absolute(&arguments.bench)?, absolute(&arguments.build)?);
    let mut notes = Vec::new();
    let catalogue = catalogue(arguments, &bench, &build, &mut notes)?;
    if arguments.list {
        list(&catalogue, &crossing::Catalogue::load(&bench)?);
        return Ok(ExitCode::SUCCESS);
    }
    let wanted: Vec<Column> = Column::ALL
        .into_iter()
        .filter(|column| arguments.wants(*column) && !catalogue.workloads.is_empty())
        .collect();
    let tools = Tools::find(&wanted, mullion(arguments)?, &build)?;
    notes.extend(
        tools
            .missing
            .iter()
            .map(|(column, reason)| format!("no column `{}`: {reason}", column.name())),
    );
    for note in &notes {
        eprintln!("bench: {note}");
    }
    if !notes.is_empty() && std::env::var_os(REQUIRE_PEERS).is_some() {
        bail!("{REQUIRE_PEERS} is set, and not everything is here");
    }
    if arguments.place > 0 {
        let bytes = 16 * u32::from(arguments.place);
        notes.push(format!(
            "native and walled code lies {bytes} bytes further on than it would"
        ));
    }
    let columns: Vec<Column> = wanted
        .into_iter()
        .filter(|column| !tools.missing.contains_key(column))
        .collect();
    let builder = Builder {
        bench: &bench,
        build: &build,
        tools: &tools,
        place: arguments.place,
    };
    let cases = build_all(&builder, &catalogue.workloads, &columns, arguments)?;
    if arguments.build_only {
        return Ok(ExitCode::SUCCESS);
    }
    let groups = catalogue.groups.clone();
    let results = measure_all(arguments, &builder, groups, cases, columns, notes)?;
    report::report(arguments, &results)
}

/// The workloads that were asked for.
fn catalogue(
    arguments: &Arguments,
    bench: &Path,
    build: &Path,
    notes: &mut Vec<String>,
) -> Result<Catalogue> {
    let Some(only) = arguments.workloads() else {
        return Ok(Catalogue::empty());
    };
    let fetched = sources::fetch(bench, build)
        .map_err(|error| notes.push(format!("the real libraries are left out: {error:#}")))
        .ok();
    let mut catalogue = Catalogue::load(bench, fetched.as_deref())?;
    catalogue.select(&only)?;
    Ok(catalogue)
}

fn list(catalogue: &Catalogue, crossings: &crossing::Catalogue) {
    let mut lines = Vec::new();
    for (group, title) in &catalogue.groups {
        lines.push(format!("{group}: {title}"));
        for workload in catalogue.workloads.iter().filter(|w| w.group == *group) {
            lines.push(format!("  {:<18}{}", workload.name, workload.what));
        }
    }
    for group in &crossings.group {
        lines.push(format!("crossings.{}: {}", group.name, group.title));
        for row in &group.row {
            let name = format!("{} {}", row.peer.name(), row.ask);
            lines.push(format!("  {name:<26}{}", row.what));
        }
    }
    let columns: Vec<&str> = Column::ALL.iter().map(|c| c.name()).collect();
    lines.push(format!("columns: {}\n", columns.join(", ")));
    // A reader that has seen enough (`| head`) is no error.
    let _ = std::io::stdout().write_all(lines.join("\n").as_bytes());
}

/// Builds everything, some at a time. What cannot be built becomes a cell with an error.
fn build_all<'a>(
    builder: &Builder,
    workloads: &'a [Workload],
    columns: &[Column],
    arguments: &Arguments,
) -> Result<Vec<Case<'a>>> {
    let pairs: Vec<(usize, Column)> = (0..workloads.len())
        .flat_map(|w| columns.iter().map(move |column| (w, *column)))
        .collect();
    let progress = bar(pairs.len(), "building");
    let jobs = arguments.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |n| n as usize,
    );
    let queue = Mutex::new(pairs.into_iter());
    let built: Mutex<Vec<(usize, Column, Result<Program>)>> = Mutex::new(Vec::new());
    let lock = "no thread panics while it holds the lock";
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let Some((w, column)) = queue.lock().expect(lock).next() else {
                        break;
                    };
                    let program = builder.build(&workloads[w], column);
                    progress.inc(1);
                    built.lock().expect(lock).push((w, column, program));
                }
            });
        }
    });
    progress.finish_and_clear();
    let mut parts: Vec<(BTreeMap<Column, Program>, BTreeMap<Column, Cell>)> =
        workloads.iter().map(|_| Default::default()).collect();
    for (w, column, program) in built.into_inner().expect(lock) {
        match program {
            Ok(program) => drop(parts[w].0.insert(column, program)),
            Err(error) => {
                eprintln!(
                    "bench: {}, {}: not built: {error:#}",
                    workloads[w].name,
                    column.name()
                );
                parts[w]
                    .1
                    .insert(column, Cell::failed(format!("not built: {error:#}")));
            }
        }
    }
    workloads
        .iter()
        .zip(parts)
        .map(|(workload, (programs, cells))| Case::new(workload, programs, cells))
        .collect()
}

fn measure_all(
    arguments: &Arguments,
    builder: &Builder,
    groups: Vec<(String, String)>,
    mut cases: Vec<Case>,
    columns: Vec<Column>,
    notes: Vec<String>,
) -> Result<Results> {
    let rounds = arguments
        .rounds
        .map_or(if arguments.quick { 3 } else { 7 }, |n| n as usize);
    let turns = arguments
        .turns
        .map_or(if arguments.quick { 3 } else { 5 }, |n| n as usize);
    let seconds = arguments
        .seconds
        .unwrap_or(if arguments.quick { 0.03 } else { 0.06 });
    let processors = machine::stay_on(arguments.cpu)?;
    let crossings = match arguments.crossings() {
        Some(selection) => Some(crossings(
            arguments, builder, processors, &selection, rounds,
        )?),
        None => None,
    };
    let progress = bar(cases.len() * columns.len() * rounds * turns, "measuring");
    for case in &mut cases {
        progress.set_message(format!("calibrating {}", case.workload.name));
        case.calibrate(seconds)
            .with_context(|| case.workload.name.clone())?;
    }
    for round in 1..=rounds {
        for case in &mut cases {
            progress.set_message(format!("round {round} of {rounds}: {}", case.workload.name));
            case.round(&columns, turns, &progress);
        }
    }
    progress.finish_and_clear();
    let rows_are_wanted = !cases.is_empty();
    let side = bar(0, "measuring");
    side.set_message("requests, loading, verifier");
    let (requests, loads, verifier) = (
        match rows_are_wanted {
            true => side::requests(builder, arguments.quick)?,
            false => Vec::new(),
        },
        side::loads(&cases, arguments.quick)?,
        side::verifier(&cases, arguments.quick)?,
    );
    side.finish_and_clear();
    let rows = cases.into_iter().map(row).collect();
    Ok(Results {
        machine: machine::describe()?,
        rounds,
        turns,
        seconds,
        columns,
        notes,
        groups,
        rows,
        crossings,
        requests,
        loads,
        verifier,
    })
}

fn crossings(
    arguments: &Arguments,
    builder: &Builder,
    processors: machine::Processors,
    selection: &crossing::Selection<'_>,
    rounds: usize,
) -> Result<results::Crossings> {
    let asked = selection.peers.is_empty() || selection.peers.contains(&crossing::Peer::Wasmtime);
    let wasmtime = match asked && arguments.wants(Column::Wasmtime) {
        true => builder.tools.wasmtime(builder.build),
        false => Err("wasmtime is not among --columns".to_owned()),
    };
    let wasmtime = wasmtime.as_deref().map_err(String::clone);
    let progress = bar(0, "crossings");
    let rounds = rounds.max(crossing::ROUNDS);
    let quick = arguments.quick;
    let crossings = crossing::measure(
        builder, processors, wasmtime, selection, quick, rounds, &progress,
    );
    progress.finish_and_clear();
    crossings
}

fn row(case: Case) -> Row {
    Row {
        name: case.workload.name.clone(),
        what: case.workload.what.clone(),
        group: case.workload.group.clone(),
        iterations: case.iterations,
        cells: case.cells,
    }
}

fn mullion(arguments: &Arguments) -> Result<PathBuf> {
    let own = std::env::current_exe().context("finding this program")?;
    absolute(
        &arguments
            .mullion
            .clone()
            .unwrap_or_else(|| own.with_file_name("mullion")),
    )
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("finding {}", path.display()))
}

fn bar(length: usize, what: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("bench: {prefix} [{bar:30}] {pos}/{len}, {eta} left: {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length as u64)
        .with_style(style.progress_chars("=> "))
        .with_prefix(what.to_owned())
}
