//! The module's note, and the slots and import records that it points to.

use crate::Report;
use crate::module::{Module, ProgramHeader, program_headers, read_u32};
use mullion_word_abi as abi;
use mullion_word_rules::{Place, Rule, Violation};
use std::ops::Range;

const WORDS: usize = 8;
const PT_NOTE: u32 = 4;

/// The note's words, understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note {
    pub(crate) protection: abi::Protection,
    /// Addresses.
    pub(crate) slots: Range<u64>,
    imports: Range<u64>,
    pub(crate) growth: (u32, u32),
}

/// A note: the place of its description, whether it has our name, and its type.
struct One {
    description: Range<usize>,
    is_ours: bool,
    kind: u32,
}

fn breach(rule: Rule, offset: usize) -> Violation {
    Violation::at(rule, Place::File(offset as u64))
}

/// Finds the note in the content of the `PT_NOTE` segments.
pub(crate) fn find(bytes: &[u8], headers: &[ProgramHeader]) -> Result<Note, Violation> {
    let mut found = None;
    for segment in segments(bytes, headers) {
        let mut at = segment.start;
        while at < segment.end {
            let malformed = || breach(Rule::NoteMalformed, at);
            let note = one(bytes, at, segment.end).ok_or_else(malformed)?;
            if note.is_ours {
                let fits = note.kind == abi::NOTE_TYPE && note.description.len() == WORDS * 4;
                if !fits || found.is_some() {
                    return Err(malformed());
                }
                found = Some(note.description.clone());
            }
            // Padded to 4 bytes, except that the last note may do without.
            at = note.description.end.next_multiple_of(4);
        }
    }
    let found = found.ok_or(breach(Rule::NoteMissing, bytes.len()))?;
    let mut words = [0; WORDS];
    for (number, word) in words.iter_mut().enumerate() {
        *word = read_u32(bytes, found.start.saturating_add(number * 4))
            .ok_or(breach(Rule::NoteMalformed, found.start))?;
    }
    understand(words).map_err(|(number, rule)| breach(rule, found.start + number * 4))
}

fn segments(bytes: &[u8], headers: &[ProgramHeader]) -> Vec<Range<usize>> {
    let notes = headers.iter().filter(|header| header.kind == PT_NOTE);
    notes.filter_map(|header| header.file(bytes)).collect()
}

/// Whether there is a note of our name and type.
pub(crate) fn is_there(bytes: &[u8]) -> bool {
    let Ok(headers) = program_headers(bytes) else {
        return false;
    };
    segments(bytes, &headers).into_iter().any(|segment| {
        let mut at = segment.start;
        while let Some(note) = one(bytes, at, segment.end) {
            if note.is_ours && note.kind == abi::NOTE_TYPE {
                return true;
            }
            at = note.description.end.next_multiple_of(4);
        }
        false
    })
}

fn one(bytes: &[u8], at: usize, end: usize) -> Option<One> {
    let size = |at| usize::try_from(read_u32(bytes, at)?).ok();
    let name = at.checked_add(12)?;
    let name = name..name.checked_add(size(at)?)?;
    let description = name.end.checked_next_multiple_of(4)?;
    let description = description..description.checked_add(size(at.checked_add(4)?)?)?;
    (description.end <= end).then_some(())?;
    Some(One {
        description,
        is_ours: bytes.get(name) == Some(&abi::NOTE_NAME),
        kind: read_u32(bytes, at.checked_add(8)?)?,
    })
}

fn understand(words: [u32; WORDS]) -> Result<Note, (usize, Rule)> {
    let [
        version,
        protection,
        slots_start,
        slots_end,
        imports_start,
        imports_end,
        before,
        after,
    ] = words;
    if version != abi::VERSION {
        return Err((0, Rule::NoteVersion));
    }
    Ok(Note {
        protection: abi::Protection::from_number(protection).ok_or((1, Rule::NoteProtection))?,
        slots: u64::from(slots_start)..u64::from(slots_end),
        imports: u64::from(imports_start)..u64::from(imports_end),
        growth: (before, after),
    })
}

/// The names of the imports.
pub(crate) fn imports(module: &Module, report: &mut Report) -> Vec<String> {
    let table = &module.note.imports;
    let Some(records) = records(module, table) else {
        report.add(|| Violation::at(Rule::ImportTable, Place::Address(table.start)));
        return Vec::new();
    };
    let mut names = Vec::with_capacity(records.len());
    for (number, record) in records.iter().enumerate() {
        let name = name(record);
        if name.is_none() {
            let at = table.start + number as u64 * abi::RECORD_SIZE;
            report.add(|| Violation::at(Rule::RecordName, Place::Address(at)));
        }
        names.push(name.unwrap_or_default());
    }
    names
}

fn records<'a>(
    module: &'a Module,
    table: &Range<u64>,
) -> Option<&'a [[u8; abi::RECORD_SIZE as usize]]> {
    let length = table.end.checked_sub(table.start)?;
    if length == 0 {
        return Some(&[]);
    }
    if length > abi::MAX_IMPORTS * abi::RECORD_SIZE {
        return None;
    }
    let segment = module.segment(table.start, length)?;
    let constant = segment.permission() != crate::Permission::ReadWrite;
    let (records, rest) = module.at(table.start, length)?.as_chunks();
    (constant && rest.is_empty()).then_some(records)
}

/// A name of printable characters, ended and padded with zeros.
fn name(field: &[u8]) -> Option<String> {
    let length = field.iter().position(|byte| *byte == 0);
    let (name, padding) = field.split_at_checked(length.filter(|length| *length > 0)?)?;
    let proper = name.iter().all(u8::is_ascii_graphic) && padding.iter().all(|byte| *byte == 0);
    proper.then(|| name.iter().copied().map(char::from).collect())
}

/// Whether the slots are as many as there must be, in memory that becomes read-only.
pub(crate) fn slots_are_sound(module: &Module) -> bool {
    let slots = &module.note.slots;
    let count = abi::SLOT_FIRST_IMPORT + module.imports().len() as u64;
    let inside = module
        .relro()
        .is_some_and(|relro| relro.start <= slots.start && slots.end <= relro.end);
    // They lie in the segment itself, not only in the rest of its last page.
    let held = module.segment(slots.start, count * 8).is_some();
    let length = slots.end.checked_sub(slots.start);
    slots.start.is_multiple_of(8) && length == Some(count * 8) && inside && held
}
