//! What hostile safe code is refused, in libraries that are built on their own: what it would import, and, in a library that
//! is taken, what it tries while it runs beside a neighbour in one address space.

#![forbid(unsafe_code)]

mod arranged;
#[path = "built/mod.rs"]
mod built;
#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;

use std::path::Path;

use arranged::configuration;
use built::library;
use host::host;
use mullion_sip::process::Cause;
use mullion_sip_host::image::{ElfError, ImageReason, LibraryImports, SipImage};
use mullion_sip_host::supervisor::RunOutcome;
use mullion_sip_host::{Host, SipSupervisor};

fn run(text: &str) -> Vec<RunOutcome> {
    let supervisor = SipSupervisor::new(&host(), &configuration(text));
    supervisor.unwrap_or_else(|error| panic!("{error}")).run()
}

/// A process of the attacker's for each way, and one that has to live through it all.
fn attack(ways: &[&str]) -> Vec<RunOutcome> {
    let mut text =
        "[processes.neighbour]\nlibrary = \"odd\"\narguments = [\"nap\"]\nworker = 0\n".to_owned();
    for (number, way) in ways.iter().enumerate() {
        text += &format!(
            "[processes.w{number:02}]\nlibrary = \"attacker\"\narguments = [\"{way}\"]\nworker = 0\n\
             bind = [\"/attacker\"]\nlook-up = [\"/attacker\"]\n"
        );
    }
    let outcomes = run(&text);
    let (neighbour, attackers) = outcomes.split_first().expect("the first by name");
    assert_eq!(neighbour.name, "neighbour");
    let exit = neighbour.exit.expect("it began");
    assert_eq!(exit.cause, Cause::Returned, "the neighbour: {exit:?}");
    attackers.to_vec()
}

#[test]
fn every_attack_that_a_process_outlives_is_refused() {
    let outcomes = attack(&["all"]);
    let exit = outcomes[0].exit.expect("it began");
    assert_eq!(exit.cause, Cause::Returned, "got through: {exit:?}");
}

/// Each way is named after the cause of the end that it leads to.
#[test]
fn every_deadly_attack_ends_the_attacker_alone() {
    let ways = attack(&["ways"])[0].exit.expect("it began").message;
    assert_eq!(ways.as_str().split(' ').next(), Some("panic"), "{ways}");
    for all in WAYS.chunks(14) {
        let outcomes = attack(all);
        for (way, outcome) in all.iter().zip(outcomes) {
            let exit = outcome.exit.expect("it began");
            let cause = match way.split('-').next() {
                Some("panic") => Cause::Panic,
                Some("abort") => Cause::Abort,
                Some("memory") => Cause::Memory,
                Some("stack") => Cause::Stack,
                Some("loop") => Cause::Slice,
                Some("exit") => Cause::Exited(9),
                other => panic!("{other:?}"),
            };
            assert_eq!(exit.cause, cause, "{way}: {exit:?}");
        }
    }
}

/// Those of `deadly.rs` in the library.
#[rustfmt::skip]
const WAYS: [&str; 44] = [
    "panic", "panic-any", "panic-large", "panic-caught", "panic-hook-set", "panic-hook-taken", "panic-thread",
    "panic-thread-local", "panic-index", "panic-division", "panic-borrow", "panic-unwinding", "panic-sleep",
    "panic-exchange-limit", "panic-exchange-size", "panic-holding", "panic-sorting", "abort", "abort-twice", "abort-layout",
    "memory-vectors", "memory-one", "memory-huge", "memory-reserved", "memory-growing", "memory-leaked", "memory-aligned", "memory-text",
    "memory-thread", "memory-in-a-drop", "stack", "stack-large", "stack-thread", "stack-display",
    "stack-bulk-sent", "stack-bulk-received", "stack-while-sending", "loop", "loop-thread", "loop-of-allocations", "loop-of-calls", "loop-of-refusals",
    "loop-of-caught", "exit-thread",
];

fn imports(path: &Path) -> LibraryImports {
    match SipImage::read(path, None).map_err(|error| error.reason) {
        Err(ImageReason::Elf(ElfError::Imports(imports))) => imports,
        other => panic!("{:?}", other.err()),
    }
}

