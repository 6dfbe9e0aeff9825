//! Turns with what belongs to no request: pools, tables, hashes and other objects that APR does not lock. One thread at a time has
//! APR work with such a thing.
//!
//! ```text
//!   a call of the host names a lasting thing ──► nobody has its turn ──► APR works ──► the call returns: the turn is over
//!                                            ├─► APR works with it in another thread, and waits for nobody ──► this one waits
//!                                            └─► otherwise ──► this call is refused
//! ```
//!
//! No two threads wait for each other. A thread waits only for one that is inside of a function that only computes, with no
//! function of a module in it. That one may itself wait for a turn, but only for one at a higher address than all that it has.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Turn {
    /// Of which thing.
    of: u64,
    /// The thread that has it, or [`ANYBODY`].
    thread: u64,
    /// Calls of the thread that have it, one inside of the other.
    calls: u32,
    /// Whether the function that has it only computes.
    computes: bool,
    /// How many of the thread's functions of modules run inside of it.
    inside: u32,
}

/// Threads have the turn together. Nobody waits for them.
const ANYBODY: u64 = 0;

impl Turn {
    fn is_short(&self) -> bool {
        self.computes && self.inside == 0
    }
}

/// The turns that threads have, a few at a time.
struct Turns {
    all: Vec<Turn>,
    /// How many threads wait.
    waiting: usize,
}

impl Turns {
    /// Something has changed. To wake threads is a call of the system, so it is asked for where there are any.
    fn tell(&self) {
        if self.waiting != 0 {
            OVER.notify_all();
        }
    }
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    all: Vec::new(),
    waiting: 0,
});
static OVER: Condvar = Condvar::new();

fn turns() -> MutexGuard<'static, Turns> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of this thread.
fn here() -> u64 {
    // SAFETY: it asks for a number.
    unsafe { libc::pthread_self() }
}

/// Has the turn with a thing, if it is a lasting one, while something short is done.
///
/// # Errors
/// As for [`begin`].
pub(crate) fn short<R>(
    lasting: Option<u64>,
    act: impl FnOnce() -> Result<R, String>,
) -> Result<R, String> {
    let Some(at) = lasting else {
        return act();
    };
    begin(at, true)?;
    let result = act();
    end(at);
    result
}

/// This thread has the turn with a thing until [`end`]. Whether what it does only computes, so that others wait for it, is said by
/// the first of its calls that has it.
///
/// # Errors
/// Another thread has it, and may have it for long; or that one could wait for this one.
pub(crate) fn begin(at: u64, computes: bool) -> Result<(), String> {
    let thread = here();
    let mut turns = turns();
    loop {
        // Nobody waits for a turn that has functions of modules inside.
        let above = |turn: &Turn| turn.of > at && turn.thread == thread && turn.inside == 0;
        let has_above = turns.all.iter().any(above);
        match turns.all.iter_mut().find(|turn| turn.of == at) {
            None => {
                turns.all.push(Turn {
                    of: at,
                    thread,
                    calls: 1,
                    computes,
                    inside: 0,
                });
                return Ok(());
            }
            Some(turn) if turn.thread == thread => {
                turn.calls += 1;
                return Ok(());
            }
            Some(turn) if !turn.is_short() || has_above => {
                return Err(format!("{at:#x} is in use by another thread's call"));
            }
            Some(_) => {
                turns.waiting += 1;
                turns = OVER.wait(turns).unwrap_or_else(PoisonError::into_inner);
                turns.waiting -= 1;
            }
        }
    }
}

/// This thread works with a thing until [`end`], and others may, too. None has the turn for itself meanwhile.
///
/// # Errors
/// Another thread has the turn for itself.
pub(crate) fn share(at: u64) -> Result<(), String> {
    let thread = here();
    let mut turns = turns();
    match turns.all.iter_mut().find(|turn| turn.of == at) {
        None => turns.all.push(Turn {
            of: at,
            thread: ANYBODY,
            calls: 1,
            computes: false,
            inside: 0,
        }),
        Some(turn) if [ANYBODY, thread].contains(&turn.thread) => turn.calls += 1,
        Some(_) => return Err(format!("{at:#x} is in use by another thread's call")),
    }
    Ok(())
}

