//! The types of functions, as debug information states them.
//!
//! They are a help against mistakes, and no evidence: the image's author wrote them.

use crate::{Symbols, clean};
use gimli::{AttributeValue, EndianArcSlice, LittleEndian, UnitOffset, UnitRef, constants};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Reader = EndianArcSlice<LittleEndian>;
type Entry = gimli::DebuggingInformationEntry<Reader>;

/// Names of types within names of types, at most.
const DEPTH: usize = 32;
/// Parameters of a function, at most.
const MOST: usize = 256;

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What it returns; `None`: nothing.
    pub result: Option<Type>,
    /// What it takes; `None`: anything, as a declaration without a prototype or with an
    /// ellipsis says.
    pub parameters: Option<Vec<Type>>,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// How it is passed.
    pub class: Class,
    /// As the source has it, roughly.
    pub name: String,
}

/// How a value is passed, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An integer, character, truth value, enumeration or pointer.
    Integer(u64),
    /// A floating-point number.
    Real(u64),
    /// Something else: a structure, a complex number, a vector.
    Other,
}

impl fmt::Display for Class {
    /// As C names a type of that kind.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(bytes) => write!(formatter, "int{}_t", 8 * u128::from(*bytes)),
            Self::Real(4) => formatter.write_str("float"),
            Self::Real(8) => formatter.write_str("double"),
            Self::Real(bytes) => write!(formatter, "a number of {bytes} bytes"),
            Self::Other => formatter.write_str("something else"),
        }
    }
}

impl Symbols {
    /// The type of the function that begins at an offset in the window; `None`: nothing is
    /// known of it.
    #[must_use]
    pub fn signature(&self, offset: u64) -> Option<Signature> {
        catch_unwind(AssertUnwindSafe(|| self.look_up_signature(offset))).unwrap_or_default()
    }

    fn look_up_signature(&self, offset: u64) -> Option<Signature> {
        let context = self.context.as_ref()?;
        let unit = context.find_dwarf_and_unit(offset).skip_all_loads()?;
        let mut entries = unit.entries();
        let function = loop {
            let entry = entries.next_dfs().ok()??;
            if entry.tag() == constants::DW_TAG_subprogram && begins_at(&unit, entry, offset) {
                break entry.offset();
            }
        };
        signature(&unit, function)
    }
}

fn begins_at(unit: &UnitRef<'_, Reader>, entry: &Entry, offset: u64) -> bool {
    let low = entry.attr_value(constants::DW_AT_low_pc);
    let low = low.and_then(|low| unit.attr_address(low).ok().flatten());
    low == Some(offset)
}

fn signature(unit: &UnitRef<'_, Reader>, function: UnitOffset) -> Option<Signature> {
    let mut parameters = Vec::new();
    let mut any = false;
    let mut entries = unit.entries_at_offset(function).ok()?;
    entries.next_dfs().ok()??;
    let depth = entries.current()?.depth();
    while let Ok(Some(entry)) = entries.next_dfs() {
        match entry.depth() - depth {
            ..=0 => break,
            1 => {}
            _ => continue,
        }
        match entry.tag() {
            constants::DW_TAG_formal_parameter if parameters.len() < MOST => {
                let of = attribute(unit, entry.offset(), constants::DW_AT_type)?;
                parameters.push(reference(&of).and_then(|of| resolve(unit, of, 0))?);
            }
            constants::DW_TAG_formal_parameter => return None,
            constants::DW_TAG_unspecified_parameters => any = true,
            _ => {}
        }
    }
    let has_prototype = attribute(unit, function, constants::DW_AT_prototyped).is_some();
    let any = any || parameters.is_empty() && !has_prototype;
    let result = match attribute(unit, function, constants::DW_AT_type) {
        None => None,
        Some(of) => Some(reference(&of).and_then(|of| resolve(unit, of, 0))?),
    };
    Some(Signature {
        result,
        parameters: (!any).then_some(parameters),
    })
}

/// An attribute of an entry, or of the one that it completes.
fn attribute(
    unit: &UnitRef<'_, Reader>,
    mut entry: UnitOffset,
    name: constants::DwAt,
) -> Option<AttributeValue<Reader>> {
    for _ in 0..DEPTH {
        let this = unit.entry(entry).ok()?;
        if let Some(value) = this.attr_value(name) {
            return Some(value);
        }
        let outer = this
            .attr_value(constants::DW_AT_abstract_origin)
            .or_else(|| this.attr_value(constants::DW_AT_specification))?;
        entry = reference(&outer)?;
    }
    None
}

fn reference(value: &AttributeValue<Reader>) -> Option<UnitOffset> {
    match value {
        AttributeValue::UnitRef(offset) => Some(*offset),
        _ => None,
    }
}

