//! Links modules of checked code (`docs/word-form.md`, "The module's file").
//!
//! Code calls functions of other files as `__mullion_call.NAME`: the body, where the module has one. A first link
//! tells which are left. For each of them the driver makes a stub that jumps through a slot, and a record with the
//! name, and links again.

use crate::assembler::{beside, is_special};
use crate::checked::{Heap, LIBRARY};
use crate::sysroot::HEAP;
use crate::{DriverError, growth, response, tools};
use mullion_rewriter::WordProtection;
use mullion_word_abi::{CALL_PREFIX, MAX_IMPORTS, RECORD_SIZE, SLOT_FIRST_IMPORT};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// How the heap of a module calls the host's functions whose names it has itself.
const OF_HOST: &str = "__mullion_host_";

/// What `sysroot/word/jumps.s` has, for exceptions, too: they are never imported, because no function of the host could do it.
const JUMPS: &[&str] = &[
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__mullion_setjmp",
    "__mullion_control_read",
    "__mullion_control_unwind",
    "__mullion_uncaught",
];

/// The linker's command line in, a module out, whole or not at all.
pub(crate) fn link(
    arguments: Vec<OsString>,
    output: &Path,
    protection: WordProtection,
) -> Result<ExitCode, DriverError> {
    let relocatable = arguments.iter().any(|a| a == "-r" || a == "--relocatable");
    if relocatable || !arguments.iter().any(|a| a == "-shared") {
        return plain(arguments, output);
    }
    let work =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let template = crate::sysroot::word_script();
    let mut common = arguments;
    for option in [
        "-Bsymbolic",
        "-z",
        "now",
        "-z",
        "noexecstack",
        "--hash-style=gnu",
        "--eh-frame-hdr",
        "--no-warn-rwx-segments",
    ] {
        common.push(option.into());
    }
    common.push("-T".into());
    let script = work.path().join("word.ld");
    common.push(script.clone().into());
    if let Some(library) = std::env::var_os(LIBRARY).filter(|l| !l.is_empty()) {
        let mut archives = vec!["libword.a", "libc.a", "libgcc.a"];
        if Heap::handed_on()? == Heap::Own {
            archives.push(HEAP);
        }
        let names = archives.join(":");
        common.extend(["--exclude-libs", &names, "--start-group"].map(OsString::from));
        common.extend(
            archives
                .iter()
                .map(|archive| Path::new(&library).join(archive).into()),
        );
        common.push("--end-group".into());
    }
    write(&script, &fill_in(template, protection, true))?;

    let (first, stubs) = (work.path().join("first"), work.path().join("stubs.o"));
    assemble(&text(&[])?, &stubs)?;
    let try_it = |extra: &[&str], to: &Path| {
        let mut line = common.clone();
        line.push(stubs.clone().into());
        line.extend(extra.iter().map(OsString::from));
        line.extend(["-o".into(), to.into()]);
        run(line)
    };
    if !try_it(
        &[
            "--unresolved-symbols=ignore-all",
            "--no-gc-sections",
            "--no-eh-frame-hdr",
            "-z",
            "notext",
        ],
        &first,
    )? {
        return Ok(ExitCode::FAILURE);
    }
    let (jumps, imports): (Vec<String>, Vec<String>) = imports(&first)?
        .into_iter()
        .partition(|name| JUMPS.contains(&name.as_str()));
    let mut text = text(&imports)?;
    if !jumps.is_empty() {
        text.push_str(crate::sysroot::word_jumps());
    }
    assemble(&text, &stubs)?;
    if !has_threads(&first)? {
        write(&script, &fill_in(template, protection, false))?;
    }
    let special = is_special(output);
    let temporary = if special {
        output.to_path_buf()
    } else {
        beside(output)
    };
    let success = try_it(&[], &temporary)?;
    let finished = if success { finish(&temporary) } else { Ok(()) };
    if special {
        return finished.map(|()| code(success));
    }
    if !success || finished.is_err() {
        let _absent = fs::remove_file(&temporary);
        return finished.map(|()| code(success));
    }
    fs::rename(&temporary, output).map_err(|cause| DriverError::io(output, cause))?;
    Ok(ExitCode::SUCCESS)
}

