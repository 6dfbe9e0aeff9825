//! What a run found out, as it is written to JSON and shown by the reports.

use crate::column::Column;
use crate::crossing::{Peer, Population};
use crate::stats::{self, Quartiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything of one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Rounds of each case, its turns in each round, and the time a native run was calibrated to,
    /// in seconds.
    pub(crate) rounds: usize,
    pub(crate) turns: usize,
    pub(crate) seconds: f64,
    pub(crate) columns: Vec<Column>,
    /// Columns that are missing or incomplete, with the reason.
    pub(crate) notes: Vec<String>,
    /// Group names with their titles, in the order of the table.
    pub(crate) groups: Vec<(String, String)>,
    pub(crate) rows: Vec<Row>,
    /// `None`: not asked for.
    pub(crate) crossings: Option<Crossings>,
    pub(crate) requests: Vec<Request>,
    pub(crate) loads: Vec<Load>,
    pub(crate) verifier: Option<Verifier>,
}

/// Where the run was made.
#[derive(Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) system: String,
    pub(crate) compiler: String,
}

/// One workload.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) group: String,
    /// Iterations of the kernel in each run, the same for all columns.
    pub(crate) iterations: u64,
    pub(crate) cells: BTreeMap<Column, Cell>,
}

/// One workload in one column.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct Cell {
    /// Nanoseconds of each turn of each round.
    pub(crate) nanoseconds: Vec<Vec<f64>>,
    /// Bytes of machine code of the workload and its library, without the C library.
    pub(crate) code_bytes: Option<u64>,
    /// Why there is no number, or why the numbers cannot be trusted.
    pub(crate) error: Option<String>,
}

impl Cell {
    pub(crate) fn failed(error: String) -> Self {
        Cell {
            error: Some(error),
            ..Cell::default()
        }
    }

    /// Nanoseconds; `None` if the case failed or has not run.
    pub(crate) fn median(&self) -> Option<f64> {
        if self.error.is_some() {
            None
        } else {
            stats::median(&self.nanoseconds.concat())
        }
    }
}

impl Row {
    /// The median over rounds of what the column takes of native time in each.
    pub(crate) fn ratio(&self, column: Column) -> Option<f64> {
        self.quartiles(column).map(|quartiles| quartiles.median)
    }

    /// The ratio with the quartiles of its rounds; `None` if a side failed or has not run.
    pub(crate) fn quartiles(&self, column: Column) -> Option<Quartiles> {
        let of = |column| self.cells.get(&column).filter(|cell| cell.error.is_none());
        let (column, native) = (of(column)?, of(Column::Native)?);
        stats::quartiles(&stats::paired_ratios(
            &column.nanoseconds,
            &native.nanoseconds,
        ))
    }

    /// The column's machine code over the native one's.
    pub(crate) fn growth(&self, column: Column) -> Option<f64> {
        let bytes = |column| self.cells.get(&column)?.code_bytes.filter(|&b| b > 0);
        Some(bytes(column)? as f64 / bytes(Column::Native)? as f64)
    }

    /// The widest spread of the ratios of walls.
    pub(crate) fn spread(&self) -> Option<f64> {
        let walls = self.cells.keys().filter(|column| column.is_wall());
        walls
            .filter_map(|column| Some(self.quartiles(*column)?.spread()))
            .max_by(f64::total_cmp)
    }
}

impl Results {
    /// The geometric mean of a column over a group, or over everything, with the
    /// number of cases in it.
    pub(crate) fn mean(&self, column: Column, group: Option<&str>) -> Option<(f64, usize)> {
        let ratios: Vec<f64> = self
            .rows_of(group)
            .filter_map(|row| row.ratio(column))
            .collect();
        stats::geometric_mean(&ratios).map(|mean| (mean, ratios.len()))
    }

    /// The geometric mean of the growth of code.
    pub(crate) fn mean_growth(&self, column: Column, group: Option<&str>) -> Option<f64> {
        let ratios: Vec<f64> = self
            .rows_of(group)
            .filter_map(|row| row.growth(column))
            .collect();
        stats::geometric_mean(&ratios)
    }

    /// The rows of a group, or all.
    pub(crate) fn rows_of(&self, group: Option<&str>) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| group.is_none_or(|g| row.group == g))
    }

    /// The cases of Mullion's walls above `limit`, worst first. `trap` is for debugging
    /// and buys its reports with time: it has numbers, but no limit.
    pub(crate) fn above(&self, limit: f64) -> Vec<(&Row, Column, Quartiles)> {
        let walls = self
            .columns
            .iter()
            .copied()
            .filter(|c| c.is_wall() && *c != Column::Trap);
        let mut found: Vec<_> = walls
            .flat_map(|column| {
                self.rows
                    .iter()
                    .filter_map(move |row| Some((row, column, row.quartiles(column)?)))
            })
            .filter(|(_, _, ratio)| ratio.median > limit)
            .collect();
        found.sort_by(|a, b| b.2.median.total_cmp(&a.2.median));
        found
    }

    /// Every case that failed: workload, column, reason.
    pub(crate) fn errors(&self) -> impl Iterator<Item = (&str, Column, &str)> {
        self.rows.iter().flat_map(|row| {
            row.cells.iter().filter_map(|(column, cell)| {
                Some((row.name.as_str(), *column, cell.error.as_deref()?))
            })
        })
    }
}

