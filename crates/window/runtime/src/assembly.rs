//! What `trampoline.s` offers, and the numbers that it shares with Rust.

use std::sync::OnceLock;

/// How an invocation ended: what `enter` returns in `%rdx`, and what `dispatch`
/// says to the gate (there, the first two go on).
pub(crate) mod ended {
    /// The domain's function returned.
    pub(crate) const RETURNED: u32 = 0;
    /// From `dispatch` only: as above, with more results in the frame.
    pub(crate) const RETURNED_MORE: u32 = 1;
    /// A signal handler ended it; the record of the fault says why.
    pub(crate) const FAULT: u32 = 2;
    /// A host function ended it; the thread's record of the end says why.
    pub(crate) const BY_HOST: u32 = 3;
}

/// Bits of `Inner::uses`: what instructions of the image can see and change.
/// `trampoline.s` has the same numbers.
pub(crate) mod uses {
    /// x87 and MMX registers, the x87 control word.
    pub(crate) const X87: u32 = 1;
    /// The SSE control word.
    pub(crate) const MXCSR: u32 = 2;
    /// Memory through the `%gs` base.
    pub(crate) const GS: u32 = 4;
}

/// What `dispatch` tells the gate: the domain's `%rax`, and how it ended. Two registers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) ended: u64,
}

/// The trampolines for this processor's vector registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) enter: unsafe extern "C" fn(),
    pub(crate) gate: unsafe extern "C" fn(),
    pub(crate) abort: unsafe extern "C" fn(),
    inside: &'static [[u64; 2]; 3],
}

static KIND: OnceLock<Kind> = OnceLock::new();

impl Kind {
    /// This processor's, found when it is first asked for.
    pub(crate) fn get() -> &'static Self {
        KIND.get_or_init(Self::detect)
    }

    /// The same, if it has been asked for. For signal handlers too.
    pub(crate) fn if_known() -> Option<&'static Self> {
        KIND.get()
    }

    /// The one that clears every vector register that an image can name.
    fn detect() -> Self {
        if std::is_x86_feature_detected!("avx") && !without_avx() {
            Self {
                enter: mullion_enter_avx,
                gate: mullion_gate_avx,
                abort: mullion_abort_avx,
                // SAFETY: constant data of this type.
                inside: unsafe { &mullion_inside_avx },
            }
        } else {
            Self {
                enter: mullion_enter_sse,
                gate: mullion_gate_sse,
                abort: mullion_abort_sse,
                // SAFETY: constant data of this type, in `trampoline.s` beside the other.
                inside: unsafe { &mullion_inside_sse },
            }
        }
    }

    /// Whether a signal at this instruction finds the trampolines on the control stack.
    pub(crate) fn is_inside(&self, instruction: u64) -> bool {
        let mut ranges = self.inside.iter();
        ranges.any(|[begin, end]| (*begin..*end).contains(&instruction))
    }
}

/// Whether `address` is where `dispatch` returns to.
pub(crate) fn gates_return_to(address: u64) -> bool {
    let gates = [mullion_dispatched_sse, mullion_dispatched_avx];
    gates.map(|place| place as usize as u64).contains(&address)
}

/// Tests take the trampolines for older processors too; never a release.
fn without_avx() -> bool {
    cfg!(debug_assertions) && std::env::var_os("MULLION_WITHOUT_AVX").is_some()
}

unsafe extern "C" {
    fn mullion_enter_sse();
    fn mullion_enter_avx();
    fn mullion_gate_sse();
    fn mullion_gate_avx();
    fn mullion_dispatched_sse();
    fn mullion_dispatched_avx();
    fn mullion_abort_sse();
    fn mullion_abort_avx();
    static mullion_inside_sse: [[u64; 2]; 3];
    static mullion_inside_avx: [[u64; 2]; 3];
    /// 0, or something else if not all could be copied.
    pub(crate) fn mullion_copy(to: *mut u8, from: *const u8, length: usize) -> usize;
    pub(crate) fn mullion_copy_begin();
    pub(crate) fn mullion_copy_end();
    pub(crate) fn mullion_builtin_begin();
    pub(crate) fn mullion_builtin_end();
    pub(crate) fn mullion_trap_gate();
    pub(crate) fn mullion_trap_control();
    pub(crate) fn mullion_trap_target();
    pub(crate) fn mullion_x87_init();
    pub(crate) static mullion_x87_begin: u8;
    pub(crate) static mullion_x87_end: u8;
}
