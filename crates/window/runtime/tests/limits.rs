//! Time limits, and threads.

mod support;

use mullion_runtime::{
    CallArguments, CallEnd, CallError, CallLimits, Cause, Claimed, Error, Limits,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{LOOP, Loaded, Program, host, limited};

/// How long the call took beyond its budget, which it must have exceeded.
fn overrun(loaded: &support::Loaded, name: &str, budget: u64) -> Duration {
    let start = Instant::now();
    let fault = loaded.fault(name, &[]);
    let elapsed = start.elapsed();
    let budget = Duration::from_millis(budget);
    assert_eq!(fault.cause, Cause::TimeLimit { granted: budget });
    assert!(
        elapsed >= budget,
        "stopped after {elapsed:?}, which is early"
    );
    elapsed - budget
}

#[test]
fn an_endless_loop_is_stopped_soon_after_its_budget_and_never_before() {
    let program = Program::new(LOOP);
    for budget in [1, 5, 20, 50, 100] {
        let loaded = program.load_with(vec![host(|_| Ok(0))], limited(budget));
        let late = overrun(&loaded, "forever", budget);
        println!("budget {budget} ms: stopped {late:?} late");
        // A loaded machine may let the watchdog wait: this is no measurement.
        assert!(late < Duration::from_secs(5));
    }
}

#[test]
fn a_wait_in_a_host_function_is_interrupted() {
    let program = Program::new(LOOP);
    let wait = host(|_| {
        // SAFETY: no memory operands but the time.
        unsafe { libc::poll(std::ptr::null_mut(), 0, 10_000) };
        Ok(0)
    });
    let loaded = program.load_with(vec![wait], limited(30));
    let late = overrun(&loaded, "wait_forever", 30);
    println!("in a host function: stopped {late:?} late");
    assert!(late < Duration::from_secs(5));
}

#[test]
fn a_limit_that_is_kept_disturbs_nothing() {
    let program = Program::new(LOOP);
    let loaded = program.load_with(vec![host(|_| Ok(0))], limited(1000));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        assert_eq!(loaded.call("count", &[1000]).unwrap().integer, 1000);
    }
}

#[test]
fn an_outer_limit_holds_for_what_is_nested_in_it() {
    let program = Program::new(LOOP);
    let inner = program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let inner = host(move |_| match inner.call("forever", &[]) {
        Err(CallError::Fault(fault)) => {
            assert!(matches!(fault.cause, Cause::TimeLimit { .. }));
            Ok(0)
        }
        other => Err(CallEnd::Refused(format!("{other:?}").into())),
    });
    let outer = program.load_with(vec![inner], limited(20));
    overrun(&outer, "wait_forever", 20);
}

#[test]
fn threads_share_a_domain_each_on_its_own_stacks() {
    let program = Program::new(
        "
        import host
        export go
            subq $24, %r15
            movq %rdi, 8(%r15)
            movl $1000, (%r15)
        1:  movq 8(%r15), %rdi
            call host
            cmpq 8(%r15), %rax
            jne 2f
            subl $1, (%r15)
            jnz 1b
            movq 8(%r15), %rax
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        2:  ud2
        ",
    );
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let echo = host(move |caller| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
        Ok(caller.integers()[0])
    });
    let loaded = program.load_with(vec![echo], Limits::default());
    std::thread::scope(|scope| {
        for thread in 1..=8 {
            let loaded = &loaded;
            scope.spawn(move || assert_eq!(loaded.call("go", &[thread]).unwrap().integer, thread));
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 8000);
}

#[test]
fn threads_that_end_give_their_stacks_back() {
    let program = Program::new(LOOP);
    let limits = Limits {
        threads: 2,
        ..Limits::default()
    };
    let loaded = program.load_with(vec![host(|_| Ok(0))], limits);
    for _ in 0..20 {
        std::thread::scope(|scope| {
            // Without `join` the thread may still be ending when the scope does.
            let thread = scope.spawn(|| loaded.call("count", &[5]));
            thread.join().unwrap().unwrap();
        });
    }
    loaded.call("count", &[5]).unwrap();
}

#[test]
fn more_threads_than_stacks_is_an_error() {
    let program = Program::new(LOOP);
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let loaded = program.load_with(vec![host(|_| Ok(0))], limits);
    loaded.call("count", &[5]).unwrap();
    let error =
        std::thread::scope(|scope| scope.spawn(|| loaded.call("count", &[5])).join().unwrap());
    assert!(error.unwrap_err().to_string().contains("all 1 data stacks"));
}

#[test]
fn a_fault_on_one_thread_leaves_the_others_alone() {
    let program = Program::new(
        "
        export spin
            movl $0, %eax
        1:  addl $1, %eax
            cmpl $2000000, %eax
            jne 1b
            ret
        export fail
            ud2
        ",
    );
    let good = program.load();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(good.call("spin", &[]).unwrap().integer, 2_000_000);
                }
            });
        }
        scope.spawn(|| {
            let mut bad = program.load();
            for _ in 0..200 {
                assert_eq!(bad.fault("fail", &[]).cause, Cause::Trap);
                bad.domain.restart().unwrap();
            }
        });
    });
    let entry = good.domain.entry(Claimed(good.address("spin"))).unwrap();
    good.domain.call(entry, &CallArguments::default()).unwrap();
}

