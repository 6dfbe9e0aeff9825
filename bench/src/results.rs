//! What a run found out, as it is written to JSON and shown by the reports.

use crate::column::Column;
use crate::stats;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything of one run.
#[derive(Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Rounds of each case, and the time a native run was calibrated to, in seconds.
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    pub(crate) columns: Vec<Column>,
    /// Columns that are missing or incomplete, with the reason.
    pub(crate) notes: Vec<String>,
    /// Group names with their titles, in the order of the table.
    pub(crate) groups: Vec<(String, String)>,
    pub(crate) rows: Vec<Row>,
    pub(crate) crossings: Vec<Crossing>,
    pub(crate) loads: Vec<Load>,
    pub(crate) verifier: Option<Verifier>,
}

/// Where the run was made.
#[derive(Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) system: String,
    pub(crate) compiler: String,
}

/// One workload.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) group: String,
    /// Iterations of the kernel in each run, the same for all columns.
    pub(crate) iterations: u64,
    pub(crate) cells: BTreeMap<Column, Cell>,
}

/// One workload in one column.
#[derive(Serialize, Default)]
pub(crate) struct Cell {
    /// Nanoseconds of each round.
    pub(crate) nanoseconds: Vec<f64>,
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
            stats::median(&self.nanoseconds)
        }
    }
}

impl Row {
    /// The column's median over the native one.
    pub(crate) fn ratio(&self, column: Column) -> Option<f64> {
        Some(self.cells.get(&column)?.median()? / self.cells.get(&Column::Native)?.median()?)
    }

    /// The column's machine code over the native one's.
    pub(crate) fn growth(&self, column: Column) -> Option<f64> {
        let bytes = |column| self.cells.get(&column)?.code_bytes.filter(|&b| b > 0);
        Some(bytes(column)? as f64 / bytes(Column::Native)? as f64)
    }

    /// The widest spread of those columns that the ratios of walls rest on.
    pub(crate) fn spread(&self) -> Option<f64> {
        let of = |(column, cell): (&Column, &Cell)| {
            (*column == Column::Native || column.is_wall())
                .then(|| stats::spread(&cell.nanoseconds))
                .flatten()
        };
        self.cells.iter().filter_map(of).max_by(f64::total_cmp)
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
    pub(crate) fn above(&self, limit: f64) -> Vec<(&Row, Column, f64)> {
        let walls = self
            .columns
            .iter()
            .copied()
            .filter(|c| c.is_wall() && *c != Column::Trap);
        let mut found: Vec<_> = walls
            .flat_map(|column| {
                self.rows
                    .iter()
                    .filter_map(move |row| Some((row, column, row.ratio(column)?)))
            })
            .filter(|(_, _, ratio)| *ratio > limit)
            .collect();
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
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

/// What a call costs that crosses a wall, for one size of request.
#[derive(Serialize)]
pub(crate) struct Crossing {
    /// How the work is reached: a call, a pipe, shared memory.
    pub(crate) way: &'static str,
    pub(crate) request_bytes: u64,
    /// Nanoseconds per request, the work included.
    pub(crate) nanoseconds: f64,
}

/// From the start of a process to its end, for a program that does nothing.
#[derive(Serialize)]
pub(crate) struct Load {
    pub(crate) workload: String,
    pub(crate) column: Column,
    pub(crate) image_bytes: u64,
    pub(crate) milliseconds: f64,
}

/// The verifier on the biggest image.
#[derive(Serialize)]
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
            seconds: 0.1,
            columns: Column::ALL.to_vec(),
            notes: vec!["no column `musl`: \"<none>\"".into()],
            groups: vec![("g".into(), "A group".into())],
            rows,
            crossings: vec![Crossing {
                way: "a call",
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
            nanoseconds: vec![ns; 3],
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

    #[test]
    fn ratios_are_of_medians_and_to_native() {
        assert_eq!(row(100.0, 110.0).ratio(Column::WriteCall), Some(1.1));
        assert_eq!(row(100.0, 150.0).growth(Column::WriteCall), Some(1.5));
        assert_eq!(row(100.0, 110.0).ratio(Column::Trap), None);
    }

    #[test]
    fn what_is_above_a_limit_is_told_but_for_trap() {
        let mut row = row(100.0, 130.0);
        let trap = Cell {
            nanoseconds: vec![900.0],
            code_bytes: None,
            error: None,
        };
        row.cells.insert(Column::Trap, trap);
        let results = Results::of(vec![row]);
        let above: Vec<_> = results
            .above(1.1)
            .into_iter()
            .map(|(_, c, r)| (c, r))
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
