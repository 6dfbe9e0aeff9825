//! What a file of a policy says, as values.

use crate::effect;
use mullion_word_runtime::{Effect, ErrorValue};
use std::collections::BTreeMap;
use std::time::Duration;

/// A policy, or the description of an interface. What a file does not say is as in [`File::default`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The module's name, for reports.
    pub module: Option<String>,
    /// The function of the module that the host calls first, for hosts that have one.
    pub entry: Option<String>,
    /// Functions that the module may call, by the names of an interface. A name that begins with `@` is a group's.
    pub allow: Vec<String>,
    /// Why a function or a group of `allow` is there; for people.
    pub reasons: BTreeMap<String, String>,
    /// What an ended call returns, where its export says nothing else.
    pub error: Option<ErrorValue>,
    /// What the module may use.
    pub limits: Limits,
    /// Groups of functions by name, without `@`.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Lists that a host reads in its own way, of any text.
    pub lists: BTreeMap<String, Vec<String>>,
    /// Functions of the host that are described here. In a module's policy it may call them.
    pub calls: BTreeMap<String, Call>,
    /// Functions of the module that the host calls.
    pub exports: BTreeMap<String, Export>,
    /// Variables of the host that the module may use.
    pub data: BTreeMap<String, HostVariable>,
    /// Whether the module's memory stays mapped when it is unloaded.
    pub stays_mapped: bool,
    /// Whether the module has instances, also if no export names one.
    pub instances: bool,
}

/// A function of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Names of its parameters, each possibly behind the type of an integer: `int count`. Without one all 64 bits count.
    pub parameters: Vec<String>,
    /// What it does with them.
    pub effects: Vec<Effect>,
    /// Functions that are passed to it, by their parameters: what calls of them mean while it runs.
    pub callbacks: BTreeMap<String, Call>,
    /// Words of arguments that it gets on the stack.
    pub stacked: u8,
    /// Which allocator it is of, if it gives, frees or moves; none: the C library's.
    pub allocator: Option<String>,
    /// Why a module may call it, or what is to be known of it; for people.
    pub reason: Option<String>,
}

/// A function of the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Export {
    /// As for functions of the host.
    pub call: Call,
    /// What it returns if the call is ended.
    pub error: Option<ErrorValue>,
}

/// A variable of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostVariable {
    /// How large it is; none: as the symbol table of its file says.
    pub bytes: Option<u64>,
    /// Whether it may be written, too.
    pub write: bool,
    /// Why; for people.
    pub reason: Option<String>,
}

/// Limits, where the file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of one call.
    pub time: Option<Duration>,
    /// Bytes that allocators may give.
    pub memory: Option<u64>,
    /// Bytes of each data stack.
    pub stack: Option<u64>,
    /// Bytes of the module itself.
    pub image: Option<u64>,
}

impl Call {
    /// Whether it does something for which it has an allocator.
    #[must_use]
    pub fn allocates(&self) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|effect| {
            matches!(
                effect,
                Effect::Gives(_) | Effect::Frees(_) | Effect::Moves(..)
            )
        })
    }

    /// Its effects as the file has them.
    #[must_use]
    pub fn described(&self) -> Vec<String> {
        let effects = self.effects.iter();
        effects
            .map(|effect| effect::write(effect, &self.parameters))
            .collect()
    }
}
