//! What an OS process of a domain may still ask of Linux, once its programs are loaded. It has memory without
//! code, time, sleep, its own end, and its control socket. Everything else ends it.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

/// What holds a domain in, on this kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// Landlock refuses files as well. Where it is absent, the system call filter alone does.
    pub landlock: bool,
}

/// Before anything else in a new OS process: it ends with the host's thread that made it, nobody may look
/// into it, no signal of the terminal reaches it, no privilege comes back, and no file of its memory is left.
pub(crate) fn prepare() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Not a session of its own: Linux shares out a processor by sessions first (autogroup), and a domain that gives the
    // processor away to its host would give it to its own session only.
    rustix::process::setpgid(None, None)?;
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

/// Whether Landlock is there, tried in a thread of its own.
pub fn sandbox_of_this_kernel() -> Sandbox {
    let tried = std::thread::spawn(mullion_closed::drop_files).join();
    Sandbox {
        landlock: matches!(tried, Ok(Ok(true))),
    }
}