/// The table "crossings".
#[derive(Serialize, Deserialize)]
pub(crate) struct Crossings {
    pub(crate) rounds: usize,
    /// What one measurement of one row takes.
    pub(crate) budget_nanoseconds: u64,
    /// The processor of all peers, and the other one of rows with two cores.
    pub(crate) processors: String,
    pub(crate) groups: Vec<CrossingGroup>,
    pub(crate) memory: Vec<DomainMemory>,
    /// Peers that are not there, with the reason.
    pub(crate) missing: Vec<String>,
    pub(crate) cited: Vec<Cited>,
}

/// Rows that are compared with the first of them.
#[derive(Serialize, Deserialize)]
pub(crate) struct CrossingGroup {
    pub(crate) title: String,
    pub(crate) rows: Vec<CrossingRow>,
}

/// One operation of one peer.
#[derive(Serialize, Deserialize)]
pub(crate) struct CrossingRow {
    pub(crate) peer: Peer,
    pub(crate) ask: String,
    pub(crate) title: String,
    pub(crate) what: String,
    /// Nanoseconds: wanted, and at most.
    pub(crate) aim: Option<[f64; 2]>,
    /// What is to be known of the aim.
    pub(crate) note: Option<String>,
    pub(crate) cells: BTreeMap<Population, Times>,
}

/// Nanoseconds of one operation, of each round.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct Times {
    pub(crate) nanoseconds: Vec<f64>,
    /// Why there are none.
    pub(crate) missing: Option<String>,
}

/// What a domain takes while nobody is in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct DomainMemory {
    pub(crate) peer: Peer,
    /// `new`, or `called` before.
    pub(crate) state: String,
    pub(crate) domains: u64,
    /// For each domain: pages that the process has to itself.
    pub(crate) resident_bytes: f64,
    /// For each domain: page tables, which are the kernel's.
    pub(crate) page_table_bytes: f64,
    /// For each domain.
    pub(crate) mappings: f64,
}

/// A figure that is not of this run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cited {
    pub(crate) figure: String,
    pub(crate) what: String,
    pub(crate) source: String,
}

impl Times {
    pub(crate) fn median(&self) -> Option<f64> {
        stats::median(&self.nanoseconds)
    }
}

impl CrossingRow {
    pub(crate) fn median(&self, population: Population) -> Option<f64> {
        self.cells.get(&population)?.median()
    }

    /// The widest spread of its cells.
    pub(crate) fn spread(&self) -> Option<f64> {
        let spreads = self.cells.values();
        spreads
            .filter_map(|times| stats::spread(&times.nanoseconds))
            .max_by(f64::total_cmp)
    }

    /// Whether the median with one domain is at most what it must not exceed.
    pub(crate) fn reaches(&self) -> Option<bool> {
        let [_, most] = self.aim?;
        Some(self.median(Population::One)? <= most)
    }
}

impl CrossingGroup {
    /// The median of a row over that of the group's first one.
    pub(crate) fn ratio(&self, row: &CrossingRow) -> Option<f64> {
        Some(row.median(Population::One)? / self.rows.first()?.median(Population::One)?)
    }
}

impl Crossings {
    /// Every cell without a number: row, reason; once for each row.
    pub(crate) fn without_numbers(&self) -> impl Iterator<Item = (&CrossingRow, &str)> {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.filter_map(|row| {
            let missing = row
                .cells
                .values()
                .find_map(|times| times.missing.as_deref());
            Some((row, missing?))
        })
    }
}

/// What a request costs that is worked on behind a wall, for one size.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    /// How the work is reached: a call, a pipe, shared memory.
    pub(crate) way: String,
    pub(crate) request_bytes: u64,
    /// Nanoseconds per request, the work included.
    pub(crate) nanoseconds: f64,
}

/// From the start of a process to its end, for a program that does nothing.
#[derive(Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) workload: String,
    pub(crate) column: Column,
    pub(crate) image_bytes: u64,
    pub(crate) milliseconds: f64,
}

/// The verifier on the biggest image.
#[derive(Serialize, Deserialize)]
pub(crate) struct Verifier {
    pub(crate) workload: String,
    pub(crate) code_bytes: u64,
    pub(crate) megabytes_per_second: f64,
}

