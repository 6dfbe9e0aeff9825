//! A process with domains that is copied by `fork`: each copy has rights, gates and limits of its own. And threads that
//! have blocked the signals by which calls end.

mod module;

use module::{function, load, module};
use mullion_supervisor::Permission;
use mullion_word_runtime::{Domain, Effect, FaultKind, FunctionPolicy, Host, Limits, Policy, Size};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

type Fn0 = extern "C" fn() -> u64;
type Fn1 = extern "C" fn(u64) -> u64;

/// A copy of a process with many threads is another test's.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a copy of this process answers, which has ten seconds; 256 and more if a signal ended it.
fn in_child(work: impl FnOnce() -> u8) -> i32 {
    beside(work, || {})
}

const STORES: &str = "
    gate    store
    checked 2, 0, (%rdi), movl $7, (%rdi)
    mov     $1, %eax
    ret";

fn cell() -> (&'static AtomicU64, usize) {
    let cell = Box::leak(Box::new(AtomicU64::new(0)));
    (cell, std::ptr::from_ref(cell) as usize)
}

#[test]
fn a_limit_on_time_holds_in_a_copy() {
    let _alone = alone();
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    let text = "gate f\n1: jmp 1b";
    let (_host, domain) = load("loops", text, Policy::new().limits(limits));
    let f: Fn0 = function(&domain, "f");
    let child = || {
        f();
        u8::from(domain.take_reports().remove(0).kind == FaultKind::Time)
    };
    assert_eq!(in_child(child), 1);
    assert_eq!(child(), 1, "and in the process that was copied");
}

/// The process that [`copy_here`] has made, and 0 there.
static COPIED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn copy_here() -> u64 {
    // SAFETY: no other thread of this process is in a lock that the copy takes.
    let copy = unsafe { libc::fork() };
    COPIED.store(copy, Ordering::SeqCst);
    u64::from(copy == 0)
}

/// A call that was copied on its way asks for nothing there, and has its limit still.
#[test]
fn a_limit_on_time_holds_for_a_call_that_is_copied() {
    let _alone = alone();
    let text = "
    import  copy
    gate    f
    call_import copy
    test    %eax, %eax
    jz      2f
1:  jmp     1b
2:  mov     $1, %eax
    ret";
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    // SAFETY: it takes nothing.
    let policy = unsafe { Policy::new().offer("copy", copy_here as *const () as usize, None) };
    let (_host, domain) = load("copied", text, policy.limits(limits));
    let answer = function::<Fn0>(&domain, "f")();
    let copy = COPIED.load(Ordering::SeqCst);
    if copy == 0 {
        let is_late = answer == 0 && domain.take_reports()[0].kind == FaultKind::Time;
        // SAFETY: the copy ends.
        unsafe { libc::_exit(is_late.into()) };
    }
    assert!(copy > 0 && answer == 1, "{copy} {answer}");
    // It has ten seconds.
    for _ in 0..1000 {
        let mut status = 0;
        // SAFETY: it is our child.
        match unsafe { libc::waitpid(copy, &mut status, libc::WNOHANG) } {
            0 => std::thread::sleep(Duration::from_millis(10)),
            _ => return assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1),
        }
    }
    // SAFETY: as above; it does not end by itself.
    unsafe {
        libc::kill(copy, libc::SIGKILL);
        libc::waitpid(copy, std::ptr::null_mut(), 0);
    }
    panic!("the call goes on for ever in the copy");
}

/// Two processes that take turns.
struct Turns([[i32; 2]; 2]);

impl Turns {
    fn new() -> Turns {
        let mut pipes = [[0; 2]; 2];
        for pipe in &mut pipes {
            // SAFETY: it fills in both.
            assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        }
        Turns(pipes)
    }

    /// It is the other one's turn, until it says the same.
    fn other(&self, is_copy: bool) {
        self.done(is_copy);
        self.wait(is_copy);
    }

    fn done(&self, is_copy: bool) {
        // SAFETY: a byte of our own, and our own pipe.
        unsafe { libc::write(self.0[usize::from(is_copy)][1], [1u8].as_ptr().cast(), 1) };
    }

    fn wait(&self, is_copy: bool) {
        let mut byte = 0u8;
        // SAFETY: a byte of our own to read into, and our own pipe.
        unsafe { libc::read(self.0[usize::from(!is_copy)][0], (&raw mut byte).cast(), 1) };
    }
}

