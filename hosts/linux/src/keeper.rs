//! Ends a machine, whatever becomes of the process that has started it.
//!
//! ```text
//!   this process ──pipe──► keeper: a line comes: the machine has ended by itself
//!                                  the pipe is closed: kill -KILL the machine's group
//! ```
//!
//! The kernel of a machine traces the processes of its programs. If the kernel alone is killed, they run on, freely and for
//! ever. So a signal at the death of the parent (`PR_SET_PDEATHSIG`) is not enough: the whole group has to go.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "read -r _ || kill -s KILL -- -\"$1\"";

/// Ends a group of processes when it is dropped, or when its process is no more.
pub(crate) struct Keeper(Child);

impl Keeper {
    /// Of the group that this process leads.
    pub(crate) fn of(leader: u32) -> io::Result<Keeper> {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", PROGRAM, "keeper", &leader.to_string()]);
        // A terminal that ends this process's group leaves the keeper alone.
        keeper.stdin(Stdio::piped()).process_group(0);
        keeper.spawn().map(Keeper)
    }

    /// The group has ended by itself.
    pub(crate) fn leaves(mut self) -> io::Result<()> {
        let told = self.0.stdin.take().map(|mut to| to.write_all(b"\n"));
        self.0.wait()?;
        told.unwrap_or(Ok(()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The group has gone when the keeper has. After `leaves` this answers at once.
        let _ended = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("60").process_group(0);
        sleeper.spawn().expect("a process")
    }

    #[test]
    fn a_group_ends_with_its_keeper() {
        let mut sleeper = sleeper();
        drop(Keeper::of(sleeper.id()).expect("a keeper"));
        let status = sleeper.wait().expect("its end");
        assert_eq!(status.code(), None, "{status}");
    }

    #[test]
    fn a_keeper_that_leaves_ends_nothing() {
        let mut sleeper = sleeper();
        let keeper = Keeper::of(sleeper.id()).expect("a keeper");
        keeper.leaves().expect("its end");
        assert!(sleeper.try_wait().expect("a look").is_none());
        sleeper.kill().expect("a signal");
        sleeper.wait().expect("its end");
    }
}
