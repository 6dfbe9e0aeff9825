//! Names and lines of an image: what a report of a fault says about its place.
//!
//! The symbol table and the debug information were written by the image's
//! author. They are read in a safe language, when somebody asks; what
//! they say is for people to read and decides nothing. All of it is
//! [`Plain`] text.
//!
//! ```text
//! elf.rs     sections and symbols       budget.rs  every read takes a step; when none
//! index.rs   unit, function, line                  is left, reading fails
//!            of an address: kept        entry.rs   units and entries, one at a time
//! place.rs   inlined functions, files   names.rs, types.rs, signature.rs
//! field.rs   types and members of what variables point to      word.rs     for modules of the word wall
//! ```
//!
//! A question takes at most `QUESTION` steps. The tables that are kept of an image take steps
//! and memory in proportion to its debug information and below fixed bounds (`index::Allowance`).
//! Without the feature `dwarf` (on by default), and in [`Symbols::without_debug_information`], the symbol table is all
//! that is read.
//! Nothing recurses. A panic costs the names and nothing else, where panics unwind.
#![forbid(unsafe_code)]

#[cfg(feature = "dwarf")]
mod budget;
/// What debug information says: read, or, without the feature, nothing.
#[cfg_attr(feature = "dwarf", path = "debug/read.rs")]
#[cfg_attr(not(feature = "dwarf"), path = "debug/none.rs")]
mod debug;
mod elf;
#[cfg(feature = "dwarf")]
mod entry;
#[cfg(feature = "dwarf")]
mod field;
#[cfg(feature = "dwarf")]
mod function;
#[cfg(feature = "dwarf")]
mod index;
#[cfg(feature = "dwarf")]
mod names;
#[cfg(feature = "dwarf")]
mod place;
mod signature;
#[cfg(all(test, feature = "dwarf"))]
mod tests;
#[cfg(feature = "dwarf")]
mod types;
#[cfg(feature = "word")]
mod word;

pub use signature::{Class, DebugSignature, DebugType, Unknown};

pub use mullion_plain::Plain;

use debug::Debug;
use elf::Elf;
use std::fmt;
use std::sync::Arc;

/// Names and lines of one image, if it has any that can be read.
pub struct Symbols {
    elf: Arc<Elf>,
    /// Nothing, if debug information is not to be read.
    debug: Option<Debug>,
}

/// A function of the image's symbol table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DebugFunction {
    /// Offset in the window.
    pub offset: u64,
    /// Bytes of code; 0 if the table does not say.
    pub size: u64,
    /// Its name as the linker knows it.
    pub name: Plain,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, demangled.
    pub function: Option<Plain>,
    /// The source file, as the compiler was given it.
    pub file: Option<Plain>,
    /// The line in it.
    pub line: Option<u32>,
}

/// What code had at an instruction.
#[derive(Clone, Copy)]
pub struct CodeState<'a> {
    /// The registers, by their numbers in machine code.
    pub registers: &'a [u64; 16],
    /// The word of eight bytes at an address of its stack, or `None` if it is not known. The debug information chooses the address, so this
    /// must look at nothing but what is the code's own.
    pub memory: &'a dyn Fn(u64) -> Option<u64>,
}

/// What an address is to the code that reaches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugField {
    /// The variable that points there, or that lies there.
    pub variable: Plain,
    /// The type of what is there, as the source calls it.
    pub of: Plain,
    /// The bytes of the type.
    pub bytes: u64,
    /// The member of it, and members of members: `head.next`, `rows[3].id`. Empty if it has none there.
    pub member: Plain,
    /// How many bytes into the type.
    pub distance: u64,
    /// If the variable is a parameter of the function: which one.
    pub parameter: Option<u8>,
}

