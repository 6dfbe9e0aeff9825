//! Gates, cross-domain calls and returns, and switches between threads.

use super::{Machine, RefusedAccess, StackWindow};
use crate::access::WORD;
use crate::gates::GateEntry;
use mullion_supervisor::{DomainId, Error as PolicyError};

impl Machine {
    /// A fetch from a line that may hold gates: the buffer is asked, and refilled when it does not know.
    /// A walk that finds none clears the line's "gate present" bit.
    pub(super) fn find_gates(&mut self, address: u64) {
        if self.glb.look_up(self.domain, address) {
            return;
        }
        let mut walk = std::mem::take(&mut self.walk);
        walk.clear();
        let bottom = self.supervisor.mechanism();
        let gates = bottom.gates_on_line(self.domain, address, &mut walk);
        for &word in walk.loads() {
            let stall = self.caches.data(self.table_address(word));
            self.cycles.glb += self.config.glb.cycles_per_load + stall;
        }
        self.walk = walk;
        if gates.is_empty() {
            self.caches
                .instruction
                .note_without_gates(address, self.domain);
        } else {
            self.glb.refill(self.domain, address, gates);
        }
    }

    /// The gate in the word of an address, as the hardware sees it.
    fn gate_at(&mut self, address: u64) -> Option<GateEntry> {
        if self.domain == 0
            || self
                .caches
                .instruction
                .known_without_gates(address, self.domain)
        {
            return None;
        }
        self.find_gates(address);
        let word = address & !(WORD - 1);
        self.glb.gate(self.domain, word).or_else(|| {
            // A line with more gates than the buffer has room for.
            let mut walk = crate::table::Walk::default();
            let bottom = self.supervisor.mechanism();
            let gates = bottom.gates_on_line(self.domain, address, &mut walk);
            gates
                .into_iter()
                .find(|(at, _)| *at == word)
                .map(|(_, gate)| gate)
        })
    }

    /// A call instruction. Through a switch gate the thread enters another domain, or its own again.
    pub(super) fn call(&mut self, target: u64, return_address: u64, stack: u64) {
        // The target's line is fetched before its gate can be seen.
        self.cycles.stalls += self.caches.fetch(target);
        if let Some(plain) = &mut self.plain {
            self.plain_stalls += plain.fetch(target);
        }
        let Some(GateEntry::Switch { to }) = self.gate_at(target) else {
            return;
        };
        let Some(thread) = self.thread.and_then(|thread| self.threads.get_mut(&thread)) else {
            return;
        };
        let depth = thread.policy.calls().len() as u64;
        if depth >= u64::from(self.config.crossing.depth) {
            let reason = format!("the cross-domain call stack is full at {depth} calls");
            return self.note(RefusedAccess::Crossing { reason });
        }
        let place = thread.call_stack;
        let entered = self.supervisor.thread_call(
            &mut thread.policy,
            target / WORD,
            return_address,
            stack / WORD,
        );
        match entered {
            Ok(domain) if domain.get() == u32::from(to) => {
                let other = domain.get() != self.domain;
                self.cross(place, depth, other);
                self.crossings.calls += 1;
                self.crossings.to_other += u64::from(other);
                self.crossings.deepest = self.crossings.deepest.max(depth + 1);
                self.enter(domain);
            }
            Ok(domain) => {
                let traced = |domain| self.numbers.traced_domain(domain);
                let (table, policy) = (traced(DomainId::new(u32::from(to))), traced(domain));
                self.note(RefusedAccess::Crossing {
                    reason: format!(
                        "the gate table leads to domain {table}, the supervisor to domain {policy}"
                    ),
                });
            }
            Err(error) => self.refuse_crossing(error),
        }
    }

    /// A return instruction. Through a return gate the thread goes back to the domain that called.
    pub(super) fn back(&mut self, at: u64, target: u64) {
        if self.gate_at(at) != Some(GateEntry::Return) {
            return;
        }
        let Some(thread) = self.thread.and_then(|thread| self.threads.get_mut(&thread)) else {
            return;
        };
        let depth = thread.policy.calls().len() as u64;
        let place = thread.call_stack;
        let returned = self
            .supervisor
            .thread_return(&mut thread.policy, at / WORD, target);
        match returned {
            Ok(domain) => {
                self.cross(place, depth.saturating_sub(1), domain.get() != self.domain);
                self.crossings.returns += 1;
                self.enter(domain);
            }
            Err(error) => self.refuse_crossing(error),
        }
    }

    /// Another thread runs. The supervisor saves and loads the stack registers and flushes what is known
    /// of the old stack.
    pub(super) fn switch(&mut self, to: u32) {
        let Some(next) = self.threads.get(&to) else {
            let reason = format!("there is no thread {to}");
            return self.note(RefusedAccess::Call {
                name: "thread_switch",
                reason,
            });
        };
        let domain = mullion_supervisor::CallStack::current(&next.policy);
        let last = self.thread.and_then(|thread| self.threads.get(&thread));
        self.supervisor
            .thread_switch(last.map(|last| &last.policy), Some(&next.policy));
        self.crossings.switches += 1;
        self.cycles.top += self.config.supervisor.top_cycles_per_call;
        self.thread = Some(to);
        self.enter(domain);
    }

    /// The price of a crossing: the pipeline, and the words of the call stack. The frame base is written
    /// and read only if the domain changes (Mondrix, section 5.2.1).
    fn cross(&mut self, place: u64, depth: u64, other: bool) {
        let word_bytes = if self.address_bits > 32 { 8 } else { 4 };
        let words = if other { 3 } else { 2 };
        let entry = place + depth * 4 * word_bytes;
        let mut cycles = self.config.crossing.cycles;
        for word in 0..words {
            cycles += self.caches.data(entry + word * word_bytes);
        }
        self.cycles.crossing += cycles;
    }

    /// Sets the registers for the domain and stack that run from here on.
    fn enter(&mut self, domain: DomainId) {
        self.domain = domain.get();
        self.take_registers();
        self.settle();
    }

    fn take_registers(&mut self) {
        self.stack = match self.supervisor.mechanism().registers() {
            Some((_, registers)) => StackWindow {
                limit: registers.limit * WORD,
                frame: registers.frame * WORD,
                base: registers.base * WORD,
            },
            None => StackWindow::default(),
        };
    }

    fn refuse_crossing(&mut self, error: PolicyError) {
        let reason = self.numbers.traced_error(error).to_string();
        self.note(RefusedAccess::Crossing { reason });
    }
}
