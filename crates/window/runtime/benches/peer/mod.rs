//! The other wall: a process that answers each byte with a byte, over two pipes.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The argument with which this program plays the other process.
pub(crate) const ANSWER: &str = "--answer";

/// A process to ask.
pub(crate) struct Peer {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Peer {
    /// Starts this very program as the peer.
    pub(crate) fn start() -> std::io::Result<Peer> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(ANSWER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (to, from) = ends.ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Peer { child, to, from })
    }

    /// There and back.
    pub(crate) fn ask(&mut self) -> std::io::Result<()> {
        self.to.write_all(&[1])?;
        self.to.flush()?;
        self.from.read_exact(&mut [0])
    }

    /// Ends it.
    pub(crate) fn stop(self) -> std::io::Result<()> {
        let Peer { mut child, to, .. } = self;
        drop(to);
        child.wait().map(drop)
    }
}

/// Answers until nobody asks any more.
pub(crate) fn answer() {
    let (mut from, mut to) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(b"\n").is_ok() && to.flush().is_ok() {}
}
