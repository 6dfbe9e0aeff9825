//! The modules that are loaded, and what their owners ask of them.
//!
//! A module belongs to the key that loaded it: nobody else lists, calls or
//! unloads it. Each has a thread of its own, on which its constructors and all
//! calls into it run, one after the other: its thread-local data is there, and
//! a call that takes long keeps nobody waiting but its owner.

use crate::rules::Rules;
use crate::settings::Settings;
use crate::wire::{self, Answer, Operation, Status, WireError};
use crate::workers::Reply;
use mullion_loader::{Admitted, Asked, Imports, Instance, LoadError, Loaded, NotAdmitted, Start};
use mullion_runtime::{Access, Arguments, CallError, Claimed, Entry, PAGE};
use mullion_trust::challenge::Proven;
use mullion_verifier::ImageKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The host functions that a module is offered, by its number: which of them it
/// may import is the policy's affair.
pub type ImportsFor = Box<dyn Fn(u64) -> Imports + Send + Sync>;

pub(crate) struct Modules {
    rules: Rules,
    imports: ImportsFor,
    settings: Settings,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Numbers are never used again.
    last: u64,
    /// Modules whose constructors run, with their owners: they take up room.
    starting: BTreeMap<u64, Proven>,
    modules: BTreeMap<u64, Module>,
}

struct Module {
    owner: Proven,
    name: String,
    instance: Arc<Instance>,
    /// To the module's thread, which ends with the table's entry.
    calls: Sender<(Vec<u8>, Reply)>,
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
    #[error("you have no module {0}")]
    NoModule(u64),
    #[error("the module has no export `{0}`")]
    NoExport(String),
    #[error("a call takes 6 arguments at most, the address and length of its bytes included")]
    Arguments,
    #[error("the bytes do not fit into the module's memory: {0}")]
    Bytes(String),
    #[error("{0}")]
    Call(#[from] CallError),
}

impl Modules {
    pub(crate) fn new(rules: Rules, imports: ImportsFor, settings: Settings) -> Self {
        Modules {
            rules,
            imports,
            settings,
            table: Mutex::default(),
        }
    }

