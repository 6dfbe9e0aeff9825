//! The process of a module behind the wall of a process, as `mullion packets inside` is it.

use mullion_packets::process;
use std::fs::File;

/// Is the process, until the forwarder ends it.
pub(crate) fn run(told: &str) -> Result<(), String> {
    fn said(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let give_up = || {
        let nothing = File::open("/dev/null").map_err(said)?;
        rustix::stdio::dup2_stdin(&nothing).map_err(said)?;
        rustix::stdio::dup2_stdout(&nothing).map_err(said)?;
        rustix::thread::set_no_new_privs(true).map_err(said)?;
        mullion_closed::drop_capabilities().map_err(said)?;
        mullion_closed::drop_files().map(drop).map_err(said)
    };
    process::inside(told, give_up, || {
        mullion_closed::close_program().map_err(said)
    })
}
