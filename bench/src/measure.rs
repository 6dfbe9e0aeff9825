//! Runs the programs: calibration, then rounds in which every column takes its turn.

use crate::builder::Program;
use crate::catalogue::{Input, Workload};
use crate::column::Column;
use crate::results::Cell;
use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// A run's first output word, and the nanoseconds it took.
struct Outcome {
    checksum: String,
    nanoseconds: f64,
}

/// A workload with the programs made of it, on its way through the rounds.
pub(crate) struct Case<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) programs: BTreeMap<Column, Program>,
    pub(crate) cells: BTreeMap<Column, Cell>,
    pub(crate) iterations: u64,
    /// What the native program printed: every other one must print the same.
    checksum: String,
    /// Standard input of every run.
    input: Vec<u8>,
}

impl<'a> Case<'a> {
    /// Columns that could not be built are in `cells` with their error already.
    pub(crate) fn new(
        workload: &'a Workload,
        programs: BTreeMap<Column, Program>,
        mut cells: BTreeMap<Column, Cell>,
    ) -> Result<Self> {
        for (column, program) in &programs {
            let cell = Cell {
                code_bytes: program.code_bytes,
                ..Cell::default()
            };
            cells.insert(*column, cell);
        }
        let input = workload.input.as_ref().map_or(Ok(Vec::new()), read_input)?;
        Ok(Case {
            workload,
            programs,
            cells,
            iterations: 1,
            checksum: String::new(),
            input,
        })
    }

    /// Finds the number of iterations that takes the native program about `seconds`,
    /// and remembers its checksum.
    pub(crate) fn calibrate(&mut self, seconds: f64) -> Result<()> {
        let native = self
            .programs
            .get(&Column::Native)
            .context("the native program was not built")?;
        let wanted = seconds * 1e9;
        loop {
            let outcome = self.run(native, self.iterations)?;
            let factor = wanted / outcome.nanoseconds.max(1.0);
            if outcome.nanoseconds >= wanted / 20.0 {
                self.iterations = ((self.iterations as f64 * factor).round() as u64).max(1);
                break;
            }
            self.iterations = (self.iterations as f64 * factor.min(50.0)).ceil() as u64 + 1;
        }
        self.checksum = self.run(native, self.iterations)?.checksum;
        Ok(())
    }

    /// So many turns, in each of which every column runs once. Every other turn goes backwards,
    /// so that no column is always the first or always the one behind a certain other.
    pub(crate) fn round(&mut self, columns: &[Column], turns: usize, progress: &ProgressBar) {
        for cell in self.cells.values_mut() {
            cell.nanoseconds.push(Vec::with_capacity(turns));
        }
        for turn in 0..turns {
            if turn % 2 == 0 {
                self.turn(columns.iter(), progress);
            } else {
                self.turn(columns.iter().rev(), progress);
            }
        }
    }

    /// A column that fails once is not run again.
    fn turn<'c>(&mut self, columns: impl Iterator<Item = &'c Column>, progress: &ProgressBar) {
        for column in columns {
            progress.inc(1);
            let Some(program) = self.programs.get(column) else {
                continue;
            };
            if self
                .cells
                .get(column)
                .is_some_and(|cell| cell.error.is_some())
            {
                continue;
            }
            let outcome = self
                .run(program, self.iterations)
                .and_then(|outcome| self.agree(outcome));
            let cell = self.cells.entry(*column).or_default();
            match outcome {
                Ok(nanoseconds) => cell
                    .nanoseconds
                    .last_mut()
                    .expect("a round is under way")
                    .push(nanoseconds),
                Err(error) => cell.error = Some(format!("{error:#}")),
            }
        }
    }

    fn agree(&self, outcome: Outcome) -> Result<f64> {
        if outcome.checksum != self.checksum {
            bail!(
                "WRONG RESULT: checksum {} where native code has {}",
                outcome.checksum,
                self.checksum
            );
        }
        Ok(outcome.nanoseconds)
    }

    fn run(&self, program: &Program, iterations: u64) -> Result<Outcome> {
        let mut child = Command::new(&program.command[0])
            .args(&program.command[1..])
            .arg(iterations.to_string())
            .stdin(if self.input.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {:?}", program.command[0]))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ends early closes the pipe; its status says why.
            let _ = stdin.write_all(&self.input);
        }
        let out = child.wait_with_output()?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let lines: Vec<&str> = said
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(4)
                .collect();
            bail!("{}: {}", out.status, lines.join("; "));
        }
        parse(&String::from_utf8_lossy(&out.stdout))
    }
}

fn parse(line: &str) -> Result<Outcome> {
    let mut words = line.split_whitespace();
    let (Some(checksum), Some(time), None) = (words.next(), words.next(), words.next()) else {
        bail!("not `<checksum> <nanoseconds>`: {line:?}");
    };
    let nanoseconds = time
        .parse()
        .with_context(|| format!("no number of nanoseconds: {time:?}"))?;
    Ok(Outcome {
        checksum: checksum.to_owned(),
        nanoseconds,
    })
}

fn read_input(input: &Input) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    let file =
        File::open(&input.path).with_context(|| format!("opening {}", input.path.display()))?;
    file.take(input.limit.map_or(u64::MAX, |limit| limit as u64))
        .read_to_end(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use std::path::Path;

    fn program(script: &str) -> Program {
        let command = ["sh", "-c", script, "sh"].map(Into::into).to_vec();
        Program {
            command,
            image: "sh".into(),
            code_bytes: None,
        }
    }

    #[test]
    fn a_program_that_computes_something_else_is_an_error() {
        let catalogue = Catalogue::load(Path::new(env!("CARGO_MANIFEST_DIR")), None).unwrap();
        let programs = BTreeMap::from([
            (Column::Native, program("echo $1 ${1}00000000")),
            (Column::Trap, program("echo $1 7")),
            (Column::WriteCall, program("echo other 7")),
            (Column::Wasmtime, program("exit 3")),
        ]);
        let mut case = Case::new(&catalogue.workloads[0], programs, BTreeMap::new()).unwrap();
        case.calibrate(0.3).unwrap();
        assert_eq!(case.iterations, 3);
        case.round(&Column::ALL, 2, &ProgressBar::hidden());
        assert_eq!(case.cells[&Column::Trap].nanoseconds, [[7.0, 7.0]]);
        assert_eq!(case.cells[&Column::Trap].error, None);
        assert!(
            case.cells[&Column::WriteCall]
                .error
                .as_ref()
                .unwrap()
                .contains("WRONG RESULT")
        );
        assert!(
            case.cells[&Column::Wasmtime]
                .error
                .as_ref()
                .unwrap()
                .contains("exit status: 3")
        );
    }

    #[test]
    fn output_of_another_form_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("abc").is_err());
        assert!(parse("abc 12 13").is_err());
        assert!(parse("abc twelve").is_err());
        assert_eq!(parse("abc 12\n").unwrap().nanoseconds, 12.0);
    }
}
