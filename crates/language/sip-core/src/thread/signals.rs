//! Signals that end a process: faults of its own code, and the interruption of an endless loop.
//!
//! The handler runs on the worker's alternate stack. It may have interrupted a process outside of any critical piece.
//! Then it notes the cause, and has the scheduler go on where it switched to the thread. The scheduler ends the
//! process. Everything else goes to the handler that was there before. So does what another OS process has sent,
//! which is meant for the whole program, whoever runs.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use super::calls::Registers;
use super::worker::INTERRUPT;
use super::{calls, here, watch};
use crate::process::Cause;

/// Bytes of a worker's alternate stack.
const STACK: usize = 64 << 10;
/// What a process can raise by itself.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGABRT,
];

/// What the program did about each signal before. The host's copy of this crate has the handlers.
static BEFORE: OnceLock<Vec<(i32, libc::sigaction)>> = OnceLock::new();

/// Installs the handlers, once, for the whole program.
pub(crate) fn install() {
    calls::find();
    BEFORE.get_or_init(|| {
        let all = FAULTS.iter().chain([&INTERRUPT]);
        all.map(|signal| (*signal, replace(*signal))).collect()
    });
}

fn replace(signal: i32) -> libc::sigaction {
    // SAFETY: both structures are plain data for which zero is valid; the handler has the signature that
    // SA_SIGINFO asks for, and does what a handler may: no lock, no allocation.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let mut before = std::mem::zeroed();
        libc::sigaction(signal, &action, &mut before);
        before
    }
}

/// Gives the calling OS thread an alternate stack.
pub(super) fn prepare_thread() {
    thread_local!(static KEEP: RefCell<Box<[MaybeUninit<u8>]>> = RefCell::default());
    KEEP.with(|keep| {
        let mut stack = Box::new_uninit_slice(STACK);
        let description = libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: STACK,
        };
        // SAFETY: the stack lives as long as the OS thread, which workers never end.
        unsafe { libc::sigaltstack(&description, ptr::null_mut()) };
        keep.replace(stack);
    });
}

/// What the system calls the calling OS thread.
pub(super) fn os_thread() -> i32 {
    // SAFETY: takes nothing, changes nothing.
    unsafe { libc::gettid() }
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes the interrupted context of this thread.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let ended = match signal {
        INTERRUPT => here::thread().is_none_or(|_| interrupted(registers)),
        // SAFETY: the system passes what it knows of the signal.
        _ => is_own(unsafe { &*info }) && faulted(signal, registers),
    };
    if !ended {
        pass_on(signal, info, context);
    }
}

/// True if there is nothing else to do about the signal.
fn interrupted(registers: &mut Registers) -> bool {
    if let (Some(wait), Some((worker, _))) = (calls::waited(registers), here::running()) {
        worker.count(wait);
    }
    let Some(cause) = watch::verdict() else {
        return true;
    };
    if here::is_leaving() {
        return true;
    }
    if here::in_critical_piece() {
        here::die_later(cause);
        return true;
    }
    // Elsewhere than on the thread's own stack, the next look will find it.
    abandon(cause, registers);
    true
}

/// Whether the processor or this program has raised it: no other OS process.
fn is_own(info: &libc::siginfo_t) -> bool {
    // SAFETY: who has sent it is there if somebody has.
    !is_sent(info) || unsafe { info.si_pid() == libc::getpid() }
}

/// Whether it was sent, and will not come again by itself when the handler returns.
fn is_sent(info: &libc::siginfo_t) -> bool {
    info.si_code <= 0
}

/// True if the fault was a process's own.
fn faulted(signal: i32, registers: &mut Registers) -> bool {
    let cause = match signal {
        _ if here::is_leaving() => Cause::Panic,
        libc::SIGSEGV if near_the_end(registers) => Cause::Stack,
        libc::SIGABRT => Cause::Abort,
        _ => Cause::Fault,
    };
    !here::in_critical_piece() && abandon(cause, registers)
}

/// Whether the stack pointer is where only an overflow takes it.
fn near_the_end(registers: &Registers) -> bool {
    let stack_pointer = registers[libc::REG_RSP as usize] as usize;
    here::thread().is_some_and(|thread| stack_pointer < thread.fiber.floor())
}

fn abandon(cause: Cause, registers: &mut Registers) -> bool {
    let Some((worker, thread)) = here::running() else {
        return false;
    };
    let stack_pointer = registers[libc::REG_RSP as usize] as usize;
    if !thread.fiber.contains(stack_pointer) {
        return false;
    }
    // What is outside a process is written in critical pieces only, or so that it may be left half done; its own
    // memory is not looked at again.
    let (address, stack) = worker.abandon(thread, cause);
    registers[libc::REG_RIP as usize] = address as i64;
    registers[libc::REG_RSP as usize] = stack as i64;
    true
}

/// The handler that was there before ours has its say.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE
        .get()
        .and_then(|all| all.iter().find(|(known, _)| *known == signal));
    let Some((_, before)) = before else { return };
    // SAFETY: the action is the program's own of before, called as the system would have; if it was the
    // default, it is put back. Then a fault comes again, and what was sent is sent again: it is blocked until we return.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL if signal == INTERRUPT => return,
            libc::SIG_DFL => {
                libc::sigaction(signal, before, ptr::null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(i32) = std::mem::transmute(handler);
                handler(signal);
            }
        }
        // The standard library's own puts the default back, too, and expects a fault that comes again.
        if is_sent(&*info) && is_default(signal) {
            libc::raise(signal);
        }
    }
}

fn is_default(signal: i32) -> bool {
    // SAFETY: a structure of plain data, for which zero is valid, that the system fills.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut now);
        now.sa_sigaction == libc::SIG_DFL
    }
}
