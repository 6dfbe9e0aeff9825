//! Functions in tables of modules: no policy lends more than the kernel has in their arguments.
//!
//! ```text
//!   serpent_generic.toml: serpent_encrypt: in(tfm, 560) out(to, 16) in(from, 16)
//!   mullion_register.c:   cia_encrypt:     560 to read, 16 to write, 16 to read      ──► registered, or refused
//! ```
//!
//! A module says where its functions stand in a table, and how large what they get is. Policies speak of functions by their names. So
//! both are compared when a table is registered. `mullion_register.c` is the other side of this.

use crate::{WALL, live, types};
use mullion_word::runtime::{Bits, Domain, Effect, Granted, Number, Size, Sum, Term};
use mullion_word_policy::File;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How an argument says how much there is: the numbers of `enum how`.
const READ_COUNTED: c_uint = 1;
const WRITE_COUNTED: c_uint = 2;
const WRITE_COUNTED_THERE: c_uint = 3;
const TEXT: c_uint = 4;

/// `struct mullion_argument` of the kernel's modules.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Argument {
    reads: c_uint,
    writes: c_uint,
    counter: c_uint,
    how: c_uint,
}

/// What the policy of a module says of its functions.
#[derive(Clone, Default)]
pub(crate) struct Said {
    functions: Vec<(String, Vec<Effect>)>,
    /// Those that write a context behind the kernel's own words.
    contexts: BTreeSet<String>,
}

impl Said {
    pub(crate) fn of(file: &File) -> Said {
        let function = |(name, export): (&String, &mullion_word_policy::Export)| {
            (name.clone(), export.call.effects.clone())
        };
        let contexts = file.groups.get("contexts").into_iter().flatten();
        Said {
            functions: file.exports.iter().map(function).collect(),
            contexts: contexts.cloned().collect(),
        }
    }
}

/// A function of a module of which its policy says something.
struct Function {
    domain: Domain,
    name: String,
    gate: u64,
    effects: Vec<Effect>,
    has_context: bool,
}

static FUNCTIONS: Mutex<Vec<Function>> = Mutex::new(Vec::new());

fn functions() -> MutexGuard<'static, Vec<Function>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A module was loaded, perhaps again.
pub(crate) fn has_said(domain: Domain, said: &Said) {
    let mut functions = functions();
    functions.retain(|one| live::runs(one.domain.id().get()));
    for (name, effects) in &said.functions {
        let Some(gate) = domain.function(name) else {
            continue;
        };
        functions.push(Function {
            domain,
            name: name.clone(),
            gate: gate as u64,
            effects: effects.clone(),
            has_context: said.contexts.contains(name),
        });
    }
}

/// The function at an address that a table of the module has: its own, or another module's that its policy names.
fn find<T>(domain: &Domain, address: u64, then: impl Fn(&Function) -> T) -> Option<T> {
    let functions = functions();
    let own = functions.iter().rfind(|one| one.gate == address);
    let own = own.filter(|one| one.domain.id() == domain.id());
    let named = || {
        let name = types::named_in_tables(domain, address)?;
        functions.iter().rfind(|one| one.name == name)
    };
    own.or_else(named).map(then)
}

/// Whether the kernel may call a function with these arguments.
pub(crate) extern "C" fn fits(
    number: c_ulong,
    address: c_ulong,
    arguments: *const Argument,
) -> c_int {
    let Some(domain) = WALL.get().and_then(|wall| wall.domain(number)) else {
        return 0;
    };
    // SAFETY: the kernel's module has six of them, and waits.
    let arguments = unsafe { *arguments.cast::<[Argument; 6]>() };
    let lends_no_more =
        |one: &Function| one.effects.iter().all(|effect| fits_in(effect, &arguments));
    let fits = types::may_call(&domain, address)
        // A function of which no policy speaks is lent nothing.
        && find(&domain, address, lends_no_more).unwrap_or(true);
    c_int::from(fits)
}

/// Whether an effect lends no more than the kernel has there.
fn fits_in(effect: &Effect, arguments: &[Argument; 6]) -> bool {
    let (at, size, writes) = match effect {
        Effect::In(at, size) | Effect::CopyIn(at, size) => (*at, *size, false),
        Effect::Out(at, size) | Effect::InOut(at, size) | Effect::CopyInOut(at, size) => {
            (*at, *size, true)
        }
        // The others are for calls of the kernel, or hand something over.
        _ => return false,
    };
    let Some(argument) = arguments.get(usize::from(at)) else {
        return false;
    };
    let counted = || {
        let number = counter(size)?;
        let is_it = u32::from(number.argument) + 1 == argument.counter;
        let is_there = number.field == Some(0) && number.bits == Bits::U32;
        Some(match argument.how {
            READ_COUNTED => is_it && number.field.is_none() && !writes,
            WRITE_COUNTED => is_it && number.field.is_none(),
            WRITE_COUNTED_THERE => is_it && is_there,
            _ => false,
        })
    };
    match size {
        Size::Bytes(bytes) => {
            let most = if writes {
                argument.writes
            } else {
                argument.reads
            };
            bytes <= u64::from(most)
        }
        Size::Text => argument.how == TEXT && !writes,
        _ => counted().unwrap_or(false),
    }
}