#[test]
fn the_stricter_of_the_two_time_limits_is_named() {
    let program = Program::new(LOOP);
    let (short, long) = (Duration::from_millis(5), Duration::from_secs(100));
    for (time, total_time, cause) in [
        (short, long, Cause::TimeLimit { granted: short }),
        (long, short, Cause::TotalTimeLimit { granted: short }),
    ] {
        let limits = Limits {
            time: Some(time),
            total_time: Some(total_time),
            ..Limits::default()
        };
        let loaded = program.load_with(vec![host(|_| Ok(0))], limits);
        assert_eq!(loaded.fault("forever", &[]).cause, cause);
    }
}

#[test]
fn a_nested_call_without_a_limit_of_its_own_names_the_outer_one() {
    let program = Program::new(LOOP);
    let inner = program.load_with(vec![host(|_| Ok(0))], Limits::default());
    let inner = host(move |_| {
        let granted = Duration::from_millis(20);
        assert_eq!(
            inner.fault("forever", &[]).cause,
            Cause::TimeLimit { granted }
        );
        Ok(0)
    });
    let outer = program.load_with(vec![inner], limited(20));
    overrun(&outer, "wait_forever", 20);
}

#[test]
fn gate_calls_are_counted_by_invocation() {
    let program = Program::new(
        "
        import host
        export go
            movl %edi, %ebx
        1:  call host
            subl $1, %ebx
            jnz 1b
            ret
        ",
    );
    let limits = Limits {
        gate_calls: Some(10),
        ..Limits::default()
    };
    let loaded = program.load_with(vec![host(|_| Ok(0))], limits);
    loaded.call("go", &[10]).unwrap();
    loaded.call("go", &[10]).unwrap();
    let fault = loaded.fault("go", &[11]);
    assert_eq!(fault.cause, Cause::GateLimit { granted: 10 });
    assert_eq!(
        fault.instruction,
        loaded.address("go") + 7,
        "the gate's call"
    );
}

const GATES: &str = "
    import host
    export go
        movl %edi, %ebx
        movl %edi, %r12d
        movq %rsi, %r13
    1:  movl %r12d, %edi
        movq %r13, %rsi
        call host
        subl $1, %ebx
        jnz 1b
        ret
    export spin
        jmp spin
";

