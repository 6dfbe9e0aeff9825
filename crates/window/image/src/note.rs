//! The image's note, and the import and export records that it points to.

use crate::outline::{Outline, Report, breach, breach_in_window, field, read_u32};
use mullion_abi as abi;
use mullion_rules::{Rule, Violation};
use std::collections::HashSet;
use std::ops::Range;

/// Words of the note; the last one came later, and is 0 in images without it.
const WORDS: usize = 10;
const FIRST_WORDS: usize = 9;

/// What the entry point does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// Runs the program, and ends by the system interface.
    Program,
    /// Runs constructors, and returns; the exports are called later.
    #[default]
    Extension,
}

impl ImageKind {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Extension => "extension",
        }
    }
}

/// A function that the host can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Unique within the image.
    pub name: String,
    /// Offset in the window, of a labelled instruction.
    pub offset: u64,
}

/// The note's words, understood.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) protection: abi::Protection,
    pub(crate) kind: ImageKind,
    /// Offsets in the window.
    imports: Range<u64>,
    exports: Range<u64>,
    pub(crate) growth: (u32, u32),
    /// Offset of a number.
    pub(crate) steps: Option<u64>,
}

impl Default for Note {
    fn default() -> Self {
        Self {
            protection: abi::Protection::ReadWriteCall,
            kind: ImageKind::default(),
            imports: 0..0,
            exports: 0..0,
            growth: (0, 0),
            steps: None,
        }
    }
}

/// Finds the note in the content of the `PT_NOTE` segments.
pub(crate) fn find(bytes: &[u8], segments: &[Range<usize>]) -> Result<Note, Violation> {
    let mut found = None;
    for segment in segments {
        let mut at = segment.start;
        while at < segment.end {
            let malformed = || breach(Rule::NoteMalformed, at as u64);
            let (name, kind, description) = one(bytes, at, segment.end).ok_or_else(malformed)?;
            if bytes.get(name) == Some(&abi::NOTE_NAME) {
                let known = [WORDS * 4, FIRST_WORDS * 4].contains(&description.len());
                if kind != abi::NOTE_TYPE || !known || found.is_some() {
                    return Err(malformed());
                }
                found = Some(description.clone());
            }
            // Padded to 4 bytes, except that the last note may do without.
            at = description.end.next_multiple_of(4);
        }
    }
    let found = found.ok_or(breach(Rule::NoteMissing, bytes.len() as u64))?;
    let (at, length) = (found.start, found.len() / 4);
    let mut words = [0; WORDS];
    for (number, word) in words.iter_mut().enumerate().take(length) {
        *word = read_u32(bytes, at.saturating_add(number * 4))
            .ok_or(breach(Rule::NoteMalformed, at as u64))?;
    }
    understand(words).map_err(|(number, rule)| breach(rule, at as u64 + number * 4))
}

/// Name, type and description of the note at `at`.
fn one(bytes: &[u8], at: usize, end: usize) -> Option<(Range<usize>, u32, Range<usize>)> {
    let size = |at| usize::try_from(read_u32(bytes, at)?).ok();
    let name = at.checked_add(12)?;
    let name = name..name.checked_add(size(at)?)?;
    let description = name.end.checked_next_multiple_of(4)?;
    let description = description..description.checked_add(size(at.checked_add(4)?)?)?;
    (description.end <= end).then_some((name, read_u32(bytes, at.checked_add(8)?)?, description))
}

fn understand(words: [u32; WORDS]) -> Result<Note, (u64, Rule)> {
    let [
        version,
        protection,
        kind,
        import_start,
        import_end,
        export_start,
        export_end,
        before,
        after,
        steps,
    ] = words;
    if version != abi::ABI_VERSION {
        return Err((0, Rule::NoteVersion));
    }
    Ok(Note {
        protection: abi::Protection::from_number(protection).ok_or((1, Rule::NoteProtection))?,
        kind: match kind {
            0 => ImageKind::Program,
            1 => ImageKind::Extension,
            _ => return Err((2, Rule::NoteKind)),
        },
        imports: u64::from(import_start)..u64::from(import_end),
        exports: u64::from(export_start)..u64::from(export_end),
        growth: (before, after),
        steps: (steps != 0).then_some(steps as u64),
    })
}

/// The records of a table, `most` of them, with their offsets in the window.
fn records<'a>(
    image: &'a Outline,
    table: &Range<u64>,
    most: u64,
) -> Option<Vec<(u64, [u8; abi::RECORD_SIZE as usize])>> {
    let length = table.end.checked_sub(table.start)?;
    if length == 0 {
        return Some(Vec::new());
    }
    if length > most * abi::RECORD_SIZE {
        return None;
    }
    let bytes: &'a [u8] = image.at(table.start, length)?;
    let (records, rest) = bytes.as_chunks();
    let offsets = (0..).map(|number| table.start + number * abi::RECORD_SIZE);
    rest.is_empty()
        .then(|| offsets.zip(records.iter().copied()).collect())
}

/// A name of printable characters, ended and padded with zeros.
fn name(field: &[u8]) -> Option<String> {
    let length = field
        .iter()
        .position(|byte| *byte == 0)
        .filter(|length| *length > 0)?;
    let (name, padding) = field.split_at_checked(length)?;
    let proper = name.iter().all(u8::is_ascii_graphic) && padding.iter().all(|byte| *byte == 0);
    proper.then(|| name.iter().copied().map(char::from).collect())
}

/// The names of the imports.
pub(crate) fn imports(image: &Outline, report: &mut Report) -> Vec<String> {
    let table = &image.note.imports;
    let Some(records) = records(image, table, abi::MAX_IMPORTS) else {
        report.add(|| breach_in_window(Rule::ImportTable, table.start));
        return Vec::new();
    };
    let mut names = Vec::with_capacity(records.len());
    for (offset, record) in records {
        let name = name(&record);
        if name.is_none() {
            report.add(|| breach_in_window(Rule::RecordName, offset));
        }
        names.push(name.unwrap_or_default());
    }
    names
}

/// The exports.
pub(crate) fn exports(image: &Outline, report: &mut Report) -> Vec<Export> {
    let table = &image.note.exports;
    let Some(records) = records(image, table, abi::MAX_EXPORTS) else {
        report.add(|| breach_in_window(Rule::ExportTable, table.start));
        return Vec::new();
    };
    let mut names = HashSet::new();
    let mut exports = Vec::with_capacity(records.len());
    for (offset, record) in records {
        let distance = field(&record, 0).map_or(0, i32::from_le_bytes);
        let target = offset
            .checked_add_signed(i64::from(distance))
            .filter(|target| image.is_labelled(*target));
        match (record.get(4..).and_then(name), target) {
            (Some(name), Some(target)) if names.insert(name.clone()) => exports.push(Export {
                name,
                offset: target,
            }),
            (_, None) => report.add(|| breach_in_window(Rule::ExportTarget, offset)),
            _ => report.add(|| breach_in_window(Rule::RecordName, offset)),
        }
    }
    exports
}
