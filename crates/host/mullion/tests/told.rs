//! A subscriber that uses the domain that an event is about: nothing waits for itself, and every refusal has a name.
//! A process of its own, since which places log is decided at their first use.

#[path = "host/everything.rs"]
mod everything;
mod support;

use everything::{IMAGE, imports};
use mullion::{Domain, DomainMemory, Error, Host, Ptr};
use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tracing::{Event, Metadata, Subscriber, span};

/// What the subscriber does to the domain at each event, beside calling it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Then {
    Nothing,
    Restart,
    Unload,
    Load,
}

#[derive(Default)]
struct Told {
    domain: Mutex<Option<Domain>>,
    then: Mutex<Option<Then>>,
    /// Targets of events, and how often a call from within an event was answered.
    events: Mutex<Vec<String>>,
    answers: Mutex<u32>,
}

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

impl Told {
    fn uses(&self, domain: &Domain) {
        let refused = |error: &Error| {
            let known = matches!(
                error,
                Error::Ended { .. }
                    | Error::NotOpen { .. }
                    | Error::InUse { .. }
                    | Error::Unloaded { .. }
            );
            assert!(known, "{error:?}");
        };
        let length = domain.function::<fn(Ptr<u8>) -> u64>("length");
        match (domain.string_in("four"), length) {
            (Ok(text), Ok(length)) => match length.call(text.ptr()) {
                Ok(four) => {
                    assert_eq!(four, 4);
                    *self.answers.lock().unwrap() += 1;
                }
                Err(error) => refused(&error),
            },
            (Err(error), _) | (_, Err(error)) => refused(&error),
        }
        let then = *self.then.lock().unwrap();
        let done = match then {
            Some(Then::Restart) => domain.restart(),
            Some(Then::Unload) => domain.unload(),
            Some(Then::Load) => domain.image().domain().imports(imports()).load().map(drop),
            _ => Ok(()),
        };
        if let Err(error) = done {
            refused(&error);
        }
        let _metrics = domain.metrics();
        let _known = domain.has_ended();
    }
}

/// A `Subscriber` whose state others see.
struct Shared(Arc<Told>);

impl Subscriber for Shared {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        if WITHIN.replace(true) {
            return;
        }
        let target = event.metadata().target().to_owned();
        self.0.events.lock().unwrap().push(target);
        let domain = self.0.domain.lock().unwrap().clone();
        if let Some(domain) = domain {
            self.0.uses(&domain);
        }
        WITHIN.set(false);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn host_that_is_told(then: Then) {
    let told = Arc::new(Told::default());
    *told.then.lock().unwrap() = Some(then);
    let subscriber = Shared(told.clone());
    tracing::subscriber::with_default(subscriber, || {
        let host = Host::new();
        let image = host
            .image("told", IMAGE.file().bytes().clone())
            .expect("verified");
        let load = || image.domain().imports(imports()).load().expect("room");
        let mut domain = load();
        for _ in 0..10 {
            *told.domain.lock().unwrap() = Some(domain.clone());
            // Whatever the subscriber has done meanwhile, each of these ends, with an answer or a named error.
            if let Ok(text) = domain.string_in("a line\nand another\n") {
                let speak = domain.function::<fn(Ptr<u8>) -> i32>("speak");
                let _said = speak.and_then(|speak| speak.call(text.ptr()));
            }
            let fault = domain.function::<fn()>("fault");
            let _fault = fault.and_then(|fault| fault.call());
            let _restarted = domain.restart();
            *told.domain.lock().unwrap() = None;
            if domain.memory_in_use().is_err() || domain.restart().is_err() {
                domain = load();
            }
        }
    });
    let events = told.events.lock().unwrap();
    for target in ["mullion::output", "mullion::fault", "mullion::call"] {
        let seen = events.iter().any(|event| event == target);
        assert!(
            seen || then == Then::Unload,
            "{then:?}: no {target} in {events:?}"
        );
    }
    assert!(*told.answers.lock().unwrap() > 0, "{then:?}");
}

#[test]
fn a_subscriber_may_use_the_domain_that_an_event_is_about() {
    for then in [Then::Nothing, Then::Restart, Then::Unload, Then::Load] {
        let (done, ended) = channel();
        let host = thread::spawn(move || {
            host_that_is_told(then);
            let _heard = done.send(());
        });
        let in_time = ended.recv_timeout(Duration::from_secs(120));
        if in_time == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            panic!("{then:?}: it waits for itself");
        }
        host.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}
