//! Pipes as data: bytes that a program hands to itself.
//!
//! Each end of a pipe is alive as long as a descriptor or a call has it.

use crate::errno::Errno;
use crate::handle::STAT;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// Most bytes in a pipe, as Linux has it.
pub(crate) const ROOM: usize = 1 << 16;
/// So many bytes are written at once or not at all (`PIPE_BUF`).
pub(crate) const WHOLE: usize = 4096;

/// What can be done with a descriptor, as `poll` says it.
pub(crate) const IN: u16 = 1;
pub(crate) const OUT: u16 = 4;
pub(crate) const ERROR: u16 = 8;
pub(crate) const HANGUP: u16 = 0x10;

/// One end of a pipe.
#[derive(Clone, Debug)]
pub(crate) struct End {
    number: usize,
    write: bool,
    life: Arc<()>,
}

/// The pipes of a program.
#[derive(Default)]
pub(crate) struct Pipes(Vec<Pipe>);

/// A pipe.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) bytes: VecDeque<u8>,
    /// The ends for reading and for writing.
    lives: [Weak<()>; 2],
    /// Of each: whether a call does not wait.
    pub(crate) hurried: [bool; 2],
}

/// What was found when an end was looked at.
pub(crate) enum Look {
    /// What has come of the call.
    Done(usize),
    /// Nothing can be done yet.
    Wait,
    /// Nothing can be done yet, and this end does not wait.
    Hurry,
    /// The other end is gone.
    Gone,
}

impl Pipe {
    /// Whether an end is open.
    pub(crate) fn lives(&self, write: bool) -> bool {
        self.lives[usize::from(write)].strong_count() > 0
    }

    fn waits(&self, write: bool) -> Look {
        match self.hurried[usize::from(write)] {
            true => Look::Hurry,
            false => Look::Wait,
        }
    }

    /// Moves bytes out.
    pub(crate) fn take(&mut self, to: &mut Vec<u8>, most: usize) -> Look {
        if self.bytes.is_empty() {
            return match self.lives(true) {
                true => self.waits(false),
                false => Look::Gone,
            };
        }
        let count = most.min(self.bytes.len());
        to.extend(self.bytes.drain(..count));
        Look::Done(count)
    }

    /// Moves bytes in.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Look {
        if !self.lives(false) {
            return Look::Gone;
        }
        let room = ROOM.saturating_sub(self.bytes.len());
        let least = match bytes.len() <= WHOLE {
            true => bytes.len(),
            false => 1,
        };
        if room < least {
            return self.waits(true);
        }
        let count = room.min(bytes.len());
        self.bytes.extend(bytes.iter().take(count));
        Look::Done(count)
    }
}

impl Pipes {
    /// A pipe: its end for reading, and its end for writing.
    pub(crate) fn make(&mut self, hurried: bool) -> [End; 2] {
        let free = self
            .0
            .iter()
            .position(|p| !p.lives(false) && !p.lives(true));
        let number = free.unwrap_or_else(|| {
            self.0.push(Pipe::default());
            self.0.len() - 1
        });
        let ends = [false, true].map(|write| End {
            number,
            write,
            life: Arc::new(()),
        });
        if let Some(pipe) = self.0.get_mut(number) {
            *pipe = Pipe {
                bytes: VecDeque::new(),
                lives: [0, 1].map(|end: usize| Arc::downgrade(&ends[end].life)),
                hurried: [hurried; 2],
            };
        }
        ends
    }

    /// The pipe of an end.
    pub(crate) fn of(&mut self, end: &End) -> Result<&mut Pipe, Errno> {
        self.0.get_mut(end.number).ok_or(Errno::BADF)
    }
}

impl End {
    /// Whether it is the one that is written to.
    pub(crate) fn writes(&self) -> bool {
        self.write
    }

    /// `struct stat`.
    pub(crate) fn stat(&self) -> [u8; STAT] {
        /// A pipe that its owner may read and write.
        const MODE: u32 = 0o010_600;
        crate::device::stat(self.number as u64 + 1, MODE, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_seen_to_go_and_its_place_is_used_again() {
        let mut pipes = Pipes::default();
        let [read, write] = pipes.make(false);
        let pipe = pipes.of(&read).expect("made");
        assert!(matches!(pipe.put(b"abc"), Look::Done(3)));
        assert!(matches!(pipe.put(&[0; ROOM - 4]), Look::Done(_)));
        // Small pieces are whole or not there.
        assert!(matches!(pipe.put(b"de"), Look::Wait));
        assert!(matches!(pipe.put(b"d"), Look::Done(1)));
        drop(write);
        let mut found = Vec::new();
        assert!(matches!(pipe.take(&mut found, 3), Look::Done(3)));
        assert_eq!(found, b"abc");
        assert!(matches!(pipe.take(&mut found, ROOM), Look::Done(_)));
        assert!(matches!(pipe.take(&mut found, 1), Look::Gone));
        let [other, hurried] = pipes.make(true);
        assert_ne!(other.number, read.number);
        drop(read);
        let [again, _] = pipes.make(false);
        assert_eq!(again.number, 0);
        drop(other);
        let pipe = pipes.of(&hurried).expect("made");
        assert!(matches!(pipe.put(b"x"), Look::Gone));
    }
}
