//! The assembly of `gates.s`, with the places that it takes from Rust.

use crate::lent::Loans;
use crate::policy::FunctionPolicy;
use crate::rights::Raised;
use core::mem::offset_of;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

/// What a thread has of the word wall, in its thread-local memory.
#[repr(C)]
pub(crate) struct Here {
    /// Which domain runs; null for the host.
    pub(crate) domain: *const Inner,
    pub(crate) control: u64,
    pub(crate) frame: *mut Frame,
    /// By index of domain; null in a thread that has entered none.
    pub(crate) seats: *mut *mut Seat,
    /// No entry from the host begins below this address of the control stack.
    pub(crate) limit: u64,
    /// Not 0: the host has refused something.
    pub(crate) pending: AtomicU64,
    /// The thread's `Thread`.
    pub(crate) thread: *mut c_void,
    /// The lowest address of the thread's own stack, the host's.
    pub(crate) host_low: u64,
}

/// What a thread has in a domain.
#[repr(C)]
pub(crate) struct Seat {
    pub(crate) inner: *const Inner,
    /// The data stack of the next entry.
    pub(crate) stack: u64,
    /// Odd while the thread runs the domain's code.
    pub(crate) counter: *mut u64,
    /// Entries that have not returned. Only the thread writes it.
    pub(crate) depth: AtomicU64,
    /// Entries at a depth of 0, so far: a number for the outermost call that runs. Only the thread writes it, before the depth.
    pub(crate) entries: AtomicU64,
    /// The call that the watchdog saw at its last look, since when it sees it, and the thread's number for the system.
    pub(crate) seen: AtomicU64,
    pub(crate) since: AtomicU64,
    pub(crate) id: AtomicI32,
    /// The data stack as the thread found it, and its lowest mapped address.
    pub(crate) top: u64,
    pub(crate) low: u64,
    /// Calls in a row for which something was granted (`keep.rs`).
    pub(crate) streak: u64,
    /// The body of the export that was entered last, and its `FunctionPolicy` or null.
    pub(crate) latest: u64,
    pub(crate) policy: *const c_void,
    /// The body whose call may be repeated, or 0. What is granted for it is kept as long as this seat has the bias, and
    /// the domain this edition.
    pub(crate) repeated: u64,
    pub(crate) edition: u64,
    /// Not 0: the thread is inside, and what is kept is what its outermost call is granted. Only the thread writes it.
    pub(crate) settled: AtomicU64,
    /// Its integer arguments, and all ones for those that its policy looks at.
    pub(crate) arguments: [u64; 6],
    pub(crate) masks: [u64; 6],
    /// The number with which the code runs, four times: the module's, or an instance's.
    pub(crate) own: u64,
    /// The instance's `Principal`, or null.
    pub(crate) principal: *const c_void,
    /// Whether the data stack was used since it was cleared.
    pub(crate) is_used: AtomicBool,
    /// What the domain's code has lent by calls of this thread that run.
    pub(crate) loans: Loans,
    /// What calls that run were granted besides what is kept: a stack, as calls are. Changes with the supervisor's lock.
    pub(crate) raised: Vec<Raised>,
}

/// The part of a domain that gates read.
#[repr(C)]
pub(crate) struct Inner {
    pub(crate) index: u32,
    /// Bits of [`state`].
    pub(crate) state: AtomicU32,
    /// The functions of the host that may be called by address.
    pub(crate) allowed: AtomicPtr<u64>,
    /// The domain's `Core`.
    pub(crate) core: *const c_void,
    /// Who may keep what was granted for a call (`keep.rs`).
    pub(crate) bias: AtomicPtr<Seat>,
    /// How often something was taken away from the domain for good.
    pub(crate) edition: AtomicU64,
}

/// Bits of a domain's state. Any of them sends an entry the slow way.
pub(crate) mod state {
    /// It takes no calls, and calls in it end.
    pub(crate) const ENDED: u32 = 1;
    /// Exports have policies.
    pub(crate) const POLICY: u32 = 2;
    /// The module has instructions on the control words of floating point.
    pub(crate) const CONTROL_WORDS: u32 = 4;
    /// The domain learns or has instances.
    pub(crate) const SLOW: u32 = 8;
    /// Calls are limited in time, and the watchdog sleeps or does not know the domain yet.
    pub(crate) const UNWATCHED: u32 = 16;
    /// The host is told what its code does (`follow.rs`).
    pub(crate) const FOLLOWED: u32 = 32;
}

/// One entry into a domain, on the control stack.
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) seat: *mut Seat,
    pub(crate) before: *mut Frame,
    pub(crate) body: u64,
    pub(crate) caller: u64,
    pub(crate) host: u64,
    pub(crate) from: *const Inner,
    pub(crate) stack: u64,
    unused: u64,
}

/// A function that a domain may call.
#[repr(C)]
pub(crate) struct Import {
    pub(crate) target: u64,
    /// Not 0: the slow way.
    pub(crate) slow: u32,
    pub(crate) policy: Option<FunctionPolicy>,
    pub(crate) name: String,
    /// It is not offered: calls of it are told by a domain that learns.
    pub(crate) is_learned: bool,
    /// The domain and the body behind the target, if that is a switch gate and calls of it have a policy.
    pub(crate) gate: Option<(&'static Inner, u64)>,
}

/// The registers of a call, and of its result.
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) integers: [u64; 6],
    pub(crate) rax: u64,
    /// Where its stack arguments are.
    pub(crate) stacked: u64,
    pub(crate) vectors: [[u64; 2]; 8],
    unused: [u64; 2],
}

const _: () = assert!(size_of::<Frame>() == 64 && size_of::<Here>() <= 64);
const _: () = assert!(size_of::<Registers>() == 208);

