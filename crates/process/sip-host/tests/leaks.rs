//! A thousand lives of a separately built SIP: in a program of its own, whose memory is looked at.

#![forbid(unsafe_code)]

#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use std::time::Duration;

use built::library;
use host::host;
use mullion_sip::exchange::census;
use mullion_sip_host::{Configuration, SipSupervisor};

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("of this system");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|number| number.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("of this system")
        .count()
}

/// Each life finds its statics as the first one did, and leaves nothing behind.
#[test]
fn a_thousand_lives_leak_nothing() {
    let mut configuration = Configuration::parse(
        r#"
        [processes.mayfly]
        library = "odd"
        arguments = ["statics"]
        restart = "always"
        "#,
    )
    .expect("well formed");
    for process in configuration.processes.values_mut() {
        process.library = library("odd");
    }
    let supervisor =
        SipSupervisor::new(&host(), &configuration).unwrap_or_else(|error| panic!("{error}"));
    let before = census().in_use;
    let (stop, watch) = (supervisor.stop(), supervisor.watch());
    let supervising = std::thread::spawn(|| supervisor.run());
    let mayfly = || {
        let processes = watch.view().processes;
        let found = processes
            .into_iter()
            .find(|process| process.name == "mayfly");
        found.unwrap_or_default()
    };
    let until = |lives: u64| {
        while mayfly().restarts < lives {
            assert!(!supervising.is_finished(), "it is restarted");
            std::thread::sleep(Duration::from_millis(1));
        }
        (resident(), descriptors())
    };
    let (memory, files) = until(200);
    let (later_memory, later_files) = until(1200);
    let end = mayfly().last_end;
    stop.stop();
    let outcomes = supervising.join().expect("no panic");
    assert_eq!(
        end.as_deref(),
        Some("Exited(3)"),
        "its statics are as at first"
    );
    assert!(outcomes[0].restarts >= 1200);
    assert!(
        later_memory < memory + (1 << 20),
        "{memory} then {later_memory} bytes"
    );
    assert!(
        later_files <= files,
        "{files} then {later_files} descriptors"
    );
    assert!(
        !host()
            .statistics()
            .iter()
            .any(|process| process.name == "mayfly")
    );
    assert_eq!(census().in_use, before, "blocks of the exchange heap");
}
