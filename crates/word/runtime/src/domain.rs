//! A domain: a module that was loaded, and its life.

use crate::core::{Core, Domain};
use crate::gates::{Registers, state};
use crate::keep::barrier;
use crate::load;
use crate::memory::lock;
use crate::module::{Access, Module};
use crate::note;
use crate::policy::Policy;
use crate::report::Report;
use crate::rights::ROOT;
use crate::world::world;
use crate::{gates, slow, thread};
use mullion_supervisor::{DomainId, Permission};
use mullion_word_table::View;
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

impl Core {
    /// Calls the functions behind these gates, if the domain takes calls.
    pub(crate) fn call_all<'a>(&self, gates: impl Iterator<Item = &'a u64>) {
        for at in gates {
            let gate = self
                .module
                .parts
                .gates
                .iter()
                .find(|gate| gate.address == *at);
            if let Some(gate) = gate {
                let mut registers = slow::no_arguments();
                self.invoke(self.base + gate.body, &mut registers);
            }
        }
    }

    fn invoke(&self, body: u64, registers: &mut Registers) {
        slow::enter_slowly(&raw const self.inner, body, registers, std::ptr::null());
    }

    /// No call begins from now on; how many have not returned. Those end when they next come back.
    fn stop(&self) -> u64 {
        self.inner.state.fetch_or(state::ENDED, Ordering::SeqCst);
        // A gate counts its entry first and reads the state then: behind this barrier either its count is seen here,
        // or it sees the state.
        barrier();
        let seats = lock(&self.seats);
        // SAFETY: a seat on the list lives, and its depth is atomic.
        seats
            .iter()
            .map(|seat| unsafe { (*seat.0).depth.load(Ordering::Acquire) })
            .sum()
    }

    /// What allocators have given goes back to them.
    fn give_back(&self) {
        let held = lock(&self.held).take();
        for (address, block) in held {
            slow::take_away(self, address, block.bytes);
            let mut imports = self.imports.iter().filter(|import| import.target != 0);
            let free = imports.find_map(|import| {
                let policy = import.policy.as_ref();
                let at = policy
                    .filter(|policy| policy.allocator == block.allocator)?
                    .frees()?;
                Some((import.target, at))
            });
            if let Some((target, at)) = free {
                let mut registers = slow::no_arguments();
                if let Some(argument) = registers.integers.get_mut(usize::from(at)) {
                    *argument = address;
                    let none = std::ptr::null();
                    // SAFETY: the block came from this allocator, and nobody has it any more.
                    unsafe { gates::mullion_word_call_host(target, &mut registers, none, 0) };
                }
            }
        }
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Domain({}, {})", self.core.id, self.core.module.name)
    }
}

impl Domain {
    /// Loads a module, and calls what it wants called first.
    pub(crate) fn load(
        module: &Arc<Module>,
        policy: Policy,
        learning: Option<note::Hook>,
        resolve: &mut dyn FnMut(&str) -> Option<usize>,
    ) -> Result<Domain, load::LoadError> {
        let core = load::load(module, policy, learning, resolve)?;
        core.call_all(core.module.parts.init.iter());
        Ok(Domain { core })
    }

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

    /// Where a symbol of the module is: data, too. None if the file says that it is outside of the module.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<*const c_void> {
        let parts = &self.core.module.parts;
        let symbol = parts.symbols.iter().find(|symbol| symbol.name == name)?;
        let value = symbol.value?;
        let mut segments = parts.segments.iter();
        let inside = segments.any(|s| (s.address..s.address + s.bytes).contains(&value));
        inside.then(|| (self.core.base + value) as *const c_void)
    }

    /// Where the module is: its addresses are those of its file and this. For debuggers.
    #[must_use]
    pub fn base(&self) -> usize {
        self.core.base as usize
    }

    /// What gdb is told to name the module's functions and lines; `file` is where it finds them.
    #[must_use]
    pub fn gdb_command(&self, file: &Path) -> String {
        format!(
            "add-symbol-file '{}' -o {:#x}",
            file.display(),
            self.core.base
        )
    }

    /// The supervisor's number.
    #[must_use]
    pub fn id(&self) -> DomainId {
        self.core.id
    }

    /// The table as the domain's code reads it. While none of its code runs, what was granted for its latest call may
    /// still be there; this call takes that away.
    #[must_use]
    pub fn view(&self) -> &View {
        self.core.keep.settle(self.core);
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

    /// The oldest of these, and takes it away.
    #[must_use]
    pub fn take_report(&self) -> Option<Report> {
        let mut reports = lock(&self.core.reports);
        (!reports.is_empty()).then(|| reports.remove(0))
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
        core.keep.settle(core);
        core.give_back();
        core.map_data()?;
        thread::fresh_seats(core);
        core.inner.state.fetch_and(!state::ENDED, Ordering::SeqCst);
        drop(life);
        core.call_all(core.module.parts.init.iter());
        Ok(())
    }

    /// Ends the domain: nobody has anything of it or through it. Its text stays mapped, so that pointers to its functions
    /// answer with the error value.
    pub fn unload(self) -> Result<(), EndError> {
        let core = self.core;
        if !core.is_ended() {
            core.call_all(core.module.parts.fini.iter().rev());
        }
        let mut life = lock(&core.life);
        if life.is_gone {
            return Err(EndError::Gone);
        }
        match core.stop() {
            0 => {}
            depth => return Err(EndError::InUse(depth, core.module.name.clone())),
        }
        core.keep.settle(core);
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
        self.core.keep.settle(self.core);
        world()
            .supervisor()
            .permission(self.core.id, address as u64 / 4)
    }
}
