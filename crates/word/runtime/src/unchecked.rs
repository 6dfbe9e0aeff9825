//! A module from a file that nobody has verified. For tests, and for measuring.

use crate::module::{
    Access, Gate, Module, ModuleError, Parts, Relocation, Segment, Symbol, Tls, Value,
};
use mullion_word_abi::{
    ENDBR64, GATE_ALIGNMENT, NOTE_NAME, NOTE_TYPE, Protection, RECORD_SIZE, VERSION,
};
use std::sync::Arc;

/// Reads numbers out of the file, and answers with an error if it is too short.
struct File<'a>(&'a [u8]);

type Result<T> = std::result::Result<T, ModuleError>;

fn wrong<T>(what: &'static str) -> Result<T> {
    Err(ModuleError::Malformed(what))
}

impl File<'_> {
    fn bytes<const N: usize>(&self, at: u64) -> Result<[u8; N]> {
        let found = usize::try_from(at)
            .ok()
            .and_then(|at| self.0.get(at..at.checked_add(N)?));
        match found.and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => Ok(bytes),
            None => wrong("it ends too early"),
        }
    }

    fn half(&self, at: u64) -> Result<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn word(&self, at: u64) -> Result<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn long(&self, at: u64) -> Result<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn text(&self, at: u64) -> Result<String> {
        let rest = usize::try_from(at)
            .ok()
            .and_then(|at| self.0.get(at..))
            .unwrap_or(&[]);
        match rest.iter().position(|byte| *byte == 0) {
            Some(end) => Ok(String::from_utf8_lossy(&rest[..end]).into_owned()),
            None => wrong("a name does not end"),
        }
    }
}

impl Module {
    /// What a linker has made, taken at its word. Its checked ranges are read from the section `.mullion.checked`, pairs
    /// of addresses, which is nothing that the contract knows.
    ///
    /// # Safety
    /// The file keeps the contract in `docs/word-form.md`, or the test that uses it breaks it on purpose and bears what
    /// follows.
    pub unsafe fn unchecked(name: &str, bytes: &[u8]) -> Result<Arc<Module>> {
        let parts = read(bytes)?;
        // SAFETY: the file keeps the contract, or the test bears what follows: that is what this function asks.
        unsafe { Module::from_parts(name, parts) }
    }
}

fn read(bytes: &[u8]) -> Result<Parts> {
    let file = File(bytes);
    let mut parts = Parts {
        bytes: bytes.into(),
        ..Parts::default()
    };
    let (headers, count) = (file.long(32)?, file.half(56)?);
    let (mut dynamic, mut note) = (None, None);
    for at in (0..u64::from(count)).map(|n| headers + 56 * n) {
        let (kind, flags) = (file.word(at)?, file.word(at + 4)?);
        let (offset, address) = (file.long(at + 8)?, file.long(at + 16)?);
        let (in_file, in_memory) = (file.long(at + 32)?, file.long(at + 40)?);
        let content = offset as usize..(offset + in_file) as usize;
        match kind {
            1 => parts.segments.push(Segment {
                address,
                bytes: in_memory,
                content,
                access: match flags {
                    4 => Access::Read,
                    5 => Access::Execute,
                    6 => Access::Write,
                    _ => return wrong("a segment's flags"),
                },
            }),
            2 => dynamic = Some(offset),
            4 => note = Some(offset),
            7 if in_memory != 0 => {
                parts.tls = Some(Tls {
                    content,
                    bytes: in_memory,
                    alignment: file.long(at + 48)?.max(1),
                });
            }
            0x6474_e552 => parts.relro = Some(address..address + in_memory),
            _ => {}
        }
    }
    if parts
        .segments
        .iter()
        .any(|segment| segment.content.end > bytes.len())
    {
        return wrong("a segment leaves the file");
    }
    let Some(note) = note else {
        return wrong("it has no note");
    };
    read_note(&file, note, &mut parts)?;
    if let Some(dynamic) = dynamic {
        read_dynamic(&file, dynamic, &mut parts)?;
    }
    find_gates(&mut parts)?;
    read_checked(&file, &mut parts)?;
    Ok(parts)
}

/// Where an address of the module is in the file.
fn offset(parts: &Parts, address: u64) -> Result<u64> {
    let inside = |segment: &&Segment| {
        let end = segment.address + segment.content.len() as u64;
        (segment.address..end).contains(&address)
    };
    match parts.segments.iter().find(inside) {
        Some(segment) => Ok(segment.content.start as u64 + address - segment.address),
        None => wrong("an address is not in the file"),
    }
}

fn read_note(file: &File<'_>, at: u64, parts: &mut Parts) -> Result<()> {
    let is_ours = file.word(at)? == 8
        && file.word(at + 4)? == 32
        && file.word(at + 8)? == NOTE_TYPE
        && file.bytes::<8>(at + 12)? == NOTE_NAME
        && file.word(at + 20)? == VERSION;
    if !is_ours {
        return wrong("its note");
    }
    let word = |n: u64| file.word(at + 20 + 4 * n).map(u64::from);
    let Some(protection) = Protection::from_number(word(1)? as u32) else {
        return wrong("its protection");
    };
    parts.protection = protection;
    parts.slots = word(2)?..word(3)?;
    for record in (word(4)?..word(5)?).step_by(RECORD_SIZE as usize) {
        parts.imports.push(file.text(offset(parts, record)?)?);
    }
    Ok(())
}

