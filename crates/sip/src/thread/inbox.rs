//! What other OS threads want of a worker: a list that any thread adds to and the worker takes whole.
//!
//! ```text
//!   sender                                   worker
//!   queued.swap(true); was true? done        head.swap(0): the whole list, newest first; turn it round
//!   link.next = head; head = id (CAS)        for each: queued.swap(false), then act
//!   fence; asleep? wake                      asleep = 1; fence; head still 0? sleep
//! ```
//! Entries are numbers of places that never go away, each in the list at most once, so nothing is allocated
//! and a list that is taken whole has no ABA problem.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

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
    /// 1 while the worker sleeps or is about to.
    pub(crate) asleep: AtomicU32,
}

impl Inbox {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed) == 0
    }

    /// Adds an entry, unless it is in the list already. True if the worker sleeps and is to be woken by the
    /// caller. What the caller wrote before is seen by the worker when it acts on the entry.
    pub(crate) fn push(&self, entry: u32, links: &impl Links) -> bool {
        let Some(link) = links.link(entry) else {
            return false;
        };
        if link.queued.swap(true, Ordering::AcqRel) {
            return false;
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
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) != 0 && self.asleep.swap(0, Ordering::AcqRel) != 0
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

    /// Announces sleep. True if there is nothing to do; the caller then sleeps until `asleep` is 0 and calls
    /// [`Inbox::rise`].
    pub(crate) fn settle(&self) -> bool {
        self.asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.is_empty() || {
            self.rise();
            false
        }
    }

    /// Awake again.
    pub(crate) fn rise(&self) {
        self.asleep.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

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
            let would_sleep = shared.0.settle();
            let woken = sender.join().expect("the sender");
            // Whoever sleeps has been told to wake, or has nothing in the inbox.
            assert!(!would_sleep || woken || shared.0.is_empty());
            assert!(
                !would_sleep || woken,
                "the entry was pushed, so a sleeper must have been woken"
            );
        });
    }
}
