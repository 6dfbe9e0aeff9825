//! The life of a domain: one word, and the only ways to change it.
//!
//! ```text
//!                start              open
//!        NEW ------------> CONSTRUCTING ----> OPEN ----- ask ----> ASKED
//!         |  \                  |            ^ | ^ ^ <--- stay ---- | |
//!         |   `----- open ------|------------' | | |                | |
//!         |                     |        close | | reopen           | |
//!         |                     |              v |                  | |
//!         |                     |            ENDING                 | |
//!         |                     |             | |                   | |
//!         +-------- end --------+-- end ------|-+------- end -------+ |
//!         |                     v             |                       |
//!         |                   ENDED <---------|---------------------- | --- end ----+
//!         |                     |             |                       |             |
//!         +---- take -----------+--- take ----+------- take ----------+---> RESTARTING
//!         ^                                                                         |
//!         +--------------------------------- renew ---------------------------------+
//!
//!        every state but GONE ---- leave ----> GONE
//! ```
//! | state | a call of the host | a call of another domain, or at a thread's end | what is inside |
//! | --- | --- | --- | --- |
//! | `NEW` | enters: nothing has run yet | waits, or is refused | goes on |
//! | `CONSTRUCTING` | waits, or is refused | waits, or is refused | the constructors |
//! | `OPEN` | enters | enters | goes on |
//! | `ASKED` | looks again | looks again | goes on, and nests |
//! | `ENDING` | enters: the host lets nobody in any more but whom it had let in | waits, or is refused | goes on, and nests |
//! | `ENDED` | is refused | is refused | goes on, nests nothing |
//! | `RESTARTING` | (cannot be: it borrows the domain) | waits, or is refused | nobody |
//! | `GONE` | is refused | is refused | goes on, nests nothing |
//!
//! Every arrow is one compare-and-exchange from the state that it starts at. So nothing is stored back: a
//! restart that is refused goes from `ASKED` to `OPEN`, and finds it impossible when the domain has ended
//! in between. The word holds the number of the life too, which only `renew` changes. A comparison with
//! the number of an entry asks both questions at once.
//!
//! # Who is inside
//! Calls of other domains, and those at the ends of threads, are counted (as references to the domain).
//! A restart must find the count at its rest:
//!
//! | a call that comes | a restart |
//! | --- | --- |
//! | counts itself | `OPEN` to `ASKED` |
//! | (full barrier) | (full barrier) |
//! | looks at the state; enters only if it is `OPEN` | looks at the count; takes the life only if nobody is there |
//!
//! Of the two, one sees the other. Counting and the exchange are locked instructions, which are full barriers
//! on this architecture. While the state is `ENDED` nobody enters, so the count alone decides.
//!
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// What a life is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// Its constructors have run: everybody may enter. Zero, so that the number of a life is the whole word.
    Open = 0,
    /// Somebody looks whether anybody is inside. For a moment.
    Asked = 1,
    /// Closed to all that come, until those inside have left.
    Ending = 2,
    /// It has faulted, exited or been ended.
    Ended = 3,
    /// It is given its first state again.
    Restarting = 4,
    /// Nothing of it has run in this life.
    New = 5,
    /// Its constructors run.
    Constructing = 6,
    /// Its owner has let it go.
    Gone = 7,
}

const STATE: u64 = 0b111;
/// A limit must be looked at for every call. Set for good, or never.
const LIMITED: u64 = 0b1000;
/// Numbers of lives are multiples of this.
pub(crate) const NUMBER: u64 = 0b1_0000;

/// Why a life is not taken for a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// Somebody is inside. It is as it was.
    Inside,
    /// It is being made, or has gone.
    Never,
}

/// The word.
#[derive(Debug)]
pub(crate) struct Life(AtomicU64);

impl Life {
    /// A life that nothing has run in. The number is a multiple of [`NUMBER`], and nobody else's.
    pub(crate) fn new(number: u64, limited: bool) -> Self {
        let limited = if limited { LIMITED } else { 0 };
        Self(AtomicU64::new(number | limited | State::New as u64))
    }

    /// Whether it is the life with this number, open, and without limits.
    #[inline]
    pub(crate) fn is_plainly(&self, number: u64) -> bool {
        self.0.load(Ordering::Acquire) == number
    }

    /// Whether it is the life with this number, open, and with limits.
    #[inline]
    pub(crate) fn is_open_with_limits(&self, number: u64) -> bool {
        self.is_plainly(number | LIMITED)
    }

