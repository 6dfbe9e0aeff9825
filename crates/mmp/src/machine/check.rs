//! Whether an access is allowed, and what it costs to find out.

use super::{Machine, Refused};
use crate::access::{Access, Perm, WORD};
use crate::plb::{self, Answer, STACK};
use crate::table::Walk;

impl Machine {
    /// Checks the instructions of a straight line, all at once: each is a look-up.
    #[inline]
    pub(super) fn check_fetch(&mut self, address: u64, end: u64, instructions: u64) {
        let blocks = self.check_blocks(self.domain, address, end, Access::Execute);
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
    pub(super) fn check_data(&mut self, address: u64, end: u64, access: Access) {
        if end <= self.stack.limit || address >= self.stack.base {
            self.check_blocks(self.domain, address, end, access);
        } else {
            self.check_stack(address, end, access);
        }
    }

    fn check_stack(&mut self, address: u64, end: u64, access: Access) {
        let stack = self.stack;
        self.plb.count_more(1);
        if address < stack.limit {
            self.check_blocks(self.domain, address, stack.limit, access);
        }
        if end > stack.base {
            self.check_blocks(self.domain, stack.base, end, access);
        }
        let earlier = address.max(stack.frame)..end.min(stack.base);
        if access == Access::Write && earlier.start < earlier.end {
            self.check_blocks(STACK, earlier.start, earlier.end, access);
        }
    }

    /// Looks all bytes up, block by block; how many blocks that took. What is refused is noted once.
    #[inline]
    fn check_blocks(&mut self, domain: u32, address: u64, end: u64, access: Access) -> u64 {
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
        if !allowed {
            self.refuse(domain, address, end, access);
        }
        blocks
    }

    /// A miss: the hardware walks the table and keeps the block that it finds.
    #[inline(never)]
    fn refill(&mut self, domain: u32, address: u64, end: u64, access: Access) -> Answer {
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
            return Answer {
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
    fn refuse(&mut self, domain: u32, address: u64, end: u64, access: Access) {
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
        self.note(Refused::Access {
            address: at,
            wanted: access,
            held,
            policy: self.supervisor.permission(running, at / WORD),
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