#[cfg(test)]
impl Results {
    /// Results of these rows, in all columns, without anything beside the table.
    pub(crate) fn of(rows: Vec<Row>) -> Results {
        let machine = Machine {
            cpu: "<cpu>".into(),
            system: "Linux".into(),
            compiler: "gcc".into(),
        };
        Results {
            machine,
            rounds: 3,
            turns: 1,
            seconds: 0.1,
            columns: Column::ALL.to_vec(),
            notes: vec!["no column `musl`: \"<none>\"".into()],
            groups: vec![("g".into(), "A group".into())],
            rows,
            crossings: None,
            requests: vec![Request {
                way: "a call".into(),
                request_bytes: 64,
                nanoseconds: 4.0,
            }],
            loads: vec![Load {
                workload: "x".into(),
                column: Column::Trap,
                image_bytes: 1000,
                milliseconds: 0.5,
            }],
            verifier: Some(Verifier {
                workload: "x".into(),
                code_bytes: 5000,
                megabytes_per_second: 200.0,
            }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(native: f64, wall: f64) -> Row {
        let cell = |ns: f64| Cell {
            nanoseconds: vec![vec![ns]; 3],
            code_bytes: Some(ns as u64),
            error: None,
        };
        Row {
            name: "x".into(),
            what: String::new(),
            group: "g".into(),
            iterations: 1,
            cells: BTreeMap::from([
                (Column::Native, cell(native)),
                (Column::WriteCall, cell(wall)),
            ]),
        }
    }

    /// A plain call, a call of a domain that misses its aim, a peer that is not there.
    pub(crate) fn crossings() -> Crossings {
        let row = |peer, title: &str, aim, times| CrossingRow {
            peer,
            ask: "call".into(),
            title: title.into(),
            what: "<what>".into(),
            aim,
            note: None,
            cells: BTreeMap::from([(Population::One, times)]),
        };
        let of = |ns| Times {
            nanoseconds: vec![ns; 3],
            missing: None,
        };
        let missing = Times {
            nanoseconds: Vec::new(),
            missing: Some("not built".into()),
        };
        let rows = vec![
            row(Peer::Native, "plain call", None, of(1.5)),
            row(
                Peer::Runtime,
                "host → domain → host",
                Some([5.0, 10.0]),
                of(12.0),
            ),
            row(Peer::C, "mullion_call", None, missing),
        ];
        Crossings {
            rounds: 3,
            budget_nanoseconds: 1,
            processors: "processor 0".into(),
            groups: vec![CrossingGroup {
                title: "A call".into(),
                rows,
            }],
            memory: vec![DomainMemory {
                peer: Peer::Runtime,
                state: "new".into(),
                domains: 10_000,
                resident_bytes: 8192.0,
                page_table_bytes: 4096.0,
                mappings: 6.0,
            }],
            missing: vec!["no peer `wasmtime` with 1 domains: <none>".into()],
            cited: vec![Cited {
                figure: "9.0 ns".into(),
                what: "LFI".into(),
                source: "elsewhere".into(),
            }],
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let mut results = Results::of(vec![row(100.0, 110.0)]);
        results.crossings = Some(crossings());
        let text = serde_json::to_string(&results).unwrap();
        let again: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(text, serde_json::to_string(&again).unwrap());
    }

    #[test]
    fn ratios_are_of_turns_and_to_native() {
        assert_eq!(row(100.0, 110.0).ratio(Column::WriteCall), Some(1.1));
        let mut unsteady = row(100.0, 110.0);
        // A slower machine in one round: both times are twice as long, the ratio is not.
        for cell in unsteady.cells.values_mut() {
            cell.nanoseconds[1][0] *= 2.0;
        }
        let quartiles = unsteady.quartiles(Column::WriteCall).unwrap();
        assert_eq!((quartiles.median, quartiles.spread()), (1.1, 0.0));
        assert_eq!(unsteady.spread(), Some(0.0));
        assert_eq!(row(100.0, 150.0).growth(Column::WriteCall), Some(1.5));
        assert_eq!(row(100.0, 110.0).ratio(Column::Trap), None);
    }

    #[test]
    fn what_is_above_a_limit_is_told_but_for_trap() {
        let mut row = row(100.0, 130.0);
        let trap = Cell {
            nanoseconds: vec![vec![900.0]; 3],
            code_bytes: None,
            error: None,
        };
        row.cells.insert(Column::Trap, trap);
        let results = Results::of(vec![row]);
        let above: Vec<_> = results
            .above(1.1)
            .into_iter()
            .map(|(_, c, r)| (c, r.median))
            .collect();
        assert_eq!(above, [(Column::WriteCall, 1.3)]);
    }

    #[test]
    fn a_failed_case_has_no_ratio() {
        let mut failed = row(100.0, 50.0);
        failed.cells.get_mut(&Column::WriteCall).unwrap().error = Some("checksums differ".into());
        assert_eq!(failed.ratio(Column::WriteCall), None);
    }
}
