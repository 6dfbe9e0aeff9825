//! The dynamic section and its relocations.

use crate::outline::{Outline, Report, breach, read_u64};
use mullion_rules::Rule;
use std::ops::Range;

const ENTRY: u64 = 16;
const RELA_ENTRY: u64 = 24;
const RELR_ENTRY: u64 = 8;
const R_X86_64_RELATIVE: u64 = 8;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_TEXTREL: u64 = 22;
const DT_FLAGS: u64 = 30;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_RELRENT: u64 = 37;
/// `DF_TEXTREL` in `DT_FLAGS`.
const DF_TEXTREL: u64 = 4;

/// Tags that are allowed because nothing is done about them: `DT_PLTGOT`,
/// `DT_HASH`, `DT_STRTAB`, `DT_SYMTAB`, `DT_STRSZ`, `DT_SYMENT`, `DT_INIT`,
/// `DT_FINI`, `DT_SONAME`, `DT_SYMBOLIC`, `DT_DEBUG`, `DT_BIND_NOW`,
/// `DT_INIT_ARRAY` to `DT_FINI_ARRAYSZ`, `DT_RUNPATH`, `DT_FLAGS`,
/// `DT_PREINIT_ARRAY` and its size, `DT_GNU_HASH`, `DT_RELACOUNT`, `DT_FLAGS_1`.
const IGNORED: [u64; 23] = [
    3,
    4,
    5,
    6,
    10,
    11,
    12,
    13,
    14,
    16,
    21,
    24,
    25,
    26,
    27,
    28,
    29,
    DT_FLAGS,
    32,
    33,
    0x6fff_fef5,
    0x6fff_fff9,
    0x6fff_fffb,
];

/// The window's base is added to `addend`, and the sum written to the 8 bytes at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset in the window; the 8 bytes lie in one segment that is not executable.
    pub offset: u64,
    /// What the base is added to, modulo 2^64.
    pub addend: u64,
}

/// Where the relocation tables lie in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    rela: Range<usize>,
    relr: Range<usize>,
}

impl Tables {
    pub(crate) fn length(&self) -> usize {
        self.rela.len().saturating_add(self.relr.len())
    }

    pub(crate) fn iter<'a>(&'a self, image: &'a Outline) -> impl Iterator<Item = Relocation> + 'a {
        let packed = self.packed(image).map(|offset| Relocation {
            offset,
            // Memory behind a segment's content in the file is zero.
            addend: image
                .at(offset, 8)
                .and_then(|bytes| read_u64(bytes, 0))
                .unwrap_or(0),
        });
        self.explicit(image).chain(packed)
    }

    pub(crate) fn explicit<'a>(
        &'a self,
        image: &'a Outline,
    ) -> impl Iterator<Item = Relocation> + 'a {
        entries(image, &self.rela, RELA_ENTRY).filter_map(|(at, _)| rela(image, at))
    }

    pub(crate) fn packed<'a>(&'a self, image: &'a Outline) -> impl Iterator<Item = u64> + 'a {
        relr_places(image, &self.relr).map(|(_, offset)| offset)
    }
}

fn entries<'a>(
    image: &'a Outline,
    table: &Range<usize>,
    size: u64,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    table
        .clone()
        .step_by(size as usize)
        .filter_map(|at| Some((at, read_u64(&image.bytes, at)?)))
}

fn rela(image: &Outline, at: usize) -> Option<Relocation> {
    let field = |distance: usize| read_u64(&image.bytes, at.checked_add(distance)?);
    Some(Relocation {
        offset: field(0)?,
        addend: field(16)?,
    })
}

/// The places that a RELR table names: a word with bit 0 clear is an offset,
/// and the next place is 8 bytes on; one with bit 0 set is a map of the next 63 words.
fn relr_places<'a>(
    image: &'a Outline,
    table: &Range<usize>,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let mut next = 0_u64;
    entries(image, table, RELR_ENTRY).flat_map(move |(at, word)| {
        let (first, map) = if word & 1 == 0 {
            (word, 1)
        } else {
            (next, word >> 1)
        };
        next = first.wrapping_add(if word & 1 == 0 { 8 } else { 63 * 8 });
        (0..63)
            .filter(move |bit| map >> bit & 1 == 1)
            .map(move |bit| (at, first.wrapping_add(bit * 8)))
    })
}

