//! What a call means for memory: rows that the gates' slow way goes by (`slow.rs`).

use crate::size::Size;
use mullion_supervisor::Permission;
use std::collections::BTreeMap;
use std::time::Duration;

/// Integers and pointers that a call passes in registers.
pub(crate) const IN_REGISTERS: u8 = 6;

/// What a call does with what an argument points to. Rights have words, so bytes are rounded outwards to whole words.
///
/// Where a *module calls the host*, the module must have these rights itself. The host must not read or write for a
/// module what the module could not. Where the *host calls a module*, or a module another one, the callee gets them for
/// the length of the call. A null pointer, or a size of 0, means nothing. Arguments count from 0, and only the six in
/// registers can have effects: a policy that speaks of others is refused when a module is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is read.
    In(u8, Size),
    /// It is written.
    Out(u8, Size),
    /// As [`Out`](Effect::Out). The last argument is a text, of which the host's function gets a copy. Words of the first one that
    /// point into the copy point into the text itself behind the call.
    Into(u8, Size, u8),
    /// Both.
    InOut(u8, Size),
    /// As [`In`](Effect::In). A function of the host gets a copy, which no thread of the module can change, and no longer than
    /// the call. Fields of it that are sizes are read there, too.
    CopyIn(u8, Size),
    /// As [`InOut`](Effect::InOut), with a copy that is written back behind the call.
    CopyInOut(u8, Size),
    /// The result points to memory that is the caller's from then on: an allocator. Only for what a module calls.
    Gives(Size),
    /// The memory is the callee's from then on.
    Takes(u8, Size),
    /// The memory was given before, and goes back: all of it, by its first address. Only for what a module calls.
    Frees(u8),
    /// As [`Frees`](Effect::Frees) and [`Gives`](Effect::Gives), if the result is not null. Only for what a module calls.
    Moves(u8, Size),
    /// The call is for the instance of the module that has this value as a name ([`Domain::instance`](crate::Domain::instance)).
    /// Null is for none, and what names no instance is refused. Only for what a module exports.
    Instance(u8),
    /// It is a function. Where a module calls, it must be one that the module may call itself.
    Callback(u8),
}

impl Effect {
    /// The argument that the callee is lent for the length of the call, its size, and with which permission.
    #[inline]
    pub(crate) fn lent(&self) -> Option<(u8, &Size, Permission)> {
        match self {
            Effect::In(at, size) | Effect::CopyIn(at, size) => Some((*at, size, Permission::Read)),
            Effect::Out(at, size)
            | Effect::Into(at, size, _)
            | Effect::InOut(at, size)
            | Effect::CopyInOut(at, size) => Some((*at, size, Permission::ReadWrite)),
            _ => None,
        }
    }

    /// The argument that it is about.
    #[inline]
    pub(crate) fn argument(&self) -> Option<u8> {
        match *self {
            Effect::In(at, _)
            | Effect::Out(at, _)
            | Effect::Into(at, ..)
            | Effect::InOut(at, _)
            | Effect::CopyIn(at, _)
            | Effect::CopyInOut(at, _)
            | Effect::Takes(at, _)
            | Effect::Moves(at, _)
            | Effect::Frees(at)
            | Effect::Callback(at)
            | Effect::Instance(at) => Some(at),
            Effect::Gives(_) => None,
        }
    }

    /// Whether the callee has what it points to from the call on, or for its length.
    pub(crate) fn grants(&self) -> bool {
        self.lent().is_some() || matches!(self, Effect::Takes(..))
    }

    /// Whether the host's function gets a copy because the policy says so.
    fn is_copied(&self) -> bool {
        matches!(self, Effect::CopyIn(..) | Effect::CopyInOut(..))
    }

    /// Whether the host's function gets something in the place of the argument: of what says itself how long it is, or leads to
    /// pieces, it always does.
    fn is_replaced(&self) -> bool {
        self.is_copied()
            || matches!(self, Effect::In(_, size) | Effect::Out(_, size) | Effect::InOut(_, size) if size.says_itself())
    }

