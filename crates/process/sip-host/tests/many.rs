//! Many separately built SIPs at once: what each takes while it waits. `MULLION_SIP_MANY=500 cargo test --release -p
//! mullion-sip-host --test many -- --nocapture` for more of them, `MULLION_SIP_LIBRARY=FILE` for another that waits when
//! it is told to `sleep`.

#![forbid(unsafe_code)]

#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use built::library;
use host::host;
use mullion_sip::process::Cause;
use mullion_sip_host::{Configuration, SipSupervisor};

#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "shown")]
struct System {
    resident: usize,
    mappings: usize,
    descriptors: usize,
}

impl System {
    fn now() -> System {
        let read = |path| std::fs::read_to_string(path).expect("Linux");
        let statistics = read("/proc/self/statm");
        let pages = statistics.split(' ').nth(1).map(str::parse::<usize>);
        System {
            resident: pages.expect("a second number").expect("a number") * 4096,
            mappings: read("/proc/self/maps").lines().count(),
            descriptors: std::fs::read_dir("/proc/self/fd").expect("Linux").count(),
        }
    }
}

#[test]
fn many_separately_built_sips_wait_at_once() {
    let many = std::env::var("MULLION_SIP_MANY").map_or(8, |many| many.parse().expect("a number"));
    let mut text = String::new();
    for number in 0..many {
        writeln!(
            text,
            "[processes.p{number}]\nlibrary = \"odd\"\narguments = [\"sleep\"]"
        )
        .expect("a text");
    }
    let mut configuration = Configuration::parse(&text).expect("well formed");
    for process in configuration.processes.values_mut() {
        let other = std::env::var_os("MULLION_SIP_LIBRARY");
        process.library = other.map_or_else(|| library("odd"), PathBuf::from);
    }
    let (before, began) = (System::now(), Instant::now());
    let supervisor =
        SipSupervisor::new(&host(), &configuration).unwrap_or_else(|error| panic!("{error}"));
    let stop = supervisor.stop();
    let supervising = std::thread::spawn(|| supervisor.run());
    let waiting = || {
        host()
            .statistics()
            .iter()
            .filter(|process| process.threads > 0)
            .count()
    };
    while waiting() < many {
        assert!(!supervising.is_finished(), "all wait");
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = began.elapsed();
    // Each has begun to wait.
    std::thread::sleep(Duration::from_millis(200));
    let alive = System::now();
    let memory: usize = host()
        .statistics()
        .iter()
        .map(|process| process.memory.0)
        .sum();
    stop.stop();
    let outcomes = supervising.join().expect("no panic");
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.exit.is_some_and(|exit| exit.cause == Cause::Killed))
    );
    assert!(host().statistics().is_empty());
    let each = |before: usize, after: usize| after.saturating_sub(before) / many;
    println!(
        "{many} SIPs: each {} bytes of memory, {} of its heap, {} mappings, {} descriptors, {} us to begin; {alive:?}",
        each(before.resident, alive.resident),
        memory / many,
        each(before.mappings, alive.mappings),
        each(before.descriptors, alive.descriptors),
        began.as_micros() as usize / many,
    );
    assert!(each(before.descriptors, alive.descriptors) <= 2);
    // Workers have stacks in store, two mappings each.
    assert!(alive.mappings - before.mappings <= 600 + 10 * many);
}
