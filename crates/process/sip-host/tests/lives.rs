//! Separately built SIPs, run: they end, are restarted and are heard as linked ones are.

#![forbid(unsafe_code)]

mod arranged;
#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use std::sync::Mutex;
use std::time::Duration;

use arranged::{configuration, every_end_is_told};
use host::host;
use mullion_sip::process::Cause;
use mullion_sip_host::SipSupervisor;
use mullion_sip_host::supervisor::RunOutcome;

/// Names are the program's: tests that bind `/echo` go one after another.
static ECHO: Mutex<()> = Mutex::new(());

fn setup(text: &str) -> SipSupervisor {
    SipSupervisor::new(&host(), &configuration(text)).unwrap_or_else(|error| panic!("{error}"))
}

fn all_well(outcomes: &[RunOutcome]) {
    for outcome in outcomes {
        let well = outcome
            .exit
            .is_some_and(|exit| exit.cause == Cause::Returned);
        assert!(well, "{outcome:?}");
    }
}

/// How a process ends that is told to end in this way.
fn odd(way: &str) -> (Cause, String) {
    let text = format!(
        "[processes.odd-{way}]\nlibrary = \"odd\"\narguments = [\"{way}\"]\nbind = [\"/odd\"]"
    );
    let exit = setup(&text).run()[0].exit.expect("an end");
    (exit.cause, exit.message.to_string())
}

#[test]
fn every_end_is_the_one_that_a_linked_process_has() {
    every_end_is_told(odd);
}

/// 20, 40, 80 and 160 ms at least.
#[test]
fn waits_before_restarts_double() {
    let supervisor = setup(
        r#"
        [processes.failing]
        library = "odd"
        arguments = ["fail"]
        restart = "on-failure"
        back-off = { first = "20 ms", most = "10 s" }
        "#,
    );
    let (watch, stop) = (supervisor.watch(), supervisor.stop());
    let begin = std::time::Instant::now();
    let running = std::thread::spawn(|| supervisor.run());
    let restarts = || watch.view().processes.first().map_or(0, |one| one.restarts);
    while restarts() < 4 {
        assert!(!running.is_finished());
        std::thread::sleep(Duration::from_millis(1));
    }
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_millis(300), "{waited:?}");
    stop.stop();
    running.join().expect("no panic");
}

