//! What a domain does wrong, as its host sees it; and what comes after.

use crate::{IMAGE, domain, fault, imports};
use mullion::{Attempt, Cause, DomainMemory, Error, Limits};
use std::time::Duration;

#[test]
fn a_fault_names_domain_cause_address_and_place() {
    let domain = IMAGE
        .domain()
        .name("clumsy")
        .imports(imports())
        .load()
        .unwrap();
    let fault = fault(domain.function::<fn()>("fault").unwrap().call());
    assert_eq!(fault.domain(), "clumsy");
    let write = Cause::Access {
        attempt: Attempt::Write,
        permitted: None,
    };
    assert_eq!(*fault.cause(), write);
    assert_eq!(
        fault.address().map(|address| address & 0xffff_ffff),
        Some(0x18)
    );
    assert_eq!(fault.symbol().as_deref(), Some("scribble"));
    let location = fault.location().unwrap();
    assert_eq!(location.function.as_deref(), Some("scribble"));
    assert!(location.file.unwrap().ends_with("everything.c"));
    let source = include_str!("../extensions/everything.c");
    let line = source
        .lines()
        .position(|line| line.contains("void scribble(int *place)"));
    assert_eq!(location.line, line.map(|line| line as u32 + 1));
    let frames = fault.backtrace();
    assert_eq!(frames[1].locations[0].function.as_deref(), Some("fault"));
    let text = fault.to_string();
    assert!(
        text.starts_with("domain clumsy: write to memory that is not mapped at offset 0x18"),
        "{text}"
    );
    assert!(
        text.contains("in scribble (") && text.contains("everything.c:"),
        "{text}"
    );
}

#[test]
fn the_domain_refuses_calls_until_it_is_restarted_fresh() {
    let domain = domain();
    let count = domain.function::<fn() -> i32>("count").unwrap();
    assert_eq!(count.call().unwrap(), 42);
    assert_eq!(count.call().unwrap(), 43);
    fault(domain.function::<fn()>("fault").unwrap().call());
    assert!(domain.has_ended().unwrap());
    for _ in 0..2 {
        assert!(matches!(count.call(), Err(Error::Ended { .. })));
    }
    domain.restart().unwrap();
    assert!(!domain.has_ended().unwrap());
    assert_eq!(
        count.call().unwrap(),
        42,
        "the state is that of the beginning"
    );
}

#[test]
fn memory_can_be_looked_at_after_a_fault() {
    let domain = domain();
    let left = domain.copy_in(b"what was left").unwrap();
    fault(domain.function::<fn()>("fault").unwrap().call());
    assert_eq!(left.to_vec(&domain).unwrap(), b"what was left");
    domain.restart().unwrap();
    assert!(matches!(left.to_vec(&domain), Err(Error::Stale { .. })));
    drop(left);
    assert_eq!(
        domain.alloc::<u8>(13).unwrap().to_vec(&domain).unwrap(),
        [0; 13]
    );
}

#[test]
fn each_way_to_end_is_told_from_the_others() {
    let domain = domain();
    let divide = domain.function::<fn(i32, i32) -> i32>("divide").unwrap();
    assert_eq!(*fault(divide.call(1, 0)).cause(), Cause::Division);
    domain.restart().unwrap();
    let abort = fault(domain.function::<fn()>("give_up").unwrap().call());
    assert_eq!(*abort.cause(), Cause::Raised { signal: 6 });
    domain.restart().unwrap();
    let left = domain.function::<fn(i32)>("leave").unwrap().call(3);
    assert!(
        matches!(left, Err(Error::Exit { status: 3, .. })),
        "{left:?}"
    );
    assert!(matches!(divide.call(4, 2), Err(Error::Ended { .. })));
    domain.restart().unwrap();
    assert_eq!(divide.call(4, 2).unwrap(), 2);
}

#[test]
fn a_loop_ends_at_its_time_limit() {
    let granted = Duration::from_millis(50);
    let limits = Limits {
        time: Some(granted),
        ..Limits::default()
    };
    let domain = IMAGE
        .domain()
        .imports(imports())
        .limits(limits)
        .load()
        .unwrap();
    let fault = fault(domain.function::<fn()>("loop_forever").unwrap().call());
    assert_eq!(*fault.cause(), Cause::TimeLimit { granted });
    domain.restart().unwrap();
    assert_eq!(
        domain
            .function::<fn() -> i32>("count")
            .unwrap()
            .call()
            .unwrap(),
        42
    );
}

#[test]
fn a_fault_of_one_domain_is_none_of_another_ones() {
    let (one, other) = (domain(), domain());
    let count = other.function::<fn() -> i32>("count").unwrap();
    for expected in 42..50 {
        fault(one.function::<fn()>("fault").unwrap().call());
        assert_eq!(count.call().unwrap(), expected);
        one.restart().unwrap();
    }
}

/// `abort` and `raise` name the thread, by the number that the domain's C library gave it.
#[test]
fn a_thread_that_did_not_load_the_domain_aborts_as_the_one_that_did() {
    let domain = crate::domain();
    for _ in 0..3 {
        let abort = || fault(domain.function::<fn()>("give_up").unwrap().call());
        let abort = std::thread::scope(|scope| scope.spawn(abort).join().unwrap());
        assert_eq!(*abort.cause(), Cause::Raised { signal: 6 });
        domain
            .restart_when_idle(std::time::Duration::from_secs(60))
            .unwrap();
    }
}
