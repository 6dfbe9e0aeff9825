//! The module's file, as far as loading it goes.
//!
//! Section headers are never looked at. All arithmetic is checked; reading is by `get`, so no input can make it panic.

use crate::Report;
use crate::dynamic::{self, Dynamic, Relocation, Symbol};
use crate::note::{self, Note};
use mullion_word_abi as abi;
use mullion_word_rules::{Place, Rule, Violation};
use std::ops::Range;
use std::sync::Arc;

const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: usize = 56;
const MAX_PROGRAM_HEADERS: usize = 32;
const PAGE: u64 = 4096;
const MAX_TLS: u64 = 1 << 20;

const PT_NULL: u32 = 0;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;
const PT_TLS: u32 = 7;
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
    /// Code.
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

/// A piece of the module in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    address: u64,
    size: u64,
    permission: Permission,
    file: Range<usize>,
}

impl Segment {
    /// Address in the file's terms: a multiple of the page size.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Length in memory, not rounded to pages. What is longer than the content is filled with zeros (code: never longer).
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What the memory is for.
    #[must_use]
    pub const fn permission(&self) -> Permission {
        self.permission
    }

    /// Where the content lies in the file.
    #[must_use]
    pub fn file(&self) -> Range<usize> {
        self.file.clone()
    }

    /// One past the last byte, rounded up to a page.
    #[must_use]
    pub fn page_end(&self) -> u64 {
        self.address
            .saturating_add(self.size)
            .next_multiple_of(PAGE)
    }

    /// Whether `length` bytes at `address` lie within the segment's memory.
    #[inline]
    pub(crate) fn covers(&self, address: u64, length: u64) -> bool {
        let end = address
            .checked_sub(self.address)
            .and_then(|at| at.checked_add(length));
        end.is_some_and(|end| end <= self.size)
    }
}

/// The initial content of each thread's thread-local storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsTemplate {
    /// Address in the file's terms.
    pub address: u64,
    /// Bytes that are copied.
    pub file_size: u64,
    /// Bytes in all; the rest is zero. At most 1 MiB.
    pub size: u64,
    /// A power of two, at most 4096.
    pub alignment: u64,
}

/// What a module's file says of itself. By itself it proves nothing. Addresses are the file's: the loader adds where it
/// puts the module.
#[derive(Clone, Debug)]
pub struct Module {
    bytes: Arc<[u8]>,
    segments: Vec<Segment>,
    relro: Option<Range<u64>>,
    tls: Option<TlsTemplate>,
    dynamic: Dynamic,
    pub(crate) note: Note,
    imports: Vec<String>,
}

/// Reads `N` bytes of the file at `at`.
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A 16-bit field.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    read(bytes, at).map(u16::from_le_bytes)
}

/// A 32-bit field.
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    read(bytes, at).map(u32::from_le_bytes)
}

/// A 64-bit field.
pub(crate) fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    read(bytes, at).map(u64::from_le_bytes)
}

fn breach(rule: Rule, offset: u64) -> Violation {
    Violation::at(rule, Place::File(offset))
}

pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
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
    pub(crate) fn file(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = usize::try_from(self.file_offset).ok()?;
        let end = start.checked_add(usize::try_from(self.file_size).ok()?)?;
        (end <= bytes.len()).then_some(start..end)
    }
}

