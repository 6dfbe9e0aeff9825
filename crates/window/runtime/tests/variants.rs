//! Calls, attacks and faults again on the trampolines for processors without AVX.
#![allow(
    clippy::duplicate_mod,
    reason = "each of the files has its own module of the same support"
)]

#[path = "attacks.rs"]
mod attacks;
#[path = "calls.rs"]
mod calls;
#[path = "faults.rs"]
mod faults;

use std::process::Command;

#[test]
fn all_of_it_without_avx() {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "all_of_it", "--test-threads", "2"])
        .env("MULLION_WITHOUT_AVX", "1")
        .status();
    assert!(status.unwrap().success());
}
