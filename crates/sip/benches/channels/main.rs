//! What a message costs, there and back, beside what Linux and other Rust channels ask for the same:
//! `cargo bench -p mullion-sip --bench channels [-- [--quick] [NAME]]`; with a name, the rows that have it in theirs.
//!
//! *One worker*, *two workers*: between two processes. *One thread*: both ends on one OS thread; the cost of the operations alone. *One core* and *two cores*: two OS
//! threads that wait for each other, pinned. *Spinning*: they look again instead of sleeping.
//! All rows run in turn, round after round, so that a busy moment hits all alike; the table has medians and minima
//! of the rounds. A message of 1 or 32 bytes goes in place, one of 1 KiB or 32 KiB in a block by pointer where the
//! channel can (ours: `ExVec<u8>`; the others: `Box<[u8]>`); Linux copies.

mod clock;
mod mullion;
mod peers;
mod row;
mod system;

use clock::Clock;
use mullion_sip::heap::ProcessHeaps;
use row::Row;

/// Processes allocate from heaps of their own; the peers' rows get the host's, which is the system's.
#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments.iter().find(|argument| !argument.starts_with('-'));
    let rounds = if quick { 5 } else { 25 };
    let clock = Clock::new();
    let mut rows: Vec<Row> = [mullion::rows(), peers::rows(), system::rows()]
        .into_iter()
        .flatten()
        .filter(|row: &Row| only.is_none_or(|only| row.full_name().contains(only)))
        .collect();
    for _ in 0..rounds {
        for row in &mut rows {
            row.measure();
        }
    }
    println!(
        "there and back; {rounds} rounds; {:.2} cycles of the time-stamp counter are 1 ns",
        clock.per_nanosecond
    );
    println!(
        "{:<34} {:<18} {:>7} {:>10} {:>10} {:>10}",
        "", "where", "bytes", "cycles", "minimum", "ns"
    );
    for row in &mut rows {
        row.print(&clock);
    }
}
