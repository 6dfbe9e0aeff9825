//! Handlers of the host's without SA_ONSTACK, in threads whose domains have nearly filled
//! their control stack: the host lives, the handler runs if there is room for its frame,
//! and the domain that left no room ends by a control stack overflow. In a process of its
//! own, as handlers belong to the whole process.

mod support;

use mullion_runtime::{
    CallArguments, CallEnd, CallError, Cause, GateCall, Limits, MAX_CONTROL_STACK, Returned,
    prepare_thread,
};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use support::{Loaded, Program, host};

const PROGRAM: &str = "
    import host
    # Nests %rdi times, then waits: %rsi rounds.
    export deep
        subq $1, %rdi
        jz 1f
        call deep
        ret
    1:  subq $1, %rsi
        jnz 1b
        ret
    # As deep, and calls the host in each round.
    export deep_at_gates
        subq $1, %rdi
        jz 1f
        call deep_at_gates
        ret
    1:  subq $16, %r15
        movq %rsi, (%r15)
        call host
        movq (%r15), %rsi
        addq $16, %r15
        testb $0, -8(%r15)
        subq $1, %rsi
        jnz 1b
        ret
    export recurse
        call recurse
        ret
    export answer
        movl $42, %eax
        ret
";

/// What the handler uses of the stack.
const USED: usize = 0xc000;
/// Return addresses that a control stack holds, less those of the call itself.
const DEPTH: u64 = MAX_CONTROL_STACK / 8 - 4;

static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    BEGUN.fetch_add(1, Ordering::Relaxed);
    let mut used = [0_u8; USED];
    for place in used.iter_mut().step_by(512) {
        // SAFETY: a place of the array.
        unsafe { ptr::from_mut(place).write_volatile(1) };
    }
    std::hint::black_box(&mut used);
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Installs the handler, without SA_ONSTACK; `blocks`: with every other signal blocked.
fn install(signal: libc::c_int, blocks: bool) {
    // SAFETY: a handler of the right signature; the structures are plain.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        if blocks {
            libc::sigfillset(&mut action.sa_mask);
        }
        assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
    }
}

/// Tests run one at a time, as they count the same handler's runs.
fn one() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    install(libc::SIGUSR1, false);
    install(libc::SIGUSR2, true);
    prepare_thread().unwrap();
    guard
}

fn load(program: &Program) -> Loaded {
    program.load_with(vec![host(|_| Ok(0))], Limits::default())
}

/// Sends this thread the signal, over and over, while `run` runs.
fn stormed<T>(signal: libc::c_int, run: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    // SAFETY: gettid cannot fail; the thread lives until the scope's end.
    let thread = unsafe { libc::gettid() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // SAFETY: as above; the signal has a handler.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let result = run();
        ended.store(true, Ordering::Relaxed);
        result
    })
}