fn resolve(unit: &UnitRef<'_, Reader>, offset: UnitOffset, depth: usize) -> Option<Type> {
    if depth > DEPTH {
        return None;
    }
    let entry = unit.entry(offset).ok()?;
    let name = entry
        .attr_value(constants::DW_AT_name)
        .and_then(|name| unit.attr_string(name).ok())
        .map(|name| clean(&String::from_utf8_lossy(&name)));
    let size = entry
        .attr_value(constants::DW_AT_byte_size)
        .and_then(|size| size.udata_value());
    let inner = || {
        let inner = entry.attr_value(constants::DW_AT_type)?;
        resolve(unit, reference(&inner)?, depth + 1)
    };
    let named = |class, otherwise: &str| Type {
        class,
        name: name.clone().unwrap_or_else(|| otherwise.to_owned()),
    };
    Some(match entry.tag() {
        constants::DW_TAG_base_type => {
            let encoding = match entry.attr_value(constants::DW_AT_encoding)? {
                AttributeValue::Encoding(encoding) => encoding,
                _ => return None,
            };
            let class = match encoding {
                constants::DW_ATE_float => Class::Real(size?),
                constants::DW_ATE_boolean
                | constants::DW_ATE_signed
                | constants::DW_ATE_unsigned
                | constants::DW_ATE_signed_char
                | constants::DW_ATE_unsigned_char
                | constants::DW_ATE_UTF => Class::Integer(size?),
                _ => Class::Other,
            };
            named(class, "a number")
        }
        constants::DW_TAG_enumeration_type => named(Class::Integer(size?), "an enumeration"),
        constants::DW_TAG_pointer_type
        | constants::DW_TAG_reference_type
        | constants::DW_TAG_rvalue_reference_type => {
            let to = inner().map_or_else(|| "void".to_owned(), |to| to.name);
            let mark = match entry.tag() {
                constants::DW_TAG_pointer_type => "*",
                _ => "&",
            };
            let space = if to.ends_with(['*', '&']) { "" } else { " " };
            named(Class::Integer(8), &format!("{to}{space}{mark}"))
        }
        constants::DW_TAG_typedef => named(inner()?.class, "a type"),
        constants::DW_TAG_const_type => Type {
            name: inner().map_or_else(
                || "const void".to_owned(),
                |of| format!("const {}", of.name),
            ),
            class: inner().map_or(Class::Other, |of| of.class),
        },
        constants::DW_TAG_volatile_type
        | constants::DW_TAG_restrict_type
        | constants::DW_TAG_atomic_type => inner()?,
        constants::DW_TAG_subroutine_type => named(Class::Other, "function"),
        _ => named(Class::Other, "a structure"),
    })
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result.as_ref().map_or("void", |of| &of.name);
        let parameters = match &self.parameters {
            None => "...".to_owned(),
            Some(list) if list.is_empty() => "void".to_owned(),
            Some(list) => {
                let names: Vec<_> = list.iter().map(|of| of.name.as_str()).collect();
                names.join(", ")
            }
        };
        write!(formatter, "{result} ({parameters})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signatures(source: &str, kind: &str, names: &[&str]) -> Vec<Option<Signature>> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = directory.path().join(format!("a.{kind}"));
        let program = directory.path().join("a");
        std::fs::write(&text, source).expect("a file");
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,first"]);
        let status = gcc.arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("gcc starts").success());
        let symbols = Symbols::new(&std::fs::read(program).expect("a program"));
        let find = |name: &&str| {
            let mut functions = symbols.functions().iter();
            let function = functions.find(|function| function.name == *name)?;
            symbols.signature(function.offset)
        };
        names.iter().map(find).collect()
    }

    fn shown(signature: &Option<Signature>) -> String {
        signature
            .as_ref()
            .map_or_else(|| "?".to_owned(), ToString::to_string)
    }

    #[test]
    fn types_of_c() {
        let source = "
            typedef unsigned long size; enum color { RED }; struct pair { int a, b; };
            int first(int a, const char *b, size c) { return a + *b + (int)c; }
            void nothing(void) {}
            float *real(double a, float b, _Bool c, enum color d, struct pair e) { (void)a; (void)b; (void)c; (void)d; (void)e; return 0; }
            int any(int a, ...) { return a; }
            long double wide(long double a) { return a; }
            int old() { return 1; }
        ";
        let names = ["first", "nothing", "real", "any", "wide", "old"];
        let found = signatures(source, "c", &names);
        let text: Vec<_> = found.iter().map(shown).collect();
        assert_eq!(
            text,
            [
                "int (int, const char *, size)",
                "void (void)",
                "float * (double, float, _Bool, color, pair)",
                "int (...)",
                "long double (long double)",
                "int (...)",
            ]
        );
        let real = found[2]
            .as_ref()
            .expect("known")
            .parameters
            .as_ref()
            .expect("known");
        let classes: Vec<_> = real.iter().map(|of| of.class).collect();
        assert_eq!(
            classes,
            [
                Class::Real(8),
                Class::Real(4),
                Class::Integer(1),
                Class::Integer(4),
                Class::Other
            ]
        );
    }

    #[test]
    fn a_function_that_is_inlined_elsewhere_too() {
        let source = "
            extern \"C\" __attribute__((always_inline)) inline int second(short a, int &b) { return a + b; }
            extern \"C\" int first(int a) { return second((short)a, a); }
            int (*keep)(short, int &) = second;
        ";
        let found = signatures(source, "cc", &["second", "first"]);
        assert_eq!(shown(&found[0]), "int (short int, int &)");
        assert_eq!(shown(&found[1]), "int (int)");
    }
}
