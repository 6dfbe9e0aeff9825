//! Reads the types of functions.

use crate::entry::{Place, Reading};
use crate::index::Tables;
use crate::names::HOPS;
use crate::{DebugSignature, DebugType, Symbols, Unknown, types};
use gimli::constants;

/// Parameters of a function, at most.
const MOST: usize = 256;

impl Symbols {
    /// As [`Symbols::signature`].
    pub(crate) fn signature_of(&mut self, offset: u64) -> Result<DebugSignature, Unknown> {
        let answer = self.ask(offset, |symbols, reading, found| {
            let function = found.function.filter(|_| found.begins);
            match function {
                _ if found.split => Err(Unknown::Split),
                None => Err(Unknown::NoInformation),
                Some(function) => symbols.read_signature(reading, function),
            }
        });
        answer.unwrap_or(Err(Unknown::NoInformation))
    }

    fn read_signature(
        &mut self,
        reading: &Reading<'_>,
        function: Place,
    ) -> Result<DebugSignature, Unknown> {
        let chain = origins(reading, function);
        let typed = chain.iter().any(|place| {
            self.with_index(|index, elf, allowance| {
                let tables = index.tables(elf, place.unit, allowance);
                tables.is_some_and(Tables::is_typed)
            })
            .unwrap_or(false)
        });
        if !typed {
            return Err(Unknown::NoTypes);
        }
        signature(reading, &chain).ok_or(Unknown::Unreadable)
    }
}

/// A function's entry, and those that it is a copy of or completes, one after the other.
fn origins(reading: &Reading<'_>, function: Place) -> Vec<Place> {
    let mut chain = vec![function];
    for _ in 0..HOPS {
        let last = *chain.last().unwrap_or(&function);
        let origin = reading.entry(last).ok().and_then(|entry| entry.origin);
        match origin.and_then(|origin| reading.follow(last.unit, &origin)) {
            Some(next) => chain.push(next),
            None => break,
        }
    }
    chain
}

/// What the entries of a chain say together. The one with most parameters is believed: a
/// declaration in a class may leave them to the definition, a clone those that it does not use.
fn signature(reading: &Reading<'_>, chain: &[Place]) -> Option<DebugSignature> {
    let (mut parameters, mut result) = (Vec::new(), None);
    let (mut any, mut prototyped) = (false, false);
    for place in chain {
        let entry = reading.entry(*place).ok()?;
        let opened = reading.open(place.unit).ok()?;
        // In C, and there alone, a declaration may leave open what a function takes.
        prototyped |= entry.prototyped || !is_c(opened.root.language);
        if result.is_none() && entry.of.is_some() {
            result = Some(types::of(reading, place.unit, &entry)?);
        }
        let found = read_parameters(reading, *place, &mut any)?;
        if found.len() > parameters.len() {
            parameters = found;
        }
    }
    let any = any || parameters.is_empty() && !prototyped;
    Some(DebugSignature {
        result,
        parameters: (!any).then_some(parameters),
    })
}

fn read_parameters(reading: &Reading<'_>, place: Place, any: &mut bool) -> Option<Vec<DebugType>> {
    let tags = [
        constants::DW_TAG_formal_parameter,
        constants::DW_TAG_unspecified_parameters,
    ];
    let (mut parameters, mut whole) = (Vec::new(), true);
    let read = reading.children(place, &tags, |child| {
        if child.tag == Some(constants::DW_TAG_unspecified_parameters) {
            *any = true;
        } else {
            match types::of(reading, place.unit, &child) {
                Some(of) if parameters.len() < MOST => parameters.push(of),
                _ => whole = false,
            }
        }
        Ok(())
    });
    (read.is_ok() && whole).then_some(parameters)
}

const fn is_c(language: Option<constants::DwLang>) -> bool {
    matches!(
        language,
        None | Some(
            constants::DW_LANG_C
                | constants::DW_LANG_C89
                | constants::DW_LANG_C99
                | constants::DW_LANG_C11
                | constants::DW_LANG_C17
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    fn signatures(
        source: &str,
        kind: &str,
        names: &[&str],
    ) -> Vec<Result<DebugSignature, Unknown>> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = directory.path().join(format!("a.{kind}"));
        let program = directory.path().join("a");
        std::fs::write(&text, source).expect("a file");
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,first"]);
        let status = gcc.arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("gcc starts").success());
        let mut symbols = Symbols::new(std::fs::read(program).expect("a program"));
        let mut find = |name: &&str| {
            let function = symbols.functions().find(|function| function.name == *name);
            symbols.signature(function.expect("it is there").offset)
        };
        names.iter().map(&mut find).collect()
    }

    fn shown(signature: &Result<DebugSignature, Unknown>) -> String {
        match signature {
            Ok(signature) => signature.to_string(),
            Err(unknown) => unknown.to_string(),
        }
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
