//! Destructors of what belongs to a thread in an extension, when a thread of the host ends. A process of its own:
//! one log for all threads, which is there in their very end too.

mod support;

use mullion::{Caller, Domain, Error, Host, Image, Imports, Limits};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

// As in the extension.
const TELL: u64 = 0;
const FAULT: u64 = 1;
const LOOP: u64 = 2;
const PANIC: u64 = 3;
const ENTER: u64 = 4;
const MORE: u64 = 5;
const EXIT: u64 = 6;

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let _first = tracing::subscriber::set_global_default(Log);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("thread_end.mx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/thread_end.cc");
    support::build(&source, &image, &["-O2"]);
    Host::new().open(&image).expect("it is verified")
});

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn logged(parts: &[&str]) -> bool {
    let lines = LINES.lock().unwrap();
    lines
        .iter()
        .any(|line| parts.iter().all(|part| line.contains(part)))
}

/// The domain itself, for the host function that enters it again.
type Itself = Arc<Mutex<Option<Domain>>>;

/// Marks that a resource which a host function held has been given back.
struct GivenBack(Arc<AtomicBool>);
impl Drop for GivenBack {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Ends {
    domain: Domain,
    told: Receiver<u64>,
    given_back: Arc<AtomicBool>,
    itself: Itself,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.itself.lock().unwrap().take();
    }
}

fn ends(name: &str, limits: Limits, on_told: impl Fn() + Send + Sync + 'static) -> Ends {
    let (sender, told): (Sender<u64>, _) = channel();
    let given_back = Arc::new(AtomicBool::new(false));
    let itself = Itself::default();
    let (held, again) = (given_back.clone(), itself.clone());
    let imports = Imports::new()
        .function("told", move |caller: &Caller<'_>, what: u64| {
            caller.hold(GivenBack(held.clone()));
            on_told();
            let _gone = sender.send(what);
        })
        .function("panics", |_: &Caller<'_>| -> () { panic!("on purpose") })
        .function("enters_again", move |caller: &Caller<'_>| {
            let domain = again.lock().unwrap().clone().expect("it is there");
            let get = domain.function::<fn() -> u64>("get")?;
            assert_eq!(get.call()?, 0);
            // Another thread can do that; its own call is in the way of a restart.
            assert!(matches!(domain.restart(), Err(Error::InUse { .. })));
            assert!(!caller.name().is_empty());
            Ok::<(), Error>(())
        });
    let builder = IMAGE.domain().name(name).imports(imports).limits(limits);
    let domain = builder.load().expect("it is loaded");
    *itself.lock().unwrap() = Some(domain.clone());
    Ends {
        domain,
        told,
        given_back,
        itself,
    }
}

impl Ends {
    fn new(name: &str) -> Self {
        ends(name, Limits::default(), || {})
    }

    fn touch(&self, tag: u64, manner: u64) {
        let touch = self.domain.function::<fn(u64, u64)>("touch").unwrap();
        touch.call(tag, manner).unwrap();
    }

    /// By a thread that ends then. `join` waits for the end of everything in it.
    fn touch_and_end(&self, tag: u64, manner: u64) {
        let domain = self.domain.clone();
        let thread = std::thread::spawn(move || {
            let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
            touch.call(tag, manner).unwrap();
            touch.call(tag, manner).unwrap();
        });
        thread.join().unwrap();
    }

    fn told(&self) -> Vec<u64> {
        self.told.try_iter().collect()
    }

    fn call(&self, name: &str) -> u64 {
        let function = self.domain.function::<fn() -> u64>(name).unwrap();
        function.call().unwrap()
    }
}

#[test]
fn the_destructors_of_a_thread_run_when_it_ends_the_last_made_first() {
    let all = Ends::new("one thread");
    all.touch(7, TELL);
    for tag in 1..4 {
        all.touch_and_end(tag, TELL);
        assert_eq!(all.told(), [tag + 100, tag]);
        assert!(
            all.given_back.load(Ordering::Relaxed),
            "held for the call only"
        );
    }
    // This thread's own are still there, and the domain goes on.
    assert!(!all.domain.has_ended().unwrap());
}