/// As [`in_child`], while this process does `work`.
fn beside(copy: impl FnOnce() -> u8, work: impl FnOnce()) -> i32 {
    // SAFETY: the copy does its work and ends. No other thread of this process is in a lock that it takes.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the copy ends.
        unsafe {
            libc::alarm(10);
            let answer = copy();
            libc::_exit(answer.into());
        }
    }
    work();
    let mut status = 0;
    // SAFETY: it is our child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => 256 + libc::WTERMSIG(status),
    }
}

#[test]
fn a_domain_that_a_copy_ends_lives_on_in_the_other_one() {
    let _alone = alone();
    let (host, domain) = load("stores", STORES, Policy::new());
    let store: Fn1 = function(&domain, "store");
    let (here, address) = cell();
    // SAFETY: the module may write it.
    unsafe { host.grant(&domain, address, 8, true) }.unwrap();
    let child = || {
        host.revoke(address, 8).unwrap();
        let refused = store(address as u64) == 0;
        let ended = domain.unload().is_ok();
        // The next one gets its number, with a map that is empty.
        let next = host.load(&module("next", STORES), Policy::new()).unwrap();
        let may_not = function::<Fn1>(&next, "store")(address as u64) == 0;
        u8::from(refused && ended && may_not)
    };
    assert_eq!(in_child(child), 1);
    assert_eq!(store(address as u64), 1, "{:?}", domain.take_reports());
    assert_eq!(here.load(Ordering::Relaxed), 7);
}

/// Both give away the number that is free next, and mean different things by it.
#[test]
fn what_a_copy_is_granted_the_other_one_is_not() {
    let _alone = alone();
    let (host, domain) = load("given", STORES, Policy::new());
    let other = host.load(&module("other", STORES), Policy::new()).unwrap();
    let store: Fn1 = function(&domain, "store");
    let ((_, first), (_, second)) = (cell(), cell());
    let turns = Turns::new();
    let copy = || {
        turns.wait(true);
        for domain in [&domain, &other] {
            // SAFETY: the modules may write it.
            unsafe { host.grant(domain, second, 8, true) }.unwrap();
        }
        let done = store(second as u64);
        turns.done(true);
        done as u8
    };
    let status = beside(copy, || {
        // SAFETY: the module may read it.
        unsafe { host.grant(&domain, first, 8, false) }.unwrap();
        turns.other(false);
        assert_eq!(store(first as u64), 0, "it may only read");
    });
    assert_eq!(status, 1);
}

/// Where a call of [`waits`] is: 1 in the host's function, until it is 2.
static WAITS: AtomicU64 = AtomicU64::new(0);

extern "C" fn wait() {
    let _inside = WAITS.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    while WAITS.load(Ordering::SeqCst) == 1 {
        std::thread::yield_now();
    }
}

/// The call of another thread never ends in a copy. So what it was granted ends with the copy's beginning: whether it was granted
/// for this call, or kept since the one before, also when another one has asked to take it back.
#[test]
fn what_calls_of_other_threads_were_granted_is_not_in_a_copy() {
    let _alone = alone();
    let text = "
    import  wait
    gate    f
    call_import wait
    mov     $1, %eax
    ret";
    for (calls_before, is_asked) in [(0, false), (300, false), (300, true)] {
        let eight = [Effect::InOut(0, Size::Bytes(8))];
        // SAFETY: it waits.
        let policy = unsafe { Policy::new().offer("wait", wait as *const () as usize, None) };
        let policy = policy.export("f", FunctionPolicy::of(&eight));
        let (_host, domain) = load("waits", text, policy);
        let f: Fn1 = function(&domain, "f");
        let (_cell, address) = cell();
        let may = || domain.permission(address) == Permission::ReadWrite;
        WAITS.store(2, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                (0..calls_before).for_each(|_| assert_eq!(f(address as u64), 1));
                WAITS.store(0, Ordering::SeqCst);
                f(address as u64)
            });
            while WAITS.load(Ordering::SeqCst) != 1 {
                std::thread::yield_now();
            }
            if is_asked {
                assert!(may());
            }
            let copy = || {
                WAITS.store(2, Ordering::SeqCst);
                let is_gone = !may();
                let works = f(address as u64) == 1 && !may();
                u8::from(is_gone && works)
            };
            let (in_copy, runs_still) = (in_child(copy), may());
            WAITS.store(2, Ordering::SeqCst);
            assert_eq!(calls.join().unwrap(), 1);
            assert_eq!(in_copy, 1, "{calls_before} {is_asked}");
            assert!(runs_still);
        });
        assert!(!may());
    }
}

extern "C" fn answer() -> u64 {
    42
}

extern "C" fn other_answer() -> u64 {
    43
}

