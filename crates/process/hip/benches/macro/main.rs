//! The paper's Figure 5: two programs of three processes each, in every configuration that there is, and as plain
//! processes of Linux. `make bench-sip`, or
//! `cargo bench -p mullion-hip --bench macro -- [--json FILE] [--html FILE] [--quick] [--only CONFIGURATION]`.
//!
//! *WebFiles*: a client, a file system and a block device (memory). 50,000 files are read, in the mix that `mix`
//! documents. *Pipeline*: a source of numbers, a process that sorts them by heapsort, and one that adds them up.
//!
//! | configuration | what it is |
//! | --- | --- |
//! | one address space | three SIPs of one kernel; messages by pointer |
//! | OS processes, shared heap | the same three in a domain each; messages by pointer |
//! | OS processes, own heaps | the same; messages are copied by way of shared memory |
//! | Linux, socket pairs | three plain programs with the same work, without channels, contracts or ledgers |
//!
//! *Checks* are those of array bounds and of overflow in the processes' own code, which is compiled with them and
//! without (`work`). The kernel's, the standard library's and the channels' are in both.
//!
//! Rounds are interleaved: one of each configuration, then the next of each. The client (or the sink) times batches of
//! its requests. A configuration's time is the sum of each batch's median over the rounds, so that a batch in which
//! others of a busy machine ran counts as the others of its kind did; *least* sums their least times.

#[path = "../../../../language/sip/tests/host/mod.rs"]
mod host;
mod mix;
mod plain;
mod report;
mod sips;
mod work;

use std::num::NonZeroUsize;

use host::host;
use mullion_sip_hosting::Start;
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Took {
    /// Nanoseconds of each batch: the same work in all configurations and rounds.
    pub(crate) batches: Vec<u64>,
    pub(crate) sum: u64,
}

type Run = fn(Work, Processors) -> Took;

const CONFIGURATIONS: [(&str, bool, Run); 8] = [
    ("one address space", true, sips::same),
    ("one address space, no checks", false, sips::same),
    ("OS processes, shared heap", true, sips::sharing),
    ("OS processes, shared heap, no checks", false, sips::sharing),
    ("OS processes, own heaps", true, sips::apart),
    ("OS processes, own heaps, no checks", false, sips::apart),
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
        (true, true) => (3, 50),
        (true, false) => (5, 1),
    };
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let only = after("--only").map_or("", String::as_str);
    let workers = NonZeroUsize::new(2);
    host().start(Start { workers }).expect("workers");

    let mut rows = Vec::new();
    for (kind, count) in [(Kind::Files, 50_000), (Kind::Compute, 2_000)] {
        for processors in [Processors::Two, Processors::One] {
            rows.extend(measure(kind, count / part, processors, rounds, only));
        }
    }
    println!("{}", report::table(&rows));
    if let Some(file) = after("--json") {
        std::fs::write(file, report::json(&rows, rounds))?;
    }
    if let Some(file) = after("--html") {
        std::fs::write(file, report::page(&rows, rounds))?;
    }
    Ok(())
}

fn measure(kind: Kind, count: u64, processors: Processors, rounds: usize, only: &str) -> Vec<Row> {
    let chosen = || {
        CONFIGURATIONS
            .iter()
            .filter(|(name, ..)| name.starts_with(only))
    };
    let mut rounds_of = vec![Vec::new(); chosen().count()];
    let mut sum = None;
    for _ in 0..rounds {
        for ((name, checked, run), rounds) in chosen().zip(&mut rounds_of) {
            let work = Work {
                kind,
                checked: *checked,
                count,
            };
            let took = run(work, processors);
            assert_eq!(
                *sum.get_or_insert(took.sum),
                took.sum,
                "{name} did something else"
            );
            let all: u64 = took.batches.iter().sum();
            eprintln!("{kind:?}, {processors:?}, {name}: {} ms", all / 1_000_000);
            rounds.push(took.batches);
        }
    }
    let Some(first) = rounds_of.first() else {
        return Vec::new();
    };
    let base = report::time(first, report::median);
    chosen()
        .map(|(name, ..)| *name)
        .zip(rounds_of)
        .map(|(name, rounds)| Row::of(kind, name, processors, count, &rounds, base))
        .collect()
}
