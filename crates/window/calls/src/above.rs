//! Directories above those that a program was granted: `/` and `/srv`, where `/srv/data` was granted.
//!
//! A program may ask for them, enter them and list them, so that `realpath`, `mkdir -p` and patterns find their way. They hold
//! nothing but the way to what was granted, which the program knows already. Nothing can be made, changed or removed there.

use crate::device;
use crate::errno::Errno;
use crate::handle::STAT;
use crate::path::absolute;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Such a directory, while it is open.
#[derive(Debug)]
pub(crate) struct Above {
    path: String,
    /// The names in it, `.` and `..` before them.
    names: Vec<String>,
    /// Which name is told next.
    next: AtomicUsize,
}

impl Above {
    /// The directory of this absolute path. It holds `children`.
    pub(crate) fn new(path: &str, children: Vec<String>) -> Self {
        let mut names: Vec<String> = [".", ".."].map(String::from).into();
        names.extend(children);
        Self {
            path: path.into(),
            names,
            next: AtomicUsize::new(0),
        }
    }

    /// `struct stat`.
    pub(crate) fn stat(&self) -> [u8; STAT] {
        stat(&self.path)
    }

    /// Entries from the next one on, as many as fit into `room` bytes. `put` takes number, position behind it, and name.
    pub(crate) fn entries(
        &self,
        room: usize,
        put: &mut dyn FnMut(u64, u64, &str),
    ) -> Result<(), Errno> {
        let first = self.next.load(Ordering::Relaxed);
        let (mut used, mut next) = (0, first);
        while let Some(name) = self.names.get(next) {
            used += length(name.len());
            if used > room {
                break;
            }
            next += 1;
            let path = absolute("/", &format!("{}/{name}", self.path));
            put(number(&path), next as u64, name);
        }
        self.next.store(next, Ordering::Relaxed);
        // As Linux has it: there is room for none.
        match next == first && next < self.names.len() {
            true => Err(Errno::INVAL),
            false => Ok(()),
        }
    }

    /// lseek: to a position that `entries` told, or to the beginning.
    pub(crate) fn seek(&self, offset: i64, whence: i32) -> Result<u64, Errno> {
        const SET: i32 = 0;
        let position = usize::try_from(offset).map_err(|_| Errno::INVAL)?;
        if whence != SET || position > self.names.len() {
            return Err(Errno::INVAL);
        }
        self.next.store(position, Ordering::Relaxed);
        Ok(position as u64)
    }
}

/// Bytes of an entry whose name has so many, without a zero byte.
pub(crate) fn length(name: usize) -> usize {
    // Inode, position, length and kind are before it, and a zero byte behind.
    (19 + name + 1).next_multiple_of(8)
}

/// `struct stat` of the directory of this path: everybody may read and enter it.
pub(crate) fn stat(path: &str) -> [u8; STAT] {
    const MODE: u32 = 0o040_555;
    device::stat(number(path), MODE, 0)
}

/// An inode's number, the same for the same path (Fowler, Noll and Vo's hash, FNV-1a).
fn number(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn entries_come_in_pieces_and_again() {
        let above = Above::new("/a", vec!["b".into(), "c".into()]);
        let told = |room| {
            let mut names = Vec::new();
            let result = above.entries(room, &mut |_, _, name| names.push(String::from(name)));
            result.map(|()| names)
        };
        assert_eq!(told(23), Err(Errno::INVAL));
        assert_eq!(told(3 * 24), Ok(vec![".".into(), "..".into(), "b".into()]));
        assert_eq!(told(100), Ok(vec!["c".into()]));
        assert_eq!(told(100), Ok(vec![]));
        assert_eq!(told(0), Ok(vec![]));
    }

    #[test]
    fn a_directory_has_one_number_wherever_it_is_asked_for() {
        let above = Above::new("/", vec!["a".into()]);
        let mut numbers = Vec::new();
        above
            .entries(1000, &mut |number, _, _| numbers.push(number))
            .unwrap();
        assert_eq!(numbers, [number("/"), number("/"), number("/a")]);
        assert_ne!(number("/"), number("/a"));
    }
}
