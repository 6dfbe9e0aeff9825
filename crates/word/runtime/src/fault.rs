//! Faults: a call in which something was refused ends, and its caller goes on with the export's error value.
//!
//! The signal's handler takes the newest frame down and notes what it has seen. It allocates nothing and takes no lock.
//! `mullion_word_faulted` goes on from there on the host's stack, where the report is made.

use crate::core::{Core, Record};
use crate::demand::{self, Answered};
use crate::follow;
use crate::gates::{self, Frame, Here, Inner, here, state};
use crate::instance;
use crate::learn;
use crate::memory::{PAGE, lock};
use crate::object::object;
use crate::operand;
use crate::policy::ErrorValue;
use crate::refuse::Refusal;
use crate::report::{FaultKind, Reached, Report, StackWords, allows};
use crate::room;
use crate::signals::{self, Handler, SIGNALS};
use crate::thread::{self, Thread};
use crate::world::{try_world, world};
use mullion_plain::Plain;
use mullion_word_abi::{STACK_REGION, TRAP_ACCESS, TRAP_LABEL, TRAP_UNCAUGHT};
use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

static BEFORE: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];

/// Installs the handlers. Behind the table's, whose handler of SIGTRAP ours passes its steps on to.
pub(crate) fn install() -> io::Result<()> {
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        let old = signals::install(signal, on_fault)?;
        let _first = before.set(old);
    }
    Ok(())
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let here = here();
    // SAFETY: the kernel gives a handler with SA_SIGINFO both, whole, until it returns; `here` is the thread's.
    unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        // A signal that somebody sent is no fault.
        let is_sent = (*info).si_code <= 0;
        let is_step = signal == libc::SIGTRAP && (*info).si_code == 2;
        let went = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
        let is_memory = !is_sent && matches!(signal, libc::SIGSEGV | libc::SIGBUS);
        if let Some(next) = gates::behind_fetch(*went as u64).filter(|_| is_memory) {
            *went = next as i64;
            return;
        }
        // Behind an `int3`, and at the instruction otherwise.
        let at = (*went as u64).wrapping_sub((signal == libc::SIGTRAP).into());
        if is_step && follow::step(here, context) {
            return;
        }
        if is_memory && room::make(&*here, at, &*info, context) {
            return;
        }
        // A handler of the host that has interrupted a module runs with its domain set. Its faults are the host's.
        if is_sent
            || is_step
            || (*here).domain.is_null()
            || (*here).frame.is_null()
            || (*here).thread.is_null()
            || !is_code(at)
        {
            return pass_on(signal, info, context);
        }
        // A refusal is for the call that it was told to, and not for one that came meanwhile: it waits until that goes on.
        let registers = &mut context.uc_mcontext.gregs;
        let is_pending = registers[libc::REG_RIP as usize] as u64
            == gates::address(gates::mullion_word_pending_trap);
        if is_pending && !(*(*here).thread.cast::<Thread>()).is_refused((*here).frame) {
            registers[libc::REG_RIP as usize] = gates::address(gates::mullion_word_go_on) as i64;
            return;
        }
        let kind = classify(&*here, signal, &*info, context);
        let registers = signals::general(&context.uc_mcontext.gregs);
        if learn::go_on(&mut *here, kind, &registers, context) {
            return;
        }
        let answered = demand::answered(&mut *here, kind, &registers, context);
        if matches!(answered, Answered::Granted) {
            return;
        }
        take_down(&mut *here, kind, (*info).si_addr() as u64, context);
        let thread = &mut *(*here).thread.cast::<Thread>();
        thread.record.has_lost = matches!(answered, Answered::Lost);
    }
}

/// Ends the call that runs, if the thread runs code of this module; for limits.
pub(crate) fn end_late(of: *const Inner, context: &mut libc::ucontext_t) -> bool {
    // SAFETY: it is the thread's own, and what it points to lives while a domain runs.
    unsafe {
        let here = &mut *here();
        let Some(inner) = here.domain.as_ref().filter(|_| here.domain == of) else {
            return false;
        };
        let at = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
        if !inner.core().text.contains(&at) || here.thread.is_null() {
            return false;
        }
        take_down(here, Some(FaultKind::Time), 0, context);
        true
    }
}

