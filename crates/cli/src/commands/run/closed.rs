//! A process for one program alone: the wall of types that want `language-and-process`, around the window.
//!
//! ```text
//!   mullion run --process ---- starts, waits, tells how it ended
//!     `-- the same command again: verified, admitted, loaded; then closed; then the program's first instruction
//! ```
//! Closed, the process has its memory, its three streams, clocks and its own end. It opens nothing, starts no process,
//! and finds no other one. A call that is not in the table below ends it.
//! The processes of modules of `mullion packets` close themselves in the same way (`packets/inside.rs`).

use super::FAULTED;
use crate::output::say;
use anyhow::Context as _;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, Le, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs this very command line in a process of its own, which will close itself.
pub(super) fn start(path: &Path) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe()?;
    let status = Command::new(own)
        .args(closing(std::env::args_os().skip(1)))
        .status()
        .context("a process of its own")?;
    if let Some(code) = status.code() {
        return Ok(ExitCode::from(code as u8));
    }
    let signal = status.signal().unwrap_or_default();
    let what = match Signal::from_named_raw(signal) {
        Some(Signal::SYS) => "its process asked the system for what it may not".to_owned(),
        _ => format!("its process was ended by signal {signal}"),
    };
    say(format_args!("mullion: {}: {what}", path.display()));
    Ok(ExitCode::from(FAULTED))
}

/// The arguments of this command, for the process inside.
fn closing(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut replaced = false;
    let inside = |argument: OsString| match argument == "--process" && !replaced {
        true => {
            replaced = true;
            "--process-inside".into()
        }
        false => argument,
    };
    arguments.map(inside).collect()
}

/// From here on the process has what is listed below. Its only thread calls this.
pub(super) fn close() -> anyhow::Result<()> {
    give_up()?;
    filter_calls()
}

/// All powers are gone, and no file can be opened: of the only thread, and of those that it starts.
pub(crate) fn give_up() -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)?;
    // Files are refused twice, where this kernel has Landlock; the filter has no call that opens one.
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(|rules| rules.create()?.restrict_self())
        .context("Landlock")?;
    Ok(())
}

/// What is not in the table below ends the process from here on, whichever thread asks.
pub(crate) fn filter_calls() -> anyhow::Result<()> {
    for each in filters(SeccompAction::KillProcess)? {
        apply_filter_all_threads(&each)?;
    }
    Ok(())
}

/// What is asked of the system from here on. The strictest answer counts.
fn filters(refused: SeccompAction) -> anyhow::Result<[BpfProgram; 4]> {
    let answer = |call: i64, when: Vec<SeccompRule>, error: Errno| {
        let error = SeccompAction::Errno(error.raw_os_error().unsigned_abs());
        filter(BTreeMap::from([(call, when)]), error, SeccompAction::Allow)
    };
    let of_others = SeccompRule::new(vec![SeccompCondition::new(0, Dword, Ne, 0)?])?;
    Ok([
        // Linux shows the filter no argument of `clone3`. Refused so, the C library calls `clone`.
        answer(CLONE3, Vec::new(), Errno::NOSYS)?,
        // The streams are the caller's own files, as its shell has opened them. Who could go back in one would write over
        // what others have written there. As for a pipe, there is no place to go to.
        answer(SEEK, Vec::new(), Errno::SPIPE)?,
        // The C library asks it of a new thread by its number, and goes on without an answer.
        answer(AFFINITY, vec![of_others], Errno::NOSYS)?,
        filter(rules()?, SeccompAction::Allow, refused)?,
    ])
}

/// A filter that does one thing with these calls, and another with all others.
fn filter(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    with_them: SeccompAction,
    with_others: SeccompAction,
) -> anyhow::Result<BpfProgram> {
    let filter = SeccompFilter::new(calls, with_others, with_them, TargetArch::x86_64)?;
    Ok(filter.try_into()?)
}

/// A condition on an argument, by its place from 0.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// One of the three streams.
    Stream,
    Is(u8, u32),
    /// None but these bits.
    Within(u8, u32),
    /// As `mmap`: nothing is made to run, and no file is mapped.
    Anonymous,
    /// This process.
    Own(u8),
}