/// A library of safe code that calls the standard library for threads, sockets, files and ends is refused, by name.
#[test]
fn who_reaches_for_the_system_is_refused() {
    let refused = imports(&library("reaching"));
    let names: Vec<&str> = refused.names().collect();
    for name in [
        "pthread_create",
        "sched_getaffinity",
        "exit",
        "fork",
        "execvp",
        "posix_spawnp",
        "socket",
        "bind",
        "listen",
        "accept4",
        "connect",
        "sendto",
        "recv",
        "socketpair",
        "pipe2",
        "mkdir",
        "opendir",
        "unlink",
        "rename",
        "linkat",
        "symlink",
        "chmod",
        "chdir",
        "environ",
        "dlsym",
        "sigaltstack",
        "signal",
        "waitpid",
        "setuid",
        "ioctl",
        "dup2",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let text = refused.to_string();
    for way_out in ["mullion_sip::thread::spawn", "mullion_sip::process::exit"] {
        assert!(text.contains(way_out), "{text}");
    }
}

/// Any other function of the system, whatever it is called: the list says what a SIP gets, and not what it does not get.
#[test]
fn who_imports_anything_else_is_refused() {
    // A name that every library refers to and that is long enough to be replaced.
    const PLACE: &[u8] = b"\0_ITM_deregisterTMCloneTable\0";
    let whole = std::fs::read(library("odd")).expect("it was built");
    let start = whole
        .windows(PLACE.len())
        .position(|window| window == PLACE);
    let start = start.expect("it refers to it") + 1;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lib.so");
    for name in [
        "pthread_create",
        "pthread_kill",
        "pthread_cancel",
        "pthread_attr_setstack",
        "thrd_create",
        "clone",
        "clone3",
        "fork",
        "vfork",
        "_Fork",
        "posix_spawn",
        "execve",
        "execl",
        "fexecve",
        "system",
        "popen",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "atexit",
        "at_quick_exit",
        "__cxa_atexit",
        "raise",
        "kill",
        "tgkill",
        "sigaction",
        "signal",
        "sigaltstack",
        "sigprocmask",
        "sigqueue",
        "siglongjmp",
        "longjmp",
        "setcontext",
        "swapcontext",
        "makecontext",
        "getcontext",
        "dlopen",
        "dlmopen",
        "dlsym",
        "dlclose",
        "dl_open",
        "open",
        "open64",
        "openat",
        "openat64",
        "creat",
        "fopen64",
        "read",
        "pread64",
        "mmap64",
        "mremap",
        "remap_file_pages",
        "brk",
        "sbrk",
        "process_vm_readv",
        "process_vm_writev",
        "ptrace",
        "prctl",
        "arch_prctl",
        "personality",
        "userfaultfd",
        "memfd_create",
        "shm_open",
        "socket",
        "socketpair",
        "connect",
        "io_uring_setup",
        "epoll_wait",
        "ioctl",
        "fcntl64",
        "dup",
        "pipe",
        "eventfd",
        "timerfd_create",
        "timer_create",
        "setitimer",
        "alarm",
        "nanosleep",
        "usleep",
        "pause",
        "setenv",
        "putenv",
        "unsetenv",
        "clearenv",
        "environ",
        "getenv",
        "secure_getenv",
        "setrlimit",
        "prlimit64",
        "sched_setaffinity",
        "setpriority",
        "setuid",
        "chroot",
        "mount",
        "unshare",
        "setns",
        "seccomp",
        "bpf",
        "perf_event_open",
        "init_module",
        "reboot",
        "malloc_hook",
        "mallopt",
        "__libc_start_main",
        "__libc_enable_secure",
        "_dl_allocate_tls",
        "program_invocation_name",
        "stdout",
        "stderr",
        "puts",
        "printf",
    ] {
        let mut changed = whole.clone();
        changed[start..start + PLACE.len() - 2].fill(0);
        changed[start..start + name.len()].copy_from_slice(name.as_bytes());
        std::fs::write(&path, &changed).expect("written");
        assert_eq!(imports(&path).names().collect::<Vec<_>>(), [name]);
    }
}

/// A definition under a name of the system's would be replaced by the system's when the library is loaded.
#[test]
fn who_exports_more_than_the_entry_is_refused() {
    let mut changed = std::fs::read(library("odd")).expect("it was built");
    // The entry becomes another name: it is exported, and nobody calls it.
    let name = b"\0mullion_sip_entry\0";
    let all: Vec<usize> = (0..changed.len() - name.len())
        .filter(|at| changed[*at..].starts_with(name))
        .collect();
    for at in all {
        changed[at + 1..at + 1 + 6].copy_from_slice(b"open64");
        changed[at + 7] = 0;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lib.so");
    std::fs::write(&path, changed).expect("written");
    match SipImage::read(&path, None).map_err(|error| error.reason) {
        Err(ImageReason::Elf(ElfError::Export(name))) => assert_eq!(name, "open64"),
        other => panic!("{:?}", other.err()),
    }
}

/// The power of the host is given once.
#[test]
fn nobody_becomes_the_host_a_second_time() {
    let first = host();
    assert!(Host::begin().is_err());
    let elsewhere = std::thread::spawn(|| {
        let bound = mullion_sip::process::names::bind("/strange", [0; 32]);
        (Host::here().is_none(), Host::begin().is_err(), bound)
    });
    let refused = Err(mullion_sip::process::names::NameError::NoProcess);
    assert_eq!(elsewhere.join().expect("no panic"), (true, true, refused));
    drop(first);
}
