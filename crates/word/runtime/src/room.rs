//! Room for the host's own handlers, where a module has nearly used up its control stack.
//!
//! A handler without SA_ONSTACK that interrupts a module runs on the control stack, below what the module has of it:
//!
//! ```text
//!   room below %rsp              what becomes of the handler
//!   enough                       it runs
//!   too little for the handler   it meets closed memory, which the handler of faults opens: it runs to its end, the room
//!                                is closed again, and the module goes on
//!   too little for the kernel    the signal is lost, the kernel sends SIGSEGV in its place, and the call ends
//! ```
//!
//! The last row cannot be mended from here. Memory that is closed for a call of the module is closed for the kernel, which
//! does not say which signal it was.
//!
//! The handler of faults leaves a signal pending, the one of limits on time, and blocked in the handler that it returns to. When
//! that one returns, the kernel restores the module's mask, and delivers the signal before the module's next instruction.

use crate::fault;
use crate::gates::Here;
use crate::signals;
use crate::thread::Thread;
use crate::world::world;
use std::ptr;

/// Codes of SIGSEGV: by the kernel itself, which had no room for a signal, or of an address that no memory can have.
const BY_KERNEL: i32 = 0x80;
/// What the kernel leaves alone below %rsp.
const RED_ZONE: u64 = 128;

/// Whether the thread goes on where it was: host code has met the closed room, or the kernel has for it, and now it is open. Or
/// the kernel had no room while a gate was about to change stacks: the signal is lost, and nobody runs who could be blamed.
///
/// # Safety
/// In the handler of a fault at this instruction, with the thread's own `here`.
pub(crate) unsafe fn make(
    here: &Here,
    at: u64,
    info: &libc::siginfo_t,
    context: &mut libc::ucontext_t,
) -> bool {
    // SAFETY: it is the thread's own.
    let Some(thread) = (unsafe { here.thread.cast::<Thread>().as_mut() }) else {
        return false;
    };
    let stack = context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
    // SAFETY: the signal is one of a fault, which has an address.
    let address = unsafe { info.si_addr() as u64 };
    let is_met = match info.si_code {
        BY_KERNEL => thread.control().contains(&stack),
        _ => thread.room().contains(&address),
    };
    if !is_met {
        return false;
    }
    if fault::is_code(at) {
        return here.domain.is_null() && thread.is_short_of_room(info, stack);
    }
    let opened = !thread.is_room_open && thread.protect_room(true);
    if opened {
        come_back(context);
    }
    opened
}

/// In the handler of the signal that [`come_back`] sends: closes the room, if the host's handlers have returned. False: one of
/// them runs, and the signal comes again.
pub(crate) fn settle(thread: &mut Thread, context: &mut libc::ucontext_t) -> bool {
    if !thread.is_room_open {
        return true;
    }
    let at = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    let is_back = fault::is_code(at);
    match is_back {
        true => drop(thread.protect_room(false)),
        false => come_back(context),
    }
    is_back
}

/// Sends the thread the signal of limits on time, to be delivered when the handler returns that runs in this context.
fn come_back(context: &mut libc::ucontext_t) {
    let signal = signals::late();
    // SAFETY: the set is made before it is used, and the context is the caller's to change; all of these calls may be made
    // in handlers. The mask of the caller's own interrupted context is restored when it returns.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        libc::sigaddset(&mut context.uc_sigmask, signal);
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
    }
}

impl Thread {
    /// Opens the room for handlers, or closes it.
    pub(crate) fn protect_room(&mut self, opens: bool) -> bool {
        let room = self.room();
        let protection = match opens {
            true => libc::PROT_READ | libc::PROT_WRITE,
            false => libc::PROT_NONE,
        };
        let memory = &world().private.memory;
        let bytes = room.end - room.start;
        let is_done = memory.protect(room.start, bytes, protection).is_ok();
        self.is_room_open = opens == is_done;
        is_done
    }

    /// Whether the kernel may have found no room for a signal below this %rsp.
    pub(crate) fn is_short_of_room(&self, info: &libc::siginfo_t, stack: u64) -> bool {
        // SAFETY: getauxval reads a table that the kernel made.
        let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
        let left = stack.saturating_sub(self.control().start);
        info.si_code == BY_KERNEL && left < frame + RED_ZONE
    }
}