impl fmt::Display for DebugField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DebugField {
            variable,
            of,
            member,
            distance,
            ..
        } = self;
        match member.is_empty() {
            true => write!(formatter, "byte {distance} of `{of}`, by `{variable}`"),
            false => write!(formatter, "`{member}` of `{of}`, by `{variable}`"),
        }
    }
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
    /// Names of an image file. Its tables are read now, its debug information when it is needed.
    #[must_use]
    pub fn new(image: impl Into<Arc<[u8]>>) -> Self {
        let elf = Arc::new(Elf::new(image.into()));
        Self {
            debug: Debug::new(&elf),
            elf,
        }
    }

    /// As [`Symbols::new`], of the symbol table alone: debug information is never read.
    #[must_use]
    pub fn without_debug_information(image: impl Into<Arc<[u8]>>) -> Self {
        Self {
            debug: None,
            ..Self::new(image)
        }
    }

    /// The functions of the symbol table, by offset. A table whose names are longer in sum
    /// than four times the bytes that they are in goes on without.
    pub fn functions(&self) -> impl Iterator<Item = DebugFunction> + '_ {
        let mut room = 4 * self.elf.name_bytes() + elf::LONGEST_NAME;
        self.elf.symbols().iter().map(move |symbol| {
            let name = self.elf.name(symbol).unwrap_or_default();
            let name = if name.len() <= room { name } else { b"" };
            room -= name.len();
            DebugFunction {
                offset: symbol.offset,
                size: symbol.size,
                name: (*String::from_utf8_lossy(name)).into(),
            }
        })
    }

    /// Where the instruction at an offset in the window comes from: the innermost
    /// place first where functions were inlined; empty if nothing is known.
    #[must_use]
    pub fn find(&mut self, offset: u64) -> Vec<Location> {
        let mut found = self.locations_of(offset);
        if found.is_empty() {
            found.extend(self.function_at(offset).map(|name| Location {
                function: Some(name),
                ..Location::default()
            }));
        }
        found
    }

    /// The type of the function that begins at an offset in the window.
    ///
    /// # Errors
    /// Why nothing is known of it.
    pub fn signature(&mut self, offset: u64) -> Result<DebugSignature, Unknown> {
        match self.debug {
            Some(_) => self.signature_of(offset),
            None => Err(Unknown::NotRead),
        }
    }

    /// What an address is to the instruction at an offset in the window: a member of what one of its variables points to.
    /// The variable must be in a register there, or in the function's frame where `state` has memory of it.
    #[must_use]
    pub fn field(
        &mut self,
        offset: u64,
        state: &CodeState<'_>,
        address: u64,
    ) -> Option<DebugField> {
        self.field_at(offset, state, address)
    }

    /// What is so many bytes into a global variable, by what the unit of the instruction at an offset declares.
    #[must_use]
    pub fn field_of_global(
        &mut self,
        offset: u64,
        name: &str,
        distance: u64,
    ) -> Option<DebugField> {
        self.global_at(offset, name, distance)
    }

    /// What an address is to the instruction at an offset, by [`field`](Self::field), or else by
    /// [`field_of_global`](Self::field_of_global) of a variable that it is in. Parameters have their numbers if the code is
    /// of the function with this name.
    #[must_use]
    pub fn reached(
        &mut self,
        offset: u64,
        (state, address): (&CodeState<'_>, u64),
        variable: Option<(&str, u64)>,
        function: &str,
    ) -> Option<DebugField> {
        let mut found = self.field(offset, state, address);
        if found.is_none() {
            let (name, distance) = variable?;
            found = self.field_of_global(offset, name, distance);
        }
        let mut found = found?;
        // The last place is that of the function which is no inlined one.
        let is_of_it = |place: &Location| place.function.as_deref() == Some(function);
        if !self.find(offset).last().is_some_and(is_of_it) {
            found.parameter = None;
        }
        Some(found)
    }

    /// The function of the symbol table that holds `offset`.
    #[must_use]
    pub fn function_at(&self, offset: u64) -> Option<Plain> {
        let symbols = self.elf.symbols();
        let next = symbols.partition_point(|symbol| symbol.offset <= offset);
        let symbol = symbols.get(next.checked_sub(1)?)?;
        let name = self.elf.name(symbol)?;
        let within = offset - symbol.offset < symbol.size.max(1);
        within.then(|| (*String::from_utf8_lossy(name)).into())
    }

    /// Whether some answer is not whole, because it would have taken more work than the size of
    /// the image's debug information explains.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.debug.as_ref().is_some_and(Debug::is_exhausted)
    }

    /// Steps that all answers so far have taken: reads of debug information, roughly.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.debug.as_ref().map_or(0, Debug::steps)
    }
}
