//! The image file, as far as loading it goes: segments, and what the other files read.
//!
//! Section headers are never looked at, and neither are symbols. All arithmetic
//! is checked; reading is by `get`, so no input can make it panic.

use crate::dynamic;
use crate::note::{self, Export, ImageKind};
use mullion_abi as abi;
use mullion_rules::{Place, Rule, Violation};
use std::ops::Range;
use std::sync::Arc;

/// Collects violations.
pub(crate) type Report = mullion_decoder::Report<Violation>;

const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: usize = 56;
const MAX_PROGRAM_HEADERS: usize = 32;
const PAGE: u64 = 4096;
const MAX_TLS: u64 = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;
const PT_TLS: u32 = 7;
const PT_NULL: u32 = 0;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_STACK: u32 = 0x6474_e551;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const PT_GNU_PROPERTY: u32 = 0x6474_e553;

/// What a segment's memory may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Constants.
    Read,
    /// Data.
    ReadWrite,
    /// Code, which is readable too: label checks read it.
    ReadExecute,
}

impl Permission {
    /// Whether the segment holds code.
    #[must_use]
    pub const fn is_executable(self) -> bool {
        matches!(self, Self::ReadExecute)
    }

    /// `r--`, `rw-` or `r-x`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "r--",
            Self::ReadWrite => "rw-",
            Self::ReadExecute => "r-x",
        }
    }
}

/// A piece of the image in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the window: a multiple of the page size, from 0x20000 on.
    pub offset: u64,
    /// Length in the window, in bytes, not rounded to pages. The part
    /// behind the content is filled with zeros. Code has no such part.
    pub size: u64,
    /// What the memory is for.
    pub permission: Permission,
    /// Where the content lies in the file.
    pub file: Range<usize>,
}

impl Segment {
    /// One past the last byte, rounded up to a page.
    fn page_end(&self) -> u64 {
        (self.offset + self.size).next_multiple_of(PAGE)
    }

    /// Whether `length` bytes at `offset` lie within the segment's memory.
    pub(crate) fn covers(&self, offset: u64, length: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .and_then(|at| at.checked_add(length))
            .is_some_and(|end| end <= self.size)
    }
}

/// The initial content of each thread's thread-local storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsTemplate {
    /// Offset in the window.
    pub offset: u64,
    /// Bytes that are copied.
    pub file_size: u64,
    /// Bytes in all; the rest is zero. At most 1 MiB.
    pub size: u64,
    /// A power of two, at most 4096.
    pub alignment: u64,
}

/// What an image file says of itself. By itself it proves nothing.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(crate) bytes: Arc<[u8]>,
    /// The segments, in ascending order, on distinct pages.
    pub segments: Vec<Segment>,
    /// What the image claims to confine.
    pub protection: abi::Protection,
    /// The names of the imports; import `i` has gate slot 16 + `i`.
    pub imports: Vec<String>,
    dynamic: Option<Range<usize>>,
    relocations: dynamic::Tables,
    entry: u64,
    tls: Option<TlsTemplate>,
    pub(crate) note: note::Note,
    exports: Vec<Export>,
}

/// Reads `N` bytes of the file at `at`.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A 16-bit field.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    field(bytes, at).map(u16::from_le_bytes)
}

/// A 32-bit field.
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_le_bytes)
}

/// A 64-bit field.
pub(crate) fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

/// A violation at an offset in the file.
pub(crate) fn breach(rule: Rule, offset: u64) -> Violation {
    Violation {
        place: Place::File(offset),
        rule,
        bytes: Vec::new(),
    }
}

/// A violation at an offset in the window, but of no instruction.
pub(crate) fn breach_in_window(rule: Rule, offset: u64) -> Violation {
    Violation {
        place: Place::Window(offset),
        rule,
        bytes: Vec::new(),
    }
}

struct ProgramHeader {
    kind: u32,
    flags: u32,
    /// Where the header lies in the file.
    at: u64,
    file_offset: u64,
    address: u64,
    file_size: u64,
    size: u64,
    alignment: u64,
}

impl ProgramHeader {
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self {
            kind: read_u32(bytes, at)?,
            flags: read_u32(bytes, at.checked_add(4)?)?,
            at: at as u64,
            file_offset: read_u64(bytes, at.checked_add(8)?)?,
            address: read_u64(bytes, at.checked_add(16)?)?,
            file_size: read_u64(bytes, at.checked_add(32)?)?,
            size: read_u64(bytes, at.checked_add(40)?)?,
            alignment: read_u64(bytes, at.checked_add(48)?)?,
        })
    }

    /// The content, if the file has it.
    fn file(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = usize::try_from(self.file_offset).ok()?;
        let end = start.checked_add(usize::try_from(self.file_size).ok()?)?;
        (end <= bytes.len()).then_some(start..end)
    }
}

