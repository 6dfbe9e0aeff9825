//! Whether an access is allowed, and what it costs to find out.

use super::{Machine, RefusedAccess};
use crate::access::{MachineAccess, Perm, WORD};
use crate::plb::{self, PlbAnswer, STACK};
use crate::table::Walk;

impl Machine {
    /// Checks the instructions of a straight line, all at once: each is a look-up.
    #[inline]
    pub(super) fn check_fetch(&mut self, address: u64, end: u64, instructions: u64) {
        let (blocks, allowed) =
            self.check_blocks(self.domain, address, end, MachineAccess::Execute);
        if !allowed {
            self.refuse(self.domain, address, end, MachineAccess::Execute);
        }
        let more = instructions.saturating_sub(blocks);
        if self.config.plb.entries > 0 {
            self.plb.count_more(more);
        } else if more > 0 {
            // Without a buffer each further instruction walks the same entries, which are in the caches.
            self.plb.count_absent(more);
            let loads = self.walk.loads().len() as u64;
            self.cycles.plb += more * loads * self.config.plb.cycles_per_load;
        }
    }

    /// Checks a load or store. The stack registers answer for the stack, in parallel with the buffer
    /// (Mondrix, section 2.3); a permission table is never asked about an address in the stack.
    #[inline]
    pub(super) fn check_data(&mut self, address: u64, end: u64, access: MachineAccess) {
        if end <= self.stack.limit || address >= self.stack.base {
            if !self.check_blocks(self.domain, address, end, access).1 {
                self.refuse(self.domain, address, end, access);
            }
        } else {
            self.check_stack(address, end, access);
        }
    }

    /// An access of which at least one byte lies in the stack: its parts below, in and above the stack.
    fn check_stack(&mut self, address: u64, end: u64, access: MachineAccess) {
        let stack = self.stack;
        self.plb.count_more(1);
        let open_end = match access {
            MachineAccess::Write => stack.frame,
            MachineAccess::Read | MachineAccess::Execute => stack.base,
        };
        if address >= stack.limit && end <= open_end {
            return;
        }
        let earlier = match access {
            MachineAccess::Write => address.max(stack.frame)..end.min(stack.base),
            MachineAccess::Read | MachineAccess::Execute => 0..0,
        };
        let parts = [
            (self.domain, address..end.min(stack.limit)),
            (STACK, earlier),
            (self.domain, address.max(stack.base)..end),
        ];
        // One access is refused once, for the first part that is not allowed.
        let refused = parts.into_iter().filter(|(_, part)| !part.is_empty());
        let refused: Vec<_> = refused
            .filter(|(domain, part)| !self.check_blocks(*domain, part.start, part.end, access).1)
            .collect();
        if let Some((domain, part)) = refused.first() {
            self.refuse(*domain, part.start, part.end, access);
        }
    }

    /// Looks all bytes up, block by block: how many blocks that took, and whether all are allowed.
    #[inline]
    fn check_blocks(
        &mut self,
        domain: u32,
        address: u64,
        end: u64,
        access: MachineAccess,
    ) -> (u64, bool) {
        let mut at = address;
        let mut blocks = 0;
        let mut allowed = true;
        loop {
            let found = match self.config.plb.entries {
                0 => None,
                _ => self.plb.look_up(domain, at, end, access),
            };
            let answer = match found {
                Some(answer) => answer,
                None => self.refill(domain, at, end, access),
            };
            blocks += 1;
            allowed &= answer.allowed;
            if answer.end >= end {
                break;
            }
            at = answer.end;
        }
        (blocks, allowed)
    }

    /// A miss: the hardware walks the table and keeps the block that it finds.
    #[inline(never)]
    fn refill(&mut self, domain: u32, address: u64, end: u64, access: MachineAccess) -> PlbAnswer {
        let mut walk = std::mem::take(&mut self.walk);
        walk.clear();
        let block = match domain {
            STACK => self
                .supervisor
                .mechanism()
                .look_up_stack(address, &mut walk),
            _ => Some(
                self.supervisor
                    .mechanism()
                    .look_up(domain, address, &mut walk),
            ),
        };
        for &word in walk.loads() {
            let stall = self.caches.data(self.table_address(word));
            self.cycles.plb += self.config.plb.cycles_per_load + stall;
        }
        self.walk = walk;
        let Some(block) = block else {
            return PlbAnswer {
                allowed: false,
                end,
            };
        };
        if self.config.plb.entries == 0 {
            self.plb.count_absent(1);
            return plb::answer(block, address, end, access);
        }
        self.plb.refill(domain, block, address, end, access)
    }

    /// Notes the first word that is not allowed.
    #[cold]
    fn refuse(&mut self, domain: u32, address: u64, end: u64, access: MachineAccess) {
        let mut at = address;
        let mut held = Perm::None;
        while at < end {
            held = self.table_perm(domain, at);
            if !held.allows(access) {
                break;
            }
            at = (at & !(WORD - 1)) + WORD;
        }
        let running = mullion_supervisor::DomainId::new(self.domain);
        let policy = self.supervisor.permission(running, at / WORD);
        self.note(RefusedAccess::Access {
            address: at,
            wanted: access,
            held,
            policy: self.numbers.traced_permission(policy),
            stack: domain == STACK,
        });
    }

    /// What the tables say, without cost.
    fn table_perm(&self, domain: u32, address: u64) -> Perm {
        let mut walk = Walk::default();
        let bottom = self.supervisor.mechanism();
        match domain {
            STACK => bottom.look_up_stack(address, &mut walk),
            _ => Some(bottom.look_up(domain, address, &mut walk)),
        }
        .map_or(Perm::None, |block| block.perm_at(address))
    }
}
