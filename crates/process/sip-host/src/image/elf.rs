//! What a shared library would do when it is loaded, by the tables that the system's loader reads.
//!
//! To load a library runs code: constructors, resolvers of indirect functions, constructors of other libraries that
//! it needs. A Rust library has two constructors of its own, both known. They are one of the standard library (it keeps the
//! program's arguments) and one of the compiler's start-up file. Everything else is refused, and so is every table
//! of the loader that such a library does not have.

use object::elf::{self as tag, DynamicTag};
use object::pod::slice_from_all_bytes;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{LittleEndian, Pod};
use thiserror::Error;

pub use super::imports::LibraryImports;

type Header = tag::FileHeader64<LittleEndian>;
type Segment = tag::ProgramHeader64<LittleEndian>;
const LITTLE: LittleEndian = LittleEndian;

/// Libraries that a SIP may need: all of the system's own C library, and the unwinder.
const NEEDED: [&str; 6] = [
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
];

/// Entries of the dynamic section that a Rust library has.
#[rustfmt::skip]
const DYNAMIC: [DynamicTag; 33] = [
    tag::DT_NULL, tag::DT_NEEDED, tag::DT_SONAME, tag::DT_FLAGS, tag::DT_FLAGS_1, tag::DT_RELA, tag::DT_RELASZ,
    tag::DT_RELAENT, tag::DT_RELACOUNT, tag::DT_RELR, tag::DT_RELRSZ, tag::DT_RELRENT, tag::DT_JMPREL,
    tag::DT_PLTRELSZ, tag::DT_PLTGOT, tag::DT_PLTREL, tag::DT_SYMTAB, tag::DT_SYMENT, tag::DT_STRTAB, tag::DT_STRSZ,
    tag::DT_HASH, tag::DT_GNU_HASH, tag::DT_INIT_ARRAY, tag::DT_INIT_ARRAYSZ, tag::DT_FINI_ARRAY,
    tag::DT_FINI_ARRAYSZ, tag::DT_INIT, tag::DT_FINI, tag::DT_VERSYM, tag::DT_VERNEED, tag::DT_VERNEEDNUM,
    tag::DT_VERDEF, tag::DT_VERDEFNUM,
];

/// Parts of the names of functions that a Rust library has run when it is loaded. The second is the standard
/// library's, whichever way its names are mangled.
const CONSTRUCTORS: [&str; 2] = [
    "frame_dummy",
    "3std3sys4args4unix3imp15ARGV_INIT_ARRAY12init_wrapper",
];

/// Functions by which thread-locals are reached, which each library has for itself (`mullion_sip::separate`).
const LOCALS: [&str; 2] = ["__tls_get_addr", "__cxa_thread_atexit_impl"];

/// Bytes of thread-locals of one thread, at most.
const LARGEST_LOCALS: u64 = 64 << 10;

/// Why a file is no library that can be loaded without running unknown code.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ElfError {
    /// It does not begin as an ELF file does.
    #[error("is no ELF file")]
    NotElf,
    /// Something that it refers to is beyond its end, or contradicts itself.
    #[error("is damaged or cut short: {0}")]
    Damaged(&'static str),
    /// It is for another machine, or no shared library.
    #[error("is no shared library for x86-64")]
    NotForThisMachine,
    /// Memory that it wants to write and execute, or a stack that it wants to execute.
    #[error("wants memory that is both written and executed")]
    WritableCode,
    /// An entry of its dynamic section.
    #[error("asks the system's loader for {0}, which no Rust library does")]
    Dynamic(String),
    /// A library that would be loaded with it.
    #[error("needs {0}, whose constructors would run: link it statically")]
    Needs(String),
    /// A constructor that is not the standard library's.
    #[error("would run {0} when it is loaded; a SIP has no constructors")]
    Constructor(String),
    /// A relocation that runs code, or none that a Rust library has.
    #[error("has a relocation of type {0}, which no Rust library needs")]
    Relocation(u32),
    /// Its thread-locals would be the OS thread's, and not each thread's of a process.
    #[error(
        "takes {0} from elsewhere, so that threads of a process would share thread-locals: build it with `mullion_sip::sip_main!`"
    )]
    ThreadLocals(String),
    /// It does not export what a host calls.
    #[error("does not export {0}: build it with `mullion_sip::sip_main!`")]
    NoEntry(&'static str),
    /// Functions of the system that no SIP gets.
    #[error("refers to what no SIP gets of the system: {0}")]
    Imports(LibraryImports),
    /// It exports more than what a host calls: another library, or the system's, could take its place.
    #[error("exports {0}; a SIP exports nothing but its entry")]
    Export(String),
    /// Without names nobody can say what its constructors are.
    #[error(
        "has no symbol table: build it without `strip = true` (`strip = \"debuginfo\"` is fine)"
    )]
    Stripped,
}

