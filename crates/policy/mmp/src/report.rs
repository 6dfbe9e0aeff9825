//! What a run measured, in the form of the paper's tables.

use crate::config::Config;
use crate::gates::GlbCounts;
use crate::machine::Refusal;
use crate::plb::Counts;
use crate::table::memory::Traffic;
use serde::Serialize;
use std::fmt::{self, Write};

/// Where the cycles went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// The program's instructions.
    pub instructions: u64,
    /// The program's cache misses, those included that protection's own traffic caused.
    pub stalls: u64,
    /// Refills of the protection lookaside buffer, with their stalls.
    pub plb: u64,
    /// Refills of the gate lookaside buffer, with their stalls.
    pub glb: u64,
    /// Cross-domain calls and returns, with their stalls.
    pub crossing: u64,
    /// The supervisor's top half.
    pub top: u64,
    /// The supervisor's bottom half: table reads and writes with their stalls, and flushes.
    pub bottom: u64,
    /// Nothing ran.
    pub idle: u64,
}

impl Cycles {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.busy().saturating_add(self.idle)
    }

    /// All but idle ones.
    pub fn busy(&self) -> u64 {
        self.instructions
            + self.stalls
            + self.plb
            + self.glb
            + self.crossing
            + self.top
            + self.bottom
    }
}

/// Cross-domain calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crossings {
    /// Calls through switch gates.
    pub calls: u64,
    /// Those that changed the domain.
    pub to_other: u64,
    /// Returns through return gates.
    pub returns: u64,
    /// The most entries that a cross-domain call stack had.
    pub deepest: u64,
    /// Switches between threads.
    pub switches: u64,
}

/// What a run measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Events of the trace.
    pub events: u64,
    /// Where the cycles went.
    pub cycles: Cycles,
    /// Cycles of the same program without protection, if that was modelled.
    pub plain_cycles: Option<u64>,
    /// Cross-domain calls.
    pub crossings: Crossings,
    /// The protection lookaside buffer.
    pub plb: Counts,
    /// The gate lookaside buffer.
    pub glb: GlbCounts,
    /// Level-one instruction cache: accesses, misses.
    pub instruction_cache: [u64; 2],
    /// Level-one data cache: accesses, misses.
    pub data_cache: [u64; 2],
    /// Level-two cache: accesses, misses.
    pub unified_cache: [u64; 2],
    /// Calls to the supervisor, refused ones included.
    pub supervisor_calls: u64,
    /// Ranges that the bottom half wrote.
    pub table_writes: u64,
    /// The tables' memory, in words of four bytes.
    pub tables: Traffic,
    /// Words that domains may touch at the end only because granules are coarser than words.
    pub exposed_words: u64,
    /// Regions that the supervisor keeps apart at the end.
    pub regions: u64,
    /// Accesses that were refused.
    pub refused_accesses: u64,
    /// Calls that were refused.
    pub refused_calls: u64,
    /// The first of them, in full.
    pub refusals: Vec<Refusal>,
    /// The machine.
    pub config: Config,
}

impl Report {
    /// Slowdown over the machine without protection (Table 5, "Cyc"), as a fraction.
    pub fn slowdown(&self) -> Option<f64> {
        let plain = self.plain_cycles?;
        Some(ratio(self.cycles.total(), plain) - 1.0)
    }

    /// Cycles of a kind as a fraction of the machine without protection (Table 5, "Mbot" and "Mtop"), or of
    /// this machine if that was not modelled.
    pub fn share(&self, cycles: u64) -> f64 {
        ratio(cycles, self.plain_cycles.unwrap_or(self.cycles.total()))
    }

    /// What remains of the slowdown (Table 5, "Kern").
    pub fn kernel(&self) -> Option<f64> {
        let supervisor = self.share(self.cycles.bottom) + self.share(self.cycles.top);
        Some(self.slowdown()? - supervisor)
    }

    /// Fraction of all time in cross-domain calls and returns (Table 6, "XD").
    pub fn crossing_time(&self) -> f64 {
        ratio(self.cycles.crossing, self.cycles.total())
    }

    /// Cycles that were not idle for each cross-domain call (Table 6, "Cy/Ca").
    pub fn cycles_per_call(&self) -> Option<f64> {
        (self.crossings.calls > 0).then(|| ratio(self.cycles.busy(), self.crossings.calls))
    }

    /// Fraction of cross-domain calls that a domain made to itself (Table 6, "Self").
    pub fn to_self(&self) -> Option<f64> {
        let calls = self.crossings.calls;
        (calls > 0).then(|| ratio(calls - self.crossings.to_other, calls))
    }

    /// Fraction of all time in refills (Table 8, "PLB time").
    pub fn plb_time(&self) -> f64 {
        ratio(self.cycles.plb, self.cycles.total())
    }

