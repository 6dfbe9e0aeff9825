//! Signal handlers: faults of domains, the time limit, and the way to the
//! handlers that the host had before.

use crate::assembly::{self, Kind, ended};
use crate::fault_record::Saved;
use crate::tcb::{self, Tcb};
use crate::{reserve, time_signal};
use mullion_report::error::Error;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Signals that an instruction can cause.
const FAULTS: [libc::c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// What the host had installed, in the order of [`FAULTS`].
static PREVIOUS: [OnceLock<libc::sigaction>; FAULTS.len()] =
    [const { OnceLock::new() }; FAULTS.len()];

/// Clears the direction, alignment-check and trap flags.
const FLAGS_KEPT: i64 = !((1 << 10) | (1 << 18) | (1 << 8));

/// Installs the handlers, in front of those that the host has.
pub(crate) fn install() -> Result<(), Error> {
    install_faults()?;
    let free = (libc::SIGRTMIN()..libc::SIGRTMAX())
        .rev()
        .find(|signal| is_default(*signal));
    let signal = free.unwrap_or(libc::SIGRTMAX() - 1);
    set_handler(signal, on_time)?;
    time_signal::choose(signal);
    mullion_signals::open_in_handlers(libc::SIGSEGV);
    Ok(())
}

/// Puts the fault handlers in front again, if the host installed others since.
/// A handler that was seen before stays the one to chain to.
pub(crate) fn install_faults() -> Result<(), Error> {
    static ONCE: Mutex<()> = Mutex::new(());
    let _once = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, previous) in FAULTS.iter().zip(&PREVIOUS) {
        if current_action(*signal)?.sa_sigaction != on_fault as *const () as usize {
            let action = set_handler(*signal, on_fault)?;
            let _ = previous.set(action);
        }
    }
    Ok(())
}

/// Opens, for the calling thread, the signals that end invocations. A fault that is
/// blocked would end the process, and a time limit would not be kept.
pub(crate) fn open() -> Result<(), Error> {
    // SAFETY: an empty set is a valid one, and the calls only write to it.
    let failed = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in FAULTS {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigaddset(&mut set, time_signal::get());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        error => Err(Error::System {
            what: "opening the signals that end invocations",
            source: std::io::Error::from_raw_os_error(error),
        }),
    }
}

impl Tcb {
    /// Sees to it that the thread can be interrupted whatever a domain does: the
    /// block's own alternate stack is in force, and the signals that the run time
    /// needs are open.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.alternate.install()?;
        open()
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn set_handler(signal: libc::c_int, handler: Handler) -> Result<libc::sigaction, Error> {
    // SAFETY: both are plain structures for which zero is a valid value; the
    // handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // A handler of the host's would have what ours leave of the alternate stack.
        libc::sigfillset(&mut action.sa_mask);
        for fault in FAULTS {
            libc::sigdelset(&mut action.sa_mask, fault);
        }
        let mut previous = std::mem::zeroed();
        if libc::sigaction(signal, &action, &mut previous) != 0 {
            return Err(Error::last("installing a signal handler"));
        }
        Ok(previous)
    }
}

fn current_action(signal: libc::c_int) -> Result<libc::sigaction, Error> {
    // SAFETY: only asks; the structure is plain.
    unsafe {
        let mut action = std::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &mut action) != 0 {
            return Err(Error::last("asking for a signal handler"));
        }
        Ok(action)
    }
}

fn is_default(signal: libc::c_int) -> bool {
    current_action(signal).is_ok_and(|action| action.sa_sigaction == libc::SIG_DFL)
}

/// A fault: a domain's ends the invocation, everything else is the host's.
extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid context, which is this handler's to change.
    let interrupted = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // SAFETY: the kernel passes a valid description of the signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as u64) };
    let registers = &mut interrupted.uc_mcontext.gregs;
    let instruction = registers[libc::REG_RIP as usize] as u64;
    // Positive codes are the kernel's: an instruction did it, not `kill`.
    if code > 0 {
        let (begin, end) = (
            assembly::mullion_copy_begin as *const (),
            assembly::mullion_copy_end as *const (),
        );
        if (begin as u64..end as u64).contains(&instruction) {
            registers[libc::REG_RIP as usize] = end as i64;
            return;
        }
        if let Some((tcb, host)) = invocation_at(instruction) {
            end_invocation(tcb, host, registers, signal, code, address);
            return;
        }
        if signal == libc::SIGSEGV && reserve::is_needed(address, interrupted) {
            return;
        }
    }
    chain(signal, info, context);
}

