//! Domains kept ready: taken out, used by one, given back, restarted behind.
//!
//! A restart takes as long as there is memory to give back, so a thread of the pool does it. A caller that takes a
//! domain finds one that is as new. A domain of which anything is still held (a [`Function`](crate::Function), a
//! clone, a call that runs) is not handed out again. It is left to its holder, and a new one takes its place.

use crate::domain::Domain;
use crate::error::Error;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a domain that was given back may still be in use before a new one takes its place.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the pool's thread looks at such a domain.
const LOOK: Duration = Duration::from_millis(1);

/// Domains for one use each, bounded in number and memory: as they are, or with what a host has around them.
pub struct Pool<T: Renewable = Domain> {
    inner: Arc<Inner<T>>,
    thread: Option<JoinHandle<()>>,
}

/// What a [`Pool`] keeps.
pub trait Renewable: Send + Sized + 'static {
    /// Why it could not be made.
    type Error: From<Error>;

    /// The domain.
    fn domain(&self) -> &Domain;

    /// Whether anybody else has anything of it: then the pool neither restarts it nor hands it out.
    fn is_shared(&self) -> bool;

    /// Makes it as new. Nobody else has anything of it.
    ///
    /// # Errors
    /// Then it is given up.
    fn renew(&self) -> Result<(), Self::Error>;
}

impl Renewable for Domain {
    type Error = Error;

    fn domain(&self) -> &Domain {
        self
    }

    /// A clone, a function, or a call that runs.
    fn is_shared(&self) -> bool {
        self.has_others()
    }

    fn renew(&self) -> Result<(), Error> {
        self.restart()
    }
}

/// What a pool may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Domains at the same time: ready, taken out and being restarted together; at least 1.
    pub most: usize,
    /// Domains that are made with the pool, so that nobody waits for their constructors; at least 1.
    pub ready: usize,
    /// Bytes that all of them may have together: each counts with the whole of its
    /// [`Limits::memory`](crate::Limits::memory).
    pub memory: u64,
}

/// What a pool has done so far, and has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Domains that are ready.
    pub ready: usize,
    /// Domains that are taken out.
    pub taken: usize,
    /// Domains that were given back and are not ready yet.
    pub returned: usize,
    /// Domains made.
    pub made: u64,
    /// Times that a domain was taken out.
    pub uses: u64,
    /// Of these, those that had to wait.
    pub waits: u64,
    /// Restarts.
    pub restarts: u64,
    /// Domains that came back faulted, exited or cancelled.
    pub ended: u64,
    /// Domains that were given up. They could not be restarted, something of them was still held, or the
    /// pool had been given another way to make them.
    pub replaced: u64,
}

/// A domain that is taken out: it goes back when this is dropped.
pub struct Pooled<T: Renewable = Domain> {
    pool: Arc<Inner<T>>,
    /// Until it is dropped.
    domain: Option<T>,
    generation: u64,
}

type Make<T> = Arc<dyn Fn() -> Result<T, <T as Renewable>::Error> + Send + Sync>;

struct Inner<T: Renewable> {
    limits: PoolLimits,
    state: Mutex<State<T>>,
    /// A domain is ready, or may be made.
    room: Condvar,
    /// A domain was given back, or the pool goes.
    work: Condvar,
}

struct State<T: Renewable> {
    make: Make<T>,
    /// How often `make` was changed.
    generation: u64,
    ready: Vec<T>,
    returned: VecDeque<Returned<T>>,
    /// Domains of the pool, wherever they are, and their bytes.
    count: usize,
    memory: u64,
    is_closed: bool,
    stats: PoolStats,
}

struct Returned<T> {
    domain: T,
    generation: u64,
    since: Instant,
}

impl Default for PoolLimits {
    /// Eight domains, one of them made with the pool, any memory.
    fn default() -> Self {
        Self {
            most: 8,
            ready: 1,
            memory: u64::MAX,
        }
    }
}

