//! The modules that are loaded, and what their owners ask of them.
//!
//! A module belongs to the key that loaded it: nobody else lists, calls, restarts or unloads it. Each has a thread of
//! its own, on which its constructors and all calls into it run, one after the other. Its thread-local data is there,
//! and a call that takes long keeps nobody waiting but its owner. A module that faults stays, and takes calls again
//! when it has been restarted; faults and restarts are in the policy's log.

mod calls;

use crate::exchange::{Asked, Reply};
use crate::rules::Rules;
use crate::wire::{self, Answer, Operation, Status, WireError};
use calls::call;
use mullion_decide::PublicKey;
use mullion_decide::challenge::Proven;
use mullion_decide::keynote::Work;
use mullion_loader::event;
use mullion_loader::{
    Admitted, Asked as ToLoad, Imports, Instance, LoadError, Loaded, NotAdmitted, Start,
};
use mullion_runtime::{CallError, Counts, DomainNumber, Limits, Meter};
use mullion_verifier::ImageKind;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::thread;

/// The host functions that a module is offered, by its number: which of them it
/// may import is the policy's affair.
pub type ImportsFor = Box<dyn Fn(u64) -> Imports + Send + Sync>;

/// Is told what becomes of modules: a number, and a line of text.
pub type Observer = Box<dyn Fn(u64, &str) + Send + Sync>;

/// Keys that were given leave to load, of which so many are remembered.
const ADMITTED: usize = 4096;

/// What modules may take up.
#[derive(Clone, Debug)]
pub struct Room {
    /// Modules of all owners.
    pub modules: usize,
    /// Modules of one owner.
    pub modules_of_one: usize,
    /// Bytes of memory that all modules may use together: as their limits say, and what their images take.
    pub memory: u64,
    /// What a domain gets at most; type and credentials may say less.
    pub limits: Limits,
}

/// All modules of a loader.
pub struct Modules {
    rules: Rules,
    imports: ImportsFor,
    room: Room,
    table: Arc<Mutex<Table>>,
    /// Who has been given leave: no strangers any more.
    admitted: Mutex<BTreeSet<PublicKey>>,
    observer: OnceLock<Observer>,
}

#[derive(Default)]
struct Table {
    /// Numbers are never used again.
    last: u64,
    /// What modules take up, by their numbers: from before they are laid out until nothing of them is left. So there are
    /// more of these than modules.
    places: BTreeMap<u64, Place>,
    modules: BTreeMap<u64, Module>,
}

/// A place, which the module's thread gives back when the domain is gone.
struct Held {
    table: Arc<Mutex<Table>>,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.table).places.remove(&self.number);
    }
}

/// What a module takes up.
#[derive(Clone, Copy)]
struct Place {
    owner: Proven,
    /// Bytes at most: the domain's limit, and what its image takes.
    memory: u64,
}

struct Module {
    owner: Proven,
    name: String,
    /// Of its domain, and what that has done.
    domain: DomainNumber,
    meter: Arc<Meter>,
    /// Written by the module's own thread alone, between calls.
    instance: Arc<RwLock<Instance>>,
    /// What the module's thread is asked for from then on is refused.
    unloaded: Arc<AtomicBool>,
    /// To the module's thread.
    asks: Sender<(Ask, Reply)>,
}

/// What a module has done so far.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Its number, in this loader.
    pub module: u64,
    /// The name that its owner gave it.
    pub name: String,
    /// The number of its domain, in this process.
    pub domain: u64,
    /// The figures, over all its lives.
    pub counts: Counts,
}

/// Tells what the modules of a loader have done, from any thread, and when it has stopped.
#[derive(Clone)]
pub struct Gauge {
    modules: Arc<Modules>,
}

impl Gauge {
    /// Of these.
    #[must_use]
    pub fn of(modules: Arc<Modules>) -> Self {
        Gauge { modules }
    }

