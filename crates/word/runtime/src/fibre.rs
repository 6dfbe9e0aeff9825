//! Fibres: threads of a host that it switches by itself, on one thread of the system. A kernel that is a process has them.
//!
//! ```text
//!   the thread's `Here` ◄── the fibre that runs          the host copies it at each switch:
//!   64 bytes, opaque    ──► 64 bytes of each other one   out for the one that goes, in for the one that comes
//! ```
//!
//! 64 zeros are a fibre that has entered no domain. Its first call gives it a control stack, and data stacks as a thread
//! has them. A fibre waits only while the host runs. So it waits with its counters even, and between no check and its access.
//! What `inside.rs` of the table says of the thread of the system is then true of all its fibres.

use crate::gates::{Here, here};
use crate::host::Host;
use crate::thread::{FIBRES, Thread};
use std::sync::atomic::Ordering;

/// What a host keeps for each fibre that does not run. Zeros at first.
pub type Kept = [u64; 8];

const _: () = assert!(size_of::<Here>() <= size_of::<Kept>());

impl Host {
    /// The host switches fibres on the calling thread, which has called no domain yet, and calls domains on no other one.
    /// Each fibre's stack has `stack` bytes, a power of two, and is aligned to that. Where the host copies to and from at each
    /// switch.
    ///
    /// Signals' stacks are the host's business from then on: none is set.
    ///
    /// # Safety
    /// All of it is as said. A copy that was made of a fibre is put back once, and only while no domain runs. Nobody calls a
    /// domain between the two halves of a switch, or from a handler of a signal.
    #[must_use]
    pub unsafe fn fibres(&self, stack: u64) -> *mut Kept {
        FIBRES.store(stack, Ordering::Relaxed);
        here().cast()
    }

    /// Ends a fibre that does not run and never will: its stacks are for others. Calls that it had in domains end here.
    ///
    /// # Safety
    /// It is what the host has kept of it, and it is not put back.
    pub unsafe fn end_fibre(&self, kept: &mut Kept) {
        let kept = std::ptr::from_mut(kept).cast::<Here>();
        // SAFETY: the host has copied the whole of it, which is aligned as eight words are.
        unsafe {
            let thread = (*kept).thread.cast::<Thread>();
            kept.write(std::mem::zeroed());
            if !thread.is_null() {
                drop(Box::from_raw(thread));
            }
        }
    }
}
