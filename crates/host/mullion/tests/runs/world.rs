//! The real thing beside the model: each step is done with both, and compared.

use crate::IMAGE;
use crate::model::{self, CELLS, Domain as Expected, INSTEAD, Model, Outcome};
use crate::step::{DOMAINS, PAGES, Step, THREADS};
use mullion::{
    Buffer, CallLimits, Callee, Caller, Canceller, Cause, Domain, DomainMemory, Error, Host,
    Imports, Permission, Ptr, Shared,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The domains that there are, for host functions.
type Registry = Arc<Mutex<Vec<Option<Domain>>>>;
type Job = Box<dyn FnOnce() -> Outcome + Send>;

/// A thread that calls domains for as long as the run wants.
struct Worker {
    number: u64,
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new(number: u64) -> Self {
        let (jobs, taken) = channel::<Job>();
        let (tell, outcomes) = channel();
        let thread = std::thread::spawn(move || {
            for job in taken {
                let _told = tell.send(job());
            }
        });
        Self {
            number,
            jobs,
            outcomes,
            thread,
        }
    }

    fn end(self) -> Result<(), String> {
        drop(self.jobs);
        self.thread
            .join()
            .map_err(|_| "a thread panicked".to_owned())
    }
}

/// Memory that the host has taken in a domain: its load and life, and what is there.
struct Taken {
    buffer: Buffer<u64>,
    on: usize,
    load: u64,
    life: u64,
    value: u64,
}

pub(crate) struct World {
    model: Model,
    registry: Registry,
    shared: Shared,
    workers: [Option<Worker>; THREADS],
    threads: u64,
    taken: Vec<Taken>,
}

impl Drop for World {
    /// Host functions hold the registry, and the registry the domains: nothing would go by itself.
    fn drop(&mut self) {
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            let _ended = worker.end();
        }
        if let Ok(mut registry) = self.registry.lock() {
            let gone = std::mem::take(&mut *registry);
            drop(registry);
            drop(gone);
        }
    }
}

const PERMISSIONS: [Permission; 3] = [Permission::None, Permission::Read, Permission::ReadWrite];

impl World {
    pub(crate) fn new() -> Self {
        Self {
            model: Model::default(),
            registry: Arc::new(Mutex::new(vec![None; DOMAINS])),
            shared: Host::new()
                .share("runs", PAGES as u64 * Shared::PAGE)
                .expect("memory"),
            workers: Default::default(),
            threads: 0,
            taken: Vec::new(),
        }
    }

    fn domain(&self, on: usize) -> Option<Domain> {
        self.registry.lock().expect("no panic inside")[on].clone()
    }

