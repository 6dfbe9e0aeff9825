//! Calls of the host.

use crate::attach::current_or_new;
use crate::call::{CallArguments, Entry, NotReturned, Returned};
use crate::control_stack::MAX_CONTROL_STACK;
use crate::deadline;
use crate::enter::{Extra, Left};
use crate::inner::Inner;
use crate::invoke::Request;
use crate::limits::CallLimits;
use crate::tcb::{self, Tcb};
use mullion_report::error::Error;
use std::ptr;

impl Inner {
    /// A call of the host. The usual one is inlined into its caller, so that the result
    /// stays in registers: in memory, it would be written in parts and read as a whole,
    /// and that read waits for all of the writes. Usual is that the thread has called this
    /// domain before and is in none, and that no limit must be looked at.
    #[expect(clippy::inline_always, reason = "as said")]
    #[inline(always)]
    pub(crate) fn call(
        &self,
        entry: Entry,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, NotReturned> {
        let usual =
            |tcb: &&Tcb| limits.is_none() && self.life.is_plainly(entry.serial) && tcb.is_outside();
        let called = tcb::current().filter(usual).and_then(|tcb| {
            self.outermost(tcb, entry, arguments, |extra, stack| {
                self.enter(tcb, extra, entry.address, arguments.integers(), stack)
            })
        });
        if let Some(called) = called {
            return called;
        }
        let mut place = Returned::default();
        self.call_unusual(entry, arguments, limits, &mut place)?;
        // One by one, so that they are in registers.
        Ok(Returned {
            integer: place.integer,
            high: place.high,
            double: place.double,
        })
    }

    /// Any other call of the host: one with limits, or of a domain with limits, the first one of its thread, one
    /// from within a host function.
    #[inline(never)]
    fn call_unusual(
        &self,
        entry: Entry,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
        place: &mut Returned,
    ) -> Result<(), NotReturned> {
        if limits.is_none()
            && let Some(called) = self.call_timed(entry, arguments)
        {
            *place = called?;
            return Ok(());
        }
        if entry.serial != self.serial() {
            return Err(Error::WrongDomain.into());
        }
        let tcb = current_or_new()?;
        tcb.check_nesting()?;
        if !self.life.is_open() {
            self.admit_host(tcb).map_err(|error| self.not_made(error))?;
        }
        *place = self.invoke(tcb, Request::new(entry, arguments), limits)?;
        Ok(())
    }

    /// Runs the constructors, for who has begun that.
    pub(crate) fn construct(
        &self,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, NotReturned> {
        let tcb = current_or_new()?;
        tcb.check_nesting()?;
        self.invoke(tcb, Request::new(entry, arguments), None)
    }

    /// As the usual call, of a domain whose only limit is the time of each call.
    #[inline]
    fn call_timed(
        &self,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Option<Result<Returned, NotReturned>> {
        let time = self.only_time?.get();
        let usual = |tcb: &&Tcb| self.life.is_open_with_limits(entry.serial) && tcb.is_outside();
        let tcb = tcb::current().filter(usual)?;
        self.outermost(tcb, entry, arguments, |extra, stack| {
            let outer = deadline::arm_call(tcb, time);
            let control = tcb.lower(MAX_CONTROL_STACK);
            let left = self.enter(tcb, extra, entry.address, arguments.integers(), stack);
            tcb.control.set(control);
            deadline::disarm_call(tcb, &outer);
            left
        })
    }

    /// An invocation on a thread that is in none, and has called this life of the domain before; nothing
    /// if it has not. `enter` takes further arguments and the data stack.
    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    fn outermost(
        &self,
        tcb: &Tcb,
        entry: Entry,
        arguments: &CallArguments,
        enter: impl FnOnce(*const Extra, u64) -> Left,
    ) -> Option<Result<Returned, NotReturned>> {
        let top = tcb.own_stack_called(self, entry.serial)?;
        let (stacked, vectors) = (arguments.stacked(), arguments.vectors());
        let extra;
        let (stack, extra) = if stacked.is_empty() && vectors.is_null() {
            (top, ptr::null())
        } else {
            extra = Extra::new(vectors, stacked);
            // A stack has room for that many words, and more.
            ((top - 8 * stacked.len() as u64) & !15, &raw const extra)
        };
        Some(self.returned(tcb, enter(extra, stack)))
    }
}