/// Reads the dynamic section, and checks every relocation.
pub(crate) fn read_tables(
    image: &Outline,
    dynamic: Option<Range<usize>>,
    report: &mut Report,
) -> Tables {
    let Some(section) = dynamic else {
        return Tables::default();
    };
    let mut seen = Vec::new();
    for (at, tag) in entries(image, &section, ENTRY) {
        let Some(value) = read_u64(&image.bytes, at.saturating_add(8)) else {
            continue;
        };
        if tag == DT_NULL {
            break;
        }
        let known =
            (DT_RELA..=DT_RELAENT).contains(&tag) || (DT_RELRSZ..=DT_RELRENT).contains(&tag);
        let rule = match tag {
            DT_NEEDED => Some(Rule::NeededLibrary),
            DT_TEXTREL => Some(Rule::TextRelocation),
            DT_FLAGS if value & DF_TEXTREL != 0 => Some(Rule::TextRelocation),
            _ if seen.iter().any(|(other, _)| *other == tag) => Some(Rule::DynamicTag),
            _ if known || IGNORED.contains(&tag) => None,
            _ => Some(Rule::DynamicTag),
        };
        if let Some(rule) = rule {
            report.add(|| breach(rule, at as u64));
        } else {
            seen.push((tag, value));
        }
    }
    report.next_phase();
    let find = |tag| {
        seen.iter()
            .find(|(other, _)| *other == tag)
            .map(|(_, value)| *value)
    };
    let mut table = |tags: [u64; 3], size| match table(image, tags.map(find), size) {
        Some(table) => table,
        None => {
            report.add(|| breach(Rule::RelocationTable, section.start as u64));
            Range::default()
        }
    };
    let tables = Tables {
        rela: table([DT_RELA, DT_RELASZ, DT_RELAENT], RELA_ENTRY),
        relr: table([DT_RELR, DT_RELRSZ, DT_RELRENT], RELR_ENTRY),
    };
    report.next_phase();
    check(image, &tables, report);
    tables
}

/// Where a table lies in the file, from its address, size and entry size.
fn table(
    image: &Outline,
    [address, size, entry]: [Option<u64>; 3],
    wanted: u64,
) -> Option<Range<usize>> {
    let (address, size) = match (address, size) {
        (None | Some(_), None | Some(0)) => return Some(Range::default()),
        (address, size) => (address?, size?),
    };
    if entry != Some(wanted) || !size.is_multiple_of(wanted) {
        return None;
    }
    let segment = image
        .segments
        .iter()
        .find(|segment| segment.covers(address, size))?;
    let start = segment
        .file
        .start
        .checked_add(usize::try_from(address.checked_sub(segment.offset)?).ok()?)?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= segment.file.end).then_some(start..end)
}

fn check(image: &Outline, tables: &Tables, report: &mut Report) {
    let place = |offset| {
        let data = image
            .segments
            .iter()
            .filter(|segment| !segment.permission.is_executable());
        data.into_iter().any(|segment| segment.covers(offset, 8))
    };
    for (at, offset) in entries(image, &tables.rela, RELA_ENTRY) {
        // The high half is a symbol, which a relative relocation has not.
        if read_u64(&image.bytes, at.saturating_add(8)) != Some(R_X86_64_RELATIVE) {
            report.add(|| breach(Rule::RelocationType, at as u64));
        } else if !place(offset) {
            report.add(|| breach(Rule::RelocationPlace, at as u64));
        }
    }
    report.next_phase();
    // Ascending, and none across another: there are no more of them than words in the image, and
    // each word is relocated once.
    let mut free = 0;
    for (at, offset) in relr_places(image, &tables.relr) {
        let ascends = offset >= free;
        free = offset.saturating_add(8);
        if !ascends || !place(offset) {
            report.add(|| breach(Rule::RelocationPlace, at as u64));
        }
    }
    report.next_phase();
}
