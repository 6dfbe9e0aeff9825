//! Pieces of code that a kill waits for.
//!
//! A process can be ended at any instruction of its own code (a kill from elsewhere, an endless loop, the end
//! of its stack), and no destructor runs then. What holds shared structures in a half-way state says so.

use std::marker::PhantomData;

/// While one lives, the thread is not ended; a kill that arrives meanwhile lands when the last is dropped.
/// Keep it short, and do not park inside: hold none across [`crate::wait::park`].
#[derive(Debug)]
#[must_use]
pub struct Critical(PhantomData<*mut ()>);

/// Enters a critical piece. It nests. Enough stack for the piece (16 KiB) is checked here, so that a
/// process that is at the end of its stack ends before the piece and not in it.
#[inline]
pub fn critical() -> Critical {
    Critical(PhantomData)
}
