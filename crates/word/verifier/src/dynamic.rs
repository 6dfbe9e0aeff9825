//! The dynamic section: relocations, symbols, arrays of functions.

use crate::Report;
use crate::module::{Module, read_u16, read_u32, read_u64};
use mullion_word_rules::{Place, Rule, Violation};
use std::ops::Range;

const ENTRY: usize = 16;
const RELA_ENTRY: u64 = 24;
const RELR_ENTRY: u64 = 8;
const SYMBOL_ENTRY: u64 = 24;

/// Bytes of a symbol's name, at most.
const MAX_NAME: usize = 4096;

const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_RELATIVE: u32 = 8;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_PLTRELSZ: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_INIT: u64 = 12;
const DT_FINI: u64 = 13;
const DT_PLTREL: u64 = 20;
const DT_TEXTREL: u64 = 22;
const DT_JMPREL: u64 = 23;
const DT_INIT_ARRAY: u64 = 25;
const DT_FINI_ARRAY: u64 = 26;
const DT_INIT_ARRAYSZ: u64 = 27;
const DT_FINI_ARRAYSZ: u64 = 28;
const DT_FLAGS: u64 = 30;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_RELRENT: u64 = 37;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// `DF_TEXTREL` in `DT_FLAGS`.
const DF_TEXTREL: u64 = 4;

/// Tags that are read here.
const READ: [u64; 17] = [
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_RELASZ,
    DT_RELAENT,
    DT_STRSZ,
    DT_SYMENT,
    DT_INIT_ARRAY,
    DT_FINI_ARRAY,
    DT_INIT_ARRAYSZ,
    DT_FINI_ARRAYSZ,
    DT_FLAGS,
    DT_RELRSZ,
    DT_RELR,
    DT_RELRENT,
    DT_GNU_HASH,
];

/// Tags that are allowed because nothing is done about them: `DT_PLTGOT`, `DT_SONAME`, `DT_SYMBOLIC`, `DT_DEBUG`,
/// `DT_BIND_NOW`, `DT_RUNPATH`, `DT_VERSYM`, `DT_RELACOUNT`, `DT_FLAGS_1`, `DT_VERDEF` to `DT_VERNEEDNUM`.
const IGNORED: [u64; 13] = [
    3,
    14,
    16,
    21,
    24,
    29,
    0x6fff_fff0,
    0x6fff_fff9,
    0x6fff_fffb,
    0x6fff_fffc,
    0x6fff_fffd,
    0x6fff_fffe,
    0x6fff_ffff,
];

/// What is written to the 8 bytes at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// In the file's terms; the 8 bytes lie in one read + write segment, and in no slot.
    pub address: u64,
    /// What is written there.
    pub value: Value,
}

/// What a relocation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Where the module is, and so much.
    Base(u64),
    /// The address of a symbol ([`Module::symbol`]), and so much.
    Symbol(u32, u64),
}

/// A dynamic symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Not empty.
    pub name: &'a str,
    /// Where the module has it, in the file's terms. Nothing is known about what lies there.
    pub address: Option<u64>,
    /// Bytes, as the file claims.
    pub size: u64,
    /// It may be missing.
    pub is_weak: bool,
    /// The file calls it a function.
    pub is_function: bool,
    /// Its kind, as the file has it.
    kind: u8,
}

/// Where the tables lie in the file, and what the arrays hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dynamic {
    rela: Range<usize>,
    relr: Range<usize>,
    /// To the end of the segment's content.
    symbols: Range<usize>,
    strings: Range<usize>,
    /// How many symbols the hash table knows.
    count: u32,
    pub(crate) init: Vec<u64>,
    pub(crate) fini: Vec<u64>,
}

fn breach(rule: Rule, offset: usize) -> Violation {
    Violation::at(rule, Place::File(offset as u64))
}