impl Module {
    /// Reads `bytes`, and reports what breaks a rule. None: too little is right to go on.
    pub(crate) fn parse(bytes: Arc<[u8]>, report: &mut Report) -> Option<Self> {
        let headers = program_headers(&bytes)
            .map_err(|violation| report.add(|| violation))
            .ok()?;
        report.next_phase();
        let mut module = Self {
            bytes,
            segments: Vec::new(),
            relro: None,
            tls: None,
            dynamic: Dynamic::default(),
            note: Note::default(),
            imports: Vec::new(),
        };
        let mut section = None;
        for header in &headers {
            if let Err(rule) = module.program_header(header, &mut section) {
                report.add(|| breach(rule, header.at));
            }
        }
        report.next_phase();
        for header in &headers {
            let broken = match header.kind {
                PT_TLS if module.tls_template(header).is_none() => Rule::TlsTemplate,
                PT_GNU_RELRO if module.read_only_part(header).is_none() => Rule::Relro,
                _ => continue,
            };
            report.add(|| breach(broken, header.at));
        }
        report.next_phase();
        match note::find(&module.bytes, &headers) {
            Ok(note) => module.note = note,
            Err(violation) => report.add(|| violation),
        }
        report.next_phase();
        module.imports = note::imports(&module, report);
        report.next_phase();
        if !note::slots_are_sound(&module) {
            let at = module.note.slots.start;
            report.add(|| Violation::at(Rule::SlotTable, Place::Address(at)));
        }
        report.next_phase();
        module.dynamic = dynamic::parse(&module, section, report);
        Some(module)
    }

    fn program_header(
        &mut self,
        header: &ProgramHeader,
        dynamic: &mut Option<Range<usize>>,
    ) -> Result<(), Rule> {
        match header.kind {
            PT_LOAD if header.size == 0 && header.file_size == 0 => Ok(()),
            PT_LOAD => self.segment_header(header),
            PT_DYNAMIC if dynamic.is_some() => Err(Rule::ProgramHeader),
            PT_DYNAMIC => {
                *dynamic = Some(header.file(&self.bytes).ok_or(Rule::ElfTruncated)?);
                Ok(())
            }
            PT_NOTE => {
                let file = header.file(&self.bytes);
                file.map(|_| ()).ok_or(Rule::ElfTruncated)
            }
            // What these say is not acted upon, or is read later.
            PT_NULL | PT_INTERP | PT_PHDR | PT_TLS | PT_GNU_EH_FRAME | PT_GNU_STACK
            | PT_GNU_RELRO | PT_GNU_PROPERTY => Ok(()),
            _ => Err(Rule::ProgramHeader),
        }
    }

    fn segment_header(&mut self, header: &ProgramHeader) -> Result<(), Rule> {
        let permission = match header.flags {
            4 => Permission::Read,
            5 => Permission::ReadExecute,
            6 => Permission::ReadWrite,
            _ => return Err(Rule::SegmentPermission),
        };
        if !header.address.is_multiple_of(PAGE) {
            return Err(Rule::SegmentAlignment);
        }
        let end = header.address.checked_add(header.size);
        if end.is_none_or(|end| end > abi::MAX_ADDRESS) {
            return Err(Rule::SegmentRange);
        }
        let file = header.file(&self.bytes).ok_or(Rule::ElfTruncated)?;
        let short = permission.is_executable() && header.file_size != header.size;
        if header.file_size > header.size || short {
            return Err(Rule::SegmentSize);
        }
        let last = self.segments.last();
        if last.is_some_and(|last| header.address < last.page_end()) {
            return Err(Rule::SegmentOverlap);
        }
        // Gaps between two would be no code, in the middle of what is taken for the module's text.
        let mut codes = self
            .segments
            .iter()
            .filter(|s| s.permission.is_executable());
        if permission.is_executable() && codes.next().is_some() {
            return Err(Rule::SegmentCode);
        }
        // Otherwise a short file is a large module in memory: each segment's content is copied.
        let shares = |other: &Segment| {
            let other = &other.file;
            !file.is_empty() && other.start < file.end && file.start < other.end
        };
        if self.segments.iter().any(shares) {
            return Err(Rule::SegmentOverlap);
        }
        self.segments.push(Segment {
            address: header.address,
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
            address: header.address,
            file_size: header.file_size,
            size: header.size,
            alignment,
        });
        self.tls.as_ref().map(|_| ())
    }

