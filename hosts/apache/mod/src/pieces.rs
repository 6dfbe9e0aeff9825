//! Memory for the heap that a module has in itself, as Lua does: large pieces, each granted for itself. They stay the module's
//! when a call was stopped, because what it has in pools points to them. Its heap begins anew then, with other pieces.

use crate::call::mediate;
use crate::heap::unblock;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::sync::atomic::Ordering;

/// A piece, until the module gives it back.
pub(crate) struct Piece {
    bytes: u64,
    made: u64,
    _granted: Granted,
}

/// Pieces of a heap are kept over so many stops of the module: what points to them has gone by then.
const STOPS: u64 = 16;

impl Walled {
    fn piece(&self, bytes: u64) -> Answer<u64> {
        let bytes = bytes.max(16).checked_next_multiple_of(16);
        let bytes = bytes.ok_or("so many bytes there are not")?;
        let mut pieces = lock(&self.pieces);
        let used: u64 = pieces.values().map(|piece| piece.bytes).sum();
        if used.saturating_add(bytes) > self.memory {
            // As the C library says that there is no more.
            return Ok(0);
        }
        // SAFETY: it asks for memory.
        let at = unsafe { libc::calloc(1, bytes as usize) } as u64;
        if at != 0 {
            let piece = Piece {
                bytes,
                made: self.faults.load(Ordering::Relaxed),
                _granted: self.grant(at, bytes)?,
            };
            pieces.insert(at, piece);
        }
        Ok(at)
    }

    /// How large a piece is that was given back.
    fn unpiece(&self, at: u64) -> Option<u64> {
        let piece = lock(&self.pieces).remove(&at)?;
        let bytes = piece.bytes;
        drop(piece);
        // SAFETY: it was the module's piece, and is not its any more: nobody has access to it.
        unsafe { libc::free(at as *mut libc::c_void) };
        Some(bytes)
    }

    /// The module begins anew: gives back what nothing can point to any more.
    pub(crate) fn forget_pieces(&self) {
        let now = self.faults.load(Ordering::Relaxed);
        let pieces = lock(&self.pieces);
        let old = pieces.iter().filter(|(_, piece)| piece.made + STOPS < now);
        let old: Vec<u64> = old.map(|(at, _)| *at).collect();
        drop(pieces);
        old.into_iter().for_each(|at| {
            self.unpiece(at);
        });
    }
}

pub(crate) extern "C" fn malloc(bytes: u64) -> u64 {
    mediate(|frame| frame.walled.piece(bytes))
}

pub(crate) extern "C" fn calloc(count: u64, bytes: u64) -> u64 {
    mediate(|frame| frame.walled.piece(count.saturating_mul(bytes)))
}

/// The module's heap does without the alignment of large blocks.
pub(crate) extern "C" fn aligned_alloc(_: u64, _: u64) -> u64 {
    mediate(|_| Ok(0))
}

pub(crate) extern "C" fn free(at: u64) -> u64 {
    mediate(|frame| match frame.walled.unpiece(at) {
        Some(_) => Ok(0),
        None => unblock(frame, at, "free"),
    })
}

pub(crate) extern "C" fn realloc(at: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        let had = lock(&walled.pieces).get(&at).map(|piece| piece.bytes);
        let had = match (at, had) {
            (0, _) => 0,
            (_, Some(had)) => had,
            _ => {
                return Err(format!(
                    "realloc: {at:#x} is no memory of the module's heap"
                ));
            }
        };
        let to = walled.piece(bytes)?;
        if to != 0 && had != 0 {
            // SAFETY: both are pieces of the module's, of at least so many bytes.
            unsafe {
                (to as *mut u8).copy_from_nonoverlapping(at as *const u8, had.min(bytes) as usize);
            }
            walled.unpiece(at);
        }
        Ok(to)
    })
}