    /// The argument whose memory is the caller's no longer.
    fn leaves(&self) -> Option<u8> {
        match *self {
            Effect::Takes(at, _) | Effect::Moves(at, _) | Effect::Frees(at) => Some(at),
            _ => None,
        }
    }
}

/// The value of a call that was ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ErrorValue {
    /// For results that are integers or pointers.
    pub integer: i64,
    /// For results that are floating-point numbers.
    pub float: f64,
}

/// What is true of one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionPolicy {
    /// What it does.
    pub effects: Vec<Effect>,
    /// What the host's calls of functions mean that are passed to it ([`Effect::Callback`]), by their arguments, while it runs. Each
    /// effect there lends or hands over. Only for what a module calls.
    pub callbacks: Vec<(u8, FunctionPolicy)>,
    /// Words of arguments that it gets on the stack, at most 16.
    pub stacked: u8,
    /// What a call of it returns if it was ended. Only for what a module exports.
    pub error: ErrorValue,
    /// Of functions with [`Effect::Gives`], [`Effect::Frees`] and [`Effect::Moves`]: which allocator they are of. A block
    /// goes back to its own. The C library's is the one without a name.
    pub allocator: &'static str,
}

impl FunctionPolicy {
    /// These effects.
    #[must_use]
    pub fn of(effects: &[Effect]) -> FunctionPolicy {
        FunctionPolicy {
            effects: effects.to_vec(),
            ..FunctionPolicy::default()
        }
    }

    /// The same, with arguments whose memory goes behind all others, each with whatever else is said of it. So when memory goes,
    /// all that the call has lent of other arguments is lent already, or is of an argument that goes later (`Caller::beside`).
    /// What is copied comes first: sizes may be in it.
    pub(crate) fn leaving_last(mut self) -> FunctionPolicy {
        let leaving: Vec<u8> = self.effects.iter().filter_map(Effect::leaves).collect();
        let goes = |at: &u8| leaving.contains(at);
        self.effects.sort_by_key(|effect| {
            let is_later = !effect.is_copied();
            (is_later, effect.argument().filter(goes))
        });
        self
    }

    /// The argument that it frees, if that is all that it does.
    pub(crate) fn frees(&self) -> Option<u8> {
        match self.effects[..] {
            [Effect::Frees(at)] => Some(at),
            _ => None,
        }
    }

    /// An argument that an effect speaks of and that is in no register. Nobody looks at those.
    pub(crate) fn beyond(&self) -> Option<u8> {
        let pointer = |effect: &Effect| match *effect {
            Effect::In(at, size)
            | Effect::Out(at, size)
            | Effect::InOut(at, size)
            | Effect::CopyIn(at, size)
            | Effect::CopyInOut(at, size)
            | Effect::Takes(at, size)
            | Effect::Moves(at, size) => ([Some(at), None], Some(size)),
            Effect::Into(at, size, of) => ([Some(at), Some(of)], Some(size)),
            Effect::Gives(size) => ([None; 2], Some(size)),
            Effect::Frees(at) | Effect::Callback(at) | Effect::Instance(at) => {
                ([Some(at), None], None)
            }
        };
        let arguments = self.effects.iter().map(pointer).flat_map(|(at, size)| {
            let numbers = size
                .into_iter()
                .flat_map(|size| size.numbers().collect::<Vec<_>>());
            let at = at.into_iter().flatten();
            at.chain(numbers.map(|number| number.argument))
        });
        let callbacks = self.callbacks.iter();
        let mut arguments = arguments.chain(callbacks.filter_map(|(_, of)| of.beyond()));
        arguments.find(|at| *at >= IN_REGISTERS)
    }

