//! The decision whether a thread may enter a domain that is not open. It depends on what each state of its life (`life`) means to
//! the host, to another domain, and to a thread that is inside already.

use crate::inner::Inner;
use crate::life::{self, State};
use crate::news;
use crate::number::DomainNumber;
use crate::tcb::{self, Tcb};
use mullion_report::error::Error;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Whether this thread is in a call of the domain with this number. On a thread that has left a host
/// function by a jump nobody knows: then it may be.
#[must_use]
pub fn is_inside(domain: DomainNumber) -> bool {
    let Some(tcb) = tcb::current() else {
        return false;
    };
    tcb.check_nesting().is_err() || tcb.frames().any(|frame| frame.domain().number == domain)
}

/// What a state means to a call.
enum Answer {
    Enter,
    /// It may be open soon.
    Later,
    Never,
}

/// For a call of another domain, which has `found` the callee, if that is still there, and
/// has found it not open. It waits as long as the callee lets it, without a hold on it.
#[cold]
#[inline(never)]
pub(crate) fn guest(
    tcb: &Tcb,
    callee: &Weak<Inner>,
    found: Option<Arc<Inner>>,
) -> Result<Arc<Inner>, Error> {
    let Some(callee_now) = found else {
        return Err(Error::Ended);
    };
    match callee_now.answer_to_guest(tcb) {
        Answer::Enter => return Ok(callee_now),
        Answer::Never => return Err(Error::Ended),
        Answer::Later => {}
    }
    let at_most = callee_now.patience_with(tcb);
    drop(callee_now);
    let look = || {
        let Some(now) = callee.upgrade() else {
            return Some(Err(Error::Ended));
        };
        match now.answer_to_guest(tcb) {
            Answer::Enter => Some(Ok(now)),
            Answer::Never => Some(Err(Error::Ended)),
            Answer::Later if tcb.is_stopped() => Some(Err(Error::NotOpen)),
            Answer::Later => None,
        }
    };
    wait(at_most, look)
}

fn wait<T>(at_most: Duration, look: impl FnMut() -> Option<Result<T, Error>>) -> Result<T, Error> {
    if at_most.is_zero() {
        return Err(Error::NotOpen);
    }
    news::wait(at_most, look).unwrap_or(Err(Error::NotOpen))
}

impl Inner {
    /// For a call of the host that has found the domain not open.
    #[cold]
    #[inline(never)]
    pub(crate) fn admit_host(&self, tcb: &Tcb) -> Result<(), Error> {
        match self.answer_to_host(tcb) {
            Answer::Enter => return Ok(()),
            Answer::Never => return Err(Error::Ended),
            Answer::Later => {}
        }
        wait(self.patience_with(tcb), || match self.answer_to_host(tcb) {
            Answer::Enter => Some(Ok(())),
            Answer::Never => Some(Err(Error::Ended)),
            Answer::Later if tcb.is_stopped() => Some(Err(Error::NotOpen)),
            Answer::Later => None,
        })
    }

    /// Whether a call may come that is nobody's but its thread's: at that thread's end.
    pub(crate) fn admits_guest(&self) -> bool {
        matches!(self.settled(), State::Open)
    }

    fn answer_to_host(&self, tcb: &Tcb) -> Answer {
        match self.settled() {
            // Whoever closes the domain refuses its own callers itself, before they come here. One that it has
            // let in before must not wait here: the restart waits for that call.
            State::New | State::Open | State::Ending => Answer::Enter,
            // What is inside may call back.
            State::Constructing if self.is_on(tcb) => Answer::Enter,
            State::Ended | State::Gone => Answer::Never,
            _ => Answer::Later,
        }
    }

    fn answer_to_guest(&self, tcb: &Tcb) -> Answer {
        match self.settled() {
            State::Open => Answer::Enter,
            State::Ending if self.is_on(tcb) => Answer::Enter,
            State::Ended | State::Gone => Answer::Never,
            _ => Answer::Later,
        }
    }

    /// What it is at, when nobody asks any more whether anybody is inside.
    fn settled(&self) -> State {
        loop {
            match self.life.state() {
                State::Asked => life::pause(),
                state => return state,
            }
        }
    }

    /// Whether the thread is in a call of this domain.
    fn is_on(&self, tcb: &Tcb) -> bool {
        tcb.innermost(self).is_some()
    }

    /// How long a call waits. Not at all, if the thread itself is in the domain: what it waits
    /// for would wait for it.
    fn patience_with(&self, tcb: &Tcb) -> Duration {
        if self.is_on(tcb) {
            return Duration::ZERO;
        }
        self.limits().start_wait
    }
}
