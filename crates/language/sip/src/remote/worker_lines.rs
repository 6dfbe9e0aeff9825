//! What a worker hears: the bells of its bridges.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use super::bell;
use super::bridge::{Bridge, Joint};
use super::link::Link;
use crate::inner::CORE;
use mullion_sip_core::{Bed, Events, FutexWait, SharedWorker, Worker};

/// Channels whose messages a worker looks at one by one; it hears of more by their bells.
const FEW: usize = 8;
/// How long it sleeps at a time if it cannot sleep on bells.
const BLIND: Duration = Duration::from_millis(1);
/// A bell that has rung so often in turn while no message was there is not heard before the worker has slept for
/// [`BLIND`]: a peer that writes it all the time would keep the worker awake, at nobody's cost.
const NOISE: u32 = 1000;

/// A worker's part. `changed` and `joined` are for every OS thread, the rest for the worker's own.
#[derive(Debug, Default)]
pub(super) struct WorkerLines {
    changed: AtomicU32,
    joined: Mutex<Vec<Joined>>,
    seen: Cell<u32>,
    /// Whether there are so few bridges that their lines are looked at.
    looks: Cell<bool>,
    links: RefCell<Vec<Heard>>,
    /// The only link, if there is one alone: the worker sleeps on its bell, and on nothing else. For every OS thread.
    only: Mutex<Option<Arc<Link>>>,
    is_only: Cell<bool>,
    /// Whether the last sleep was ended from within this OS process, which rings the bell too.
    roused: Cell<bool>,
    /// Room for what it sleeps on. Kept: who sleeps and wakes touches little, and little of it has stayed in any cache.
    words: RefCell<Vec<FutexWait>>,
}

// SAFETY: other OS threads touch `changed`, `joined` and `only` alone, which are atomic or locked. The cells are reached
// through the functions of `EVENTS` but `wake`, which the core calls on the worker's own OS thread.
unsafe impl Sync for WorkerLines {}
// SAFETY: the cells are at their first values, and refer to nothing, when the value is made for its worker.
unsafe impl Send for WorkerLines {}

/// A link, what of it was heard last, and the bridges over it.
#[derive(Debug)]
struct Heard {
    link: Arc<Link>,
    rung: Cell<u32>,
    /// How often it has rung in turn for no message, and not from within.
    noise: Cell<u32>,
    /// Whether the bell is not heard.
    deaf: Cell<bool>,
    bridges: Vec<Joined>,
}

/// A bridge, and the way that it goes.
#[derive(Clone, Debug)]
struct Joined {
    bridge: Arc<Bridge>,
    joint: Arc<Joint>,
}

/// The worker of the next bridge. Bridges, and this, are in the host's copy alone.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// One for each worker.
static ALL: OnceLock<Box<[WorkerLines]>> = OnceLock::new();

/// A worker for a new bridge: the calling one, or each in turn.
pub(super) fn choose() -> Option<usize> {
    let all = CORE.workers();
    match CORE.worker() {
        Some(here) => Some(here.index().into()),
        None => NEXT
            .fetch_add(1, Ordering::Relaxed)
            .checked_rem(all.len().min(super::link::BELLS)),
    }
}

/// Channels between OS processes that have an end here: the local channel, as `process::survey`
/// has it, and the number of the memory ([`Memory::numbered`](super::Memory::numbered)). For the host.
pub fn lines() -> Vec<(usize, u64)> {
    let _host = CORE.as_host();
    let bridges = |own: &WorkerLines| {
        let joined = own.joined();
        let known: Vec<_> = joined
            .iter()
            .filter(|one| !one.joint.is_gone())
            .map(|one| (one.bridge.channel, one.joint.number))
            .collect();
        known
    };
    all().iter().flat_map(bridges).collect()
}

/// The memory of a channel between OS processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineMemory {
    /// Its number, as in [`lines`].
    pub number: u64,
    /// Where it is in this OS process.
    pub start: usize,
    /// Its bytes.
    pub bytes: usize,
}

impl LineMemory {
    pub(super) fn of(memory: &super::Memory) -> LineMemory {
        LineMemory {
            number: memory.number(),
            start: memory.at(0).addr().get(),
            bytes: memory.bytes(),
        }
    }
}