    /// Its number.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !(NUMBER - 1)
    }

    /// What it is at.
    #[inline]
    pub(crate) fn state(&self) -> State {
        match self.0.load(Ordering::SeqCst) & STATE {
            0 => State::Open,
            1 => State::Asked,
            2 => State::Ending,
            3 => State::Ended,
            4 => State::Restarting,
            5 => State::New,
            6 => State::Constructing,
            _ => State::Gone,
        }
    }

    /// Whether everybody may enter. For who has been counted.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state() == State::Open
    }

    /// Whether it takes no calls until it is restarted.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state(), State::Ended | State::Gone)
    }

    /// Nothing has run: its constructors will. Whether it was so.
    pub(crate) fn start(&self) -> bool {
        self.step(State::New, State::Constructing)
    }

    /// Its constructors have run, or it has none. Whether it was so.
    pub(crate) fn open(&self) -> bool {
        self.step(State::Constructing, State::Open) || self.step(State::New, State::Open)
    }

    /// It takes no calls from now on.
    pub(crate) fn end(&self) {
        loop {
            let state = self.state();
            let over = matches!(state, State::Ended | State::Gone);
            if over || self.step(state, State::Ended) {
                return;
            }
        }
    }

    /// Who comes waits, or is refused; who is inside goes on. Whether it was open.
    pub(crate) fn close(&self) -> bool {
        loop {
            match self.state() {
                State::Asked => pause(),
                _ => return self.step(State::Open, State::Ending),
            }
        }
    }

    /// It was closed for nothing. An end in between stays.
    pub(crate) fn reopen(&self) {
        self.step(State::Ending, State::Open);
    }

    /// Takes it for a restart, if nobody is inside: then nobody comes until it is open again. If it is
    /// refused, it is as it was.
    pub(crate) fn take(&self, inside: impl Fn() -> bool) -> Result<(), NotTaken> {
        loop {
            let state = self.state();
            match state {
                State::Constructing | State::Restarting | State::Gone => {
                    return Err(NotTaken::Never);
                }
                State::Asked => pause(),
                State::Open => match self.ask(&inside) {
                    Some(answer) => return answer,
                    None => continue,
                },
                State::Ending | State::Ended | State::New => {
                    if inside() {
                        return Err(NotTaken::Inside);
                    }
                    if self.step(state, State::Restarting) {
                        break;
                    }
                }
            }
        }
        fence(Ordering::Acquire);
        Ok(())
    }

    /// As [`Life::take`], of one that is open; nothing if it is so no more.
    fn ask(&self, inside: &impl Fn() -> bool) -> Option<Result<(), NotTaken>> {
        // Most that are refused disturb nobody.
        if inside() {
            return Some(Err(NotTaken::Inside));
        }
        if !self.step(State::Open, State::Asked) {
            return None;
        }
        if inside() {
            // Unless it has ended meanwhile.
            self.step(State::Asked, State::Open);
            return Some(Err(NotTaken::Inside));
        }
        if !self.step(State::Asked, State::Restarting) {
            return None;
        }
        // What those who have left did comes before what is done now.
        fence(Ordering::Acquire);
        Some(Ok(()))
    }

    /// It is as new, under a number that nobody had. Not if it has ended, or gone, meanwhile.
    pub(crate) fn renew(&self, number: u64) -> bool {
        let old = self.0.load(Ordering::Relaxed);
        let limited = old & LIMITED;
        let from = (old & !STATE) | State::Restarting as u64;
        let to = number | limited | State::New as u64;
        let renewed = self
            .0
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
        renewed.is_ok()
    }

    /// Its owner lets it go.
    pub(crate) fn leave(&self) {
        loop {
            let state = self.state();
            if state == State::Gone || self.step(state, State::Gone) {
                return;
            }
        }
    }

    /// One arrow. The number stays.
    fn step(&self, from: State, to: State) -> bool {
        let old = self.0.load(Ordering::Relaxed) & !STATE;
        let (from, to) = (old | from as u64, old | to as u64);
        self.0
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }
}

