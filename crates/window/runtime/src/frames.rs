//! The gate calls that a thread is in, and whose they are.

use crate::frame::{DOMAIN_BELOW, GateFrame, frame_at};
use crate::inner::Inner;
use crate::tcb::Tcb;
use mullion_abi::CONTROL_REGION;
use std::ptr;

impl GateFrame {
    /// The thread's block, at the foot of the control stack.
    #[inline]
    pub(crate) fn tcb(&self) -> &Tcb {
        let foot = self.control & !(CONTROL_REGION - 1);
        // SAFETY: the gate found the block there, and the thread keeps it until it
        // ends, with nothing of it in a gate call any more.
        unsafe { &*ptr::with_exposed_provenance(foot as usize) }
    }

    /// The domain that called the gate: DOMAIN of its invocation.
    #[inline]
    pub(crate) fn domain(&self) -> &Inner {
        let place: *const u64 =
            ptr::with_exposed_provenance((self.outer_control - DOMAIN_BELOW) as usize);
        // SAFETY: `mullion_enter` has put the word there, and the domain lives as
        // long as the invocation, which this frame is in.
        unsafe { &*ptr::with_exposed_provenance(place.read() as usize) }
    }
}

impl Tcb {
    /// How many invocations the next one is nested in.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        frame_at(self.control.get()).map_or(0, GateFrame::depth)
    }

    /// The data stack at the gate call of `domain` on this thread that was made
    /// last, if it is in one.
    #[inline]
    pub(crate) fn innermost(&self, domain: &Inner) -> Option<u64> {
        let mut frames = self.frames();
        let frame = frames.find(|frame| std::ptr::eq(frame.domain(), domain));
        frame.map(|frame| frame.r15)
    }

    /// The gate calls that the thread is in, the innermost first.
    #[inline]
    pub(crate) fn frames(&self) -> impl Iterator<Item = &GateFrame> {
        std::iter::successors(frame_at(self.control.get()), |frame| frame.outer())
    }
}
