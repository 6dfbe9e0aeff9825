//! Handlers of the host's without SA_ONSTACK, in threads whose modules have nearly used up their control stack: each handler
//! that begins comes to its end, no signal stays blocked, and a fault of a handler is the host's. In a process of its own,
//! as handlers belong to the whole process.

mod module;

use module::{function, load};
use mullion_word_runtime::{Domain, FaultKind, Host, Policy};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Fn2 = extern "C" fn(u64, u64) -> u64;

const TEXT: &str = "
    import  nothing
    .macro  nests inner
    call    1f
    mov     $1, %eax
    ret
1:  sub     $1, %rdi
    je      2f
    call    1b
    ret
2:  \\inner
    sub     $1, %rsi
    jne     2b
    ret
    .endm
    gate    deep                    # nests %rdi times, then waits: %rsi rounds
    nests   nop
    gate    deep_at_gates           # as deep, and is in a gate most of the time
    nests   \"call *mullion_slots+24(%rip)\"
    gate    deep_at_host            # as deep, and calls the host in each round
    nests   \"sub $16, %r15; mov %rsi, (%r15); call_import nothing; mov (%r15), %rsi; add $16, %r15\"
    gate    fine
    mov     $3, %eax
    ret
";

/// Bytes of a control stack, less those of the frame, of its return gate and of the first call.
const ALL: u64 = (1 << 20) - 64 - 16;
/// What the handler uses of the stack.
const USED: usize = 0xc000;

static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

extern "C" fn nothing() {}

extern "C" fn handler(_: i32) {
    BEGUN.fetch_add(1, Ordering::Relaxed);
    let mut used = [0_u8; USED];
    for place in used.iter_mut().rev().step_by(512) {
        // SAFETY: a place of the array.
        unsafe { ptr::from_mut(place).write_volatile(1) };
    }
    std::hint::black_box(&mut used);
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Installs a handler; `blocks`: with every other signal blocked.
fn install(signal: i32, handler: usize, flags: i32, blocks: bool) {
    // SAFETY: a handler of the right signature; the structures are plain.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART | flags;
        if blocks {
            libc::sigfillset(&mut action.sa_mask);
        }
        assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
    }
}

/// Tests run one at a time, as they count the same handler's runs. Handlers are there before the first host is.
fn one() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let action = on_page as *const () as usize;
    static SEGV: std::sync::Once = std::sync::Once::new();
    SEGV.call_once(|| install(libc::SIGSEGV, action, libc::SA_SIGINFO, false));
    install(libc::SIGUSR1, handler as *const () as usize, 0, false);
    install(libc::SIGUSR2, handler as *const () as usize, 0, true);
    Host::new().unwrap().prepare_thread().unwrap();
    guard
}

fn made() -> (Host, Domain) {
    // SAFETY: it takes nothing.
    let policy = unsafe { Policy::new().offer("nothing", nothing as *const () as usize, None) };
    load("deep", TEXT, policy)
}

/// Sets its flag, also if the test fails meanwhile.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends this thread the signal, over and over, while `run` runs.
fn stormed<T>(signal: i32, run: impl FnOnce() -> T) -> T {
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
        let _end = End(&ended);
        run()
    })
}

fn is_blocked(signal: i32) -> bool {
    // SAFETY: it asks for the thread's mask.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut set);
        libc::sigismember(&set, signal) == 1
    }
}

/// Bytes of control stack that the module leaves, and whether the handler begins.
const ROOM: [(u64, bool); 7] = [
    (0, false),
    (0x400, false),
    (0x2c00, true),
    (0x4000, true),
    (0x8000, true),
    (0xb000, true),
    (0x2_0000, true),
];

