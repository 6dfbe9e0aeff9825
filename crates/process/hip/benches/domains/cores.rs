//! Where the second of two OS processes is; the first is on the first core that the program may use.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// One arrangement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Among the cores that the program may use.
    pub(crate) core: usize,
    far: bool,
    /// Whether the peer sleeps when a message comes.
    pub(crate) asleep: bool,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match (self.core, self.far, self.asleep) {
            (0, _, false) => "OS processes, one core",
            (0, _, true) => "OS processes, one core, asleep",
            (_, false, false) => "OS processes, two cores",
            (_, false, true) => "OS processes, two cores, asleep",
            (_, true, false) => "OS processes, two far cores",
            (_, true, true) => "OS processes, two far cores, asleep",
        }
    }
}

/// The cores that the program may use, before it stays on one.
fn all() -> &'static [usize] {
    static ALL: OnceLock<Vec<usize>> = OnceLock::new();
    ALL.get_or_init(|| {
        let set = sched_getaffinity(None).expect("the cores that may be used");
        let cores = 0..CpuSet::MAX_CPU;
        cores.filter(|core| set.is_set(*core)).collect()
    })
}

/// Stays on one of them.
pub(crate) fn pin(place: usize) {
    stay_on(number(place));
}

/// The system's number of one of them.
pub(crate) fn number(place: usize) -> usize {
    all()[place % all().len()]
}

pub(crate) fn stay_on(number: usize) {
    let mut set = CpuSet::new();
    set.set(number);
    sched_setaffinity(None, &set).expect("a core");
}

/// All arrangements of this machine: the nearest core, and the farthest, if a word takes half as long again to it.
pub(crate) fn places() -> &'static [Place] {
    static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let mut distances: Vec<_> = (1..all().len().min(256))
            .map(|core| (distance(core), core))
            .collect();
        distances.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut cores = vec![(0, false)];
        cores.extend(distances.first().map(|(_, core)| (*core, false)));
        if let (Some(near), Some(far)) = (distances.first(), distances.last())
            && far.0 > near.0 * 1.5
        {
            cores.push((far.1, true));
        }
        let states = [false, true].into_iter();
        states
            .flat_map(|asleep| {
                let place = move |(core, far): &(usize, bool)| Place {
                    core: *core,
                    far: *far,
                    asleep,
                };
                cores.iter().map(place).collect::<Vec<_>>()
            })
            .collect()
    })
}

/// The least time of a word there and back.
fn distance(core: usize) -> f64 {
    const TIMES: u32 = 200;
    const ROUNDS: u32 = 21;
    let turn = AtomicU32::new(0);
    let wait_for = |value: u32| {
        while turn.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(core);
            for round in 0..TIMES * ROUNDS {
                wait_for(2 * round + 1);
                turn.store(2 * round + 2, Ordering::Release);
            }
        });
        let asks = scope.spawn(|| {
            pin(0);
            let mut least = f64::INFINITY;
            for round in 0..ROUNDS {
                let begin = std::time::Instant::now();
                for once in 0..TIMES {
                    turn.store(2 * (round * TIMES + once) + 1, Ordering::Release);
                    wait_for(2 * (round * TIMES + once) + 2);
                }
                least = least.min(begin.elapsed().as_secs_f64());
            }
            least
        });
        asks.join().expect("no panic")
    })
}
