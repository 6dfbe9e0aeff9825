//! Memory for the heap that a module has in itself, as Lua does: large pieces, each granted for itself. They stay the module's
//! when a call was stopped, because what it has in pools points to them. Its heap begins anew then, with other pieces.
//!
//! None of this memory is ever the core's, as with that of pools (`arena.rs`). So a function of the host may still write there when
//! another thread of the module gives the piece back.

use crate::arena::Arena;
use crate::call::mediate;
use crate::heap::unblock;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// A piece, until the module gives it back.
struct Piece {
    bytes: u64,
    /// With what lies behind it.
    place: u64,
    made: u64,
    _granted: Granted,
}

/// All that a module has, by their addresses.
#[derive(Default)]
pub(crate) struct Pieces {
    arena: Arena,
    all: HashMap<u64, Piece>,
}

const PAGE: u64 = 4096;
/// So many bytes behind a piece are never granted.
const GAP: u64 = 64;

/// Pieces of a heap are kept over so many stops of the module: what points to them has gone by then.
const STOPS: u64 = 16;

impl Walled {
    /// A piece; null if there is no room for it.
    pub(crate) fn piece(&self, bytes: u64) -> Answer<u64> {
        let bytes = bytes.max(16).checked_next_multiple_of(16);
        let bytes = bytes.ok_or("so many bytes there are not")?;
        let mut pieces = lock(&self.pieces);
        let used: u64 = pieces.all.values().map(|piece| piece.bytes).sum();
        if used.saturating_add(bytes) > self.memory {
            // As the C library says that there is no more.
            return Ok(0);
        }
        let Ok((at, place)) = pieces
            .arena
            .place(self.memory, bytes.saturating_add(GAP).max(PAGE))
        else {
            return Ok(0);
        };
        let piece = Piece {
            bytes,
            place,
            made: self.faults.load(Ordering::Relaxed),
            _granted: self.grant(at, bytes)?,
        };
        pieces.all.insert(at, piece);
        Ok(at)
    }

    /// How large a piece is that was given back.
    pub(crate) fn unpiece(&self, at: u64) -> Option<u64> {
        let piece = lock(&self.pieces).all.remove(&at)?;
        let (bytes, place) = (piece.bytes, piece.place);
        drop(piece);
        // SAFETY: these are whole pages of ours, which nobody but the module has used. They are zeros from then on.
        unsafe { libc::madvise(at as *mut libc::c_void, place as usize, libc::MADV_DONTNEED) };
        lock(&self.pieces).arena.give(at, place);
        Some(bytes)
    }

    /// The module begins anew: gives back what nothing can point to any more.
    pub(crate) fn forget_pieces(&self) {
        let now = self.faults.load(Ordering::Relaxed);
        let pieces = lock(&self.pieces);
        let old = pieces
            .all
            .iter()
            .filter(|(_, piece)| piece.made + STOPS < now);
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
        let had = lock(&walled.pieces).all.get(&at).map(|piece| piece.bytes);
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
            // SAFETY: both are of at least so many bytes, and stay memory of the module's.
            unsafe {
                (to as *mut u8).copy_from_nonoverlapping(at as *const u8, had.min(bytes) as usize);
            }
            walled.unpiece(at);
        }
        Ok(to)
    })
}
