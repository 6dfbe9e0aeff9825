//! The scheduler, on each worker's own stack: inbox, timers, ends, sleep.
//!
//! A thread that waits goes on with the next one by itself ([`super::suspend`]). It goes on with the scheduler if no
//! thread is ready, or something else is to be done.

use std::convert::Infallible;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use super::inbox::Bed;
use super::slot::{State, Thread};
use super::worker::{Request, Worker};
use super::{here, signals, switch, workers};
use crate::hooks;
use crate::process::{self, Cause, Exit, Message};
use crate::system;

/// How long a worker looks for work before it sleeps: about as long as waking it would take.
const SPIN: Duration = Duration::from_micros(30);
/// How long it looks before it offers its processor to others, and again: longer than a peer that is awake takes.
const PATIENCE: Duration = Duration::from_micros(2);
/// A processor that is away for longer has been with somebody else than a peer that answers: 50 µs, as near as ticks are known
/// (of 2.5 GHz; between 25 and 100 µs on all processors).
const SLICE: u64 = 125_000;
/// And one that has been away for less with nobody.
const AT_ONCE: u64 = 5_000;

/// Starts `count` workers, each on a core of its own as far as there are so many. They run when this returns: what an OS
/// thread asks of the system as it starts, a sandbox that is closed then need not let through.
pub(crate) fn start(count: usize) -> io::Result<()> {
    let workers = (0..count)
        .map(|index| Worker::new(index as u16))
        .collect::<io::Result<Box<[Worker]>>>()?;
    workers::publish(workers);
    let cores = system::cores();
    let (starting, started) = channel();
    for index in 0..count {
        let core = cores.get(index % cores.len().max(1)).copied();
        let starting = starting.clone();
        std::thread::Builder::new()
            .name(format!("sip-{index}"))
            .spawn(move || {
                // A scheduler that fails has processes that nobody would run any more.
                let _ = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    if let Some(worker) = workers::all().take(index) {
                        worker.main(core, starting);
                    }
                }));
                std::process::abort();
            })?;
    }
    drop(starting);
    // Nobody says anything: each lets go of its end.
    let _ = started.recv();
    Ok(())
}

impl Worker {
    /// Lets go of `starting` when it has asked the system for everything that only a thread that starts asks for.
    fn main(&'static self, core: Option<usize>, starting: Sender<Infallible>) {
        if let Some(core) = core {
            system::pin(core);
            self.processor.set(core as u32 + 1);
        }
        system::leave_restartable_sequences();
        signals::prepare_thread();
        // What crates above make here is the host's: no process has run yet.
        hooks::worker_begins();
        drop(starting);
        here::become_worker(self);
        self.os_thread
            .store(signals::os_thread(), Ordering::Relaxed);
        loop {
            if !self.inbox.is_empty() {
                here::leave();
                self.inbox.drain(self.shared(), |entry| self.answer(entry));
            }
            if self.is_time() {
                here::leave();
                self.ring();
            }
            if let Some(events) = self.events() {
                here::leave();
                (events.handle)(self);
            }
            match self.next() {
                Some(thread) => self.run(thread),
                None => match self.run.pop() {
                    Some(thread) if thread.state.get() == State::Gone => self.release(thread),
                    // A second entry for one that the first has woken.
                    Some(_) => {}
                    None => {
                        here::leave();
                        self.idle();
                    }
                },
            }
        }
    }

    /// Runs a thread, and others, until one needs the scheduler.
    #[inline]
    fn run(&self, thread: &'static Thread) {
        // SAFETY: the thread has been suspended, and was taken from the queue just now.
        unsafe { switch::switch(&self.top, thread.fiber.top()) };
        if let Some((thread, cause)) = self.fate.take() {
            self.over(thread, cause);
        }
    }

    fn answer(&'static self, entry: u32) {
        match Request::from_entry(entry) {
            Some(Request::Unpark(slot)) => {
                if let Some(thread) = self.place(slot) {
                    self.wake(thread);
                }
            }
            Some(Request::Start(place)) => process::begin(self, place),
            Some(Request::End(place)) => process::end_asked(self, place),
            Some(Request::Survey) => hooks::survey(self),
            None => {}
        }
    }

    /// Wakes whom it is time for.
    fn ring(&self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(slot) = self.timers.due(now) {
            if let Some(thread) = self.place(slot) {
                thread.deadline.set(None);
                self.wake(thread);
            }
        }
    }