    /// An effect with a size that it cannot have: what is described by itself can only be read, or be a list of vectors. An
    /// argument in whose place the host gets another one has one effect: all that is looked at is what the host gets.
    pub(crate) fn misfit(&self) -> Option<Effect> {
        let mut effects = self.effects.iter().copied().enumerate();
        let is_alone = |place: usize, effect: &Effect| {
            let mut others = self.effects.iter().enumerate();
            !others.any(|(other, one)| other != place && one.argument() == effect.argument())
        };
        let is_text = |at: u8| {
            let mut effects = self.effects.iter();
            effects.any(|effect| {
                matches!(effect, Effect::In(of, Size::Text) | Effect::CopyIn(of, Size::Text) if *of == at)
            })
        };
        let found = effects.find(|(place, effect)| match *effect {
            _ if effect.is_replaced() && !is_alone(*place, effect) => true,
            Effect::Into(_, size, of) => size.says_itself() || !is_text(of),
            Effect::CopyIn(_, size) => {
                matches!(size, Size::List | Size::Texts | Size::Vectors(_))
            }
            Effect::CopyInOut(_, size) => size.says_itself(),
            Effect::In(..) | Effect::Frees(_) | Effect::Callback(_) | Effect::Instance(_) => false,
            Effect::Out(_, size) | Effect::InOut(_, size) => {
                matches!(size, Size::Text | Size::List | Size::Texts)
            }
            Effect::Gives(size) | Effect::Takes(_, size) | Effect::Moves(_, size) => {
                size.says_itself()
            }
        });
        let found = found.map(|(_, effect)| effect);
        found.or_else(|| {
            self.callbacks.iter().find_map(|(at, of)| {
                let is_one = self.effects.contains(&Effect::Callback(*at));
                let mut effects = of.effects.iter();
                let other = effects.find(|effect| !effect.grants()).copied();
                let is_nest = !of.callbacks.is_empty() || !is_one;
                other
                    .or(is_nest.then_some(Effect::Callback(*at)))
                    .or_else(|| of.misfit())
            })
        })
    }

    /// Whether all that it says of arguments is looked at.
    pub(crate) fn is_whole(&self) -> bool {
        self.beyond().is_none() && self.misfit().is_none()
    }

    /// With so many words of arguments on the stack.
    #[must_use]
    pub fn stacked(mut self, words: u8) -> FunctionPolicy {
        self.stacked = words.min(16);
        self
    }

    /// While it runs, the host's calls of the function that is this argument mean this.
    #[must_use]
    pub fn callback(mut self, argument: u8, policy: FunctionPolicy) -> FunctionPolicy {
        self.callbacks.push((argument, policy));
        self
    }

    /// Whether a call of it has rights by what it passes: memory, or those of an instance.
    pub(crate) fn gives_rights(&self) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|effect| effect.grants() || matches!(effect, Effect::Instance(_)))
    }

    /// Whether a call has the same rights by both.
    pub(crate) fn gives_as(&self, other: &FunctionPolicy) -> bool {
        self.effects == other.effects && self.allocator == other.allocator
    }

    /// Of the allocator with this name.
    #[must_use]
    pub fn allocator(mut self, name: &'static str) -> FunctionPolicy {
        self.allocator = name;
        self
    }

    /// With this value if the call is ended.
    #[must_use]
    pub fn error(mut self, integer: i64) -> FunctionPolicy {
        self.error.integer = integer;
        self
    }
}

/// What a domain may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time of one call into it, with all that it calls. Looked at every few milliseconds.
    pub time: Option<Duration>,
    /// Bytes that allocators have given it.
    pub memory: u64,
    /// Bytes of each data stack, at most 6 MiB.
    pub stack: u64,
    /// Bytes of the module itself: its code, constants and data, as its file has them. The table takes half as much.
    pub image: u64,
}

impl Default for Limits {
    /// No limit on time, 1 GiB, 256 KiB, 256 MiB.
    fn default() -> Limits {
        Limits {
            time: None,
            memory: 1 << 30,
            stack: 256 << 10,
            image: 256 << 20,
        }
    }
}

/// A function that a module may call.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// Where it is; none if the resolver knows.
    pub(crate) address: Option<u64>,
    pub(crate) policy: Option<FunctionPolicy>,
}

/// What a domain may call, what its exports mean, and its limits.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(crate) offers: BTreeMap<String, Offer>,
    pub(crate) exports: BTreeMap<String, FunctionPolicy>,
    pub(crate) stacked: u8,
    pub(crate) limits: Limits,
    pub(crate) error: ErrorValue,
    pub(crate) data: BTreeMap<String, Data>,
    pub(crate) stays_mapped: bool,
    pub(crate) instances: bool,
}

