//! Processes that are hostile beyond what safe Rust allows: each asks Linux for one thing that a domain must
//! not have. That it is refused is the end of the domain by SIGSYS; whatever comes back is a failure.

use mullion_sip::process::exit;

/// Programs whose domain must end by SIGSYS.
pub(crate) const NAMES: &[&str] = &[
    "open",
    "stat",
    "unlink",
    "chdir",
    "socket",
    "connect",
    "fork",
    "thread",
    "execve",
    "ptrace",
    "kill",
    "signal_host",
    "write_memory",
    "map_code",
    "make_code",
    "write_control",
    "read_input",
    "duplicate",
    "ioctl",
    "io_uring",
    "limits",
    "namespace",
    "memory_file",
    "send_elsewhere",
    "receive_elsewhere",
    "outlive_host",
    "be_looked_into",
    "duplicate_otherwise",
    "perf",
    "bpf",
    "pin_host",
    "see_where_host_runs",
    "schedule_host",
    "clock_of_host",
    "locks_of_host",
    "lock_of_host",
    "seek_output",
    "seek_errors",
    "name_thread",
    "map_locked",
    "map_huge",
    "find_equal_pages",
];

/// Programs that find out what they have before the sandbox is closed, and which end well.
pub(crate) const OWN: &[&str] = &["inherited", "output"];

pub(crate) fn program(name: &str) -> Option<fn(u64)> {
    Some(match name {
        "open" => |_| {
            call(
                libc::SYS_openat,
                [libc::AT_FDCWD as i64, path(), 0, 0, 0, 0],
            )
        },
        "stat" => |_| {
            call(
                libc::SYS_newfstatat,
                [libc::AT_FDCWD as i64, path(), 0, 0, 0, 0],
            )
        },
        "unlink" => |_| call(libc::SYS_unlink, [path(), 0, 0, 0, 0, 0]),
        "chdir" => |_| call(libc::SYS_chdir, [path(), 0, 0, 0, 0, 0]),
        "socket" => |_| {
            call(
                libc::SYS_socket,
                [libc::AF_INET as i64, libc::SOCK_STREAM as i64, 0, 0, 0, 0],
            )
        },
        "connect" => |_| call(libc::SYS_connect, [3, 0, 0, 0, 0, 0]),
        "fork" => |_| call(libc::SYS_fork, [0; 6]),
        "thread" => |_| drop(std::thread::spawn(|| {})),
        "execve" => |_| call(libc::SYS_execve, [path(), 0, 0, 0, 0, 0]),
        "ptrace" => |_| {
            call(
                libc::SYS_ptrace,
                [libc::PTRACE_ATTACH as i64, 1, 0, 0, 0, 0],
            )
        },
        "kill" => |_| call(libc::SYS_kill, [1, 0, 0, 0, 0, 0]),
        "signal_host" => |host| {
            let host = host as i64;
            call(libc::SYS_tgkill, [host, host, 0, 0, 0, 0]);
        },
        "pin_host" => |host| {
            let all = [u8::MAX; 128];
            let all = all.as_ptr().addr() as i64;
            call(
                libc::SYS_sched_setaffinity,
                [host as i64, 128, all, 0, 0, 0],
            );
        },
        "see_where_host_runs" => |host| {
            let all = [0u8; 128];
            let all = all.as_ptr().addr() as i64;
            call(
                libc::SYS_sched_getaffinity,
                [host as i64, 128, all, 0, 0, 0],
            );
        },
        "schedule_host" => |host| {
            call(libc::SYS_sched_getscheduler, [host as i64, 0, 0, 0, 0, 0]);
        },
        // As Linux numbers the clock of an OS process: whosever it is.
        "clock_of_host" => |host| {
            let time = [0u64; 2];
            let clock = i64::from(!(host as i32) << 3 | 2);
            call(
                libc::SYS_clock_gettime,
                [clock, time.as_ptr().addr() as i64, 0, 0, 0, 0],
            );
        },
        "locks_of_host" => |host| {
            let [head, bytes] = [[0u64; 1]; 2].map(|word| word.as_ptr().addr() as i64);
            call(
                libc::SYS_get_robust_list,
                [host as i64, head, bytes, 0, 0, 0],
            );
        },
        // A lock that the host is said to have: it would inherit who waits for it.
        "lock_of_host" => |host| {
            let word = [host as u32];
            let soon = [0u64, 1];
            call(
                libc::SYS_futex,
                [
                    word.as_ptr().addr() as i64,
                    libc::FUTEX_LOCK_PI as i64,
                    0,
                    soon.as_ptr().addr() as i64,
                    0,
                    0,
                ],
            );
        },
        "seek_output" => |_| call(libc::SYS_lseek, [1, 0, libc::SEEK_SET as i64, 0, 0, 0]),
        "seek_errors" => |_| call(libc::SYS_lseek, [2, 0, libc::SEEK_END as i64, 0, 0, 0]),
        "name_thread" => |_| {
            call(
                libc::SYS_prctl,
                [libc::PR_SET_NAME as i64, path(), 0, 0, 0, 0],
            )
        },
        "map_locked" => |_| map(libc::MAP_LOCKED),
        "map_huge" => |_| map(libc::MAP_HUGETLB),
        "find_equal_pages" => |_| {
            let page = (mullion_sip::kernel::kernel().allocate_pages)(1 << 16).addr();
            let page = page.next_multiple_of(4096) as i64;
            call(
                libc::SYS_madvise,
                [page, 4096, libc::MADV_MERGEABLE as i64, 0, 0, 0],
            );
        },
        "write_memory" => |_| call(libc::SYS_process_vm_writev, [1, 0, 0, 0, 0, 0]),
        "map_code" => |_| {
            let (code, private) = (
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            call(
                libc::SYS_mmap,
                [0, 4096, code as i64, private as i64, -1, 0],
            );
        },
        "make_code" => |_| {
            let page = (mullion_sip::kernel::kernel().allocate_pages)(1 << 16).addr();
            let page = page.next_multiple_of(4096) as i64;
            call(
                libc::SYS_mprotect,
                [
                    page,
                    4096,
                    (libc::PROT_READ | libc::PROT_EXEC) as i64,
                    0,
                    0,
                    0,
                ],
            );
        },
        "write_control" => |_| call(libc::SYS_write, [3, path(), 1, 0, 0, 0]),
        "read_input" => |_| call(libc::SYS_read, [0, path(), 0, 0, 0, 0]),
        "duplicate" => |_| call(libc::SYS_dup2, [3, 1, 0, 0, 0, 0]),
        "ioctl" => |_| call(libc::SYS_ioctl, [1, libc::TIOCSTI as i64, path(), 0, 0, 0]),
        "io_uring" => |_| call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0, 0]),
        "limits" => |_| call(libc::SYS_prlimit64, [0, 0, 0, 0, 0, 0]),
        "namespace" => |_| {
            call(
                libc::SYS_unshare,
                [libc::CLONE_NEWUSER as i64, 0, 0, 0, 0, 0],
            )
        },
        "memory_file" => |_| call(libc::SYS_memfd_create, [path(), 0, 0, 0, 0, 0]),
        "send_elsewhere" => |_| call(libc::SYS_sendmsg, [1, 0, 0, 0, 0, 0]),
        "receive_elsewhere" => |_| call(libc::SYS_recvmsg, [1, 0, 0, 0, 0, 0]),
        "outlive_host" => |_| {
            call(
                libc::SYS_prctl,
                [libc::PR_SET_PDEATHSIG as i64, 0, 0, 0, 0, 0],
            )
        },
        "be_looked_into" => |_| {
            call(
                libc::SYS_prctl,
                [libc::PR_SET_DUMPABLE as i64, 1, 0, 0, 0, 0],
            )
        },
        "duplicate_otherwise" => |_| call(libc::SYS_fcntl, [1, libc::F_DUPFD as i64, 9, 0, 0, 0]),
        "perf" => |_| call(libc::SYS_perf_event_open, [0; 6]),
        "bpf" => |_| call(libc::SYS_bpf, [0; 6]),
        "abort" => |_| std::process::abort(),
        "inherited" => return inherited(),
        "output" => return output(),
        "speaker" => speak,
        _ => return None,
    })
}