impl Dynamic {
    pub(crate) fn relocations<'a>(
        &'a self,
        module: &'a Module,
    ) -> impl Iterator<Item = Relocation> + 'a {
        let explicit = entries(module, &self.rela, RELA_ENTRY as usize)
            .filter_map(|(at, _)| rela(module, at)?.ok());
        let packed = relr_places(module, &self.relr).map(|(_, address)| Relocation {
            address,
            // What lies behind a segment's content in the file is zero.
            value: Value::Base(
                module
                    .at(address, 8)
                    .and_then(|bytes| read_u64(bytes, 0))
                    .unwrap_or(0),
            ),
        });
        explicit.chain(packed)
    }

    pub(crate) fn symbols<'a>(
        &'a self,
        module: &'a Module,
    ) -> impl Iterator<Item = (u32, Symbol<'a>)> + 'a {
        (1..self.count).filter_map(|number| Some((number, self.symbol(module, number)?)))
    }

    pub(crate) fn symbol<'a>(&self, module: &'a Module, number: u32) -> Option<Symbol<'a>> {
        let distance = u64::from(number).checked_mul(SYMBOL_ENTRY)?;
        let at = usize::try_from(distance)
            .ok()
            .and_then(|distance| self.symbols.start.checked_add(distance))?;
        let end = at.checked_add(SYMBOL_ENTRY as usize)?;
        if number == 0 || end > self.symbols.end {
            return None;
        }
        let bytes: &'a [u8] = module.bytes().get(..self.strings.end)?;
        let name = self
            .strings
            .start
            .checked_add(usize::try_from(read_u32(module.bytes(), at)?).ok()?)?;
        // Many symbols may have one name: none is longer than this, or all of them together could be anything.
        let name = bytes.get(name..)?;
        let name = name.get(..MAX_NAME).unwrap_or(name);
        let length = name.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(name.get(..length)?).ok()?;
        let info = *module.bytes().get(at + 4)?;
        let section = read_u16(module.bytes(), at + 6)?;
        (!name.is_empty()).then_some(Symbol {
            name,
            address: (section != 0).then_some(read_u64(module.bytes(), at + 8)?),
            size: read_u64(module.bytes(), at + 16)?,
            is_weak: info >> 4 == 2,
            is_function: info & 15 == 2,
            kind: info & 15,
        })
    }
}

fn entries<'a>(
    module: &'a Module,
    table: &Range<usize>,
    size: usize,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let places = table.clone().step_by(size);
    places.filter_map(|at| Some((at, read_u64(module.bytes(), at)?)))
}

/// A relocation with an addend of its own; an error: of another type.
fn rela(module: &Module, at: usize) -> Option<Result<Relocation, Rule>> {
    let field = |distance: usize| read_u64(module.bytes(), at.checked_add(distance)?);
    let (address, info, addend) = (field(0)?, field(8)?, field(16)?);
    let symbol = (info >> 32) as u32;
    let value = match info as u32 {
        R_X86_64_RELATIVE if symbol == 0 => Value::Base(addend),
        R_X86_64_GLOB_DAT if symbol != 0 => Value::Symbol(symbol, 0),
        R_X86_64_64 if symbol != 0 => Value::Symbol(symbol, addend),
        _ => return Some(Err(Rule::RelocationType)),
    };
    Some(Ok(Relocation { address, value }))
}

/// The places that a RELR table names: a word with bit 0 clear is an address, and the next place is 8 bytes on;
/// one with bit 0 set is a map of the next 63 words.
fn relr_places<'a>(
    module: &'a Module,
    table: &Range<usize>,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let mut next = 0_u64;
    entries(module, table, RELR_ENTRY as usize).flat_map(move |(at, word)| {
        let (first, map) = match word & 1 {
            0 => (word, 1),
            _ => (next, word >> 1),
        };
        next = first.wrapping_add(if word & 1 == 0 { 8 } else { 63 * 8 });
        (0..63)
            .filter(move |bit| map >> bit & 1 == 1)
            .map(move |bit| (at, first.wrapping_add(bit * 8)))
    })
}

/// Reads the dynamic section, and checks every relocation.
pub(crate) fn parse(
    module: &Module,
    section: Option<Range<usize>>,
    report: &mut Report,
) -> Dynamic {
    let Some(section) = section else {
        return Dynamic::default();
    };
    let seen = read_tags(module.bytes(), &section, report);
    report.next_phase();
    let tags = Tags {
        module,
        seen: &seen,
    };
    let mut dynamic = Dynamic::default();
    let rela = tags.table([DT_RELA, DT_RELASZ, DT_RELAENT], RELA_ENTRY);
    let relr = tags.table([DT_RELR, DT_RELRSZ, DT_RELRENT], RELR_ENTRY);
    match (rela, relr) {
        (Some(rela), Some(relr)) => (dynamic.rela, dynamic.relr) = (rela, relr),
        _ => report.add(|| breach(Rule::RelocationTable, section.start)),
    }
    match tags.symbols() {
        Some((symbols, strings)) => (dynamic.symbols, dynamic.strings) = (symbols, strings),
        None => report.add(|| breach(Rule::SymbolTable, section.start)),
    }
    let most = dynamic.symbols.len() as u64 / SYMBOL_ENTRY;
    dynamic.count = tags.count().unwrap_or(0).min(most) as u32;
    report.next_phase();
    check(module, &dynamic, report);
    let arrays = [
        [DT_INIT_ARRAY, DT_INIT_ARRAYSZ],
        [DT_FINI_ARRAY, DT_FINI_ARRAYSZ],
    ];
    let [init, fini] = arrays.map(|tags_of| {
        let array = tags.array(tags_of);
        let entries = array.and_then(|array| array_entries(module, &dynamic, &array));
        entries.unwrap_or_else(|| {
            report.add(|| breach(Rule::InitArray, section.start));
            Vec::new()
        })
    });
    report.next_phase();
    (dynamic.init, dynamic.fini) = (init, fini);
    dynamic
}

