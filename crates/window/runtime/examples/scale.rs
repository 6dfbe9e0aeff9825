//! What domains cost at 1, 100 and 10,000 of them: time to make, call in turn
//! and restart, memory of each while idle, mappings.
//! `cargo run --release -p mullion-runtime --example scale`

#[path = "../tests/support/mod.rs"]
mod support;

use mullion_runtime::{CallArguments, Claimed, Limits};
use std::time::Instant;
use support::{Loaded, Program, host};

const PROGRAM: &str = "
    import host
    .data
    .balign 8
    pointer: .quad count
    count: .quad 0
    export go
        addq %rdi, count(%rip)
        movq count(%rip), %rax
        ret
";

fn main() {
    println!(
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9}",
        "domains",
        "new",
        "1st call",
        "call",
        "restart",
        "drop",
        "resident",
        "page tables",
        "mappings"
    );
    println!(
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9}",
        "", "us", "us", "ns", "us", "us", "KiB each", "KiB each", "each"
    );
    for count in [1, 100, 10_000] {
        measure(count);
    }
}

fn measure(count: usize) {
    let program = Program::new(PROGRAM);
    let load = || program.load_with(vec![host(|_| Ok(1))], Limits::default());
    drop(load());
    let before = usage();
    let (mut domains, new) = timed(count, || (0..count).map(|_| load()).collect::<Vec<_>>());
    let entry = |loaded: &Loaded| loaded.domain.entry(Claimed(loaded.address("go"))).unwrap();
    let entries: Vec<_> = domains.iter().map(entry).collect();
    let arguments = CallArguments::new(&[1]);
    let call_all = || {
        for (loaded, entry) in domains.iter().zip(&entries) {
            loaded.domain.call(*entry, &arguments).unwrap();
        }
    };
    let ((), first) = timed(count, call_all);
    let after = usage();
    let mut again = f64::MAX;
    for _ in 0..5 {
        again = again.min(timed(count, call_all).1);
    }
    let ((), restart) = timed(count, || {
        domains
            .iter_mut()
            .for_each(|loaded| loaded.domain.restart().unwrap());
    });
    let ((), gone) = timed(count, || drop(domains));
    let each = |index: usize| (after[index] - before[index]) / count as f64;
    println!(
        "{count:>7} {:>9.2} {:>9.2} {:>9.1} {:>9.2} {:>9.2} {:>11.1} {:>11.1} {:>9.2}",
        new / 1e3,
        first / 1e3,
        again,
        restart / 1e3,
        gone / 1e3,
        each(0),
        each(1),
        each(2)
    );
}

/// What it gives, and nanoseconds for each of `count`.
fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_nanos() as f64 / count as f64)
}

/// Resident memory and page tables in KiB, and mappings, of this process.
fn usage() -> [f64; 3] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| -> f64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    [
        field("VmRSS:"),
        field("VmPTE:"),
        maps.lines().count() as f64,
    ]
}
