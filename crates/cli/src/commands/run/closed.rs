//! A process for one program alone: the wall of types that want `language-and-process`, around the window.
//!
//! ```text
//!   mullion run --process ---- starts, waits, tells how it ended
//!     `-- the same command again: verified, admitted, loaded; then closed; then the program's first instruction
//! ```
//! Closed, the process has its memory, its three streams, clocks and its own end. It opens nothing, starts no process,
//! and finds no other one. A call that has no row in [`PROGRAM_CALLS`](mullion_closed::PROGRAM_CALLS) ends it.
//! The processes of modules of `mullion packets` close themselves in the same way (`packets/inside.rs`).

use super::FAULTED;
use crate::output::say;
use anyhow::Context as _;
use mullion_closed::close_program;
use rustix::process::{DumpableBehavior, Signal};
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

/// From here on the process has what that table lists. Its only thread calls this.
pub(super) fn close() -> anyhow::Result<()> {
    give_up()?;
    Ok(close_program()?)
}

/// All powers are gone, and no file can be opened: of the only thread, and of those that it starts.
pub(crate) fn give_up() -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    mullion_closed::drop_capabilities()?;
    // Files are refused twice, where this kernel has Landlock; the filter has no call that opens one.
    mullion_closed::drop_files().context("Landlock")?;
    Ok(())
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
}
