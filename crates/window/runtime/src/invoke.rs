//! Invocations: from a checked request through the trampoline, and what came of it.

use crate::account::Thread;
use crate::assembly::ended;
use crate::call::{CallArguments, Entry, NotReturned, Returned};
use crate::clock::Clock;
use crate::enter::{self, Extra, Left};
use crate::granted::{Bound, Granted};
use crate::host_function::Ending;
use crate::inner::Inner;
use crate::limits::{CallLimits, least};
use crate::stacks::RED_ZONE;
use crate::tcb::{GateLimit, Tcb};
use crate::{deadline, signals};
use mullion_report::error::Error;
use mullion_report::fault::Cause;
use mullion_report::meter::Tally;
use mullion_report::refused::CallError;
use std::panic::resume_unwind;
use std::ptr;

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

impl<'a> Request<'a> {
    /// What the host asks for. The entry is this domain's, in this life.
    #[inline]
    pub(crate) fn new(entry: Entry, arguments: &'a CallArguments) -> Self {
        Self {
            target: entry.address,
            integers: arguments.integers(),
            vectors: arguments.vectors(),
            stacked: arguments.stacked(),
        }
    }
}

impl Inner {
    /// Runs what an entry of this domain or a link to it names. Callers have been admitted.
    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    pub(crate) fn invoke(
        &self,
        tcb: &Tcb,
        request: Request<'_>,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, NotReturned> {
        let depth = tcb.depth();
        if depth != 0 {
            let most = self.limits().depth.min(tcb.most_nested.get());
            if depth >= most || !tcb.has_room() {
                return Err(self.not_made(Error::Depth { depth }));
            }
        }
        let stack = self.stack(tcb, request.stacked.len() as u32)?;
        tcb.count(self, Tally::call);
        let extra;
        let has_extra = !request.stacked.is_empty() || !request.vectors.is_null();
        let extra = if has_extra {
            extra = Extra::new(request.vectors, request.stacked);
            &raw const extra
        } else {
            ptr::null()
        };
        let left = if self.is_limited || limits.is_some() {
            let mut left = Left::default();
            self.limited(tcb, limits, || {
                left = self.enter(tcb, extra, request.target, request.integers, stack);
            })?;
            left
        } else {
            self.enter(tcb, extra, request.target, request.integers, stack)
        };
        self.returned(tcb, left)
    }

    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    pub(crate) fn returned(&self, tcb: &Tcb, left: Left) -> Result<Returned, NotReturned> {
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
    fn stack(&self, tcb: &Tcb, words: u32) -> Result<u64, NotReturned> {
        let outer = tcb.innermost(self);
        let top = match outer {
            // Below what the outer invocation uses, its red zone included. Modulo
            // the window, as the domain's own steps are.
            Some(outer) => (outer as u32).wrapping_sub(RED_ZONE),
            None => self.stack_top(tcb)? as u32,
        };
        let stack = top.wrapping_sub(8 * words) & !15;
        Ok(self.window + u64::from(stack))
    }

    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    pub(crate) fn enter(
        &self,
        tcb: &Tcb,
        extra: *const Extra,
        target: u64,
        integers: &[u64; 6],
        stack: u64,
    ) -> Left {
        // SAFETY: an entry's or a request's target is a labelled instruction of this domain's
        // image (`entry`), which is verified code (`ImageLayout::new`) mapped in this
        // window as long as `self` lives; the stack lies in this window; the
        // pointers are those of a caller who waits; the block is
        // this thread's, and nested calls have been refused without room.
        unsafe { enter::enter(tcb, self, target, stack, integers, extra) }
    }

    /// Enters under the limits of the domain, and those of the call: on time, gate calls or the control stack, or
    /// on what is nested.
    #[inline(never)]
    fn limited(
        &self,
        tcb: &Tcb,
        limits: Option<&CallLimits>,
        enter: impl FnOnce(),
    ) -> Result<(), NotReturned> {
        let limits = limits.copied().unwrap_or_default();
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
        // Measured from before its limit begins, so that a call that its limit has ended is never seen to be shorter.
        let outcome = self.measured(tcb, || {
            self.timed(tcb, &limits, || {
                let control = tcb.lower(self.limits().control_stack);
                enter();
                tcb.control.set(control);
            })
        });
        if let Some(gates) = outer_gates {
            tcb.gates.set(gates);
        }
        if let Some(most) = outer_nested {
            tcb.most_nested.set(most);
        }
        outcome
    }

    /// Counts the time of an invocation that is not nested in another one of the domain.
    fn measured<R>(&self, tcb: &Tcb, enter: impl FnOnce() -> R) -> R {
        let clock = self.limits().measured;
        let Some(clock) = clock.filter(|_| tcb.innermost(self).is_none()) else {
            return enter();
        };
        let begun = clock.of(tcb.thread);
        let outcome = enter();
        let time = clock.of(tcb.thread).saturating_sub(begun);
        tcb.count(self, |tally| tally.time(time));
        outcome
    }

    /// With limits on its time, or on all calls' time.
    fn timed(
        &self,
        tcb: &Tcb,
        limits: &CallLimits,
        enter: impl FnOnce(),
    ) -> Result<(), NotReturned> {
        // A call within a call of the same domain is in that one's account: then that one's
        // limit holds.
        let charges = tcb.innermost(self).is_none();
        let charged = if charges {
            self.charge(tcb)?
        } else {
            [None; 2]
        };
        let bounds = Clock::ALL.map(|clock| {
            let time = least(self.limits().of_call(clock), limits.of_call(clock));
            let call = time.map(|time| (time, Granted::call(clock, time)));
            match (call, charged[clock as usize]) {
                (Some(call), Some(all)) if call.0 > all.0 => Some(all),
                (call, all) => call.or(all),
            }
        });
        if bounds.iter().all(Option::is_none) {
            enter();
            return Ok(());
        }
        let outer = deadline::arm(tcb, bounds);
        enter();
        deadline::disarm(tcb, &outer);
        if charges {
            self.discharge(tcb, Clock::ALL.len());
        }
        Ok(())
    }

    /// Begins a call in the accounts of all calls' time; what is left by each clock.
    fn charge(&self, tcb: &Tcb) -> Result<[Option<Bound>; 2], NotReturned> {
        let mut left = [None; 2];
        for (index, clock) in Clock::ALL.into_iter().enumerate() {
            let Some(account) = &self.accounts[index] else {
                continue;
            };
            let granted = account.granted();
            let Some(time) = account.begin(thread(tcb)) else {
                self.discharge(tcb, index);
                return Err(self.not_made(match clock {
                    Clock::Wall => Error::TimeSpent { granted },
                    Clock::Processor => Error::ProcessorTimeSpent { granted },
                }));
            };
            left[index] = Some((time, Granted::total(clock, granted)));
        }
        Ok(left)
    }

    /// Ends it in the first `count` of the accounts.
    fn discharge(&self, tcb: &Tcb, count: usize) {
        for account in self.accounts.iter().take(count).flatten() {
            account.end(thread(tcb));
        }
    }

    /// Why the invocation did not return, counted.
    #[cold]
    #[inline(never)]
    fn explain(&self, tcb: &Tcb, how: u32) -> NotReturned {
        let why = self.why(tcb, how);
        match &*why {
            CallError::Fault(fault) => self.meter.fault(&fault.cause),
            CallError::Exit(_) => self.meter.exited(),
            CallError::Refused(_) => self.meter.refused(),
            CallError::NotMade(error) => self.meter.not_made(error),
        }
        why
    }

    fn why(&self, tcb: &Tcb, how: u32) -> NotReturned {
        let in_gate = if how == ended::FAULT {
            None
        } else {
            match tcb.end.take().map(|ending| *ending) {
                Some(Ending::Panic(payload)) => {
                    self.meter.refused();
                    resume_unwind(payload)
                }
                Some(Ending::Refused(error)) => return Box::new(CallError::Refused(error)),
                Some(Ending::Exit(status)) => {
                    self.end();
                    return Box::new(CallError::Exit(status));
                }
                Some(Ending::Fault(cause)) => Some(cause),
                None => Some(Cause::UnknownGate),
            }
        };
        // First of all: what is said of the fault comes from code that is not trusted.
        self.end();
        let fault = match in_gate {
            None => tcb.record().explain(tcb, self),
            Some(cause) => tcb.record().explain_in_gate(cause, self),
        };
        Box::new(CallError::Fault(Box::new(fault)))
    }

    /// Where the data stack of the thread begins. It takes one if it has none.
    #[inline]
    fn stack_top(&self, tcb: &Tcb) -> Result<u64, NotReturned> {
        match tcb.own_stack(self, self.serial()) {
            Some(top) => Ok(top),
            None => self.first_call(tcb),
        }
    }

    /// The thread takes a stack, and the domain sets it up.
    #[cold]
    #[inline(never)]
    fn first_call(&self, tcb: &Tcb) -> Result<u64, NotReturned> {
        // What the host has changed since the thread called another one.
        tcb.alternate.install_if_none()?;
        signals::open()?;
        let leased = tcb.lease(self);
        let (top, index) = leased.map_err(|error| self.not_made(error))?;
        let target = self.thread_start();
        if target != 0 {
            let request = Request {
                target,
                integers: &[u64::from(index), 0, 0, 0, 0, 0],
                vectors: ptr::null(),
                stacked: &[],
            };
            let started = match self.invoke(tcb, request, None) {
                // As system calls report errors: the other numbers are none.
                Ok(returned) => match returned.integer.wrapping_neg() {
                    code @ 1..4096 => Err(self.not_made(Error::ThreadStart { code: code as i32 })),
                    _ => Ok(()),
                },
                Err(error) => Err(error),
            };
            if let Err(error) = started {
                tcb.give_back(self);
                return Err(error);
            }
        }
        // Notes it.
        let noted = tcb.own_stack(self, self.serial());
        debug_assert_eq!(noted, Some(top));
        Ok(top)
    }
}

/// The thread, as accounts know it.
fn thread(tcb: &Tcb) -> Thread {
    Thread {
        block: ptr::from_ref(tcb).addr(),
        number: tcb.thread,
    }
}
