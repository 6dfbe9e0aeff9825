//! The figures of domains, as a host reads them.

use crate::{IMAGE, domain, fault, imports};
use mullion::{Clock, DomainMemory, FaultKind, LimitKind, Limits};
use std::time::Duration;

#[test]
fn figures_stay_over_restarts_and_unloading() {
    let domain = domain();
    // Constructors have run.
    let first = domain.metrics().counts;
    assert!(first.calls > 0 && first.faults() == 0, "{first:?}");
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    down.call(0).unwrap();
    let after = domain.metrics().counts;
    assert_eq!(after.calls, first.calls + 1);
    fault(domain.function::<fn()>("fault").unwrap().call());
    down.call(0).unwrap_err();
    domain.restart().unwrap();
    let all = domain.metrics();
    assert_eq!(all.domain, domain.name());
    assert_eq!(all.image, domain.image().name());
    let counts = &all.counts;
    assert_eq!(
        (counts.faults(), counts.restarts, counts.not_made),
        (1, 1, 1)
    );
    assert_eq!(counts.faults_of(FaultKind::Access), 1);
    assert_eq!(counts.memory, domain.memory_in_use().unwrap());
    assert!(counts.memory_highest >= counts.memory);
    domain.unload().unwrap();
    let gone = domain.metrics().counts;
    assert_eq!((gone.calls, gone.memory), (counts.calls, 0));
}

#[test]
fn time_is_there_if_it_is_asked_for() {
    assert_eq!(domain().metrics().counts.time, None);
    let limits = Limits {
        measured: Some(Clock::Wall),
        time: Some(Duration::from_millis(20)),
        ..Limits::default()
    };
    let domain = IMAGE
        .domain()
        .imports(imports())
        .limits(limits)
        .load()
        .unwrap();
    let spin = domain.function::<fn()>("loop_forever").unwrap();
    fault(spin.call());
    let counts = domain.metrics().counts;
    assert!(
        counts.time.unwrap() >= Duration::from_millis(20),
        "{counts:?}"
    );
    assert_eq!(counts.limit_hits_of(LimitKind::Time), 1);
}

/// Each domain of the process is one series of each family, whatever names they have.
#[test]
fn all_domains_are_one_text() {
    let load = || {
        IMAGE
            .domain()
            .name("a \"pool\"")
            .imports(imports())
            .load()
            .unwrap()
    };
    let pool = [load(), load()];
    pool[0].alloc::<u8>(1).unwrap();
    let text = mullion::prometheus();
    for domain in &pool {
        let metrics = domain.metrics();
        let line = format!(
            "mullion_domain_calls_total{{domain=\"a \\\"pool\\\"\",image=\"{}\",number=\"{}\"}} {}\n",
            metrics.image, metrics.number, metrics.counts.calls
        );
        assert!(text.contains(&line), "{line}\n{text}");
    }
    let numbers: Vec<u64> = mullion::metrics().iter().map(|one| one.number).collect();
    assert!(
        numbers.is_sorted_by(|one, other| one < other),
        "{numbers:?}"
    );
    let gone = pool[1].metrics().number;
    drop(pool);
    assert!(mullion::metrics().iter().all(|one| one.number != gone));
}
