//! Two OS threads play two OS processes that wake each other: also for ThreadSanitizer. (Miri has no `futex_waitv`.)

use std::sync::atomic::AtomicU32;
use std::thread;

use super::super::bell;
use super::*;
use mullion_sip_core::FutexWait;

use crate::inner::CORE;

const MESSAGES: u32 = 20_000;

/// Counts messages, and sleeps where there is none.
fn hear(link: &Link, messages: &AtomicU32, looks: bool) {
    let never = AtomicU32::new(0);
    let bell = link.heard(0);
    bell.set_looks(looks);
    let mut heard = 0;
    while heard < MESSAGES {
        let seen = bell.rung();
        let now = messages.load(Ordering::Acquire);
        if now == heard {
            let has_message = || looks && messages.load(Ordering::Acquire) != now;
            let bells = std::iter::once((bell, seen));
            bell::sleep(bells, looks, has_message, || {
                let words = [
                    FutexWait::private(&never, 0),
                    FutexWait::shared(bell.word(), seen),
                ];
                assert!(CORE.futex_wait_any(&words, None));
            });
        }
        heard = now;
    }
}

#[test]
fn nobody_sleeps_over_a_message() {
    for looks in [true, false] {
        let [here, there] = Memory::both_ends(LINK_BYTES);
        let hearer = Link::new(here, 0, "sender", None).expect("memory");
        let sender = Link::new(there, 1, "hearer", None).expect("memory");
        let messages = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| hear(&hearer, &messages, looks));
            for _ in 0..2 {
                scope.spawn(|| {
                    for count in 0..MESSAGES / 2 {
                        messages.fetch_add(1, Ordering::Release);
                        sender.tell(0);
                        if count % 7 == 0 {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}
