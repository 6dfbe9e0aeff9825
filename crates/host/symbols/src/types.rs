//! Types, as far as they say how a value is passed.

use crate::Plain;
use crate::elf::LONGEST_NAME;
use crate::entry::{Entry, Place, Reading, UnitAt};
use crate::names::HOPS;
use crate::signature::{Class, DebugType};
use gimli::constants;

/// Types of types, at most: pointers to pointers, names of names.
const DEPTH: usize = 32;

/// The type that an entry says it has, or the one that it completes; `None`: not known, or void.
pub(crate) fn of<'a>(
    reading: &Reading<'a>,
    mut unit: UnitAt,
    entry: &Entry<'a>,
) -> Option<DebugType> {
    if let Some(of) = &entry.of {
        return resolve(reading, reading.follow(unit, of)?);
    }
    let mut next = reading.follow(unit, entry.origin.as_ref()?)?;
    for _ in 0..HOPS {
        let entry = reading.entry(next).ok()?;
        unit = next.unit;
        if let Some(of) = &entry.of {
            return resolve(reading, reading.follow(unit, of)?);
        }
        next = reading.follow(unit, entry.origin.as_ref()?)?;
    }
    None
}

/// What stands around a type on the way to what it is of.
enum Around {
    Const,
    Pointer(&'static str),
    Nothing,
}

/// The type at a place. Each step goes to one other place, and there are [`DEPTH`] of them.
pub(crate) fn resolve(reading: &Reading<'_>, mut place: Place) -> Option<DebugType> {
    let mut around = Vec::new();
    let mut found = None;
    // The outermost name is the one to show: of what it is a name, only the class is wanted.
    let mut named = None;
    for _ in 0..DEPTH {
        let Ok(entry) = reading.entry(place) else {
            break;
        };
        let Some(tag) = entry.tag else {
            break;
        };
        let step = match tag {
            constants::DW_TAG_typedef => {
                if named.is_none() {
                    let name = name(reading, place.unit, &entry);
                    named = Some((around.len(), name.unwrap_or_else(|| "a type".into())));
                }
                Around::Nothing
            }
            constants::DW_TAG_const_type => Around::Const,
            constants::DW_TAG_pointer_type => Around::Pointer("*"),
            constants::DW_TAG_reference_type | constants::DW_TAG_rvalue_reference_type => {
                Around::Pointer("&")
            }
            constants::DW_TAG_volatile_type
            | constants::DW_TAG_restrict_type
            | constants::DW_TAG_atomic_type => Around::Nothing,
            _ => {
                found = plain(reading, place.unit, &entry);
                break;
            }
        };
        around.push(step);
        match &entry.of {
            Some(of) => match reading.follow(place.unit, of) {
                Some(next) => place = next,
                None => break,
            },
            // Of nothing: `void`.
            None => {
                found = Some(DebugType {
                    class: Class::Other,
                    name: "void".into(),
                });
                break;
            }
        }
    }
    // What a pointer points to decides nothing.
    let pointer = around.iter().any(|step| matches!(step, Around::Pointer(_)));
    let unread = || DebugType {
        class: Class::Other,
        name: "?".into(),
    };
    let mut of = found.or_else(|| pointer.then(unread))?;
    for (position, step) in around.iter().enumerate().rev() {
        if let Some((at, name)) = &named
            && position == *at
        {
            of.name.clone_from(name);
        }
        match step {
            // A value's own `const` is nothing to whoever passes it.
            Around::Const if position == 0 => {}
            Around::Const => of.name = format!("const {}", of.name).into(),
            Around::Pointer(mark) => {
                let space = if of.name.ends_with(['*', '&']) {
                    ""
                } else {
                    " "
                };
                of.name = format!("{}{space}{mark}", of.name).into();
                of.class = Class::Integer(8);
            }
            Around::Nothing => {}
        }
    }
    Some(of)
}

/// A type that is of no other.
fn plain<'a>(reading: &Reading<'a>, unit: UnitAt, entry: &Entry<'a>) -> Option<DebugType> {
    let (class, otherwise) = match entry.tag? {
        constants::DW_TAG_base_type => {
            let class = match entry.encoding? {
                constants::DW_ATE_float => Class::Real(entry.size?),
                constants::DW_ATE_boolean
                | constants::DW_ATE_signed
                | constants::DW_ATE_unsigned
                | constants::DW_ATE_signed_char
                | constants::DW_ATE_unsigned_char
                | constants::DW_ATE_UTF => Class::Integer(entry.size?),
                _ => Class::Other,
            };
            (class, "a number")
        }
        constants::DW_TAG_enumeration_type => (Class::Integer(entry.size?), "an enumeration"),
        constants::DW_TAG_unspecified_type => (Class::Integer(8), "nullptr_t"),
        constants::DW_TAG_subroutine_type => (Class::Other, "function"),
        _ => (Class::Other, "a structure"),
    };
    Some(DebugType {
        class,
        name: name(reading, unit, entry).unwrap_or_else(|| otherwise.into()),
    })
}

fn name<'a>(reading: &Reading<'a>, unit: UnitAt, entry: &Entry<'a>) -> Option<Plain> {
    let opened = reading.open(unit).ok()?;
    Some(shortened(&reading.text(&opened.unit, &entry.name)?))
}

/// A name, but for what is too long.
pub(crate) fn shortened(name: &str) -> Plain {
    let name = Plain::from(name);
    match name.len() > LONGEST_NAME {
        true => name[..name.floor_char_boundary(LONGEST_NAME)].into(),
        false => name,
    }
}