#[track_caller]
fn is_overflow(result: &Result<Returned, CallError>) -> bool {
    match result {
        Ok(_) => false,
        Err(CallError::Fault(fault)) => {
            assert_eq!(fault.cause, Cause::ControlStackOverflow, "{fault:?}");
            true
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Bytes of control stack that the domain leaves, and whether the handler begins and
/// whether the domain ends.
const ROOM: [(u64, bool, bool); 7] = [
    (0, false, true),
    (0x400, false, true),
    (0x2c00, true, true),
    (0x4000, true, true),
    (0x8000, true, true),
    (0xb000, true, true),
    (0x2_0000, true, false),
];

#[test]
fn whatever_room_a_domain_leaves() {
    let _one = one();
    let program = Program::new(PROGRAM);
    // SAFETY: getauxval reads a table that the kernel made.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    let innocent = load(&program);
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        for (room, begins, ends) in ROOM {
            if begins && room < frame + 256 {
                println!("SKIPPED: a frame of {frame} bytes does not fit {room}");
                continue;
            }
            for name in ["deep", "deep_at_gates"] {
                let loaded = load(&program);
                let begun = BEGUN.load(Ordering::Relaxed);
                // It waits until a signal has come that ends it; else not for ever.
                let rounds = match name {
                    _ if ends => u64::MAX,
                    "deep" => 10_000_000,
                    _ => 200_000,
                };
                // A gate needs sixteen bytes of its own.
                let depth = DEPTH - 1 - room / 8 - 2;
                let call = || loop {
                    let result = loaded.call(name, &[depth, rounds]);
                    if result.is_err() || BEGUN.load(Ordering::Relaxed) > begun {
                        return result;
                    }
                };
                let result = stormed(signal, call);
                let case = format!("{name}, {room:#x}, signal {signal}: {result:?}");
                assert_eq!(is_overflow(&result), ends, "{case}");
                assert_eq!(loaded.domain.has_ended(), ends, "{case}");
                // While it nests, too, signals come.
                assert!(!begins || BEGUN.load(Ordering::Relaxed) > begun, "{case}");
                let answer = stormed(signal, || innocent.call("answer", &[])).unwrap();
                assert_eq!(answer.integer, 42);
            }
        }
    }
    let (begun, done) = (BEGUN.load(Ordering::Relaxed), DONE.load(Ordering::Relaxed));
    assert_eq!(begun, done, "every handler that began has come to its end");
}

#[test]
fn the_reserve_is_closed_again_and_another_domain_is_not_blamed() {
    let _one = one();
    let program = Program::new(PROGRAM);
    let inner = Arc::new(load(&program));
    let called = inner.clone();
    let call = host(move |_: &mut GateCall<'_>| {
        let depth = DEPTH - 0x4000 / 8;
        let result = stormed(libc::SIGUSR1, || called.call("deep", &[depth, u64::MAX]));
        assert!(is_overflow(&result));
        Ok(0)
    });
    let outer = program.load_with(vec![call], Limits::default());
    outer.call("deep_at_gates", &[8, 1]).unwrap();
    assert!(inner.domain.has_ended() && !outer.domain.has_ended());
    // As deep as it was at first, and no deeper.
    let loaded = load(&program);
    loaded.call("deep", &[DEPTH, 1]).unwrap();
    let fault = loaded.fault("deep", &[DEPTH + 8, 1]);
    assert_eq!(fault.cause, Cause::ControlStackOverflow);
}

#[test]
fn a_timer_and_a_thousand_full_control_stacks() {
    let _one = one();
    let program = Program::new(PROGRAM);
    install(libc::SIGPROF, false);
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: 1000,
    };
    let timer = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the structure is plain.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, ptr::null_mut()) };
    let innocent = load(&program);
    let mut loaded = load(&program);
    for _ in 0..1000 {
        assert!(is_overflow(&loaded.call("recurse", &[])));
        loaded.domain.restart().unwrap();
        assert_eq!(innocent.call("answer", &[]).unwrap().integer, 42);
    }
    // SAFETY: a timer of zeros, which is none, is plain data that the call reads.
    unsafe {
        let none: libc::itimerval = std::mem::zeroed();
        libc::setitimer(libc::ITIMER_PROF, &none, ptr::null_mut());
    }
    let (begun, done) = (BEGUN.load(Ordering::Relaxed), DONE.load(Ordering::Relaxed));
    println!("{begun} signals handled");
    assert!(begun > 0 && begun == done);
}

#[test]
fn nested_where_little_is_left() {
    let _one = one();
    let again = host(|caller: &mut GateCall<'_>| {
        let entry = caller.entry(caller.pointer(0));
        let Ok(entry) = entry else { return Ok(0) };
        match caller.call(entry, &CallArguments::default(), None) {
            Ok(returned) => Ok(returned.integer),
            Err(error) => Err(CallEnd::Refused(error)),
        }
    });
    let source = format!(
        "{PROGRAM}
        export nests
            subq $1, %rsi
            jz 1f
            call nests
            ret
        1:  movl $100000000, %esi
        2:  subq $32, %r15
            movq %rsi, (%r15)
            movq %rdi, 8(%r15)
            call host
            movq (%r15), %rsi
            movq 8(%r15), %rdi
            addq $32, %r15
            testb $0, -8(%r15)
            subl $1, %esi
            jnz 2b
            ret
        "
    );
    let program = Program::new(&source);
    for room in [0x1400, 0x2000, 0x6000] {
        let loaded = program.load_with(vec![again.clone()], Limits::default());
        let answer = loaded.address("answer");
        let depth = DEPTH - room / 8;
        let result = stormed(libc::SIGUSR1, || loaded.call("nests", &[answer, depth]));
        match result {
            Ok(_) => panic!("no signal came"),
            Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::ControlStackOverflow),
            Err(error) => assert!(error.to_string().contains("control stack"), "{error}"),
        }
    }
}