fn limited_call(loaded: &Loaded, name: &str, number: u64, limits: &CallLimits) -> Cause {
    let entry = loaded.domain.entry(Claimed(loaded.address(name))).unwrap();
    let called = loaded
        .domain
        .call_limited(entry, &CallArguments::new(&[number]), limits);
    match called.map_err(|error| *error) {
        Err(CallError::Fault(fault)) => fault.cause,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn a_call_may_have_less_time_than_its_domain() {
    let program = Program::new(GATES);
    let granted = Duration::from_millis(10);
    let limits = CallLimits {
        time: Some(granted),
        ..CallLimits::default()
    };
    for of_domain in [None, Some(Duration::from_secs(100))] {
        let all = Limits {
            time: of_domain,
            ..Limits::default()
        };
        let mut loaded = program.load_with(vec![host(|_| Ok(0))], all);
        let cause = limited_call(&loaded, "spin", 0, &limits);
        assert_eq!(cause, Cause::TimeLimit { granted });
        loaded.domain.restart().unwrap();
        loaded.call("go", &[5]).unwrap();
    }
    // The stricter holds.
    let loaded = program.load_with(vec![host(|_| Ok(0))], limited(5));
    let granted = Duration::from_millis(5);
    assert_eq!(
        limited_call(&loaded, "spin", 0, &limits),
        Cause::TimeLimit { granted }
    );
}

#[test]
fn a_call_may_have_fewer_gate_calls_with_what_it_nests() {
    let program = Program::new(GATES);
    // Each gate call of the outer invocation makes 3 in a nested one.
    let nested = host(|caller| {
        if caller.called_by().is_none() && caller.integers()[0] != 3 {
            let base = caller.memory().base();
            let entry = caller.entry(Claimed(base + caller.integers()[1])).unwrap();
            let called = caller.call(entry, &CallArguments::new(&[3]), None);
            called.map_err(|error| mullion_runtime::CallEnd::Refused(error))?;
        }
        Ok(0)
    });
    let mut loaded = program.load_with(vec![nested], Limits::default());
    let go = loaded.address("go");
    let offset = go - loaded.domain.memory().base();
    let call = |loaded: &Loaded, gate_calls: u64| {
        let entry = loaded.domain.entry(Claimed(go)).unwrap();
        let limits = CallLimits {
            gate_calls: Some(gate_calls),
            ..CallLimits::default()
        };
        let arguments = CallArguments::new(&[2, offset]);
        loaded.domain.call_limited(entry, &arguments, &limits)
    };
    call(&loaded, 8).unwrap();
    let error = call(&loaded, 7).unwrap_err();
    assert!(
        error.to_string().contains("limit of 7 gate calls"),
        "{error}"
    );
    loaded.domain.restart().unwrap();
    // Afterwards there is no limit.
    loaded.call("go", &[100, offset]).unwrap();
}

#[test]
fn a_call_may_nest_less_than_its_domain() {
    let program = Program::new(GATES);
    let deeper = host(|caller| {
        let base = caller.memory().base();
        let entry = caller.entry(Claimed(base + caller.integers()[1])).unwrap();
        let arguments = CallArguments::new(&[1, caller.integers()[1]]);
        match caller.call(entry, &arguments, None).map_err(|error| *error) {
            Ok(returned) => Ok(returned.integer + 1),
            Err(CallError::NotMade(Error::Depth { .. })) => Ok(0),
            Err(other) => panic!("{other}"),
        }
    });
    let limits = Limits {
        depth: 20,
        ..Limits::default()
    };
    let loaded = program.load_with(vec![deeper], limits);
    let go = loaded.address("go");
    let entry = loaded.domain.entry(Claimed(go)).unwrap();
    let arguments = CallArguments::new(&[1, go - loaded.domain.memory().base()]);
    for (depth, nested) in [(Some(1), 0), (Some(7), 6), (Some(50), 19), (None, 19)] {
        let limits = CallLimits {
            depth,
            ..CallLimits::default()
        };
        let called = loaded.domain.call_limited(entry, &arguments, &limits);
        assert_eq!(called.unwrap().integer, nested, "{depth:?}");
    }
}

#[test]
fn output_is_counted_until_a_restart() {
    let program = Program::new(GATES);
    let limits = Limits {
        output: Some(100),
        ..Limits::default()
    };
    let charge = host(|caller| caller.charge_output(30).map(|()| 0));
    let mut loaded = program.load_with(vec![charge], limits);
    for _ in 0..2 {
        loaded.call("go", &[2]).unwrap();
        let fault = loaded.fault("go", &[2]);
        assert_eq!(fault.cause, Cause::OutputLimit { granted: 100 });
        loaded.domain.restart().unwrap();
    }
    let unlimited = host(|caller| caller.charge_output(u64::MAX).map(|()| 0));
    program
        .load_with(vec![unlimited], Limits::default())
        .call("go", &[3])
        .unwrap();
}

#[test]
fn every_thread_starts_in_the_domain_before_its_first_call() {
    let program = Program::new(
        "
        .bss
        starts: .skip 8
        export thread_start
            lock addq $1, starts(%rip)
            leaq (%r15), %rax
            orq $0x7fffff, %rax
            movl %eax, %r11d
            addl $100, %edi
            movq %rdi, -7(%r14,%r11)
            ret
        export pointer
            movl %r15d, %r11d
            orl $0x7fffff, %r11d
            movq -7(%r14,%r11), %rax
            movq starts(%rip), %rdx
            ret
        ",
    );
    let mut loaded = program.load();
    loaded.call("pointer", &[]).unwrap();
    let entry = |loaded: &support::Loaded| {
        let address = Claimed(loaded.address("thread_start"));
        loaded.domain.entry(address).unwrap()
    };
    loaded.domain.set_thread_start(entry(&loaded)).unwrap();
    for starts in 1..=3 {
        let returned = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                loaded.call("pointer", &[]).unwrap();
                loaded.call("pointer", &[]).unwrap()
            });
            thread.join().unwrap()
        });
        assert_eq!((returned.integer, returned.high), (101, starts));
    }
    loaded.domain.restart().unwrap();
    assert_eq!(loaded.call("pointer", &[]).unwrap().integer, 0, "void");
    loaded.domain.set_thread_start(entry(&loaded)).unwrap();
}