#[test]
fn each_of_many_threads_has_its_own() {
    let all = Ends::new("many threads");
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let domain = all.domain.clone();
            std::thread::spawn(move || {
                let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
                touch.call(1000 * (thread + 1), TELL).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|one| one.join().unwrap());
    let mut told = all.told();
    told.sort_unstable();
    let expected = (1..=8).flat_map(|thread| [1000 * thread, 1000 * thread + 100]);
    assert_eq!(told, expected.collect::<Vec<_>>());
}

#[test]
fn destructors_may_make_further_ones() {
    let all = Ends::new("more");
    all.touch_and_end(5, MORE);
    assert_eq!(all.told(), [105, 106, 5]);
}

#[test]
fn a_thread_that_has_not_called_the_domain_has_nothing_to_do() {
    let all = Ends::new("nobody");
    std::thread::spawn(|| ()).join().unwrap();
    all.domain.restart().unwrap();
    assert!(all.told().is_empty());
}

#[test]
fn values_of_keys_are_destroyed_and_a_key_made_anew_has_none() {
    let all = Ends::new("keys");
    let set = all.domain.function::<fn(u64)>("set").unwrap();
    set.call(3).unwrap();
    let domain = all.domain.clone();
    let thread = std::thread::spawn(move || {
        let set = domain.function::<fn(u64)>("set").unwrap();
        let get = domain.function::<fn() -> u64>("get").unwrap();
        assert_eq!(get.call().unwrap(), 0);
        set.call(5).unwrap();
        assert_eq!(get.call().unwrap(), 5);
    });
    thread.join().unwrap();
    assert_eq!(all.call("sum_of_destroyed"), 5 + 5000);
    // Of both threads: the first one's value, and that of one that waits.
    let (domain, (go, wait), (ready, is_ready)) = (all.domain.clone(), channel(), channel());
    let thread = std::thread::spawn(move || {
        let set = domain.function::<fn(u64)>("set").unwrap();
        let get = domain.function::<fn() -> u64>("get").unwrap();
        set.call(9).unwrap();
        ready.send(()).unwrap();
        wait.recv().unwrap();
        get.call().unwrap()
    });
    is_ready.recv().unwrap();
    let renew = all.domain.function::<fn()>("renew_key").unwrap();
    renew.call().unwrap();
    go.send(()).unwrap();
    assert_eq!(thread.join().unwrap(), 0);
    assert_eq!(all.call("get"), 0);
    // Of the deleted key no destructor runs; of the other one it does.
    assert_eq!(all.call("sum_of_destroyed"), 5005 + 9000);
}

#[test]
fn a_life_that_is_over_is_left_alone() {
    let all = Ends::new("restarted");
    let (domain, (go, wait), (ready, is_ready)) = (all.domain.clone(), channel(), channel());
    let thread = std::thread::spawn(move || {
        let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
        touch.call(1, TELL).unwrap();
        ready.send(()).unwrap();
        wait.recv().unwrap();
    });
    is_ready.recv().unwrap();
    all.domain.restart().unwrap();
    go.send(()).unwrap();
    thread.join().unwrap();
    assert!(all.told().is_empty(), "of the life before");
    all.touch_and_end(2, TELL);
    assert_eq!(all.told(), [102, 2]);
}

#[test]
fn a_domain_that_is_unloaded_is_not_called() {
    let all = Ends::new("unloaded");
    let (domain, (go, wait), (ready, is_ready)) = (all.domain.clone(), channel(), channel());
    let thread = std::thread::spawn(move || {
        let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
        touch.call(1, TELL).unwrap();
        ready.send(()).unwrap();
        wait.recv().unwrap();
    });
    is_ready.recv().unwrap();
    all.domain.unload().unwrap();
    go.send(()).unwrap();
    thread.join().unwrap();
    assert!(all.told().is_empty());
}

#[test]
fn a_fault_ends_the_domain_and_is_logged() {
    let all = Ends::new("faulty");
    all.touch_and_end(1, FAULT);
    assert!(all.told().is_empty());
    assert!(all.domain.has_ended().unwrap());
    assert!(logged(&["ERROR", "faulty"]), "{:?}", LINES.lock().unwrap());
    all.domain.restart().unwrap();
    all.touch_and_end(1, TELL);
    assert_eq!(all.told(), [101, 1]);
}

#[test]
fn a_loop_is_stopped_and_is_logged() {
    let all = Ends::new("endless");
    let begun = Instant::now();
    all.touch_and_end(1, LOOP);
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert!(all.domain.has_ended().unwrap());
    assert!(logged(&["ERROR", "endless", "100"]));
}

#[test]
fn the_domains_own_limit_of_time_holds_if_it_is_stricter() {
    let limits = Limits {
        time: Some(Duration::from_millis(5)),
        ..Limits::default()
    };
    let all = ends("hurried", limits, || {});
    all.touch_and_end(1, LOOP);
    assert!(all.domain.has_ended().unwrap());
    assert!(logged(&["ERROR", "hurried", "5ms"]));
}

#[test]
fn an_exit_ends_the_domain_and_is_logged() {
    let all = Ends::new("leaving");
    all.touch_and_end(1, EXIT);
    assert!(all.domain.has_ended().unwrap());
    assert!(logged(&["WARN", "leaving", "status 3"]));
}

#[test]
fn a_panic_of_a_host_function_stays_in_it_and_is_logged() {
    let all = Ends::new("panicking");
    all.touch_and_end(1, PANIC);
    assert!(!all.domain.has_ended().unwrap());
    assert!(logged(&["WARN", "panicking", "panicked"]));
    all.touch_and_end(2, TELL);
    assert_eq!(all.told(), [102, 2]);
}

#[test]
fn a_destructor_may_call_a_host_function_that_enters_the_domain_again() {
    let all = Ends::new("again");
    all.touch_and_end(1, ENTER);
    assert_eq!(all.told(), [101, 1]);
}

#[test]
fn while_destructors_run_the_domain_cannot_be_restarted_but_unloaded() {
    let (entered, is_in): (Sender<()>, _) = channel();
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let all = ends("busy", Limits::default(), move || {
        entered.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
    });
    let domain = all.domain.clone();
    let thread = std::thread::spawn(move || {
        let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
        touch.call(1, TELL).unwrap();
    });
    is_in.recv().unwrap();
    assert!(matches!(all.domain.restart(), Err(Error::InUse { .. })));
    // The window stays until the call has returned, or been stopped.
    all.domain.unload().unwrap();
    go.send(()).unwrap();
    go.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(all.told().first(), Some(&101));
}

/// Restarts by one thread, ends of others: each destructor runs in the life that it
/// belongs to, or not at all, and nothing breaks.
#[test]
fn ends_and_restarts_at_the_same_time() {
    let all = Ends::new("storm");
    let stop = AtomicBool::new(false);
    let (mut restarts, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        for thread in 1..4 {
            let (all, stop) = (&all.domain, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let domain = all.clone();
                    let one = std::thread::spawn(move || {
                        let touch = domain.function::<fn(u64, u64)>("touch").unwrap();
                        match touch.call(thread, TELL) {
                            Ok(()) | Err(Error::NotOpen { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    });
                    one.join().unwrap();
                }
            });
        }
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            match all.domain.restart() {
                Ok(()) => restarts += 1,
                Err(Error::InUse { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let told = all.told();
    println!(
        "{restarts} restarts, {refused} refused, {} destructors",
        told.len()
    );
    assert!(told.iter().all(|tag| matches!(tag % 100, 1..4)));
    all.touch_and_end(1, TELL);
    assert_eq!(all.told(), [101, 1]);
    assert!(!logged(&["ERROR", "storm"]));
}
