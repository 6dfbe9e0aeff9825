//! What the code of modules does, instruction by instruction, for traces. It costs nothing unless a host asks for it.
//!
//! One thread is followed: the first that enters a module. Its processor traps behind each instruction (the trap flag), in the
//! module and in the gates, and the handler tells of those in modules. The host's own functions run without. A module
//! that is followed enters and leaves by the slow way, where the flag is set and taken back.

use crate::core::Core;
use crate::gates::{Here, Import, here, state};
use crate::signals;
use mullion_supervisor::DomainId;
use mullion_word_table::is_stepping;
use std::arch::asm;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a followed thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleStep<'a> {
    /// The host, or another module, calls a function of a module.
    Call {
        /// The module's domain.
        domain: DomainId,
        /// The function's switch gate; of a function that has none, such as a constructor, its first instruction.
        gate: u64,
    },
    /// That call is over: it has returned, or was ended.
    Return,
    /// A module calls a function of the host.
    Leave {
        /// The module's domain.
        domain: DomainId,
        /// The function.
        function: u64,
    },
    /// That function has returned, and the module has what it was given.
    Back,
    /// The host has granted what a check had missed (`Domain::on_demand`). It is told in the handler of a signal.
    Granted,
    /// An instruction of a module is about to run. It is told in the handler of a signal.
    Instruction {
        /// Where it is.
        address: u64,
        /// The code from there on, 15 bytes or up to the end of the module's.
        code: &'a [u8],
        /// By their numbers in machine code.
        registers: &'a [u64; 16],
    },
}

type Hook = Box<dyn Fn(ModuleStep<'_>) + Send + Sync>;

static HOOK: OnceLock<Hook> = OnceLock::new();
/// The thread that is followed.
static WHO: AtomicPtr<Here> = AtomicPtr::new(ptr::null_mut());

const TRAP_FLAG: i64 = 1 << 8;

/// The first hook stays; whether this is it.
pub(crate) fn set(hook: Hook) -> bool {
    HOOK.set(hook).is_ok()
}

/// Whether modules that are loaded now are followed.
pub(crate) fn is_on() -> bool {
    HOOK.get().is_some()
}

/// The hook, if the domain is followed, and this thread is the one.
fn hook(core: &Core) -> Option<&'static Hook> {
    if core.inner.state.load(Ordering::Relaxed) & state::FOLLOWED == 0 {
        return None;
    }
    let hook = HOOK.get()?;
    let me = here();
    let (none, yes, no) = (ptr::null_mut(), Ordering::AcqRel, Ordering::Acquire);
    match WHO.compare_exchange(none, me, yes, no) {
        Ok(_) => Some(hook),
        Err(who) => (who == me).then_some(hook),
    }
}

/// Has the processor trap behind each instruction, or no more.
fn trap(on: bool) {
    let flag = if on { TRAP_FLAG } else { 0 };
    // SAFETY: it changes the trap flag alone, whose signal the thread's handler answers (`step`).
    unsafe {
        asm!(
            "pushfq",
            "andq $-257, (%rsp)",
            "orq {flag}, (%rsp)",
            "popfq",
            flag = in(reg) flag,
            options(att_syntax)
        );
    }
}

/// A call into a module that runs until this is dropped, or one out of it.
pub(crate) struct Following(Option<(&'static Hook, ModuleStep<'static>)>);

/// In front of a call of a body, as the host.
pub(crate) fn enter(core: &Core, body: u64) -> Following {
    let Some(hook) = hook(core) else {
        return Following(None);
    };
    let mut gates = core.module.parts.gates.iter();
    let gate = gates.find(|gate| core.base + gate.body == body);
    hook(ModuleStep::Call {
        domain: core.id,
        gate: gate.map_or(body, |gate| core.base + gate.address),
    });
    trap(true);
    Following(Some((hook, ModuleStep::Return)))
}

/// In front of a call of the host's function, as the host, without the flag.
pub(crate) fn leave(core: &Core, import: &Import) -> Following {
    let Some(hook) = hook(core) else {
        return Following(None);
    };
    hook(ModuleStep::Leave {
        domain: core.id,
        function: import.target,
    });
    Following(Some((hook, ModuleStep::Back)))
}

/// In the host's own code, until this is dropped: a module that calls comes here with the flag.
pub(crate) fn pause() -> Paused {
    if HOOK.get().is_none() {
        return Paused(false);
    }
    let flags: i64;
    // SAFETY: it reads the flags.
    unsafe { asm!("pushfq", "popq {flags}", flags = out(reg) flags, options(att_syntax)) };
    let is_on = flags & TRAP_FLAG != 0;
    if is_on {
        trap(false);
    }
    Paused(is_on)
}

pub(crate) struct Paused(bool);

impl Drop for Paused {
    fn drop(&mut self) {
        if self.0 {
            trap(true);
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let Some((hook, step)) = self.0 else {
            return;
        };
        match step {
            ModuleStep::Return => {
                trap(false);
                hook(step);
            }
            _ => hook(step),
        }
    }
}

/// In the handler of a refused access whose right was granted, as the host.
pub(crate) fn granted(core: &Core) {
    if let Some(hook) = hook(core) {
        hook(ModuleStep::Granted);
    }
}

/// In the handler of a trap behind an instruction: whether it was for this.
///
/// # Safety
/// The thread's own, and its context.
pub(crate) unsafe fn step(here: *mut Here, context: &libc::ucontext_t) -> bool {
    let Some(hook) = HOOK.get() else {
        return false;
    };
    // A thread that is brought past its check goes on with that, and is followed again from its next call on.
    if WHO.load(Ordering::Relaxed) != here || is_stepping() {
        return false;
    }
    let at = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    // SAFETY: it is the thread's own, and a domain that runs lives.
    let core = unsafe { (*here).domain.as_ref() }.map(|inner| inner.core());
    if let Some(core) = core.filter(|core| core.text.contains(&at)) {
        let bytes = (core.text.end - at).min(15) as usize;
        // SAFETY: it is the thread's own.
        let errno = unsafe { &mut *libc::__errno_location() };
        let before = *errno;
        hook(ModuleStep::Instruction {
            address: at,
            // SAFETY: it is the module's text, mapped for the life of the process, and never written.
            code: unsafe { std::slice::from_raw_parts(at as *const u8, bytes) },
            registers: &signals::general(&context.uc_mcontext.gregs),
        });
        *errno = before;
    }
    true
}
