//! The paper's Figure 5: two programs of three processes each, in every configuration that there is, and as plain
//! processes of Linux. `make bench-sip`, or
//! `cargo bench -p mullion-hip --bench macro -- [--json FILE] [--html FILE] [--quick]`.
//!
//! *WebFiles*: a client, a file system and a block device (memory). 50,000 files are read, in the mix that `mix`
//! documents. *Pipeline*: a source of numbers, a process that sorts them by heapsort, and one that adds them up.
//!
//! | configuration | what it is |
//! | --- | --- |
//! | one address space | three SIPs of one kernel; messages by pointer |
//! | OS processes, own heaps | the same three in a domain each; messages are copied by way of shared memory |
//! | Linux, socket pairs | three plain programs with the same work, without channels, contracts or ledgers |
//!
//! *Checks* are those of array bounds and of overflow in the processes' own code, which is compiled with them and
//! without (`work`). The kernel's, the standard library's and the channels' are in both.
//!
//! Rounds are interleaved: one of each configuration, then the next of each. Times are those from the client's (or
//! the sink's) first request to its last answer.

mod mix;
mod plain;
mod report;
mod sips;
mod work;

use std::num::NonZeroUsize;

use mullion_sip::Start;
use report::Row;
use work::{Kind, Work};

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

/// Where the three processes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processors {
    /// All on the first.
    One,
    /// The second process on the second, the others on the first; plain processes where Linux wants.
    Two,
}

/// How long it took, and a sum by which all configurations show that they did the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Took {
    pub(crate) nanoseconds: u64,
    pub(crate) sum: u64,
}

type Run = fn(Work, Processors) -> Took;

const CONFIGURATIONS: [(&str, bool, Run); 6] = [
    ("one address space", true, sips::same),
    ("one address space, no checks", false, sips::same),
    ("OS processes, own heaps", true, sips::domains),
    ("OS processes, own heaps, no checks", false, sips::domains),
    ("Linux, socket pairs", true, plain::run),
    ("Linux, socket pairs, no checks", false, plain::run),
];

fn main() -> std::io::Result<()> {
    mullion_hip::enter(sips::load);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if plain::is_one(&arguments) {
        return plain::be(&arguments);
    }
    // `cargo test` runs benches too, with other arguments: then a little of everything, once.
    let bench = arguments.iter().any(|argument| argument == "--bench");
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let (rounds, part) = match (bench, quick) {
        (false, _) => (1, 100),
        (true, true) => (3, 10),
        (true, false) => (9, 1),
    };
    let workers = NonZeroUsize::new(2);
    mullion_sip::start(Start { workers }).expect("workers");

    let mut rows = Vec::new();
    for (kind, count) in [(Kind::Files, 50_000), (Kind::Compute, 2_000)] {
        for processors in [Processors::One, Processors::Two] {
            rows.extend(measure(kind, count / part, processors, rounds));
        }
    }
    println!("{}", report::table(&rows));
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if let Some(file) = after("--json") {
        std::fs::write(file, report::json(&rows, rounds))?;
    }
    if let Some(file) = after("--html") {
        std::fs::write(file, report::page(&rows, rounds))?;
    }
    Ok(())
}

fn measure(kind: Kind, count: u64, processors: Processors, rounds: usize) -> Vec<Row> {
    let mut times = vec![Vec::new(); CONFIGURATIONS.len()];
    let mut sum = None;
    for _ in 0..rounds {
        for ((name, checked, run), times) in CONFIGURATIONS.iter().zip(&mut times) {
            let work = Work {
                kind,
                checked: *checked,
                count,
            };
            let took = run(work, processors);
            assert_eq!(*sum.get_or_insert(took.sum), took.sum, "{name} did something else");
            times.push(took.nanoseconds);
        }
    }
    let base = report::median(&mut times[0].clone());
    let names = CONFIGURATIONS.iter().map(|(name, ..)| *name);
    names
        .zip(times)
        .map(|(name, times)| Row::of(kind, name, processors, count, times, base))
        .collect()
}
