//! What is counted of a domain.

mod support;

use mullion_runtime::{
    CallArguments, CallEnd, CallLimits, Cause, Claimed, Clock, Counts, FaultKind, LimitKind,
    Limits, LinkOptions, PAGE,
};
use std::time::Duration;
use support::{Loaded, Program, host};

const PROGRAM: &str = "
    import note
    export nothing
        ret
    export twice
        call note
        call note
        ret
    export trap
        ud2
    export forever
        jmp forever
    export recurse
        call recurse
        ret
    export count
        movl $0, %eax
    1:  addl $1, %eax
        cmpl %edi, %eax
        jne 1b
        ret
";

fn loaded(limits: Limits) -> Loaded {
    Program::new(PROGRAM).load_with(vec![host(|_| Ok(0))], limits)
}

fn counts(loaded: &Loaded) -> Counts {
    loaded.domain.meter().read()
}

#[test]
fn calls_are_counted_by_every_thread() {
    let program = Program::new(PROGRAM);
    let loaded = program.load_with(vec![host(|_| Ok(0))], Limits::default());
    assert_eq!(counts(&loaded).calls, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    loaded.call("nothing", &[]).unwrap();
                    loaded.call("twice", &[]).unwrap();
                }
            });
        }
    });
    // Those of threads that have ended stay, and threads that come later add to them.
    loaded.call("twice", &[]).unwrap();
    let counts = counts(&loaded);
    assert_eq!(counts.calls, 8001);
    assert_eq!(counts.host_calls, 8002);
    assert_eq!(counts.time, None, "not asked for");
    assert_eq!(
        (counts.faults(), counts.limit_hits(), counts.not_made),
        (0, 0, 0)
    );
}

#[test]
fn each_domain_has_its_own_whoever_calls_whom() {
    let program = Program::new(PROGRAM);
    let load = || program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let (outer, inner) = (load(), load());
    let entry = inner
        .domain
        .entry(Claimed(inner.address("nothing")))
        .unwrap();
    let options = LinkOptions::default();
    outer.domain.link(0, &inner.domain, entry, options).unwrap();
    for _ in 0..10 {
        outer.call("twice", &[]).unwrap();
        inner.call("nothing", &[]).unwrap();
    }
    let (outer, inner) = (counts(&outer), counts(&inner));
    assert_eq!((outer.calls, outer.host_calls), (10, 20));
    assert_eq!((inner.calls, inner.host_calls), (30, 0));
}

#[test]
fn what_calls_back_is_a_call_of_the_domain() {
    let back = host(|caller| {
        let entry = caller.entry(caller.pointer(0)).unwrap();
        let returned = caller.call(entry, &CallArguments::default(), None);
        Ok(returned.map_err(|error| CallEnd::Refused(error))?.integer)
    });
    let program = Program::new(
        "
    import note
    export nothing
        ret
    export back
        call note
        ret
    ",
    );
    let loaded = program.load_with(vec![back], Limits::default());
    for _ in 0..3 {
        loaded.call("back", &[loaded.address("nothing")]).unwrap();
    }
    let counts = counts(&loaded);
    assert_eq!((counts.calls, counts.host_calls), (6, 3));
}

#[test]
fn faults_have_kinds_and_restarts_keep_the_figures() {
    let mut loaded = loaded(Limits {
        gate_calls: Some(1),
        ..Limits::default()
    });
    let restart = |loaded: &mut Loaded| {
        loaded.domain.restart().unwrap();
        loaded.domain.open();
    };
    assert_eq!(loaded.fault("trap", &[]).cause.kind(), FaultKind::Trap);
    assert!(loaded.call("nothing", &[]).is_err(), "it has ended");
    restart(&mut loaded);
    assert_eq!(
        loaded.fault("twice", &[]).cause,
        Cause::GateLimit { granted: 1 }
    );
    restart(&mut loaded);
    assert_eq!(
        loaded.fault("recurse", &[]).cause,
        Cause::ControlStackOverflow
    );
    restart(&mut loaded);
    loaded.call("nothing", &[]).unwrap();
    let counts = counts(&loaded);
    assert_eq!(counts.restarts, 3);
    assert_eq!(counts.faults(), 3);
    for kind in [
        FaultKind::Trap,
        FaultKind::GateLimit,
        FaultKind::ControlStackOverflow,
    ] {
        assert_eq!(counts.faults_of(kind), 1, "{kind:?}");
    }
    assert_eq!(counts.limit_hits_of(LimitKind::GateCalls), 1);
    assert_eq!(counts.limit_hits_of(LimitKind::ControlStack), 1);
    assert_eq!(counts.limit_hits(), 2);
    // Not that which found it ended: nothing of it ran.
    assert_eq!((counts.calls, counts.not_made), (4, 1));
}

