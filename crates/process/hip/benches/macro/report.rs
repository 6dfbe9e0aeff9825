//! The rows as text, as JSON, and as a page with bars.

use std::fmt::Write;

use serde::Serialize;

use crate::Processors;
use crate::work::Kind;

/// One configuration of one program.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    benchmark: &'static str,
    configuration: &'static str,
    processors: u8,
    /// Files read, or blocks sorted.
    count: u64,
    median_ms: f64,
    least_ms: f64,
    /// In times of one address space with checks.
    normalised: f64,
}

impl Row {
    pub(crate) fn of(
        kind: Kind,
        configuration: &'static str,
        processors: Processors,
        count: u64,
        rounds: &[Vec<u64>],
        base: u64,
    ) -> Row {
        let middle = time(rounds, median);
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        Row {
            benchmark: match kind {
                Kind::Files => "WebFiles",
                Kind::Compute => "pipeline",
            },
            configuration,
            processors: match processors {
                Processors::One => 1,
                Processors::Two => 2,
            },
            count,
            median_ms: ms(middle),
            least_ms: ms(time(rounds, |values| *values.first().unwrap_or(&0))),
            normalised: middle as f64 / base as f64,
        }
    }

    fn cells(&self) -> [String; 7] {
        [
            self.benchmark.into(),
            self.processors.to_string(),
            self.configuration.into(),
            format!("{:.2}", self.normalised),
            format!("{:.1}", self.median_ms),
            format!("{:.1}", self.least_ms),
            format!("{:.2}", self.median_ms * 1e3 / self.count as f64),
        ]
    }
}

/// The sum over batches of what `choose` takes of a batch's times in order.
pub(crate) fn time(rounds: &[Vec<u64>], choose: fn(&[u64]) -> u64) -> u64 {
    let batches = rounds.iter().map(Vec::len).min().unwrap_or(0);
    let of = |batch: usize| {
        let mut times: Vec<u64> = rounds.iter().map(|round| round[batch]).collect();
        times.sort_unstable();
        choose(&times)
    };
    (0..batches).map(of).sum()
}

/// Of sorted values.
pub(crate) fn median(values: &[u64]) -> u64 {
    values[values.len() / 2]
}

const COLUMNS: [&str; 7] = [
    "benchmark",
    "processors",
    "configuration",
    "normalised",
    "ms (medians)",
    "least",
    "µs each",
];

/// A table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n", COLUMNS.join(" | "));
    text.push_str("| --- | ---: | --- | ---: | ---: | ---: | ---: |\n");
    for row in rows {
        let _ = writeln!(text, "| {} |", row.cells().join(" | "));
    }
    text
}

/// What the numbers were measured on.
fn machine() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = information
        .lines()
        .find(|line| line.starts_with("model name"));
    let processor = line
        .and_then(|line| line.split(':').nth(1))
        .unwrap_or("unknown");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    format!("{}; load {}", processor.trim(), load.join(" "))
}

#[derive(Serialize)]
struct Results<'a> {
    machine: String,
    rounds: usize,
    rows: &'a [Row],
}

pub(crate) fn json(rows: &[Row], rounds: usize) -> String {
    let results = Results {
        machine: machine(),
        rounds,
        rows,
    };
    serde_json::to_string_pretty(&results).expect("numbers and names") + "\n"
}

/// A page that needs nothing else.
pub(crate) fn page(rows: &[Row], rounds: usize) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Processes in every configuration</title>\n\
         <style>body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}\
         table{border-collapse:collapse;font-size:13px}td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd}\
         td:nth-child(n+4),th:nth-child(n+4){text-align:right;font-variant-numeric:tabular-nums}\
         .bar{display:inline-block;height:.8em;background:#d40000}</style>\n\
         <h1>Processes in every configuration</h1>\n",
    );
    let _ = writeln!(
        page,
        "<p>{}. Medians of {rounds} interleaved rounds, in times of one address space with checks (the paper's Figure 5).</p>",
        machine()
    );
    let most = rows.iter().map(|row| row.normalised).fold(1.0, f64::max);
    page.push_str("<table><tr>");
    for column in COLUMNS {
        let _ = write!(page, "<th>{column}</th>");
    }
    page.push_str("<th></th></tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in row.cells() {
            let _ = write!(page, "<td>{cell}</td>");
        }
        let width = row.normalised / most * 20.0;
        let _ = writeln!(
            page,
            "<td style=\"text-align:left\"><span class=\"bar\" style=\"width:{width:.2}rem\"></span></td></tr>"
        );
    }
    page.push_str("</table></html>\n");
    page
}
