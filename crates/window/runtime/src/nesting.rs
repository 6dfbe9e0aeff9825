//! Whether the gate call that a thread seems to be in is still there.
//!
//! ```text
//!     the host's stack                      the control stack
//!     |  mullion_enter's frame  | <- HOST   |  HOST, DOMAIN, FRAME of the  |
//!     |  gate frame             | <- FRAME  |  innermost invocation        | <- CONTROL
//!     |  the gate's return      |           +------------------------------+
//!     |  the host function      |
//! ```
//! A host function that is left by `longjmp`, and not by its return, takes the stack below its target away. The
//! control stack does not hear of that: CONTROL and FRAME stay, and name a gate frame that other functions overwrite.
//! So before the host enters a domain from within a gate call, this module looks whether that gate call is there.
//! Nothing is taken from the frame before that. If it has gone, no domain is entered on the thread any more
//! ([`Error::Abandoned`]). Whatever the call had begun stays begun, its use of the domain included.
//!
//! The C interface sees the jump itself, and says so ([`Tcb::abandon`]). For others: a frame below the stack
//! pointer has gone. Above it, the frame may have been overwritten. Then the return address below it
//! is none of the gate's, or the frame does not agree with the control stack.

use crate::assembly;
use crate::frame::{GateFrame, HOST_BELOW, frame_address, set_frame};
use crate::tcb::Tcb;
use mullion_abi::CONTROL_REGION;
use mullion_report::error::Error;
use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Range;
use std::ptr;

/// The words of a gate frame from `control` on: CONTROL, two of the result, one unused, outer CONTROL.
const WORDS: usize = 6;
/// In the place of a FRAME that has gone: no frame's address.
const GONE: u64 = 1;
const FIRST: u64 = offset_of!(GateFrame, control) as u64;
const OUTER: usize = (offset_of!(GateFrame, outer_control) - offset_of!(GateFrame, control)) / 8;
const _: () = assert!(OUTER < WORDS && FIRST as usize + 8 * WORDS == size_of::<GateFrame>());

impl Tcb {
    /// Refuses to enter a domain from a gate call that was left by a jump.
    #[inline]
    pub(crate) fn check_nesting(&self) -> Result<(), Error> {
        match self.is_outside() || self.is_whole() {
            true => Ok(()),
            false => Err(Error::Abandoned),
        }
    }

    /// The host function of the gate call that the thread is in is being left by a jump.
    pub(crate) fn abandon(&self) {
        if frame_address(self.control.get()) != 0 {
            set_frame(self.control.get(), GONE);
        }
    }

    /// For a thread that seems to be in a gate call, or in an invocation with limits.
    #[inline(never)]
    fn is_whole(&self) -> bool {
        let control = self.control.get();
        let frame = frame_address(control);
        // The host runs, so no domain does.
        let is = self.running().is_none()
            && (frame == 0 || (frame != GONE && !is_below_us(frame) && self.is_of_a_gate(frame)));
        if !is {
            // However the stack looks later.
            set_frame(control, GONE);
        }
        is
    }

    /// Whether what lies there is what a gate call on this control stack has put there.
    fn is_of_a_gate(&self, frame: u64) -> bool {
        let (Some([from]), Some(words)) = (read(frame - 8), read::<WORDS>(frame + FIRST)) else {
            return false;
        };
        let outer = words[OUTER];
        let above = self.control.get() + 8..self.foot() + CONTROL_REGION;
        if !assembly::gates_return_to(from)
            || words[0] != self.control.get()
            || !outer.is_multiple_of(8)
            || !above.contains(&outer)
        {
            return false;
        }
        let host: *const u64 = ptr::with_exposed_provenance((outer - HOST_BELOW) as usize);
        // SAFETY: a word of this thread's control stack, in its mapped part: no lower than DOMAIN of the
        // CONTROL that is in force, which its gate has written.
        unsafe { host.read() == frame + size_of::<GateFrame>() as u64 }
    }
}

/// Words at an address of which nothing is known, if they can be read.
fn read<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    // SAFETY: `words` is long enough; if the source is not readable, `mullion_copy` says so.
    let missed = unsafe {
        assembly::mullion_copy(
            words.as_mut_ptr().cast(),
            ptr::with_exposed_provenance(address as usize),
            8 * N,
        )
    };
    (missed == 0).then_some(words)
}

/// Whether it lies on the stack that the thread was given, and that stack ends above it now. (A host
/// function may run on a stack of its own, of which nothing is known.)
fn is_below_us(frame: u64) -> bool {
    let place = 0_u8;
    let here = ptr::from_ref(&place).addr() as u64;
    frame < here && own_stack().is_some_and(|own| own.contains(&frame) && own.contains(&here))
}

/// The stack that the thread was given.
#[cold]
fn own_stack() -> Option<Range<u64>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the place is written if that succeeds, read after that only, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let mut attributes = attributes.assume_init();
        let (mut start, mut length): (*mut c_void, usize) = (ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut start, &mut length);
        libc::pthread_attr_destroy(&mut attributes);
        let start = start.addr() as u64;
        (found == 0).then(|| start..start + length as u64)
    }
}
