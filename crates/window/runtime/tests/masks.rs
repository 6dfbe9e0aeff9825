//! Threads that have blocked signals, as daemons do: what domains do wrong there ends
//! the invocation, as anywhere.

mod support;

use mullion_runtime::{CallLimits, Cause, Claimed, Limits, prepare_thread};
use std::ptr;
use std::time::Duration;
use support::{Loaded, Program};

const PROGRAM: &str = "
    export nothing
        ret
    export read
        xorl %eax, %eax
        movq %gs:16(%eax), %rax
        ret
    export abort
        ud2
    export divide
        xorl %edx, %edx
        movl $1, %eax
        xorl %ecx, %ecx
        divl %ecx
        ret
    export breakpoint
        int3
        ret
    export recurse
        call recurse
        ret
    export forever
        jmp forever
";

const TIME: Duration = Duration::from_millis(20);

fn block_all() {
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        assert_eq!(
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, ptr::null_mut()),
            0
        );
    }
}

fn is_blocked(signal: libc::c_int) -> bool {
    // SAFETY: the set is written before it is read.
    unsafe {
        let mut now = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut now);
        libc::sigismember(&now, signal) == 1
    }
}

/// The cause of the fault that the call ends with, in a domain that is new.
fn cause(program: &Program, name: &str) -> Cause {
    cause_in(&program.load(), name)
}

fn cause_in(loaded: &Loaded, name: &str) -> Cause {
    let entry = loaded.domain.entry(Claimed(loaded.address(name))).unwrap();
    let limits = CallLimits {
        time: (name == "forever").then_some(TIME),
        ..CallLimits::default()
    };
    let called = loaded
        .domain
        .call_limited(entry, &Default::default(), &limits);
    match called.map_err(|error| *error) {
        Err(mullion_runtime::CallError::Fault(fault)) => fault.cause,
        other => panic!("{name}: {other:?}"),
    }
}

fn every_fault(program: &Program, each: impl Fn()) {
    let faults = [
        ("read", None),
        ("abort", Some(Cause::Trap)),
        ("divide", Some(Cause::Division)),
        ("breakpoint", Some(Cause::Breakpoint)),
        ("recurse", Some(Cause::ControlStackOverflow)),
        ("forever", Some(Cause::TimeLimit { granted: TIME })),
    ];
    for (name, expected) in faults {
        each();
        let cause = cause(program, name);
        match expected {
            Some(expected) => assert_eq!(cause, expected),
            None => assert!(matches!(cause, Cause::Access { .. }), "{cause:?}"),
        }
    }
}

#[test]
fn a_thread_that_blocks_all_signals_at_its_beginning() {
    let program = Program::new(PROGRAM);
    let thread = || {
        block_all();
        every_fault(&program, || {});
        assert!(is_blocked(libc::SIGTERM), "the host's own choice stays");
    };
    std::thread::scope(|scope| scope.spawn(thread).join().unwrap());
}

/// A domain that the thread has not called before finds the signals open, and so does
/// one that has been restarted.
#[test]
fn a_thread_that_blocks_all_signals_between_domains() {
    let program = Program::new(PROGRAM);
    program.load().call("nothing", &[]).unwrap();
    every_fault(&program, block_all);
    let mut loaded = program.load_with(Vec::new(), Limits::default());
    for _ in 0..3 {
        loaded.call("nothing", &[]).unwrap();
        loaded.domain.restart().unwrap();
        block_all();
        assert_eq!(cause_in(&loaded, "abort"), Cause::Trap);
        loaded.domain.restart().unwrap();
    }
}

/// Who blocks them between two calls of the same domain says so.
#[test]
fn a_thread_that_blocks_all_signals_between_calls_is_prepared_again() {
    let program = Program::new(PROGRAM);
    let loaded = program.load();
    loaded.call("nothing", &[]).unwrap();
    block_all();
    prepare_thread().unwrap();
    assert_eq!(cause_in(&loaded, "abort"), Cause::Trap);
}

/// And who switches the alternate stack off does.
#[test]
fn a_thread_that_loses_its_alternate_stack_is_prepared_again() {
    let switch_off = || {
        let none = libc::stack_t {
            ss_sp: ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: names no memory.
        assert_eq!(unsafe { libc::sigaltstack(&none, ptr::null_mut()) }, 0);
    };
    let program = Program::new(PROGRAM);
    let loaded = program.load();
    loaded.call("nothing", &[]).unwrap();
    switch_off();
    prepare_thread().unwrap();
    assert_eq!(cause_in(&loaded, "recurse"), Cause::ControlStackOverflow);
    switch_off();
    assert_eq!(cause(&program, "recurse"), Cause::ControlStackOverflow);
}