/// Whether modules' code is there, which may have ended, or the gates between it and the host.
pub(crate) fn is_code(at: u64) -> bool {
    let thunks = try_world().map(|world| world.thunks.memory());
    let is_thunk = thunks.is_some_and(|thunks| at.wrapping_sub(thunks.base()) < thunks.bytes());
    is_thunk || mullion_word_table::is_code(at as usize)
}

/// # Safety
/// In a handler of a fault, with a domain running.
unsafe fn classify(
    here: &Here,
    signal: i32,
    info: &libc::siginfo_t,
    context: &libc::ucontext_t,
) -> Option<FaultKind> {
    let at = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    let stack = context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
    // SAFETY: the signal is one of a fault, which has an address.
    let address = unsafe { info.si_addr() as u64 };
    // SAFETY: a domain runs, so both are there.
    let (thread, core) = unsafe { (&*here.thread.cast::<Thread>(), (*here.domain).core()) };
    if at == gates::address(gates::mullion_word_ended_trap) {
        return (thread.late == here.domain).then_some(FaultKind::Time);
    }
    if at == gates::address(gates::mullion_word_refused_trap) {
        return Some(FaultKind::Call);
    }
    if at == gates::address(gates::mullion_word_unwind_trap) {
        return Some(FaultKind::Unwind);
    }
    if at == gates::address(gates::mullion_word_pending_trap) {
        return Some(FaultKind::Policy);
    }
    Some(match signal {
        libc::SIGFPE => FaultKind::Arithmetic,
        libc::SIGTRAP => FaultKind::Trap,
        libc::SIGILL if core.text.contains(&at) => {
            // SAFETY: an instruction was fetched there; the text's last page is mapped to its end.
            let bytes = unsafe {
                let byte = |n: u64| ((at + n) as *const u8).read();
                let third = match (at + 2) % PAGE {
                    0 | 1 if !core.text.contains(&(at + 2)) => 0,
                    _ => byte(2),
                };
                [byte(0), byte(1), third]
            };
            match bytes {
                TRAP_ACCESS => FaultKind::Access,
                TRAP_LABEL => FaultKind::Label,
                TRAP_UNCAUGHT => FaultKind::Uncaught,
                [0x0f, 0x0b, _] => FaultKind::Abort,
                _ => FaultKind::Illegal,
            }
        }
        libc::SIGILL => FaultKind::Illegal,
        _ if thread.is_control_guard(address) || thread.is_short_of_room(info, stack) => {
            FaultKind::ControlStack
        }
        _ if is_own_stack(here, address) => FaultKind::DataStack,
        _ => FaultKind::NoMapping,
    })
}

/// In the region of the running domain's data stack, or in one of those beside it.
fn is_own_stack(here: &Here, address: u64) -> bool {
    // SAFETY: a domain runs, so there is a frame with its seat.
    let low = unsafe { (*(*here.frame).seat).low };
    let region = low & !(STACK_REGION - 1);
    (region - STACK_REGION..region + 2 * STACK_REGION).contains(&address)
        && world().stacks.is_near(address)
}

