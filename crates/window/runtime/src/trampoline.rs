//! The assembly with the places and numbers that it takes from Rust. Its contract is at the head of `trampoline.s`.

use crate::assembly::ended;
use crate::dispatch::dispatch;
use crate::enter::Extra;
use crate::inner::Inner;
use crate::tcb::Tcb;
use crate::x87;
use core::mem::offset_of;
use mullion_abi as abi;

/// MXCSR at the start of a process: all exceptions masked, round to nearest.
static INITIAL_MXCSR: u32 = 0x1f80;
/// The x87 control word at the start of a process, and after `fninit`.
const DEFAULT_X87: u16 = 0x37f;

/// The same, for `fldcw`.
static INITIAL_X87: u16 = DEFAULT_X87;

const _: () = assert!(offset_of!(Tcb, gate_entry) == 0);

core::arch::global_asm!(
    include_str!("trampoline.s"),
    CONTROL = const offset_of!(Tcb, control),
    GS = const offset_of!(Tcb, gs),
    EXTRA_VECTORS = const Extra::VECTORS,
    EXTRA_STACKED = const Extra::STACKED,
    EXTRA_COUNT = const Extra::COUNT,
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