fn read_dynamic(file: &File<'_>, mut at: u64, parts: &mut Parts) -> Result<()> {
    let mut tags = std::collections::HashMap::new();
    loop {
        let (tag, value) = (file.long(at)?, file.long(at + 8)?);
        if tag == 0 {
            break;
        }
        tags.insert(tag, value);
        at += 16;
    }
    let tag = |tag: u64| tags.get(&tag).copied();
    if let (Some(symbols), Some(names)) = (tag(6), tag(5)) {
        let names = offset(parts, names)?;
        // There is no count; the table of names follows it in what we link.
        for at in (offset(parts, symbols)?..names).step_by(24) {
            let (info, section) = (file.bytes::<1>(at + 4)?[0], file.half(at + 6)?);
            parts.symbols.push(Symbol {
                name: file.text(names + u64::from(file.word(at)?))?.into(),
                value: (section != 0).then(|| file.long(at + 8)).transpose()?,
                weak: info >> 4 == 2,
            });
        }
    }
    if let (Some(table), Some(bytes)) = (tag(7), tag(8)) {
        let start = offset(parts, table)?;
        for at in (start..start + bytes).step_by(24) {
            let (info, addend) = (file.long(at + 8)?, file.long(at + 16)? as i64);
            let value = match info & 0xffff_ffff {
                8 => Value::Base,
                1 | 6 => Value::Symbol((info >> 32) as usize),
                _ => return wrong("a relocation's type"),
            };
            parts.relocations.push(Relocation {
                at: file.long(at)?,
                value,
                addend,
            });
        }
    }
    if let (Some(table), Some(bytes)) = (tag(36), tag(35)) {
        read_relr(file, table, bytes, parts)?;
    }
    for (first, start, bytes) in [(true, 25, 27), (false, 26, 28)] {
        if let (Some(start), Some(bytes)) = (tag(start), tag(bytes)) {
            let found = parts
                .relocations
                .iter()
                .filter(|r| (start..start + bytes).contains(&r.at));
            let found = found.map(|r| r.addend as u64).collect();
            match first {
                true => parts.init = found,
                false => parts.fini = found,
            }
        }
    }
    Ok(())
}

fn read_relr(file: &File<'_>, table: u64, bytes: u64, parts: &mut Parts) -> Result<()> {
    let start = offset(parts, table)?;
    let mut next = 0;
    for at in (start..start + bytes).step_by(8) {
        let entry = file.long(at)?;
        let places: Vec<u64> = match entry & 1 {
            0 => {
                next = entry + 8;
                vec![entry]
            }
            _ => {
                let places = (0..63)
                    .filter(|bit| entry >> (bit + 1) & 1 == 1)
                    .map(|bit| next + 8 * bit);
                let places = places.collect();
                next += 8 * 63;
                places
            }
        };
        for place in places {
            let addend = file.long(offset(parts, place)?)? as i64;
            parts.relocations.push(Relocation {
                at: place,
                value: Value::Base,
                addend,
            });
        }
    }
    Ok(())
}

fn find_gates(parts: &mut Parts) -> Result<()> {
    for segment in parts
        .segments
        .iter()
        .filter(|s| s.access == Access::Execute)
    {
        let code = &parts.bytes[segment.content.clone()];
        for at in (0..code.len()).step_by(GATE_ALIGNMENT as usize) {
            let Some(gate) = code.get(at..at + 13) else {
                break;
            };
            if gate[..4] == ENDBR64
                && gate[4..7] == [0x4c, 0x8d, 0x1d]
                && gate[11..13] == [0xff, 0x25]
            {
                let body = i32::from_le_bytes(gate[7..11].try_into().expect("four bytes"));
                let address = segment.address + at as u64;
                parts.gates.push(Gate {
                    address,
                    body: (address + 11).wrapping_add_signed(body.into()),
                });
            }
        }
    }
    Ok(())
}

fn read_checked(file: &File<'_>, parts: &mut Parts) -> Result<()> {
    let (sections, count, names) = (file.long(40)?, file.half(60)?, file.half(62)?);
    if sections == 0 {
        return Ok(());
    }
    let header = |n: u16| sections + 64 * u64::from(n);
    let names = file.long(header(names) + 24)?;
    for at in (0..count).map(header) {
        if file.text(names + u64::from(file.word(at)?))? == ".mullion.checked" {
            let (start, bytes) = (file.long(at + 24)?, file.long(at + 32)?);
            for pair in (start..start + bytes).step_by(16) {
                parts.checked.push(file.long(pair)?..file.long(pair + 8)?);
            }
        }
    }
    parts.checked.sort_by_key(|range| range.start);
    Ok(())
}