/// Numbers on x86-64, which do not change.
const CLONE3: i64 = 435;
const SEEK: i64 = 8;
const AFFINITY: i64 = 204;
/// `PROT_READ | PROT_WRITE`: nothing is made to run.
const RIGHTS: u32 = 3;
/// A thread of this process, as the C library makes one (`CLONE_THREAD` and what it needs).
const THREAD: u32 = 0x003d_0f00;
/// `PR_SET_NAME`: of the calling thread.
const SET_NAME: u32 = 15;
/// `PR_GET_AUXV`.
const GET_AUXV: u32 = 0x4155_5856;
/// `TCGETS`, `TIOCGWINSZ`: whether a stream is a terminal.
const IS_TERMINAL: [u32; 2] = [0x5401, 0x5413];
/// `F_GETFD`, `F_GETFL`.
const GET_FLAGS: [u32; 2] = [1, 3];

/// What the run time and the three streams need. Nothing here takes a name, or another process's number.
const CALLS: &[(i64, &str, When)] = &[
    (0, "read", When::Is(0, 0)),
    (19, "readv", When::Is(0, 0)),
    (1, "write", When::Stream),
    (20, "writev", When::Stream),
    (5, "fstat", When::Always),
    (SEEK, "lseek", When::Stream),
    (7, "poll", When::Always),
    (271, "ppoll", When::Always),
    (72, "fcntl", When::Is(1, GET_FLAGS[0])),
    (72, "fcntl", When::Is(1, GET_FLAGS[1])),
    (16, "ioctl", When::Is(1, IS_TERMINAL[0])),
    (16, "ioctl", When::Is(1, IS_TERMINAL[1])),
    (3, "close", When::Always),
    (9, "mmap", When::Anonymous),
    (10, "mprotect", When::Within(2, RIGHTS)),
    (11, "munmap", When::Always),
    (12, "brk", When::Always),
    (25, "mremap", When::Always),
    (28, "madvise", When::Always),
    (228, "clock_gettime", When::Always),
    (229, "clock_getres", When::Always),
    (230, "clock_nanosleep", When::Always),
    (35, "nanosleep", When::Always),
    (219, "restart_syscall", When::Always),
    (24, "sched_yield", When::Always),
    (202, "futex", When::Always),
    (318, "getrandom", When::Always),
    (13, "rt_sigaction", When::Always),
    (14, "rt_sigprocmask", When::Always),
    (15, "rt_sigreturn", When::Always),
    (131, "sigaltstack", When::Always),
    (39, "getpid", When::Always),
    (186, "gettid", When::Always),
    (234, "tgkill", When::Own(0)),
    // The watch of limits is a thread, which starts with the first call.
    (CLONE3, "clone3", When::Always),
    (56, "clone", When::Is(0, THREAD)),
    (273, "set_robust_list", When::Always),
    (334, "rseq", When::Always),
    (AFFINITY, "sched_getaffinity", When::Always),
    (314, "sched_setattr", When::Is(0, 0)),
    (324, "membarrier", When::Always),
    (157, "prctl", When::Is(0, GET_AUXV)),
    (157, "prctl", When::Is(0, SET_NAME)),
    (60, "exit", When::Always),
    (231, "exit_group", When::Always),
];

