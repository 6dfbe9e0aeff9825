//! A domain: a module that was loaded, and its life.

use crate::core::{Core, Domain, EndError};
use crate::gates::{Registers, state};
use crate::holder::Holder;
use crate::load;
use crate::memory::{PAGE, lock};
use crate::module::{Access, Module};
use crate::note;
use crate::policy::Policy;
use crate::report::{FaultKind, Report};
use crate::rights::{ROOT, forget, lower_all};
use crate::world::world;
use crate::{blocks, fault, gates, slow, thread};
use mullion_supervisor::{DomainId, Permission};
use mullion_word_table::View;
use mullion_word_table::barrier;
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

    /// The slots stay as they were: a gate of the ended domain still leads to its refusal.
    fn unmap_data(&self) -> std::io::Result<()> {
        let slots = &self.module.parts.slots;
        let end = slots.end.min(self.module.bytes);
        let kept = slots.start & !(PAGE - 1)..end.next_multiple_of(PAGE);
        let segments = self.module.parts.segments.iter();
        for segment in segments.filter(|segment| segment.access == Access::Write) {
            let end = (segment.address + segment.bytes).next_multiple_of(PAGE);
            for part in [
                segment.address..end.min(kept.start),
                segment.address.max(kept.end)..end,
            ] {
                if part.start < part.end {
                    let bytes = part.end - part.start;
                    let none = libc::PROT_NONE;
                    self.memory.map(self.base + part.start, bytes, none)?;
                }
            }
        }
        Ok(())
    }

    /// What allocators have given goes back to them, and what was handed over is nobody's here.
    pub(crate) fn give_back(&self, holder: &Holder) {
        let taken = std::mem::take(&mut *lock(&holder.taken)).into_iter();
        lower_all(&mut world().supervisor(), taken.map(|(_, raised)| raised));
        let held = lock(&holder.blocks).take_all();
        for (address, block) in held {
            blocks::take_away(self, holder, address, block.bytes);
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

    /// Whether all of these bytes lie in the module's own data: for hosts that read a structure of the module in place.
    /// The module may change them at any time.
    #[must_use]
    pub fn has_data(&self, address: usize, bytes: usize) -> bool {
        let core = self.core;
        let at = (address as u64).wrapping_sub(core.base);
        let mut segments = core.module.parts.segments.iter();
        segments.any(|s| {
            let is_data = s.access != Access::Execute;
            is_data
                && s.address <= at
                && bytes as u64 <= s.bytes
                && at - s.address <= s.bytes - bytes as u64
        })
    }

    /// Whether an address is that of one of the module's functions that may be called from outside. A host that calls by
    /// a pointer from the module's data asks this first, with the pointer that it then calls.
    #[must_use]
    pub fn has_function(&self, address: usize) -> bool {
        let at = (address as u64).wrapping_sub(self.core.base);
        self.core.module.is_gate(at)
    }

    /// What the host keeps with the domain: 0 at first.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.core.tag.load(Ordering::Acquire)
    }

    /// Keeps a number, or a pointer, with the domain.
    pub fn set_tag(&self, tag: u64) {
        self.core.tag.store(tag, Ordering::Release);
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
        &self.core.holder.view
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

    /// Ends the domain from outside of its calls, for a reason that the report has: the hook for faults is called, too. As behind a
    /// fault, new calls return error values.
    pub fn end(&self, why: impl Into<String>) {
        let core = self.core;
        core.inner.state.fetch_or(state::ENDED, Ordering::SeqCst);
        fault::report_refused(core, 0, FaultKind::Policy, why.into());
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
        core.holders().for_each(|holder| core.give_back(holder));
        core.map_data(None)?;
        thread::fresh_seats(core)?;
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
        core.holders().for_each(|holder| core.give_back(holder));
        if let Some(instances) = &core.instances {
            instances.end()?;
        }
        {
            let mut supervisor = world().supervisor();
            supervisor.pd_free(&ROOT, core.id)?;
            forget(&mut supervisor, &core.holder);
        }
        if let Some(instances) = &core.instances {
            world().supervisor().group_free(&ROOT, instances.group)?;
        }
        life.is_gone = true;
        life.code = None;
        if let Some(thunks) = &mut life.thunks {
            thunks.end();
        }
        lock(&world().domains).remove(core);
        if !core.stays_mapped {
            core.unmap_data()?;
        }
        for region in lock(&core.holder.stacks).drain(..) {
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
