//! The assembly and its types. The contract is at the head of `trampoline.s`.

use crate::control::Tcb;
use crate::dispatch::dispatch;
use crate::domain::Inner;
use crate::x87;
use core::mem::offset_of;
use mullion_abi as abi;
use std::cell::Cell;
use std::ptr;

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

/// MXCSR at the start of a process: all exceptions masked, round to nearest.
static INITIAL_MXCSR: u32 = 0x1f80;
/// The x87 control word at the start of a process, and after `fninit`.
const DEFAULT_X87: u16 = 0x37f;

/// The same, for `fldcw`.
static INITIAL_X87: u16 = DEFAULT_X87;

/// Arguments beyond the six in registers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Extra {
    /// Eight vectors, or null.
    vectors: *const [u128; 8],
    /// For the data stack, and how many.
    stacked: *const u64,
    count: u32,
}

impl Extra {
    /// What lies at these places, which must stay while this is in use.
    #[inline]
    pub(crate) fn new(vectors: *const [u128; 8], stacked: &[u64]) -> Self {
        Self {
            vectors,
            stacked: stacked.as_ptr(),
            count: stacked.len() as u32,
        }
    }
}

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
    /// The thread's block, at the foot of the control stack.
    #[inline]
    pub(crate) fn tcb(&self) -> &Tcb {
        let foot = self.control & !(abi::CONTROL_REGION - 1);
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

/// Whether `address` is where `dispatch` returns to.
pub(crate) fn gates_return_to(address: u64) -> bool {
    let gates = [mullion_dispatched_sse, mullion_dispatched_avx];
    gates.map(|place| place as usize as u64).contains(&address)
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
const _: () = assert!(offset_of!(Tcb, gate_entry) == 0);

core::arch::global_asm!(
    include_str!("trampoline.s"),
    CONTROL = const offset_of!(Tcb, control),
    GS = const offset_of!(Tcb, gs),
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
    COPY_BY_MOVES = const 512,
    RETURNED_MORE = const ended::RETURNED_MORE,
    CONTROL_REGION = const abi::CONTROL_REGION,
    CONTROL_DEPTH = const abi::CONTROL_REGION / 8,
    default_x87 = const DEFAULT_X87,
    initial_mxcsr = sym INITIAL_MXCSR,
    initial_x87 = sym INITIAL_X87,
    x87_last = sym x87::LAST,
    dispatch = sym dispatch,
    options(att_syntax)
);

/// What `dispatch` tells the gate: the domain's `%rax`, and how it ended. Two registers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) ended: u64,
}

/// What `mullion_enter_*` returns: the domain's `%rax`, `%rdx` and `%xmm0`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    pub(crate) value: u64,
    pub(crate) high: u64,
    pub(crate) double: f64,
    pub(crate) ended: u32,
}

/// Calls `mullion_enter_*`, whose convention is its own.
///
/// # Safety
/// As the head of `trampoline.s` says; `extra` is null or valid.
#[expect(clippy::inline_always, reason = "the result is to stay in registers")]
#[inline(always)]
pub(crate) unsafe fn enter(
    tcb: &Tcb,
    domain: &Inner,
    target: u64,
    stack: u64,
    integers: &[u64; 6],
    extra: *const Extra,
) -> Left {
    let (value, high, ended): (u64, u64, u64);
    let double: f64;
    // SAFETY: by the caller's promise. Everything that the trampoline changes is
    // named; %rbx and %rbp it restores.
    unsafe {
        core::arch::asm!(
            "call qword ptr [rdi + {enter}]",
            enter = const offset_of!(Tcb, enter),
            inlateout("rdi") ptr::from_ref(tcb) => _,
            inlateout("rdx") ptr::from_ref(domain).expose_provenance() as u64 => high,
            inlateout("rcx") target => ended,
            inlateout("r8") stack => _,
            inlateout("r9") ptr::from_ref(integers) => _,
            inlateout("r10") extra => _,
            lateout("rax") value,
            lateout("xmm0") double,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("C"),
        );
    }
    Left {
        value,
        high,
        double,
        ended: ended as u32,
    }
}

/// The trampolines for this processor's vector registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) enter: unsafe extern "C" fn(),
    pub(crate) gate: unsafe extern "C" fn(),
    pub(crate) abort: unsafe extern "C" fn(),
    inside: &'static [[u64; 2]; 3],
}

impl Kind {
    /// The one that clears every vector register that an image can name.
    pub(crate) fn detect() -> Self {
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
                // SAFETY: as above.
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
