//! A row of the table, and how two threads are placed.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::{self, Clock};

/// Where the two ends are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    OneThread,
    /// Two processes on one worker, and on two.
    OneWorker,
    TwoWorkers,
    OneCore,
    TwoCores,
    /// On two cores, and neither sleeps.
    Spinning,
}

impl Where {
    fn name(self) -> &'static str {
        match self {
            Where::OneThread => "one thread",
            Where::OneWorker => "one worker",
            Where::TwoWorkers => "two workers",
            Where::OneCore => "one core",
            Where::TwoCores => "two cores",
            Where::Spinning => "two cores, spinning",
        }
    }

    /// How many times there and back make one round.
    fn times(self) -> u32 {
        match self {
            Where::OneThread => 20_000,
            Where::Spinning => 5_000,
            // Enough to make the two processes' beginning and end a cycle or two of each.
            Where::OneWorker => 200_000,
            Where::TwoWorkers => 500,
            Where::OneCore | Where::TwoCores => 500,
        }
    }
}

/// Something that is measured: goes there and back as often as it is told.
pub(crate) struct Row {
    name: &'static str,
    place: Where,
    bytes: usize,
    run: Box<dyn FnMut(u32)>,
    /// Cycles for once there and back, one for each round.
    rounds: Vec<f64>,
}

impl Row {
    pub(crate) fn new(
        name: &'static str,
        place: Where,
        bytes: usize,
        run: impl FnMut(u32) + 'static,
    ) -> Row {
        Row {
            name,
            place,
            bytes,
            run: Box::new(run),
            rounds: Vec::new(),
        }
    }

    /// What it is, and where.
    pub(crate) fn full_name(&self) -> String {
        format!("{} {}", self.name, self.place.name())
    }

    pub(crate) fn measure(&mut self) {
        let times = self.place.times();
        if self.place == Where::OneThread {
            // Warm, on the core where it will stay.
            pin(0);
            (self.run)(times / 10);
        }
        let begin = clock::now();
        (self.run)(times);
        self.rounds
            .push((clock::now() - begin) as f64 / f64::from(times));
    }

    pub(crate) fn print(&mut self, clock: &Clock) {
        self.rounds.sort_by(f64::total_cmp);
        let median = self.rounds[self.rounds.len() / 2];
        println!(
            "{:<34} {:<18} {:>7} {:>10.0} {:>10.0} {:>10.1}",
            self.name,
            self.place.name(),
            self.bytes,
            median,
            self.rounds[0],
            median / clock.per_nanosecond
        );
    }
}

/// Runs `here` on this thread and `there` on another, placed as asked for; both pinned before either begins.
pub(crate) fn beside<T: Send>(
    place: Where,
    here: impl FnOnce() -> T,
    there: impl FnOnce() + Send,
) -> T {
    thread::scope(|scope| {
        let far = if place == Where::OneCore { 0 } else { 1 };
        scope.spawn(move || {
            pin(far);
            there();
        });
        pin(0);
        here()
    })
}

/// Stays on the `index`-th of the cores that this process may use (modulo their number).
fn pin(index: usize) {
    static ALLOWED: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    let allowed = ALLOWED.get_or_init(|| {
        let set = sched_getaffinity(None).expect("the cores that may be used");
        (0..CpuSet::MAX_CPU)
            .filter(|&core| set.is_set(core))
            .collect()
    });
    let mut set = CpuSet::new();
    set.set(allowed[index % allowed.len()]);
    sched_setaffinity(None, &set).expect("a core");
}
