//! Each kind of fault, in each situation, in a host full of signals: other threads run in
//! the same and in other domains, a timer and a thread send signals that have handlers of
//! the host's, and the host has faults of its own, which its own handler mends. In a
//! process of its own, as handlers belong to the whole process.
#![expect(clippy::disallowed_methods, reason = "the test maps memory of its own")]

mod support;

use mullion_runtime::{
    Access, Attempt, CallArguments, CallError, CallLimits, Cause, Claimed, GateCall, Limits,
    RawFault,
};
use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::{Loaded, Program, host};

/// Does wrong by name; `go` has the host call the function at the address that it is
/// given, and `count` does nothing wrong.
const PROGRAM: &str = "
    import call_back
    .data
variable: .quad 2
    .text
    export go
        subq $24, %r15
        call call_back
        addq $24, %r15
        testb $0, -8(%r15)
        ret
    export count
        xorl %eax, %eax
    1:  addl $1, %eax
        cmpl %edi, %eax
        jne 1b
        ret
    export read
        xorl %eax, %eax
        movq %gs:16(%eax), %rax
        ret
    export write
        leaq write(%rip), %rax
        movl %eax, %r11d
        movq %rax, (%r14,%r11)
        ret
    export execute
        leaq variable(%rip), %rax
        jmp *%rax
    export abort
        ud2
    export undefined
        .byte 0x0f, 0xff, 0xc0
        ret
    export failed_label
        ud1 %eax, %eax
    export trapped_access
        ud1 %ecx, %eax
    export divide
        xorl %edx, %edx
        movl $1, %eax
        xorl %ecx, %ecx
        divl %ecx
        ret
    export breakpoint
        int3
        ret
    export floating_point
        subq $16, %r15
        movl $0x1d80, (%r15)
        ldmxcsr (%r15)
        xorps %xmm0, %xmm0
        movl $1, %eax
        cvtsi2sd %eax, %xmm1
        divsd %xmm0, %xmm1
        addq $16, %r15
        ret
    export recurse
        call recurse
        ret
    export deep_data
        subq $0x1000, %r15
        movq $0, (%r15)
        jmp deep_data
    export unknown_gate
        call 0x10000 + 32 * 100
        ret
    export forever
        jmp forever
";

const TIME: Duration = Duration::from_millis(20);
const STACK: u64 = 0x10000;

/// Every kind of fault that a domain's own code makes, by the function that makes it.
fn kinds() -> BTreeMap<&'static str, Cause> {
    let access = |attempt, permitted| Cause::Access { attempt, permitted };
    BTreeMap::from([
        ("read", access(Attempt::Read, None)),
        ("write", access(Attempt::Write, Some(Access::ReadExecute))),
        ("execute", access(Attempt::Execute, Some(Access::ReadWrite))),
        ("abort", Cause::Trap),
        ("undefined", Cause::IllegalInstruction),
        ("failed_label", Cause::FailedLabel),
        ("trapped_access", Cause::TrappedAccess),
        ("divide", Cause::Division),
        ("breakpoint", Cause::Breakpoint),
        ("floating_point", Cause::FloatingPoint),
        ("recurse", Cause::ControlStackOverflow),
        ("deep_data", Cause::DataStackOverflow { size: STACK }),
        ("unknown_gate", Cause::UnknownGate),
        ("forever", Cause::TimeLimit { granted: TIME }),
    ])
}

static ALARMS: AtomicU64 = AtomicU64::new(0);
static MENDED: AtomicU64 = AtomicU64::new(0);

/// Of the host's alarms: uses stack and vector registers.
extern "C" fn alarm(_: libc::c_int) {
    let mut all = [0_f64; 64];
    for (index, place) in all.iter_mut().enumerate() {
        *place = std::hint::black_box(index as f64).sqrt();
    }
    std::hint::black_box(all);
    ALARMS.fetch_add(1, Ordering::Relaxed);
}

/// Of the host's faults: makes the page writable.
extern "C" fn mend(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    MENDED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the fault is one that `fault_here` causes in its own mapping.
    unsafe {
        let page = ((*info).si_addr() as usize & !0xfff) as *mut libc::c_void;
        libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE);
    }
}

/// Installs the host's handlers, and a timer that never stops.
fn make_signals() {
    let handlers = [
        (libc::SIGALRM, alarm as *const () as usize, libc::SA_RESTART),
        (libc::SIGUSR1, alarm as *const () as usize, libc::SA_ONSTACK),
        (libc::SIGSEGV, mend as *const () as usize, libc::SA_SIGINFO),
    ];
    // SAFETY: handlers of the right signatures; the structures are plain.
    unsafe {
        for (signal, handler, flags) in handlers {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = flags;
            if signal == libc::SIGUSR1 {
                // A thread that calls no domain has the small stack of Rust's own, which holds one such handler.
                libc::sigaddset(&mut action.sa_mask, libc::SIGALRM);
            }
            libc::sigaction(signal, &action, ptr::null_mut());
        }
        let often = libc::timeval {
            tv_sec: 0,
            tv_usec: 500,
        };
        let timer = libc::itimerval {
            it_interval: often,
            it_value: often,
        };
        libc::setitimer(libc::ITIMER_REAL, &timer, ptr::null_mut());
    }
}

