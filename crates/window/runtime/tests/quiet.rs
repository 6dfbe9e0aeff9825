//! What a domain writes through its host brings errors, and no signals: neither where a
//! signal would end the process, nor to a handler, nor later to a thread that blocks it.
//! In a process of its own, as dispositions and limits belong to the whole process.

mod support;

use mullion_runtime::{CallEnd, Claimed, Limits, quietly};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Loaded, Program, host};

const PROGRAM: &str = "
    import write
    .bss
    .balign 4096
bytes: .skip 0x10000
    .text
    export put
        leaq bytes(%rip), %rdi
        movl $0x10000, %esi
        call write
        ret
";

const LIMIT: u64 = 0x8000;

fn set(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: an empty set is a valid one, and the calls only write to it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        set
    }
}

fn is_waiting(signal: libc::c_int) -> bool {
    // SAFETY: the set is written before it is read.
    unsafe {
        let mut waiting = std::mem::zeroed();
        libc::sigpending(&mut waiting);
        libc::sigismember(&waiting, signal) == 1
    }
}

fn handle(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: a handler of the right signature, or one of the system's.
    unsafe { libc::signal(signal, handler) };
}

static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn seen(_: libc::c_int) {
    SEEN.fetch_add(1, Ordering::Relaxed);
}

/// A domain that writes 64 KiB to `file`; the answer is the count, or minus the error.
fn writes_to(program: &Program, file: impl AsFd + Send + Sync + 'static) -> Loaded {
    let file = Arc::new(file);
    let write = host(move |caller| {
        let [at, length, ..] = caller.integers();
        let piece = caller.memory().piece(Claimed(at), length);
        let piece = piece.map_err(|bad| CallEnd::Refused(Box::new(bad)))?;
        Ok(match piece.drain_to(file.as_fd(), None) {
            Ok(count) => count as u64,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(0)) as u64,
        })
    });
    program.load_with(vec![write], Limits::default())
}

#[test]
fn writes_that_fail_send_nothing() {
    let program = Program::new(PROGRAM);
    let put = |loaded: &Loaded| loaded.call("put", &[]).unwrap().integer as i64;
    for action in [
        libc::SIG_DFL,
        libc::SIG_IGN,
        seen as *const () as libc::sighandler_t,
    ] {
        handle(libc::SIGPIPE, action);
        handle(libc::SIGXFSZ, action);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(put(&writes_to(&program, writer)), -i64::from(libc::EPIPE));

        // Half of it is taken, and the reader goes: a count, and a signal too.
        let (reader, writer) = io::pipe().unwrap();
        // SAFETY: changes the size of the pipe's own buffer.
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
        let loaded = writes_to(&program, writer);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut length: libc::c_int = 0;
                while length == 0 {
                    std::thread::yield_now();
                    // SAFETY: the call writes an integer.
                    unsafe { libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &mut length) };
                }
                drop(reader);
            });
            let count = put(&loaded);
            assert!(count > 0 && count < 0x10000, "{count}");
        });

        let limited = || {
            let limit = libc::rlimit {
                rlim_cur: LIMIT,
                rlim_max: libc::RLIM_INFINITY,
            };
            // SAFETY: the structure is read.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        };
        let loaded = writes_to(&program, tempfile::tempfile().unwrap());
        limited();
        assert_eq!(put(&loaded), LIMIT as i64, "what fits is written");
        assert_eq!(put(&loaded), -i64::from(libc::EFBIG));
        let file = tempfile::tempfile().unwrap();
        let error = quietly(|| file.set_len(LIMIT + 1)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
        let unlimited = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the structure is read.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &unlimited) };
    }
    assert_eq!(SEEN.load(Ordering::Relaxed), 0);

    // A host that blocks the signal itself: nothing waits for it afterwards, unless it did before.
    let pipe = || io::pipe().unwrap().1;
    // SAFETY: the set is valid; `raise` sends a signal that is blocked.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set(libc::SIGPIPE), ptr::null_mut()) };
    assert_eq!(put(&writes_to(&program, pipe())), -i64::from(libc::EPIPE));
    assert!(!is_waiting(libc::SIGPIPE));
    // SAFETY: it sends a signal that is blocked.
    unsafe { libc::raise(libc::SIGPIPE) };
    assert!(quietly(|| pipe().write(b"x")).is_err());
    assert!(is_waiting(libc::SIGPIPE), "it is the host's");
}