    /// Misses for each look-up (Table 8, "PLB mr").
    pub fn plb_miss_rate(&self) -> f64 {
        ratio(self.plb.misses, self.plb.lookups)
    }

    /// Bytes in tables at their peak.
    pub fn table_bytes(&self) -> u64 {
        self.tables.peak * 4
    }
}

/// A quotient that is 0 where there is nothing to divide by.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The rows of the paper that stand beside this run's, from Mondrix, Tables 5 to 8: benchmark; cycles in
/// billions, slowdown, Mbot, Mtop, Kern; XD, calls in millions, Cy/Ca, self; free memory used; PLB time and
/// miss rate. Percentages as the paper prints them.
pub const PAPER: [PaperRow; 4] = [
    PaperRow {
        name: "config-xemacs",
        table5: [16.5, 4.4, 2.4, 0.7, 1.3],
        table6: [0.3, 3.29, 1286.0, 70.0],
        table7: 10.2,
        table8: [0.8, 0.51],
    },
    PaperRow {
        name: "thttpd",
        table5: [0.23, 14.8, 9.3, 2.0, 3.7],
        table6: [0.8, 0.15, 939.0, 64.0],
        table7: 1.1,
        table8: [3.8, 0.87],
    },
    PaperRow {
        name: "find",
        table5: [14.3, 3.3, 1.3, 1.2, 0.8],
        table6: [0.2, 2.74, 846.0, 57.0],
        table7: 7.8,
        table8: [0.4, 0.07],
    },
    PaperRow {
        name: "MySQL",
        table5: [0.21, 9.6, 4.0, 3.3, 2.3],
        table6: [0.7, 0.12, 664.0, 50.0],
        table7: 1.6,
        table8: [1.7, 0.22],
    },
];

/// One benchmark's figures in the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperRow {
    /// The benchmark (Table 4).
    pub name: &'static str,
    /// Table 5: cycles in billions, then percentages: slowdown, Mbot, Mtop, Kern.
    pub table5: [f64; 5],
    /// Table 6: XD in per cent, calls in millions, cycles per call, self in per cent.
    pub table6: [f64; 4],
    /// Table 7: free memory used, in per cent.
    pub table7: f64,
    /// Table 8: PLB time and miss rate, in per cent.
    pub table8: [f64; 2],
}

/// What the tables say where something was not measured.
const ABSENT: &str = "-";

fn percent(value: Option<f64>, digits: usize) -> String {
    match value {
        Some(value) => format!("{:.digits$}%", value * 100.0),
        None => ABSENT.to_owned(),
    }
}

