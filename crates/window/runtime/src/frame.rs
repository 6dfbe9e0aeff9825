//! Gate frames, and the words below CONTROL on a control stack.

use core::mem::offset_of;
use std::cell::Cell;
use std::ptr;

/// What a gate saves on the host's stack for `dispatch`. Only gates make frames:
/// who has one is in a gate call that has not returned.
#[repr(C, align(16))]
pub(crate) struct GateFrame {
    /// `%rax` at the call.
    pub(crate) rax: u64,
    /// `%rdi`, `%rsi`, `%rdx`, `%rcx`, `%r8`, `%r9`: the integer arguments.
    pub(crate) integers: [u64; 6],
    /// The data stack.
    pub(crate) r15: u64,
    pub(crate) vectors: [[u64; 2]; 8],
    mxcsr: u32,
    x87: u16,
    /// How many gate calls the thread is in, this one included, and flags: set by
    /// `dispatch` first of all.
    state: Cell<u64>,
    /// The control stack pointer at the gate: CONTROL from here on.
    pub(crate) control: u64,
    /// The result's second half and vector, valid with MORE.
    high: Cell<u64>,
    vector: Cell<[u64; 2]>,
    /// CONTROL of the invocation.
    pub(crate) outer_control: u64,
}

/// Flags in `GateFrame::state`, above the depth.
const MORE: u64 = 1 << 32;
const LINKED: u64 = 1 << 33;

impl GateFrame {
    /// The gate call that this one is nested in.
    #[inline]
    pub(crate) fn outer(&self) -> Option<&GateFrame> {
        frame_at(self.outer_control)
    }

    /// Sets the state of a frame that a gate has just made.
    #[inline]
    pub(crate) fn begin(&self) {
        self.state
            .set(u64::from(self.outer().map_or(0, Self::depth)) + 1);
    }

    /// How many gate calls the thread is in, this one included.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.state.get() as u32
    }

    /// Says that another domain is being called, and not the host.
    #[inline]
    pub(crate) fn set_linked(&self) {
        self.state.set(self.state.get() | LINKED);
    }

    /// Whether another domain is being called.
    pub(crate) fn is_linked(&self) -> bool {
        self.state.get() & LINKED != 0
    }

    /// Whether the result is in more than `%rax`.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.state.get() & MORE != 0
    }

    /// Sets the result's second half; without it that is 0.
    #[inline]
    pub(crate) fn set_high(&self, high: u64) {
        self.more();
        self.high.set(high);
    }

    /// Sets the result in `%xmm0`; without it that is 0.
    #[inline]
    pub(crate) fn set_vector(&self, vector: [u64; 2]) {
        self.more();
        self.vector.set(vector);
    }

    #[inline]
    fn more(&self) {
        if !self.has_more() {
            self.state.set(self.state.get() | MORE);
            self.high.set(0);
            self.vector.set([0; 2]);
        }
    }
}

/// The gate call with this CONTROL; none at the control stack's top.
#[inline]
pub(crate) fn frame_at<'a>(control: u64) -> Option<&'a GateFrame> {
    let frame = ptr::with_exposed_provenance::<GateFrame>(frame_address(control) as usize);
    // SAFETY: it is the address of the gate's frame, or zero at the top. Callers use the frame
    // while that gate call lasts: that it does, `Tcb::check_nesting` has seen before a domain is entered.
    unsafe { frame.as_ref() }
}

/// Where the frame of the gate call with this CONTROL is, or was; 0 at the top.
#[inline]
pub(crate) fn frame_address(control: u64) -> u64 {
    let place: *const u64 = ptr::with_exposed_provenance((control - FRAME_BELOW) as usize);
    // SAFETY: the word below a CONTROL is mapped, and at the top nobody writes it.
    unsafe { place.read() }
}

/// Puts another FRAME at this CONTROL.
pub(crate) fn set_frame(control: u64, frame: u64) {
    let place: *mut u64 = ptr::with_exposed_provenance_mut((control - FRAME_BELOW) as usize);
    // SAFETY: the word is mapped, and only this thread uses it.
    unsafe { place.write(frame) };
}

/// Where FRAME, DOMAIN, HOST and the return gate lie, below CONTROL.
const FRAME_BELOW: u64 = 8;
pub(crate) const DOMAIN_BELOW: u64 = 16;
pub(crate) const HOST_BELOW: u64 = 24;
pub(crate) const RETURN_GATE_BELOW: u64 = 32;

const _: () = assert!(size_of::<GateFrame>() == 256);
const _: () = assert!(offset_of!(GateFrame, mxcsr) == 192);
const _: () = assert!(offset_of!(GateFrame, x87) == 196);
const _: () = assert!(offset_of!(GateFrame, control) == 208);
const _: () = assert!(offset_of!(GateFrame, high) == 216);
const _: () = assert!(offset_of!(GateFrame, vector) == 224);
const _: () = assert!(offset_of!(GateFrame, outer_control) == 240);
