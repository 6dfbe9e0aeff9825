//! Room for the host's own handlers, where a domain has nearly filled a control stack.
//!
//! A handler without SA_ONSTACK that interrupts a domain runs on the control stack,
//! below what the domain has of it. The domain pushes eight bytes at a time until it
//! meets closed memory, so the kernel and the handler may meet that memory first:
//!
//! ```text
//! room below %rsp             what becomes of the handler
//! enough                      it runs
//! too little for the handler  it runs into the reserve, which the fault handler opens:
//!                             then the invocation is ended when the handler returns
//! too little for the kernel   the signal is lost, the kernel sends SIGSEGV in its
//!                             place, and the invocation ends
//! ```
//! In both of the last rows the invocation ends by `ControlStackOverflow`. The last row
//! cannot be mended from here. Memory that is closed for a domain's push is closed for
//! the kernel, which does not say which signal it was.
//!
//! The fault handler leaves a signal pending, and blocked in the handler that it
//! returns to. When that one returns, the kernel restores the domain's mask, and
//! delivers the signal before the domain's next instruction.

use crate::control_stack::RESERVE;
use crate::tcb::{self, Tcb};
use crate::time_signal;
use mullion_abi::CONTROL_REGION;
use std::ptr;

/// Codes of SIGSEGV: the kernel itself had no room for a signal, and an address is not mapped.
pub(crate) const BY_KERNEL: libc::c_int = 0x80;
pub(crate) const SEGV_MAPERR: libc::c_int = 1;
/// What the kernel leaves alone below %rsp.
const RED_ZONE: u64 = 128;

impl Tcb {
    /// Whether a handler of the host's has needed the reserve, in the invocation that runs.
    pub(crate) fn reserve_is_open(&self) -> bool {
        self.reserve.is_open.get()
    }

    /// Where an overflow is found.
    pub(crate) fn end_of_control_stack(&self) -> u64 {
        self.foot() + RESERVE.end - 8
    }

    /// Whether the kernel may have found no room for a signal below this %rsp.
    pub(crate) fn is_short_of_room(&self, stack: u64) -> bool {
        // SAFETY: getauxval reads a table that the kernel made.
        let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
        let room = stack.saturating_sub(self.foot() + RESERVE.end);
        room < frame + RED_ZONE
    }

    fn open_reserve(&self) -> bool {
        let opened = self.protect_reserve(libc::PROT_READ | libc::PROT_WRITE);
        self.reserve.is_open.set(opened);
        opened
    }

    /// For who knows that no handler runs there.
    pub(crate) fn close_reserve(&self) {
        if self.reserve_is_open() && self.protect_reserve(libc::PROT_NONE) {
            self.reserve.is_open.set(false);
        }
    }

    /// By the yes to all of the region, when it was reserved: a handler cannot ask.
    #[expect(
        clippy::disallowed_methods,
        reason = "the region is the host's as a whole"
    )]
    fn protect_reserve(&self, protection: libc::c_int) -> bool {
        let start = ptr::with_exposed_provenance_mut((self.foot() + RESERVE.start) as usize);
        let length = (RESERVE.end - RESERVE.start) as usize;
        // SAFETY: a part of the thread's own region, which nothing but handlers uses.
        unsafe { libc::mprotect(start, length, protection) == 0 }
    }
}

/// Whether host code has met the closed reserve of this thread at `address`. If so it is
/// open, and what has been interrupted may go on.
pub(crate) fn is_needed(address: u64, interrupted: &mut libc::ucontext_t) -> bool {
    let Some(tcb) = tcb::current() else {
        return false;
    };
    let reserve = tcb.foot() + RESERVE.start..tcb.foot() + RESERVE.end;
    let opened = reserve.contains(&address) && !tcb.reserve_is_open() && tcb.open_reserve();
    if opened {
        come_back(tcb, interrupted);
    }
    opened
}

/// The signal has come while the handler that needs the reserve, or one that has
/// interrupted it, runs.
pub(crate) fn wait_for_handler(interrupted: &mut libc::ucontext_t) {
    let Some(tcb) = tcb::current().filter(|tcb| tcb.reserve_is_open()) else {
        return;
    };
    let stack = interrupted.uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
    if stack.wrapping_sub(tcb.foot()) < CONTROL_REGION {
        come_back(tcb, interrupted);
    }
}

/// Sends the thread the signal of time limits, to be delivered when the handler returns
/// that runs in the interrupted context.
fn come_back(tcb: &Tcb, interrupted: &mut libc::ucontext_t) {
    let signal = time_signal::get();
    // SAFETY: the set is filled before it is used, and the context is the caller's to
    // change; all calls may be made in handlers. The mask of this handler's own
    // interrupted context is restored when it returns.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        libc::sigaddset(&mut interrupted.uc_sigmask, signal);
    }
    time_signal::send(tcb.thread);
}
