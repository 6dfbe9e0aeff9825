//! From files to the run time's values.

use crate::C_LIBRARY;
use crate::effect::place;
use crate::file::{Call, File};
use mullion_word_runtime::{FunctionPolicy, Limits, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// Why a policy makes no sense with the host's interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LowerError {
    /// A function that nobody describes.
    #[error("`{name}` is no function that this host describes{}", hint(.near))]
    Unknown {
        /// Its name.
        name: String,
        /// A name that it could have meant.
        near: Option<String>,
    },
    /// A group that nobody describes.
    #[error("`@{0}` is no group of functions that this host describes")]
    Group(String),
}

fn hint(near: &Option<String>) -> String {
    match near {
        Some(name) => format!("; `{name}` is"),
        None => String::new(),
    }
}

/// What a host offers: functions with their effects, and groups of them. The C library is always there.
#[derive(Clone, Debug)]
pub struct Interface {
    calls: BTreeMap<String, Call>,
    groups: BTreeMap<String, Vec<String>>,
}

impl Interface {
    /// The interface that these files describe; later ones come first where two speak of the same function.
    #[must_use]
    pub fn new(files: &[File]) -> Interface {
        let c_library = File::parse(C_LIBRARY).expect("a test reads it");
        let mut interface = Interface {
            calls: c_library.calls,
            groups: c_library.groups,
        };
        for file in files {
            interface.calls.extend(file.calls.clone());
            interface.groups.extend(file.groups.clone());
        }
        interface
    }

    /// A function, if the interface has it.
    #[must_use]
    pub fn call(&self, name: &str) -> Option<&Call> {
        self.calls.get(name)
    }

    /// Names of all functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.calls.keys().map(String::as_str)
    }

    /// The functions that a module with this policy may call, groups taken apart.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn allowed(&self, file: &File) -> Result<BTreeMap<String, Call>, LowerError> {
        let mut allowed = BTreeMap::new();
        let mut left: Vec<&String> = file.allow.iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            if let Some(group) = name.strip_prefix('@') {
                let members = file.groups.get(group).or_else(|| self.groups.get(group));
                let members = members.ok_or_else(|| LowerError::Group(group.to_owned()))?;
                if seen.insert(group) {
                    left.extend(members);
                }
                continue;
            }
            let call = file.calls.get(name).or_else(|| self.calls.get(name));
            let call = call.ok_or_else(|| LowerError::Unknown {
                name: name.clone(),
                near: self.near(name),
            })?;
            allowed.insert(name.clone(), call.clone());
        }
        allowed.extend(file.calls.clone());
        Ok(allowed)
    }

    /// A name that ends in the same words.
    fn near(&self, name: &str) -> Option<String> {
        let ends = |long: &str, short: &str| {
            let rest = long.strip_suffix(short);
            rest.is_some_and(|rest| rest.ends_with('_'))
        };
        let mut all = self.calls.keys();
        all.find(|known| ends(known, name) || ends(name, known))
            .cloned()
    }

    /// The run time's value.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn policy(&self, file: &File) -> Result<Policy, LowerError> {
        let mut policy = Policy::new();
        for (name, call) in self.allowed(file)? {
            policy = match function(&call) {
                Some(function) => policy.allow_with(&name, function),
                None => policy.allow(&name),
            };
        }
        for (name, export) in &file.exports {
            let mut function = function(&export.call).unwrap_or_default();
            function.error = export.error.or(file.error).unwrap_or_default();
            policy = policy.export(name, function);
        }
        for (name, data) in &file.data {
            policy = policy.data(name, data.bytes, data.write);
        }
        if file.stays_mapped {
            policy = policy.stays_mapped();
        }
        if file.instances {
            policy = policy.instances();
        }
        let usual = Limits::default();
        Ok(policy.error(file.error.unwrap_or_default()).limits(Limits {
            time: file.limits.time.or(usual.time),
            memory: file.limits.memory.unwrap_or(usual.memory),
            stack: file.limits.stack.unwrap_or(usual.stack),
            image: file.limits.image.unwrap_or(usual.image),
        }))
    }
}

/// Nothing, if nothing is to be done: such a call takes the short way.
fn function(call: &Call) -> Option<FunctionPolicy> {
    match call.effects.is_empty() && call.stacked == 0 {
        true => None,
        false => {
            let mut policy = FunctionPolicy::of(&call.effects).stacked(call.stacked);
            for (name, callback) in &call.callbacks {
                let meaning = function(callback).unwrap_or_default();
                if let Some(at) = place(&call.parameters, name) {
                    policy = policy.callback(at, meaning);
                }
            }
            Some(match &call.allocator {
                Some(name) => policy.allocator(allocator(name)),
                None => policy,
            })
        }
    }
}

/// The name of an allocator as the run time has it, each once for the life of the process.
#[must_use]
pub fn allocator(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}