/// A variable of the host that a module may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// None: what the symbol table of its file says.
    pub(crate) bytes: Option<u64>,
    pub(crate) write: bool,
}

impl Policy {
    /// It may call nothing.
    #[must_use]
    pub fn new() -> Policy {
        Policy::default()
    }

    /// It may call the function that the resolver finds by this name, which neither reads nor writes what it is given.
    #[must_use]
    pub fn allow(self, name: &str) -> Policy {
        self.offer_at(name, None, None)
    }

    /// As [`allow`](Self::allow), with a policy.
    #[must_use]
    pub fn allow_with(self, name: &str, policy: FunctionPolicy) -> Policy {
        self.offer_at(name, None, Some(policy))
    }

    /// It may call the function at this address by this name. The address may be a switch gate of another domain: then
    /// calls go there without the host.
    ///
    /// # Safety
    /// A function is there as long as the domain lives. It may be called with any arguments that `policy` lets through.
    #[must_use]
    pub unsafe fn offer(
        self,
        name: &str,
        address: usize,
        policy: Option<FunctionPolicy>,
    ) -> Policy {
        self.offer_at(name, Some(address as u64), policy)
    }

    /// It may read, or read and write, the variable of the host that the resolver finds by this name. `None` bytes is as
    /// many as the symbol table of the variable's file says. The variable stays where it is as long as the domain lives.
    #[must_use]
    pub fn data(mut self, name: &str, bytes: Option<u64>, write: bool) -> Policy {
        self.data.insert(name.to_owned(), Data { bytes, write });
        self
    }

    /// When the domain is unloaded, its memory stays mapped as it is. For hosts that keep pointers into modules that they
    /// have unloaded. Nobody else is given these addresses, so loading again and again uses memory up.
    #[must_use]
    pub fn stays_mapped(mut self) -> Policy {
        self.stays_mapped = true;
        self
    }

    /// The module has instances, also if no export names one by an argument. Its own data and what it is granted is then
    /// found by the longer way of a check.
    #[must_use]
    pub fn instances(mut self) -> Policy {
        self.instances = true;
        self
    }

    /// Whether it has.
    pub(crate) fn has_instances(&self) -> bool {
        let named = |effect: &Effect| matches!(effect, Effect::Instance(_));
        let mut exports = self.exports.values();
        self.instances || exports.any(|export| export.effects.iter().any(named))
    }

    fn offer_at(
        mut self,
        name: &str,
        address: Option<u64>,
        policy: Option<FunctionPolicy>,
    ) -> Policy {
        self.offers
            .insert(name.to_owned(), Offer { address, policy });
        self
    }

    /// What calls of an export mean.
    #[must_use]
    pub fn export(mut self, name: &str, policy: FunctionPolicy) -> Policy {
        self.exports.insert(name.to_owned(), policy);
        self
    }

    /// How many words of arguments on the stack all other functions of the module get, which hosts call by their addresses.
    #[must_use]
    pub fn stacked(mut self, words: u8) -> Policy {
        self.stacked = words.min(16);
        self
    }

    /// What ended calls of other exports return.
    #[must_use]
    pub fn error(mut self, value: ErrorValue) -> Policy {
        self.error = value;
        self
    }

    /// Its limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Policy {
        self.limits = limits;
        self
    }

    /// It may call the C library's allocator. Each block is the domain's until it is freed.
    #[must_use]
    pub fn allocators(self) -> Policy {
        let given = |size| FunctionPolicy::of(&[Effect::Gives(size)]);
        self.allow_with("malloc", given(Size::Argument(0)))
            .allow_with("calloc", given(Size::Product(0, 1)))
            .allow_with("aligned_alloc", given(Size::Argument(1)))
            .allow_with("free", FunctionPolicy::of(&[Effect::Frees(0)]))
            .allow_with(
                "realloc",
                FunctionPolicy::of(&[Effect::Moves(0, Size::Argument(1))]),
            )
    }
}
