//! Several threads at the same domains: no result that cannot be, and sums that agree at rest.

use crate::IMAGE;
use crate::step::Random;
use mullion::{Caller, Canceller, Domain, Error, Imports, Limits};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DOMAINS: usize = 3;
const THREADS: u64 = 4;

/// What a thread has counted.
#[derive(Default)]
struct Counts {
    calls: u64,
    /// Gate calls of calls that returned, and of those that may have been made.
    gates: u64,
    tried: u64,
}

/// Calls, and checks, until so many calls are enough; how many calls that were.
pub(crate) fn run(seed: u64, is_enough: impl Fn(u64) -> bool + Sync) -> u64 {
    let (done, gates) = (AtomicU64::new(0), std::sync::Arc::new(AtomicU64::new(0)));
    let domains: Vec<Domain> = (0..DOMAINS).map(|_| load(&gates)).collect();
    // In a ring: each calls the next.
    for (on, domain) in domains.iter().enumerate() {
        let next = domains[(on + 1) % DOMAINS].function::<fn(u64) -> u64>("linked");
        let linked = domain.link(None, "other", next.expect("an export").or(0));
        linked.expect("it is linked once");
    }
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (domains, done, is_enough) = (&domains, &done, &is_enough);
                scope.spawn(move || lives(seed ^ (thread << 32), domains, done, is_enough))
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        joined.fold(Counts::default(), |all, one| Counts {
            calls: all.calls + one.calls,
            gates: all.gates + one.gates,
            tried: all.tried + one.tried,
        })
    });
    let counted = gates.load(Ordering::Relaxed);
    assert!(
        all.gates <= counted && counted <= all.gates + all.tried,
        "{counted} gate calls"
    );
    assert!(all.calls > 0);
    for domain in &domains {
        // Calls that were given up may be in it still.
        let restarted = domain.restart_when_idle(Duration::from_secs(60));
        restarted.expect("nobody stays in it");
        assert_eq!(
            domain
                .function::<fn(u64) -> u64>("bump")
                .unwrap()
                .call(0)
                .unwrap(),
            1005
        );
    }
    all.calls
}

fn load(gates: &std::sync::Arc<AtomicU64>) -> Domain {
    let gates = gates.clone();
    let gate = move |_: &Caller<'_>, _: u64, value: u64| {
        gates.fetch_add(1, Ordering::Relaxed);
        value
    };
    let imports = Imports::new()
        .function("host_gate", gate)
        .link_later("other");
    let limits = Limits {
        start_wait: Duration::from_millis(20),
        ..Limits::default()
    };
    IMAGE
        .domain()
        .imports(imports)
        .limits(limits)
        .load()
        .expect("a domain")
}

/// Threads that come and go, one after the other, until all calls that are `done` are enough.
fn lives(
    seed: u64,
    domains: &[Domain],
    done: &AtomicU64,
    is_enough: &(impl Fn(u64) -> bool + Sync),
) -> Counts {
    let mut counts = Counts::default();
    let mut random = Random::new(seed);
    while !is_enough(done.load(Ordering::Relaxed)) {
        let own = random.next();
        let one = std::thread::scope(|scope| {
            let life = || life(&mut Random::new(own), domains);
            scope.spawn(life).join().expect("no panic")
        });
        done.fetch_add(one.calls, Ordering::Relaxed);
        counts.calls += one.calls;
        counts.gates += one.gates;
        counts.tried += one.tried;
    }
    counts
}

fn life(random: &mut Random, domains: &[Domain]) -> Counts {
    let mut counts = Counts::default();
    let mut turns: HashMap<usize, u64> = HashMap::new();
    for _ in 0..random.below(500) {
        let on = random.below(DOMAINS as u64) as usize;
        let (domain, value) = (&domains[on], random.below(1000));
        counts.calls += 1;
        match random.below(100) {
            0..40 => {
                let called = domain
                    .function::<fn(u64) -> u64>("pure")
                    .unwrap()
                    .call(value);
                assert!(may_be(&called, Some(value * 7 + 3)), "{called:?}");
            }
            40..60 => {
                let called = domain.function::<fn(u64) -> u64>("gates").unwrap().call(3);
                assert!(may_be(&called, Some(3)), "{called:?}");
                match called {
                    Ok(_) => counts.gates += 3,
                    Err(_) => counts.tried += 3,
                }
            }
            60..75 => {
                // Counts on, or begins anew after a restart.
                let called = domain.function::<fn() -> u64>("turn").unwrap().call();
                assert!(may_be(&called, None), "{called:?}");
                if let Ok(found) = called {
                    let before = turns.insert(on, found).unwrap_or(0);
                    assert!(found == before + 1 || found == 1, "{found} after {before}");
                }
            }
            75..85 => {
                let called = domain
                    .function::<fn(u64) -> u64>("over")
                    .unwrap()
                    .call(value);
                assert!(may_be(&called, None), "{called:?}");
            }
            85..90 => {
                let called = domain
                    .function::<fn(u64) -> u64>("wrong")
                    .unwrap()
                    .call(value % 5);
                let is_it = matches!(called, Err(Error::Fault(_)));
                assert!(
                    is_it || called.is_err() && may_be(&called, None),
                    "{called:?}"
                );
            }
            90..92 => cancel(domain, value),
            _ => {
                let restarted = domain.restart_when_idle(Duration::from_millis(value % 20));
                let is_it = matches!(restarted, Ok(()) | Err(Error::InUse { .. }));
                assert!(
                    is_it || matches!(restarted, Err(Error::NotOpen { .. })),
                    "{restarted:?}"
                );
            }
        }
    }
    counts
}

/// A call that would never end, and one beside it that must.
fn cancel(domain: &Domain, value: u64) {
    let forever = domain.function::<fn()>("forever").unwrap();
    let call = match value % 2 {
        0 => forever.start(),
        _ => forever.cancellable(&Canceller::new()).start(),
    };
    let call = call.expect("a thread");
    let _whether = call.wait_for(Duration::from_micros(value));
    if value.is_multiple_of(3) {
        return drop(call);
    }
    call.cancel();
    if let Some(called) = call.wait_for(Duration::from_secs(60)) {
        let error = called.expect_err("it never returns");
        let open = matches!(error, Error::Ended { .. } | Error::NotOpen { .. });
        assert!(open || error.is_cancelled(), "{error}");
    }
}

/// A value, or that the domain takes no calls now: nothing else becomes of a call that does nothing wrong.
fn may_be(called: &Result<u64, Error>, value: Option<u64>) -> bool {
    match called {
        Ok(found) => value.is_none_or(|value| value == *found),
        Err(Error::Ended { .. } | Error::NotOpen { .. }) => true,
        Err(_) => false,
    }
}
