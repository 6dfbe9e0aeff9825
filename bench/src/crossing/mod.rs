//! The table "crossings": what getting to the other side of a wall costs, with 1, 100 and
//! 10,000 domains alive, beside calls, the kernel, another process and WebAssembly.
//!
//! ```text
//! this program --- "call in turn" --> a peer: a process with so many domains
//!              <-- "11.052" ---------        (this program's own, or one in C)
//! ```
//! Every peer is a process of its own that answers one question at a time. All of them live through
//! the whole measurement: in each round each is asked for each of its rows.

mod answer;
mod build;
mod catalogue;
mod domains;
mod interface;
mod memory;
pub(crate) mod page;
mod peer;
mod plot;
mod run_time;
pub(crate) mod table;

pub(crate) use answer::{Question, answer};
pub(crate) use catalogue::{Catalogue, Peer, Population, Selection};

use crate::builder::Builder;
use crate::machine::Processors;
use crate::results::{CrossingGroup, CrossingRow, Crossings, Times};
use anyhow::Result;
use indicatif::ProgressBar;
use peer::Peers;
use std::path::Path;

/// Rounds of every row, in a quick run too.
pub(crate) const ROUNDS: usize = 21;

/// How one measurement of one row lasts, in nanoseconds.
const BUDGET: u64 = 3_000_000;
const QUICK_BUDGET: u64 = 1_000_000;

/// Builds the peers and asks them all, `rounds` times in turn.
pub(crate) fn measure(
    builder: &Builder,
    processors: Processors,
    wasmtime: Result<&Path, String>,
    selection: &Selection<'_>,
    quick: bool,
    rounds: usize,
    progress: &ProgressBar,
) -> Result<Crossings> {
    let mut catalogue = Catalogue::load(builder.bench)?;
    catalogue.select(selection)?;
    progress.set_message("building the peers");
    let programs = build::build(builder, &catalogue, wasmtime)?;
    let budget = if quick { QUICK_BUDGET } else { BUDGET };
    progress.set_message("starting the peers: up to 10,000 domains each");
    let mut peers = Peers::start(&programs, selection, processors, budget)?;
    let memory_new = memory::of(&peers)?;
    let groups = catalogue.group.into_iter();
    let mut groups: Vec<CrossingGroup> = groups.map(|group| empty(group, selection)).collect();
    let cells = groups.iter().flat_map(|group| &group.rows);
    let cells: usize = cells.map(|row| row.cells.len()).sum();
    progress.set_length((cells * rounds) as u64);
    for round in 1..=rounds {
        for group in &mut groups {
            progress.set_message(format!("round {round} of {rounds}: {}", group.title));
            for row in &mut group.rows {
                ask(&mut peers, row, progress);
            }
        }
    }
    let memory_called = memory::of(&peers)?;
    Ok(Crossings {
        rounds,
        budget_nanoseconds: budget,
        groups,
        processors: told(processors),
        memory: memory::per_domain(&memory_new, &memory_called),
        missing: peers.missing(),
        cited: catalogue.cited,
    })
}

fn told(processors: Processors) -> String {
    let own = processors.own;
    match processors.other {
        None => format!("processor {own}, the only one"),
        Some(other) if processors.are_one_core() => {
            format!(
                "processor {own}; \"two cores\" are processors {own} and {other}, two threads of one core"
            )
        }
        Some(other) => format!("processor {own}; two cores are processors {own} and {other}"),
    }
}

/// A group without numbers, with a cell for each that it will have.
fn empty(group: catalogue::Group, selection: &Selection<'_>) -> CrossingGroup {
    let row = |row: catalogue::Row| CrossingRow {
        cells: row
            .populations()
            .into_iter()
            .filter(|population| selection.has_population(row.peer, population.domains()))
            .map(|population| (population, Times::default()))
            .collect(),
        peer: row.peer,
        ask: row.ask,
        title: row.title,
        what: row.what,
        aim: row.aim,
        note: row.note,
    };
    CrossingGroup {
        title: group.title,
        rows: group.row.into_iter().map(row).collect(),
    }
}

/// One question for each cell of the row.
fn ask(peers: &mut Peers, row: &mut CrossingRow, progress: &ProgressBar) {
    for (population, times) in &mut row.cells {
        progress.inc(1);
        if times.missing.is_some() {
            continue;
        }
        let question = match population.is_in_turn() {
            true => format!("{} in turn", row.ask),
            false => row.ask.clone(),
        };
        match peers.ask(row.peer, population.domains(), &question) {
            Ok(nanoseconds) => times.nanoseconds.push(nanoseconds),
            Err(reason) => times.missing = Some(reason),
        }
    }
}
