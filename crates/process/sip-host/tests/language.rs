//! What safe code tries against the language's wall, with libraries that are built on their own.

#![forbid(unsafe_code)]

mod arranged;
#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use arranged::configuration;
use built::library;
use host::host;
use mullion_sip::process::Cause;
use mullion_sip_host::SipSupervisor;
use mullion_sip_host::image::SipImage;

fn setup(text: &str) -> SipSupervisor {
    SipSupervisor::new(&host(), &configuration(text)).unwrap_or_else(|error| panic!("{error}"))
}

/// How a process ends that is told to try something.
fn odd(way: &str) -> (Cause, String) {
    let text = format!("[processes.try-{way}]\nlibrary = \"odd\"\narguments = [\"{way}\"]");
    let exit = setup(&text).run()[0].exit.expect("an end");
    (exit.cause, exit.message.to_string())
}

/// One library has a vector where the other has two numbers, in a part of a message that is named as its message is.
#[test]
fn numbers_are_not_taken_for_a_vector() {
    let supervisor = setup(
        r#"
        [processes.numbers]
        library = "numbers"
        bind = ["/post"]
        [processes.pointers]
        library = "pointers"
        look-up = ["/post"]
        "#,
    );
    let (stop, watch) = (supervisor.stop(), supervisor.watch());
    let supervising = std::thread::spawn(|| supervisor.run());
    // Whoever is refused ends; nobody comes to the other.
    let over = |name: &str| {
        let processes = watch.view().processes;
        processes
            .iter()
            .any(|one| one.name == name && one.state == "over")
    };
    while !over("pointers") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    stop.stop();
    let outcomes = supervising.join().expect("no panic");
    let ends: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            outcome
                .exit
                .map(|exit| (exit.cause, exit.message.to_string()))
        })
        .collect();
    assert_eq!(ends[0], Some((Cause::Killed, String::new())), "{ends:?}");
    let (cause, said) = ends[1].clone().expect("an end");
    assert_eq!(cause, Cause::Exited(1));
    assert!(said.contains("contract"), "{said}");
    assert!(!said.contains("read"), "{said}");
}

#[test]
fn libraries_have_thread_locals_of_their_own_only() {
    for name in ["odd", "echo", "hello", "numbers", "pointers"] {
        SipImage::read(&library(name), None).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn an_initialiser_that_waits_changes_nothing_under_a_borrower() {
    assert_eq!(odd("locals"), (Cause::Returned, String::new()));
}

#[test]
fn each_thread_has_its_own_and_drops_it() {
    for way in ["own-locals", "large-locals", "late-locals"] {
        assert_eq!(odd(way), (Cause::Returned, String::new()), "{way}");
    }
    // Four threads are all that it may have.
    assert_eq!(odd("all-locals").0, Cause::Exited(1));
}

/// What keeps the OS thread of its worker asleep is ended, and others go on there.
#[test]
fn nobody_keeps_a_worker_asleep() {
    for way in ["lock", "once", "park", "doze"] {
        assert_eq!(odd(way).0, Cause::Slice, "{way}");
    }
    assert_eq!(odd("return"), (Cause::Returned, String::new()));
}

#[test]
fn what_the_standard_library_keeps_is_each_threads_own() {
    for way in ["half-panic", "printing", "cells"] {
        assert_eq!(odd(way), (Cause::Returned, String::new()), "{way}");
    }
}