impl<T: Renewable> Pool<T> {
    /// A pool of domains that `make` makes: on the thread that needs one, or the pool's.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Exhausted`]: the bounds allow no domain; [`Error::Thread`].
    pub fn new(
        limits: PoolLimits,
        make: impl Fn() -> Result<T, T::Error> + Send + Sync + 'static,
    ) -> Result<Self, T::Error> {
        let inner = Arc::new(Inner {
            limits,
            state: Mutex::new(State {
                make: Arc::new(make),
                generation: 0,
                ready: Vec::new(),
                returned: VecDeque::new(),
                count: 0,
                memory: 0,
                is_closed: false,
                stats: PoolStats::default(),
            }),
            room: Condvar::new(),
            work: Condvar::new(),
        });
        let first: Result<Vec<Pooled<T>>, T::Error> =
            (0..limits.ready.clamp(1, limits.most.max(1)))
                .map(|_| inner.take(Some(Duration::ZERO)))
                .collect();
        for mut pooled in first? {
            let domain = pooled.domain.take();
            let mut state = inner.lock();
            state.stats.taken -= 1;
            state.ready.extend(domain);
        }
        inner.lock().stats.uses = 0;
        let behind = inner.clone();
        let thread = std::thread::Builder::new().name("mullion-pool".to_owned());
        let thread = thread.spawn(move || behind.work()).map_err(Error::Thread)?;
        Ok(Self {
            inner,
            thread: Some(thread),
        })
    }

    /// Takes a domain that is as new, and waits until there is one.
    ///
    /// # Errors
    /// Those of making one.
    pub fn get(&self) -> Result<Pooled<T>, T::Error> {
        self.inner.take(None)
    }

    /// As [`Pool::get`], waiting `at_most` so long; not at all, if that is zero.
    ///
    /// # Errors
    /// As there; [`Error::Exhausted`].
    pub fn get_within(&self, at_most: Duration) -> Result<Pooled<T>, T::Error> {
        self.inner.take(Some(at_most))
    }

    /// From now on domains are made by `make`: of another image, for example. Those that are taken
    /// out stay as they are, and go when they are given back; those that are ready go now. One is made here and now.
    ///
    /// # Errors
    /// Those of `make`: then everything is as it was.
    pub fn upgrade(
        &self,
        make: impl Fn() -> Result<T, T::Error> + Send + Sync + 'static,
    ) -> Result<(), T::Error> {
        let first = make()?;
        let mut state = self.inner.lock();
        state.make = Arc::new(make);
        state.generation += 1;
        let gone = std::mem::take(&mut state.ready);
        for domain in &gone {
            state.forget(domain);
        }
        state.stats.made += 1;
        state.count += 1;
        state.memory += first.domain().most_memory();
        state.ready.push(first);
        drop(state);
        self.inner.room.notify_all();
        drop(gone);
        Ok(())
    }

    /// What it has done.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let state = self.inner.lock();
        PoolStats {
            ready: state.ready.len(),
            returned: state.count - state.ready.len() - state.stats.taken,
            ..state.stats
        }
    }
}

impl<T: Renewable> Drop for Pool<T> {
    /// Domains that are taken out stay until they are given back.
    fn drop(&mut self) {
        self.inner.lock().is_closed = true;
        self.inner.work.notify_all();
        // What goes with a domain may be the last to hold the pool: then this is that thread.
        let thread = self.thread.take();
        let here = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != here) {
            let _ended = thread.join();
        }
    }
}

