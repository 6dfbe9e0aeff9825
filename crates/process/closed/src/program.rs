//! Which calls of Linux the process of one program has: what the run time and the three streams need.

use crate::call::{Call, Here, RIGHTS, When, call, filter};
use crate::domain::{CLOCK_NANOSLEEP, CLOCKS, THREAD_CLOCK};
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::Ne;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

/// One of the three streams.
const STREAM: &[When] = &[When::UpTo(0, 2)];
const INPUT: &[When] = &[When::Is(0, &[0])];
/// A thread of this process, as the C library makes one (`CLONE_THREAD` and what it needs).
const THREAD: u32 = 0x003d_0f00;
/// `PR_GET_AUXV`.
const GET_AUXV: u32 = 0x4155_5856;

/// As a domain's, and as the C library waits for the end of a thread.
const FUTEX: &[u32] = &[
    libc::FUTEX_WAIT as u32,
    libc::FUTEX_WAKE as u32,
    libc::FUTEX_WAIT_BITSET as u32,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME) as u32,
    (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32,
];

const OWN_STREAMS: &str = "the files that the caller has given it as streams";
const OWN_MEMORY: &str = "names addresses of the caller's";
const OWN_THREAD: &str = "takes nobody's number: the calling thread alone";

/// What the process of a program may still ask of Linux. There is one row for each call; a call that is in no row ends
/// the process by SIGSYS.
pub const PROGRAM_CALLS: &[Call] = &[
    call(libc::SYS_read, "read", INPUT, "input", OWN_STREAMS),
    call(libc::SYS_readv, "readv", INPUT, "input", OWN_STREAMS),
    call(libc::SYS_write, "write", STREAM, "output", OWN_STREAMS),
    call(libc::SYS_writev, "writev", STREAM, "output", OWN_STREAMS),
    call(
        libc::SYS_fstat,
        "fstat",
        &[],
        "what kind of file a stream is",
        "only asks, of what the caller has",
    ),
    call(
        libc::SYS_lseek,
        "lseek",
        STREAM,
        "where a stream is",
        "is answered with ESPIPE by another filter",
    ),
    call(
        libc::SYS_poll,
        "poll",
        &[],
        "to wait for input",
        "names descriptors of the caller's",
    ),
    call(
        libc::SYS_ppoll,
        "ppoll",
        &[],
        "to wait for input",
        "names descriptors of the caller's",
    ),
    call(
        libc::SYS_fcntl,
        "fcntl",
        &[When::Is(1, &[libc::F_GETFD as u32, libc::F_GETFL as u32])],
        "whether a stream is open, and how",
        "only asks, of what the caller has",
    ),
    call(
        libc::SYS_ioctl,
        "ioctl",
        &[When::Is(1, &[libc::TCGETS as u32, libc::TIOCGWINSZ as u32])],
        "whether a stream is a terminal, and how wide",
        "only asks, of what the caller has",
    ),
    call(
        libc::SYS_close,
        "close",
        &[],
        "streams that the program closes",
        "the caller's own descriptor; the file stays for whoever else has it",
    ),
    call(
        libc::SYS_mmap,
        "mmap",
        &[When::Within(2, RIGHTS), When::Is(4, &[u32::MAX])],
        "memory",
        "maps anew: no file, and never to run",
    ),
    call(
        libc::SYS_mprotect,
        "mprotect",
        &[When::Within(2, RIGHTS)],
        "stacks' last pages, and pages of windows",
        OWN_MEMORY,
    ),
    call(libc::SYS_munmap, "munmap", &[], "memory", OWN_MEMORY),
    call(libc::SYS_brk, "brk", &[], "memory", OWN_MEMORY),
    call(
        libc::SYS_mremap,
        "mremap",
        &[],
        "the C library's `realloc`",
        OWN_MEMORY,
    ),
    call(
        libc::SYS_madvise,
        "madvise",
        &[],
        "to give pages back",
        OWN_MEMORY,
    ),
    call(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[When::Is(0, CLOCKS)],
        "the time",
        "clocks of the machine and of the caller",
    ),
    call(
        libc::SYS_clock_gettime,
        "clock_gettime",
        &[When::Bits(0, THREAD_CLOCK.0, THREAD_CLOCK.1)],
        "how long a call has run, for its limit",
        "a thread's clock, which Linux shows to threads of the same OS process alone",
    ),
    call(
        libc::SYS_clock_getres,
        "clock_getres",
        &[When::Is(0, CLOCKS)],
        "the time",
        "clocks of the machine and of the caller",
    ),
    CLOCK_NANOSLEEP,
    call(
        libc::SYS_nanosleep,
        "nanosleep",
        &[],
        "to sleep",
        OWN_THREAD,
    ),
    call(
        libc::SYS_restart_syscall,
        "restart_syscall",
        &[],
        "Linux itself asks so, when a sleep goes on",
        OWN_THREAD,
    ),
    call(
        libc::SYS_sched_yield,
        "sched_yield",
        &[],
        "to let another thread run",
        OWN_THREAD,
    ),
    call(
        libc::SYS_futex,
        "futex",
        &[When::Is(1, FUTEX)],
        "to sleep and to wake",
        "names words of the caller's memory; without the operations on locks, by which another OS process's thread could inherit \
         a priority",
    ),
    call(
        libc::SYS_getrandom,
        "getrandom",
        &[],
        "random numbers",
        "names nothing",
    ),
    call(
        libc::SYS_rt_sigaction,
        "rt_sigaction",
        &[],
        "handlers of faults",
        "names no OS process: the caller's own handlers",
    ),
    call(
        libc::SYS_rt_sigprocmask,
        "rt_sigprocmask",
        &[],
        "handlers of faults",
        OWN_THREAD,
    ),
    call(
        libc::SYS_rt_sigreturn,
        "rt_sigreturn",
        &[],
        "the end of a handler",
        OWN_THREAD,
    ),
    call(
        libc::SYS_sigaltstack,
        "sigaltstack",
        &[],
        "the stack of a handler",
        OWN_THREAD,
    ),
    call(libc::SYS_getpid, "getpid", &[], "`abort`", OWN_THREAD),
    call(libc::SYS_gettid, "gettid", &[], "`abort`", OWN_THREAD),
    call(
        libc::SYS_tgkill,
        "tgkill",
        &[When::Own(0)],
        "the watch of limits interrupts a thread; `abort`",
        "Linux finds threads of the named OS process only: the caller's",
    ),
    call(
        libc::SYS_clone3,
        "clone3",
        &[],
        "the watch of limits is a thread, which starts with the first call",
        "is answered with ENOSYS by another filter; the C library calls `clone` then",
    ),
    call(
        libc::SYS_clone,
        "clone",
        &[When::Is(0, &[THREAD])],
        "the same",
        "makes a thread of the same OS process",
    ),
    call(
        libc::SYS_set_robust_list,
        "set_robust_list",
        &[],
        "a new thread",
        OWN_THREAD,
    ),
    call(libc::SYS_rseq, "rseq", &[], "a new thread", OWN_THREAD),
    call(
        libc::SYS_sched_getaffinity,
        "sched_getaffinity",
        &[],
        "how many processors there are",
        "is answered with ENOSYS by another filter, if it names a thread by its number",
    ),
    call(
        libc::SYS_sched_setattr,
        "sched_setattr",
        &[When::Is(0, &[0])],
        "the watch of limits takes its turn at once",
        "the calling thread; without privileges it gets no more than its share",
    ),
    call(
        libc::SYS_membarrier,
        "membarrier",
        &[],
        "a change that all threads must see",
        "orders accesses, and touches nothing",
    ),
    call(
        libc::SYS_prctl,
        "prctl",
        &[When::Is(0, &[GET_AUXV, libc::PR_SET_NAME as u32])],
        "what the kernel has told of the machine; a thread's name",
        OWN_THREAD,
    ),
    call(
        libc::SYS_exit,
        "exit",
        &[],
        "the end of a thread",
        OWN_THREAD,
    ),
    call(
        libc::SYS_exit_group,
        "exit_group",
        &[],
        "its end",
        "names no OS process: the caller's",
    ),
];

