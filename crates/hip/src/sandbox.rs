//! What an OS process of a domain may still ask of Linux, once its programs are loaded: memory without
//! code, time, sleep, its own end, and its control socket. Everything else ends it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// What holds a domain in, on this kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// Landlock refuses files as well. Where it is absent, the system call filter alone does.
    pub landlock: bool,
}

/// What Linux lets every thread of a domain ask without a condition.
const ALLOWED: &[i64] = &[
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // What a thread of the kernel that is just starting does for itself.
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sched_setaffinity,
    // Of descriptors there are the standard ones, the control socket, and memory while it is being mapped.
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Before anything else in a new OS process: it ends with the host's thread that made it, nobody may look
/// into it, no signal of the terminal reaches it, no privilege comes back, and no file of its memory is left.
pub(crate) fn prepare() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::setsid()?;
    rustix::thread::set_no_new_privs(true)?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    // If memory runs out, it is a domain that goes first. Without /proc it is not.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// No file and no port is opened from here on, by the calling thread and those it starts. False without Landlock.
pub(crate) fn close_files() -> io::Result<bool> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(|rules| rules.create()?.restrict_self())
        .map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Whether Landlock is there, tried in a thread of its own.
pub fn sandbox_of_this_kernel() -> Sandbox {
    let tried = std::thread::spawn(close_files).join();
    Sandbox {
        landlock: matches!(tried, Ok(Ok(true))),
    }
}

/// From here on the filter holds for all threads.
pub(crate) fn close_calls(control: BorrowedFd<'_>) -> io::Result<()> {
    let program = filter(control.as_raw_fd()).map_err(io::Error::other)?;
    apply_filter_all_threads(&program).map_err(io::Error::other)
}

fn filter(control: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let is = |argument, value: u64| {
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            value,
        )?])
    };
    // Memory is never made to run.
    let no_code = || {
        SeccompRule::new(vec![SeccompCondition::new(
            2,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64),
            0,
        )?])
    };
    rules.insert(libc::SYS_mmap, vec![no_code()?]);
    rules.insert(libc::SYS_mprotect, vec![no_code()?]);
    // Output, as the host has arranged it.
    for call in [libc::SYS_write, libc::SYS_writev] {
        rules.insert(call, vec![is(0, 1)?, is(0, 2)?]);
    }
    // The control socket.
    for call in [libc::SYS_sendmsg, libc::SYS_recvmsg] {
        rules.insert(call, vec![is(0, control as u64)?]);
    }
    // Whether memory can shrink; the standard library of a debug build asks before it closes a descriptor.
    let asks = [libc::F_GET_SEALS, libc::F_GETFD].map(|command| is(1, command as u64));
    rules.insert(libc::SYS_fcntl, asks.into_iter().collect::<Result<_, _>>()?);
    // The name of a thread, and of its memory.
    let names = [libc::PR_SET_NAME, libc::PR_SET_VMA];
    let names = names.map(|name| is(0, name as u64));
    rules.insert(
        libc::SYS_prctl,
        names.into_iter().collect::<Result<_, _>>()?,
    );
    // Signals to threads of its own: the kernel's watch, and `abort`.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![is(0, own)?]);
    SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        TargetArch::x86_64,
    )?
    .try_into()
}
