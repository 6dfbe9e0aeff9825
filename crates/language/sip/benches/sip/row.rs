//! Rows: what was measured where, and how batches are summed up.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock;

/// Where the two ends are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    /// Both on one thread: what the operations alone cost.
    OneThread,
    /// Two processes on one worker, and on two.
    OneWorker,
    TwoWorkers,
    /// Two OS threads, or OS processes, on one core.
    OneCore,
    /// On two cores that are near each other, and on two that are far: the fastest and the slowest pair.
    NearCores,
    FarCores,
    /// The same, and neither sleeps.
    NearSpinning,
    FarSpinning,
}

impl Where {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Where::OneThread => "one thread",
            Where::OneWorker => "one worker",
            Where::TwoWorkers => "two workers",
            Where::OneCore => "one core",
            Where::NearCores => "two cores",
            Where::FarCores => "two far cores",
            Where::NearSpinning => "two cores, spinning",
            Where::FarSpinning => "two far cores, spinning",
        }
    }

    /// Whether neither end sleeps.
    pub(crate) fn spins(self) -> bool {
        matches!(self, Where::NearSpinning | Where::FarSpinning)
    }
}

/// A row of the table: cycles of the time-stamp counter for the operation once, or there and back. Rows of other
/// programs (`--rows`) have the same form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What is done.
    pub(crate) operation: String,
    /// By whom.
    pub(crate) who: String,
    /// As [`Where::name`], or another place of another program's.
    #[serde(rename = "where")]
    pub(crate) place: String,
    /// Of the message; `None` where there is none.
    pub(crate) bytes: Option<usize>,
    /// Least, quartiles and median over batches.
    pub(crate) least: f64,
    pub(crate) first_quartile: f64,
    pub(crate) median: f64,
    pub(crate) third_quartile: f64,
    pub(crate) batches: usize,
    /// What the paper says, and what is aimed at.
    pub(crate) paper: Option<f64>,
    pub(crate) aim: Option<f64>,
}

/// What a measurement is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of {
    pub(crate) operation: &'static str,
    pub(crate) who: &'static str,
    pub(crate) place: Where,
    pub(crate) bytes: Option<usize>,
    pub(crate) paper: Option<f64>,
    pub(crate) aim: Option<f64>,
}

impl Of {
    pub(crate) const fn new(operation: &'static str, who: &'static str, place: Where) -> Of {
        Of {
            operation,
            who,
            place,
            bytes: None,
            paper: None,
            aim: None,
        }
    }

    pub(crate) const fn bytes(mut self, bytes: usize) -> Of {
        self.bytes = Some(bytes);
        self
    }

    pub(crate) const fn paper(mut self, cycles: f64) -> Of {
        self.paper = Some(cycles);
        self
    }

    pub(crate) const fn aim(mut self, cycles: f64) -> Of {
        self.aim = Some(cycles);
        self
    }
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// A row that takes longer than this has fewer batches, but so many at least: on a busy machine two threads that
/// spin wait for time slices of others.
const PATIENCE: Duration = Duration::from_secs(2);
const ENOUGH: usize = 9;

/// Has `batch` do the thing `times` times, often; a row is per time. Batches are short beside what the system
/// gives a thread at a time, so that most are not interrupted, and the median is of those.
pub(crate) fn measure(of: Of, batches: usize, times: u32, mut batch: impl FnMut(u32)) {
    batch(times);
    let mut samples = Vec::with_capacity(batches);
    let since = Instant::now();
    while samples.len() < batches && (samples.len() < ENOUGH || since.elapsed() < PATIENCE) {
        let begin = clock::now();
        batch(times);
        samples.push((clock::now() - begin) as f64 / f64::from(times));
    }
    report(of, samples);
}

/// Sums up what has been measured otherwise.
pub(crate) fn report(of: Of, mut samples: Vec<f64>) {
    // Rows, and their names on the way, outlive the process that measures.
    // SAFETY: it prints and allocates, which ends; nothing here parks or panics. The row goes to a static.
    let _host = unsafe { mullion_sip_hosting::enter_kernel_as_host() };
    let bytes = of
        .bytes
        .map_or(String::new(), |bytes| format!(", {bytes} bytes"));
    eprintln!("{}: {}, {}{bytes}", of.who, of.operation, of.place.name());
    samples.sort_by(f64::total_cmp);
    let at = |quarter: usize| samples[(samples.len() - 1) * quarter / 4];
    let row = Row {
        operation: of.operation.to_owned(),
        who: of.who.to_owned(),
        place: of.place.name().to_owned(),
        bytes: of.bytes,
        least: at(0),
        first_quartile: at(1),
        median: at(2),
        third_quartile: at(3),
        batches: samples.len(),
        paper: of.paper,
        aim: of.aim,
    };
    ROWS.lock().expect("one at a time").push(row);
}

/// All rows so far.
pub(crate) fn rows() -> Vec<Row> {
    ROWS.lock().expect("one at a time").clone()
}