/// For who finds `ASKED`: the thread that asks waits for nobody.
#[cold]
pub(crate) fn pause() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    const FIRST: u64 = NUMBER;

    /// A domain: its life, the count of those inside, and memory that must be whole for them.
    struct Domain {
        life: Life,
        count: AtomicUsize,
        memory: UnsafeCell<u64>,
    }

    impl Domain {
        fn new() -> Self {
            let domain = Self {
                life: Life::new(FIRST, false),
                count: AtomicUsize::new(0),
                memory: UnsafeCell::new(FIRST),
            };
            assert!(domain.life.open());
            domain
        }

        /// As `Link::call`: what it found in the domain, if it was let in. (There, who finds `ASKED` looks
        /// again, which is a call that comes later.)
        fn call(&self) -> Option<u64> {
            self.count.fetch_add(1, Ordering::Relaxed);
            // The locked instruction that counts is a full barrier.
            fence(Ordering::SeqCst);
            let entered = self.life.state() == State::Open;
            // SAFETY: nobody writes while somebody is inside: that is what is tried.
            let found = entered.then(|| self.memory.with(|memory| unsafe { *memory }));
            self.count.fetch_sub(1, Ordering::Release);
            found
        }

        fn is_used(&self) -> bool {
            fence(Ordering::SeqCst);
            self.count.load(Ordering::Relaxed) != 0
        }

        /// As `Domain::restart`, with constructors that make the memory whole.
        fn restart(&self, number: u64) -> bool {
            if self.life.take(|| self.is_used()).is_err() {
                return false;
            }
            // SAFETY: nobody is inside.
            self.memory.with_mut(|memory| unsafe { *memory = 0 });
            if !self.life.renew(number) || !self.life.start() {
                return false;
            }
            // SAFETY: nobody else is inside.
            self.memory.with_mut(|memory| unsafe { *memory = number });
            self.life.open()
        }
    }

    /// Nobody finds memory half made, nor is anybody inside when it is written.
    #[test]
    fn a_call_finds_a_whole_life_or_none() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let caller = domain.clone();
            let thread = thread::spawn(move || caller.call());
            let restarted = domain.restart(2 * NUMBER);
            let found = thread.join().unwrap();
            assert_ne!(found, Some(0));
            if restarted {
                assert_eq!(domain.call(), Some(2 * NUMBER));
            } else {
                assert_eq!(domain.call(), Some(FIRST), "refused: as it was");
            }
        });
    }

    #[test]
    fn two_calls_and_a_restart() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let threads = [0, 1].map(|_| {
                let domain = domain.clone();
                thread::spawn(move || domain.call())
            });
            domain.restart(2 * NUMBER);
            for thread in threads {
                assert_ne!(thread.join().unwrap(), Some(0));
            }
        });
    }

    /// An end during a restart that is refused stays; one that comes before a restart that is not goes with
    /// the life that it ended.
    #[test]
    fn a_refused_restart_takes_back_no_end() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let inside = domain.clone();
            let thread = thread::spawn(move || {
                inside.count.fetch_add(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                let entered = inside.life.state() == State::Open;
                if entered {
                    let number = inside.life.number();
                    inside.life.end();
                    // It is inside: no restart has come in between.
                    assert_eq!(inside.life.state(), State::Ended);
                    assert_eq!(inside.life.number(), number);
                }
                inside.count.fetch_sub(1, Ordering::Release);
                entered
            });
            let restarted = domain.restart(2 * NUMBER);
            let entered = thread.join().unwrap();
            if entered && !restarted {
                assert_eq!(domain.life.state(), State::Ended);
            }
        });
    }

    /// Closed, nobody comes; those inside leave; then it is taken. Given up, it is open, or has ended.
    #[test]
    fn a_closed_life_empties() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let caller = domain.clone();
            let thread = thread::spawn(move || {
                let found = caller.call();
                caller.life.end();
                found
            });
            let closed = domain.life.close();
            let restarted = closed && domain.restart(2 * NUMBER);
            if closed && !restarted {
                domain.life.reopen();
            }
            assert_ne!(thread.join().unwrap(), Some(0));
            if !restarted {
                assert_eq!(domain.life.state(), State::Ended, "no end is lost");
            }
        });
    }

    /// A life that its owner lets go takes no calls, whatever else happens.
    #[test]
    fn what_has_gone_stays_so() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let other = domain.clone();
            let thread = thread::spawn(move || {
                other.life.end();
                other.life.close();
                other.life.reopen();
            });
            domain.life.leave();
            assert_eq!(domain.call(), None);
            thread.join().unwrap();
            assert_eq!(domain.call(), None);
            assert_eq!(domain.life.state(), State::Gone);
        });
    }

    /// Its owner may end it while it is made anew.
    #[test]
    fn an_end_during_a_restart_stays() {
        loom::model(|| {
            let domain = Arc::new(Domain::new());
            let other = domain.clone();
            let thread = thread::spawn(move || other.life.end());
            assert!(domain.life.take(|| false).is_ok());
            let renewed = domain.life.renew(2 * NUMBER);
            thread.join().unwrap();
            if !renewed {
                assert_eq!(domain.life.state(), State::Ended);
            }
            let mut left = [State::New, State::Ended].into_iter();
            assert!(left.any(|state| state == domain.life.state()));
            domain.life.end();
            assert!(!domain.life.renew(3 * NUMBER), "it is not being restarted");
        });
    }
}