impl Outline {
    /// Reads `bytes`, and reports what breaks a rule. None: too little is right to go on.
    pub fn read(bytes: Arc<[u8]>, report: &mut Report) -> Option<Self> {
        let headers = program_headers(&bytes)
            .map_err(|violation| report.add(|| violation))
            .ok()?;
        report.next_phase();
        let mut image = Self {
            entry: read_u64(&bytes, 24)?,
            bytes,
            segments: Vec::new(),
            protection: abi::Protection::ReadWriteCall,
            dynamic: None,
            relocations: dynamic::Tables::default(),
            tls: None,
            note: note::Note::default(),
            imports: Vec::new(),
            exports: Vec::new(),
        };
        for header in &headers {
            if let Err(rule) = image.program_header(header) {
                report.add(|| breach(rule, header.at));
            }
        }
        for header in headers.iter().filter(|header| header.kind == PT_TLS) {
            if image.tls_template(header).is_none() {
                report.add(|| breach(Rule::TlsTemplate, header.at));
            }
        }
        report.next_phase();
        let notes = headers.iter().filter(|header| header.kind == PT_NOTE);
        let notes: Vec<_> = notes
            .filter_map(|header| header.file(&image.bytes))
            .collect();
        match note::find(&image.bytes, &notes) {
            Ok(note) => {
                image.protection = note.protection;
                image.note = note;
            }
            Err(violation) => report.add(|| violation),
        }
        report.next_phase();
        image.relocations = dynamic::read_tables(&image, image.dynamic.clone(), report);
        report.next_phase();
        image.imports = note::imports(&image, report);
        report.next_phase();
        image.exports = note::exports(&image, report);
        report.next_phase();
        if !image.is_labelled(image.entry) {
            report.add(|| breach_in_window(Rule::EntryTarget, image.entry));
        }
        report.next_phase();
        Some(image)
    }

    fn program_header(&mut self, header: &ProgramHeader) -> Result<(), Rule> {
        match header.kind {
            PT_LOAD if header.size == 0 && header.file_size == 0 => Ok(()),
            PT_LOAD => self.segment(header),
            PT_DYNAMIC if self.dynamic.is_some() => Err(Rule::ProgramHeader),
            PT_DYNAMIC => {
                self.dynamic = Some(header.file(&self.bytes).ok_or(Rule::ElfTruncated)?);
                Ok(())
            }
            PT_NOTE => header
                .file(&self.bytes)
                .map(|_| ())
                .ok_or(Rule::ElfTruncated),
            // What these say is not acted upon. An interpreter is what a program that is
            // started directly, by the kernel, is handed to: `mullion run`.
            PT_NULL | PT_INTERP | PT_PHDR | PT_TLS | PT_GNU_EH_FRAME | PT_GNU_STACK
            | PT_GNU_RELRO | PT_GNU_PROPERTY => Ok(()),
            _ => Err(Rule::ProgramHeader),
        }
    }

    fn segment(&mut self, header: &ProgramHeader) -> Result<(), Rule> {
        let permission = match header.flags {
            4 => Permission::Read,
            5 => Permission::ReadExecute,
            6 => Permission::ReadWrite,
            _ => return Err(Rule::SegmentPermission),
        };
        if !header.address.is_multiple_of(PAGE) {
            return Err(Rule::SegmentAlignment);
        }
        let end = header
            .address
            .checked_add(header.size)
            .ok_or(Rule::SegmentRange)?;
        if header.address < abi::IMAGE_BASE || end > abi::HEAP_END {
            return Err(Rule::SegmentRange);
        }
        let file = header.file(&self.bytes).ok_or(Rule::ElfTruncated)?;
        if header.file_size > header.size
            || (permission.is_executable() && header.file_size != header.size)
        {
            return Err(Rule::SegmentSize);
        }
        if self
            .segments
            .last()
            .is_some_and(|last| header.address < last.page_end())
        {
            return Err(Rule::SegmentOverlap);
        }
        // Otherwise a short file is a large image in memory: each segment's content is copied.
        let shares = |other: &Segment| {
            let other = &other.file;
            !file.is_empty() && other.start < file.end && file.start < other.end
        };
        if self.segments.iter().any(shares) {
            return Err(Rule::SegmentOverlap);
        }
        self.segments.push(Segment {
            offset: header.address,
            size: header.size,
            permission,
            file,
        });
        Ok(())
    }