/// The tags that may occur once, with their values: so there are few of them, however long the section is.
fn read_tags(bytes: &[u8], section: &Range<usize>, report: &mut Report) -> Vec<(u64, u64)> {
    let mut seen: Vec<(u64, u64)> = Vec::new();
    for at in section.clone().step_by(ENTRY) {
        let field = |distance: usize| read_u64(bytes, at.checked_add(distance)?);
        let (Some(tag), Some(value)) = (field(0), field(8)) else {
            continue;
        };
        if tag == DT_NULL {
            break;
        }
        let again = seen.iter().any(|(other, _)| *other == tag);
        let rule = match tag {
            // Nothing is done about it, and there may be many.
            DT_NEEDED => continue,
            DT_TEXTREL => Some(Rule::TextRelocation),
            DT_FLAGS if value & DF_TEXTREL != 0 => Some(Rule::TextRelocation),
            DT_JMPREL | DT_PLTREL | DT_PLTRELSZ | DT_INIT | DT_FINI => Some(Rule::DynamicCode),
            _ if again => Some(Rule::DynamicTag),
            _ if READ.contains(&tag) || IGNORED.contains(&tag) => None,
            _ => Some(Rule::DynamicTag),
        };
        match rule {
            Some(rule) => report.add(|| breach(rule, at)),
            None => seen.push((tag, value)),
        }
    }
    seen
}

/// The entries of the dynamic section.
struct Tags<'a> {
    module: &'a Module,
    seen: &'a [(u64, u64)],
}

impl Tags<'_> {
    fn find(&self, tag: u64) -> Option<u64> {
        let mut seen = self.seen.iter();
        seen.find(|(other, _)| *other == tag)
            .map(|(_, value)| *value)
    }

    /// Where `length` bytes at an address lie in the file.
    fn file(&self, address: u64, length: u64) -> Option<Range<usize>> {
        let segment = self.module.segment(address, length)?;
        let distance = usize::try_from(address.checked_sub(segment.address())?).ok()?;
        let start = segment.file().start.checked_add(distance)?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= segment.file().end).then_some(start..end)
    }

    /// Where a table lies in the file, from its address, size and entry size; an empty one if there is none.
    fn table(&self, tags: [u64; 3], wanted: u64) -> Option<Range<usize>> {
        let [address, size, entry] = tags.map(|tag| self.find(tag));
        let (address, size) = match (address, size) {
            (_, None | Some(0)) => return Some(0..0),
            (address, size) => (address?, size?),
        };
        if entry != Some(wanted) || !size.is_multiple_of(wanted) {
            return None;
        }
        self.file(address, size)
    }

    /// The symbols, up to the end of what the file has of their segment, and their names.
    fn symbols(&self) -> Option<(Range<usize>, Range<usize>)> {
        let Some(address) = self.find(DT_SYMTAB) else {
            return Some((0..0, 0..0));
        };
        let start = self.file(address, 0)?.start;
        let end = self.module.segment(address, 0)?.file().end;
        let strings = self.file(self.find(DT_STRTAB)?, self.find(DT_STRSZ)?)?;
        let fits = self.find(DT_SYMENT) == Some(SYMBOL_ENTRY) && start <= end;
        fits.then_some((start..end, strings))
    }

    /// How many symbols there are.
    fn count(&self) -> Option<u64> {
        let word = |address: u64, number: u64| {
            let at = self.file(address.checked_add(number.checked_mul(4)?)?, 4)?;
            read_u32(self.module.bytes(), at.start).map(u64::from)
        };
        if let Some(hash) = self.find(DT_HASH) {
            return word(hash, 1);
        }
        let hash = self.find(DT_GNU_HASH)?;
        let (buckets, first, bloom) = (word(hash, 0)?, word(hash, 1)?, word(hash, 2)?);
        let table = bloom.checked_mul(2)?.checked_add(4)?;
        let mut last = 0;
        for number in 0..buckets {
            last = last.max(word(hash, table + number)?);
        }
        if last < first {
            return Some(first);
        }
        // The last symbol of a chain has bit 0 of its hash set.
        while word(hash, table + buckets + (last - first))? & 1 == 0 {
            last += 1;
        }
        Some(last + 1)
    }

    /// The addresses of an array of functions.
    fn array(&self, [start, size]: [u64; 2]) -> Option<Range<u64>> {
        let (start, size) = match (self.find(start), self.find(size)) {
            (_, None | Some(0)) => return Some(0..0),
            (start, size) => (start?, size?),
        };
        let end = start.checked_add(size)?;
        let sound = size.is_multiple_of(8) && self.module.segment(start, size).is_some();
        sound.then_some(start..end)
    }
}

