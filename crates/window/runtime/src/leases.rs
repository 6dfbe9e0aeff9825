//! Which thread has which of a domain's data stacks.

use crate::inner::Inner;
use crate::stacks::Stacks;
use mullion_report::error::Error;
use mullion_report::meter::Tally;
use std::sync::{Arc, Weak};

/// The stacks that one thread has leased, by the number of the domain's window.
#[derive(Debug, Default)]
pub(crate) struct Leases(Vec<Lease>);

/// In a line of its own: calls of several domains in turn read one after the other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Lease {
    /// The domain's serial number; 0: none.
    serial: u64,
    /// `%r15` for the next invocation: an address, a multiple of 16.
    top: u64,
    index: u32,
    stacks: Weak<Stacks>,
    /// What the thread counts in.
    tally: Option<Arc<Tally>>,
    /// Who is to be called when the thread ends.
    end: Option<Weak<Inner>>,
}

impl Leases {
    /// `%r15` for an invocation of `domain`, and what the thread counts in, if it has a stack of
    /// it. The tally lives as long as this life of the domain is the last one in its window that
    /// the thread has leased from.
    #[inline]
    pub(crate) fn top(&self, domain: &Inner, serial: u64) -> Option<(u64, &Arc<Tally>)> {
        let lease = self.0.get(domain.place())?;
        let tally = lease.tally.as_ref()?;
        (lease.serial == serial).then_some((lease.top, tally))
    }

    /// Takes a stack: `%r15`, and the stack's number.
    pub(crate) fn lease(&mut self, domain: &Inner) -> Result<(u64, u32), Error> {
        let number = domain.place();
        if self.0.len() <= number {
            self.0.resize_with(number + 1, Lease::default);
        }
        let stacks = domain.stacks();
        let index = stacks.take(domain.memory().record())?;
        // The last 16 bytes hold the thread pointer, which is zero at first.
        let top = domain.memory().base() + Stacks::region(index).end - 16;
        self.0[number].give_back();
        self.0[number] = Lease {
            serial: domain.serial(),
            top,
            index,
            stacks: Arc::downgrade(&stacks),
            tally: Some(domain.meter.tally()),
            end: domain.thread_end().map(|_| domain.this()),
        };
        Ok((top, index))
    }

    /// Gives back what was leased for a thread that the domain has not set up.
    pub(crate) fn give_back(&mut self, domain: &Inner) {
        if let Some(lease) = self.0.get_mut(domain.place()) {
            std::mem::take(lease).give_back();
        }
    }

    /// The next domain to be called at the thread's end, once, and in which life.
    pub(crate) fn next_to_end(&mut self) -> Option<(Weak<Inner>, u64)> {
        let mut all = self.0.iter_mut();
        all.find_map(|lease| Some((lease.end.take()?, lease.serial)))
    }
}

impl Lease {
    fn give_back(&self) {
        if let Some(stacks) = self.stacks.upgrade() {
            stacks.give_back(self.index);
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.0.iter().for_each(Lease::give_back);
    }
}