    /// Does what the owner of `key` asks, and sees to the reply.
    pub(crate) fn answer(
        self: &Arc<Self>,
        key: Proven,
        operation: u8,
        content: Vec<u8>,
        reply: Reply,
    ) {
        let result = match Operation::from_number(operation) {
            None => {
                let text = format!("there is no operation {operation}");
                return reply.send(&Answer::not(Status::NotUnderstood, text));
            }
            Some(Operation::Load) => return self.load(key, content, reply),
            Some(Operation::Call) => return self.call(key, content, reply),
            Some(Operation::Unload) => self.unload(key, &content),
            Some(Operation::List) => self.list(key, &content),
        };
        reply.send(&said(result));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(self: &Arc<Self>, key: Proven, content: Vec<u8>, reply: Reply) {
        let admitted = self.admit(key, &content);
        drop(content);
        let (name, admitted) = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        let number = match self.reserve(key) {
            Ok(number) => number,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        let modules = self.clone();
        let thread = thread::Builder::new().name(format!("module-{number}"));
        let run = move || modules.run(number, key, name, admitted, reply);
        if thread.spawn(run).is_err() {
            // The reply has been dropped, and says so.
            self.table().starting.remove(&number);
        }
    }

    fn admit(&self, key: Proven, content: &[u8]) -> Result<(String, Admitted), Failure> {
        let (load, image): (wire::Load, _) = wire::decode(content)?;
        // Asked before the work, and again when there is something to keep.
        self.has_room(key)?;
        let asked = Asked {
            requesters: &[key],
            record: load.record.as_deref(),
            credentials: &load.credentials,
            limits: load.limits()?,
            attributes: load
                .attributes
                .iter()
                .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
                .collect(),
            ..Asked::default()
        };
        let admitted = self.rules.now().admit(image, &asked)?;
        if admitted.image().kind() != ImageKind::Extension {
            return Err(Failure::Program);
        }
        Ok((load.name, admitted))
    }

    /// The life of a module, on its own thread.
    fn run(
        self: Arc<Self>,
        number: u64,
        key: Proven,
        name: String,
        admitted: Admitted,
        reply: Reply,
    ) {
        let mut object = describe(&admitted);
        object["module"] = json!(number);
        let (calls, queue) = channel();
        let made = self.make(number, key, name, admitted, calls);
        let made = self.keep(number, made);
        // From here on only the table keeps the module.
        drop(self);
        let instance = match made {
            Ok(instance) => instance,
            Err(failure) => return reply.send(&said(Err(failure))),
        };
        reply.send(&Answer::done(object));
        for (content, reply) in queue {
            let called = || said(call(&instance, &content));
            // A panic costs this call. Its reply says so when it is dropped.
            if let Ok(answer) = catch_unwind(AssertUnwindSafe(called)) {
                reply.send(&answer);
            }
        }
    }

    fn make(
        &self,
        number: u64,
        owner: Proven,
        name: String,
        admitted: Admitted,
        calls: Sender<(Vec<u8>, Reply)>,
    ) -> Result<Module, Failure> {
        let loaded = Loaded::new(admitted)?;
        let limits = self.settings.limits.clone();
        let instance = loaded.instantiate(&(self.imports)(number), limits)?;
        start(&instance, &name)?;
        Ok(Module {
            owner,
            name,
            instance: Arc::new(instance),
            calls,
        })
    }

    /// Puts what has been made in the place that was kept for it, or gives the
    /// place back.
    fn keep(&self, number: u64, made: Result<Module, Failure>) -> Result<Arc<Instance>, Failure> {
        let mut table = self.table();
        table.starting.remove(&number);
        let module = made?;
        room(
            &table,
            &self.settings,
            module.owner,
            module.instance.limits().memory,
        )?;
        let instance = module.instance.clone();
        table.modules.insert(number, module);
        Ok(instance)
    }

    fn reserve(&self, key: Proven) -> Result<u64, Failure> {
        let mut table = self.table();
        room(&table, &self.settings, key, 0)?;
        table.last += 1;
        let number = table.last;
        table.starting.insert(number, key);
        Ok(number)
    }

    fn has_room(&self, key: Proven) -> Result<(), Failure> {
        room(&self.table(), &self.settings, key, 0)
    }

    fn unload(&self, key: Proven, content: &[u8]) -> Result<Answer, Failure> {
        let (unload, _): (wire::Unload, _) = wire::decode(content)?;
        let mut table = self.table();
        owned(&table, key, unload.module)?;
        // Its thread ends, and the domain with it, when it has made the calls
        // that were asked for before.
        let _module = table.modules.remove(&unload.module);
        Ok(Answer::done(json!({})))
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
        let table = self.table();
        let calls = wire::decode::<wire::Call>(&content).map_err(Failure::from);
        let calls = calls.and_then(|(call, _)| owned(&table, key, call.module));
        let calls = calls.map(|module| module.calls.clone());
        drop(table);
        match calls {
            // If its thread has ended, the reply is dropped, and says so.
            Ok(calls) => drop(calls.send((content, reply))),
            Err(failure) => reply.send(&said(Err(failure))),
        }
    }
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
        other => Answer::not(Status::Refused, other),
    })
}

/// Whether one more module of `key` finds room.
fn room(table: &Table, settings: &Settings, key: Proven, memory: u64) -> Result<(), Failure> {
    let all = table.modules.values();
    let own = all.clone().filter(|module| module.owner == key).count()
        + table
            .starting
            .values()
            .filter(|owner| **owner == key)
            .count();
    let used: u64 = all.map(|module| module.instance.limits().memory).sum();
    if table.modules.len() + table.starting.len() >= settings.modules {
        return Err(Failure::Full("it has as many modules as it may"));
    }
    if own >= settings.modules_of_one {
        return Err(Failure::Full(
            "you have as many modules as one may; unload one",
        ));
    }
    if used.saturating_add(memory) > settings.memory {
        return Err(Failure::Full(
            "its modules have all the memory that it may give",
        ));
    }
    Ok(())
}

/// What was granted, for the answer.
fn describe(admitted: &Admitted) -> Value {
    let exports = admitted.image().exports().iter();
    let exports: Vec<_> = exports.map(|export| export.name.clone()).collect();
    let Some(decision) = admitted.decision() else {
        return json!({ "exports": exports, "verified": true });
    };
    let event = decision.event();
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
        answer.object["obstacles"] = json!(refusal.obstacles);
    }
    answer
}

