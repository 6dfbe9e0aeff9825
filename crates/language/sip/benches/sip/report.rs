//! The rows as text, as JSON, and as a page with plots.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::crowd::Crowd;
use crate::row::Row;
use crate::threads;

/// What the numbers were measured on.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    /// Cycles of the time-stamp counter in a nanosecond.
    cycles_per_nanosecond: f64,
    /// A word there and back between the first core and the nearest, and the farthest.
    near_cycles: f64,
    far_cycles: f64,
    /// Of the system, while it was measured: other work shows in the quartiles.
    load: String,
    /// What 10,000 processes and 100,000 channels take.
    crowd: Option<Crowd>,
}

impl Machine {
    pub(crate) fn this(crowd: Option<Crowd>) -> Machine {
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = information.lines().find(|line| line.starts_with(name))?;
            Some(line.split(':').nth(1)?.trim().to_owned())
        };
        let of = |name| field(name).unwrap_or_else(|| "unknown".to_owned());
        let ((_, near), (_, far)) = threads::distances();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            processor: format!(
                "{} (family {} model {})",
                of("model name"),
                of("cpu family"),
                of("model\t")
            ),
            cores: clock::cores().len(),
            cycles_per_nanosecond: clock::per_nanosecond(),
            near_cycles: near,
            far_cycles: far,
            load: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
            crowd,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{}, {} cores, {:.3} cycles of the time-stamp counter per ns; load {}.\nA word there and back between cores: \
             {:.0} cycles near, {:.0} far{}.",
            self.processor,
            self.cores,
            self.cycles_per_nanosecond,
            self.load,
            self.near_cycles,
            self.far_cycles,
            if self.far_cycles > self.near_cycles * 1.5 {
                ""
            } else {
                " (one kind of pair only)"
            }
        );
        if let Some(crowd) = &self.crowd {
            let _ = write!(text, "\n{crowd}");
        }
        text
    }
}

const COLUMNS: [&str; 9] = [
    "operation",
    "who",
    "where",
    "bytes",
    "cycles",
    "quartiles",
    "least",
    "ns",
    "paper / aim",
];

fn cells(row: &Row) -> [String; 9] {
    let beside = |cycles: Option<f64>| cycles.map_or("–".to_owned(), number);
    let known = row.paper.is_some() || row.aim.is_some();
    [
        row.operation.clone(),
        row.who.clone(),
        row.place.clone(),
        row.bytes.map_or(String::new(), |bytes| bytes.to_string()),
        number(row.median),
        format!(
            "{}–{}",
            number(row.first_quartile),
            number(row.third_quartile)
        ),
        number(row.least),
        format!("{:.1}", row.median / clock::per_nanosecond()),
        if known {
            format!("{} / {}", beside(row.paper), beside(row.aim))
        } else {
            String::new()
        },
    ]
}

fn number(cycles: f64) -> String {
    if cycles < 9.95 {
        format!("{cycles:.1}")
    } else {
        format!("{cycles:.0}")
    }
}

/// A table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n", COLUMNS.join(" | "));
    text.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for row in rows {
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    text
}

#[derive(Serialize)]
struct Results<'a> {
    machine: &'a Machine,
    unit: &'static str,
    rows: &'a [Row],
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

/// The rows of another program's JSON.
pub(crate) fn rows_of(json: &str) -> serde_json::Result<Vec<Row>> {
    Ok(serde_json::from_str::<Rows>(json)?.rows)
}

pub(crate) fn json(machine: &Machine, rows: &[Row]) -> String {
    let results = Results {
        machine,
        unit: "cycles of the time-stamp counter",
        rows,
    };
    serde_json::to_string_pretty(&results).expect("numbers and names") + "\n"
}

/// A page that needs nothing else: the plot, the table, the machine.
pub(crate) fn page(machine: &Machine, rows: &[Row]) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Software isolated processes: what they cost</title>\n\
         <style>body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}\
         table{border-collapse:collapse;font-size:13px}td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd}\
         td:nth-child(n+4),th:nth-child(n+4){text-align:right;font-variant-numeric:tabular-nums}\
         svg{max-width:100%;height:auto}</style>\n\
         <h1>Software isolated processes: what they cost</h1>\n",
    );
    let _ = writeln!(
        page,
        "<p>{}</p>",
        escaped(&machine.text()).replace('\n', "<br>")
    );
    page.push_str(
        "<h2>Figure 4: a message there and back</h2>\n<p>Median cycles of the time-stamp counter, by the size of the message; \
         both axes are logarithmic. Bars: quartiles.</p>\n",
    );
    page.push_str(&crate::plot::messages(rows));
    page.push_str("<h2>Table 1, and all rows</h2>\n<table><tr>");
    for column in COLUMNS {
        let _ = write!(page, "<th>{column}</th>");
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in cells(row) {
            let _ = write!(page, "<td>{}</td>", escaped(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></html>\n");
    page
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