    /// Does a step with both; what does not agree.
    pub(crate) fn take(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Load { on } => self.load(on),
            Step::Unload { on } => self.unload(on),
            Step::Restart { on, when_idle } => self.restart(on, when_idle),
            Step::Store {
                by,
                on,
                place,
                value,
            } => {
                let expected = self.model.call(on, |domain| {
                    let cell = &mut domain.cells[place as usize % CELLS];
                    Outcome::Value(std::mem::replace(cell, value))
                });
                self.call(by, on, expected, move |domain| {
                    domain
                        .function::<fn(u64, u64) -> u64>("store")?
                        .call(place, value)
                })
            }
            Step::Bump { by, on, value } => {
                let expected = self.model.bump(on, value);
                self.call(by, on, expected, move |domain| bump(domain, value))
            }
            Step::Turn { by, on } => {
                let thread = self.worker(by).number;
                let expected = self.model.call(on, |domain| {
                    let turns = domain.turns.entry(thread).or_insert(0);
                    *turns += 1;
                    Outcome::Value(*turns)
                });
                self.call(by, on, expected, |domain| {
                    domain.function::<fn() -> u64>("turn")?.call()
                })
            }
            Step::Block {
                by,
                on,
                place,
                size,
                byte,
            } => {
                let expected = self.model.call(on, |domain| {
                    let block = &mut domain.blocks[place as usize % 8];
                    Outcome::Value(std::mem::replace(block, size * byte))
                });
                self.call(by, on, expected, move |domain| {
                    let block = domain.function::<fn(u64, u64, u64) -> u64>("block")?;
                    block.call(place, size, byte)
                })
            }
            Step::Gate { by, on, how, value } => {
                let expected = self.model.gate(on, how, value);
                self.call(by, on, expected, move |domain| {
                    domain
                        .function::<fn(u64, u64) -> u64>("gate")?
                        .call(how, value)
                })
            }
            Step::Gates {
                by,
                on,
                count,
                limit,
            } => {
                let expected = self.model.call(on, |_| match count > limit && limit > 0 {
                    true => Outcome::Fault(model::GATES),
                    false => Outcome::Value((0..count).map(|value| value * 3 + 1).sum()),
                });
                self.call(by, on, expected, move |domain| {
                    let limits = CallLimits {
                        gate_calls: (limit > 0).then_some(limit),
                        ..CallLimits::default()
                    };
                    let gates = domain.function::<fn(u64) -> u64>("gates")?;
                    gates.limited(limits).call(count)
                })
            }
            Step::Link { on, to, or } => self.link(on, to, or),
            Step::Over { by, on, value } => {
                let expected = self.model.over(on, value);
                self.call(by, on, expected, move |domain| {
                    domain.function::<fn(u64) -> u64>("over")?.call(value)
                })
            }
            Step::Grant {
                on,
                page,
                permission,
            } => self.grant(on, page, permission),
            Step::Get { by, on, page } => {
                let found = self.model.shared[page];
                let expected = self.model.call(on, |domain| match domain.pages[page] {
                    0 => Outcome::Fault(model::ACCESS),
                    _ => Outcome::Value(found),
                });
                let shared = self.shared.clone();
                self.call(by, on, expected, move |domain| {
                    let place = shared.ptr::<u64>(domain, page as u64 * Shared::PAGE)?;
                    domain.function::<fn(Ptr<u64>) -> u64>("get")?.call(place)
                })
            }
            Step::Put {
                by,
                on,
                page,
                value,
            } => {
                let shared = &mut self.model.shared;
                let expected = self.model.domains[on].as_mut();
                let expected = match expected {
                    Some(domain) if !domain.has_ended && domain.pages[page] == 2 => {
                        shared[page] = value;
                        Outcome::Value(0)
                    }
                    _ => self.model.call(on, |_| Outcome::Fault(model::ACCESS)),
                };
                let shared = self.shared.clone();
                self.call(by, on, expected, move |domain| {
                    let place = shared.ptr::<u64>(domain, page as u64 * Shared::PAGE)?;
                    let put = domain.function::<fn(Ptr<u64>, u64)>("put")?;
                    put.call(place, value).map(|()| 0)
                })
            }
            Step::Wrong { by, on, how } => {
                let expected = self.model.wrong(on, how);
                self.call(by, on, expected, move |domain| {
                    domain.function::<fn(u64) -> u64>("wrong")?.call(how)
                })
            }
            Step::TimeLimit { by, on, processor } => {
                let kind = if processor {
                    model::PROCESSOR
                } else {
                    model::TIME
                };
                let expected = self.model.call(on, |_| Outcome::Fault(kind));
                self.call(by, on, expected, move |domain| {
                    let time = Some(Duration::from_millis(1));
                    let limits = CallLimits {
                        time: time.filter(|_| !processor),
                        processor_time: time.filter(|_| processor),
                        ..CallLimits::default()
                    };
                    let forever = domain.function::<fn()>("forever")?;
                    forever.limited(limits).call().map(|()| 0)
                })
            }
            Step::Cancel { by, on } => self.cancel(by, on),
            Step::Start { on, value, cancel } => self.start(on, value, cancel),
            Step::CopyIn { on, value } => self.copy_in(on, value),
            Step::ReadBack { number } => self.read_back(number),
            Step::EndThread { by } => match self.workers[by].take() {
                Some(worker) => worker.end(),
                None => Ok(()),
            },
            Step::Look => self.look(),
        }
    }

    fn load(&mut self, on: usize) -> Result<(), String> {
        if self.model.domains[on].is_some() {
            return Ok(());
        }
        let registry = self.registry.clone();
        let gate = move |caller: &Caller<'_>, how: u64, value: u64| {
            host_gate(&registry, on, caller, how, value)
        };
        let imports = Imports::new()
            .function("host_gate", gate)
            .link_later("other");
        let builder = IMAGE.domain().name(&format!("d{on}")).imports(imports);
        let loaded = builder.load().map_err(|error| error.to_string())?;
        self.registry.lock().expect("no panic inside")[on] = Some(loaded);
        self.model.load(on);
        Ok(())
    }

    fn unload(&mut self, on: usize) -> Result<(), String> {
        let domain = self.registry.lock().expect("no panic inside")[on].take();
        let there = self.model.domains[on].take();
        match (domain, there) {
            (Some(domain), Some(_)) => domain.unload().map_err(|error| error.to_string()),
            (None, None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn restart(&mut self, on: usize, when_idle: bool) -> Result<(), String> {
        let Some(domain) = self.domain(on) else {
            return Ok(());
        };
        let restarted = match when_idle {
            true => domain.restart_when_idle(Duration::from_secs(60)),
            false => domain.restart(),
        };
        self.model.restart(on);
        restarted.map_err(|error| error.to_string())?;
        self.look_at(on)
    }

    fn worker(&mut self, by: usize) -> &Worker {
        self.workers[by].get_or_insert_with(|| {
            self.threads += 1;
            Worker::new(self.threads)
        })
    }

    /// Makes a call on a thread; what it comes to must be what the model says.
    fn call(
        &mut self,
        by: usize,
        on: usize,
        expected: Outcome,
        call: impl FnOnce(&Domain) -> Result<u64, Error> + Send + 'static,
    ) -> Result<(), String> {
        let domain = self.domain(on);
        let job: Job = Box::new(move || outcome_of(domain, call));
        let worker = self.worker(by);
        worker.jobs.send(job).map_err(|error| error.to_string())?;
        let found = worker.outcomes.recv().map_err(|error| error.to_string())?;
        compare(expected, found)
    }

    fn link(&mut self, on: usize, to: usize, or: bool) -> Result<(), String> {
        let (Some(domain), Some(other)) = (self.domain(on), self.domain(to)) else {
            return Ok(());
        };
        let load = self.model.domains[to].as_ref().map_or(0, |to| to.load);
        let Some(expected) = &mut self.model.domains[on] else {
            return Err("the model has no such domain".to_owned());
        };
        let is_linked = expected.link.is_some();
        // Nobody is linked to itself.
        if !is_linked && on != to {
            expected.link = Some((load, or));
        }
        let linked = other
            .function::<fn(u64) -> u64>("linked")
            .map_err(|error| error.to_string())?;
        let callee: Callee = match or {
            true => linked.or(INSTEAD),
            false => (&linked).into(),
        };
        match domain.link(None, "other", callee) {
            Ok(()) if !is_linked && on != to => Ok(()),
            Err(Error::Runtime(mullion_runtime::Error::Record(_))) if on == to => Ok(()),
            Err(Error::Linked { .. }) if is_linked => Ok(()),
            other => Err(format!("linked before: {is_linked}; {other:?}")),
        }
    }

    fn grant(&mut self, on: usize, page: usize, permission: usize) -> Result<(), String> {
        let Some(domain) = self.domain(on) else {
            return Ok(());
        };
        let bytes = page as u64 * Shared::PAGE..(page as u64 + 1) * Shared::PAGE;
        let granted = self
            .shared
            .grant(None, &domain, bytes, PERMISSIONS[permission]);
        if let Some(domain) = &mut self.model.domains[on] {
            domain.pages[page] = permission;
        }
        granted.map_err(|error| error.to_string())
    }

    /// Cancels a call that would never end, soon after it has begun, or before.
    fn cancel(&mut self, by: usize, on: usize) -> Result<(), String> {
        let Some(domain) = self.domain(on) else {
            return Ok(());
        };
        let canceller = Canceller::new();
        let own = canceller.clone();
        let worker = self.worker(by);
        let job: Job = Box::new(move || {
            outcome_of(Some(domain), |domain| {
                let forever = domain.function::<fn()>("forever")?;
                forever.cancellable(&own).call().map(|()| 0)
            })
        });
        worker.jobs.send(job).map_err(|error| error.to_string())?;
        std::thread::sleep(Duration::from_micros(200));
        canceller.cancel();
        let found = worker.outcomes.recv().map_err(|error| error.to_string())?;
        self.cancelled(on, found)
    }

    /// A call that was cancelled was made, and has ended its domain, or was not.
    fn cancelled(&mut self, on: usize, found: Outcome) -> Result<(), String> {
        let ended = self
            .domain(on)
            .is_none_or(|domain| domain.has_ended().unwrap_or(true));
        let expected = self.model.call(on, |_| Outcome::Cancelled);
        if let Some(domain) = &mut self.model.domains[on] {
            domain.has_ended |= ended && found == Outcome::Cancelled;
        }
        match expected {
            // Whether it was cancelled before is looked at first.
            Outcome::Ended if found == Outcome::Cancelled => Ok(()),
            _ => compare(expected, found),
        }
    }

    /// A call on a thread of its own: awaited, or given up.
    fn start(&mut self, on: usize, value: u64, cancel: bool) -> Result<(), String> {
        let Some(domain) = self.domain(on) else {
            return Ok(());
        };
        if cancel {
            let forever = domain
                .function::<fn()>("forever")
                .map_err(|error| error.to_string())?;
            let call = forever.start().map_err(|error| error.to_string())?;
            call.cancel();
            let found = outcome(call.wait().map(|()| 0));
            return self.cancelled(on, found);
        }
        let expected = self.model.bump(on, value);
        let found = outcome_of(Some(domain), |domain| {
            domain
                .function::<fn(u64) -> u64>("bump")?
                .start(value)?
                .wait()
        });
        compare(expected, found)
    }

    fn copy_in(&mut self, on: usize, value: u64) -> Result<(), String> {
        let (Some(domain), Some(expected)) = (self.domain(on), &self.model.domains[on]) else {
            return Ok(());
        };
        if self.taken.len() == 20 {
            // Given back, stale or not.
            self.taken.remove(value as usize % 20);
        }
        let buffer = domain.copy_in(&vec![value; 1000]);
        self.taken.push(Taken {
            buffer: buffer.map_err(|error| error.to_string())?,
            on,
            load: expected.load,
            life: expected.life,
            value,
        });
        Ok(())
    }

    fn read_back(&mut self, number: usize) -> Result<(), String> {
        let Some(taken) = self.taken.get(number % self.taken.len().max(1)) else {
            return Ok(());
        };
        let (Some(domain), Some(expected)) = (self.domain(taken.on), &self.model.domains[taken.on])
        else {
            return Ok(());
        };
        let read = taken.buffer.to_vec(&domain);
        let agrees = match &read {
            Ok(values) => {
                (taken.load, taken.life) == (expected.load, expected.life)
                    && *values == vec![taken.value; 1000]
            }
            Err(Error::Stale { .. }) => taken.load == expected.load && taken.life != expected.life,
            Err(Error::Memory { .. }) => taken.load != expected.load,
            Err(_) => false,
        };
        match agrees {
            true => Ok(()),
            false => Err(format!(
                "a buffer of {}/{}: {read:?}",
                taken.load, taken.life
            )),
        }
    }

    /// Looks at everything that can be seen.
    pub(crate) fn look(&self) -> Result<(), String> {
        for (page, value) in self.model.shared.iter().enumerate() {
            let mut found = [0; 8];
            let read = self.shared.read(page as u64 * Shared::PAGE, &mut found);
            read.map_err(|error| error.to_string())?;
            if u64::from_le_bytes(found) != *value {
                return Err(format!("shared page {page}: {found:?}, not {value}"));
            }
        }
        (0..DOMAINS).try_for_each(|on| self.look_at(on))
    }

    fn look_at(&self, on: usize) -> Result<(), String> {
        let (domain, expected) = match (self.domain(on), &self.model.domains[on]) {
            (Some(domain), Some(expected)) => (domain, expected),
            (None, None) => return Ok(()),
            (domain, _) => return Err(format!("{on} is {domain:?}")),
        };
        look_at(&domain, expected).map_err(|error| format!("{on}: {error}"))
    }
}

fn look_at(domain: &Domain, expected: &Expected) -> Result<(), String> {
    let said = |error: Error| error.to_string();
    if domain.has_ended().map_err(said)? != expected.has_ended {
        return Err(format!("it should have ended: {}", expected.has_ended));
    }
    let cells = cells_of(domain);
    let found = cells
        .slice(domain, CELLS as u64)
        .map_err(said)?
        .to_vec()
        .map_err(said)?;
    for (place, (found, expected)) in found.iter().zip(&expected.cells).enumerate() {
        if found != expected {
            return Err(format!("cell {place} is {found}, not {expected}"));
        }
    }
    let links = domain.links().map_err(said)?;
    if links.len() != usize::from(expected.link.is_some()) {
        return Err(format!("links: {links:?}, not {:?}", expected.link));
    }
    if !expected.has_ended {
        compare(Outcome::Value(expected.counter), outcome(bump(domain, 0)))?;
    }
    Ok(())
}

/// Where the cells are: at the same offset of every window, since it is one image.
fn cells_of(domain: &Domain) -> Ptr<u64> {
    static OFFSET: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
        let imports = Imports::new()
            .function("host_gate", |_: &Caller<'_>, _: u64, _: u64| 0_u64)
            .link_later("other");
        let domain = IMAGE.domain().imports(imports).load().expect("a domain");
        let place = domain
            .function::<fn() -> Ptr<u64>>("where")
            .expect("an export");
        place.call().expect("an address").address() - domain.base()
    });
    Ptr::from_address(domain.base() + *OFFSET)
}

pub(crate) fn bump(domain: &Domain, value: u64) -> Result<u64, Error> {
    domain.function::<fn(u64) -> u64>("bump")?.call(value)
}

fn host_gate(
    registry: &Registry,
    on: usize,
    caller: &Caller<'_>,
    how: u64,
    value: u64,
) -> Result<u64, Error> {
    let find = |on: usize| registry.lock().expect("no panic inside")[on].clone();
    let cell = value % CELLS as u64;
    match how {
        0 => Ok(value * 3 + 1),
        1 => Err(Error::LongString { longest: 1 }),
        2 => panic!("on purpose"),
        3 => {
            let domain = find(on).ok_or(Error::LongString { longest: 2 })?;
            domain
                .function::<fn(u64, u64) -> u64>("store")?
                .call(cell, 7)
        }
        4 => Ok(find(value as usize % DOMAINS).map_or(13, |domain| bump(&domain, 5).unwrap_or(13))),
        5 => {
            let domain = find(on).ok_or(Error::LongString { longest: 2 })?;
            let cells = cells_of(&domain).slice(caller, CELLS as u64)?;
            cells.set(cell, &99)?;
            Ok(1)
        }
        _ => {
            let domain = find(on).ok_or(Error::LongString { longest: 2 })?;
            let nested = domain.function::<fn(u64) -> u64>("wrong")?.call(0);
            assert!(matches!(nested, Err(Error::Fault(_))), "{nested:?}");
            Ok(77)
        }
    }
}

fn outcome_of(domain: Option<Domain>, call: impl FnOnce(&Domain) -> Result<u64, Error>) -> Outcome {
    let Some(domain) = domain else {
        return Outcome::None;
    };
    let called = catch_unwind(AssertUnwindSafe(|| call(&domain)));
    called.map_or(Outcome::Panic, outcome)
}

/// What the model calls it.
pub(crate) fn outcome(result: Result<u64, Error>) -> Outcome {
    match result {
        Ok(value) => Outcome::Value(value),
        Err(Error::Fault(fault)) => Outcome::Fault(match fault.cause() {
            Cause::Access { .. } if fault.symbol().is_some_and(|name| name == "wrong") => 0,
            Cause::Access { .. } => model::ACCESS,
            Cause::Division => 1,
            Cause::Trap => 2,
            Cause::FailedLabel => 3,
            Cause::Raised { .. } => 4,
            Cause::DataStackOverflow { .. } => 6,
            Cause::TimeLimit { .. } => model::TIME,
            Cause::ProcessorTimeLimit { .. } => model::PROCESSOR,
            Cause::GateLimit { .. } => model::GATES,
            other => panic!("a fault that nothing makes: {other:?}"),
        }),
        Err(Error::Exit { status: 3, .. }) => Outcome::Exit,
        Err(Error::Ended { .. }) => Outcome::Ended,
        Err(Error::Refused { .. }) => Outcome::Refused,
        Err(Error::Callee { .. }) => Outcome::Callee,
        Err(Error::Cancelled { .. }) => Outcome::Cancelled,
        Err(other) => panic!("an error that nothing makes: {other}"),
    }
}

fn compare(expected: Outcome, found: Outcome) -> Result<(), String> {
    match expected == found {
        true => Ok(()),
        false => Err(format!("{found:?}, not {expected:?}")),
    }
}