core::arch::global_asm!(
    include_str!("gates.s"),
    DOMAIN = const offset_of!(Here, domain),
    CONTROL = const offset_of!(Here, control),
    FRAME = const offset_of!(Here, frame),
    SEATS = const offset_of!(Here, seats),
    LIMIT = const offset_of!(Here, limit),
    HOST_LOW = const offset_of!(Here, host_low),
    HOST_RESERVE = const HOST_RESERVE,
    PENDING = const offset_of!(Here, pending),
    SEAT_INNER = const offset_of!(Seat, inner),
    SEAT_STACK = const offset_of!(Seat, stack),
    SEAT_COUNTER = const offset_of!(Seat, counter),
    SEAT_DEPTH = const offset_of!(Seat, depth),
    SEAT_ENTRIES = const offset_of!(Seat, entries),
    SEAT_OWN = const offset_of!(Seat, own),
    INDEX = const offset_of!(Inner, index),
    STATE = const offset_of!(Inner, state),
    CONTROL_WORDS = const state::CONTROL_WORDS,
    ALLOWED = const offset_of!(Inner, allowed),
    BIAS = const offset_of!(Inner, bias),
    EDITION = const offset_of!(Inner, edition),
    POLICY = const state::POLICY,
    SEAT_REPEATED = const offset_of!(Seat, repeated),
    SEAT_SETTLED = const offset_of!(Seat, settled),
    SEAT_EDITION = const offset_of!(Seat, edition),
    SEAT_ARGUMENTS = const offset_of!(Seat, arguments),
    SEAT_MASKS = const offset_of!(Seat, masks),
    IMPORT_SLOW = const offset_of!(Import, slow),
    REGS_SIZE = const size_of::<Registers>(),
    options(att_syntax)
);

#[expect(improper_ctypes, reason = "only addresses of seats go there")]
unsafe extern "C" {
    pub(crate) fn mullion_word_gates();
    pub(crate) fn mullion_word_gates_end();
    pub(crate) fn mullion_word_enter();
    pub(crate) fn mullion_word_leave();
    pub(crate) fn mullion_word_leave_any();
    pub(crate) fn mullion_word_mark();
    pub(crate) fn mullion_word_unwind();
    pub(crate) fn mullion_word_read();
    pub(crate) fn mullion_word_refused_trap();
    pub(crate) fn mullion_word_unwind_trap();
    pub(crate) fn mullion_word_ended_trap();
    pub(crate) fn mullion_word_pending_trap();
    pub(crate) fn mullion_word_go_on();
    pub(crate) fn mullion_word_faulted();
    fn mullion_word_fetch(to: *mut u8, from: *const u8, bytes: u64) -> u64;
    fn mullion_word_fetch_eight();
    fn mullion_word_fetch_bytes();
    fn mullion_word_fetch_byte();
    fn mullion_word_fetch_end();
    fn mullion_word_text(at: *const u8) -> u64;
    fn mullion_word_text_gone();
    fn mullion_word_find_here() -> *mut Here;
    /// Enters `body`, with these registers, and leaves its result there. The seat is the thread's in this domain,
    /// there is room on the control stack, and the host runs.
    pub(crate) fn mullion_word_invoke(
        inner: *const Inner,
        body: u64,
        registers: *mut Registers,
        seat: *mut Seat,
    );
    /// Calls a function of the host with these registers and `count` stack arguments.
    pub(crate) fn mullion_word_call_host(
        target: u64,
        registers: *mut Registers,
        stacked: *const u64,
        count: u64,
    );
}

/// An entry from the host leaves so much of the host's stack at least: a module must not be able to use it up by
/// being called back again and again.
pub(crate) const HOST_RESERVE: u64 = 128 << 10;

/// The calling thread's own.
pub(crate) fn here() -> *mut Here {
    // SAFETY: it computes an address.
    unsafe { mullion_word_find_here() }
}

/// The address of a label.
pub(crate) fn address(label: unsafe extern "C" fn()) -> u64 {
    label as *const c_void as u64
}

/// Copies bytes from or to memory that may not be there: how many were copied. Another thread may write them meanwhile.
///
/// # Safety
/// Where there is memory, it may be read at `from`, and written at `to`.
pub(crate) unsafe fn fetch(to: *mut u8, from: *const u8, bytes: u64) -> u64 {
    // SAFETY: it reads and writes these bytes alone, as the caller allows, and goes on behind a fault (`behind_fetch`).
    unsafe { mullion_word_fetch(to, from, bytes) }
}

/// Bytes of a text that may not be there, in front of its zero. None: its memory ends before. Another thread may write it meanwhile.
///
/// # Safety
/// Where there is memory, it may be read.
pub(crate) unsafe fn text(at: *const u8) -> Option<u64> {
    // SAFETY: it reads pages that the text is in, as the caller allows, and goes on behind a fault (`behind_fetch`).
    let length = unsafe { mullion_word_text(at) };
    (length != u64::MAX).then_some(length)
}

/// Where a thread goes on that [`fetch`] or [`text`] has led to no memory: byte by byte, and then with what it has.
pub(crate) fn behind_fetch(at: u64) -> Option<u64> {
    let measured = mullion_word_text as *const c_void as u64..address(mullion_word_text_gone);
    if measured.contains(&at) {
        return Some(address(mullion_word_text_gone));
    }
    let eight = address(mullion_word_fetch_eight)..address(mullion_word_fetch_bytes);
    let byte = address(mullion_word_fetch_byte)..address(mullion_word_fetch_end);
    if eight.contains(&at) {
        return Some(address(mullion_word_fetch_bytes));
    }
    byte.contains(&at).then(|| address(mullion_word_fetch_end))
}