    /// Looks for work a while, then sleeps until there is some.
    ///
    /// An OS process that waits for another must not keep the processor from whom that one in turn waits for: the three
    /// of a chain may share two processors. So it offers the processor to others from time to time while it looks, and
    /// at once where the peer wants that very one to answer; to look for the answer meanwhile would be in vain. On that way
    /// no clock is read: neither its code nor its page is in any cache.
    fn idle(&self) {
        let among_others = self.events().is_some();
        let mut offers = among_others && self.keeps_what_it_offers();
        if self.neighbour.get() {
            if offers {
                self.let_neighbour_run();
            }
            // Whoever sleeps looks once more by itself.
            if !offers || !self.is_wanted() {
                self.sleep_until_due();
            }
            return;
        }
        let spin = match among_others && !offers {
            true => PATIENCE,
            false => SPIN,
        };
        let begin = Instant::now();
        let (mut now, mut offer) = (begin, begin + PATIENCE);
        loop {
            if offers && now >= offer {
                offers = self.let_neighbour_run();
                now = Instant::now();
                offer = now + PATIENCE;
            }
            if self.is_wanted() {
                return;
            }
            if self.timers.next().is_some_and(|deadline| deadline <= now) {
                return self.ring();
            }
            if now - begin >= spin {
                break;
            }
            for _ in 0..64 {
                if self.is_wanted() {
                    return;
                }
                std::hint::spin_loop();
            }
            now = Instant::now();
        }
        self.sleep_until_due();
    }

    /// Sleeps until there is work, or the time that a thread waits for.
    #[inline]
    fn sleep_until_due(&self) {
        let limit =
            (self.timers.next()).map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match limit {
            Some(Duration::ZERO) => self.ring(),
            limit => self.sleep(limit),
        }
    }

    /// Sleeps until there is work, or for `limit`; or it returns at once.
    #[inline]
    fn sleep(&self, limit: Option<Duration>) {
        let bed = self.events().map_or(Bed::Own, |events| (events.bed)(self));
        if self.inbox.settle(bed) {
            if !self
                .events()
                .is_some_and(|events| (events.sleep)(self, bed, limit))
            {
                let (word, asleep) = self.inbox.word();
                system::futex_wait(word, asleep, limit);
            }
            self.inbox.rise();
            self.ring();
        }
    }

    fn is_wanted(&self) -> bool {
        !self.inbox.is_empty() || self.has_events()
    }

    /// Whether the processor may be offered in this wait: not for a while after a loss.
    fn keeps_what_it_offers(&self) -> bool {
        let (rest, last) = self.stolen.get();
        if rest > 0 {
            self.stolen.set((rest - 1, last));
        }
        rest == 0
    }

    /// Gives the processor away, which costs less than to sleep and be woken, unless others than the peer want it too:
    /// they would take all of their time. After such a loss (false) the worker keeps it, for twice as many waits each time.
    fn let_neighbour_run(&self) -> bool {
        let begin = system::ticks();
        let away = || system::ticks().wrapping_sub(begin);
        system::yield_now();
        // Who gives it away ranks behind others for a while (from Linux 6.18 on), and the peer may have been the last to
        // do so: then this one goes on at once, and the second time the peer is before it.
        if self.neighbour.get() && away() < AT_ONCE && !self.is_wanted() {
            system::yield_now();
        }
        let (_, last) = self.stolen.get();
        let lost = away() > SLICE && self.is_wanted();
        self.stolen.set(if lost {
            let next = (last * 2).clamp(8, 4096);
            (next, next)
        } else {
            (0, last - last / 16)
        });
        !lost
    }

    /// A peer in another OS process, who stays on that processor (from 1), was told something.
    #[inline]
    pub fn told(&self, processor: u32) {
        self.neighbour
            .set(processor != 0 && processor == self.processor.get());
    }

    /// A thread has returned, or its process is to end.
    #[cold]
    fn over(&self, thread: &'static Thread, cause: Option<Cause>) {
        here::leave();
        here::close_all();
        let Some(process) = thread.process.get() else {
            return;
        };
        match cause {
            Some(cause) => {
                process::panic::settle();
                let message = self.message.replace(Message::EMPTY);
                process::end_now(self, process, Exit { cause, message });
            }
            None if process.main.get() == thread.slot.get() + 1 => {
                process::end_now(self, process, Cause::Returned.into());
            }
            None => self.end_thread(process, thread),
        }
    }
}