fn code(success: bool) -> ExitCode {
    if success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What is no module: a combined object, or a question.
fn plain(mut arguments: Vec<OsString>, output: &Path) -> Result<ExitCode, DriverError> {
    arguments.extend(["-o".into(), output.into()]);
    Ok(code(run(arguments)?))
}

fn run(arguments: Vec<OsString>) -> Result<bool, DriverError> {
    let file = tempfile::NamedTempFile::new();
    let file = file.map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    fs::write(&file, response::join(&arguments))
        .map_err(|cause| DriverError::io(file.path(), cause))?;
    let mut at = OsString::from("@");
    at.push(file.path());
    let mut command = Command::new("ld");
    command.arg(at);
    let status = command.status();
    let status = status.map_err(|cause| tools::cannot_start(&command, cause))?;
    Ok(status.success())
}

fn write(file: &Path, text: &str) -> Result<(), DriverError> {
    fs::write(file, text).map_err(|cause| DriverError::io(file, cause))
}

fn assemble(text: &str, object: &Path) -> Result<(), DriverError> {
    let source = object.with_extension("s");
    write(&source, text)?;
    tools::step(Command::new("as").arg(&source).arg("-o").arg(object)).map(drop)
}

fn fill_in(template: &str, protection: WordProtection, threads: bool) -> String {
    let (header, section) = if threads {
        ("threads PT_TLS FLAGS(4);", ":threads")
    } else {
        ("", "")
    };
    template
        .replace("@PROTECTION@", &protection.number().to_string())
        .replace("@THREADS@", header)
        .replace("@IN_THREADS@", section)
}

/// The functions that the module calls and does not define, in an order that depends on nothing else.
fn imports(module: &Path) -> Result<Vec<String>, DriverError> {
    let listing = tools::step(Command::new("nm").args(["-u", "-P"]).arg(module))?;
    let dynamic = tools::step(Command::new("nm").args(["-D", "-u", "-P"]).arg(module))?;
    let both = [listing, dynamic].concat();
    let mut names: Vec<String> = String::from_utf8_lossy(&both)
        .lines()
        .filter_map(|line| line.split(' ').next()?.strip_prefix(CALL_PREFIX))
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The slots, and for each import a stub and a record.
fn text(imports: &[String]) -> Result<String, DriverError> {
    if imports.len() as u64 > MAX_IMPORTS {
        return Err(DriverError::Rewrite(format!(
            "{} imports are more than {MAX_IMPORTS}",
            imports.len()
        )));
    }
    let slots = SLOT_FIRST_IMPORT + imports.len() as u64;
    let mut text = format!(
        "\t.section .mullion.slots,\"aw\",@progbits\n\t.balign 8\n\t.globl __mullion_slots\n\t.hidden __mullion_slots\n\
         __mullion_slots:\n\t.skip {}\n\t.data\n\t.weak __dso_handle\n\t.hidden __dso_handle\n\t.balign 8\n\
         __dso_handle:\n\t.quad __dso_handle\n",
        8 * slots
    );
    for (number, called) in imports.iter().enumerate() {
        let name = called.strip_prefix(OF_HOST).unwrap_or(called);
        if name.len() as u64 >= RECORD_SIZE {
            return Err(DriverError::Rewrite(format!(
                "the name of an imported function has room for {} bytes: {name}",
                RECORD_SIZE - 1
            )));
        }
        let slot = 8 * (SLOT_FIRST_IMPORT + number as u64);
        let rest = RECORD_SIZE as usize - 1 - name.len();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\t.section .mullion.imports,\"a\",@progbits\n\t.asciz \"{name}\"\n\t.skip {rest}\n\t.text\n\t.balign 8, 0xcc\n\
             \t.globl {CALL_PREFIX}{called}\n\t.hidden {CALL_PREFIX}{called}\n\t.type {CALL_PREFIX}{called}, @function\n\
             {CALL_PREFIX}{called}:\n\tjmp\t*__mullion_slots+{slot}(%rip)\n\t.size {CALL_PREFIX}{called}, .-{CALL_PREFIX}{called}\n"
        );
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    Ok(text)
}

/// What the linker cannot be told: the segment that becomes read-only, and where thread-locals are.
fn finish(module: &Path) -> Result<(), DriverError> {
    let error = |cause| DriverError::io(module, cause);
    let mut bytes = fs::read(module).map_err(error)?;
    match Elf(&mut bytes).finish() {
        Some(Ok(())) => {}
        Some(Err(refused)) => return Err(DriverError::Rewrite(refused)),
        None => {
            return Err(DriverError::Rewrite(
                "the linker wrote no module".to_owned(),
            ));
        }
    }
    fs::write(module, bytes).map_err(error)?;
    let file = fs::OpenOptions::new().read(true).write(true).open(module);
    // Without the sum the module is as good.
    let _unknown = file.and_then(|file| growth::add_up(&file, growth::IN_MODULE));
    Ok(())
}

/// Whether the module has thread-locals.
fn has_threads(module: &Path) -> Result<bool, DriverError> {
    let mut bytes = fs::read(module).map_err(|cause| DriverError::io(module, cause))?;
    let elf = Elf(&mut bytes);
    let threads = |header: &Header| header.kind == PT_TLS && header.in_memory > 0;
    Ok(elf
        .headers()
        .is_some_and(|headers| headers.iter().any(threads)))
}

const PT_NULL: u32 = 0;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const READ_WRITE: u32 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_FLAGS: u64 = 30;
const DF_STATIC_TLS: u64 = 16;
const R_TPOFF64: u64 = 18;
/// Bytes of an entry of relocations, and of the dynamic section.
const RELA: usize = 24;
const DYN: usize = 16;

/// A file that the linker wrote.
struct Elf<'b>(&'b mut Vec<u8>);

#[derive(Clone, Copy)]
struct Header {
    /// Where in the file the header is.
    at: usize,
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
    alignment: u64,
}

impl Elf<'_> {
    fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn long(&self, at: usize) -> Option<u64> {
        self.get(at).map(u64::from_le_bytes)
    }

    fn put(&mut self, at: usize, value: u64) -> Option<()> {
        let place = self.0.get_mut(at..at.checked_add(8)?)?;
        place.copy_from_slice(&value.to_le_bytes());
        Some(())
    }

    fn headers(&self) -> Option<Vec<Header>> {
        let table = usize::try_from(self.long(32)?).ok()?;
        let count = usize::from(u16::from_le_bytes(self.get(56)?));
        let read = |number: usize| {
            let at = table + 56 * number;
            Some(Header {
                at,
                kind: u32::from_le_bytes(self.get(at)?),
                flags: u32::from_le_bytes(self.get(at + 4)?),
                offset: self.long(at + 8)?,
                address: self.long(at + 16)?,
                in_file: self.long(at + 32)?,
                in_memory: self.long(at + 40)?,
                alignment: self.long(at + 48)?,
            })
        };
        (0..count).map(read).collect()
    }

    /// Where in the file an address is.
    fn place(&self, headers: &[Header], address: u64) -> Option<usize> {
        let within = |h: &&Header| {
            h.kind == PT_LOAD && address >= h.address && address - h.address < h.in_file
        };
        let header = headers.iter().find(within)?;
        usize::try_from(header.offset + (address - header.address)).ok()
    }

    fn finish(&mut self) -> Option<Result<(), String>> {
        let headers = self.headers()?;
        let loaded = |h: &&Header| h.kind == PT_LOAD && h.flags == READ_WRITE;
        let relocated = *headers.iter().find(loaded)?;
        let relro = headers.iter().find(|h| h.kind == PT_NULL)?.at;
        let kind = u64::from(PT_GNU_RELRO) | 4 << 32;
        let (offset, address) = (relocated.offset, relocated.address);
        let sizes = (relocated.in_file, relocated.in_memory);
        for (at, value) in [(0, kind), (8, offset), (16, address), (24, address)] {
            self.put(relro + at, value)?;
        }
        for (at, value) in [(32, sizes.0), (40, sizes.1), (48, 1)] {
            self.put(relro + at, value)?;
        }
        self.settle_threads(&headers)
    }

    /// Thread-locals of the module lie at distances from its own thread pointer that are known now.
    fn settle_threads(&mut self, headers: &[Header]) -> Option<Result<(), String>> {
        let Some(dynamic) = headers.iter().find(|h| h.kind == PT_DYNAMIC) else {
            return Some(Ok(()));
        };
        let dynamic = usize::try_from(dynamic.offset).ok()?;
        let (mut table, mut size, mut size_at, mut flags_at) = (None, 0, 0, None);
        let mut at = dynamic;
        while let (tag, value) = (self.long(at)?, self.long(at + 8)?)
            && tag != 0
        {
            match tag {
                DT_RELA => table = Some(value),
                DT_RELASZ => (size, size_at) = (usize::try_from(value).ok()?, at + 8),
                DT_FLAGS => flags_at = Some((at + 8, value)),
                _ => {}
            }
            at += DYN;
        }
        let Some(table) = table else {
            return Some(Ok(()));
        };
        let table = self.place(headers, table)?;
        let threads = headers.iter().find(|h| h.kind == PT_TLS);
        let block = threads.map_or(0, |h| h.in_memory.next_multiple_of(h.alignment.max(1)));
        let mut kept = Vec::new();
        for entry in (table..table + size).step_by(RELA) {
            let information = self.long(entry + 8)?;
            if information & 0xffff_ffff != R_TPOFF64 {
                kept.push(self.get::<RELA>(entry)?);
                continue;
            }
            if information >> 32 != 0 || threads.is_none() {
                let reason = "a thread-local variable of the host cannot be reached from a module";
                return Some(Err(reason.to_owned()));
            }
            let place = self.place(headers, self.long(entry)?)?;
            let distance = self.long(entry + 16)?.wrapping_sub(block);
            self.put(place, distance)?;
        }
        let left = kept.concat();
        self.put(size_at, left.len() as u64)?;
        let old = self.0.get_mut(table..table + size)?;
        old.fill(0);
        old.get_mut(..left.len())?.copy_from_slice(&left);
        if let Some((at, flags)) = flags_at {
            self.put(at, flags & !DF_STATIC_TLS)?;
        }
        Some(Ok(()))
    }
}
