//! Learning: a domain whose refused accesses and calls are told, and made all the same. Such a domain is not confined.
//!
//! A refused access traps in its cold block. The handler tells of it and goes on where the block goes on when all is
//! allowed. The table is not touched, so other domains and threads have what they had.

use crate::core::{Core, Domain};
use crate::gates::{self, Here, Import, here};
use crate::instance;
use crate::load;
use crate::memory::lock;
use crate::note::{Note, Want};
use crate::object::{self, Object};
use crate::operand;
use crate::report::{FaultKind, Reached, ReachedField, StackWords};
use crate::thread;
use mullion_plain::Plain;
use std::sync::atomic::{Ordering, compiler_fence};

impl Note<'_> {
    /// Where in the source the instruction is, if the module's lines are known.
    #[must_use]
    pub fn line(&self) -> Option<Plain> {
        match self.instruction {
            0 => None,
            at => self.domain.core.module.line_of(at),
        }
    }

    /// What the address is of. Takes locks of the host, so it is not for every note of a loop.
    #[must_use]
    pub fn object(&self) -> Object {
        object::object(self.domain.core, self.address())
    }

    /// What an address is to the code that has reached for it, if that is known of the module.
    #[must_use]
    pub fn field(&self, object: &Object) -> Option<ReachedField> {
        self.domain.core.module.field_of(&Reached {
            instruction: self.instruction,
            registers: self.registers?,
            stack: self.stack,
            address: self.address(),
            variable: object.variable(self.address()),
            export: self.export,
        })
    }

    fn address(&self) -> u64 {
        match self.want {
            Want::Access { address, .. }
            | Want::Call { address, .. }
            | Want::Argument { address, .. }
            | Want::Free { address, .. }
            | Want::Callback { address, .. } => address,
        }
    }
}

/// Tells of something, as the host. False: the domain does not learn, and nothing was told.
pub(crate) fn note(core: &'static Core, instruction: u64, want: Want<'_>) -> bool {
    note_at(core, (instruction, None, None), want)
}

/// As [`note`], of an instruction whose registers are known.
fn note_at(
    core: &'static Core,
    (instruction, registers, stack): (u64, Option<&[u64; 16]>, Option<&StackWords>),
    want: Want<'_>,
) -> bool {
    let Some(hook) = &core.learning else {
        return false;
    };
    // SAFETY: it is the thread's own, and so is its newest frame, which is a domain's.
    let body = unsafe { (*here()).frame.as_ref() }.map_or(0, |frame| frame.body);
    let offset = body.wrapping_sub(core.base);
    let export = core.module.function_at(offset);
    let arguments = thread::this().ok();
    hook(&Note {
        domain: Domain { core },
        export: export.map_or("", |(name, _)| name),
        arguments: arguments.and_then(|thread| thread.calls.last().copied()),
        instruction: match core.text.contains(&instruction) {
            true => instruction - core.base,
            false => 0,
        },
        registers,
        stack,
        want,
    });
    true
}