#[test]
fn whatever_room_a_module_leaves() {
    let _one = one();
    // SAFETY: getauxval reads a table that the kernel made.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    let (_host, domain) = made();
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        for (room, begins) in ROOM {
            if begins && room < frame + 256 {
                println!("SKIPPED: a frame of {frame} bytes does not fit {room}");
                continue;
            }
            for name in ["deep", "deep_at_gates", "deep_at_host"] {
                let begun = BEGUN.load(Ordering::Relaxed);
                let rounds = match name {
                    _ if !begins => u64::MAX,
                    "deep" => 20_000_000,
                    _ => 300_000,
                };
                // A gate needs some bytes of its own.
                let depth = (ALL - room - 0x80) / 8;
                let deep: Fn2 = function(&domain, name);
                let answer = stormed(signal, || {
                    loop {
                        let answer = deep(depth, rounds);
                        // While it nests, too, signals come: so it is a few at the least.
                        if answer != 1 || BEGUN.load(Ordering::Relaxed) > begun + 20 {
                            return answer;
                        }
                    }
                });
                let case = format!("{name}, {room:#x}, signal {signal}");
                assert!(!is_blocked(signal), "{case}");
                let begun = BEGUN.load(Ordering::Relaxed);
                assert_eq!(begun, DONE.load(Ordering::Relaxed), "{case}");
                let reports = domain.take_reports();
                match begins {
                    true => assert!(answer == 1 && !domain.is_ended(), "{case}: {reports:?}"),
                    false => {
                        assert_eq!(reports.len(), 1, "{case}: {reports:?}");
                        assert_eq!(reports[0].kind, FaultKind::ControlStack, "{case}");
                        domain.restart().unwrap();
                    }
                }
                assert_eq!(
                    stormed(signal, || function::<Fn2>(&domain, "fine")(0, 0)),
                    3
                );
            }
        }
    }
}

/// Signals that are lost while a gate changes from the module's stack to the host's, or back. The call ends or goes on, and so
/// does the process.
#[test]
fn signals_that_are_lost_in_gates() {
    let _one = one();
    let (_host, domain) = made();
    let deep: Fn2 = function(&domain, "deep_at_host");
    stormed(libc::SIGUSR1, || {
        for _ in 0..400 {
            assert_eq!(deep((ALL - 0x80) / 8, u64::MAX), 0);
            assert_eq!(domain.take_reports()[0].kind, FaultKind::ControlStack);
            domain.restart().unwrap();
        }
    });
    assert!(!is_blocked(libc::SIGUSR1));
}

/// The module has no more of its stack for the handlers that it has had.
#[test]
fn the_room_is_closed_again() {
    let _one = one();
    let (_host, domain) = made();
    let deep: Fn2 = function(&domain, "deep");
    let begun = BEGUN.load(Ordering::Relaxed);
    stormed(libc::SIGUSR1, || {
        while BEGUN.load(Ordering::Relaxed) < begun + 20 {
            assert_eq!(deep((ALL - 0x4000) / 8, 1_000_000), 1);
        }
    });
    assert_eq!(deep(ALL / 8 - 2, 1), 1);
    assert_eq!(deep(ALL / 8 + 2, 1), 0);
    assert_eq!(domain.take_reports()[0].kind, FaultKind::ControlStack);
}

static PAGE: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicU64 = AtomicU64::new(0);

/// The host's handler of faults, for a page that it gives when it is first needed.
extern "C" fn on_page(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: the signal is a fault's, and the page is the test's own.
    unsafe {
        if (*info).si_addr() as usize & !4095 != page {
            libc::abort();
        }
        libc::mprotect(page as *mut _, 4096, libc::PROT_READ);
    }
}

extern "C" fn reads_page(_: i32) {
    let page = PAGE.load(Ordering::Relaxed) as *const u8;
    // SAFETY: the test's own page, which the handler of faults opens.
    unsafe {
        libc::mprotect(page.cast_mut().cast(), 4096, libc::PROT_NONE);
        READ.fetch_add(u64::from(page.read_volatile()) + 1, Ordering::Relaxed);
    }
}

#[test]
fn a_fault_of_a_handler_that_interrupts_a_module_is_the_host_s() {
    let _one = one();
    let (_host, domain) = made();
    // SAFETY: fresh memory, at no address that is asked for.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0)
    };
    PAGE.store(page as usize, Ordering::Relaxed);
    for flags in [0, libc::SA_ONSTACK] {
        install(
            libc::SIGUSR1,
            reads_page as *const () as usize,
            flags,
            false,
        );
        let read = READ.load(Ordering::Relaxed);
        let deep: Fn2 = function(&domain, "deep");
        stormed(libc::SIGUSR1, || {
            while READ.load(Ordering::Relaxed) < read + 100 {
                assert_eq!(deep(8, 1_000_000), 1, "{:?}", domain.take_reports());
            }
        });
        assert!(!is_blocked(libc::SIGUSR1) && !domain.is_ended());
    }
}
