//! The table "crossings" on the terminal.

use super::Population;
use crate::results::{CrossingGroup, CrossingRow, Crossings};
use std::fmt::Write as _;

/// Characters of a row's title.
const TITLE: usize = 39;

/// Prints every row, in about 120 characters.
pub(crate) fn render(crossings: &Crossings) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\nCrossings: median time of one operation, of {} rounds; {}.\n\
         1, 100, 10,000: domains alive, one of them at work; turn: all of them, one after the other.\n\
         spread: between the quartiles, over the median, the widest of the row; ratio: over the group's first row;\n\
         aim: what this project wants with one domain, and at most. bench/crossings.toml says what each row does.",
        crossings.rounds, crossings.processors
    );
    let populations = populations(crossings);
    for group in &crossings.groups {
        let _ = write!(out, "\n{:<width$}", group.title, width = TITLE + 2);
        for population in &populations {
            let _ = write!(out, "{:>10}", population.title());
        }
        let _ = writeln!(out, "{:>8}{:>10}  aim", "spread", "ratio");
        for row in &group.rows {
            line(&mut out, &populations, group, row);
        }
    }
    memory(&mut out, crossings);
    let _ = writeln!(out, "\nFigures of others, not of this run");
    for cited in &crossings.cited {
        let _ = writeln!(
            out,
            "  {:<20}{} ({})",
            cited.figure, cited.what, cited.source
        );
    }
    for note in notes(crossings) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Those that any row has.
fn populations(crossings: &Crossings) -> Vec<Population> {
    let rows = || crossings.groups.iter().flat_map(|group| &group.rows);
    let has = |population: &Population| rows().any(|row| row.cells.contains_key(population));
    Population::ALL.into_iter().filter(has).collect()
}

fn line(out: &mut String, populations: &[Population], group: &CrossingGroup, row: &CrossingRow) {
    let _ = write!(out, "  {:<TITLE$}", row.title);
    for population in populations {
        let _ = write!(out, "{:>10}", cell(row, *population));
    }
    let spread = row
        .spread()
        .map(|spread| format!("{:.0} %", spread * 100.0));
    let _ = writeln!(
        out,
        "{:>8}{:>10}  {}",
        spread.as_deref().unwrap_or("–"),
        ratio(group, row),
        aim(row)
    );
}

fn memory(out: &mut String, crossings: &Crossings) {
    if crossings.memory.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<TITLE$}{:>12}{:>16}{:>12}",
        "Each idle domain of 10,000", "resident", "page tables", "mappings"
    );
    for each in &crossings.memory {
        let name = format!("{}, {}", each.peer.title(), each.state);
        let _ = writeln!(
            out,
            "  {name:<width$}{:>12}{:>16}{:>12.2}",
            kilobytes(each.resident_bytes),
            kilobytes(each.page_table_bytes),
            each.mappings,
            width = TITLE - 2
        );
    }
}

/// A line for every peer and every row that has no numbers.
pub(crate) fn notes(crossings: &Crossings) -> Vec<String> {
    let rows = crossings.without_numbers();
    let rows = rows.map(|(row, reason)| {
        format!(
            "no number of {}, {} ({}): {reason}",
            row.peer.title(),
            row.title,
            row.ask
        )
    });
    crossings.missing.iter().cloned().chain(rows).collect()
}

/// The median of a cell, `–` where there is none, `missing` where there should be one.
pub(crate) fn cell(row: &CrossingRow, population: Population) -> String {
    match row.cells.get(&population) {
        None => "–".to_owned(),
        Some(times) => times.median().map_or("missing".to_owned(), time),
    }
}

pub(crate) fn ratio(group: &CrossingGroup, row: &CrossingRow) -> String {
    group
        .ratio(row)
        .map_or("–".to_owned(), |ratio| match ratio {
            _ if ratio < 10.0 => format!("{ratio:.2}"),
            _ if ratio < 100.0 => format!("{ratio:.1}"),
            _ => format!("{ratio:.0}"),
        })
}

/// What is wanted, and whether it is there.
pub(crate) fn aim(row: &CrossingRow) -> String {
    let Some([aim, most]) = row.aim else {
        return String::new();
    };
    let told = match aim < most {
        true => format!("{}, at most {}", time(aim), time(most)),
        false => time(aim),
    };
    let reached = match row.reaches() {
        Some(true) => ": reached",
        Some(false) => ": MISSED",
        None => "",
    };
    let note = row.note.as_ref().map(|note| format!(" ({note})"));
    format!("{told}{reached}{}", note.unwrap_or_default())
}

/// Three figures and a unit.
pub(crate) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    if value.fract() == 0.0 {
        return format!("{value} {unit}");
    }
    let places = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.places$} {unit}")
}

/// In binary kilobytes, as the kernel counts.
pub(crate) fn kilobytes(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::crossings;

    #[test]
    fn times_have_three_figures_and_a_unit() {
        let told = [9.934, 10.04, 163.6, 999.6, 4512.0, 2_156_979.0, 40.0].map(time);
        assert_eq!(
            told,
            [
                "9.93 ns", "10.0 ns", "164 ns", "1.00 µs", "4.51 µs", "2.16 ms", "40 ns"
            ]
        );
    }

    #[test]
    fn what_is_missing_and_what_is_missed_are_told() {
        let table = render(&crossings());
        assert!(table.contains("no peer `wasmtime`"), "{table}");
        assert!(
            table.contains("no number of Mullion, the interface in C"),
            "{table}"
        );
        let line = table
            .lines()
            .find(|line| line.contains("host → domain"))
            .unwrap();
        assert!(line.contains("12 ns") && line.contains("MISSED"), "{line}");
        assert!(line.contains("8.00"), "the ratio: {line}");
        let mut crossings = crossings();
        for row in crossings
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.rows)
        {
            row.note = Some("so it is".to_owned());
        }
        let noted = render(&crossings);
        assert!(noted.contains("MISSED (so it is)"), "{noted}");
    }
}
