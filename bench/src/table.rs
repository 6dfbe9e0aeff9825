//! The table on the terminal.

use crate::column::Column;
use crate::crossing;
use crate::results::{Results, Row};
use std::fmt::Write as _;

/// Prints as much as fits 100 characters: ratios, growth of code, spread.
pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    let columns: Vec<Column> = results
        .columns
        .iter()
        .copied()
        .filter(|c| *c != Column::Native)
        .collect();
    heading(&mut out, results);
    if !results.rows.is_empty() {
        workload_heading(&mut out, results, &columns);
    }
    for (group, title) in &results.groups {
        let _ = writeln!(out, "\n{title}");
        for row in results.rows_of(Some(group)) {
            line(&mut out, row, &columns);
        }
        mean(&mut out, results, &columns, "geometric mean", Some(group));
    }
    if results.groups.len() > 1 {
        let _ = writeln!(out);
        mean(&mut out, results, &columns, "ALL", None);
    }
    if let Some(crossings) = &results.crossings {
        out += &crossing::table::render(crossings);
    }
    side_tables(&mut out, results);
    remarks(&mut out, results);
    out
}

fn heading(out: &mut String, results: &Results) {
    let machine = &results.machine;
    let _ = writeln!(
        out,
        "{} · {} · {}",
        machine.cpu, machine.system, machine.compiler
    );
}

fn workload_heading(out: &mut String, results: &Results, columns: &[Column]) {
    let _ = write!(
        out,
        "time over native (gcc -O2) time of the same turn: median of {} rounds of {} turns of about {} s\n{:<18}",
        results.rounds, results.turns, results.seconds, ""
    );
    for column in columns {
        let _ = write!(out, "{:>9}", column.short());
    }
    let _ = writeln!(out, "{:>9}{:>8}", "code", "spread");
}

fn line(out: &mut String, row: &Row, columns: &[Column]) {
    let _ = write!(out, "  {:<16}", row.name);
    for column in columns {
        let failed = row
            .cells
            .get(column)
            .is_some_and(|cell| cell.error.is_some());
        let _ = match row.ratio(*column) {
            Some(ratio) => write!(out, "{ratio:>9.3}"),
            None if failed => write!(out, "{:>9}", "ERROR"),
            None => write!(out, "{:>9}", "–"),
        };
    }
    optional(out, 9, row.growth(Column::ReadWriteCall));
    let _ = match row.spread() {
        Some(spread) => writeln!(out, "{:>7.1}%", spread * 100.0),
        None => writeln!(out, "{:>8}", "–"),
    };
}

fn mean(out: &mut String, results: &Results, columns: &[Column], title: &str, group: Option<&str>) {
    let _ = write!(out, "  {title:<16}");
    for column in columns {
        optional(out, 9, results.mean(*column, group).map(|(mean, _)| mean));
    }
    optional(out, 9, results.mean_growth(Column::ReadWriteCall, group));
    let _ = writeln!(out);
}

fn optional(out: &mut String, width: usize, value: Option<f64>) {
    let _ = match value {
        Some(value) => write!(out, "{value:>width$.3}"),
        None => write!(out, "{:>width$}", "–"),
    };
}

fn side_tables(out: &mut String, results: &Results) {
    if !results.requests.is_empty() {
        let _ = writeln!(
            out,
            "\nOne request, worked on behind a wall (the work included)"
        );
        for request in &results.requests {
            let _ = writeln!(
                out,
                "  {:<28}{:>8} bytes{:>12.0} ns",
                request.way, request.request_bytes, request.nanoseconds
            );
        }
    }
    if !results.loads.is_empty() {
        let _ = writeln!(out, "\nFrom start to end of a program that does nothing");
        for load in &results.loads {
            let kilobytes = load.image_bytes as f64 / 1e3;
            let _ = writeln!(
                out,
                "  {:<10}{:<18}{:>9.0} KB{:>9.2} ms",
                load.workload,
                load.column.name(),
                kilobytes,
                load.milliseconds
            );
        }
    }
    if let Some(verifier) = &results.verifier {
        let _ = writeln!(
            out,
            "\nThe verifier: {:.0} MB/s on the {} KB of code in {}",
            verifier.megabytes_per_second,
            verifier.code_bytes / 1000,
            verifier.workload
        );
    }
}

fn remarks(out: &mut String, results: &Results) {
    let above = results.above(1.10);
    if !above.is_empty() {
        let _ = writeln!(
            out,
            "\nAbove 1.10, with the quartiles of its rounds (docs/benchmarks.md says why):"
        );
        for (row, column, ratio) in above {
            let _ = writeln!(
                out,
                "  {:<18}{:<18}{:.3}   {:.3} to {:.3}",
                row.name,
                column.name(),
                ratio.median,
                ratio.low,
                ratio.high
            );
        }
    }
    for note in &results.notes {
        let _ = writeln!(out, "note: {note}");
    }
    for (row, column, error) in results.errors() {
        let _ = writeln!(out, "ERROR: {row}, {}: {error}", column.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;
    use crate::results::tests::row;

    #[test]
    fn a_failure_is_loud_and_a_missing_column_is_empty() {
        let mut row = row(100.0, 104.0);
        row.cells
            .insert(Column::Trap, Cell::failed("WRONG RESULT".into()));
        let table = render(&Results::of(vec![row]));
        let line = table.lines().find(|line| line.starts_with("  x ")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "x", "–", "–", "1.040", "–", "–", "–", "ERROR", "–", "–", "–", "–", "–", "–",
                "0.0%"
            ]
        );
        assert!(table.contains("ERROR: x, trap: WRONG RESULT"));
        assert!(table.contains("note: no column `musl`"));
    }
}
