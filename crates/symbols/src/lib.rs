//! Names and lines of an image: what a report of a fault says about its place.
//!
//! The symbol table and the debug information were written by the image's
//! author. They are read by a parser in a safe language, when somebody asks; what
//! they say is for people to read and decides nothing. Control characters in it
//! are escaped. A parser that panics costs the names and nothing else.
#![forbid(unsafe_code)]

mod signature;

pub use signature::{Class, Signature, Type};

use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Names and lines of one image, if it has any that can be read.
pub struct Symbols {
    context: Option<addr2line::Context<EndianArcSlice<LittleEndian>>>,
    functions: Vec<Function>,
}

/// A function of the image's symbol table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Offset in the window.
    pub offset: u64,
    /// Bytes of code; 0 if the table does not say.
    pub size: u64,
    /// Its name as the linker knows it.
    pub name: String,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, demangled.
    pub function: Option<String>,
    /// The source file, as the compiler was given it.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.function.as_deref().unwrap_or_default())?;
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(formatter, " ({file}:{line})")?;
        }
        Ok(())
    }
}

impl Symbols {
    /// Reads what an image file says about itself.
    #[must_use]
    pub fn new(image: &[u8]) -> Self {
        let read = catch_unwind(AssertUnwindSafe(|| Self::read(image)));
        read.ok().flatten().unwrap_or(Self {
            context: None,
            functions: Vec::new(),
        })
    }

    fn read(image: &[u8]) -> Option<Self> {
        let file = object::File::parse(image).ok()?;
        let section = |id: SectionId| -> Result<_, std::convert::Infallible> {
            let data = file
                .section_by_name(id.name())
                .and_then(|section| section.data().ok());
            Ok(EndianArcSlice::new(
                Arc::from(data.unwrap_or_default()),
                LittleEndian,
            ))
        };
        let Ok(dwarf) = Dwarf::load(section);
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text)
            .filter_map(|symbol| {
                Some(Function {
                    offset: symbol.address(),
                    size: symbol.size(),
                    name: clean(symbol.name().ok()?),
                })
            });
        let mut functions: Vec<_> = functions.collect();
        functions.sort();
        Some(Self {
            context: addr2line::Context::from_dwarf(dwarf).ok(),
            functions,
        })
    }

    /// The functions of the symbol table, by offset.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Where the instruction at an offset in the window comes from: the innermost
    /// place first where functions were inlined; empty if nothing is known.
    #[must_use]
    pub fn find(&self, offset: u64) -> Vec<Location> {
        let mut found = catch_unwind(AssertUnwindSafe(|| self.look_up(offset))).unwrap_or_default();
        if found.is_empty() {
            found.extend(self.function_at(offset).map(|name| Location {
                function: Some(name.to_owned()),
                ..Location::default()
            }));
        }
        found
    }

    fn look_up(&self, offset: u64) -> Vec<Location> {
        let mut found = Vec::new();
        if let Some(context) = &self.context
            && let Ok(mut frames) = context.find_frames(offset).skip_all_loads()
        {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref();
                let name = name.and_then(|name| {
                    let raw = name.raw_name().ok()?;
                    // What is not mangled is no code of C++ either, where `f` stands for `float`.
                    let mangled = raw.starts_with("_Z") || raw.starts_with("_R");
                    let text = if mangled { name.demangle().ok()? } else { raw };
                    Some(clean(&text))
                });
                let place = frame.location.as_ref();
                found.push(Location {
                    function: name.or_else(|| self.function_at(offset).map(str::to_owned)),
                    file: place.and_then(|place| place.file).map(clean),
                    line: place.and_then(|place| place.line),
                });
            }
        }
        found
    }

    /// The function of the symbol table that holds `offset`.
    #[must_use]
    pub fn function_at(&self, offset: u64) -> Option<&str> {
        let next = self
            .functions
            .partition_point(|function| function.offset <= offset);
        let function = self.functions.get(next.checked_sub(1)?)?;
        (offset - function.offset < function.size.max(1)).then_some(&*function.name)
    }
}

/// Text of an image's author, fit for a terminal: control characters escaped.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_has_no_names() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
            let symbols = Symbols::new(bytes);
            assert!(symbols.functions().is_empty());
            assert!(symbols.find(0x20000).is_empty());
        }
    }

    #[test]
    fn this_very_program_knows_its_lines() {
        let path = std::env::current_exe().expect("a test has a file");
        let symbols = Symbols::new(&std::fs::read(path).expect("it can be read"));
        let known = symbols
            .functions()
            .iter()
            .find(|function| function.name.contains("what_is_no_image_has_no_names"))
            .expect("a test is a function");
        let found = symbols.find(known.offset);
        let last = found.last().expect("a place");
        assert!(last.file.as_ref().expect("a file").ends_with("lib.rs"));
        assert_eq!(symbols.function_at(known.offset), Some(&*known.name));
    }

    /// Mutants of a small program's debug information; each is asked for what the
    /// whole program knows, and may know anything.
    #[test]
    fn hostile_debug_information_is_survived() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (text, program) = (directory.path().join("a.c"), directory.path().join("a"));
        let code = "static int g(int x) { return x * 3; }\nint f(int x) { return g(x) + 1; }\n";
        std::fs::write(&text, code).expect("a file");
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,f"]);
        let status = gcc.arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("gcc starts").success());
        let bytes = std::fs::read(&program).expect("a program");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let place = file.entry();
        let found = Symbols::new(&bytes).find(place);
        assert!(found.iter().any(|found| found.line == Some(2)), "{found:?}");
        let debug = |name: &str| name.starts_with(".debug");
        let ranges: Vec<(u64, u64)> = file
            .sections()
            .filter(|section| section.name().is_ok_and(debug))
            .filter_map(|section| section.file_range())
            .collect();
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below.max(1)
        };
        for _ in 0..5000 {
            let mut mutant = bytes.clone();
            for _ in 0..=random(4) {
                let (start, length) = ranges[random(ranges.len() as u64) as usize];
                let at = (start + random(length)) as usize;
                mutant[at] = [0, 0xff, 0x7f, 0x80, random(256) as u8][random(5) as usize];
            }
            let symbols = Symbols::new(&mutant);
            for offset in place..place + 8 {
                assert!(symbols.find(offset).len() < 100);
            }
        }
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (text, program) = (directory.path().join("a.cc"), directory.path().join("a"));
        let code = "extern \"C\" int f(int x) { return x + 1; }\nnamespace n { int g(int x) { return x * 3; } }\n";
        std::fs::write(&text, code).expect("a file");
        let mut gcc = std::process::Command::new("g++");
        gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,f"]);
        let status = gcc.arg(&text).arg("-o").arg(&program).status();
        assert!(status.expect("g++ starts").success());
        let symbols = Symbols::new(&std::fs::read(program).expect("a program"));
        let found = symbols.functions().iter();
        let found = found.map(|function| symbols.find(function.offset)[0].function.clone());
        let found: Vec<_> = found.flatten().collect();
        assert_eq!(found, ["f", "n::g(int)"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(clean("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        let location = Location {
            function: Some("f".to_owned()),
            file: Some("a.c".to_owned()),
            line: Some(3),
        };
        assert_eq!(location.to_string(), "f (a.c:3)");
    }
}