    fn tls_template(&mut self, header: &ProgramHeader) -> Option<()> {
        let alignment = header.alignment.max(1);
        let covered = self.segments.iter().any(|segment| {
            !segment.permission.is_executable() && segment.covers(header.address, header.file_size)
        });
        let sound = covered
            && self.tls.is_none()
            && header.file_size <= header.size
            && header.size <= MAX_TLS
            && alignment.is_power_of_two()
            && alignment <= PAGE;
        self.tls = sound.then_some(TlsTemplate {
            offset: header.address,
            file_size: header.file_size,
            size: header.size,
            alignment,
        });
        self.tls.as_ref().map(|_| ())
    }

    /// Offset of the entry point.
    #[must_use]
    pub const fn entry(&self) -> u64 {
        self.entry
    }

    /// The exports, in the order of their records.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The offset of the export with this name.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<u64> {
        self.exports
            .iter()
            .find(|export| export.name == name)
            .map(|export| export.offset)
    }

    /// Program or extension.
    #[must_use]
    pub const fn kind(&self) -> ImageKind {
        self.note.kind
    }

    /// Code bytes before and after rewriting, as the builder claims; 0 if unknown.
    #[must_use]
    pub const fn growth(&self) -> (u32, u32) {
        self.note.growth
    }

    /// Offset of the number of steps that is left, as the builder claims; `None` if the image counts
    /// none. Nothing is known about what lies there.
    #[must_use]
    pub const fn steps(&self) -> Option<u64> {
        self.note.steps
    }

    /// The thread-local template, if there is one.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsTemplate> {
        self.tls.as_ref()
    }

    /// The relocations. Each is to be written once, in this order.
    pub fn relocations(&self) -> impl Iterator<Item = dynamic::Relocation> + '_ {
        self.relocations.iter(self)
    }

    /// Those of [`relocations`](Self::relocations) that have an addend in the file's table (`DT_RELA`): they
    /// take a third of the table's length.
    pub fn explicit_relocations(&self) -> impl Iterator<Item = dynamic::Relocation> + '_ {
        self.relocations.explicit(self)
    }

    /// The others (`DT_RELR`): offsets of words whose contents are the addends, in ascending order,
    /// none across another. There may be eight times as many as the table has bytes.
    pub fn packed_relocations(&self) -> impl Iterator<Item = u64> + '_ {
        self.relocations.packed(self)
    }

    /// Bytes of the relocation tables in the file.
    #[must_use]
    pub fn relocation_tables(&self) -> usize {
        self.relocations.length()
    }

    /// Whether `offset` is a target that indirect branches accept: an
    /// instruction with the label in front of it, both in one segment.
    #[must_use]
    pub fn is_labelled(&self, offset: u64) -> bool {
        let length = abi::LABEL_NOP.len() as u64;
        let executable = self
            .segments
            .iter()
            .filter(|segment| segment.permission.is_executable());
        executable
            .filter(|segment| segment.covers(offset, 1))
            .any(|segment| {
                let nop = offset
                    .checked_sub(length)
                    .filter(|nop| *nop >= segment.offset);
                nop.and_then(|nop| self.at(nop, length)) == Some(&abi::LABEL_NOP)
            })
    }

    /// `length` bytes of file content at an offset of the window.
    pub(crate) fn at(&self, offset: u64, length: u64) -> Option<&[u8]> {
        self.segments
            .iter()
            .find(|segment| segment.covers(offset, length))
            .and_then(|segment| {
                let start = usize::try_from(offset.checked_sub(segment.offset)?).ok()?;
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                self.bytes.get(segment.file.clone())?.get(start..end)
            })
    }
}

fn program_headers(bytes: &[u8]) -> Result<Vec<ProgramHeader>, Violation> {
    let header: [u8; HEADER_SIZE] = field(bytes, 0).ok_or(breach(Rule::ElfTruncated, 0))?;
    let half = |at| read_u16(&header, at).unwrap_or(0);
    // Magic, 64 bits, little endian, version 1.
    if !header.starts_with(b"\x7fELF\x02\x01\x01") {
        return Err(breach(Rule::ElfHeader, 0));
    }
    // ET_DYN, EM_X86_64, sizes of the header and of a program header.
    for (at, wanted) in [
        (16, 3),
        (18, 62),
        (52, HEADER_SIZE),
        (54, PROGRAM_HEADER_SIZE),
    ] {
        if usize::from(half(at)) != wanted {
            return Err(breach(Rule::ElfHeader, at as u64));
        }
    }
    let count = usize::from(half(56));
    if !(1..=MAX_PROGRAM_HEADERS).contains(&count) {
        return Err(breach(Rule::ProgramHeader, 56));
    }
    let first = read_u64(&header, 32).and_then(|offset| usize::try_from(offset).ok());
    (0..count)
        .map(|number| {
            let at = first.and_then(|first| first.checked_add(number * PROGRAM_HEADER_SIZE));
            at.and_then(|at| ProgramHeader::read(bytes, at))
                .ok_or(breach(Rule::ElfTruncated, 32))
        })
        .collect()
}