/// A fault of the host's own, which its own handler mends.
fn fault_here() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of this function's own.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0);
        page.cast::<u64>().write_volatile(7);
        libc::munmap(page, 4096);
    }
}

/// A domain whose `call_back` calls the address that `go` was given: in the domain itself,
/// or in `other`; what comes of it is the host's to say.
fn load(program: &Program, other: Option<Arc<Loaded>>) -> Loaded {
    let call_back = host(move |caller: &mut GateCall<'_>| {
        let (target, nothing) = (caller.pointer(0), CallArguments::default());
        let limits = time_limit(caller.integers()[1] != 0);
        let ended = match &other {
            None => {
                let entry = caller.entry(target).unwrap();
                caller.call(entry, &nothing, Some(&limits))
            }
            Some(other) => {
                let entry = other.domain.entry(target).unwrap();
                other.domain.call_limited(entry, &nothing, &limits)
            }
        };
        match ended {
            Ok(returned) => Ok(returned.integer),
            Err(error) => Err(mullion_runtime::CallEnd::Refused(error)),
        }
    });
    let limits = Limits {
        stack: STACK,
        ..Limits::default()
    };
    program.load_with(vec![call_back], limits)
}

/// Of the call that loops, and of no other: a busy machine lets them wait.
fn time_limit(loops: bool) -> CallLimits {
    CallLimits {
        time: loops.then_some(TIME),
        ..CallLimits::default()
    }
}

/// The fault that a host function has passed on.
#[track_caller]
fn passed_on(result: Result<mullion_runtime::Returned, CallError>) -> RawFault {
    let Err(CallError::Refused(inner)) = result else {
        panic!("{result:?}");
    };
    match inner.downcast::<CallError>().map(|inner| *inner) {
        Ok(CallError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

/// Makes every fault in every situation, until the rounds are over.
fn attempt(program: &Program, rounds: usize) -> u64 {
    let mut made = 0;
    for _ in 0..rounds {
        for (name, cause) in kinds() {
            // On its own.
            let alone = load(program, None);
            let loops = name == "forever";
            let entry = alone.domain.entry(Claimed(alone.address(name))).unwrap();
            let nothing = CallArguments::default();
            match alone
                .domain
                .call_limited(entry, &nothing, &time_limit(loops))
                .map_err(|error| *error)
            {
                Err(CallError::Fault(fault)) => assert_eq!(fault.cause, cause, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
            assert!(alone.domain.has_ended());

            // In a callback: host, domain, host, the same domain.
            let one = load(program, None);
            let fault = passed_on(one.call("go", &[one.address(name), loops.into()]));
            assert_eq!(fault.cause, cause, "{name} in a callback");
            assert!(one.domain.has_ended());

            // Nested: host, one domain, host, another one, which alone has ended.
            let inner = Arc::new(load(program, None));
            let outer = load(program, Some(inner.clone()));
            let fault = passed_on(outer.call("go", &[inner.address(name), loops.into()]));
            assert_eq!(fault.cause, cause, "{name} nested");
            assert_eq!(fault.base, inner.domain.memory().base());
            assert!(inner.domain.has_ended() && !outer.domain.has_ended());
            assert_eq!(outer.call("count", &[1000]).unwrap().integer, 1000);
            made += 3;
        }
    }
    made
}

#[test]
fn every_fault_in_every_situation_in_a_host_full_of_signals() {
    make_signals();
    let program = Program::new(PROGRAM);
    let rounds = match std::env::var_os("MULLION_LONG") {
        Some(_) => 100,
        None => 2,
    };
    let (over, counted, mended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let busy = load(&program, None);
    let faults: u64 = std::thread::scope(|scope| {
        // Three threads in one domain that does nothing wrong, with faults of the host's own.
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(busy.call("count", &[5000]).unwrap().integer, 5000);
                    counted.fetch_add(1, Ordering::Relaxed);
                    fault_here();
                    mended.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let makers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| attempt(&program, rounds)))
            .collect();
        while !makers.iter().all(|maker| maker.is_finished()) {
            // SAFETY: no memory operands. It arrives at whichever thread.
            unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
            std::thread::sleep(Duration::from_micros(300));
        }
        over.store(true, Ordering::Relaxed);
        makers.into_iter().map(|maker| maker.join().unwrap()).sum()
    });
    let alarms = ALARMS.load(Ordering::Relaxed);
    let counted = counted.load(Ordering::Relaxed);
    println!("{faults} faults, {alarms} signals, {counted} calls beside them");
    assert_eq!(faults, 2 * rounds as u64 * 3 * kinds().len() as u64);
    assert!(alarms > 10 && counted > 10);
    assert_eq!(
        MENDED.load(Ordering::Relaxed),
        mended.load(Ordering::Relaxed),
        "the host's handler has seen the host's faults and no others"
    );
}
