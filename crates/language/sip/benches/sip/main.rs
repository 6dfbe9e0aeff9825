//! The paper's Table 1 and Figure 4 in one run, beside Linux and beside other channels in Rust:
//! `make bench-sip`, or `cargo bench -p mullion-sip --bench sip -- [--json FILE] [--html FILE] [--rows FILE] [--quick]`.
//! `--rows` adds the rows of another program's JSON to the table and the plot: what lies in other crates (processes in
//! OS processes of their own), or was measured in the same minutes by programs that need more to be built.
//!
//! Cycles are of the time-stamp counter. Each row is measured in batches of some microseconds, short beside what the
//! system gives a thread at a time: on a busy machine a batch is interrupted or not, and the median is of those that
//! were not. A message of 1 or 32 bytes goes in place, one of 1 KiB or 32 KiB in a block by pointer where the channel
//! can (ours: `ExVec<u8>`; the others: `Box<[u8]>`); Linux copies.
//!
//! *One worker*, *two workers*: between two processes. *One core*, *two cores*: between two OS threads that sleep while
//! they wait; *spinning*: they look again instead. Two cores can be near each other or far: the nearest and the
//! farthest pair are found by a word that goes back and forth, and reported both where they differ.

mod clock;
#[path = "../../tests/crowd/mod.rs"]
mod crowd;
#[path = "../../tests/host/mod.rs"]
mod host;
mod kernel;
mod linux;
mod messages;
mod peers;
mod plot;
mod report;
mod row;
mod table;
mod threads;

use std::num::NonZeroUsize;

use mullion_sip::heap::ProcessHeaps;
use mullion_sip_hosting::Start;
use row::Where;

/// Processes allocate from heaps of their own; the peers' rows get the host's, which is the system's.
#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` runs benches too, with other arguments.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let workers = NonZeroUsize::new(2);
    host::host().start(Start { workers }).expect("workers");

    kernel::run();
    table::run();
    messages::between_processes();
    let mut places = vec![Where::OneThread];
    if !quick {
        places.push(Where::OneCore);
        places.extend(threads::pairs(Where::NearCores, Where::FarCores));
        places.extend(threads::pairs(Where::NearSpinning, Where::FarSpinning));
    }
    for place in places {
        if place != Where::OneThread {
            messages::between_threads(place);
        }
        peers::messages(place);
        if place != Where::OneThread && !place.spins() {
            linux::messages(place);
        }
    }
    let crowd = (!quick).then(|| {
        linux::calls();
        // Last: ten thousand stacks make a fork slow.
        crowd::run(5_000)
    });

    let (machine, mut rows) = (report::Machine::this(crowd), row::rows());
    for (at, _) in arguments
        .iter()
        .enumerate()
        .filter(|(_, word)| *word == "--rows")
    {
        if let Some(file) = arguments.get(at + 1) {
            rows.extend(report::rows_of(&std::fs::read_to_string(file)?)?);
        }
    }
    println!("{}\n\n{}", machine.text(), report::table(&rows));
    if let Some(file) = after("--json") {
        std::fs::write(file, report::json(&machine, &rows))?;
    }
    if let Some(file) = after("--html") {
        std::fs::write(file, report::page(&machine, &rows))?;
    }
    Ok(())
}
