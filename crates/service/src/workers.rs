//! Threads for what takes time: signatures, decisions, verification.

use crate::modules::Modules;
use crate::wire::{self, Status};
use mullion_trust::challenge::{Event, Frame, ProtocolError, Session};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A whole frame, with the session of the connection that it came by.
pub(crate) struct Job {
    pub(crate) connection: u64,
    pub(crate) session: Session,
    pub(crate) frame: Frame,
    /// When it was whole, by the server's clock.
    pub(crate) time: Duration,
}

/// What became of it.
pub(crate) struct Done {
    pub(crate) connection: u64,
    pub(crate) session: Session,
    /// What to send; an error ends the connection.
    pub(crate) answer: Result<Frame, ProtocolError>,
}

/// Dropped, it waits for the jobs that are begun.
pub(crate) struct Workers {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts them; `wake` is called when something is done.
    pub(crate) fn start(
        count: usize,
        modules: &Arc<Modules>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<(Self, Receiver<Done>)> {
        let (jobs, queue) = channel();
        let (finished, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for number in 0..count.max(1) {
            let worker = Worker {
                queue: queue.clone(),
                done: finished.clone(),
                modules: modules.clone(),
                wake: wake.clone(),
            };
            let thread = thread::Builder::new().name(format!("loader-{number}"));
            threads.push(thread.spawn(move || worker.run())?);
        }
        let workers = Workers {
            jobs: Some(jobs),
            threads,
        };
        Ok((workers, done))
    }

    pub(crate) fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Fails only if every worker is gone, which they never are.
            let _unreachable = jobs.send(job);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

struct Worker {
    queue: Arc<Mutex<Receiver<Job>>>,
    done: Sender<Done>,
    modules: Arc<Modules>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Worker {
    fn run(&self) {
        loop {
            let next = {
                let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.recv()
            };
            let Ok(job) = next else {
                return;
            };
            // A panic costs this request, not the worker.
            let work = std::panic::AssertUnwindSafe(|| self.work(job));
            let _told_by_the_reply = std::panic::catch_unwind(work);
        }
    }

    fn work(&self, job: Job) {
        let Job {
            connection,
            mut session,
            frame,
            time,
        } = job;
        let answer = match session.receive(frame, time) {
            Ok(Event::Asked { key, request }) => {
                let reply = Reply {
                    connection,
                    session: Some(session),
                    counter: request.counter,
                    done: self.done.clone(),
                    wake: self.wake.clone(),
                };
                self.modules
                    .answer(key, request.operation, request.body, reply);
                return;
            }
            Ok(Event::Send(frame)) => Ok(frame),
            Err(error) => Err(error),
        };
        let _nobody_waits = self.done.send(Done {
            connection,
            session,
            answer,
        });
        (self.wake)();
    }
}

/// Answers one request, from any thread. Dropped without an answer, it says
/// that the loader failed: nobody waits for ever.
pub(crate) struct Reply {
    connection: u64,
    session: Option<Session>,
    counter: u64,
    done: Sender<Done>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Reply {
    pub(crate) fn send(mut self, answer: &wire::Answer) {
        self.give(answer);
    }

    fn give(&mut self, answer: &wire::Answer) {
        let Some(session) = self.session.take() else {
            return;
        };
        let frame = Frame::Answer {
            counter: self.counter,
            status: answer.status as u8,
            body: wire::encode(&answer.object, &answer.bytes),
        };
        // Fails only when the loader has stopped.
        let _nobody_waits = self.done.send(Done {
            connection: self.connection,
            session,
            answer: Ok(frame),
        });
        (self.wake)();
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let text = "the loader failed, or stops";
        self.give(&wire::Answer::not(Status::Refused, text));
    }
}
