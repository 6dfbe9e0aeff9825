//! Sections and symbols of an image file: as much as names need.
//!
//! Each section is found by comparing a few bytes, and a symbol's name is read when somebody wants
//! it. So no file costs more than a pass over its two tables.

use std::ops::Range;
use std::sync::Arc;

const FRAMES: &str = ".eh_frame";
/// The sections that are looked for.
const WANTED: [&str; 14] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_loc",
    ".debug_loclists",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_str",
    ".debug_str_offsets",
    ".debug_types",
    FRAMES,
    ".symtab",
];
const SECTION_HEADER: usize = 64;
const COMPRESSED: u64 = 0x800;
const NO_CONTENT: u32 = 8;
const SYMBOL: usize = 24;
const FUNCTION: u8 = 2;
/// Bytes of a name that are read.
pub(crate) const LONGEST_NAME: usize = 1024;

/// An image file.
pub(crate) struct Elf {
    bytes: Arc<[u8]>,
    sections: [Range<usize>; WANTED.len()],
    /// Where `.eh_frame` is in the window.
    frames: u64,
    /// The symbols' names.
    names: Range<usize>,
    symbols: Vec<Symbol>,
}

/// A function of the symbol table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Symbol {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    name: u32,
}

impl Elf {
    /// Reads the tables; what cannot be read is empty.
    pub(crate) fn new(bytes: Arc<[u8]>) -> Self {
        let mut elf = Self {
            bytes,
            sections: Default::default(),
            frames: 0,
            names: 0..0,
            symbols: Vec::new(),
        };
        if elf.read_sections().is_none() {
            elf.sections = Default::default();
        }
        elf.read_symbols();
        elf
    }

    /// Where the tables of frames are in the window, which their addresses begin from.
    #[cfg_attr(
        not(feature = "dwarf"),
        expect(dead_code, reason = "debug information alone asks")
    )]
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// The contents of a section, empty if there is none.
    pub(crate) fn section(&self, name: &str) -> &[u8] {
        let found = WANTED.iter().position(|wanted| *wanted == name);
        let range = found.and_then(|found| self.sections.get(found));
        range
            .and_then(|range| self.bytes.get(range.clone()))
            .unwrap_or_default()
    }

    /// Bytes of all debug information.
    #[cfg(feature = "dwarf")]
    pub(crate) fn debug_bytes(&self) -> u64 {
        let debug = WANTED.iter().filter(|name| name.starts_with(".debug"));
        let sizes = debug.map(|name| self.section(name).len() as u64);
        // No section is longer than the file: several headers may name the same bytes.
        sizes.sum::<u64>().min(self.bytes.len() as u64)
    }

    /// The functions, by offset.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Bytes of all names.
    pub(crate) fn name_bytes(&self) -> usize {
        self.names.len()
    }

    /// The first bytes of a function's name.
    pub(crate) fn name(&self, symbol: &Symbol) -> Option<&[u8]> {
        let names = self.bytes.get(self.names.clone())?;
        let rest = names.get(symbol.name as usize..)?;
        let rest = rest.get(..LONGEST_NAME).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == 0);
        rest.get(..end.unwrap_or(rest.len()))
    }

    fn read_sections(&mut self) -> Option<()> {
        let bytes = self.bytes.clone();
        if !bytes.starts_with(b"\x7fELF\x02\x01") || u16_at(&bytes, 0x3a)? != SECTION_HEADER as u16
        {
            return None;
        }
        let start = usize::try_from(u64_at(&bytes, 0x28)?).ok()?;
        let count = usize::from(u16_at(&bytes, 0x3c)?);
        let headers = bytes.get(start..start.checked_add(count * SECTION_HEADER)?)?;
        let headers: Vec<&[u8]> = headers.chunks_exact(SECTION_HEADER).collect();
        let names = contents(&bytes, headers.get(usize::from(u16_at(&bytes, 0x3e)?))?)?;
        for header in &headers {
            let name = names.start.checked_add(u32_at(header, 0)? as usize)?;
            let name = bytes.get(name..names.end).unwrap_or_default();
            let found = WANTED.iter().position(|wanted| {
                let end = name.get(wanted.len());
                name.starts_with(wanted.as_bytes()) && end == Some(&0)
            });
            if let Some(place) = found.and_then(|found| self.sections.get_mut(found)) {
                *place = contents(&bytes, header).unwrap_or(0..0);
                if found == WANTED.iter().position(|wanted| *wanted == FRAMES) {
                    self.frames = u64_at(header, 0x10)?;
                }
                if found == WANTED.iter().position(|wanted| *wanted == ".symtab") {
                    let link = headers.get(u32_at(header, 0x28)? as usize)?;
                    self.names = contents(&bytes, link).unwrap_or(0..0);
                }
            }
        }
        Some(())
    }

    fn read_symbols(&mut self) {
        let symbol = |entry: &[u8]| {
            let is_function = entry.get(4)? & 15 == FUNCTION && u16_at(entry, 6)? != 0;
            is_function.then_some(Symbol {
                offset: u64_at(entry, 8)?,
                size: u64_at(entry, 16)?,
                name: u32_at(entry, 0)?,
            })
        };
        let entries = self.section(".symtab").chunks_exact(SYMBOL);
        let mut symbols: Vec<Symbol> = entries.filter_map(symbol).collect();
        symbols.sort_unstable();
        self.symbols = symbols;
    }
}

/// Where in the file a section's contents are.
fn contents(bytes: &[u8], header: &[u8]) -> Option<Range<usize>> {
    if u32_at(header, 4)? == NO_CONTENT || u64_at(header, 8)? & COMPRESSED != 0 {
        return None;
    }
    let start = usize::try_from(u64_at(header, 0x18)?).ok()?;
    let end = start.checked_add(usize::try_from(u64_at(header, 0x20)?).ok()?)?;
    (end <= bytes.len()).then_some(start..end)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*found))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*found))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*found))
}
