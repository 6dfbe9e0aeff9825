//! Ends of threads and of the process, in a host full of signals. Each scenario is a
//! process of its own, as alternate stacks and handlers belong to threads and processes:
//! the program runs itself once for each, and looks at how that process ends.
#![expect(clippy::disallowed_methods, reason = "the test maps memory of its own")]

mod support;

use mullion_runtime::{CallError, Cause, Limits, WindowDomain};
use std::cell::{Cell, RefCell};
use std::process::{Command, exit};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{Loaded, Program};

const SCENARIO: &str = "MULLION_END_SCENARIO";
/// What a scenario's process exits with if all went as it should.
const GOOD: i32 = 7;

const SCENARIOS: [(&str, fn()); 7] = [
    ("profiler", profiler),
    ("hostile-thread-end", hostile_thread_end),
    ("hostile-main-end", hostile_main_end),
    ("benign-main-end", benign_main_end),
    ("exit-in-a-handler", exit_in_a_handler),
    ("stack-of-the-hosts-own", stack_of_the_hosts_own),
    ("blocked-at-the-end", blocked_at_the_end),
];

fn main() {
    if let Ok(name) = std::env::var(SCENARIO) {
        let scenario = SCENARIOS.iter().find(|(known, _)| *known == name);
        scenario.expect("a scenario").1();
        return;
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let mut failed = Vec::new();
    for (name, _) in SCENARIOS {
        if !asked.is_empty() && !asked.iter().any(|asked| name.contains(asked)) {
            continue;
        }
        let status = Command::new(std::env::current_exe().unwrap())
            .env(SCENARIO, name)
            .status()
            .unwrap();
        println!("{name}: {status}");
        if status.code() != Some(GOOD) {
            failed.push(name);
        }
    }
    assert!(
        failed.is_empty(),
        "{failed:?} ended otherwise than they should"
    );
}

const PROGRAM: &str = "
    export count
        xorl %eax, %eax
    1:  addl $1, %eax
        cmpl %edi, %eax
        jne 1b
        ret
    export recurse
        call recurse
        ret
    export trap
        ud2
";

/// A thread that has ended, its variables included, when this returns: a scope alone
/// does not wait for these.
fn on_a_thread(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

/// A program whose domains run this export when a thread ends.
fn with_end(name: &str) -> Program {
    let mut program = Program::new(PROGRAM);
    let loaded = program.load();
    let offset = loaded.address(name) - loaded.domain.memory().base();
    drop(loaded);
    let image = Arc::into_inner(program.image).unwrap();
    program.image = Arc::new(image.with_thread_end(offset));
    program
}

fn load(program: &Program) -> Loaded {
    program.load_with(Vec::new(), Limits::default())
}

/// Has what comes of the calls at thread ends counted: (all, those that ended as `expected`).
fn watch(domain: &WindowDomain, expected: fn(&Result<(), CallError>) -> bool) {
    domain.around_thread_end(Arc::new(move |call| {
        let result = call();
        ENDS.fetch_add(1, Ordering::SeqCst);
        match expected(&result) {
            true => EXPECTED.fetch_add(1, Ordering::SeqCst),
            false => panic!("{result:?}"),
        };
    }));
}

static ENDS: AtomicU64 = AtomicU64::new(0);
static EXPECTED: AtomicU64 = AtomicU64::new(0);

fn overflowed(result: &Result<(), CallError>) -> bool {
    matches!(result, Err(CallError::Fault(fault)) if fault.cause == Cause::ControlStackOverflow)
}

fn trapped(result: &Result<(), CallError>) -> bool {
    matches!(result, Err(CallError::Fault(fault)) if fault.cause == Cause::Trap)
}

static SAMPLES: AtomicU64 = AtomicU64::new(0);

/// A profiler's handler: uses stack, and changes nothing.
extern "C" fn sample(_: libc::c_int) {
    std::hint::black_box([1_u8; 1024]);
    SAMPLES.fetch_add(1, Ordering::Relaxed);
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a handler of the right signature; the structure is plain.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(signal, &action, ptr::null_mut());
    }
}

fn raise(signal: libc::c_int) {
    // SAFETY: takes no memory; the signal has a handler.
    unsafe { libc::raise(signal) };
}

/// Raises a signal when the thread's variables are dropped. One that is made before
/// the thread's first call is dropped after what the run time keeps for the thread.
struct Raises(libc::c_int);

impl Drop for Raises {
    fn drop(&mut self) {
        raise(self.0);
    }
}

thread_local!(static RAISES: RefCell<Option<Raises>> = const { RefCell::new(None) });

/// Short-lived threads under a profiler, which samples at any time, and at the end of each.
fn profiler() {
    handle(libc::SIGPROF, sample);
    let loaded = load(&Program::new(PROGRAM));
    let over = AtomicBool::new(false);
    const THREADS: u64 = 1000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // SAFETY: no memory operands. It arrives at whichever thread.
                unsafe { libc::kill(libc::getpid(), libc::SIGPROF) };
                std::thread::yield_now();
            }
        });
        for _ in 0..THREADS / 2 {
            let thread = || {
                RAISES.set(Some(Raises(libc::SIGPROF)));
                assert_eq!(loaded.call("count", &[100]).unwrap().integer, 100);
            };
            let both = [scope.spawn(thread), scope.spawn(thread)];
            for thread in both {
                thread.join().unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(SAMPLES.load(Ordering::Relaxed) >= THREADS);
    exit(GOOD);
}

/// The domain fills its control stack when a thread ends: a fault, and no more.
fn hostile_thread_end() {
    let loaded = load(&with_end("recurse"));
    watch(&loaded.domain, overflowed);
    on_a_thread(|| assert_eq!(loaded.call("count", &[1]).unwrap().integer, 1));
    assert_eq!(EXPECTED.load(Ordering::SeqCst), 1);
    assert!(loaded.domain.has_ended());
    exit(GOOD);
}

static MAIN: std::sync::OnceLock<Loaded> = std::sync::OnceLock::new();

/// When everything else is over: looks at what happened, and signals once more.
extern "C" fn at_exit_after_the_fault() {
    raise(libc::SIGPROF);
    let good = EXPECTED.load(Ordering::SeqCst) == 1 && SAMPLES.load(Ordering::SeqCst) == 1;
    // SAFETY: ends the process, from a function that `exit` calls.
    unsafe { libc::_exit(if good { GOOD } else { 1 }) };
}

/// The same at the end of the main thread, by which time the standard library has
/// taken its alternate stack away.
fn hostile_main_end() {
    handle(libc::SIGPROF, sample);
    // SAFETY: a function of the right signature.
    unsafe { libc::atexit(at_exit_after_the_fault) };
    let loaded = MAIN.get_or_init(|| load(&with_end("recurse")));
    watch(&loaded.domain, overflowed);
    loaded.call("count", &[1]).unwrap();
}

extern "C" fn at_exit() {
    raise(libc::SIGPROF);
    // SAFETY: it ends the program, at the end of which it is called anyway.
    unsafe {
        libc::_exit(if SAMPLES.load(Ordering::SeqCst) == 1 {
            GOOD
        } else {
            1
        })
    };
}

/// A signal behind the end of the main thread's variables.
fn benign_main_end() {
    handle(libc::SIGPROF, sample);
    // SAFETY: a function of the right signature.
    unsafe { libc::atexit(at_exit) };
    MAIN.get_or_init(|| load(&Program::new(PROGRAM)))
        .call("count", &[1])
        .unwrap();
}

extern "C" fn leave(_: libc::c_int) {
    // SAFETY: the thread waits in `raise`, so nothing is half done.
    unsafe { libc::exit(GOOD) };
}

/// A process that exits in a handler, on the run time's own alternate stack: the domain is
/// not entered from there, and the handler's stack stays its own.
fn exit_in_a_handler() {
    handle(libc::SIGUSR1, leave);
    let loaded = MAIN.get_or_init(|| load(&with_end("recurse")));
    watch(&loaded.domain, |_| false);
    loaded.call("count", &[1]).unwrap();
    raise(libc::SIGUSR1);
}

/// An alternate stack as a library in C has one: in force from before the first call,
/// and unmapped when the thread ends, after it was switched off if it was still in force.
struct Library(Cell<*mut libc::c_void>);

impl Library {
    const SIZE: usize = 1 << 16;

    fn install(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping of this function's own, which is an alternate stack from here on.
        unsafe {
            self.0.set(libc::mmap(
                ptr::null_mut(),
                Self::SIZE,
                access,
                flags,
                -1,
                0,
            ));
            let stack = libc::stack_t {
                ss_sp: self.0.get(),
                ss_flags: 0,
                ss_size: Self::SIZE,
            };
            assert_eq!(libc::sigaltstack(&stack, ptr::null_mut()), 0);
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: what is in force is switched off if it is this stack, which nothing uses then.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(ptr::null(), &mut now);
            if now.ss_sp == self.0.get() {
                now.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&now, ptr::null_mut());
            }
            libc::munmap(self.0.get(), Self::SIZE);
        }
    }
}

fn stack_of_the_hosts_own() {
    handle(libc::SIGPROF, sample);
    let loaded = load(&Program::new(PROGRAM));
    thread_local!(static LIBRARY: Library = const { Library(Cell::new(ptr::null_mut())) });
    for early in [true, false] {
        on_a_thread(|| {
            RAISES.set(Some(Raises(libc::SIGPROF)));
            if early {
                LIBRARY.with(Library::install);
            }
            assert_eq!(loaded.call("count", &[100]).unwrap().integer, 100);
            if !early {
                LIBRARY.with(Library::install);
            }
            raise(libc::SIGPROF);
        });
    }
    assert_eq!(SAMPLES.load(Ordering::Relaxed), 4);
    exit(GOOD);
}

/// A thread that has blocked every signal when it ends.
fn blocked_at_the_end() {
    let loaded = load(&with_end("trap"));
    watch(&loaded.domain, trapped);
    on_a_thread(|| {
        loaded.call("count", &[1]).unwrap();
        // SAFETY: the set is filled before it is used.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, ptr::null_mut());
        }
    });
    assert_eq!(EXPECTED.load(Ordering::SeqCst), 1);
    exit(GOOD);
}
