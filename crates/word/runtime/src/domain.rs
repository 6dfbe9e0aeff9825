//! A domain: a module that was loaded, and its life.

use crate::fault::Report;
use crate::gates::{Import, Inner, Registers, Seat, state};
use crate::host::{ROOT, lock, world};
use crate::memory::Reserved;
use crate::module::{Access, Module};
use crate::policy::{ErrorValue, FunctionPolicy, Limits};
use crate::{gates, slow, thread};
use mullion_supervisor::{DomainId, Permission};
use mullion_word_table::{Loaded, View};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Why a domain cannot be ended or restarted now.
#[derive(Debug, Error)]
pub enum EndError {
    /// Calls in it have not returned.
    #[error("{0} calls of {1} have not returned; they end when they next come back to it")]
    InUse(u64, String),
    /// It has been unloaded.
    #[error("it was unloaded")]
    Gone,
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] mullion_supervisor::Error),
    /// The system refuses memory.
    #[error("no memory for fresh data: {0}")]
    Memory(#[from] std::io::Error),
}

/// A block that an allocator has given a domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct Life {
    pub(crate) code: Option<Loaded>,
    pub(crate) is_gone: bool,
}

/// A seat of a thread that lives. The thread takes it off the list before it goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeatAt(pub(crate) *const Seat);

// SAFETY: the list it is on is locked, and only the atomic depth of a seat is read through it.
unsafe impl Send for SeatAt {}

/// All that is known of a domain. It is never freed: gates have its address.
pub(crate) struct Core {
    pub(crate) inner: Inner,
    pub(crate) id: DomainId,
    pub(crate) view: View,
    pub(crate) module: Arc<Module>,
    pub(crate) memory: Reserved,
    pub(crate) base: u64,
    pub(crate) text: Range<u64>,
    pub(crate) imports: Box<[Import]>,
    pub(crate) symbols: Vec<u64>,
    pub(crate) limits: Limits,
    pub(crate) error: ErrorValue,
    /// By the body's address in the file.
    pub(crate) exports: BTreeMap<u64, FunctionPolicy>,
    pub(crate) life: Mutex<Life>,
    /// What allocators have given it, by address.
    pub(crate) held: Mutex<HashMap<u64, Held>>,
    pub(crate) seats: Mutex<Vec<SeatAt>>,
    /// Regions that threads of it have left.
    pub(crate) stacks: Mutex<Vec<u64>>,
    pub(crate) reports: Mutex<Vec<Report>>,
}

// SAFETY: all that changes is atomic or behind a lock; the pointers are to what stays.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

impl Core {
    pub(crate) fn is_ended(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) & state::ENDED != 0
    }

    /// The policy of the export with this body.
    pub(crate) fn export(&self, body: u64) -> Option<&FunctionPolicy> {
        self.exports.get(&body.wrapping_sub(self.base))
    }

    /// What an ended call of the export with this body returns.
    pub(crate) fn error_of(&self, body: u64) -> ErrorValue {
        self.export(body).map_or(self.error, |policy| policy.error)
    }

    /// Calls the functions of an array, which was relocated.
    pub(crate) fn call_array(&self, array: &Range<u64>) {
        for at in array.clone().step_by(8) {
            // SAFETY: `Module::new` has seen that the array is in the module's data, which is mapped.
            let function = unsafe { ((self.base + at) as *const u64).read() };
            let gates = &self.module.parts.gates;
            let Some(gate) = gates
                .iter()
                .find(|gate| self.base + gate.address == function)
            else {
                continue;
            };
            let mut registers = slow::no_arguments();
            self.invoke(self.base + gate.body, &mut registers);
        }
    }

    fn invoke(&self, body: u64, registers: &mut Registers) {
        slow::enter_slowly(&raw const self.inner, body, registers, std::ptr::null());
    }

    /// No call begins from now on; how many have not returned. Those end when they next come back.
    fn stop(&self) -> u64 {
        self.inner.state.fetch_or(state::ENDED, Ordering::SeqCst);
        let command = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        // SAFETY: it has no effect but order. A gate counts its entry first and reads the state then: behind this
        // barrier either its count is seen here, or it sees the state. It was registered by `Inside::new`.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        let seats = lock(&self.seats);
        // SAFETY: a seat on the list lives, and its depth is atomic.
        seats
            .iter()
            .map(|seat| unsafe { (*seat.0).depth.load(Ordering::Acquire) })
            .sum()
    }

    /// What allocators have given goes back to them.
    fn give_back(&self) {
        let free = self
            .imports
            .iter()
            .find(|import| import.name == "free" && import.target != 0);
        let held: Vec<(u64, Held)> = lock(&self.held).drain().collect();
        for (address, block) in held {
            slow::take_away(self.id, address, block.bytes);
            if let Some(free) = free {
                let mut registers = slow::no_arguments();
                registers.integers[0] = address;
                let none = std::ptr::null();
                // SAFETY: the block came from this allocator, and nobody has it any more.
                unsafe { gates::mullion_word_call_host(free.target, &mut registers, none, 0) };
            }
        }
    }
}

