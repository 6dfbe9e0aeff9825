//! A measurement as text, laid out as the paper's tables.

mod paper;

pub use paper::{PAPER, PaperRow};

use crate::measurement::{Measurement, ratio};
use std::fmt::{self, Write};

/// What the tables say where something was not measured.
const ABSENT: &str = "-";

fn percent(value: Option<f64>, digits: usize) -> String {
    match value {
        Some(value) => format!("{:.digits$}%", value * 100.0),
        None => ABSENT.to_owned(),
    }
}

/// Appends a table with aligned columns, the first to the left and the others to the right. A cell that a row
/// lacks is empty.
pub fn layout(out: &mut String, title: &str, head: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| Some(row.get(column)?.chars().count()));
        cells
            .chain(head.get(column).map(|cell| cell.chars().count()))
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

impl Measurement {
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