/// Memory of channels between OS processes that have an end here. For the host.
pub fn line_memory() -> Vec<LineMemory> {
    let _host = CORE.as_host();
    let bridges = |own: &WorkerLines| {
        let joined = own.joined();
        joined
            .iter()
            .filter(|one| !one.joint.is_gone())
            .map(|one| one.joint.memory)
            .collect::<Vec<_>>()
    };
    all().iter().flat_map(bridges).collect()
}

/// From now on the worker hears the bridge's bell.
pub(super) fn add(worker: usize, bridge: Arc<Bridge>, joint: Arc<Joint>) {
    if let Some(own) = all().get(worker) {
        own.joined().push(Joined { bridge, joint });
    }
    change(worker);
}

/// Has the worker look at all its bridges.
pub(super) fn change(worker: usize) {
    if let Some((worker, own)) = CORE.workers().get(worker).zip(all().get(worker)) {
        own.changed.fetch_add(1, Ordering::SeqCst);
        worker.look_for(&EVENTS);
        worker.rouse();
    }
}

/// Has all workers look at all their bridges.
pub(super) fn change_all() {
    (0..CORE.workers().len()).for_each(change);
}

/// One for each worker; none before workers run.
#[inline]
fn all() -> &'static [WorkerLines] {
    match ALL.get() {
        Some(all) => all,
        None => first(),
    }
}

/// [`all`], before they are known.
#[cold]
fn first() -> &'static [WorkerLines] {
    match ALL.get() {
        Some(all) => all,
        None if CORE.workers().is_empty() => &[],
        None => {
            let _host = CORE.as_host();
            ALL.get_or_init(|| {
                CORE.workers()
                    .iter()
                    .map(|_| WorkerLines::default())
                    .collect()
            })
        }
    }
}

/// What a worker looks for that has bridges.
static EVENTS: Events = Events {
    pending: |worker| of(worker).rang(worker.index()),
    handle: |worker| of(worker).answer(worker),
    bed: |worker| of(worker).bed(),
    sleep: |worker, bed, limit| of(worker).sleep(worker, bed, limit),
    wake: |worker| of(worker).ring_own(worker),
};

#[inline]
fn of(worker: &SharedWorker) -> &'static WorkerLines {
    &all()[usize::from(worker.index())]
}

impl WorkerLines {
    fn joined(&self) -> MutexGuard<'_, Vec<Joined>> {
        self.joined
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether there is anything to do. For the worker alone, as everything that follows.
    #[inline]
    fn rang(&self, worker: u16) -> bool {
        let changed = self.changed.load(Ordering::Acquire);
        if changed != self.seen.get() {
            return true;
        }
        // A worker that waits asks all the time. Where there never was a bridge, it must not write, which to borrow
        // does: its peers on other cores write beside it.
        changed != 0
            && self
                .links
                .borrow()
                .iter()
                .any(|heard| heard.rang(worker) || (self.looks_at(heard) && heard.has_message()))
    }

    /// Whether the lines of a link are looked at.
    #[inline]
    fn looks_at(&self, heard: &Heard) -> bool {
        self.looks.get() || heard.deaf.get()
    }

    /// Does it, if there is anything.
    fn answer(&self, home: &Worker) {
        let worker = home.index();
        let changed = self.changed.load(Ordering::Acquire);
        if changed != self.seen.replace(changed) {
            self.look_again(home);
        }
        if changed == 0 {
            return;
        }
        for heard in self.links.borrow().iter() {
            let rang = heard.rang(worker);
            if rang {
                heard.rung.set(heard.link.heard(worker).rung());
            }
            let has_message = (rang || self.looks_at(heard)) && heard.has_message();
            if rang || has_message {
                heard.note(has_message || self.roused.get());
                let all = heard.bridges.iter();
                let some = all.filter(|one| rang || one.joint.has_message());
                some.for_each(|one| one.bridge.pump());
            }
        }
    }