fn map(how: i32) {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | how;
    call(
        libc::SYS_mmap,
        [0, 1 << 21, libc::PROT_READ as i64, kind as i64, -1, 0],
    );
}

fn path() -> i64 {
    c"/etc/passwd".as_ptr().addr() as i64
}

/// Comes back only if Linux was asked in earnest.
fn call(number: i64, arguments: [i64; 6]) {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: none of the calls changes memory of this program in a way that anybody would notice before it ends.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    println!("system call {number} was answered: {answer}");
    exit(77);
}

/// Before the sandbox is closed: whether anything is open but the three and the control socket.
fn inherited() -> Option<fn(u64)> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?;
    let known = |entry: &std::io::Result<std::fs::DirEntry>| {
        let target = entry
            .as_ref()
            .ok()
            .and_then(|entry| std::fs::read_link(entry.path()).ok());
        let target = target.unwrap_or_default().display().to_string();
        !target.contains("passwd")
    };
    let count = open.filter(|entry| {
        assert!(known(entry), "the host's file");
        true
    });
    // The three, the socket, and the directory itself.
    (count.count() <= 5).then_some(|_| {})
}

/// Before the sandbox is closed: whether the outputs are pipes; and afterwards, that nothing maps them.
fn output() -> Option<fn(u64)> {
    for number in [1, 2] {
        let file = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        if !file.to_string_lossy().starts_with("pipe:") {
            return None;
        }
    }
    Some(|_| {
        for number in 0..64 {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping, if any.
            let mapped = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    4096,
                    rights,
                    libc::MAP_SHARED,
                    number,
                    0,
                )
            };
            assert_eq!(mapped, libc::MAP_FAILED, "descriptor {number}");
        }
    })
}

/// Lines of `speak`.
pub(crate) const LINES: u32 = 20_000;

/// Says more than a pipe holds, and ends.
fn speak(_: u64) {
    for line in 0..LINES {
        println!("line {line} of what a domain says");
    }
    eprintln!("and an error");
}