/// The filters of the process. The strictest answer counts.
pub(crate) fn filters(here: Here, refused: SeccompAction) -> Result<[BpfProgram; 4], BackendError> {
    let of_others = SeccompRule::new(vec![SeccompCondition::new(0, Dword, Ne, 0)?])?;
    Ok([
        // Linux shows the filter no argument of `clone3`. Refused so, the C library calls `clone`.
        answer(libc::SYS_clone3, Vec::new(), libc::ENOSYS)?,
        // The streams are the caller's own files, as its shell has opened them. Who could go back in one would write over
        // what others have written there. As for a pipe, there is no place to go to.
        answer(libc::SYS_lseek, Vec::new(), libc::ESPIPE)?,
        // The C library asks it of a new thread by its number, and goes on without an answer.
        answer(libc::SYS_sched_getaffinity, vec![of_others], libc::ENOSYS)?,
        filter(PROGRAM_CALLS, here, refused)?,
    ])
}

/// A filter that answers one call with an error.
fn answer(call: i64, when: Vec<SeccompRule>, error: i32) -> Result<BpfProgram, BackendError> {
    let error = SeccompAction::Errno(error.unsigned_abs());
    let calls = BTreeMap::from([(call, when)]);
    SeccompFilter::new(calls, SeccompAction::Allow, error, TargetArch::x86_64)?.try_into()
}