/// A call returns that had the turn.
pub(crate) fn end(at: u64) {
    let mut turns = turns();
    let Some(place) = turns.all.iter().position(|turn| turn.of == at) else {
        return;
    };
    let turn = &mut turns.all[place];
    turn.calls -= 1;
    if turn.calls == 0 {
        turns.all.swap_remove(place);
        turns.tell();
    }
}

/// A function of a module runs inside of this thread's turns from now on, which may wait for other threads: these do not wait for it.
#[cold]
#[inline(never)]
pub(crate) fn enter() {
    count(|inside| inside + 1);
}

/// The function has returned.
#[cold]
#[inline(never)]
pub(crate) fn leave() {
    count(|inside| inside.saturating_sub(1));
}

fn count(change: fn(u32) -> u32) {
    let thread = here();
    let mut turns = turns();
    let own = turns.all.iter_mut().filter(|turn| turn.thread == thread);
    own.for_each(|turn| turn.inside = change(turn.inside));
    turns.tell();
}

/// A process has begun: of its parent's threads there is only this one.
pub(crate) fn fresh() {
    // Who waits is counted still: then there are calls of the system that nobody needs.
    turns().all.clear();
}

#[cfg(test)]
mod tests {
    use super::{begin, end, enter, leave, share, short};

    fn inside<R>(act: impl FnOnce() -> R) -> R {
        enter();
        let result = act();
        leave();
        result
    }

    #[test]
    fn a_thread_waits_for_one_that_computes_alone() {
        const AT: u64 = 0x10;
        assert_eq!(begin(AT, true), Ok(()));
        let other = std::thread::spawn(|| short(Some(AT), || Ok(())));
        let refused = inside(|| std::thread::spawn(|| begin(AT, true)).join());
        assert!(refused.expect("it ends").is_err());
        // The first one came before or while a function of a module ran, or waits still.
        end(AT);
        let _either = other.join().expect("it ends");
        assert_eq!(begin(AT, false), Ok(()));
        let refused = std::thread::spawn(|| begin(AT, true)).join();
        assert!(refused.expect("it ends").is_err());
        end(AT);
    }

    #[test]
    fn a_thread_does_not_wait_for_a_lower_turn_than_it_has() {
        const LOW: u64 = 0x20;
        const HIGH: u64 = 0x30;
        assert_eq!(begin(LOW, true), Ok(()));
        let other = std::thread::spawn(|| {
            let high = begin(HIGH, true);
            let low = begin(LOW, true);
            end(HIGH);
            (high, low.is_err())
        });
        assert_eq!(other.join().expect("it ends"), (Ok(()), true));
        end(LOW);
    }

    #[test]
    fn nobody_has_a_turn_alone_that_others_share() {
        const AT: u64 = 0x50;
        assert_eq!(share(AT), Ok(()));
        let other = std::thread::spawn(|| {
            let alone = begin(AT, true);
            let shared = share(AT);
            end(AT);
            (alone.is_err(), shared)
        });
        assert_eq!(other.join().expect("it ends"), (true, Ok(())));
        // The thread itself may have it in two calls, one inside of the other, and ends it in neither.
        assert!(begin(AT, true).is_err());
        end(AT);
        assert_eq!(begin(AT, true), Ok(()));
        assert_eq!(share(AT), Ok(()));
        let other = std::thread::spawn(|| share(AT).is_err());
        assert!(other.join().expect("it ends"));
        end(AT);
        end(AT);
    }

    #[test]
    fn a_turn_nests_in_its_own_thread() {
        const AT: u64 = 0x40;
        assert_eq!(begin(AT, true), Ok(()));
        assert_eq!(inside(|| short(Some(AT), || Ok(7))), Ok(7));
        end(AT);
        let free = std::thread::spawn(|| short(Some(AT), || Ok(8))).join();
        assert_eq!(free.expect("it ends"), Ok(8));
    }
}
