//! What other OS threads want of a worker: a list that any thread adds to and the worker takes whole.
//!
//! ```text
//!   sender                                   worker
//!   queued.swap(true); was true? done        head.swap(0): the whole list, newest first; turn it round
//!   link.next = head; head = id (CAS)        for each: queued.swap(false), then act
//!   fence; asleep? ROUSED, wake              asleep = HERE; fence; head still 0? sleep
//! ```
//! A worker sleeps on `asleep` itself, which nobody else can write, or on a word that another OS process can write too
//! ([`Bed::Bell`]). Whoever rouses it there changes that word and wakes; a hostile peer may put the old value back just
//! before the worker sleeps on it. Then `asleep` stays ROUSED, and the watch wakes it again.
//!
//! Entries are numbers of places that never go away, each in the list at most once. So nothing is allocated and a list
//! that is taken whole has no ABA problem.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[cfg(loom)]
use crate::fence;
#[cfg(not(loom))]
use crate::order::fence;

/// The part of a place that makes it fit for a list. All zero is in no list.
#[derive(Debug, Default)]
pub(crate) struct Link {
    next: AtomicU32,
    queued: AtomicBool,
}

/// Finds the link of an entry. Entries are never 0.
pub(crate) trait Links {
    fn link(&self, entry: u32) -> Option<&Link>;
}

/// All zero is empty and awake. Its cache line is its own: others write it, the worker writes what is beside it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Inbox {
    head: AtomicU32,
    /// One of the words below: whether the worker sleeps or is about to, and on what.
    asleep: AtomicU32,
}

const AWAKE: u32 = 0;
/// It sleeps on this word, while it is this.
const HERE: u32 = 1;
/// It sleeps on a bell.
const BELL: u32 = 2;
/// Somebody is about to wake it, or has.
const ROUSED: u32 = 3;

/// What a worker sleeps on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bed {
    /// The word of its inbox, and perhaps others.
    Own,
    /// One word alone, in memory that another OS process can write.
    Bell,
}

