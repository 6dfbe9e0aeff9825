//! Threads for what takes time: signatures, decisions, verification.
//!
//! ```text
//!   known       keys that the policy or its credentials name, or that have been given leave before
//!   strangers   small requests of all others: a first attempt, with little work      --- too little ---+
//!   heavy       large requests of strangers, and those that the first attempt did not suffice for   <--+
//! ```
//! A worker takes from the first queue as long as there is something in it, and one worker takes from no other. So
//! those with credentials wait only for others with credentials, and strangers share what is left over. Of the
//! strangers, those with little to ask come first. A newcomer who brings a credential waits for the first attempts of
//! others, which take less than a millisecond each, and for one heavy request. After [`IN_A_ROW`] first attempts one
//! heavy request has its turn. Each connection has one request in the queues at most.

use mullion_modules::{Answered, ClientExchange, Heard, Heavy, Modules};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// First attempts of strangers in a row while a heavy request waits.
const IN_A_ROW: usize = 64;

/// What a worker does.
enum Work {
    /// The whole of a request, or its first attempt.
    Job(Job),
    Heavy(Heavy),
}

/// A whole frame, with the exchange of the connection that it came by.
pub(crate) struct Job {
    pub(crate) connection: u64,
    pub(crate) exchange: ClientExchange,
    pub(crate) frame: Vec<u8>,
    /// When it was whole, by the server's clock.
    pub(crate) time: Duration,
}

/// What became of it.
pub(crate) struct Done {
    pub(crate) connection: u64,
    /// What to send; an error ends the connection.
    pub(crate) answered: Answered,
}

/// Whose a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Of somebody with credentials.
    Known,
    Stranger,
    /// Of a stranger, and takes long.
    Heavy,
}

/// What waits for workers. Pure, but for what it holds.
pub(crate) struct Queues<T> {
    known: VecDeque<T>,
    strangers: VecDeque<T>,
    heavy: VecDeque<T>,
    /// How many of `strangers` were taken since one of `heavy`.
    in_a_row: usize,
    /// Workers that have a stranger's.
    at_strangers: usize,
    /// Of how many at most.
    most_at_strangers: usize,
}

impl<T> Queues<T> {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Queues {
            known: VecDeque::new(),
            strangers: VecDeque::new(),
            heavy: VecDeque::new(),
            in_a_row: 0,
            at_strangers: 0,
            most_at_strangers: workers.saturating_sub(1).max(1),
        }
    }

    pub(crate) fn add(&mut self, standing: Standing, one: T) {
        match standing {
            Standing::Known => self.known.push_back(one),
            Standing::Stranger => self.strangers.push_back(one),
            Standing::Heavy => self.heavy.push_back(one),
        }
    }

    /// What a worker does next; it says so to [`Queues::done`] afterwards.
    pub(crate) fn take(&mut self) -> Option<(Standing, T)> {
        if let Some(one) = self.known.pop_front() {
            return Some((Standing::Known, one));
        }
        if self.at_strangers == self.most_at_strangers {
            return None;
        }
        let taken = self.take_a_strangers()?;
        self.at_strangers += 1;
        Some(taken)
    }

    fn take_a_strangers(&mut self) -> Option<(Standing, T)> {
        let heavy_is_due = self.in_a_row >= IN_A_ROW && !self.heavy.is_empty();
        if !heavy_is_due && let Some(one) = self.strangers.pop_front() {
            self.in_a_row += 1;
            return Some((Standing::Stranger, one));
        }
        self.in_a_row = 0;
        let one = self.heavy.pop_front()?;
        Some((Standing::Heavy, one))
    }

    pub(crate) fn done(&mut self, standing: Standing) {
        if standing != Standing::Known {
            self.at_strangers -= 1;
        }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.strangers.is_empty() && self.heavy.is_empty()
    }
}

