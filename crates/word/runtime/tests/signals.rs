//! The host's signals are for the host's threads; in a process of its own, because it looks at all threads.

mod module;

use module::load;
use mullion_word_runtime::Policy;
use std::fs;
use std::path::Path;

/// Which signals a thread has blocked: bit 0 is signal 1.
fn blocked(task: &Path) -> Option<u64> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let word = status
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:"))?;
    u64::from_str_radix(word.trim(), 16).ok()
}

/// A host that waits for its signals in one thread must get them. Without this, Linux may give them to the watchdog.
#[test]
fn the_watchdog_takes_no_signals() {
    let own = Path::new("/proc/thread-self");
    let before = blocked(own);
    let _made = load("none", "gate g\n ret", Policy::new());
    assert_eq!(blocked(own), before, "the host's own thread");
    // The thread gives itself its name when it runs.
    let found = loop {
        let tasks = fs::read_dir("/proc/self/task").expect("a folder").flatten();
        let is_it = |task: &Path| {
            fs::read_to_string(task.join("comm"))
                .is_ok_and(|name| name.starts_with("mullion-word-wa"))
        };
        match tasks.map(|task| task.path()).find(|task| is_it(task)) {
            Some(task) => break blocked(&task).expect("it lives"),
            None => std::thread::yield_now(),
        }
    };
    let none = [libc::SIGKILL, libc::SIGSTOP];
    let missing: Vec<i32> = (1..32)
        .filter(|signal| !none.contains(signal) && found >> (signal - 1) & 1 == 0)
        .collect();
    assert!(missing.is_empty(), "it takes {missing:?}");
}
