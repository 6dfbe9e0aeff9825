//! Pairs of OS threads, placed on cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::clock;
use crate::row::Where;

/// How many batches, of how many times there and back.
pub(crate) fn times(place: Where) -> (usize, u32) {
    match place {
        Where::OneThread | Where::OneWorker => (301, 500),
        Where::NearSpinning | Where::FarSpinning => (51, 100),
        Where::TwoWorkers => (51, 50),
        Where::OneCore | Where::NearCores | Where::FarCores => (41, 10),
    }
}

/// Runs `here` on this thread and `there` on another, placed as asked for; both pinned before either begins.
pub(crate) fn beside<T: Send>(
    place: Where,
    here: impl FnOnce() -> T,
    there: impl FnOnce() + Send,
) -> T {
    thread::scope(|scope| {
        scope.spawn(move || {
            clock::pin(partner(place));
            there();
        });
        clock::pin(0);
        here()
    })
}

/// Where the second of two ends is; the first is on core 0 of those that there are.
pub(crate) fn partner(place: Where) -> usize {
    match place {
        Where::OneThread | Where::OneWorker | Where::OneCore => 0,
        Where::TwoWorkers | Where::NearCores | Where::NearSpinning => distances().0.0,
        Where::FarCores | Where::FarSpinning => distances().1.0,
    }
}

/// The places of two cores that this machine has: near each other and, if there are pairs that take half as long
/// again, far.
pub(crate) fn pairs(near: Where, far: Where) -> Vec<Where> {
    let ((_, nearest), (_, farthest)) = distances();
    match () {
        () if clock::cores().len() < 2 => vec![],
        () if farthest > nearest * 1.5 => vec![near, far],
        () => vec![near],
    }
}

/// The nearest and the farthest core, as seen from the first, and cycles for a word there and back.
pub(crate) fn distances() -> ((usize, f64), (usize, f64)) {
    static FOUND: OnceLock<((usize, f64), (usize, f64))> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut all: Vec<(usize, f64)> = (1..clock::cores().len().min(256))
            .map(|core| (core, distance(core)))
            .collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let nowhere = (0, f64::NAN);
        (
            all.first().copied().unwrap_or(nowhere),
            all.last().copied().unwrap_or(nowhere),
        )
    })
}

fn distance(core: usize) -> f64 {
    const TIMES: u32 = 200;
    const ROUNDS: u32 = 21;
    let turn = AtomicU32::new(0);
    let wait_for = |value: u32| {
        while turn.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            clock::pin(core);
            for round in 0..TIMES * ROUNDS {
                wait_for(2 * round + 1);
                turn.store(2 * round + 2, Ordering::Release);
            }
        });
        clock::pin(0);
        let mut least = f64::INFINITY;
        for round in 0..ROUNDS {
            let begin = clock::now();
            for once in 0..TIMES {
                turn.store(2 * (round * TIMES + once) + 1, Ordering::Release);
                wait_for(2 * (round * TIMES + once) + 2);
            }
            least = least.min((clock::now() - begin) as f64 / f64::from(TIMES));
        }
        least
    })
}