/// Runs the constructors.
fn start(instance: &Instance, name: &str) -> Result<(), Failure> {
    let mut random = [0; 16];
    // The C library's seed for its protection against itself.
    let _unseeded = getrandom::fill(&mut random);
    let block = Start {
        arguments: vec![name.replace('\0', "").into_bytes()],
        environment: Vec::new(),
        random,
    };
    let block = block.place(instance)?;
    let entry = instance.start().map_err(LoadError::from)?;
    let called = instance.domain().call(entry, &Arguments::new(&[block]));
    called.map(drop).map_err(Failure::Start)
}

impl Module {
    fn line(&self, number: u64) -> Value {
        let loaded = self.instance.loaded();
        let exports = loaded.image().exports().iter();
        let exports: Vec<_> = exports.map(|export| export.name.clone()).collect();
        json!({
            "module": number,
            "name": self.name,
            "type": loaded.decision().map(|decision| decision.module_type.clone()),
            "image": loaded.decision().map(|decision| decision.image.to_string()),
            "exports": exports,
            "memory": self.instance.domain().memory().in_use(),
            "ended": self.instance.domain().has_ended(),
        })
    }
}

/// Calls an export, on the module's thread.
fn call(instance: &Instance, content: &[u8]) -> Result<Answer, Failure> {
    let (call, bytes): (wire::Call, _) = wire::decode(content)?;
    let entry = instance.export(&call.export).map_err(LoadError::from)?;
    let entry = entry.ok_or_else(|| Failure::NoExport(call.export.clone()))?;
    let more = if bytes.is_empty() { 0 } else { 2 };
    if call.arguments.len() + more > 6 {
        return Err(Failure::Arguments);
    }
    let mut integers = call.arguments;
    if bytes.is_empty() {
        return Ok(Answer::done(enter(instance, entry, &integers)?));
    }
    let memory = instance.domain().memory();
    let length = (bytes.len() as u64).next_multiple_of(PAGE);
    let failed = |error: &dyn std::fmt::Display| Failure::Bytes(error.to_string());
    let address = memory.map(None, length, Access::ReadWrite);
    let address = address.map_err(|error| failed(&error))?;
    integers.extend([address, bytes.len() as u64]);
    let result = (|| {
        let written = memory.write(Claimed(address), bytes);
        written.map_err(|error| failed(&error))?;
        let mut answer = Answer::done(enter(instance, entry, &integers)?);
        answer.bytes = vec![0; bytes.len()];
        let left = memory.piece(Claimed(address), bytes.len() as u64);
        let left = left.and_then(|piece| piece.read(&mut answer.bytes));
        left.map_err(|error| failed(&error))?;
        Ok(answer)
    })();
    let _the_module_unmapped_it_itself = memory.unmap(Claimed(address), length);
    result
}

fn enter(instance: &Instance, entry: Entry, integers: &[u64]) -> Result<Value, Failure> {
    let returned = instance.domain().call(entry, &Arguments::new(integers))?;
    Ok(json!({ "result": returned.integer, "high": returned.high }))
}
