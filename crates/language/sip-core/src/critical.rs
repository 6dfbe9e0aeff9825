//! Pieces of code that the end of a process waits for.
//!
//! A process can be ended at any instruction of its own code (a kill from elsewhere, an endless loop, the end
//! of its stack). No destructor runs then. What holds shared structures in a half-way state says so.

use std::marker::PhantomData;

use crate::heap::Heap;
use crate::thread::here;

/// While one lives, the thread is not ended; a kill that arrives meanwhile lands when the last is dropped.
/// Keep it short, and do not park inside: hold none across [`crate::wait::park`].
#[derive(Debug)]
#[must_use]
pub struct Critical(PhantomData<*mut ()>);

/// Enters a critical piece. They nest. Enough stack for it (16 KiB) is checked here, so that a process that
/// is at the end of its stack ends before the piece and not in it.
#[inline]
pub(crate) fn critical() -> Critical {
    here::open_piece(0);
    Critical(PhantomData)
}

/// [`critical`] for a piece that moves values of type `T`: there is enough stack for copies of a large one, too.
#[inline]
pub(crate) fn critical_moving<T>() -> Critical {
    here::open_piece(room_for::<T>());
    Critical(PhantomData)
}

/// What copies of a value may take of the stack, beyond what every piece has.
const fn room_for<T>() -> usize {
    const SMALL: usize = 1 << 10;
    const COPIES: usize = 4;
    if size_of::<T>() > SMALL {
        COPIES * size_of::<T>()
    } else {
        0
    }
}

impl Drop for Critical {
    #[inline]
    fn drop(&mut self) {
        here::close_piece();
    }
}

/// A critical piece of the kernel, whose allocations are the host's and outlive the process that runs.
#[derive(Debug)]
#[must_use]
pub struct AsHost {
    heap: Option<&'static Heap>,
    _whole: Critical,
}

/// Enters one. What is allocated inside must be found again when the process ends without dropping it.
#[inline]
pub(crate) fn as_host() -> AsHost {
    within(critical())
}

/// [`as_host`] for a piece that moves values of type `T`, as [`critical_moving`].
#[inline]
pub(crate) fn as_host_moving<T>() -> AsHost {
    within(critical_moving::<T>())
}

#[inline]
fn within(whole: Critical) -> AsHost {
    AsHost {
        heap: here::replace_heap(None),
        _whole: whole,
    }
}

impl Drop for AsHost {
    #[inline]
    fn drop(&mut self) {
        here::replace_heap(self.heap);
    }
}
