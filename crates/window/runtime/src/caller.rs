//! What a host function sees of the domain that has called it.

use crate::call::{CallArguments, Entry, Returned};
use crate::host_function::GateCall;
use crate::limits::CallLimits;
use crate::memory::{BadAddress, Claimed, Memory};
use crate::number::DomainNumber;
use mullion_report::error::Error;
use mullion_report::refused::{CallEnd, CallError};

impl GateCall<'_> {
    /// The integer and pointer arguments, in order. Nothing about them is checked.
    #[inline]
    #[must_use]
    pub fn integers(&self) -> [u64; 6] {
        self.frame.integers
    }

    /// The integer argument with this index, from 0, beyond those in registers
    /// too: from 6 on they are read from the domain's stack.
    ///
    /// # Errors
    /// [`BadAddress`]: there is no such stack.
    #[inline]
    pub fn argument(&self, index: u32) -> Result<u64, BadAddress> {
        match self.frame.integers.get(index as usize) {
            Some(value) => Ok(*value),
            None => {
                let place = (self.frame.r15 as u32).wrapping_add((index - 6).wrapping_mul(8));
                let memory = self.memory();
                memory.read_u64(Claimed(memory.base() + u64::from(place)))
            }
        }
    }

    /// An argument that is a pointer, 0 to 5.
    ///
    /// # Panics
    /// If there is no such argument.
    #[inline]
    #[must_use]
    pub fn pointer(&self, index: usize) -> Claimed {
        Claimed(self.integers()[index])
    }

    /// A floating-point argument, 0 to 7.
    ///
    /// # Panics
    /// If there is no such argument.
    #[inline]
    #[must_use]
    pub fn double(&self, index: usize) -> f64 {
        f64::from_bits(self.frame.vectors[index][0])
    }

    /// `%rax` at the call: the system interface's number.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u64 {
        self.frame.rax
    }

    /// Sets the floating-point result. Without it the domain finds 0.
    #[inline]
    pub fn return_double(&mut self, value: f64) {
        self.frame.set_vector([value.to_bits(), 0]);
    }

    /// Sets the second half of a result of two registers. Without it the domain finds 0.
    #[inline]
    pub fn return_high(&mut self, value: u64) {
        self.frame.set_high(value);
    }

    /// The memory of the domain.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.frame.domain().memory()
    }

    /// The domain that has called the host function.
    #[must_use]
    pub fn domain(&self) -> DomainNumber {
        self.frame.domain().number
    }

    /// The domain that has called this one by a link, if it was not the host.
    #[must_use]
    pub fn called_by(&self) -> Option<DomainNumber> {
        // Then that one's gate call is the next, and it is a link's.
        let outer = self.frame.outer()?;
        outer.is_linked().then(|| outer.domain().number)
    }

    /// Where the domain may be entered: a function pointer that it passed.
    pub fn entry(&self, address: Claimed) -> Result<Entry, Error> {
        self.frame.domain().entry(address)
    }

    /// Calls back into the domain, on this thread, on top of what it was doing, with limits of its own if there are
    /// any.
    pub fn call(
        &self,
        entry: Entry,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, Box<CallError>> {
        self.frame.domain().call(entry, arguments, limits)
    }

    /// The domain is about to hand out so many bytes as output: counts them.
    ///
    /// # Errors
    /// [`CallEnd::OutputLimit`]: they are more than it may. To be returned by the host
    /// function, in the place of taking them.
    pub fn charge_output(&self, bytes: u64) -> Result<(), CallEnd> {
        self.frame.domain().charge_output(bytes)
    }

    /// Whether the domain has ended, by another call: what it would wait for may never come.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.frame.domain().life.has_ended()
    }

    /// Whether the time limit has passed, or the call was cancelled, so that the invocation ends when the
    /// host function returns. Its signal interrupts system calls that wait: a
    /// host function that would try again looks here first.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.frame.tcb().is_stopped()
    }
}
