//! Which pieces of which files a program has locked.

use crate::errno::{CallStop, Errno};
use crate::handle::Handle;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Most pieces of files that a program has locked, as the kernel keeps memory for each.
const MOST: usize = 1024;
/// The greatest offset in a file, and one more: the end of a lock that has none.
pub(crate) const ENDLESS: u64 = 1 << 63;
/// What a lock of a file keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Others do not lock it for themselves alone.
    Shared,
    /// Others do not lock it at all.
    Exclusive,
    /// Nothing: it is unlocked.
    Unlock,
}

/// A lock of a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// Of which kind.
    pub kind: LockKind,
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one, `1 << 63` at most, which is without end.
    pub end: u64,
}

/// The files that a program has locked, by device and inode.
#[derive(Default)]
pub(crate) struct Locks {
    files: BTreeMap<(u64, u64), Locked>,
}

/// A file with locks.
struct Locked {
    /// The open file that has them.
    handle: Handle,
    pieces: Vec<Piece>,
}

/// A piece of a file that is locked, by its first byte and the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    end: u64,
    exclusive: bool,
}

/// The pieces of a file when this one is locked as well, or unlocked: in order, none over another, none beside one of
/// its kind.
fn with(pieces: &[Piece], new: FileLock) -> Vec<Piece> {
    let (start, end) = (new.start, new.end);
    let mut all = Vec::with_capacity(pieces.len() + 2);
    for &piece in pieces {
        let left = Piece {
            end: piece.end.min(start),
            ..piece
        };
        let right = Piece {
            start: piece.start.max(end),
            ..piece
        };
        all.extend(
            [left, right]
                .into_iter()
                .filter(|part| part.start < part.end),
        );
    }
    if new.kind != LockKind::Unlock {
        all.push(Piece {
            start,
            end,
            exclusive: new.kind == LockKind::Exclusive,
        });
    }
    all.sort_by_key(|piece| piece.start);
    all.dedup_by(|next, last| {
        let one = last.end == next.start && last.exclusive == next.exclusive;
        if one {
            last.end = next.end;
        }
        one
    });
    all
}

impl Locks {
    /// Whether nothing is locked.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The open file that has a file's locks, if there are any.
    pub(crate) fn holder(&self, file: (u64, u64)) -> Option<&Handle> {
        self.files.get(&file).map(|locked| &locked.handle)
    }

    /// Has `act` lock or unlock a piece through whichever open file has the locks of this one: `handle`, if none has.
    ///
    /// # Errors
    /// `NOLCK`: there are too many pieces. Those of `act`.
    pub(crate) fn set(
        &mut self,
        file: (u64, u64),
        handle: &Handle,
        lock: FileLock,
        act: impl FnOnce(&Handle) -> Result<(), CallStop>,
    ) -> Result<(), CallStop> {
        let others: usize = self
            .files
            .iter()
            .filter(|(other, _)| **other != file)
            .map(|(_, locked)| locked.pieces.len())
            .sum();
        let (holder, pieces) = match self.files.get(&file) {
            Some(locked) => (&locked.handle, with(&locked.pieces, lock)),
            None => (handle, with(&[], lock)),
        };
        if lock.kind != LockKind::Unlock && others + pieces.len() > MOST {
            return Err(Errno::NOLCK.into());
        }
        act(holder)?;
        let handle = holder.clone();
        match pieces.is_empty() {
            true => drop(self.files.remove(&file)),
            false => drop(self.files.insert(file, Locked { handle, pieces })),
        }
        Ok(())
    }

    /// Forgets a file's locks; the open file that has them.
    pub(crate) fn forget(&mut self, file: (u64, u64)) -> Option<Handle> {
        self.files.remove(&file).map(|locked| locked.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random locks of 24 bytes, beside a list with one entry for each byte.
    #[test]
    fn pieces_are_what_bytes_one_by_one_are() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut bytes = [None; 24];
            let mut pieces = Vec::new();
            for _ in 0..40 {
                let start = random(24);
                let end = start + 1 + random(24 - start);
                let (kind, byte) = match random(3) {
                    0 => (LockKind::Shared, Some(false)),
                    1 => (LockKind::Exclusive, Some(true)),
                    _ => (LockKind::Unlock, None),
                };
                pieces = with(&pieces, FileLock { kind, start, end });
                bytes[start as usize..end as usize].fill(byte);
                let mut seen = [None; 24];
                for piece in &pieces {
                    assert!(piece.start < piece.end);
                    seen[piece.start as usize..piece.end as usize].fill(Some(piece.exclusive));
                }
                assert_eq!(seen, bytes);
                // As few as can be: at each border something changes.
                for pair in pieces.windows(2) {
                    let one =
                        pair[0].end == pair[1].start && pair[0].exclusive == pair[1].exclusive;
                    assert!(!one && pair[0].end <= pair[1].start, "{pieces:?}");
                }
            }
        }
    }
}
