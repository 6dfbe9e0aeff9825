//! What the loader must know of a module.

use crate::memory;
use mullion_word_abi::{Protection, SLOT_FIRST_IMPORT, WORD};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use thiserror::Error;

/// What a segment's pages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Constants.
    Read,
    /// Code.
    Execute,
    /// Data.
    Write,
}

/// A segment. Addresses are the file's: the first page of a module is page 0.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First address, page aligned.
    pub address: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// What it begins with, in the file; zeros follow.
    pub content: Range<usize>,
    /// What its pages may be.
    pub access: Access,
}

/// A word of 8 bytes that the loader writes.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Where.
    pub at: u64,
    /// What.
    pub value: Value,
    /// Added to it.
    pub addend: i64,
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Where the module is.
    Base,
    /// The symbol with this index.
    Symbol(usize),
}

/// A dynamic symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its address in the file; none if the host has it.
    pub value: Option<u64>,
    /// Whether it may be missing.
    pub weak: bool,
}

/// The thread-local segment.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Initial content, in the file.
    pub content: Range<usize>,
    /// Bytes of each thread's copy.
    pub bytes: u64,
    /// Alignment.
    pub alignment: u64,
}

/// A switch gate and the body behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Of the `endbr64`.
    pub address: u64,
    /// Where the function begins.
    pub body: u64,
}

/// What a module consists of.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The file.
    pub bytes: Arc<[u8]>,
    /// Its segments, in order.
    pub segments: Vec<Segment>,
    /// Its relocations.
    pub relocations: Vec<Relocation>,
    /// Its dynamic symbols.
    pub symbols: Vec<Symbol>,
    /// What becomes read-only after relocation.
    pub relro: Option<Range<u64>>,
    /// Its thread-locals.
    pub tls: Option<Tls>,
    /// The array of functions to be called first.
    pub init: Range<u64>,
    /// And last.
    pub fini: Range<u64>,
    /// The slots.
    pub slots: Range<u64>,
    /// Names of imports, by number.
    pub imports: Vec<String>,
    /// All switch gates.
    pub gates: Vec<Gate>,
    /// Instructions that rely on a check that was made, in order.
    pub checked: Vec<Range<u64>>,
    /// What is checked.
    pub protection: Protection,
    /// Whether there are instructions on MXCSR or on the x87 control word.
    pub control_words: bool,
}

/// Why parts are not a module.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// Something lies outside of what it must lie in.
    #[error("{what} at {address:#x} is not where a module has it")]
    Outside {
        /// What.
        what: &'static str,
        /// Where.
        address: u64,
    },
    /// The system has no memory file for it.
    #[error("cannot make the module's memory file: {0}")]
    File(#[from] std::io::Error),
    /// The file is not as a module is.
    #[error("not a module of checked code: {0}")]
    Malformed(&'static str),
}

/// A module, of which domains can be made. Its content is in a sealed file that they share.
#[derive(Debug)]
pub struct Module {
    pub(crate) name: String,
    pub(crate) parts: Parts,
    pub(crate) file: OwnedFd,
    pub(crate) bytes: u64,
}

impl Module {
    /// A module with these parts.
    ///
    /// # Safety
    /// The parts are those of a file that keeps the contract in `docs/word-form.md`: it was verified. `checked` has all
    /// its checked ranges, and `gates` nothing but switch gates.
    pub unsafe fn new(name: &str, parts: Parts) -> Result<Arc<Module>, ModuleError> {
        let outside = |what, address| Err(ModuleError::Outside { what, address });
        let mut end = 0u64;
        for segment in &parts.segments {
            let content = segment.content.len() as u64;
            if segment.address < end
                || segment.address % memory::PAGE != 0
                || content > segment.bytes
                || segment.content.end > parts.bytes.len()
                || segment.bytes > 1 << 32
                || segment.address > 1 << 32
            {
                return outside("a segment", segment.address);
            }
            end = (segment.address + segment.bytes).next_multiple_of(memory::PAGE);
        }
        let module = Module {
            name: name.to_owned(),
            file: memory::sealed(c"mullion-module", end, &parts.pieces())?,
            bytes: end,
            parts,
        };
        let parts = &module.parts;
        let data = |at: u64, bytes: u64| module.is_in(Access::Write, at, bytes);
        if let Some(wrong) = parts.relocations.iter().find(|r| !data(r.at, 8)) {
            return outside("a relocation", wrong.at);
        }
        let mut gates = parts.gates.iter();
        if let Some(gate) = gates.find(|gate| !module.is_in(Access::Execute, gate.address, WORD)) {
            return outside("a gate", gate.address);
        }
        let slots = (SLOT_FIRST_IMPORT + parts.imports.len() as u64) * 8;
        let relro = parts.relro.clone().unwrap_or_default();
        let is_fixed = relro.start <= parts.slots.start && parts.slots.end <= relro.end;
        if !data(parts.slots.start, slots)
            || parts.slots.end.saturating_sub(parts.slots.start) < slots
            || !is_fixed
        {
            return outside("the slots", parts.slots.start);
        }
        if !data(relro.start, relro.end.saturating_sub(relro.start))
            || relro.start % memory::PAGE != 0
            || relro.end % memory::PAGE != 0
        {
            return outside("what becomes read-only", relro.start);
        }
        for array in [&parts.init, &parts.fini] {
            if !array.is_empty() && !data(array.start, array.end - array.start) {
                return outside("an array of functions", array.start);
            }
        }
        if parts.tls.as_ref().is_some_and(|tls| {
            tls.content.end > parts.bytes.len()
                || tls.content.len() as u64 > tls.bytes
                || tls.bytes > 1 << 16
                || !tls.alignment.is_power_of_two()
                || tls.alignment > memory::PAGE
        }) {
            return Err(ModuleError::Malformed("thread-locals of more than 64 KiB"));
        }
        Ok(Arc::new(module))
    }

    /// Its name, for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_in(&self, access: Access, at: u64, bytes: u64) -> bool {
        self.parts.segments.iter().any(|segment| {
            // Whole pages are mapped.
            let end = (segment.address + segment.bytes).next_multiple_of(memory::PAGE);
            segment.access == access && segment.address <= at && bytes <= end && at <= end - bytes
        })
    }

    /// The function that an address of the file lies in, and how far in.
    pub(crate) fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        let symbols = || self.parts.symbols.iter();
        let named = symbols().filter_map(|symbol| Some((symbol.value?, symbol.name.as_str())));
        // A body stands under the name of its gate.
        let bodies = self.parts.gates.iter().filter_map(|gate| {
            let symbol = symbols().find(|symbol| symbol.value == Some(gate.address))?;
            Some((gate.body, symbol.name.as_str()))
        });
        let (start, name) = named
            .chain(bodies)
            .filter(|(start, _)| *start <= address)
            .max()?;
        Some((name, address - start))
    }
}

impl Parts {
    fn pieces(&self) -> Vec<(u64, &[u8])> {
        let piece = |segment: &Segment| (segment.address, &self.bytes[segment.content.clone()]);
        self.segments.iter().map(piece).collect()
    }
}
