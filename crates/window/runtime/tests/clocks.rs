//! The two clocks of limits of time: by the wall, and on a processor.

mod support;

use mullion_runtime::{
    CallArguments, CallEnd, CallError, CallLimits, Cause, Claimed, Error, Limits,
};
use std::time::{Duration, Instant};
use support::{LOOP, Program, host, limited};

/// One of the clocks, as a host sees it.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Wall,
    Processor,
}

const CLOCKS: [Clock; 2] = [Clock::Wall, Clock::Processor];

impl Clock {
    /// What this thread has used.
    fn now(self) -> Duration {
        match self {
            Self::Wall => WALL.with(Instant::elapsed),
            Self::Processor => processor_time(),
        }
    }

    fn of_all_calls(self, granted: Duration) -> Limits {
        let mut limits = Limits::default();
        match self {
            Self::Wall => limits.total_time = Some(granted),
            Self::Processor => limits.total_processor_time = Some(granted),
        }
        limits
    }

    /// Whether a call ended, or was not made, since the time of all calls was used up.
    fn is_used_up(self, error: &CallError, all: Duration) -> bool {
        match (self, error) {
            (_, CallError::Fault(fault)) => fault.cause == self.cause(all),
            (Self::Wall, CallError::NotMade(Error::TimeSpent { granted }))
            | (Self::Processor, CallError::NotMade(Error::ProcessorTimeSpent { granted })) => {
                *granted == all
            }
            _ => false,
        }
    }

    fn cause(self, granted: Duration) -> Cause {
        match self {
            Self::Wall => Cause::TotalTimeLimit { granted },
            Self::Processor => Cause::TotalProcessorTimeLimit { granted },
        }
    }
}

thread_local! {
    static WALL: Instant = Instant::now();
}

/// What this thread has used of processors.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn limited_on_processors(milliseconds: u64) -> Limits {
    Limits {
        processor_time: Some(Duration::from_millis(milliseconds)),
        ..Limits::default()
    }
}

#[test]
fn a_loop_is_stopped_when_its_processor_time_is_used_and_not_before() {
    let program = Program::new(LOOP);
    for budget in [1, 5, 20, 50] {
        let loaded = program.load_with(vec![host(|_| Ok(0))], limited_on_processors(budget));
        let (before, budget) = (processor_time(), Duration::from_millis(budget));
        let fault = loaded.fault("forever", &[]);
        let used = processor_time() - before;
        assert_eq!(fault.cause, Cause::ProcessorTimeLimit { granted: budget });
        assert!(used >= budget, "stopped after {used:?}, which is early");
        println!("budget {budget:?}: stopped {:?} late", used - budget);
    }
}

/// What a busy machine makes of a call: it waits, and works little.
#[test]
fn to_wait_uses_no_processor_time() {
    let program = Program::new(
        "
        import host
        export go
            call host
            movl $7, %eax
            ret
        ",
    );
    let wait = host(|_| {
        std::thread::sleep(Duration::from_millis(400));
        Ok(0)
    });
    let limits = Limits {
        total_processor_time: Some(Duration::from_millis(200)),
        ..limited_on_processors(100)
    };
    let loaded = program.load_with(vec![wait], limits);
    for _ in 0..2 {
        assert_eq!(loaded.call("go", &[]).unwrap().integer, 7);
    }
}

#[test]
fn the_time_for_all_calls_runs_out_and_a_restart_gives_it_anew() {
    let program = Program::new(LOOP);
    let granted = Duration::from_millis(60);
    for clock in CLOCKS {
        let mut loaded = program.load_with(vec![host(|_| Ok(0))], clock.of_all_calls(granted));
        for _ in 0..2 {
            let before = clock.now();
            let mut calls = 0;
            let error = loop {
                match loaded.call("count", &[3_000_000]) {
                    Ok(_) => calls += 1,
                    Err(error) => break error,
                }
            };
            // Perhaps the last call returned just when the time was up.
            assert!(clock.is_used_up(&error, granted), "{clock:?}: {error}");
            assert!(calls > 1, "it is the sum that exceeds the limit");
            assert!(clock.now() - before >= granted, "{clock:?}");
            loaded.domain.restart().unwrap();
        }
    }
}

#[test]
fn calls_at_the_same_time_share_the_time_for_all_calls() {
    const THREADS: u32 = 8;
    let program = Program::new(LOOP);
    let granted = Duration::from_secs(2);
    for clock in CLOCKS {
        let loaded = program.load_with(vec![host(|_| Ok(0))], clock.of_all_calls(granted));
        let one = || {
            let before = clock.now();
            let error = loaded.call("forever", &[]).unwrap_err();
            // One that comes late on a busy machine finds that the domain has ended.
            let late = matches!(error, CallError::NotMade(Error::Ended));
            assert!(late || clock.is_used_up(&error, granted), "{error}");
            clock.now() - before
        };
        let used: Duration = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        println!("{clock:?}: {THREADS} calls with {granted:?} in all used {used:?}");
        assert!(used >= granted, "none is stopped early");
        assert!(used < granted * THREADS, "they do not have it each");
    }
}

/// A domain cannot have more time by having it given to many nested calls.
#[test]
fn the_outer_processor_time_holds_for_all_that_is_nested() {
    let program = Program::new(LOOP);
    let granted = Duration::from_millis(30);
    for limits in [limited(100_000), limited_on_processors(100_000)] {
        let inner = program.load_with(vec![host(|_| Ok(0))], limits);
        let nested = host(move |_| match inner.call("count", &[100_000]) {
            Ok(_) => Ok(0),
            Err(CallError::Fault(fault)) => {
                assert_eq!(fault.cause, Cause::ProcessorTimeLimit { granted });
                Ok(0)
            }
            Err(CallError::NotMade(Error::Ended)) => Ok(0),
            Err(other) => Err(CallEnd::Refused(other.into())),
        });
        let outer = program.load_with(vec![nested], limited_on_processors(30));
        let fault = outer.fault("wait_forever", &[]);
        assert_eq!(fault.cause, Cause::ProcessorTimeLimit { granted });
    }
}

/// What a nested call has used up is its own end, never that of the calls around it.
#[test]
fn a_nested_call_that_uses_up_its_processor_time_ends_alone() {
    let program = Program::new(
        "
        import host
        export go
            movl %edi, %ebx
        1:  call host
            subl $1, %ebx
            jnz 1b
            movl $7, %eax
            ret
        ",
    );
    let spin = Program::new(LOOP);
    let short = Duration::from_millis(3);
    let limits = CallLimits {
        processor_time: Some(short),
        ..CallLimits::default()
    };
    let inner = std::sync::Mutex::new(spin.load_with(vec![host(|_| Ok(0))], Limits::default()));
    let nested = host(move |_| {
        let mut inner = inner.lock().unwrap();
        let entry = inner.domain.entry(Claimed(inner.address("forever")));
        let entry = entry.expect("a labelled function");
        let end = inner
            .domain
            .call_limited(entry, &CallArguments::default(), &limits);
        let end = end.map_err(|error| *error);
        let Err(CallError::Fault(fault)) = end else {
            panic!("{end:?}");
        };
        assert_eq!(fault.cause, Cause::ProcessorTimeLimit { granted: short });
        inner.domain.restart().unwrap();
        Ok(0)
    });
    for outer in [limited(100_000), limited_on_processors(100_000)] {
        let outer = program.load_with(vec![nested.clone()], outer);
        assert_eq!(outer.call("go", &[20]).unwrap().integer, 7);
    }
}
