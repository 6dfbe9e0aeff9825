//! The allow-list: every system call that is answered, with the grant that it
//! needs and the reason why it may be given. What is not here is `ENOSYS`.

use crate::call::Call;
use crate::errno::Answer;
use crate::program::Program;
use crate::{files, limits, memory, names, pipe, poll, process, time};

/// What a program must have been granted to make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Every program has it.
    Always,
    /// The clocks (`--clock`).
    Clock,
    /// At least one directory (`--dir`).
    Directory,
    /// Threads of its own (`--threads`).
    Threads,
}

impl Grant {
    pub(crate) fn is_given(self, program: &dyn Program) -> bool {
        match self {
            Grant::Always => true,
            Grant::Clock => program.has_clocks(),
            Grant::Directory => program.has_directories(),
            Grant::Threads => program.has_threads(),
        }
    }
}

/// One call that is answered.
pub struct Row {
    /// Linux' number of it on x86-64.
    pub number: u16,
    /// Its name.
    pub name: &'static str,
    /// What it needs.
    pub grant: Grant,
    /// Why it may be given to a program that has the grant.
    pub reason: &'static str,
    pub(crate) function: fn(&Call<'_>) -> Answer,
}

const fn row(
    number: u16,
    name: &'static str,
    grant: Grant,
    function: fn(&Call<'_>) -> Answer,
    reason: &'static str,
) -> Row {
    Row {
        number,
        name,
        grant,
        reason,
        function,
    }
}

const OWN: &str =
    "the descriptor is one of the program's own: a stream or a file that it was let open";
const MEMORY: &str = "pages of its own window, within its limit, never executable";
const SELF: &str =
    "its own end, its own threads, or a constant: there is one process, and nobody else";
const PIPE: &str = "bytes that the program hands to itself, 64 KiB at most for each pipe";
const BENEATH: &str = "names lead into granted directories only, and the kernel keeps them beneath";
const NAMED: &str =
    "as above, or a device that leads nowhere; without a directory there is no other name";
const CHANGE: &str =
    "beneath granted directories, and refused in directories granted for reading only";
const LOCK: &str =
    "files in directories that may be written, without their content, and never for a signal";
const OWNER: &str = "tells whether a file is there; it stays whose it is";
const TIME: &str = "time can be measured with it, which side channels need; so it is a grant";

const STARTED: &str =
    "as many as were granted, in its own window, under its limits, and they end with it";

use Grant::{Always, Clock, Directory, Threads};

/// The table, by number.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(0, "read", Always, files::read, OWN),
    row(1, "write", Always, files::write, OWN),
    row(2, "open", Always, names::open, NAMED),
    row(3, "close", Always, files::close, OWN),
    row(4, "stat", Always, names::stat, NAMED),
    row(5, "fstat", Always, files::fstat, OWN),
    row(6, "lstat", Always, names::lstat, NAMED),
    row(7, "poll", Always, poll::poll, OWN),
    row(8, "lseek", Always, files::lseek, OWN),
    row(9, "mmap", Always, memory::mmap, MEMORY),
    row(10, "mprotect", Always, memory::mprotect, MEMORY),
    row(11, "munmap", Always, memory::munmap, MEMORY),
    row(12, "brk", Always, memory::brk, MEMORY),
    row(13, "rt_sigaction", Always, process::rt_sigaction, SELF),
    row(14, "rt_sigprocmask", Always, process::rt_sigprocmask, SELF),
    row(16, "ioctl", Always, files::ioctl, "tells whether a stream is a terminal and how large; nothing else"),
    row(17, "pread64", Always, files::pread64, OWN),
    row(18, "pwrite64", Always, files::pwrite64, OWN),
    row(19, "readv", Always, files::readv, OWN),
    row(20, "writev", Always, files::writev, OWN),
    row(21, "access", Always, names::access, NAMED),
    row(22, "pipe", Always, pipe::pipe, PIPE),
    row(24, "sched_yield", Always, process::sched_yield, SELF),
    row(25, "mremap", Always, memory::mremap, MEMORY),
    row(28, "madvise", Always, memory::madvise, MEMORY),
    row(32, "dup", Always, files::dup, OWN),
    row(33, "dup2", Always, files::dup2, OWN),
    row(35, "nanosleep", Clock, time::nanosleep, TIME),
    row(39, "getpid", Always, process::own_number, SELF),
    row(56, "clone", Threads, process::clone, STARTED),
    row(60, "exit", Always, process::exit, SELF),
    row(61, "wait4", Always, limits::no_child, SELF),
    row(62, "kill", Always, process::kill, SELF),
    row(63, "uname", Always, process::uname, SELF),
    row(72, "fcntl", Always, files::fcntl, OWN),
    row(73, "flock", Directory, files::flock, LOCK),
    row(74, "fsync", Always, files::fsync, OWN),
    row(75, "fdatasync", Always, files::fsync, OWN),
    row(76, "truncate", Directory, names::truncate, CHANGE),
    row(77, "ftruncate", Always, files::ftruncate, OWN),
    row(79, "getcwd", Always, names::getcwd, SELF),
    row(80, "chdir", Directory, names::chdir, BENEATH),
    row(81, "fchdir", Directory, names::fchdir, BENEATH),
    row(82, "rename", Directory, names::rename, CHANGE),
    row(83, "mkdir", Directory, names::mkdir, CHANGE),
    row(84, "rmdir", Directory, names::rmdir, CHANGE),
    row(85, "creat", Always, names::creat, CHANGE),
    row(86, "link", Directory, names::link, CHANGE),
    row(87, "unlink", Directory, names::unlink, CHANGE),
    row(88, "symlink", Directory, names::symlink, CHANGE),
    row(89, "readlink", Directory, names::readlink, BENEATH),
    row(90, "chmod", Directory, names::chmod, CHANGE),
    row(91, "fchmod", Directory, files::fchmod, CHANGE),
    row(92, "chown", Directory, names::chown, OWNER),
    row(93, "fchown", Always, files::fchown, OWNER),
    row(94, "lchown", Directory, names::lchown, OWNER),
    row(95, "umask", Always, names::umask, SELF),
    row(96, "gettimeofday", Clock, time::gettimeofday, TIME),
    row(97, "getrlimit", Always, limits::getrlimit, SELF),
    row(98, "getrusage", Clock, limits::getrusage, TIME),
    row(99, "sysinfo", Always, limits::sysinfo, SELF),
    row(100, "times", Clock, limits::times, TIME),
    row(102, "getuid", Always, process::nobody, SELF),
    row(104, "getgid", Always, process::nobody, SELF),
    row(107, "geteuid", Always, process::nobody, SELF),
    row(108, "getegid", Always, process::nobody, SELF),
    row(110, "getppid", Always, process::zero, SELF),
    row(111, "getpgrp", Always, process::own_number, SELF),
    row(115, "getgroups", Always, process::zero, SELF),
    row(121, "getpgid", Always, process::own_number, SELF),
    row(124, "getsid", Always, process::own_number, SELF),
    row(160, "setrlimit", Always, limits::setrlimit, SELF),
    row(186, "gettid", Always, process::own_number, SELF),
    row(200, "tkill", Always, process::tkill, SELF),
    row(201, "time", Clock, time::time, TIME),
    row(202, "futex", Always, process::futex, SELF),
    row(204, "sched_getaffinity", Always, limits::sched_getaffinity, SELF),
    row(217, "getdents64", Directory, files::getdents64, BENEATH),
    row(218, "set_tid_address", Always, process::own_number, SELF),
    row(221, "fadvise64", Always, process::zero, SELF),
    row(228, "clock_gettime", Clock, time::clock_gettime, TIME),
    row(229, "clock_getres", Clock, time::clock_getres, TIME),
    row(230, "clock_nanosleep", Clock, time::clock_nanosleep, TIME),
    row(231, "exit_group", Always, process::exit, SELF),
    row(234, "tgkill", Always, process::tgkill, SELF),
    row(247, "waitid", Always, limits::no_child, SELF),
    row(257, "openat", Always, names::openat, NAMED),
    row(258, "mkdirat", Directory, names::mkdirat, CHANGE),
    row(260, "fchownat", Directory, names::fchownat, OWNER),
    row(262, "newfstatat", Always, names::newfstatat, NAMED),
    row(263, "unlinkat", Directory, names::unlinkat, CHANGE),
    row(264, "renameat", Directory, names::renameat, CHANGE),
    row(265, "linkat", Directory, names::linkat, CHANGE),
    row(266, "symlinkat", Directory, names::symlinkat, CHANGE),
    row(267, "readlinkat", Directory, names::readlinkat, BENEATH),
    row(268, "fchmodat", Directory, names::fchmodat, CHANGE),
    row(269, "faccessat", Always, names::faccessat, NAMED),
    row(271, "ppoll", Always, poll::ppoll, OWN),
    row(280, "utimensat", Directory, names::utimensat, CHANGE),
    row(292, "dup3", Always, files::dup3, OWN),
    row(293, "pipe2", Always, pipe::pipe2, PIPE),
    row(302, "prlimit64", Always, limits::prlimit64, SELF),
    row(316, "renameat2", Directory, names::renameat, CHANGE),
    row(318, "getrandom", Always, process::getrandom, "tells nothing of the host, and protects the program's own tables"),
    row(439, "faccessat2", Always, names::faccessat, NAMED),
];

/// The row of a number.
#[must_use]
pub fn row_of(number: u64) -> Option<&'static Row> {
    /// One more than each number's place in the table.
    static BY_NUMBER: [u8; 512] = {
        let (mut list, mut index) = ([0; 512], 0);
        while index < TABLE.len() {
            list[TABLE[index].number as usize] = index as u8 + 1;
            index += 1;
        }
        list
    };
    let place = BY_NUMBER.get(usize::try_from(number).ok()?)?;
    TABLE.get(usize::from(*place).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_have_reasons() {
        assert!(TABLE.is_sorted_by_key(|row| row.number));
        for row in TABLE {
            assert!(!row.reason.is_empty(), "{}", row.name);
            assert_eq!(
                row_of(u64::from(row.number)).map(|found| found.name),
                Some(row.name)
            );
        }
    }

    #[test]
    fn what_has_no_row_is_not_answered() {
        // fork, execve, socket, ptrace, mount, bpf, and numbers that are none.
        for number in [57, 59, 41, 101, 165, 321, 511, 512, u64::MAX] {
            assert!(row_of(number).is_none(), "{number}");
        }
    }
}