/// What relocations make of the entries of an array: each has one, by the module's own address.
fn array_entries(module: &Module, dynamic: &Dynamic, array: &Range<u64>) -> Option<Vec<u64>> {
    let count = usize::try_from((array.end - array.start) / 8).ok()?;
    if count == 0 {
        return Some(Vec::new());
    }
    // A module has a symbol or so for each, and no more of them than bytes.
    let mut entries: Vec<Option<u64>> = vec![None; count.min(module.bytes().len())];
    for relocation in dynamic.relocations(module) {
        let end = relocation.address.checked_add(8)?;
        if end <= array.start || array.end <= relocation.address {
            continue;
        }
        let distance = relocation.address.checked_sub(array.start)?;
        let entry = entries.get_mut(usize::try_from(distance / 8).ok()?)?;
        let Value::Base(address) = relocation.value else {
            return None;
        };
        if !distance.is_multiple_of(8) || entry.replace(address).is_some() {
            return None;
        }
    }
    entries.into_iter().collect()
}

fn check(module: &Module, dynamic: &Dynamic, report: &mut Report) {
    let slots = module.slots();
    let place = |address: u64| {
        let segment = module.segment(address, 8);
        let data = segment.is_some_and(|s| s.permission() == crate::Permission::ReadWrite);
        let slot = address < slots.end && slots.start < address.saturating_add(8);
        data && !slot
    };
    for (at, _) in entries(module, &dynamic.rela, RELA_ENTRY as usize) {
        let rule = match rela(module, at) {
            None => Some(Rule::RelocationTable),
            Some(Err(rule)) => Some(rule),
            Some(Ok(relocation)) if !place(relocation.address) => Some(Rule::RelocationPlace),
            Some(Ok(relocation)) => match relocation.value {
                Value::Base(_) => None,
                // STT_TLS and STT_GNU_IFUNC are no addresses.
                Value::Symbol(number, _) => dynamic
                    .symbol(module, number)
                    .is_none_or(|symbol| matches!(symbol.kind, 6 | 10))
                    .then_some(Rule::SymbolTable),
            },
        };
        if let Some(rule) = rule {
            report.add(|| breach(rule, at));
        }
    }
    report.next_phase();
    // Ascending, and none across another: each word is relocated once.
    let mut free = 0;
    for (at, address) in relr_places(module, &dynamic.relr) {
        let ascends = address >= free;
        free = address.saturating_add(8);
        if !ascends || !place(address) {
            report.add(|| breach(Rule::RelocationPlace, at));
        }
    }
    report.next_phase();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(tags: impl IntoIterator<Item = u64>) -> Vec<u8> {
        tags.into_iter()
            .flat_map(|tag| [tag.to_le_bytes(), 1_u64.to_le_bytes()].concat())
            .collect()
    }

    /// Each entry is compared with those that are kept: of many, few are.
    #[test]
    fn a_long_section_is_read_once() {
        const MANY: usize = 10_000;
        let tags = [DT_NEEDED, DT_HASH, 0x7777, DT_STRTAB, 3];
        let tags = tags
            .into_iter()
            .flat_map(|tag| std::iter::repeat_n(tag, MANY));
        let bytes = section(tags);
        let mut report = Report::new(usize::MAX);
        let seen = read_tags(&bytes, &(0..bytes.len()), &mut report);
        assert_eq!(seen, [(DT_HASH, 1), (DT_STRTAB, 1), (3, 1)]);
        let (violations, _) = report.finish();
        assert_eq!(violations.len(), 4 * MANY - 3);
        // All that there can be.
        let bytes = section((0..MANY as u64).chain(READ).chain(IGNORED));
        let bytes = bytes.get(ENTRY..).unwrap_or_default();
        let seen = read_tags(bytes, &(0..bytes.len()), &mut Report::new(0));
        assert_eq!(seen.len(), READ.len() + IGNORED.len());
    }
}
