//! Names of functions.
//!
//! A name of C++ is put together from the entries around it and from the types of its parameters, not
//! demangled. A mangled name can stand for one that is exponentially longer, and that takes as long to find
//! out.

use crate::entry::{Place, Reading};
use crate::{Plain, Symbols, types};
use gimli::{UnitRef, constants};

/// Entries that complete each other, at most.
pub(crate) const HOPS: usize = 16;
/// Names around a name that are shown.
const SCOPES: usize = 16;
/// Parameters that are shown.
const SHOWN: usize = 16;

/// The name of a function's entry.
pub(crate) fn function(
    symbols: &mut Symbols,
    reading: &Reading<'_>,
    mut place: Place,
) -> Option<Plain> {
    let (mut name, mut linkage) = (None, None);
    let mut shown = Vec::new();
    for _ in 0..HOPS {
        let Ok(entry) = reading.entry(place) else {
            break;
        };
        let opened = reading.open(place.unit).ok()?;
        let unit = UnitRef::new(&reading.dwarf, &opened.unit);
        // The definition may have parameters that the declaration leaves to it.
        let found = parameters(reading, place);
        if found.len() > shown.len() {
            shown = found;
        }
        name = name.or_else(|| reading.text(&unit, &entry.name));
        linkage = linkage.or_else(|| reading.text(&unit, &entry.linkage));
        match entry
            .origin
            .and_then(|origin| reading.follow(place.unit, &origin))
        {
            Some(next) => place = next,
            None => break,
        }
    }
    let Some(linkage) = linkage else {
        return name.map(Plain::from);
    };
    if let Ok(rust) = rustc_demangle::try_demangle(&linkage) {
        return Some(bounded(&rust).into());
    }
    match name {
        Some(name) if linkage.starts_with("_Z") => {
            let name = format!("{name}({})", shown.join(", "));
            Some(qualified(symbols, reading, place, name).into())
        }
        _ => Some(linkage.into()),
    }
}

/// A function of C++ with the names around it.
fn qualified(symbols: &mut Symbols, reading: &Reading<'_>, place: Place, name: String) -> String {
    let mut names = vec![name];
    for scope in symbols.scopes(place, SCOPES) {
        let scope = Place {
            entry: scope,
            ..place
        };
        let name = reading.entry(scope).ok().and_then(|entry| {
            let opened = reading.open(scope.unit).ok()?;
            reading.text(&opened.unit, &entry.name)
        });
        names.push(name.unwrap_or_else(|| "(anonymous)".to_owned()));
    }
    names.reverse();
    names.join("::")
}

fn parameters(reading: &Reading<'_>, place: Place) -> Vec<String> {
    let mut names = Vec::new();
    let tags = [
        constants::DW_TAG_formal_parameter,
        constants::DW_TAG_unspecified_parameters,
    ];
    let read = reading.children(place, &tags, |entry| {
        if entry.artificial || names.len() > SHOWN {
            return Ok(());
        }
        let of = match entry.tag {
            Some(constants::DW_TAG_unspecified_parameters) => Some("...".to_owned()),
            _ if names.len() == SHOWN => Some("...".to_owned()),
            _ => types::of(reading, place.unit, &entry).map(|of| of.name.into()),
        };
        names.push(of.unwrap_or_else(|| "?".to_owned()));
        Ok(())
    });
    match read {
        Ok(()) => names,
        Err(_) => vec!["?".to_owned()],
    }
}

/// The first bytes of what a name of Rust stands for; `rustc-demangle` has a bound of its own, which is higher.
fn bounded(name: &rustc_demangle::Demangle<'_>) -> String {
    use std::fmt::Write as _;
    struct Bounded(String);
    impl std::fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let room = crate::elf::LONGEST_NAME.saturating_sub(self.0.len());
            match text.is_char_boundary(room.min(text.len())) && text.len() <= room {
                true => {
                    self.0.push_str(text);
                    Ok(())
                }
                false => Err(std::fmt::Error),
            }
        }
    }
    let mut text = Bounded(String::new());
    // What is longer is cut.
    let _written = write!(text, "{name:#}");
    text.0
}