#[test]
fn ends_by_the_host_are_no_faults() {
    let program = Program::new(PROGRAM);
    let ended = |end: fn() -> CallEnd| {
        let loaded = program.load_with(vec![host(move |_| Err(end()))], Limits::default());
        assert!(loaded.call("twice", &[]).is_err());
        counts(&loaded)
    };
    let (exit, refused) = (
        ended(|| CallEnd::Exit(3)),
        ended(|| CallEnd::Refused("no".into())),
    );
    assert_eq!((exit.exits, exit.refused, exit.faults()), (1, 0, 0));
    assert_eq!(
        (refused.exits, refused.refused, refused.faults()),
        (0, 1, 0)
    );
    let panics = host(|_| panic!("on purpose"));
    let loaded = program.load_with(vec![panics], Limits::default());
    let call = std::panic::AssertUnwindSafe(|| loaded.call("twice", &[]));
    assert!(std::panic::catch_unwind(call).is_err());
    assert_eq!(counts(&loaded).refused, 1);
}

#[test]
fn memory_has_a_highest_value_and_refusals_count() {
    let mut loaded = loaded(Limits {
        memory: 64 * PAGE,
        ..Limits::default()
    });
    let first = counts(&loaded).memory;
    assert_eq!(first, loaded.domain.memory().in_use());
    let memory = loaded.domain.memory();
    let address = memory
        .map(None, 8 * PAGE, mullion_runtime::Access::ReadWrite)
        .unwrap();
    assert_eq!(counts(&loaded).memory, first + 8 * PAGE);
    memory.unmap(Claimed(address), 8 * PAGE).unwrap();
    assert!(
        memory
            .map(None, 64 * PAGE, mullion_runtime::Access::ReadWrite)
            .is_err()
    );
    let now = counts(&loaded);
    assert_eq!((now.memory, now.memory_highest), (first, first + 8 * PAGE));
    assert_eq!(now.memory_limit, 64 * PAGE);
    assert_eq!(now.limit_hits_of(LimitKind::Memory), 1);
    loaded
        .domain
        .memory()
        .map(None, PAGE, mullion_runtime::Access::ReadWrite)
        .unwrap();
    loaded.domain.restart().unwrap();
    assert_eq!(counts(&loaded).memory, first);
    let meter = loaded.domain.meter().clone();
    drop(loaded);
    let gone = meter.read();
    assert_eq!((gone.memory, gone.memory_highest), (0, first + 8 * PAGE));
}

#[test]
fn calls_for_which_there_is_no_stack_or_no_depth_are_not_made() {
    let loaded = loaded(Limits {
        threads: 1,
        ..Limits::default()
    });
    loaded.call("nothing", &[]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(loaded.call("nothing", &[]).is_err()));
    });
    let counts = counts(&loaded);
    assert_eq!((counts.calls, counts.not_made), (1, 1));
    assert_eq!(counts.limit_hits_of(LimitKind::Threads), 1);
}

/// By either clock, and with other limits beside it; what is nested counts once.
#[test]
fn time_is_measured_if_asked_for() {
    for clock in [Clock::Wall, Clock::Processor] {
        let loaded = loaded(Limits {
            measured: Some(clock),
            ..Limits::default()
        });
        let limits = CallLimits {
            time: Some(Duration::from_secs(100)),
            ..CallLimits::default()
        };
        let entry = loaded
            .domain
            .entry(Claimed(loaded.address("count")))
            .unwrap();
        let arguments = CallArguments::new(&[50_000_000]);
        loaded.domain.call(entry, &arguments).unwrap();
        let once = counts(&loaded).time.unwrap();
        // Fifty million turns of three instructions, of which no processor makes 16 in a nanosecond.
        assert!(once > Duration::from_millis(5), "{clock:?}: {once:?}");
        loaded
            .domain
            .call_limited(entry, &arguments, &limits)
            .unwrap();
        let both = counts(&loaded).time.unwrap();
        assert!(
            both > once + Duration::from_millis(5),
            "{clock:?}: {both:?}"
        );
    }
}

#[test]
fn figures_may_be_read_while_calls_run() {
    let loaded = loaded(Limits::default());
    let meter = loaded.domain.meter().clone();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            for _ in 0..20_000 {
                loaded.call("nothing", &[]).unwrap();
            }
        });
        let mut last = 0;
        while !caller.is_finished() {
            let now = meter.read().calls;
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    });
    assert_eq!(meter.read().calls, 20_000);
}