/// At the same addresses, with different functions of the host.
#[test]
fn both_load_modules() {
    let _alone = alone();
    let host = Host::new().unwrap();
    let calls = |function: extern "C" fn() -> u64| {
        let text = "import answer\n gate f\n call_import answer\n ret";
        // SAFETY: it takes nothing.
        let policy = unsafe { Policy::new().offer("answer", function as *const () as usize, None) };
        host.load(&module("calls", text), policy).unwrap()
    };
    let call = |domain: &Domain| function::<Fn0>(domain, "f")();
    let before = calls(answer);
    let turns = Turns::new();
    let copy = || {
        let own = calls(answer);
        turns.other(true);
        (call(&own) + call(&before)) as u8
    };
    let mut own = None;
    let status = beside(copy, || {
        turns.wait(false);
        // What is allocated lies elsewhere than in the copy.
        let apart: Vec<_> = (0..4000).map(|n| vec![1u8; n]).collect();
        own = Some(calls(other_answer));
        std::mem::forget(apart);
        turns.done(false);
    });
    assert_eq!(status, 84);
    assert_eq!(own.as_ref().map(call), Some(43));
    assert_eq!(call(&before), 42);
}

/// A thread that was inside when the process was copied is not in the copy: nobody waits for it there.
#[test]
fn nobody_waits_for_threads_that_a_copy_does_not_have() {
    let _alone = alone();
    let text = "
        gate    spin
1:      checked 1, 0, (%rdi), mov (%rdi), %eax
        test    %eax, %eax
        je      1b
        ret
        gate    store
        checked 2, 0, (%rdi), movl $7, (%rdi)
        mov     $1, %eax
        ret";
    let (host, domain) = load("spins", text, Policy::new());
    let ((stop, flag), (_, other)) = (cell(), cell());
    // SAFETY: the module may read the one and write the other.
    unsafe {
        host.grant(&domain, flag, 8, false).unwrap();
        host.grant(&domain, other, 8, true).unwrap();
    }
    let spin: Fn1 = function(&domain, "spin");
    let store: Fn1 = function(&domain, "store");
    let inside = std::thread::spawn(move || spin(flag as u64));
    // A while later it is inside.
    std::thread::sleep(Duration::from_millis(50));
    let child = || {
        let may = store(other as u64);
        host.revoke(other, 8).unwrap();
        let ended = store(other as u64) == 0;
        domain.restart().expect("nobody is inside here");
        (may + u64::from(ended)) as u8
    };
    assert_eq!(in_child(child), 2);
    stop.store(1, Ordering::Relaxed);
    assert_eq!(inside.join().unwrap(), 1);
    assert!(!domain.is_ended());
}

/// Daemons block all signals in the threads that work.
#[test]
fn a_thread_that_has_blocked_all_signals_survives_a_fault() {
    let _alone = alone();
    let limits = Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    };
    let text = "gate f\n ud2\n gate g\n1: jmp 1b";
    let (_host, domain) = load("blocked", text, Policy::new().limits(limits));
    let (f, g): (Fn0, Fn0) = (function(&domain, "f"), function(&domain, "g"));
    let block = || {
        // SAFETY: an empty set is filled in before it is used.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        }
    };
    let child = || {
        block();
        let mut kinds = Vec::new();
        for call in [f, g] {
            call();
            kinds.push(domain.take_reports().remove(0).kind);
            domain.restart().unwrap();
        }
        // Blocked later: the thread says so.
        block();
        Host::new().unwrap().prepare_thread().unwrap();
        f();
        kinds.push(domain.take_reports().remove(0).kind);
        u8::from(kinds == [FaultKind::Abort, FaultKind::Time, FaultKind::Abort])
    };
    assert_eq!(in_child(child), 1);
}

/// A host's own handler may use domains.
#[test]
fn a_handler_of_the_host_grants_before_each_copy() {
    static GIVEN: OnceLock<(Domain, usize)> = OnceLock::new();
    extern "C" fn before() {
        if let Some((domain, address)) = GIVEN.get() {
            // SAFETY: the module may write it.
            unsafe { Host::new().unwrap().grant(domain, *address, 8, true) }.unwrap();
        }
    }
    let _alone = alone();
    // SAFETY: the function stays.
    unsafe { libc::pthread_atfork(Some(before), None, None) };
    let (_host, domain) = load("handler", STORES, Policy::new());
    let store: Fn1 = function(&domain, "store");
    let (_, address) = cell();
    GIVEN.set((domain, address)).unwrap();
    assert_eq!(in_child(|| store(address as u64) as u8), 1);
}