impl Inbox {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed) == 0
    }

    /// Adds an entry, unless it is in the list already. If the worker sleeps, and on what: then the caller is to wake it.
    /// What the caller wrote before is seen by the worker when it acts on the entry.
    pub(crate) fn push(&self, entry: u32, links: &impl Links) -> Option<Bed> {
        let link = links.link(entry)?;
        if link.queued.swap(true, Ordering::AcqRel) {
            return None;
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link.next.store(head, Ordering::Relaxed);
            let pushed =
                self.head
                    .compare_exchange_weak(head, entry, Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        self.rouse()
    }

    /// If the worker sleeps, and on what: then the caller is to wake it. It sees what the caller wrote before.
    pub(crate) fn rouse(&self) -> Option<Bed> {
        fence();
        let mut asleep = self.asleep.load(Ordering::Relaxed);
        loop {
            let bed = match asleep {
                HERE => Bed::Own,
                BELL => Bed::Bell,
                _ => return None,
            };
            let roused = (self.asleep).compare_exchange(
                asleep,
                ROUSED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match roused {
                Ok(_) => return Some(bed),
                Err(now) => asleep = now,
            }
        }
    }

    /// Takes all entries and acts on each, the oldest first.
    pub(crate) fn drain(&self, links: &impl Links, mut act: impl FnMut(u32)) {
        let mut entry = self.head.swap(0, Ordering::Acquire);
        let mut oldest = 0;
        while let Some(link) = links.link(entry) {
            let next = link.next.load(Ordering::Relaxed);
            link.next.store(oldest, Ordering::Relaxed);
            oldest = entry;
            entry = next;
        }
        while let Some(link) = links.link(oldest) {
            let entry = oldest;
            oldest = link.next.load(Ordering::Relaxed);
            link.queued.swap(false, Ordering::AcqRel);
            act(entry);
        }
    }

    /// Announces sleep. True if there is nothing to do; the caller then sleeps until it is roused and calls
    /// [`Inbox::rise`].
    pub(crate) fn settle(&self, bed: Bed) -> bool {
        let asleep = match bed {
            Bed::Own => HERE,
            Bed::Bell => BELL,
        };
        self.asleep.store(asleep, Ordering::Relaxed);
        fence();
        self.is_empty() || {
            self.rise();
            false
        }
    }

    /// Awake again.
    pub(crate) fn rise(&self) {
        self.asleep.store(AWAKE, Ordering::Relaxed);
    }

    /// What a worker sleeps on that has a bed of its own, and the value of it until it is roused.
    pub(crate) fn word(&self) -> (&AtomicU32, u32) {
        (&self.asleep, HERE)
    }

    /// Whether it sleeps, or is about to.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != AWAKE
    }

    /// Whether it was roused and has not risen.
    pub(crate) fn is_roused(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) == ROUSED
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    #[derive(Default)]
    struct Places([Link; 2]);

    impl Links for Places {
        fn link(&self, entry: u32) -> Option<&Link> {
            self.0.get((entry as usize).checked_sub(1)?)
        }
    }

    fn drained(inbox: &Inbox, places: &Places) -> Vec<u32> {
        let mut found = Vec::new();
        inbox.drain(places, |entry| found.push(entry));
        found
    }

    #[test]
    fn every_entry_arrives_and_is_seen() {
        loom::model(|| {
            let shared = Arc::new((
                Inbox::default(),
                Places(Default::default()),
                [AtomicU32::new(0), AtomicU32::new(0)],
            ));
            let senders: Vec<_> = (0..2u32)
                .map(|number| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.2[number as usize].store(1, Ordering::Relaxed);
                        shared.0.push(number + 1, &shared.1);
                    })
                })
                .collect();
            let mut seen = [0, 0];
            let act = |seen: &mut [u32; 2]| {
                for entry in drained(&shared.0, &shared.1) {
                    let number = entry as usize - 1;
                    assert_eq!(shared.2[number].load(Ordering::Relaxed), 1);
                    seen[number] += 1;
                }
            };
            act(&mut seen);
            for sender in senders {
                sender.join().expect("a sender");
            }
            act(&mut seen);
            assert_eq!(seen, [1, 1]);
        });
    }

    #[test]
    fn an_entry_pushed_twice_is_acted_on_after_the_second() {
        loom::model(|| {
            let shared = Arc::new((
                Inbox::default(),
                Places(Default::default()),
                AtomicU32::new(0),
            ));
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || {
                    for value in 1..=2 {
                        shared.2.store(value, Ordering::Relaxed);
                        shared.0.push(1, &shared.1);
                    }
                })
            };
            let mut last = 0;
            let act = |last: &mut u32| {
                for _ in drained(&shared.0, &shared.1) {
                    *last = shared.2.load(Ordering::Relaxed);
                }
            };
            act(&mut last);
            sender.join().expect("the sender");
            act(&mut last);
            assert_eq!(last, 2);
        });
    }

    #[test]
    fn nobody_sleeps_over_an_entry() {
        loom::model(|| {
            let shared = Arc::new((Inbox::default(), Places(Default::default())));
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || shared.0.push(1, &shared.1))
            };
            let would_sleep = shared.0.settle(Bed::Own);
            let woken = sender.join().expect("the sender") == Some(Bed::Own);
            // Whoever sleeps has been told to wake, or has nothing in the inbox.
            assert!(!would_sleep || woken || shared.0.is_empty());
            assert!(
                !would_sleep || woken,
                "the entry was pushed, so a sleeper must have been woken"
            );
        });
    }

    /// A worker whose bed is a bell, and the lock of Linux's futex: who waits holds it while it compares.
    #[derive(Default)]
    struct Sleeper {
        inbox: Inbox,
        places: Places,
        word: AtomicU32,
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Sleeper {
        fn ring(&self) {
            self.word.fetch_add(1, Ordering::Relaxed);
            let lock = self.lock.lock().expect("whole");
            self.woken.notify_all();
            drop(lock);
        }

        fn push(&self) {
            if self.inbox.push(1, &self.places).is_some() {
                self.ring();
            }
        }

        /// Who is not woken sleeps here for ever, which loom finds.
        fn sleep(&self) {
            let seen = self.word.load(Ordering::Relaxed);
            if self.inbox.settle(Bed::Bell) {
                let lock = self.lock.lock().expect("whole");
                if self.word.load(Ordering::Relaxed) == seen {
                    drop(self.woken.wait(lock));
                }
                self.inbox.rise();
            }
        }
    }

    #[test]
    fn nobody_sleeps_on_a_bell_over_an_entry() {
        loom::model(|| {
            let sleeper = Arc::new(Sleeper::default());
            let sender = {
                let sleeper = sleeper.clone();
                thread::spawn(move || sleeper.push())
            };
            while sleeper.inbox.is_empty() {
                sleeper.sleep();
            }
            sender.join().expect("the sender");
        });
    }

    /// A peer writes the old value into the word whenever it likes. The watch looks after that, as it does again and again.
    #[test]
    fn who_writes_the_bell_keeps_nobody_asleep_beyond_the_next_look_of_the_watch() {
        loom::model(|| {
            let sleeper = Arc::new(Sleeper::default());
            let run = |act: fn(&Sleeper)| {
                let sleeper = sleeper.clone();
                thread::spawn(move || act(&sleeper))
            };
            let sender = run(Sleeper::push);
            let peer = run(|sleeper| sleeper.word.store(0, Ordering::Relaxed));
            let watch = {
                let sleeper = sleeper.clone();
                thread::spawn(move || {
                    sender.join().expect("the sender");
                    peer.join().expect("the peer");
                    if sleeper.inbox.is_roused() {
                        sleeper.ring();
                    }
                })
            };
            sleeper.sleep();
            watch.join().expect("the watch");
            assert!(!sleeper.inbox.is_empty());
        });
    }
}
