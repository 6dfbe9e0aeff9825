//! Invocations: from a checked request through the trampoline, and what came of it.

use crate::call::{Arguments, CallError, NotReturned, Returned};
use crate::clock::Clock;
use crate::control::{self, GateLimit, MAX_CONTROL_STACK, Tcb};
use crate::dispatch::Ending;
use crate::domain::{Entry, Inner};
use crate::error::Error;
use crate::fault::Cause;
use crate::limits::{CallLimits, least};
use crate::meter::Tally;
use crate::stacks::RED_ZONE;
use crate::trampoline::{self, Extra, Left, ended};
use crate::watchdog::{self, Bound, Granted};
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
        arguments: &Arguments,
    ) -> Result<Returned, NotReturned> {
        let tcb =
            control::current().filter(|tcb| self.life.is_plainly(entry.serial) && tcb.is_outside());
        let called = tcb.and_then(|tcb| {
            self.outermost(tcb, entry, arguments, |extra, stack| {
                self.enter(tcb, extra, entry.address, arguments.integers(), stack)
            })
        });
        match called {
            Some(called) => called,
            None => self.call_limited(entry, arguments, None),
        }
    }

    /// An invocation on a thread that is in none, and has called this life of the domain before; nothing
    /// if it has not. `enter` takes further arguments and the data stack.
    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    fn outermost(
        &self,
        tcb: &Tcb,
        entry: Entry,
        arguments: &Arguments,
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

    /// As the usual call, of a domain whose only limit is the time of each call.
    #[inline]
    fn call_timed(
        &self,
        entry: Entry,
        arguments: &Arguments,
    ) -> Option<Result<Returned, NotReturned>> {
        let time = self.only_time?.get();
        let usual = |tcb: &&Tcb| self.life.is_open_with_limits(entry.serial) && tcb.is_outside();
        let tcb = control::current().filter(usual)?;
        self.outermost(tcb, entry, arguments, |extra, stack| {
            let outer = watchdog::arm_call(tcb, time);
            let control = tcb.lower(MAX_CONTROL_STACK);
            let left = self.enter(tcb, extra, entry.address, arguments.integers(), stack);
            tcb.control.set(control);
            watchdog::disarm_call(tcb, &outer);
            left
        })
    }

    #[inline]
    pub(crate) fn call_limited(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, NotReturned> {
        let mut place = Returned::default();
        self.call_into(entry, arguments, limits, &mut place)?;
        // One by one, as in `call`.
        Ok(Returned {
            integer: place.integer,
            high: place.high,
            double: place.double,
        })
    }

    #[inline(never)]
    fn call_into(
        &self,
        entry: Entry,
        arguments: &Arguments,
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
        let request = Request {
            target: entry.address,
            integers: arguments.integers(),
            vectors: arguments.vectors(),
            stacked: arguments.stacked(),
        };
        let tcb = control::current_or_new()?;
        tcb.check_nesting()?;
        if !self.life.is_open() {
            self.admit_host(tcb).map_err(|error| self.not_made(error))?;
        }
        *place = self.invoke(tcb, request, limits)?;
        Ok(())
    }

    /// Runs the constructors, for who has begun that.
    pub(crate) fn call_first(
        &self,
        entry: Entry,
        arguments: &Arguments,
    ) -> Result<Returned, NotReturned> {
        let request = Request {
            target: entry.address,
            integers: arguments.integers(),
            vectors: arguments.vectors(),
            stacked: arguments.stacked(),
        };
        let tcb = control::current_or_new()?;
        tcb.check_nesting()?;
        self.invoke(tcb, request, None)
    }

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
            self.enter_limited(tcb, extra, request, stack, limits, &mut left)?;
            left
        } else {
            self.enter(tcb, extra, request.target, request.integers, stack)
        };
        self.returned(tcb, left)
    }

    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    fn returned(&self, tcb: &Tcb, left: Left) -> Result<Returned, NotReturned> {
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
            None => tcb.stack_top(self)? as u32,
        };
        let stack = top.wrapping_sub(8 * words) & !15;
        Ok(self.window + u64::from(stack))
    }

    #[expect(clippy::inline_always, reason = "as `call`")]
    #[inline(always)]
    fn enter(
        &self,
        tcb: &Tcb,
        extra: *const Extra,
        target: u64,
        integers: &[u64; 6],
        stack: u64,
    ) -> Left {
        // SAFETY: an entry's or a request's target is a labelled instruction of this domain's
        // image (`entry`), which is verified code (`Image::new`) mapped in this
        // window as long as `self` lives; the stack lies in this window; the
        // pointers are those of a caller who waits; the block is
        // this thread's, and nested calls have been refused without room.
        unsafe { trampoline::enter(tcb, self, target, stack, integers, extra) }
    }

    /// With limits on time, gate calls or the control stack, or on what is nested.
    #[inline(never)]
    fn enter_limited(
        &self,
        tcb: &Tcb,
        extra: *const Extra,
        request: Request<'_>,
        stack: u64,
        limits: Option<&CallLimits>,
        place: &mut Left,
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
            self.enter_timed(tcb, &limits, || {
                let control = tcb.lower(self.limits().control_stack);
                *place = self.enter(tcb, extra, request.target, request.integers, stack);
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
    fn enter_timed(
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
        let outer = watchdog::arm(tcb, bounds);
        enter();
        watchdog::disarm(tcb, &outer);
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
            let Some(time) = account.begin(tcb) else {
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
            account.end(tcb);
        }
    }

    /// A call that is not made, counted.
    #[cold]
    pub(crate) fn not_made(&self, error: Error) -> NotReturned {
        self.meter.not_made(&error);
        error.into()
    }

    /// Why the invocation did not return, counted.
    #[cold]
    #[inline(never)]
    fn explain(&self, tcb: &Tcb, how: u32) -> NotReturned {
        let why = self.why(tcb, how);
        self.meter.ended(&why);
        why
    }

    fn why(&self, tcb: &Tcb, how: u32) -> NotReturned {
        let fault = if how == ended::FAULT {
            tcb.record().explain(tcb, self)
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
                Some(Ending::Fault(cause)) => tcb.record().explain_in_gate(cause, self),
                None => tcb.record().explain_in_gate(Cause::UnknownGate, self),
            }
        };
        self.end();
        Box::new(CallError::Fault(Box::new(fault)))
    }
}
