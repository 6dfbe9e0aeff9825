//! The assembly and its types. The contract is at the head of `trampoline.s`.

use crate::control::Tcb;
use crate::dispatch::dispatch;
use crate::domain::Inner;
use core::mem::{MaybeUninit, offset_of};
use mullion_abi as abi;

/// How an invocation ended: what `enter` returns in `%rdx`, and what `dispatch`
/// says to the gate (there, 0 goes on).
pub(crate) mod ended {
    /// The domain's function returned.
    pub(crate) const RETURNED: u32 = 0;
    /// A signal handler ended it; the record of the fault says why.
    pub(crate) const FAULT: u32 = 1;
    /// A host function ended it; the thread's record of the end says why.
    pub(crate) const BY_HOST: u32 = 2;
}

/// Bits of `Inner::uses`: what instructions of the image can see and change.
pub(crate) mod uses {
    /// x87 and MMX registers, the x87 control word.
    pub(crate) const X87: u32 = 1;
    /// The SSE control word.
    pub(crate) const MXCSR: u32 = 2;
}

/// MXCSR at the start of a process: all exceptions masked, round to nearest.
static INITIAL_MXCSR: u32 = 0x1f80;
/// The x87 control word at the start of a process.
static INITIAL_X87: u16 = DEFAULT_X87;
const DEFAULT_X87: u16 = 0x37f;

/// What an invocation takes besides registers, and gives.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallRecord {
    /// Arguments that not every call has, or null.
    pub(crate) extra: *const Extra,
    /// Written when the invocation ends: `%rdx` and `%xmm0`.
    pub(crate) high: MaybeUninit<u64>,
    pub(crate) vector: MaybeUninit<[u64; 2]>,
}

/// Arguments beyond the six in registers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Extra {
    /// Eight vectors, or null.
    pub(crate) vectors: *const [u128; 8],
    /// For the data stack, and how many.
    pub(crate) stacked: *const u64,
    pub(crate) count: u32,
}

/// What a gate saves on the host's stack for `dispatch`.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct GateFrame {
    /// In: `%rax`; out: the result.
    pub(crate) rax: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rdx: u64,
    pub(crate) rcx: u64,
    pub(crate) r8: u64,
    pub(crate) r9: u64,
    /// The data stack.
    pub(crate) r15: u64,
    pub(crate) vectors: [[u64; 2]; 8],
    mxcsr: u32,
    x87: u16,
    unused: u64,
    /// The control stack pointer at the gate.
    pub(crate) control: u64,
    /// The result's second half and vector: set by `dispatch` in every case.
    pub(crate) high: u64,
    pub(crate) vector: [u64; 2],
    /// CONTROL of the invocation.
    pub(crate) outer_control: u64,
}

impl GateFrame {
    /// The integer arguments in registers, in order.
    #[inline]
    pub(crate) fn integers(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }
}

const _: () = assert!(size_of::<GateFrame>() == 256);
const _: () = assert!(offset_of!(GateFrame, mxcsr) == 192);
const _: () = assert!(offset_of!(GateFrame, x87) == 196);
const _: () = assert!(offset_of!(GateFrame, control) == 208);
const _: () = assert!(offset_of!(GateFrame, high) == 216);
const _: () = assert!(offset_of!(GateFrame, vector) == 224);
const _: () = assert!(offset_of!(GateFrame, outer_control) == 240);
const _: () = assert!(offset_of!(Tcb, gate_entry) == 0);

core::arch::global_asm!(
    include_str!("trampoline.s"),
    CONTROL = const offset_of!(Tcb, control),
    GS = const offset_of!(Tcb, gs),
    CALL_EXTRA = const offset_of!(CallRecord, extra),
    CALL_HIGH = const offset_of!(CallRecord, high),
    CALL_VECTOR = const offset_of!(CallRecord, vector),
    EXTRA_VECTORS = const offset_of!(Extra, vectors),
    EXTRA_STACKED = const offset_of!(Extra, stacked),
    EXTRA_COUNT = const offset_of!(Extra, count),
    USES = const offset_of!(Inner, uses),
    DOMAIN_WINDOW = const offset_of!(Inner, window),
    GATE_FIRST_IMPORT = const abi::GATE_FIRST_IMPORT,
    GATE_SETJMP = const abi::GATE_SETJMP,
    GATE_LONGJMP = const abi::GATE_LONGJMP,
    GATE_CONTROL_READ = const abi::GATE_CONTROL_READ,
    GATE_CONTROL_UNWIND = const abi::GATE_CONTROL_UNWIND,
    LABEL = const abi::LABEL,
    CONTROL_REGION = const abi::CONTROL_REGION,
    CONTROL_DEPTH = const abi::CONTROL_REGION / 8,
    default_x87 = const DEFAULT_X87,
    initial_mxcsr = sym INITIAL_MXCSR,
    initial_x87 = sym INITIAL_X87,
    dispatch = sym dispatch,
    options(att_syntax)
);

/// `mullion_enter_*`: the domain's `%rax`, and how it ended.
pub(crate) type Enter = unsafe extern "C" fn(
    tcb: *const Tcb,
    call: *mut CallRecord,
    domain: *const Inner,
    target: u64,
    stack: u64,
    integers: *const [u64; 6],
) -> Outcome;

/// Two registers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) ended: u64,
}

/// The trampolines for this processor's vector registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) enter: Enter,
    pub(crate) gate: unsafe extern "C" fn(),
    pub(crate) abort: unsafe extern "C" fn(),
}

impl Kind {
    /// The one that clears every vector register that an image can name.
    pub(crate) fn detect() -> Self {
        if std::is_x86_feature_detected!("avx") && !without_avx() {
            Self {
                enter: mullion_enter_avx,
                gate: mullion_gate_avx,
                abort: mullion_abort_avx,
            }
        } else {
            Self {
                enter: mullion_enter_sse,
                gate: mullion_gate_sse,
                abort: mullion_abort_sse,
            }
        }
    }
}

/// Tests take the trampolines for older processors too; never a release.
fn without_avx() -> bool {
    cfg!(debug_assertions) && std::env::var_os("MULLION_WITHOUT_AVX").is_some()
}

#[allow(
    improper_ctypes,
    reason = "assembly: it reads the fields named in `global_asm!`, all of fixed layout"
)]
unsafe extern "C" {
    fn mullion_enter_sse(
        tcb: *const Tcb,
        call: *mut CallRecord,
        domain: *const Inner,
        target: u64,
        stack: u64,
        integers: *const [u64; 6],
    ) -> Outcome;
    fn mullion_enter_avx(
        tcb: *const Tcb,
        call: *mut CallRecord,
        domain: *const Inner,
        target: u64,
        stack: u64,
        integers: *const [u64; 6],
    ) -> Outcome;
    fn mullion_gate_sse();
    fn mullion_gate_avx();
    fn mullion_abort_sse();
    fn mullion_abort_avx();
    /// How many of `length` bytes could not be copied.
    pub(crate) fn mullion_copy(to: *mut u8, from: *const u8, length: usize) -> usize;
    pub(crate) fn mullion_copy_fault();
    pub(crate) fn mullion_copy_end();
    pub(crate) fn mullion_builtin_begin();
    pub(crate) fn mullion_builtin_end();
    pub(crate) fn mullion_trap_gate();
    pub(crate) fn mullion_trap_control();
    pub(crate) fn mullion_trap_target();
}