/// # Safety
/// In a handler, with a domain running.
unsafe fn take_down(
    here: &mut Here,
    kind: Option<FaultKind>,
    address: u64,
    context: &mut libc::ucontext_t,
) {
    let registers = &mut context.uc_mcontext.gregs;
    // SAFETY: a domain runs, so there is a frame of it, with its seat; all are this thread's.
    unsafe {
        let frame: *mut Frame = here.frame;
        let seat = (*frame).seat;
        let inner = (*seat).inner;
        let counter = (*seat).counter;
        *counter += *counter & 1;
        (*seat).stack = (*frame).stack;
        let depth = (*seat).depth.load(Ordering::Relaxed).saturating_sub(1);
        if depth == 0 {
            (*seat).settled.store(0, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
        }
        (*seat).depth.store(depth, Ordering::Relaxed);
        let outer = (*frame).before;
        let is_host = (*frame).from.is_null();
        here.frame = outer;
        here.control = match is_host {
            true => frame as u64 + size_of::<Frame>() as u64,
            false => (*frame).caller,
        };
        here.domain = std::ptr::null();
        let top = registers[libc::REG_R15 as usize] as u64;
        let stack = StackWords::around(top, (*seat).low, (*seat).top);
        let thread = &mut *here.thread.cast::<Thread>();
        if thread.is_room_open {
            thread.protect_room(false);
        }
        thread.ended += 1;
        thread.record = Record {
            kind,
            core: Some((*inner).core()),
            frame,
            holder: Some(instance::of_seat(seat)),
            body: (*frame).body,
            at: registers[libc::REG_RIP as usize] as u64,
            call: call(kind, registers),
            address,
            registers: signals::general(registers),
            stack: Some(stack),
            has_lost: false,
        };
        if kind.is_some() {
            (*inner).state.fetch_or(state::ENDED, Ordering::SeqCst);
        }
        let changes = (*inner).state.load(Ordering::Relaxed) & state::CONTROL_WORDS != 0;
        if let Some(float) = context.uc_mcontext.fpregs.as_mut().filter(|_| changes) {
            // The report is made by the host, and not with what the module has made of these.
            float.mxcsr = thread.words.mxcsr;
            float.cwd = thread.words.x87;
        }
        let is_pending = thread.refuses_besides(frame);
        here.pending.store(is_pending.into(), Ordering::Relaxed);
        registers[libc::REG_RIP as usize] = gates::address(gates::mullion_word_faulted) as i64;
        registers[libc::REG_RSP as usize] = (*frame).host as i64;
        registers[libc::REG_R12 as usize] = (*frame).caller as i64;
        registers[libc::REG_R13 as usize] = match is_host {
            true => 0,
            false => outer as i64,
        };
        // No single steps, no direction, no alignment checks.
        registers[libc::REG_EFL as usize] &= !(1 << 8 | 1 << 10 | 1 << 18);
    }
}

/// Where the module called what a gate has refused. The gate has pushed two registers on top of the return address.
///
/// # Safety
/// In a handler, with a domain running.
unsafe fn call(kind: Option<FaultKind>, registers: &[i64; 23]) -> u64 {
    let at = registers[libc::REG_RIP as usize] as u64;
    let traps = [
        gates::mullion_word_refused_trap as unsafe extern "C" fn(),
        gates::mullion_word_pending_trap,
        gates::mullion_word_unwind_trap,
    ];
    if kind.is_none() || !traps.map(gates::address).contains(&at) {
        return 0;
    }
    // SAFETY: `%rsp` is the thread's control stack, where the gate has pushed them.
    let behind = unsafe { ((registers[libc::REG_RSP as usize] + 16) as *const u64).read() };
    behind.wrapping_sub(1)
}

/// Behind a fault, as the host, with the frame taken down: the report, and what the call returns.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_after_fault")]
pub(crate) extern "C" fn after_fault() -> ErrorValue {
    let Ok(thread) = thread::this() else {
        return ErrorValue::default();
    };
    let record = thread.record;
    let Some(core) = record.core else {
        return ErrorValue::default();
    };
    // Also where the call has ended for another reason: a later one may have its frame's place.
    let refusal = thread.take_refusal(record.frame);
    let refusal = refusal.filter(|_| record.kind == Some(FaultKind::Policy));
    // The call may have been a repeated one, which has no other end.
    if let Some(seat) = thread::known_seat(core, None) {
        // SAFETY: the seat is the thread's own.
        let depth = unsafe { (*seat).depth.load(Ordering::Relaxed) };
        if depth == 0 {
            core.keep.leave(core, seat);
        }
    }
    if ptr::eq(thread.late, &raw const core.inner) {
        thread.late = ptr::null();
    }
    if let Some(kind) = record.kind {
        let report = report(core, kind, &record, refusal);
        deliver(core, report);
    }
    core.error_of(record.body)
}

/// A call that never began.
pub(crate) fn report_refused(core: &'static Core, body: u64, kind: FaultKind, what: String) {
    let record = Record {
        core: Some(core),
        body,
        ..Record::default()
    };
    deliver(core, report(core, kind, &record, Some(what.into())));
}

fn deliver(core: &Core, report: Report) {
    // The hook may call domains, in which there may be faults.
    let hook = lock(&world().hook).clone();
    if let Some(hook) = hook {
        hook(&report);
    }
    let mut reports = lock(&core.reports);
    // Nobody may ever take them.
    if reports.len() < 1000 {
        reports.push(report);
    }
}

/// Of a call that has ended since its check is good no longer.
const LOST: &str = "the host granted this access, and took something from the module meanwhile that the call may have checked before. The call may be made again";

fn report(
    core: &'static Core,
    kind: FaultKind,
    record: &Record,
    refusal: Option<Refusal>,
) -> Report {
    let place = |address: u64| {
        let offset = address.checked_sub(core.base)?;
        let inside = core.text.contains(&address);
        inside.then(|| core.module.function_at(offset))?
    };
    let refused = match kind {
        FaultKind::Access => {
            let holder = record.holder.unwrap_or(&core.holder);
            operand::refused(core, holder, record.at, &record.registers)
        }
        _ => None,
    };
    // A trap of the gates is told by the call that led there, a refused access by where it would have gone on, an
    // exception by where it was thrown, as the module says.
    let thrown = record.registers[6].wrapping_sub(1);
    let at = match (record.call, &refused) {
        _ if kind == FaultKind::Uncaught && core.text.contains(&thrown) => thrown,
        (0, Some(refused)) => refused.back.unwrap_or(record.at),
        (0, None) => record.at,
        (call, _) => call,
    };
    let function = place(at).map_or_else(String::new, |(name, by)| format!("{name}+{by:#x}"));
    let export = place(record.body).map_or_else(String::new, |(name, _)| name.to_owned());
    let address = match kind {
        FaultKind::Access => refused.map(|found| (found.address, found.right)),
        FaultKind::Call => Some((record.registers[11], 0)),
        FaultKind::NoMapping | FaultKind::DataStack | FaultKind::ControlStack if record.at != 0 => {
            Some((record.address, 0))
        }
        _ => None,
    };
    let instruction = match core.text.contains(&at) {
        true => at - core.base,
        false => 0,
    };
    let mut field = None;
    let (object, allow) = match (kind, address) {
        (_, Some((address, right))) => {
            let object = object(core, address);
            let variable = object.variable(address);
            field = core.module.field_of(&Reached {
                instruction,
                registers: &record.registers,
                stack: record.stack.as_ref(),
                address,
                variable,
                export: &export,
            });
            let allow = match kind {
                FaultKind::Access => {
                    let variable = variable.map(|(name, _)| name);
                    Some(allows(&export, right == 2, variable, field.as_ref()))
                }
                FaultKind::Call => {
                    let name = object.symbol.as_ref();
                    name.map(|(name, _)| format!("allow = [\"{name}\"]"))
                }
                _ => None,
            };
            (object.to_string(), allow)
        }
        (FaultKind::Uncaught, _) => {
            let stack = record.stack.as_ref();
            let text = stack.map(|stack| stack.text(record.registers[7]));
            (text.unwrap_or_default(), None)
        }
        (FaultKind::Access, None) if record.has_lost => (LOST.to_owned(), None),
        _ => refusal.map_or_else(Default::default, |refusal| (refusal.what, refusal.allow)),
    };
    Report {
        kind,
        module: core.module.name.clone(),
        export: export.into(),
        function: function.into(),
        instruction,
        line: match instruction {
            0 => None,
            instruction => core.module.line_of(instruction),
        },
        address: address.map(|(address, _)| address),
        object: object.into(),
        field,
        allow: allow.map(Plain::from),
    }
}

/// A signal that is not ours.
pub(crate) fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let at = SIGNALS.iter().position(|known| *known == signal);
    let (action, has_info) = match at.and_then(|at| BEFORE[at].get()) {
        Some(before) => (before.sa_sigaction, before.sa_flags & libc::SA_SIGINFO != 0),
        None => (libc::SIG_DFL, false),
    };
    match action {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // SAFETY: the default action is what would have happened without our handler: a fault repeats.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if has_info => {
            // SAFETY: it was installed as a handler with this signature.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context.cast());
        }
        handler => {
            // SAFETY: it was installed as a handler with this signature.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
