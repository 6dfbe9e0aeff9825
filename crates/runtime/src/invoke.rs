//! Invocations: from a checked request through the trampoline, and what came of it.

use crate::call::{Arguments, CallError, Returned};
use crate::control::{self, GateLimit, Tcb};
use crate::dispatch::Ending;
use crate::domain::{Entry, Inner};
use crate::error::Error;
use crate::fault::Cause;
use crate::limits::{CallLimits, least};
use crate::stacks::RED_ZONE;
use crate::trampoline::{self, Extra, Left, ended};
use crate::watchdog::{self, Granted};
use std::panic::resume_unwind;
use std::ptr;
use std::time::Duration;

/// Registers and stack words that an invocation begins with.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// A labelled instruction of the domain's image.
    pub(crate) target: u64,
    pub(crate) integers: &'a [u64; 6],
    /// Null, or vectors that live as long as the request.
    pub(crate) vectors: *const [u128; 8],
    pub(crate) stacked: &'a [u64],
}

impl Inner {
    #[inline]
    pub(crate) fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        self.call_limited(entry, arguments, None)
    }

    #[inline]
    pub(crate) fn call_limited(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, CallError> {
        if entry.serial != self.serial() {
            return Err(Error::WrongDomain.into());
        }
        let request = Request {
            target: entry.address,
            integers: arguments.integers(),
            vectors: arguments.vectors(),
            stacked: arguments.stacked(),
        };
        self.invoke(control::current_or_new()?, request, limits)
    }

    /// Runs what an entry of this domain or a link to it names.
    #[inline]
    pub(crate) fn invoke(
        &self,
        tcb: &Tcb,
        request: Request<'_>,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, CallError> {
        if self.has_ended() {
            return Err(Error::Ended.into());
        }
        let depth = tcb.depth();
        if depth != 0 {
            let most = self.limits().depth.min(tcb.most_nested.get());
            if depth >= most || !tcb.has_room() {
                return Err(Error::Depth { depth }.into());
            }
        }
        let stack = self.stack(tcb, request.stacked.len() as u32)?;
        let extra;
        let has_extra = !request.stacked.is_empty() || !request.vectors.is_null();
        let extra = if has_extra {
            extra = Extra {
                vectors: request.vectors,
                stacked: request.stacked.as_ptr(),
                count: request.stacked.len() as u32,
            };
            &raw const extra
        } else {
            ptr::null()
        };
        let left = if self.is_limited || limits.is_some() {
            let limits = limits.copied().unwrap_or_default();
            self.enter_limited(tcb, extra, request, stack, &limits)?
        } else {
            self.enter(tcb, extra, request, stack)
        };
        if left.ended != ended::RETURNED {
            return Err(self.explain(tcb, left.ended));
        }
        Ok(Returned {
            integer: left.value,
            high: left.high,
            double: left.double,
        })
    }

    /// `%r15` for an invocation with so many words on the stack: a multiple of 16.
    #[inline]
    fn stack(&self, tcb: &Tcb, words: u32) -> Result<u64, CallError> {
        let outer = tcb.innermost(self);
        let top = match outer {
            // Below what the outer invocation uses, its red zone included. Modulo
            // the window, as the domain's own steps are.
            Some(outer) => (outer as u32).wrapping_sub(RED_ZONE),
            None => tcb.stack_top(self)? as u32,
        };
        let stack = top.wrapping_sub(8 * words) & !15;
        Ok(self.memory().base() + u64::from(stack))
    }

    #[inline]
    fn enter(&self, tcb: &Tcb, extra: *const Extra, request: Request<'_>, stack: u64) -> Left {
        // SAFETY: a request's target is a labelled instruction of this domain's
        // image (`entry`), which is verified code (`Image::new`) mapped in this
        // window as long as `self` lives; the stack lies in this window; the
        // pointers are those of a request that outlives the call; the block is
        // this thread's, and nested calls have been refused without room.
        unsafe { trampoline::enter(tcb, self, request.target, stack, request.integers, extra) }
    }

    /// With limits on time, gate calls or the control stack, or on what is nested.
    fn enter_limited(
        &self,
        tcb: &Tcb,
        extra: *const Extra,
        request: Request<'_>,
        stack: u64,
        limits: &CallLimits,
    ) -> Result<Left, CallError> {
        // Without a limit, one of an outer invocation of the same domain goes on.
        let granted = least(self.limits().gate_calls, limits.gate_calls);
        let outer_gates = granted.map(|granted| {
            tcb.gates.replace(GateLimit {
                domain: self,
                left: granted,
                granted,
            })
        });
        let outer_nested = limits.depth.map(|depth| {
            let (most, outer) = (tcb.depth().saturating_add(depth), tcb.most_nested.get());
            tcb.most_nested.replace(most.min(outer))
        });
        let time = least(self.limits().time, limits.time);
        let outcome = self.enter_timed(tcb, time, || {
            let control = tcb.lower(self.limits().control_stack);
            let left = self.enter(tcb, extra, request, stack);
            tcb.control.set(control);
            left
        });
        if let Some(gates) = outer_gates {
            tcb.gates.set(gates);
        }
        if let Some(most) = outer_nested {
            tcb.most_nested.set(most);
        }
        outcome
    }

    /// With limits on its time, or on all calls' time.
    fn enter_timed(
        &self,
        tcb: &Tcb,
        time: Option<Duration>,
        enter: impl FnOnce() -> Left,
    ) -> Result<Left, CallError> {
        // A call within a call of the same domain is in that one's account.
        let account = self.account.as_deref();
        let account = account.filter(|_| tcb.innermost(self).is_none());
        let left = match account {
            None => None,
            Some(account) => {
                let granted = account.granted();
                let left = account.begin(tcb).ok_or(Error::TimeSpent { granted })?;
                Some((left, granted))
            }
        };
        let granted = match (time, left) {
            (Some(time), Some((left, _))) if time <= left => Some((time, Granted::call(time))),
            (_, Some((left, all))) => Some((left, Granted::total(all))),
            (Some(time), None) => Some((time, Granted::call(time))),
            // Within a call of the same domain: that one's limit holds.
            (None, None) => None,
        };
        let Some((time, granted)) = granted else {
            return Ok(enter());
        };
        let outer = watchdog::arm(tcb, time, granted);
        let outcome = enter();
        watchdog::disarm(tcb, outer);
        if let Some(account) = account {
            account.end(tcb);
        }
        Ok(outcome)
    }

    /// Why the invocation did not return.
    #[cold]
    fn explain(&self, tcb: &Tcb, how: u32) -> CallError {
        let fault = if how == ended::FAULT {
            tcb.record().explain(tcb, self)
        } else {
            match tcb.end.take().map(|ending| *ending) {
                Some(Ending::Panic(payload)) => resume_unwind(payload),
                Some(Ending::Refused(error)) => return CallError::Refused(error),
                Some(Ending::Exit(status)) => {
                    self.end();
                    return CallError::Exit(status);
                }
                Some(Ending::Fault(cause)) => tcb.record().explain_in_gate(cause, self),
                None => tcb.record().explain_in_gate(Cause::UnknownGate, self),
            }
        };
        self.end();
        CallError::Fault(Box::new(fault))
    }
}