fn rules() -> anyhow::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (number, _, when) in CALLS {
        let known = rules.entry(*number).or_default();
        let conditions = match *when {
            When::Always => continue,
            When::Stream => vec![(0, Le, 2)],
            When::Is(place, value) => vec![(place, Eq, value.into())],
            When::Within(place, bits) => vec![(place, MaskedEq(u64::from(!bits)), 0)],
            When::Anonymous => vec![
                (2, MaskedEq(u64::from(!RIGHTS)), 0),
                (4, Eq, u32::MAX.into()),
            ],
            When::Own(place) => vec![(place, Eq, std::process::id().into())],
        };
        let conditions = conditions
            .into_iter()
            .map(|(place, operation, value)| SeccompCondition::new(place, Dword, operation, value));
        known.push(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_alone_is_ours() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            closing(words("run --process a.mx --process").into_iter()),
            words("run --process-inside a.mx --process")
        );
    }

    /// With an error in the place of the end, in a thread alone.
    #[test]
    fn nothing_is_opened_started_or_run() {
        let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
        let tried = std::thread::spawn(move || {
            let error = SeccompAction::Errno(Errno::PERM.raw_os_error().unsigned_abs());
            for each in filters(error).expect("filters") {
                seccompiler::apply_filter(&each).expect("it holds");
            }
            assert!(std::fs::File::open("/dev/null").is_err_and(refused));
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err_and(refused));
            assert!(std::fs::metadata("/").is_err_and(refused));
            let own = rustix::process::getpid();
            assert_eq!(rustix::process::test_kill_process(own), Err(Errno::PERM));
            assert_eq!(rustix::io::dup(std::io::stdin()).err(), Some(Errno::PERM));
            assert!(
                rustix::rand::getrandom(&mut [0u8; 8], rustix::rand::GetRandomFlags::empty())
                    .is_ok()
            );
        });
        tried.join().expect("as expected");
    }

    /// What Linux would answer, by a second reading of the program: the few instructions that filters are made of.
    fn answer(program: &BpfProgram, call: i64, arguments: [u64; 6]) -> u32 {
        const X86_64: u32 = 0xc000_003e;
        let mut data = vec![call as u32, X86_64, 0, 0];
        data.extend(
            arguments
                .iter()
                .flat_map(|word| [*word as u32, (word >> 32) as u32]),
        );
        let (mut at, mut value) = (0, 0u32);
        loop {
            let one = &program[at];
            let jump = |taken: bool| at + 1 + usize::from(if taken { one.jt } else { one.jf });
            at = match one.code {
                0x20 => {
                    value = data[one.k as usize / 4];
                    at + 1
                }
                0x54 => {
                    value &= one.k;
                    at + 1
                }
                0x05 => at + 1 + one.k as usize,
                0x15 => jump(value == one.k),
                0x25 => jump(value > one.k),
                0x35 => jump(value >= one.k),
                0x06 => return one.k,
                other => panic!("instruction {other:#x}"),
            };
        }
    }

    #[test]
    fn the_callers_files_are_written_at_their_end_and_in_no_other_way() {
        let [_, seek, affinity, calls] = filters(SeccompAction::Trap).expect("filters");
        let [allowed, refused] = [0x7fff_0000, 0x0003_0000];
        let [private, shared] = [2, 1];
        let [read, write, run] = [1, 2, 4];
        let map = |rights: u64, flags: u64, file: u64| {
            answer(&calls, 9, [0, 4096, rights, flags, file, 0])
        };
        assert_eq!(map(read | write, private | 0x20, u64::MAX), allowed);
        assert_eq!(map(read | write, shared, 1), refused);
        assert_eq!(map(read, private, 1), refused);
        assert_eq!(map(read | run, private | 0x20, u64::MAX), refused);
        assert_eq!(
            answer(&calls, 10, [0, 4096, read | write, 0, 0, 0]),
            allowed
        );
        assert_eq!(answer(&calls, 10, [0, 4096, read | run, 0, 0, 0]), refused);
        let no_place = 0x0005_0000 | Errno::SPIPE.raw_os_error().unsigned_abs();
        assert_eq!(answer(&seek, SEEK, [1, 0, 0, 0, 0, 0]), no_place);
        let not_there = 0x0005_0000 | Errno::NOSYS.raw_os_error().unsigned_abs();
        for (process, expected) in [(0, allowed), (1, not_there), (1 << 32 | 1, not_there)] {
            let found = answer(&affinity, AFFINITY, [process, 8, 0, 0, 0, 0]);
            assert_eq!(found, expected, "{process}");
        }
        assert_eq!(answer(&calls, 1, [1, 0, 1, 0, 0, 0]), allowed);
        // `pwrite64`, `ftruncate`, `sendfile`, `copy_file_range`.
        for call in [18, 77, 40, 326] {
            assert_eq!(answer(&calls, call, [1, 0, 0, 0, 0, 0]), refused, "{call}");
        }
    }
}