impl<T: Renewable> Inner<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: however long it takes.
    fn take(self: &Arc<Self>, at_most: Option<Duration>) -> Result<Pooled<T>, T::Error> {
        let begun = Instant::now();
        let mut state = self.lock();
        let mut waited = false;
        loop {
            if let Some(domain) = state.ready.pop() {
                return Ok(self.taken(state, domain, waited));
            }
            if state.has_room(&self.limits) {
                return self.make(state, waited);
            }
            waited = true;
            let left = match at_most {
                None => LOOK,
                Some(at_most) => match at_most.checked_sub(begun.elapsed()) {
                    Some(left) if !left.is_zero() => left,
                    _ => {
                        return Err(self.exhausted());
                    }
                },
            };
            let told = self.room.wait_timeout(state, left.max(LOOK));
            state = told.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn taken(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State<T>>,
        domain: T,
        waited: bool,
    ) -> Pooled<T> {
        state.stats.taken += 1;
        state.stats.uses += 1;
        state.stats.waits += u64::from(waited);
        Pooled {
            pool: self.clone(),
            domain: Some(domain),
            generation: state.generation,
        }
    }

    /// Makes one, outside of the lock, in a place that is kept for it.
    fn make(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State<T>>,
        waited: bool,
    ) -> Result<Pooled<T>, T::Error> {
        let (make, generation) = (state.make.clone(), state.generation);
        state.count += 1;
        drop(state);
        let made = make();
        let mut state = self.lock();
        state.count -= 1;
        let domain = made.inspect_err(|_| self.room.notify_one())?;
        if state.memory + domain.domain().most_memory() > self.limits.memory {
            drop(state);
            return Err(self.exhausted());
        }
        state.count += 1;
        state.memory += domain.domain().most_memory();
        state.stats.made += 1;
        let mut pooled = self.taken(state, domain, waited);
        pooled.generation = generation;
        Ok(pooled)
    }

    fn exhausted(&self) -> T::Error {
        let most = self.limits.most;
        Error::Exhausted { most }.into()
    }

    /// The pool's thread: makes what is given back as new.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                let gone = (
                    std::mem::take(&mut state.ready),
                    state.returned.drain(..).collect::<Vec<_>>(),
                );
                drop(state);
                return drop(gone);
            }
            let now = Instant::now();
            let place = state.returned.iter().position(|returned| {
                let is_void = returned.generation != state.generation;
                is_void || !returned.domain.is_shared() || now - returned.since >= PATIENCE
            });
            match place.and_then(|place| state.returned.remove(place)) {
                Some(returned) => {
                    let is_void = returned.generation != state.generation;
                    drop(state);
                    self.renew(returned.domain, is_void);
                    state = self.lock();
                }
                None if state.returned.is_empty() => {
                    let told = self.work.wait(state);
                    state = told.unwrap_or_else(PoisonError::into_inner);
                }
                None => {
                    let told = self.work.wait_timeout(state, LOOK);
                    state = told.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn renew(&self, domain: T, is_void: bool) {
        let has_ended = domain.domain().has_ended().unwrap_or(true);
        let renewed = !is_void && !domain.is_shared() && domain.renew().is_ok();
        let mut state = self.lock();
        state.stats.ended += u64::from(has_ended);
        if renewed {
            state.stats.restarts += 1;
            state.ready.push(domain);
        } else {
            state.forget(&domain);
            drop(state);
            drop(domain);
        }
        self.room.notify_one();
    }
}

impl<T: Renewable> State<T> {
    /// Whether there may be one more. What its memory is, is known when it is made; those that
    /// there are tell what to expect.
    fn has_room(&self, limits: &PoolLimits) -> bool {
        let each = self.memory.checked_div(self.count as u64).unwrap_or(0);
        self.count < limits.most.max(1) && self.memory.saturating_add(each) <= limits.memory
    }

    fn forget(&mut self, domain: &T) {
        self.count -= 1;
        self.memory -= domain.domain().most_memory();
        self.stats.replaced += 1;
    }
}

impl<T: Renewable> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.domain
            .as_ref()
            .expect("it goes when the guard is dropped")
    }
}

impl<T: Renewable> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(domain) = self.domain.take() else {
            return;
        };
        let mut state = self.pool.lock();
        state.stats.taken -= 1;
        if state.is_closed {
            drop(state);
            return drop(domain);
        }
        state.returned.push_back(Returned {
            domain,
            generation: self.generation,
            since: Instant::now(),
        });
        drop(state);
        self.pool.work.notify_one();
    }
}

impl<T: Renewable> fmt::Debug for Pool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = formatter.debug_struct("Pool");
        all.field("limits", &self.inner.limits)
            .field("stats", &self.stats())
            .finish()
    }
}

impl<T: Renewable> fmt::Debug for Pooled<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pooled({})", self.domain().name())
    }
}