    fn read_only_part(&mut self, header: &ProgramHeader) -> Option<()> {
        let end = header.address.checked_add(header.size)?;
        let whole = header.address.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        let inside = self.segments.iter().any(|segment| {
            segment.permission == Permission::ReadWrite
                && segment.address <= header.address
                && end <= segment.page_end()
        });
        let sound = whole && inside && header.size > 0 && self.relro.is_none();
        self.relro = sound.then_some(header.address..end);
        self.relro.as_ref().map(|_| ())
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The segments, in ascending order, on distinct pages.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The bytes that a segment starts with; the rest of it is zero.
    #[must_use]
    pub fn contents(&self, segment: &Segment) -> &[u8] {
        self.bytes.get(segment.file()).unwrap_or(&[])
    }

    /// The pages of a read + write segment that become read-only after relocation.
    #[must_use]
    pub fn relro(&self) -> Option<Range<u64>> {
        self.relro.clone()
    }

    /// The thread-local template, if there is one.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsTemplate> {
        self.tls.as_ref()
    }

    /// What the module claims to check; for a verified one, what it does.
    #[must_use]
    pub const fn protection(&self) -> abi::Protection {
        self.note.protection
    }

    /// Code bytes before and after rewriting, as the builder claims; 0 if unknown.
    #[must_use]
    pub const fn growth(&self) -> (u32, u32) {
        self.note.growth
    }

    /// The addresses of the slots, 8 bytes each, in the part that becomes read-only.
    #[must_use]
    pub fn slots(&self) -> Range<u64> {
        self.note.slots.clone()
    }

    /// The names of the imports; import `i` has slot 16 + `i`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The relocations. Each is to be written once, in this order.
    pub fn relocations(&self) -> impl Iterator<Item = Relocation> + '_ {
        self.dynamic.relocations(self)
    }

    /// The dynamic symbols that have a name: by their number, which relocations name.
    pub fn symbols(&self) -> impl Iterator<Item = (u32, Symbol<'_>)> + '_ {
        self.dynamic.symbols(self)
    }

    /// A dynamic symbol, by its number.
    #[must_use]
    pub fn symbol(&self, number: u32) -> Option<Symbol<'_>> {
        self.dynamic.symbol(self, number)
    }

    /// The gates that are to be called when the module is loaded, in this order.
    #[must_use]
    pub fn init(&self) -> &[u64] {
        &self.dynamic.init
    }

    /// The gates that are to be called before the module goes, in the opposite of this order.
    #[must_use]
    pub fn fini(&self) -> &[u64] {
        &self.dynamic.fini
    }

    /// The segment in whose memory `length` bytes at `address` lie.
    #[inline]
    pub(crate) fn segment(&self, address: u64, length: u64) -> Option<&Segment> {
        let mut segments = self.segments.iter();
        segments.find(|segment| segment.covers(address, length))
    }

    /// `length` bytes of file content at an address.
    pub(crate) fn at(&self, address: u64, length: u64) -> Option<&[u8]> {
        let segment = self.segment(address, length)?;
        let start = usize::try_from(address.checked_sub(segment.address)?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        self.contents(segment).get(start..end)
    }

    /// Whether an access to these bytes stays in the module, in memory that is and stays writable if it is a write.
    #[inline]
    pub(crate) fn holds(&self, address: i64, bytes: u32, write: bool) -> bool {
        let Ok(address) = u64::try_from(address) else {
            return false;
        };
        let Some(segment) = self.segment(address, bytes.into()) else {
            return false;
        };
        let constant = self.relro.as_ref().is_some_and(|relro| {
            address < relro.end && relro.start < address.saturating_add(bytes.into())
        });
        !write || (segment.permission == Permission::ReadWrite && !constant)
    }
}

pub(crate) fn program_headers(bytes: &[u8]) -> Result<Vec<ProgramHeader>, Violation> {
    let header: [u8; HEADER_SIZE] = read(bytes, 0).ok_or(breach(Rule::ElfTruncated, 0))?;
    let field = |at| read_u16(&header, at).unwrap_or(0);
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
        if usize::from(field(at)) != wanted {
            return Err(breach(Rule::ElfHeader, at as u64));
        }
    }
    let count = usize::from(field(56));
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