    /// Of the modules that are loaded now, by number. It waits for no call.
    #[must_use]
    pub fn read(&self) -> Vec<Figures> {
        let table = self.modules.table();
        let all = table.modules.iter().map(|(number, module)| Figures {
            module: *number,
            name: module.name.clone(),
            domain: module.domain.0,
            counts: module.meter.read(),
        });
        all.collect()
    }
}

/// What a module's thread is asked for.
enum Ask {
    Call(Vec<u8>),
    Restart,
    /// The last.
    Unload,
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("{0}")]
    NotAdmitted(#[from] NotAdmitted),
    #[error(
        "it is a program, which `mullion run` runs; a loader takes extensions (mullion cc --mullion-kind=extension)"
    )]
    Program,
    #[error("the loader is full: {0}")]
    Full(&'static str),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("its constructors: {0}")]
    Start(CallError),
    #[error("the image takes {image} bytes in memory, and a module may have {most}")]
    TooLarge { image: u64, most: u64 },
    #[error("you have no module {0}")]
    NoModule(u64),
    #[error("the module has no export `{0}`")]
    NoExport(String),
    #[error("a call takes 6 arguments at most, the address and length of its bytes included")]
    Arguments,
    #[error("the bytes do not fit into the module's memory: {0}")]
    Bytes(String),
    /// With the export that was called.
    #[error("{0}")]
    Call(CallError, String),
}

/// A stranger's request to load something, which takes more work than a first attempt has.
pub struct Heavy {
    key: Proven,
    content: Vec<u8>,
    reply: Reply,
}

impl Modules {
    /// None yet.
    #[must_use]
    pub fn new(rules: Rules, imports: ImportsFor, room: Room) -> Self {
        Modules {
            rules,
            imports,
            room,
            table: Arc::default(),
            admitted: Mutex::default(),
            observer: OnceLock::new(),
        }
    }

    /// Has `observer` told what becomes of modules, from the modules' threads. The first one stays.
    pub fn observed_by(&self, observer: Observer) {
        let _the_first_stays = self.observer.set(observer);
    }

    /// Whether this key is no stranger's: policy or credentials name it, or it has been given leave.
    #[must_use]
    pub fn knows(&self, key: &PublicKey) -> bool {
        self.rules.now().knows(key) || self.admitted().contains(key)
    }

