//! A million domains made, called and unloaded, and a million injected faults:
//! `cargo run --release -p mullion-runtime --example stress [COUNT]`. Exits with a
//! panic if memory, descriptors or mappings do not come back to where they began.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;
use support::Program;
use support::churn::{self, Usage};

fn main() {
    let count = std::env::args().nth(1).map(|count| count.parse().unwrap());
    let count: u64 = count.unwrap_or(1_000_000);
    let program = churn::program();
    for (name, work) in [
        ("load, call, unload", churn::cycles as fn(&Program, u64)),
        ("fault, restart", churn::faults),
    ] {
        work(&program, 1000);
        let before = Usage::now();
        let start = Instant::now();
        work(&program, count);
        let each = start.elapsed().as_nanos() as f64 / count as f64 / 1e3;
        let after = Usage::now();
        println!("{name}, {count} times, {each:.2} us each");
        println!("  before {before:?}");
        println!("  after  {after:?}");
        after.assert_as(before);
    }
}
