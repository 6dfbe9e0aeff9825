//! The tables of docs/benchmarks.md.

use crate::column::Column;
use crate::crossing::Population;
use crate::crossing::table::{aim, cell, kilobytes, notes, ratio};
use crate::results::{Cell, Crossings, Results, Row};
use crate::stats::Quartiles;
use std::fmt::Write as _;

/// Every table of which there are numbers.
pub(crate) fn render(results: &Results) -> String {
    let mut out = String::new();
    let machine = &results.machine;
    let _ = writeln!(
        out,
        "{}, {}, {}.",
        machine.cpu, machine.system, machine.compiler
    );
    if !results.rows.is_empty() {
        means(&mut out, results);
        above(&mut out, results);
    }
    if let Some(crossings) = &results.crossings {
        crossing_tables(&mut out, crossings);
    }
    side(&mut out, results);
    for note in &results.notes {
        let _ = writeln!(out, "\nNote: {note}.");
    }
    for (row, column, error) in results.errors() {
        let _ = writeln!(out, "\nERROR: {row}, {}: {error}.", column.name());
    }
    out
}

fn means(out: &mut String, results: &Results) {
    let columns: Vec<Column> = results
        .columns
        .iter()
        .copied()
        .filter(|column| *column != Column::Native)
        .collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let grown: Vec<Column> = [
        Column::ReadWriteCall,
        Column::WordWrite,
        Column::WordReadWrite,
    ]
    .into_iter()
    .filter(|column| columns.contains(column))
    .collect();
    let heads: String = grown
        .iter()
        .map(|column| format!(" code, {} |", column.name()))
        .collect();
    let _ = writeln!(
        out,
        "Time over that of native `gcc -O2` in the same turn: medians of {} rounds of {} turns of about {} s.\n\n\
         | geometric mean | {} |{heads}\n| --- |{}",
        results.rounds,
        results.turns,
        results.seconds,
        names.join(" | "),
        " --- |".repeat(columns.len() + grown.len())
    );
    let groups = results
        .groups
        .iter()
        .map(|(group, title)| (title.clone(), Some(group.as_str())));
    let all = (format!("**all {}**", results.rows.len()), None);
    for (title, group) in groups.chain([all]) {
        let _ = write!(out, "| {title} |");
        for column in &columns {
            let mean = results.mean(*column, group).map(|(mean, _)| mean);
            let _ = write!(out, " {} |", number(mean));
        }
        for column in &grown {
            let _ = write!(out, " {} |", number(results.mean_growth(*column, group)));
        }
        out.push('\n');
    }
}

fn above(out: &mut String, results: &Results) {
    let above = results.above(1.10);
    if above.is_empty() {
        let _ = writeln!(
            out,
            "\nNo case of write-call or read-write-call is above 1.10."
        );
        return;
    }
    let mut rows: Vec<&str> = Vec::new();
    for (row, ..) in &above {
        if !rows.contains(&row.name.as_str()) {
            rows.push(&row.name);
        }
    }
    let _ = writeln!(
        out,
        "\n| above 1.10 | native | write-call | quartiles | read-write-call | quartiles |\n\
         | --- | --- | --- | --- | --- | --- |"
    );
    for name in rows {
        let Some(row) = results.rows.iter().find(|row| row.name == name) else {
            continue;
        };
        let _ = writeln!(
            out,
            "| `{name}` | {} | {} | {} | {} | {} |",
            milliseconds(row),
            number(row.ratio(Column::WriteCall)),
            range(row.quartiles(Column::WriteCall)),
            number(row.ratio(Column::ReadWriteCall)),
            range(row.quartiles(Column::ReadWriteCall))
        );
    }
}

fn crossing_tables(out: &mut String, crossings: &Crossings) {
    let _ = writeln!(
        out,
        "\nCrossings: medians of {} rounds; {}.",
        crossings.rounds, crossings.processors
    );
    for group in &crossings.groups {
        let _ = writeln!(
            out,
            "\n| {} | 1 | 100 | 10,000 | 100 in turn | 10,000 in turn | spread | ratio | aim |\n| --- |{}",
            group.title,
            " --- |".repeat(8)
        );
        for row in &group.rows {
            let _ = write!(out, "| {} |", row.title);
            for population in Population::ALL {
                let _ = write!(out, " {} |", cell(row, population));
            }
            let _ = writeln!(
                out,
                " {} | {} | {} |",
                percent(row.spread()),
                ratio(group, row),
                aim(row)
            );
        }
    }
    if !crossings.memory.is_empty() {
        let _ = writeln!(
            out,
            "\n| each idle domain of 10,000 | resident | page tables | mappings |\n| --- | --- | --- | --- |"
        );
    }
    for each in &crossings.memory {
        let _ = writeln!(
            out,
            "| {}, {} | {} | {} | {:.2} |",
            each.peer.title(),
            each.state,
            kilobytes(each.resident_bytes),
            kilobytes(each.page_table_bytes),
            each.mappings
        );
    }
    let _ = writeln!(
        out,
        "\n| figures of others | of what | source |\n| --- | --- | --- |"
    );
    for cited in &crossings.cited {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cited.figure, cited.what, cited.source
        );
    }
    for note in notes(crossings) {
        let _ = writeln!(out, "\nNote: {note}.");
    }
}

fn side(out: &mut String, results: &Results) {
    if let Some(verifier) = &results.verifier {
        let _ = writeln!(
            out,
            "\nThe verifier: {:.0} MB/s on the {:.2} MB of code in `{}`.",
            verifier.megabytes_per_second,
            verifier.code_bytes as f64 / 1e6,
            verifier.workload
        );
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.3}"))
}

/// What half of the rounds lie between.
fn range(value: Option<Quartiles>) -> String {
    value.map_or("–".to_owned(), |q| {
        format!("{:.2} to {:.2}", q.low, q.high)
    })
}

/// The native time.
fn milliseconds(row: &Row) -> String {
    let native = row.cells.get(&Column::Native).and_then(Cell::median);
    native.map_or("–".to_owned(), |ns| format!("{:.1} ms", ns / 1e6))
}

fn percent(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{:.0} %", value * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{crossings, row};

    #[test]
    fn every_table_has_as_many_cells_in_each_row_as_in_its_head() {
        let mut results = Results::of(vec![row(100.0, 130.0)]);
        results.crossings = Some(crossings());
        let text = render(&results);
        let mut width = None;
        for line in text.lines() {
            let cells = line.starts_with('|').then(|| line.matches('|').count());
            match (width, cells) {
                (Some(head), Some(cells)) => assert_eq!(head, cells, "{line}"),
                _ => width = cells,
            }
        }
        for told in [
            "| `x` | 0.0 ms | 1.300 | 1.30 to 1.30 | – | – |",
            "**all 1**",
            "12 ns",
            "| 9.0 ns | LFI |",
            "MISSED",
        ] {
            assert!(text.contains(told), "{told} in {text}");
        }
    }
}