    fn admitted(&self) -> MutexGuard<'_, BTreeSet<PublicKey>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, key: PublicKey) {
        let mut admitted = self.admitted();
        if admitted.len() >= ADMITTED {
            admitted.pop_first();
        }
        admitted.insert(key);
    }

    /// Does what the owner of `key` asks, and sees to the reply. Of a stranger's request to load this is the first
    /// attempt. If it takes more work than [`Work::FIRST`], it comes back for [`Modules::load`], and nothing has been done.
    pub fn answer(self: &Arc<Self>, asked: Asked) -> Option<Heavy> {
        let Asked {
            key,
            operation,
            body: content,
            reply,
        } = asked;
        let result = match Operation::from_number(operation) {
            None => {
                let text = format!("there is no operation {operation}");
                Answer::not(Status::NotUnderstood, text)
            }
            Some(Operation::Load) => return self.try_to_load(key, content, reply),
            Some(Operation::Call) => {
                self.call(key, content, reply);
                return None;
            }
            Some(Operation::Restart) => {
                self.restart(key, &content, reply);
                return None;
            }
            Some(Operation::Unload) => {
                self.unload(key, &content, reply);
                return None;
            }
            Some(Operation::List) => said(self.list(key, &content)),
        };
        reply.send(&result);
        None
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    fn try_to_load(self: &Arc<Self>, key: Proven, content: Vec<u8>, reply: Reply) -> Option<Heavy> {
        if self.knows(&key.key()) {
            let admitted = self.admit(key, &content, &mut Work::of(Work::KNOWN));
            self.begin(key, admitted, reply);
            return None;
        }
        let mut work = Work::of(Work::FIRST);
        match self.try_to_admit(key, &content, &mut work) {
            Some(admitted) => {
                self.begin(key, admitted, reply);
                None
            }
            None => Some(Heavy {
                key,
                content,
                reply,
            }),
        }
    }

    /// Loads what a stranger asks for, with all the work that it may cause.
    pub fn load(self: &Arc<Self>, heavy: Heavy) {
        let Heavy {
            key,
            content,
            reply,
        } = heavy;
        let admitted = self.admit(key, &content, &mut Work::of(Work::STRANGER));
        drop(content);
        self.begin(key, admitted, reply);
    }

    /// Makes a module of what was admitted.
    fn begin(
        self: &Arc<Self>,
        key: Proven,
        admitted: Result<(String, Admitted), Failure>,
        reply: Reply,
    ) {
        let (name, admitted) = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        let place = match self.place(key, &admitted) {
            Ok(place) => place,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        let held = match self.reserve(place) {
            Ok(held) => held,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        let modules = self.clone();
        let thread = thread::Builder::new().name(format!("module-{}", held.number));
        let run = move || modules.run(held, key, name, admitted, reply);
        // Without a thread, reply and place are dropped, and the reply says so.
        let _not_started = thread.spawn(run);
    }

    fn admit(
        &self,
        key: Proven,
        content: &[u8],
        work: &mut Work,
    ) -> Result<(String, Admitted), Failure> {
        let (load, image) = self.asked(key, content)?;
        let rules = self.rules.now();
        let admitted = rules.admit_within(image, &to_load(&[key], &load)?, work)?;
        self.admitted_to(key, load, admitted)
    }

    /// As [`Modules::admit`]; nothing, if the work does not suffice.
    fn try_to_admit(
        &self,
        key: Proven,
        content: &[u8],
        work: &mut Work,
    ) -> Option<Result<(String, Admitted), Failure>> {
        let mut attempt = || {
            let (load, image) = self.asked(key, content)?;
            let rules = self.rules.now();
            let admitted = rules.try_to_admit(image, &to_load(&[key], &load)?, work);
            Ok(admitted.map(|admitted| self.admitted_to(key, load, admitted?)))
        };
        attempt().unwrap_or_else(|failure| Some(Err(failure)))
    }

    fn asked<'a>(&self, key: Proven, content: &'a [u8]) -> Result<(wire::Load, &'a [u8]), Failure> {
        let decoded = wire::decode(content)?;
        // Asked before the work, and again when there is something to keep.
        self.has_room(key)?;
        Ok(decoded)
    }

    fn admitted_to(
        &self,
        key: Proven,
        load: wire::Load,
        admitted: Admitted,
    ) -> Result<(String, Admitted), Failure> {
        self.remember(key.key());
        if admitted.image().kind() != ImageKind::Extension {
            return Err(Failure::Program);
        }
        Ok((load.name, admitted))
    }

    /// The life of a module, on its own thread.
    fn run(
        self: Arc<Self>,
        held: Held,
        owner: Proven,
        name: String,
        admitted: Admitted,
        reply: Reply,
    ) {
        let number = held.number;
        let mut object = describe(&admitted);
        object["module"] = json!(number);
        let (asks, queue) = channel();
        let mut report = Report::new(number, owner, &name, &admitted);
        let unloaded = Arc::new(AtomicBool::new(false));
        let made = self.make(number, owner, name, admitted, asks, &unloaded);
        if let Err(Failure::Start(error)) = &made {
            self.report(&report, "its constructors", error);
        }
        let made = self.keep(number, made);
        // From here on only the table keeps the module.
        let modules = Arc::downgrade(&self);
        drop(self);
        let instance = match made {
            Ok(instance) => instance,
            Err(failure) => {
                drop(held);
                return reply.send(&said(Err(failure)));
            }
        };
        reply.send(&Answer::done(object));
        let mut last = None;
        while let Ok((ask, reply)) = queue.recv() {
            if let Ask::Unload = &ask {
                last = Some(reply);
                break;
            }
            // Whoever has no module any more has no call that begins in it.
            let gone = unloaded.load(Ordering::Relaxed);
            let done = || match &ask {
                _ if gone => Err(Failure::NoModule(number)),
                Ask::Call(content) => call(&read(&instance), content),
                Ask::Restart => restart(&instance, &report.name),
                Ask::Unload => Ok(Answer::done(json!({}))),
            };
            // A panic costs this call. Its reply says so when it is dropped.
            let Ok(result) = catch_unwind(AssertUnwindSafe(done)) else {
                continue;
            };
            if let Some(modules) = modules.upgrade() {
                match (&ask, &result) {
                    (_, Err(Failure::Call(error, export))) => {
                        modules.report(&report, export, error)
                    }
                    (_, Err(Failure::Start(error))) => {
                        modules.report(&report, "its constructors", error);
                    }
                    (Ask::Restart, Ok(_)) => {
                        report.restarts += 1;
                        modules.record(event::restarted(&report.module()));
                        modules.observe(number, "restarted");
                    }
                    _ => {}
                }
            }
            reply.send(&said(result));
        }
        // Nothing is left when the place is given back, and the place is there again when its owner hears of it.
        drop((queue, instance));
        drop(held);
        if let Some(reply) = last {
            reply.send(&Answer::done(json!({})));
        }
    }

    /// Puts into the log that a module has ended, and why. What did not end it is the caller's
    /// affair alone.
    fn report(&self, report: &Report, during: &str, error: &CallError) {
        if !ends(error) {
            return;
        }
        let text = error.to_string();
        self.record(event::ended(&report.module(), during, &text));
        let text = mullion_decide::text::shortened(&text, 1000);
        self.observe(report.number, &format!("ended in {during}: {text}"));
    }

    /// A line of the policy's log. The module has ended already: if it cannot be written, the
    /// observer hears of it.
    fn record(&self, event: Value) {
        if let Err(error) = self.rules.now().record(event) {
            self.observe(0, &format!("the log cannot be written: {error}"));
        }
    }

    fn observe(&self, module: u64, text: &str) {
        if let Some(observer) = self.observer.get() {
            observer(module, text);
        }
    }

    fn make(
        &self,
        number: u64,
        owner: Proven,
        name: String,
        admitted: Admitted,
        asks: Sender<(Ask, Reply)>,
        unloaded: &Arc<AtomicBool>,
    ) -> Result<Module, Failure> {
        let loaded = Loaded::new(admitted)?;
        let limits = self.room.limits.clone();
        let instance = loaded.instantiate(&(self.imports)(number), limits)?;
        start(&instance, &name)?;
        Ok(Module {
            owner,
            name,
            domain: instance.domain().number(),
            meter: instance.domain().meter().clone(),
            instance: Arc::new(RwLock::new(instance)),
            unloaded: unloaded.clone(),
            asks,
        })
    }

    /// Puts what has been made into the table.
    fn keep(
        &self,
        number: u64,
        made: Result<Module, Failure>,
    ) -> Result<Arc<RwLock<Instance>>, Failure> {
        let module = made?;
        let instance = module.instance.clone();
        self.table().modules.insert(number, module);
        Ok(instance)
    }

    /// What a module takes up: known, and compared with the limits, before its image is laid out.
    fn place(&self, owner: Proven, admitted: &Admitted) -> Result<Place, Failure> {
        let most = self.room.limits.memory;
        let image = admitted.occupied();
        if image > most {
            return Err(Failure::TooLarge { image, most });
        }
        Ok(Place {
            owner,
            memory: most.saturating_add(admitted.footprint()),
        })
    }

    fn reserve(&self, place: Place) -> Result<Held, Failure> {
        let mut table = self.table();
        room(&table, &self.room, place.owner, place.memory)?;
        table.last += 1;
        let number = table.last;
        table.places.insert(number, place);
        let table = self.table.clone();
        Ok(Held { table, number })
    }

    fn has_room(&self, key: Proven) -> Result<(), Failure> {
        room(&self.table(), &self.room, key, 0)
    }

    /// Takes a module out of the table. Its owner is answered when it has ended: a call in progress ends first.
    fn unload(&self, key: Proven, content: &[u8], reply: Reply) {
        let unload = wire::decode::<wire::Unload>(content);
        let number = unload.map(|(unload, _)| unload.module);
        let mut table = self.table();
        let owned = number.map_err(Failure::from).and_then(|number| {
            owned(&table, key, number)?;
            Ok(table.modules.remove(&number))
        });
        drop(table);
        match owned {
            Ok(Some(module)) => {
                module.unloaded.store(true, Ordering::Relaxed);
                // Only its thread has it from here on.
                drop(module.instance);
                let _has_ended = module.asks.send((Ask::Unload, reply));
            }
            Ok(None) => {}
            Err(failure) => reply.send(&said(Err(failure))),
        }
    }

    fn list(&self, key: Proven, content: &[u8]) -> Result<Answer, Failure> {
        let (wire::List {}, _) = wire::decode(content)?;
        let table = self.table();
        let own = table
            .modules
            .iter()
            .filter(|(_, module)| module.owner == key);
        let modules: Vec<_> = own.map(|(number, module)| module.line(*number)).collect();
        Ok(Answer::done(json!({ "modules": modules })))
    }

    fn call(&self, key: Proven, content: Vec<u8>, reply: Reply) {
        let call = wire::decode::<wire::Call>(&content);
        let module = call.map(|(call, _)| call.module).map_err(Failure::from);
        self.ask(key, module, Ask::Call(content), reply);
    }

    fn restart(&self, key: Proven, content: &[u8], reply: Reply) {
        let restart = wire::decode::<wire::Restart>(content);
        let module = restart.map(|(restart, _)| restart.module);
        self.ask(key, module.map_err(Failure::from), Ask::Restart, reply);
    }

    /// Hands something to a module's thread.
    fn ask(&self, key: Proven, module: Result<u64, Failure>, ask: Ask, reply: Reply) {
        let table = self.table();
        let asks = module.and_then(|module| owned(&table, key, module));
        let asks = asks.map(|module| module.asks.clone());
        drop(table);
        match asks {
            // If its thread has ended, the reply is dropped, and says so.
            Ok(asks) => drop(asks.send((ask, reply))),
            Err(failure) => reply.send(&said(Err(failure))),
        }
    }
}

/// What the log says of a module.
struct Report {
    number: u64,
    owner: PublicKey,
    name: String,
    image: Option<String>,
    module_type: Option<String>,
    restarts: u64,
}

impl Report {
    fn new(number: u64, owner: Proven, name: &str, admitted: &Admitted) -> Self {
        let decision = admitted.decision();
        Report {
            number,
            owner: owner.key(),
            name: name.to_owned(),
            image: decision.map(|decision| decision.image.to_string()),
            module_type: decision.map(|decision| decision.module_type.clone()),
            restarts: 0,
        }
    }

    fn module(&self) -> Value {
        json!({
            "module": self.number,
            "owner": self.owner.to_string(),
            "name": self.name,
            "image": self.image,
            "type": self.module_type,
            "restarts": self.restarts,
        })
    }
}

/// Whether a module takes no calls after this.
fn ends(error: &CallError) -> bool {
    matches!(error, CallError::Fault(_) | CallError::Exit(_))
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(instance: &RwLock<Instance>) -> RwLockReadGuard<'_, Instance> {
    instance.read().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a module the state that it had when it was loaded, on its own thread.
fn restart(instance: &RwLock<Instance>, name: &str) -> Result<Answer, Failure> {
    let mut own = instance.write().unwrap_or_else(PoisonError::into_inner);
    own.restart().map_err(LoadError::from)?;
    drop(own);
    start(&read(instance), name)?;
    Ok(Answer::done(json!({})))
}

/// The module of that number, if it is `key`'s.
fn owned(table: &Table, key: Proven, number: u64) -> Result<&Module, Failure> {
    let module = table.modules.get(&number);
    let module = module.filter(|module| module.owner == key);
    module.ok_or(Failure::NoModule(number))
}

/// A result as an answer.
fn said(result: Result<Answer, Failure>) -> Answer {
    result.unwrap_or_else(|failure| match &failure {
        Failure::Wire(error) => Answer::not(Status::NotUnderstood, error),
        Failure::NotAdmitted(reason) => not_admitted(reason),
        Failure::Call(error, _) | Failure::Start(error) if ends(error) => {
            Answer::not(Status::Faulted, &failure)
        }
        other => Answer::not(Status::Refused, other),
    })
}

/// Whether one more module of `key` finds room.
fn room(table: &Table, most: &Room, key: Proven, memory: u64) -> Result<(), Failure> {
    let all = table.places.values();
    let own = all.clone().filter(|place| place.owner == key).count();
    let used: u64 = all.map(|place| place.memory).sum();
    if table.places.len() >= most.modules {
        return Err(Failure::Full("it has as many modules as it may"));
    }
    if own >= most.modules_of_one {
        return Err(Failure::Full(
            "you have as many modules as one may; unload one",
        ));
    }
    if used.saturating_add(memory) > most.memory {
        return Err(Failure::Full(
            "its modules have all the memory that it may give",
        ));
    }
    Ok(())
}

/// What is asked of the rules.
fn to_load<'a>(requesters: &'a [Proven], load: &'a wire::Load) -> Result<ToLoad<'a>, Failure> {
    let attributes = load.attributes.iter();
    let attributes = attributes.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
    Ok(ToLoad {
        requesters,
        record: load.record.as_deref(),
        credentials: &load.credentials,
        limits: wire::limits(load)?,
        attributes: attributes.collect(),
        ..ToLoad::default()
    })
}

/// What was granted, for the answer.
fn describe(admitted: &Admitted) -> Value {
    let exports = admitted.image().exports().iter();
    let exports: Vec<_> = exports.map(|export| export.name.clone()).collect();
    let Some(decision) = admitted.decision() else {
        return json!({ "exports": exports, "verified": true });
    };
    let event = event::admitted(decision);
    json!({
        "exports": exports,
        "verified": decision.verify,
        "type": decision.module_type,
        "limits": event["limits"],
        "imports": decision.imports,
        "chain": decision.chain,
        "explanation": decision.explanation,
    })
}

fn not_admitted(reason: &NotAdmitted) -> Answer {
    let mut answer = Answer::not(Status::Refused, reason);
    if let NotAdmitted::Refused(refusal) = reason {
        answer.object["way_out"] = json!(refusal.way_out);
        // Not the obstacles that the log has: who asks may be a stranger.
        answer.object["obstacles"] = json!(refusal.told);
    }
    answer
}

/// Runs the constructors.
fn start(instance: &Instance, name: &str) -> Result<(), Failure> {
    let (entry, arguments) = instance.begin(&Start::extension(name))?;
    let called = instance.domain().start(entry, &arguments);
    called.map(drop).map_err(|error| Failure::Start(*error))
}

impl Module {
    fn line(&self, number: u64) -> Value {
        // The module's thread holds it alone only while it restarts, and nobody waits for that.
        let Ok(instance) = self.instance.try_read() else {
            return json!({ "module": number, "name": self.name, "restarting": true, "exports": [] });
        };
        let loaded = instance.loaded();
        let exports = loaded.image().exports().iter();
        let exports: Vec<_> = exports.map(|export| export.name.clone()).collect();
        json!({
            "module": number,
            "name": self.name,
            "type": loaded.decision().map(|decision| decision.module_type.clone()),
            "image": loaded.decision().map(|decision| decision.image.to_string()),
            "exports": exports,
            "memory": instance.domain().memory().in_use(),
            "ended": instance.domain().has_ended(),
        })
    }
}