/// The argument that says how many bytes there are, if nothing else does.
fn counter(size: Size) -> Option<Number> {
    match size {
        Size::Argument(at) => Some(Number::of(at, Bits::U64)),
        Size::Sum(Sum(
            [
                Some(Term {
                    times: 1,
                    factors: [Some(number), None],
                }),
                None,
                None,
            ],
        )) => Some(number),
        _ => None,
    }
}

/// Lends a context to a function for one call. Null: its policy does not say that it writes one.
pub(crate) extern "C" fn lend(
    number: c_ulong,
    address: c_ulong,
    start: c_ulong,
    bytes: c_ulong,
) -> *mut c_void {
    let none = std::ptr::null_mut();
    let Some(wall) = WALL.get() else {
        return none;
    };
    let Some(domain) = wall.domain(number).filter(|_| bytes != 0) else {
        return none;
    };
    let of = |one: &Function| one.has_context.then_some(one.domain);
    let Some(domain) = find(&domain, address, of).flatten() else {
        return none;
    };
    let (start, bytes) = (start as usize, bytes as usize);
    // SAFETY: the kernel has made this memory for what the module keeps of an algorithm, and follows nothing there.
    match unsafe { wall.host.grant_for(&domain, start, bytes, true) } {
        Ok(granted) => Box::into_raw(Box::new(granted)).cast(),
        Err(_) => none,
    }
}

/// The call has returned.
pub(crate) extern "C" fn end(loan: *mut c_void) {
    if !loan.is_null() {
        // SAFETY: `lend` has made it, and the kernel's module gives it back once.
        drop(unsafe { Box::from_raw(loan.cast::<Granted>()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(reads: c_uint, writes: c_uint, counter: c_uint, how: c_uint) -> Argument {
        Argument {
            reads,
            writes,
            counter,
            how,
        }
    }

    /// As of `cia_encrypt`, of `update` and of `coa_compress`.
    #[test]
    fn a_policy_lends_no_more_than_there_is() {
        let none = Argument::default();
        let context = argument(560, 0, 0, 0);
        let block = argument(16, 16, 0, 0);
        let all = [context, block, none, none, none, none];
        let fits = |text: &str| {
            let text = format!(
                "[export.f]\nparameters = [\"a\", \"b\", \"unsigned int c\"]\neffects = [{text}]\n"
            );
            let file = File::parse(&text).expect("a policy");
            let effects = &file.exports["f"].call.effects;
            effects.iter().all(|effect| fits_in(effect, &all))
        };
        assert!(fits("\"in(a, 560)\", \"out(b, 16)\""));
        assert!(!fits("\"in(a, 561)\""));
        assert!(!fits("\"inout(a, 8)\""));
        assert!(!fits("\"out(b, 17)\""));
        assert!(!fits("\"in(b, c)\""));
        // There is nothing in this one.
        assert!(!fits("\"in(c, 1)\""));
        assert!(!fits("\"string(a)\""));
        assert!(!fits("\"takes(a, 8)\""));
    }

    #[test]
    fn counters_are_the_kernel_s_own() {
        let none = Argument::default();
        let all = [
            argument(0, 0, 3, READ_COUNTED),
            argument(0, 0, 5, WRITE_COUNTED_THERE),
            none,
            argument(0, 0, 3, WRITE_COUNTED),
            argument(4, 4, 0, 0),
            argument(0, 0, 0, TEXT),
        ];
        let fits = |text: &str| {
            let names = "\"a\", \"b\", \"unsigned int c\", \"d\", \"e\", \"f\"";
            let text = format!("[export.f]\nparameters = [{names}]\neffects = [\"{text}\"]\n");
            let file = File::parse(&text).expect("a policy");
            let effects = &file.exports["f"].call.effects;
            effects.iter().all(|effect| fits_in(effect, &all))
        };
        for right in [
            "in(a, c)",
            "out(b, e@0:u32)",
            "out(d, c)",
            "inout(e, 4)",
            "string(f)",
        ] {
            assert!(fits(right), "{right}");
        }
        let wrong = [
            "out(a, c)",
            "in(a, 2 * c)",
            "in(a, c + 1)",
            "in(a, d)",
            "in(a, 1)",
            "out(b, e@4:u32)",
            "out(b, e@0:u64)",
            "out(b, c)",
            "out(d, e@0:u32)",
            "string(a)",
        ];
        for wrong in wrong {
            assert!(!fits(wrong), "{wrong}");
        }
    }
}