/// The watchdog found a deadline past, or somebody else sent the signal.
extern "C" fn on_time(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context, which is this handler's to change.
    let interrupted = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = &mut interrupted.uc_mcontext.gregs;
    let instruction = registers[libc::REG_RIP as usize] as u64;
    match invocation_at(instruction) {
        Some((tcb, host)) if tcb.reserve_is_open() => {
            let (code, address) = (reserve::SEGV_MAPERR, tcb.end_of_control_stack());
            end_invocation(tcb, host, registers, libc::SIGSEGV, code, address);
        }
        Some((tcb, host)) if tcb.is_stopped() => end_invocation(tcb, host, registers, 0, 0, 0),
        Some(_) => {}
        None => reserve::wait_for_handler(interrupted),
    }
}

/// The thread and HOST of the running invocation, if it may be ended at this
/// instruction (see "SIGNALS" in `trampoline.s`).
fn invocation_at(instruction: u64) -> Option<(&'static Tcb, u64)> {
    let tcb = tcb::current()?;
    let (domain, host) = tcb.running()?;
    let builtin = assembly::mullion_builtin_begin as *const () as u64
        ..assembly::mullion_builtin_end as *const () as u64;
    let inside = instruction.wrapping_sub(domain.window) < mullion_abi::WINDOW_SIZE;
    let on_its_way = Kind::if_known().is_some_and(|kind| kind.is_inside(instruction));
    (inside || on_its_way || builtin.contains(&instruction)).then_some((tcb, host))
}

/// Notes what happened and makes the handler return to the way out.
fn end_invocation(
    tcb: &Tcb,
    host: u64,
    registers: &mut Saved,
    signal: libc::c_int,
    code: libc::c_int,
    address: u64,
) {
    let Some(kind) = Kind::if_known() else {
        return;
    };
    // SAFETY: the record belongs to this thread, whose code outside of handlers
    // reads it only after the invocation has ended; handlers do not interrupt
    // each other here, as a fault in this one would be the host's.
    let record = unsafe { &mut *tcb.fault.get() };
    record.fill(registers, signal, code, address);
    record.granted = tcb.limit();
    let stack = registers[libc::REG_RSP as usize] as u64;
    record.walk(tcb.foot(), stack, tcb.control.get());
    registers[libc::REG_RIP as usize] = kind.abort as *const () as i64;
    registers[libc::REG_RSP as usize] = host as i64;
    registers[libc::REG_R10 as usize] = tcb.foot() as i64;
    registers[libc::REG_RCX as usize] = i64::from(ended::FAULT);
    registers[libc::REG_EFL as usize] &= FLAGS_KEPT;
    tcb.close_reserve();
}

/// Does what would have happened without us.
fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let place = FAULTS.iter().position(|fault| *fault == signal);
    let Some(previous) = place.and_then(|place| PREVIOUS[place].get()) else {
        return give_up(signal, info);
    };
    match previous.sa_sigaction {
        libc::SIG_DFL => give_up(signal, info),
        libc::SIG_IGN => {
            // SAFETY: the kernel passes a valid description of the signal. It does not ignore what an instruction did.
            if unsafe { (*info).si_code } > 0 {
                give_up(signal, info);
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            block_as(signal, previous, context);
            // SAFETY: the host installed this address as a handler of this signature.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            block_as(signal, previous, context);
            // SAFETY: the host installed this address without SA_SIGINFO: as a handler of the older signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Blocks the signals that the kernel would have blocked for the host's handler.
fn block_as(signal: libc::c_int, previous: &libc::sigaction, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context, and both sets are valid ones.
    unsafe {
        let mut set = previous.sa_mask;
        if previous.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut set, signal);
        }
        let interrupted = &(*context.cast::<libc::ucontext_t>()).uc_sigmask;
        for blocked in 1..=libc::SIGRTMAX() {
            if libc::sigismember(interrupted, blocked) == 1 {
                libc::sigaddset(&mut set, blocked);
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

/// The default action: the instruction faults again, or the signal comes again.
fn give_up(signal: libc::c_int, info: *mut libc::siginfo_t) {
    // SAFETY: the default action is always a valid one; `raise` and `signal` may
    // be called in handlers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
}