/// A table with aligned columns, the first to the left and the others to the right.
fn layout(out: &mut String, title: &str, head: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([head[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    writeln!(out, "{title}\n")?;
    let mut line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = width(column);
            match column {
                0 => write!(text, "  {cell:<width$}")?,
                _ => write!(text, "   {cell:>width$}")?,
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>())?;
    for row in rows {
        line(row)?;
    }
    writeln!(out)
}

impl Report {
    /// The tables as text, this run's row first, the paper's rows below, marked as such.
    pub fn render(&self, name: &str) -> Result<String, fmt::Error> {
        let mut out = String::new();
        self.render_tables(&mut out, name)?;
        self.render_split(&mut out)?;
        self.render_refusals(&mut out)?;
        Ok(out)
    }

    fn render_tables(&self, out: &mut String, name: &str) -> fmt::Result {
        let billions = |cycles: u64| format!("{:.3}", cycles as f64 / 1e9);
        let with_paper = |own: Vec<String>, paper: fn(&PaperRow) -> Vec<String>| {
            let mut rows = vec![own];
            for row in &PAPER {
                let mut cells = vec![format!("paper: {}", row.name)];
                cells.extend(paper(row));
                rows.push(cells);
            }
            rows
        };
        let own = vec![
            name.to_owned(),
            billions(self.cycles.total()),
            percent(self.slowdown(), 1),
            percent(Some(self.share(self.cycles.bottom)), 1),
            percent(Some(self.share(self.cycles.top)), 1),
            percent(self.kernel(), 1),
        ];
        let rows = with_paper(own, |row| {
            let [cycles, rest @ ..] = row.table5;
            let mut cells = vec![format!("{cycles}")];
            cells.extend(rest.map(|value| format!("{value:.1}%")));
            cells
        });
        let head = ["", "Cyc (10^9)", "slowdown", "Mbot", "Mtop", "Kern"];
        layout(out, "Table 5: what protection costs", &head, &rows)?;

        let calls = format!("{:.3}", self.crossings.calls as f64 / 1e6);
        let per_call = self.cycles_per_call();
        let own = vec![
            name.to_owned(),
            percent(Some(self.crossing_time()), 1),
            calls,
            per_call.map_or(ABSENT.to_owned(), |cycles| format!("{cycles:.0}")),
            percent(self.to_self(), 0),
            percent(self.to_self().map(|own| 1.0 - own), 0),
        ];
        let rows = with_paper(own, |row| {
            let [time, calls, per_call, own] = row.table6;
            vec![
                format!("{time:.1}%"),
                format!("{calls:.2}"),
                format!("{per_call}"),
                format!("{own:.0}%"),
                format!("{:.0}%", 100.0 - own),
            ]
        });
        let head = ["", "XD", "Ca (10^6)", "Cy/Ca", "Self", "Other"];
        layout(out, "Table 6: cross-domain calls", &head, &rows)?;

        let traffic = self.tables;
        let kib = |words: u64| format!("{:.1}", words as f64 / 256.0);
        let own = vec![
            self.config.tables.format.to_string(),
            kib(traffic.in_use),
            kib(traffic.peak),
            percent(Some(ratio(self.table_bytes(), MAIN_MEMORY)), 2),
            self.table_writes.to_string(),
            traffic.written.to_string(),
            traffic.read.to_string(),
        ];
        let head = [
            "format",
            "KiB now",
            "KiB peak",
            "of 256 MB",
            "ranges",
            "words written",
            "words read",
        ];
        let title = "Table memory (the paper's Table 7 counts all free memory lost: 10.2%, 1.1%, 7.8%, 1.6%)";
        layout(out, title, &head, &[own])?;

        let own = vec![
            name.to_owned(),
            percent(Some(self.plb_time()), 2),
            percent(Some(self.plb_miss_rate()), 3),
        ];
        let rows = with_paper(own, |row| {
            vec![
                format!("{:.1}%", row.table8[0]),
                format!("{:.2}%", row.table8[1]),
            ]
        });
        let head = ["", "PLB time", "PLB mr"];
        layout(
            out,
            "Table 8: the protection lookaside buffer",
            &head,
            &rows,
        )
    }

    fn render_split(&self, out: &mut String) -> fmt::Result {
        let cycles = self.cycles;
        let total = cycles.total();
        let rows: Vec<Vec<String>> = [
            ("instructions", cycles.instructions),
            ("cache misses of the program", cycles.stalls),
            ("PLB refills", cycles.plb),
            ("GLB refills", cycles.glb),
            ("cross-domain calls and returns", cycles.crossing),
            ("supervisor, top half", cycles.top),
            ("supervisor, bottom half", cycles.bottom),
            ("idle", cycles.idle),
            ("all", total),
        ]
        .into_iter()
        .map(|(name, part)| {
            vec![
                name.to_owned(),
                part.to_string(),
                percent(Some(ratio(part, total)), 2),
            ]
        })
        .collect();
        layout(out, "Where the cycles went", &["", "cycles", ""], &rows)?;

        let counts: Vec<Vec<String>> = [
            ("level-one instruction cache", self.instruction_cache),
            ("level-one data cache", self.data_cache),
            ("level-two cache", self.unified_cache),
            (
                "protection lookaside buffer",
                [self.plb.lookups, self.plb.misses],
            ),
            ("gate lookaside buffer", [self.glb.lookups, self.glb.misses]),
        ]
        .into_iter()
        .map(|(name, [lookups, misses])| {
            vec![
                name.to_owned(),
                lookups.to_string(),
                misses.to_string(),
                percent(Some(ratio(misses, lookups)), 3),
            ]
        })
        .collect();
        let head = ["", "look-ups", "misses", "miss rate"];
        layout(out, "Caches and buffers", &head, &counts)?;
        writeln!(
            out,
            "{} events, {} calls to the supervisor, {} switches between threads, call stack at most {} deep,\n{} regions at the end",
            self.events,
            self.supervisor_calls,
            self.crossings.switches,
            self.crossings.deepest,
            self.regions,
        )?;
        if self.exposed_words > 0 {
            writeln!(
                out,
                "{} words open to a domain only because granules are {} bytes",
                self.exposed_words, self.config.tables.granularity,
            )?;
        }
        Ok(())
    }

    fn render_refusals(&self, out: &mut String) -> fmt::Result {
        let count = self.refused_accesses + self.refused_calls;
        if count == 0 {
            return writeln!(out, "nothing was refused");
        }
        writeln!(
            out,
            "\nRefused: {} accesses, {} calls",
            self.refused_accesses, self.refused_calls
        )?;
        for refusal in &self.refusals {
            writeln!(out, "  {refusal}")?;
        }
        let shown = self.refusals.len() as u64;
        if count > shown {
            writeln!(out, "  and {} more (report.refusals)", count - shown)?;
        }
        Ok(())
    }
}

/// The paper's main memory (Mondrix, section 5.2), in bytes.
const MAIN_MEMORY: u64 = 256 << 20;