struct Shared {
    queues: Mutex<(Queues<Work>, bool)>,
    /// Something was added, or done, or there will be nothing more.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, (Queues<Work>, bool)> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job; `None`: there will be no more.
    fn take(&self) -> Option<(Standing, Work)> {
        let mut queues = self.lock();
        loop {
            let (waiting, ends) = &mut *queues;
            if let Some(job) = waiting.take() {
                return Some(job);
            }
            if *ends && waiting.is_empty() {
                return None;
            }
            queues = self
                .changed
                .wait(queues)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Dropped, it waits for the jobs that are begun.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts them; `wake` is called when something is done.
    pub(crate) fn start(
        count: usize,
        modules: &Arc<Modules>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<(Self, Receiver<Done>)> {
        let count = count.max(1);
        let (finished, done) = channel();
        let mut workers = Workers {
            shared: Arc::new(Shared {
                queues: Mutex::new((Queues::new(count), false)),
                changed: Condvar::new(),
            }),
            threads: Vec::new(),
        };
        for number in 0..count {
            let worker = Worker {
                shared: workers.shared.clone(),
                done: finished.clone(),
                modules: modules.clone(),
                wake: wake.clone(),
            };
            let thread = thread::Builder::new().name(format!("loader-{number}"));
            let thread = thread.spawn(move || worker.run())?;
            workers.threads.push(thread);
        }
        Ok((workers, done))
    }

    pub(crate) fn give(&self, standing: Standing, job: Job) {
        self.shared.lock().0.add(standing, Work::Job(job));
        // Each of them, since not each may take it.
        self.shared.changed.notify_all();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().1 = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    done: Sender<Done>,
    modules: Arc<Modules>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Worker {
    fn run(&self) {
        while let Some((standing, work)) = self.shared.take() {
            // A panic costs this request, not the worker; the reply tells the client.
            let work = std::panic::AssertUnwindSafe(|| self.work(standing, work));
            let heavy = std::panic::catch_unwind(work).ok().flatten();
            let mut queues = self.shared.lock();
            queues.0.done(standing);
            if let Some(heavy) = heavy {
                queues.0.add(Standing::Heavy, Work::Heavy(heavy));
            }
            drop(queues);
            self.shared.changed.notify_all();
        }
    }

    /// Does it; what is left is heavy.
    fn work(&self, standing: Standing, work: Work) -> Option<Heavy> {
        let heavy = match work {
            Work::Job(job) => self.request(job)?,
            Work::Heavy(heavy) => heavy,
        };
        if standing == Standing::Stranger {
            return Some(heavy);
        }
        self.modules.load(heavy);
        None
    }

    fn request(&self, job: Job) -> Option<Heavy> {
        let Job {
            connection,
            exchange,
            frame,
            time,
        } = job;
        let (done, wake) = (self.done.clone(), self.wake.clone());
        let back = move |answered| {
            // Fails only when the loader has stopped.
            let _nobody_waits = done.send(Done {
                connection,
                answered,
            });
            wake();
        };
        let answered = match exchange.receive(frame, time, back.clone()) {
            Ok(Heard::Asked(asked)) => return self.modules.answer(asked),
            Ok(Heard::Greeting(exchange, sealed)) => Ok((exchange, sealed)),
            Err(error) => Err(error),
        };
        back(answered);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_credentials_waits_for_no_stranger() {
        let mut queues = Queues::new(2);
        for stranger in 0..100 {
            queues.add(Standing::Stranger, stranger);
        }
        assert_eq!(queues.take(), Some((Standing::Stranger, 0)));
        assert_eq!(
            queues.take(),
            None,
            "the other worker waits for somebody with credentials"
        );
        queues.add(Standing::Known, 1000);
        queues.add(Standing::Known, 1001);
        assert_eq!(queues.take(), Some((Standing::Known, 1000)));
        // The stranger's worker is done: first comes who has credentials.
        queues.done(Standing::Stranger);
        assert_eq!(queues.take(), Some((Standing::Known, 1001)));
        queues.done(Standing::Known);
        assert_eq!(queues.take(), Some((Standing::Stranger, 1)));
        assert_eq!(queues.take(), None);
    }

    #[test]
    fn strangers_have_their_turns_and_a_single_worker_serves_both() {
        let mut queues = Queues::new(1);
        queues.add(Standing::Stranger, 1);
        queues.add(Standing::Stranger, 2);
        queues.add(Standing::Known, 3);
        let mut order = Vec::new();
        while let Some((standing, one)) = queues.take() {
            order.push(one);
            queues.done(standing);
        }
        assert_eq!(order, [3, 1, 2]);
    }

    #[test]
    fn who_asks_little_waits_for_one_heavy_request() {
        let mut queues = Queues::new(2);
        for heavy in 0..100 {
            queues.add(Standing::Heavy, heavy);
        }
        assert_eq!(queues.take(), Some((Standing::Heavy, 0)));
        queues.add(Standing::Stranger, 1000);
        queues.done(Standing::Heavy);
        assert_eq!(queues.take(), Some((Standing::Stranger, 1000)));
        queues.done(Standing::Stranger);
        assert_eq!(queues.take(), Some((Standing::Heavy, 1)));
    }

    #[test]
    fn heavy_requests_have_their_turn_among_small_ones() {
        let mut queues = Queues::new(1);
        queues.add(Standing::Heavy, 9999);
        for stranger in 0..2 * IN_A_ROW {
            queues.add(Standing::Stranger, stranger);
        }
        let order: Vec<_> = std::iter::from_fn(|| {
            let (standing, one) = queues.take()?;
            queues.done(standing);
            Some(one)
        })
        .collect();
        assert_eq!(order[IN_A_ROW], 9999);
        assert_eq!(order.len(), 2 * IN_A_ROW + 1);
        assert!(queues.is_empty());
    }

    #[test]
    fn those_with_credentials_may_have_all_workers() {
        let mut queues = Queues::new(3);
        for number in 0..3 {
            queues.add(Standing::Known, number);
        }
        queues.add(Standing::Stranger, 9);
        let taken: Vec<_> = (0..3).filter_map(|_| queues.take()).collect();
        assert!(
            taken
                .iter()
                .all(|(standing, _)| *standing == Standing::Known)
        );
    }
}