    /// Sorts the bridges by link, forgets those that have ended, and has all of them look.
    #[cold]
    fn look_again(&self, home: &Worker) {
        let worker = home.index();
        let mut links = Vec::<Heard>::new();
        let mut joined = self.joined();
        joined.retain(|one| !one.joint.is_gone());
        for one in joined.iter() {
            let link = &one.joint.link;
            let same = |heard: &Heard| Arc::ptr_eq(&heard.link, link);
            let place = links.iter().position(same).unwrap_or_else(|| {
                links.push(Heard {
                    rung: Cell::new(link.heard(worker).rung()),
                    noise: Cell::new(0),
                    deaf: Cell::new(false),
                    link: link.clone(),
                    bridges: Vec::new(),
                });
                links.len() - 1
            });
            links[place].bridges.push(one.clone());
        }
        self.looks.set(joined.len() <= FEW);
        drop(joined);
        for heard in &links {
            let bell = heard.link.heard(worker);
            bell.set_looks(self.looks.get());
            bell.set_processor(home.processor());
        }
        for one in links.iter().flat_map(|heard| &heard.bridges) {
            one.bridge.pump();
        }
        let only = match &links[..] {
            [heard] => Some(heard.link.clone()),
            _ => None,
        };
        self.is_only.set(only.is_some());
        let before = std::mem::replace(&mut *self.only(), only);
        drop(before);
        self.links.replace(links);
    }

    fn only(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.only
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the worker is to sleep on.
    fn bed(&self) -> Bed {
        match self.is_only.get() && !self.is_deaf() {
            true => Bed::Bell,
            false => Bed::Own,
        }
    }

    fn is_deaf(&self) -> bool {
        self.links.borrow().iter().any(|heard| heard.deaf.get())
    }

    /// Wakes the worker if it sleeps on its only bell. For every OS thread.
    fn ring_own(&self, worker: &SharedWorker) {
        if let Some(link) = &*self.only() {
            link.ring_own(worker.index());
        }
    }

    /// Sleeps while the worker's own word says so and no bell rings. False if it has no bells: then nothing
    /// was done.
    fn sleep(&self, worker: &Worker, bed: Bed, limit: Option<Duration>) -> bool {
        let links = self.links.borrow();
        let unchanged = self.changed.load(Ordering::SeqCst) == self.seen.get();
        if links.is_empty() && unchanged {
            return false;
        }
        let blind = || {
            let (own, asleep) = worker.sleeping_word();
            let limit = limit.map_or(BLIND, |limit| limit.min(BLIND));
            CORE.futex_wait(own, asleep, Some(limit));
        };
        if unchanged && self.is_deaf() {
            if !links.iter().any(Heard::has_message) {
                blind();
            }
            links.iter().for_each(|heard| heard.deaf.set(false));
        } else if unchanged {
            let index = worker.index();
            let bells = links
                .iter()
                .map(|heard| (heard.link.heard(index), heard.rung.get()));
            let has_message = || links.iter().any(Heard::has_message);
            bell::sleep(bells.clone(), self.looks.get(), has_message, || {
                if bed == Bed::Bell {
                    bells.for_each(|(bell, seen)| {
                        CORE.futex_wait_shared(bell.word(), seen, limit);
                    });
                    return;
                }
                let (own, asleep) = worker.sleeping_word();
                let mut words = self.words.borrow_mut();
                words.clear();
                words.push(FutexWait::private(own, asleep));
                words.extend(bells.map(|(bell, seen)| FutexWait::shared(bell.word(), seen)));
                if !CORE.futex_wait_any(&words, limit) {
                    blind();
                }
            });
        }
        self.roused.set(worker.is_roused());
        true
    }
}

impl Heard {
    #[inline]
    fn rang(&self, worker: u16) -> bool {
        !self.deaf.get() && self.link.heard(worker).rung() != self.rung.get()
    }

    /// It has rung, or there is a message.
    fn note(&self, for_something: bool) {
        let noise = match for_something {
            true => 0,
            false => self.noise.get().saturating_add(1),
        };
        self.noise.set(noise);
        self.deaf.set(noise >= NOISE);
    }

    #[inline]
    fn has_message(&self) -> bool {
        self.bridges.iter().any(|one| one.joint.has_message())
    }
}