/// A process that has ended is in the map, marked, and has no memory.
#[test]
fn the_map_marks_what_has_ended() {
    let _one = ECHO.lock();
    let supervisor = setup(
        r#"
        [processes.gone]
        library = "odd"
        arguments = ["fail"]
        [processes.echo]
        library = "echo"
        arguments = ["/echo", "2"]
        bind = ["/echo"]
        "#,
    );
    let (watch, stop) = (supervisor.watch(), supervisor.stop());
    let running = std::thread::spawn(|| supervisor.run());
    let is_over = || {
        let view = watch.view();
        let mut gone = view.processes.iter().filter(|one| one.name == "gone");
        gone.any(|one| one.state == "over")
    };
    let state = loop {
        assert!(!running.is_finished());
        // The map is refused while a process begins.
        if is_over()
            && let Ok(state) = watch.map()
            && state.domains.iter().any(|one| one.name == "echo")
        {
            break state;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    stop.stop();
    running.join().expect("no panic");

    let state = state.validate().expect("it holds together");
    let named = |name: &str| {
        let all = state.state().domains.iter();
        let found: Vec<_> = all.filter(|one| one.name == name).collect();
        assert_eq!(found.len(), 1, "{name} in {:?}", state.state().domains);
        found[0].clone()
    };
    let (gone, echo) = (named("gone"), named("echo"));
    assert!(gone.ended && !echo.ended);
    let mut regions = state.state().regions.iter();
    assert!(regions.all(|region| {
        region.owner != gone.id
            && region
                .grants
                .iter()
                .all(|grant| grant.domain != Some(gone.id))
    }));
    let picture = mullion_picture::paint(&state, &mullion_picture::PaintOptions::default());
    assert!(picture.contains(">gone (ended)<"));
}

#[test]
fn a_service_and_its_clients_find_each_other() {
    let _one = ECHO.lock();
    all_well(
        &setup(
            r#"
            [processes.echo]
            library = "echo"
            arguments = ["/echo", "2"]
            bind = ["/echo"]
            [processes.one]
            library = "asker"
            arguments = ["1000"]
            look-up = ["/echo"]
            [processes.two]
            library = "asker"
            arguments = ["1000"]
            look-up = ["/echo"]
            "#,
        )
        .run(),
    );
}

/// The service panics at every hundredth message. Its client is told, looks it up again and goes on.
#[test]
fn peers_are_told_when_a_process_ends_and_find_its_next_life() {
    let _one = ECHO.lock();
    let supervisor = setup(
        r#"
        [processes.flaky]
        library = "echo"
        arguments = ["/echo", "0", "100"]
        bind = ["/echo"]
        restart = "on-failure"
        back-off = { first = "1 ms", most = "2 ms" }
        [processes.patient]
        library = "asker"
        arguments = ["450"]
        look-up = ["/echo"]
        "#,
    );
    let (stop, watch) = (supervisor.stop(), supervisor.watch());
    let supervising = std::thread::spawn(|| supervisor.run());
    let patient = |name: &str| {
        let processes = watch.view().processes;
        processes.into_iter().find(|process| process.name == name)
    };
    while patient("patient").is_none_or(|process| process.state != "over") {
        std::thread::sleep(Duration::from_millis(2));
    }
    let restarts = patient("flaky").map_or(0, |process| process.restarts);
    stop.stop();
    let outcomes = supervising.join().expect("no panic");
    assert_eq!(
        outcomes[1].exit.map(|exit| exit.cause),
        Some(Cause::Returned),
        "{outcomes:?}"
    );
    assert!(restarts >= 4, "{restarts}");
}

#[test]
fn who_looks_sees_processes_and_channels() {
    let _one = ECHO.lock();
    let supervisor = setup(
        r#"
        [processes.seen-echo]
        library = "echo"
        bind = ["/echo"]
        [processes.seen-asker]
        library = "asker"
        arguments = ["0", "100"]
        look-up = ["/echo"]
        limits = { memory = "2 MiB" }
        "#,
    );
    let (stop, watch) = (supervisor.stop(), supervisor.watch());
    let supervising = std::thread::spawn(|| supervisor.run());
    let view = loop {
        let view = watch.view();
        if view.channels.iter().any(|channel| {
            channel.to_client > 20 && channel.client.is_some() && channel.server.is_some()
        }) {
            break view;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let later = watch.view();
    stop.stop();
    let outcomes = supervising.join().expect("no panic");
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.exit.is_some_and(|exit| exit.cause == Cause::Killed)),
        "{outcomes:?}"
    );
    let channel = view
        .channels
        .iter()
        .find(|channel| channel.contract == "echo")
        .expect("one");
    assert_eq!(channel.client.as_deref(), Some("seen-asker"));
    assert_eq!(channel.server.as_deref(), Some("seen-echo"));
    assert!(
        channel.to_server.abs_diff(channel.to_client) <= 1_000,
        "{channel:?}"
    );
    let asker = view
        .processes
        .iter()
        .find(|process| process.name == "seen-asker")
        .expect("there");
    assert_eq!((&*asker.domain, &*asker.state), ("main", "running"));
    assert_eq!(
        (asker.heap_limit, asker.threads, asker.restarts),
        (2 << 20, 1, 0)
    );
    assert!(asker.messages > 20 && asker.heap > 0, "{asker:?}");
    let asker_later = later
        .processes
        .iter()
        .find(|process| process.name == "seen-asker")
        .expect("there");
    assert!(asker_later.messages >= asker.messages);
}