/// A range of the library's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// What of a library's memory is written while it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    /// Its statics.
    pub(crate) writable: Vec<Span>,
    /// The initial image of its thread-locals.
    pub(crate) locals: Locals,
    /// What is written over in the file before it is loaded, so that loading and the program's end run nothing of it.
    pub(crate) silenced: Vec<Word>,
}

/// Eight bytes of a file, and what they are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    pub(crate) at: usize,
    pub(crate) value: u64,
}

/// The initial image of a library's thread-locals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Locals {
    pub(crate) start: u64,
    pub(crate) filled: u64,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
}

/// A file whose headers are in order.
pub(super) struct Elf<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    segments: &'a [Segment],
}

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        if bytes.get(4) != Some(&2) || bytes.get(5) != Some(&1) {
            return Err(ElfError::NotForThisMachine);
        }
        let header = Header::parse(bytes).map_err(|_| ElfError::Damaged("its header"))?;
        if header.e_machine(LITTLE) != tag::EM_X86_64 || header.e_type(LITTLE) != tag::ET_DYN {
            return Err(ElfError::NotForThisMachine);
        }
        let segments = header
            .program_headers(LITTLE, bytes)
            .map_err(|_| ElfError::Damaged("its program headers"))?;
        Ok(Elf {
            bytes,
            header,
            segments,
        })
    }

    /// The bytes of a section.
    pub(super) fn section(&self, name: &str) -> Result<Option<&'a [u8]>, ElfError> {
        let damaged = |_| ElfError::Damaged("its sections");
        let sections = self.header.sections(LITTLE, self.bytes).map_err(damaged)?;
        let section = sections.section_by_name(LITTLE, name.as_bytes());
        section
            .map(|(_, section)| section.data(LITTLE, self.bytes).map_err(damaged))
            .transpose()
    }

    /// What is written, once it is clear that loading runs nothing unknown.
    pub(super) fn parts(&self, entry: &'static str) -> Result<Parts, ElfError> {
        self.check_segments()?;
        let dynamic = self.dynamic()?;
        let value = |wanted: DynamicTag| {
            let found = dynamic.iter().find(|entry| entry.d_tag(LITTLE) == wanted);
            found.map_or(0, |entry| entry.d_val(LITTLE))
        };
        let texts = self.at(value(tag::DT_STRTAB), value(tag::DT_STRSZ))?;
        self.check_dynamic(dynamic, texts)?;
        let mut relocations: Vec<&tag::Rela64<LittleEndian>> = Vec::new();
        for (start, bytes) in [
            (tag::DT_RELA, tag::DT_RELASZ),
            (tag::DT_JMPREL, tag::DT_PLTRELSZ),
        ] {
            let table: &[tag::Rela64<LittleEndian>] = self.table(value(start), value(bytes))?;
            relocations.extend(table);
        }
        for relocation in &relocations {
            check_relocation(relocation.r_type(LITTLE, false).0)?;
        }
        let constructors = Span {
            start: value(tag::DT_INIT_ARRAY),
            bytes: value(tag::DT_INIT_ARRAYSZ),
        };
        self.check_constructors(constructors, &relocations, value(tag::DT_INIT))?;
        let symbols = self.check_symbols(value(tag::DT_SYMTAB), texts, entry)?;
        let unknown = |relocation: &&&tag::Rela64<LittleEndian>| {
            relocation.r_sym(LITTLE, false) as usize >= symbols
        };
        if relocations.iter().any(|relocation| unknown(&relocation)) {
            return Err(ElfError::Damaged("a relocation"));
        }
        Ok(Parts {
            writable: self.writable(),
            locals: self.locals()?,
            silenced: self.silenced(dynamic),
        })
    }

    fn of_type(&self, kind: tag::ProgramType) -> Option<&'a Segment> {
        let mut segments = self.segments.iter();
        segments.find(|segment| segment.p_type(LITTLE) == kind)
    }

    fn locals(&self) -> Result<Locals, ElfError> {
        let Some(segment) = self.of_type(tag::PT_TLS) else {
            return Ok(Locals::default());
        };
        let locals = Locals {
            start: segment.p_vaddr(LITTLE),
            filled: segment.p_filesz(LITTLE),
            bytes: segment.p_memsz(LITTLE),
            align: segment.p_align(LITTLE).max(1),
        };
        let end = locals.start.checked_add(locals.filled);
        let inside = |loaded: &Segment| {
            let (start, bytes) = (loaded.p_vaddr(LITTLE), loaded.p_memsz(LITTLE));
            loaded.p_type(LITTLE) == tag::PT_LOAD
                && start <= locals.start
                && end.is_some_and(|end| end <= start.saturating_add(bytes))
        };
        let sound = locals.filled <= locals.bytes
            && locals.bytes <= LARGEST_LOCALS
            && locals.align.is_power_of_two()
            && locals.align <= PAGE
            && locals.start.is_multiple_of(locals.align)
            && (locals.filled == 0 || self.segments.iter().any(inside));
        match sound {
            true => Ok(locals),
            false => Err(ElfError::Damaged("its thread-locals")),
        }
    }

    fn check_segments(&self) -> Result<(), ElfError> {
        for segment in self.segments {
            let (kind, flags) = (segment.p_type(LITTLE), segment.p_flags(LITTLE).0);
            let (execute, write) = (flags & tag::PF_X.0 != 0, flags & tag::PF_W.0 != 0);
            if execute && (write || kind == tag::PT_GNU_STACK) {
                return Err(ElfError::WritableCode);
            }
            if kind == tag::PT_LOAD && segment.data(LITTLE, self.bytes).is_err() {
                return Err(ElfError::Damaged("a segment"));
            }
        }
        if self.of_type(tag::PT_GNU_STACK).is_none() {
            // Without a word about it, the loader takes the stack to be executed.
            return Err(ElfError::WritableCode);
        }
        Ok(())
    }

    fn dynamic(&self) -> Result<&'a [tag::Dyn64<LittleEndian>], ElfError> {
        let segment = self
            .of_type(tag::PT_DYNAMIC)
            .ok_or(ElfError::NotForThisMachine)?;
        self.table(segment.p_vaddr(LITTLE), segment.p_memsz(LITTLE))
    }

    /// The entries that name functions to be run when the library is loaded, and at the program's end. The only one that
    /// does anything is the standard library's, which keeps the program's arguments. These are the host's.
    fn silenced(&self, dynamic: &[tag::Dyn64<LittleEndian>]) -> Vec<Word> {
        const ENTRY: usize = size_of::<tag::Dyn64<LittleEndian>>();
        let first = dynamic.as_ptr().addr() - self.bytes.as_ptr().addr();
        let entries = (first..).step_by(ENTRY).zip(dynamic);
        let word = |(at, entry): (usize, &tag::Dyn64<LittleEndian>)| match entry.d_tag(LITTLE) {
            tag::DT_INIT_ARRAYSZ | tag::DT_FINI_ARRAYSZ => Some(Word {
                at: at + ENTRY / 2,
                value: 0,
            }),
            // An entry that says nothing, in a library.
            tag::DT_INIT | tag::DT_FINI => Some(Word {
                at,
                value: tag::DT_DEBUG.0 as u64,
            }),
            _ => None,
        };
        entries.filter_map(word).collect()
    }

    fn check_dynamic(
        &self,
        dynamic: &[tag::Dyn64<LittleEndian>],
        texts: &[u8],
    ) -> Result<(), ElfError> {
        for entry in dynamic {
            let kind = entry.d_tag(LITTLE);
            if !DYNAMIC.contains(&kind) {
                return Err(ElfError::Dynamic(format!("{kind:?}")));
            }
            if kind == tag::DT_NEEDED {
                let name = text(texts, entry.d_val(LITTLE))?;
                if !NEEDED.contains(&name) {
                    return Err(ElfError::Needs(name.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Each constructor is one that every Rust library has.
    fn check_constructors(
        &self,
        array: Span,
        relocations: &[&tag::Rela64<LittleEndian>],
        init: u64,
    ) -> Result<(), ElfError> {
        let symbols = self.symbols()?;
        let known = |function: u64, names: &[&str]| {
            let mut all = symbols.iter().filter(|(_, value)| *value == function);
            let named = |(name, _): &(&str, u64)| names.iter().any(|known| name.contains(known));
            if all.clone().any(named) {
                return Ok(());
            }
            let name = all
                .next()
                .map_or("a function without a name", |(name, _)| name);
            Err(ElfError::Constructor(name.to_owned()))
        };
        if init != 0 {
            known(init, &["_init"])?;
        }
        for slot in (0..array.bytes / 8).map(|index| array.start.wrapping_add(8 * index)) {
            let target = relocations
                .iter()
                .find(|relocation| relocation.r_offset(LITTLE) == slot)
                .filter(|relocation| relocation.r_type(LITTLE, false) == tag::R_X86_64_RELATIVE)
                .ok_or(ElfError::Damaged("its list of constructors"))?;
            known(target.r_addend(LITTLE) as u64, &CONSTRUCTORS)?;
        }
        Ok(())
    }

    /// Names and values of the file's own symbol table.
    fn symbols(&self) -> Result<Vec<(&'a str, u64)>, ElfError> {
        let damaged = |_| ElfError::Damaged("its symbols");
        let sections = self.header.sections(LITTLE, self.bytes).map_err(damaged)?;
        let table = sections
            .symbols(LITTLE, self.bytes, tag::SHT_SYMTAB)
            .map_err(damaged)?;
        if table.is_empty() {
            return Err(ElfError::Stripped);
        }
        let named = table.iter().filter_map(|symbol| {
            let name = symbol.name(LITTLE, table.strings()).ok()?;
            Some((std::str::from_utf8(name).ok()?, symbol.st_value(LITTLE)))
        });
        Ok(named.collect())
    }

    /// It exports the entry alone, refers to nothing of the system but what a SIP may, and has no function that is resolved
    /// by running code. How many symbols there are that the loader may look up.
    fn check_symbols(
        &self,
        start: u64,
        texts: &[u8],
        entry: &'static str,
    ) -> Result<usize, ElfError> {
        let sections = self
            .header
            .sections(LITTLE, self.bytes)
            .map_err(|_| ElfError::Damaged("its sections"))?;
        let section = sections
            .iter()
            .find(|section| section.sh_type(LITTLE) == tag::SHT_DYNSYM)
            .filter(|section| section.sh_addr(LITTLE) == start)
            .ok_or(ElfError::Damaged("its exported symbols"))?;
        let symbols: &[tag::Sym64<LittleEndian>] = self.table(start, section.sh_size(LITTLE))?;
        let (mut found, mut imports) = (false, LibraryImports::default());
        for symbol in symbols {
            if symbol.st_type() == tag::STT_GNU_IFUNC {
                return Err(ElfError::Relocation(tag::R_X86_64_IRELATIVE.0));
            }
            let name = text(texts, symbol.st_name(LITTLE).into())?;
            if LOCALS.contains(&name) {
                return Err(ElfError::ThreadLocals(name.to_owned()));
            }
            match symbol.is_undefined(LITTLE) {
                _ if name.is_empty() => {}
                true => imports.add(name),
                false if name == entry => found = true,
                false => return Err(ElfError::Export(name.to_owned())),
            }
        }
        if !imports.is_empty() {
            return Err(ElfError::Imports(imports));
        }
        if found {
            Ok(symbols.len())
        } else {
            Err(ElfError::NoEntry(entry))
        }
    }

    /// Segments that stay writable, once the loader has made a part of them read-only.
    fn writable(&self) -> Vec<Span> {
        let sealed = self.of_type(tag::PT_GNU_RELRO).map_or(0..0, |segment| {
            let start = segment.p_vaddr(LITTLE) & !(PAGE - 1);
            start
                ..(segment
                    .p_vaddr(LITTLE)
                    .saturating_add(segment.p_memsz(LITTLE)))
                    & !(PAGE - 1)
        });
        let mut spans = Vec::new();
        let written = |segment: &&Segment| {
            segment.p_type(LITTLE) == tag::PT_LOAD && segment.p_flags(LITTLE).0 & tag::PF_W.0 != 0
        };
        for segment in self.segments.iter().filter(written) {
            let start = segment.p_vaddr(LITTLE);
            let end = start.saturating_add(segment.p_memsz(LITTLE));
            let before = start..end.min(sealed.start);
            let behind = start.max(sealed.end)..end;
            let pieces = if sealed.is_empty() {
                [start..end, 0..0]
            } else {
                [before, behind]
            };
            spans.extend(
                pieces
                    .into_iter()
                    .filter(|piece| !piece.is_empty())
                    .map(|piece| Span {
                        start: piece.start,
                        bytes: piece.end - piece.start,
                    }),
            );
        }
        spans
    }

    /// A table at an address, as the loader finds it: through the segments.
    fn table<T: Pod>(&self, start: u64, bytes: u64) -> Result<&'a [T], ElfError> {
        let bytes = self.at(start, bytes)?;
        let whole = bytes.len() - bytes.len() % size_of::<T>();
        slice_from_all_bytes(&bytes[..whole]).map_err(|()| ElfError::Damaged("a table"))
    }

    fn at(&self, start: u64, bytes: u64) -> Result<&'a [u8], ElfError> {
        if bytes == 0 {
            return Ok(&[]);
        }
        let found = self.segments.iter().find_map(|segment| {
            if segment.p_type(LITTLE) != tag::PT_LOAD {
                return None;
            }
            let data = segment.data(LITTLE, self.bytes).ok()?;
            let offset = start.checked_sub(segment.p_vaddr(LITTLE))?;
            data.get(offset as usize..offset.checked_add(bytes)? as usize)
        });
        found.ok_or(ElfError::Damaged("a table lies outside of the file"))
    }
}

/// Pages of the machine.
const PAGE: u64 = 4096;

fn text(texts: &[u8], offset: u64) -> Result<&str, ElfError> {
    let damaged = ElfError::Damaged("a name");
    let rest = texts.get(offset as usize..).ok_or(damaged.clone())?;
    let length = rest
        .iter()
        .position(|byte| *byte == 0)
        .ok_or(damaged.clone())?;
    std::str::from_utf8(&rest[..length]).map_err(|_| damaged)
}

/// Addresses of symbols and of the library's own memory, and the library's number for `__tls_get_addr`; none of which
/// runs code, or tells where thread-locals of the OS thread are.
fn check_relocation(kind: u32) -> Result<(), ElfError> {
    let known = [
        tag::R_X86_64_64,
        tag::R_X86_64_GLOB_DAT,
        tag::R_X86_64_JUMP_SLOT,
        tag::R_X86_64_RELATIVE,
        tag::R_X86_64_DTPMOD64,
    ];
    if known.iter().any(|known| known.0 == kind) {
        Ok(())
    } else {
        Err(ElfError::Relocation(kind))
    }
}
