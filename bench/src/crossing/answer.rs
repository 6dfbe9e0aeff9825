//! The answering side, in this program: as `peers/crossing/answer.h` for those in C.

use super::catalogue::Peer;
use super::domains::Domains;
use super::interface::Interface;
use super::run_time::RunTime;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What this program is started with as a peer.
#[derive(Args)]
pub(crate) struct Question {
    kind: Kind,
    pub(crate) extension: PathBuf,
    pub(crate) floating: PathBuf,
    pub(crate) register: PathBuf,
    pub(crate) large: PathBuf,
    /// Nanoseconds that one measurement shall take.
    budget: u64,
    pub(crate) domains: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Runtime,
    Interface,
}

/// Something with rows.
pub(crate) trait Measured {
    /// Operations come in multiples of this; `None`: there is no such row.
    fn unit(&self, row: &str) -> Option<u64>;

    /// Does `count` operations, a multiple of the row's unit; the time that they took.
    fn run(&mut self, row: &str, count: u64) -> Result<Duration>;
}

/// Answers until nobody asks any more.
pub(crate) fn answer(question: &Question) -> Result<()> {
    let made: Result<Box<dyn Measured>> = match question.kind {
        Kind::Runtime => Domains::new(question).map(|all| Box::new(RunTime::new(all)) as _),
        Kind::Interface => Interface::new(question).map(|all| Box::new(all) as _),
    };
    let mut measured = match made {
        Ok(measured) => measured,
        Err(error) => {
            println!("none {}", line(&error));
            return Ok(());
        }
    };
    println!("ready");
    let mut counts = HashMap::new();
    for row in io::stdin().lock().lines() {
        match measure(measured.as_mut(), &row?, question.budget, &mut counts) {
            Ok(nanoseconds) => println!("{nanoseconds:.3}"),
            Err(error) => println!("none {}", line(&error)),
        }
        io::stdout().flush()?;
    }
    Ok(())
}

/// An eighth as a warm-up, then the measurement: nanoseconds for one operation.
fn measure(
    measured: &mut dyn Measured,
    row: &str,
    budget: u64,
    counts: &mut HashMap<String, u64>,
) -> Result<f64> {
    let Some(unit) = measured.unit(row) else {
        bail!("there is no row `{row}` here");
    };
    let count = match counts.get(row) {
        Some(count) => *count,
        None => {
            let count = calibrate(measured, row, unit, budget)?;
            counts.insert(row.to_owned(), count);
            count
        }
    };
    measured.run(row, (count / 8).max(1).next_multiple_of(unit))?;
    Ok(measured.run(row, count)?.as_nanos() as f64 / count as f64)
}

/// A row may do more than it times (memory is dirtied, and then a restart is timed): all takes at most so many budgets.
const WHOLE: u64 = 10;

/// So many operations that they take about `budget` nanoseconds.
fn calibrate(measured: &mut dyn Measured, row: &str, unit: u64, budget: u64) -> Result<u64> {
    let once = |count| {
        let begun = Instant::now();
        let timed = measured.run(row, count)?;
        Ok((timed, begun.elapsed()))
    };
    calibrate_by(once, unit, budget)
}

/// `once` does so many operations: the time of what is timed, and of all.
fn calibrate_by(
    mut once: impl FnMut(u64) -> Result<(Duration, Duration)>,
    unit: u64,
    budget: u64,
) -> Result<u64> {
    let mut counted = |count| -> Result<u64> {
        let (timed, whole) = once(count)?;
        Ok((timed.as_nanos() as u64).max(whole.as_nanos() as u64 / WHOLE))
    };
    let mut count = unit;
    let mut nanoseconds = counted(count)?;
    while nanoseconds < budget / 8 {
        count *= 4;
        nanoseconds = counted(count)?;
    }
    let wanted = count as f64 * budget as f64 / nanoseconds as f64;
    Ok((wanted as u64).max(1).next_multiple_of(unit))
}

/// The time that `operations` take together.
pub(crate) fn timed(operations: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    operations()?;
    Ok(start.elapsed())
}

fn line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', " ")
}

impl std::fmt::Display for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 100 ns for an operation, and refuses what is no multiple of ten.
    struct Steady;

    impl Measured for Steady {
        fn unit(&self, row: &str) -> Option<u64> {
            (row == "here").then_some(10)
        }
        fn run(&mut self, _: &str, count: u64) -> Result<Duration> {
            if !count.is_multiple_of(10) {
                bail!("{count} operations");
            }
            Ok(Duration::from_nanos(100 * count))
        }
    }

    #[test]
    fn measurements_come_in_units_and_take_their_budget() {
        let steady = |count| {
            let timed = Steady.run("here", count)?;
            Ok((timed, timed))
        };
        assert_eq!(calibrate_by(steady, 10, 100_000).unwrap(), 1000);
        assert_eq!(calibrate_by(steady, 10, 1).unwrap(), 10);
        let mut counts = HashMap::new();
        let measured = measure(&mut Steady, "here", 100_000, &mut counts).unwrap();
        assert_eq!(measured, 100.0);
        assert_eq!(counts["here"] % 10, 0);
        assert!(measure(&mut Steady, "elsewhere", 1, &mut counts).is_err());
    }

    #[test]
    fn a_row_that_times_little_of_what_it_does_is_bounded() {
        // A nanosecond of each millisecond is timed.
        let hidden = |count| Ok((Duration::from_nanos(count), Duration::from_millis(count)));
        assert_eq!(calibrate_by(hidden, 1, 4_000_000).unwrap(), 40);
    }
}
