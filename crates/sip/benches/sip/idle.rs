//! What a process takes that waits.

use std::time::Duration;

use mullion_sip::wait;

use crate::kernel::in_process;

/// Bytes of memory that the program has for each of many processes that wait.
pub(crate) fn memory() -> usize {
    const MANY: usize = 10_000;
    let before = resident();
    let many: Vec<_> = (0..MANY)
        .map(|number| in_process(|()| wait::park(), (), number % 2))
        .collect();
    while mullion_sip::process::statistics()
        .iter()
        .any(|process| process.threads == 0)
    {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(100));
    let each = (resident() - before) / MANY;
    many.iter().for_each(|child| child.kill());
    many.iter().for_each(|child| {
        child.wait();
    });
    each
}

/// Bytes of memory that the program has.
fn resident() -> usize {
    let statistics = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statistics
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number");
    pages * 4096
}