/// The inner call is stopped with the outer one's time, and says whose it was.
#[test]
fn a_nested_call_of_another_domain_ends_with_the_outer_account() {
    let program = Program::new(LOOP);
    let granted = Duration::from_millis(40);
    let long = limited(100_000);
    let inner = Arc::new(program.load_with(vec![host(|_| Ok(0))], long));
    let called = inner.clone();
    let inside = host(move |_| {
        let fault = called.fault("forever", &[]);
        assert_eq!(fault.cause, Cause::TotalTimeLimit { granted });
        Ok(0)
    });
    let limits = Limits {
        total_time: Some(granted),
        ..Limits::default()
    };
    let outer = program.load_with(vec![inside], limits);
    let fault = outer.fault("wait_forever", &[]);
    assert_eq!(fault.cause, Cause::TotalTimeLimit { granted });
}

#[test]
fn the_control_stack_is_as_large_as_the_limit_says() {
    let program = Program::new(
        "
        export deepen
            subq $1, %rdi
            jz 1f
            call deepen
        1:  ret
        ",
    );
    for size in [0x2000, 0x1_0000, 0x10_0000, u64::MAX] {
        let limits = Limits {
            control_stack: size,
            ..Limits::default()
        };
        let loaded = program.load_with(Vec::new(), limits);
        let size = size.min(mullion_runtime::MAX_CONTROL_STACK);
        // FRAME, DOMAIN, HOST and the return gate are part of it.
        let fits = size / 8 - 4;
        loaded.call("deepen", &[fits]).unwrap();
        let fault = loaded.fault("deepen", &[2 * fits]);
        assert_eq!(fault.cause, Cause::ControlStackOverflow);
    }
}

#[test]
fn nested_calls_keep_to_the_smaller_control_stack() {
    let program = Program::new(
        "
        import host
        export outward
            call host
            ret
        export deepen
            subq $1, %rdi
            jz 1f
            call deepen
        1:  ret
        ",
    );
    let small = Limits {
        control_stack: 0x4000,
        ..Limits::default()
    };
    let large = Arc::new(program.load_with(vec![host(|_| Ok(0))], Limits::default()));
    let called = large.clone();
    let nested = host(move |_| {
        called.call("deepen", &[0x600]).unwrap();
        let fault = called.fault("deepen", &[0x900]);
        assert_eq!(fault.cause, Cause::ControlStackOverflow);
        Ok(7)
    });
    let outer = program.load_with(vec![nested], small);
    assert_eq!(outer.call("outward", &[]).unwrap().integer, 7);
}

#[test]
fn an_image_may_say_what_threads_begin_with_if_it_is_labelled() {
    let source = "
        .bss
        starts: .skip 8
        export start
            lock addq $1, starts(%rip)
        inside:
            ret
        export count
            movq starts(%rip), %rax
            ret
    ";
    let offset = {
        let loaded = Program::new(source).load();
        loaded.address("start") - loaded.domain.memory().base()
    };
    for (offset, expected) in [(offset, 1), (offset + 1, 0), (0, 0), (u64::MAX, 0)] {
        let mut program = Program::new(source);
        let image = Arc::into_inner(program.image).unwrap();
        program.image = Arc::new(image.with_thread_start(offset));
        let mut loaded = program.load();
        for _ in 0..2 {
            assert_eq!(loaded.call("count", &[]).unwrap().integer, expected);
            assert_eq!(loaded.call("count", &[]).unwrap().integer, expected);
            loaded.domain.restart().unwrap();
        }
    }
}
