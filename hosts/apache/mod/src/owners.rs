//! Which module a name belongs to (`owners.txt`). A module is known by the name that its line of the configuration has, which it does
//! not choose. So the order in which modules are loaded says nothing, and neither does what a file exports.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    Exports,
    Functions,
    Providers,
    Locks,
    /// In small letters: httpd looks at names of filters without regard to case.
    Filters,
    /// Groups of providers.
    Groups,
}

struct Owners {
    whole: HashMap<(Of, &'static str), &'static str>,
    /// How names begin.
    beginnings: Vec<(Of, &'static str, &'static str)>,
}

fn owners() -> &'static Owners {
    static OWNERS: OnceLock<Owners> = OnceLock::new();
    OWNERS.get_or_init(|| {
        let mut owners = Owners {
            whole: HashMap::new(),
            beginnings: Vec::new(),
        };
        for line in include_str!("owners.txt").lines() {
            let mut words = line.split_ascii_whitespace();
            let of = match words.next() {
                Some("exports") => Of::Exports,
                Some("functions") => Of::Functions,
                Some("providers") => Of::Providers,
                Some("locks") => Of::Locks,
                Some("filters") => Of::Filters,
                Some("groups") => Of::Groups,
                _ => continue,
            };
            let module = words.next().unwrap_or_default();
            for name in words {
                match name.strip_suffix('*') {
                    Some(beginning) => owners.beginnings.push((of, beginning, module)),
                    None => drop(owners.whole.insert((of, name), module)),
                }
            }
        }
        owners
    })
}

/// The module that a name belongs to.
pub(crate) fn of(of: Of, name: &str) -> Option<&'static str> {
    let owners = owners();
    let whole = owners.whole.get(&(of, name)).copied();
    whole.or_else(|| {
        let mut beginnings = owners.beginnings.iter();
        let found = beginnings.find(|(kind, begins, _)| *kind == of && name.starts_with(begins));
        found.map(|(_, _, module)| *module)
    })
}

/// Whether a module works with modules that have a wall only if it has one itself: a group of providers is its own.
pub(crate) fn is_with_walled_alone(module: &str) -> bool {
    let mut all = owners().whole.iter();
    all.any(|((of, _), owner)| *of == Of::Groups && *owner == module)
}

/// Whether a module may offer something by a name: the name is its own, or nobody's in particular.
pub(crate) fn may_offer(module: &str, kind: Of, name: &[u8]) -> bool {
    let owner = std::str::from_utf8(name)
        .ok()
        .and_then(|name| of(kind, name));
    owner.is_none_or(|owner| owner == module)
}

/// The module that has a function or a variable of this name. A module's structure has the module's own.
pub(crate) fn of_export(name: &str) -> Option<&str> {
    match name.ends_with("_module") {
        true => Some(name),
        false => of(Of::Exports, name),
    }
}

/// A kind of locks of a module, as the server has it.
pub(crate) fn lock_of(module: &str, kind: &[u8]) -> Vec<u8> {
    let is_its = std::str::from_utf8(kind).is_ok_and(|kind| of(Of::Locks, kind) == Some(module));
    match is_its {
        true => kind.to_vec(),
        false => [module.as_bytes(), b":", kind].concat(),
    }
}