/// A domain, until it is unloaded. Handles are copies.
#[derive(Clone, Copy)]
pub struct Domain {
    pub(crate) core: &'static Core,
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Domain({}, {})", self.core.id, self.core.module.name)
    }
}

impl Domain {
    /// The function's address: for the host, for other modules and for pointers. It stays callable for the life of
    /// the process. When the domain has ended, calls return the export's error value.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<*const c_void> {
        let parts = &self.core.module.parts;
        let symbol = parts.symbols.iter().find(|symbol| symbol.name == name)?;
        let gate = parts
            .gates
            .iter()
            .find(|gate| Some(gate.address) == symbol.value)?;
        Some((self.core.base + gate.address) as *const c_void)
    }

    /// Where a symbol of the module is: data, too.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<*const c_void> {
        let parts = &self.core.module.parts;
        let symbol = parts.symbols.iter().find(|symbol| symbol.name == name)?;
        Some((self.core.base + symbol.value?) as *const c_void)
    }

    /// The supervisor's number.
    #[must_use]
    pub fn id(&self) -> DomainId {
        self.core.id
    }

    /// The table as the domain's code reads it.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.core.view
    }

    /// Whether it takes no calls: after a fault, or at its end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.core.is_ended()
    }

    /// What has gone wrong in it, and takes that away.
    #[must_use]
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut lock(&self.core.reports))
    }

    /// Fresh data, and what allocators gave goes back. It takes calls again.
    pub fn restart(&self) -> Result<(), EndError> {
        let core = self.core;
        let life = lock(&core.life);
        if life.is_gone {
            return Err(EndError::Gone);
        }
        match core.stop() {
            0 => {}
            depth => return Err(EndError::InUse(depth, core.module.name.clone())),
        }
        core.give_back();
        core.map_data()?;
        thread::fresh_seats(core);
        core.inner.state.fetch_and(!state::ENDED, Ordering::SeqCst);
        drop(life);
        core.call_array(&core.module.parts.init);
        Ok(())
    }

    /// Ends the domain: nobody has anything of it or through it. Its text stays mapped, so that pointers to its functions
    /// answer with the error value.
    pub fn unload(self) -> Result<(), EndError> {
        let core = self.core;
        if !core.is_ended() {
            core.call_array(&core.module.parts.fini);
        }
        let mut life = lock(&core.life);
        if life.is_gone {
            return Err(EndError::Gone);
        }
        match core.stop() {
            0 => {}
            depth => return Err(EndError::InUse(depth, core.module.name.clone())),
        }
        core.give_back();
        world().supervisor().pd_free(&ROOT, core.id)?;
        life.is_gone = true;
        life.code = None;
        lock(&world().domains).remove(&core.id);
        for segment in &core.module.parts.segments {
            if segment.access == Access::Write {
                let bytes = segment.bytes.next_multiple_of(4096);
                // The slots stay as they were: a gate of the ended domain still leads to its refusal.
                let slots = &core.module.parts.slots;
                let keeps = segment.address <= slots.start && slots.start < segment.address + bytes;
                if !keeps {
                    core.memory
                        .map(core.base + segment.address, bytes, libc::PROT_NONE)?;
                }
            }
        }
        for region in lock(&core.stacks).drain(..) {
            world().stacks.give(region);
        }
        Ok(())
    }

    /// What the domain may do with a word, as the supervisor has it.
    #[must_use]
    pub fn permission(&self, address: usize) -> Permission {
        world()
            .supervisor()
            .permission(self.core.id, address as u64 / 4)
    }
}
