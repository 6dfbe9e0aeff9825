//! Which calls of Linux a domain still has, once its programs are loaded: one table. A hardware isolated process closes
//! itself by it.

use crate::call::{Call, RIGHTS, When, call};

const OUTPUTS: &[u32] = &[1, 2];
const MAPPINGS: u32 = (libc::MAP_SHARED
    | libc::MAP_PRIVATE
    | libc::MAP_FIXED
    | libc::MAP_ANONYMOUS
    | libc::MAP_NORESERVE) as u32;
const ADVICE: &[u32] = &[libc::MADV_DONTNEED as u32, libc::MADV_REMOVE as u32];
/// What a futex is asked: to wait and to wake, and on which clock and in whose memory.
const FUTEX: &[u32] = &[
    libc::FUTEX_WAIT as u32,
    libc::FUTEX_WAKE as u32,
    libc::FUTEX_WAIT_BITSET as u32,
    (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u32,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32,
];
/// Clocks of the machine and of the caller. Numbers with the topmost bit are clocks of others.
pub(crate) const CLOCKS: &[u32] = &[
    libc::CLOCK_REALTIME as u32,
    libc::CLOCK_MONOTONIC as u32,
    libc::CLOCK_PROCESS_CPUTIME_ID as u32,
    libc::CLOCK_THREAD_CPUTIME_ID as u32,
    libc::CLOCK_MONOTONIC_RAW as u32,
    libc::CLOCK_BOOTTIME as u32,
];
/// Clocks by which a thread sleeps.
const SLEEP_CLOCKS: &[u32] = &[libc::CLOCK_REALTIME as u32, libc::CLOCK_MONOTONIC as u32];
/// How Linux numbers the clock of one thread: 6 in the lowest three bits, the topmost bit set. With 2 instead of 6 it
/// is a whole process's, and any process's; with 3 a device's.
pub(crate) const THREAD_CLOCK: (u32, u32) = (1 << 31 | 6, 1 << 31 | 7);

/// From Linux 6.7 on. They do no more than `FUTEX_WAKE` and `FUTEX_WAIT`, and have no operation to be looked at. So their rows have
/// no condition, and Linux lets them through without running the filter.
const SYS_FUTEX_WAKE: i64 = 454;
const SYS_FUTEX_WAIT: i64 = 455;
const WORDS: &str = "names words of memory that the caller has mapped; it has no other operation";
const OWN_MEMORY: &str = "names addresses of the caller's";
const OWN_THREAD: &str = "takes nobody's number: the calling thread alone";

/// The row of both tables: with any other clock, another OS process's would be named.
pub(crate) const CLOCK_NANOSLEEP: Call = call(
    libc::SYS_clock_nanosleep,
    "clock_nanosleep",
    &[When::Is(0, SLEEP_CLOCKS)],
    "to sleep",
    "two clocks of the machine; the calling thread alone sleeps",
);

/// What a domain may still ask of Linux, when its programs are loaded. There is one row for each call and way to ask; a
/// call that is in no row ends the domain by SIGSYS.
pub const DOMAIN_CALLS: &[Call] = &[
    call(
        libc::SYS_futex,
        "futex",
        &[When::Is(1, FUTEX)],
        "to sleep and to wake",
        "names words of memory that the caller has mapped; without the operations on locks that take a thread's number from \
         such a word, and have it inherit a priority, whoever's it is",
    ),
    call(SYS_FUTEX_WAKE, "futex_wake", &[], "to wake a peer", WORDS),
    call(
        SYS_FUTEX_WAIT,
        "futex_wait",
        &[],
        "to sleep on a peer's bell",
        WORDS,
    ),
    call(
        libc::SYS_futex_waitv,
        "futex_waitv",
        &[
            When::Is(2, &[0]),
            When::Is(4, &[libc::CLOCK_MONOTONIC as u32]),
        ],
        "to sleep on all bells at once",
        "names words of memory that the caller has mapped",
    ),
    call(
        libc::SYS_mmap,
        "mmap",
        &[When::Within(2, RIGHTS), When::Within(3, MAPPINGS)],
        "heaps, stacks, and the lines that the host sends",
        "maps anew, or a file that the caller has: pipes, sockets and /dev/null cannot be mapped. Never to run, never locked, \
         never of the machine's huge pages",
    ),
    call(
        libc::SYS_mprotect,
        "mprotect",
        &[When::Within(2, RIGHTS)],
        "stacks' last pages, and blocks that are remapped",
        OWN_MEMORY,
    ),
    call(libc::SYS_munmap, "munmap", &[], "memory", OWN_MEMORY),
    call(
        libc::SYS_mremap,
        "mremap",
        &[When::Is(3, &[libc::MREMAP_MAYMOVE as u32])],
        "the C library's `realloc`",
        OWN_MEMORY,
    ),
    call(
        libc::SYS_madvise,
        "madvise",
        &[When::Is(2, ADVICE)],
        "to give pages back",
        "names addresses of the caller's; without the advice that takes pages from the machine (`MADV_HWPOISON`)",
    ),
    call(libc::SYS_brk, "brk", &[], "memory", OWN_MEMORY),
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
        "how long a process has run, for its limit",
        "a thread's clock, which Linux shows to threads of the same OS process alone; a whole process's it would show to all",
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
        "to let a peer run",
        OWN_THREAD,
    ),
    call(
        libc::SYS_getrandom,
        "getrandom",
        &[When::Is(2, &[0, libc::GRND_NONBLOCK, libc::GRND_INSECURE])],
        "random numbers",
        "names nothing",
    ),
    call(libc::SYS_gettid, "gettid", &[], "`abort`", OWN_THREAD),
    call(
        libc::SYS_getpid,
        "getpid",
        &[],
        "`abort`, and the watch",
        OWN_THREAD,
    ),
    call(
        libc::SYS_tgkill,
        "tgkill",
        &[When::Own(0)],
        "the watch interrupts a worker; `abort`",
        "Linux finds threads of the named OS process only: the caller's",
    ),
    call(
        libc::SYS_rt_sigaction,
        "rt_sigaction",
        &[],
        "a signal that another handler is to have",
        "names no OS process: the caller's own handlers",
    ),
    call(
        libc::SYS_rt_sigprocmask,
        "rt_sigprocmask",
        &[],
        "`abort`",
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
        "the end of a thread",
        OWN_THREAD,
    ),
    call(
        libc::SYS_write,
        "write",
        &[When::Is(0, OUTPUTS)],
        "output",
        "two pipes that the host reads, or nowhere",
    ),
    call(
        libc::SYS_writev,
        "writev",
        &[When::Is(0, OUTPUTS)],
        "output",
        "two pipes that the host reads, or nowhere",
    ),
    call(
        libc::SYS_sendmsg,
        "sendmsg",
        &[When::Control(0)],
        "what it asks of the host",
        "a connected socket, which Linux lets send to its peer alone",
    ),
    call(
        libc::SYS_recvmsg,
        "recvmsg",
        &[When::Control(0)],
        "what the host answers",
        "a connected socket; what comes along is the host's choice: memory",
    ),
    call(
        libc::SYS_lseek,
        "lseek",
        &[
            When::Memory(0),
            When::Zero(1),
            When::Is(2, &[libc::SEEK_END as u32]),
        ],
        "how long memory is that the host has sent",
        "moves the position in memory to its end, where everybody who asks has moved it; nobody reads or writes by it",
    ),
    call(
        libc::SYS_fcntl,
        "fcntl",
        &[When::Is(
            1,
            &[libc::F_GETFD as u32, libc::F_GET_SEALS as u32],
        )],
        "whether memory can shrink; a debug build asks before it closes a descriptor",
        "only asks, of what the caller has",
    ),
    call(
        libc::SYS_close,
        "close",
        &[],
        "descriptors of memory that is mapped",
        "the caller's own descriptor; the file stays for whoever else has it",
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