/// Whether the refusal was told, and the thread goes on where it would with leave.
///
/// # Safety
/// In the handler of a fault of the running domain.
pub(crate) unsafe fn go_on(
    here: &mut Here,
    kind: Option<FaultKind>,
    registers: &[u64; 16],
    context: &mut libc::ucontext_t,
) -> bool {
    // SAFETY: a domain runs.
    let core = unsafe { (*here.domain).core() };
    if core.learning.is_none() {
        return false;
    }
    let went = &mut context.uc_mcontext.gregs;
    let at = went[libc::REG_RIP as usize] as u64;
    match kind {
        Some(FaultKind::Access) => {
            let Some(found) = operand::refused(core, instance::holder(here), at, registers) else {
                return false;
            };
            let Some(back) = found.back else {
                return false;
            };
            let want = Want::Access {
                address: found.address,
                bytes: found.bytes,
                write: found.right == 2,
            };
            // SAFETY: the domain that faulted runs on this thread, and its context says where it was.
            unsafe {
                let seat = (*here.frame).seat;
                let stack = StackWords::around(registers[15], (*seat).low, (*seat).top);
                as_host(here, registers[4], || {
                    note_at(core, (back, Some(registers), Some(&stack)), want)
                })
            };
            went[libc::REG_RIP as usize] = back as i64;
            true
        }
        // The gate has pushed two registers on top of the return address.
        Some(FaultKind::Call) => {
            let (target, top) = (registers[11], registers[4] as *const u64);
            // SAFETY: as above; the words are on the thread's own control stack.
            let way = unsafe {
                let from = top.add(2).read().wrapping_sub(1);
                as_host(here, registers[4], || way(core, target, from, registers))
            };
            let Some(way) = way else {
                return false;
            };
            // SAFETY: rbp and rbx are the two words on top of the thread's own control stack, where the gate has pushed
            // them.
            unsafe {
                went[libc::REG_RBP as usize] = top.read() as i64;
                went[libc::REG_RBX as usize] = top.add(1).read() as i64;
            }
            went[libc::REG_RSP as usize] += 16;
            went[libc::REG_RIP as usize] = match way {
                Way::Gate => target as i64,
                Way::Host(import) => {
                    went[libc::REG_R10 as usize] = std::ptr::from_ref(import) as i64;
                    gates::address(gates::mullion_word_leave) as i64
                }
            };
            true
        }
        _ => false,
    }
}

/// How a call by address goes on that was refused.
enum Way {
    /// It is another domain's gate.
    Gate,
    /// It is told of by the slow way out.
    Host(&'static Import),
}

fn way(core: &'static Core, target: u64, from: u64, registers: &[u64; 16]) -> Option<Way> {
    if let Some(callee) = load::owner_of_gate(target) {
        let name = callee.module.function_at(target - callee.base);
        let want = Want::Call {
            function: name.map_or("", |(name, _)| name),
            address: target,
            arguments: [7, 6, 2, 1, 8, 9].map(|at: usize| registers[at]),
        };
        note(core, from, want);
        return Some(Way::Gate);
    }
    let mut learned = lock(&core.learned);
    if let Some(import) = learned.get(&target) {
        return Some(Way::Host(import));
    }
    if !is_code(target) {
        return None;
    }
    let symbol = object::symbol_at(target).filter(|(_, start)| *start == target);
    let name = symbol.map_or_else(String::new, |(name, _)| name);
    // It stays, as all imports do: a gate may have its address.
    let import: &'static Import = Box::leak(Box::new(Import::learned(&name, target)));
    learned.insert(target, import);
    Some(Way::Host(import))
}

/// Whether a mapping that may be executed is there.
fn is_code(address: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().any(|line| {
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let is_executable = words.next().is_some_and(|rights| rights.contains('x'));
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        is_executable
            && range.is_some_and(|(start, end)| (number(start)..number(end)).contains(&address))
    })
}

/// Runs `tell` with the thread counted as outside of the domain, as a gate does: a revocation by another thread, which
/// may hold locks that `tell` needs, does not wait for it. Nothing can be entered meanwhile.
///
/// # Safety
/// In a handler, with a domain running; `control` is where its control stack goes on.
pub(crate) unsafe fn as_host<T>(here: &mut Here, control: u64, tell: impl FnOnce() -> T) -> T {
    // SAFETY: a domain runs, so there is a frame with its seat, all this thread's.
    let counter = unsafe { (*(*here.frame).seat).counter };
    // SAFETY: it is the thread's own.
    let errno = unsafe { &mut *libc::__errno_location() };
    let kept = (here.domain, here.control, here.limit, *errno);
    here.control = control;
    here.limit = u64::MAX;
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a visit's counter lives as long as its seat, and only its thread writes it.
    unsafe { *counter += 1 };
    here.domain = std::ptr::null();
    let told = tell();
    (here.domain, here.control, here.limit, *errno) = kept;
    // SAFETY: the seat's counter lives as long as the seat, and only its thread writes it.
    unsafe { *counter += 1 };
    compiler_fence(Ordering::SeqCst);
    told
}
