//! The environment of the course in kernel programming, in Rust: a counter of ticks. kernel.c is the same for C.
#![no_std]

use core::ffi::{c_int, c_long};

#[repr(C)]
struct Time {
    seconds: c_long,
    nanoseconds: c_long,
}

const MONOTONIC: c_int = 1;

unsafe extern "C" {
    safe fn module() -> i32;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
}

/// Hundredths of a second.
pub fn jiffies() -> u64 {
    let mut now = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the C library writes a time there.
    unsafe { clock_gettime(MONOTONIC, &mut now) };
    now.seconds as u64 * 100 + now.nanoseconds as u64 / 10_000_000
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> c_int {
    module()
}
