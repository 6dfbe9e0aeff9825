//! Calls gcc or g++ with what a domain needs.

use crate::arguments::{Arguments, Kind, OPTIONS_HELP, Task};
use crate::origin::Origin;
use crate::sysroot::Sysroot;
use crate::tools::{self, Tools};
use crate::{DriverError, assembler, checked, opened, shared, specs};
use mullion_rewriter::Wall;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The language that the driver assumes for linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `mullion cc`.
    C,
    /// `mullion c++`.
    Cxx,
}

/// Options that every compilation gets, after the user's own, so that they win.
///
/// The three registers belong to the rewriter. Position-independent code of an
/// executable is what an image is made of. The thread pointer is not reached
/// through `%fs`, so gcc should load it once and keep it. What needs `%fs`, a
/// shadow stack or another dialect of assembler is switched off.
pub(crate) const CODE: &[&str] = &[
    "-ffixed-r11",
    "-ffixed-r14",
    "-ffixed-r15",
    "-fPIE",
    "-mno-tls-direct-seg-refs",
    "-ftls-model=initial-exec",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-fcf-protection=none",
    "-masm=att",
    "-fno-lto",
    // A nested function whose address is taken needs code on the stack: the call faults.
    "-Wtrampolines",
    // What no image may hold (EVEX instructions and masks, and AMD's of before), and `-march=native` asks for.
    "-mno-avx512f",
    "-mno-avxvnni",
    "-mno-fma4",
    "-mno-xop",
    "-mno-tbm",
];

/// Options that every compilation starts with; the user's own win.
///
/// A jump through a table ends in the check of its target, and each case begins with a label: a
/// `switch` needs more cases than gcc believes before that is cheaper than to compare.
pub(crate) const TUNING: &[&str] = &["--param=case-values-threshold=20"];

/// What `-v` says where options name a processor or AVX-512.
const NARROWED: &str = "mullion: a domain has no AVX-512, AVX-VNNI, FMA4, XOP and TBM: -mno-avx512f -mno-avxvnni -mno-fma4 -mno-xop -mno-tbm \
     follow the options of the command line; AVX2, FMA and BMI2 remain";

/// What became of a command line.
#[derive(Debug)]
pub struct Compiled {
    /// gcc's exit status.
    pub code: u8,
    /// What the image was made with, if there is one and a key to sign that with.
    pub origin: Option<Origin>,
}

/// Does what `mullion cc` or `mullion c++` was asked for.
///
/// # Errors
/// What is refused, what is missing; an error of gcc is an exit status.
pub fn compile(language: Language, arguments: &Arguments) -> Result<Compiled, DriverError> {
    if arguments.help {
        let written = std::io::stdout().write_all(OPTIONS_HELP.as_bytes());
        written.or_else(|cause| match cause.kind() {
            ErrorKind::BrokenPipe => Ok(()),
            _ => Err(DriverError::io(Path::new("standard output"), cause)),
        })?;
        return Ok(Compiled {
            code: 0,
            origin: None,
        });
    }
    let mut gcc = Command::new(match language {
        Language::C => tools::compiler("MULLION_CC", "gcc"),
        Language::Cxx => tools::compiler("MULLION_CXX", "g++"),
    });
    if arguments.verbose && arguments.names_processor {
        // Who has closed the pipe wants no words, and still the object.
        let _ = writeln!(std::io::stderr(), "{NARROWED}");
    }
    let scratch;
    if arguments.task == Task::Question {
        gcc.args(&arguments.forwarded);
    } else {
        let sysroot = Sysroot::prepare(&arguments.rewriting())?;
        let tools = Tools::prepare(&sysroot.overlay())?;
        if let Wall::Word(protection) = arguments.wall {
            return module(gcc, arguments, protection, &sysroot, &tools);
        }
        scratch =
            tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
        if arguments.task == Task::Link {
            gcc.arg(link_specs(arguments, &sysroot, &tools, scratch.path())?);
        }
        gcc.arg("-B")
            .arg(&tools.directory)
            .arg("-B")
            .arg(sysroot.library());
        gcc.args(TUNING);
        if arguments.shared && arguments.task == Task::Link {
            // An object: it becomes a part of an image when that is linked.
            let others = |argument: &&OsString| *argument != "-shared";
            gcc.args(arguments.forwarded.iter().filter(others))
                .arg("-r");
            // g++ leaves its library out of objects.
            let cxx = language == Language::Cxx;
            gcc.env(shared::SHARED, if cxx { shared::CXX } else { "c" });
        } else {
            gcc.args(&arguments.forwarded).env(shared::SHARED, "");
        }
        if !arguments.opened.is_empty() {
            // Names with a colon cannot be told apart; the linker says so, as it does not find them.
            let joined = arguments.opened.iter().map(|path| path.as_os_str());
            let joined: Vec<_> = joined.collect();
            gcc.env(opened::OPENED, joined.join(OsStr::new(":")));
        }
        if arguments.traps_undefined {
            gcc.arg("-fsanitize-undefined-trap-on-error");
        }
        headers(&mut gcc, language, arguments, &sysroot);
        gcc.args(CODE);
        assembler::hand_on(&mut gcc, &arguments.rewriting(), arguments.keep.as_deref());
    }
    let code = run(&mut gcc)?;
    if code == 0 && arguments.asks_for_help() {
        let _ = writeln!(
            std::io::stdout(),
            "\nThese are gcc's own. Mullion's options and environment variables: --mullion-help"
        );
    }
    let signed = code == 0 && arguments.task == Task::Link && arguments.key.is_some();
    Ok(Compiled {
        code: u8::try_from(code).unwrap_or(1),
        origin: signed.then(|| Origin::of(&gcc, arguments)),
    })
}

fn run(gcc: &mut Command) -> Result<i32, DriverError> {
    let status = gcc
        .status()
        .map_err(|cause| tools::cannot_start(gcc, cause))?;
    let killed = || 128 + status.signal().unwrap_or(0);
    Ok(status.code().unwrap_or_else(killed))
}

/// A module of checked code: the host's headers, and a link of our own (`word.rs`).
fn module(
    mut gcc: Command,
    arguments: &Arguments,
    protection: mullion_rewriter::WordProtection,
    sysroot: &Sysroot,
    tools: &Tools,
) -> Result<Compiled, DriverError> {
    gcc.arg("-B").arg(&tools.directory);
    gcc.arg("-D__mullion_word__=1");
    gcc.args(checked::TUNING).args(&arguments.forwarded);
    gcc.args(checked::CODE);
    if arguments.task == Task::Link {
        gcc.args(checked::LINK);
    }
    gcc.env(checked::WORD, protection.name());
    gcc.env(checked::LIBRARY, sysroot.library());
    arguments.heap.hand_on(&mut gcc);
    if let Some(directory) = &arguments.keep {
        gcc.env(assembler::KEEP, directory);
    }
    Ok(Compiled {
        code: u8::try_from(run(&mut gcc)?).unwrap_or(1),
        origin: None,
    })
}

/// The headers of the sysroot instead of the host's, and a macro to know them by.
fn headers(gcc: &mut Command, language: Language, arguments: &Arguments, sysroot: &Sysroot) {
    gcc.arg("-D__mullion__=1");
    if !arguments.standard_headers {
        return;
    }
    gcc.arg("-nostdinc");
    if language == Language::Cxx || arguments.cxx {
        gcc.arg("-nostdinc++");
    }
    if (language == Language::Cxx || arguments.cxx) && arguments.standard_cxx_headers {
        for directory in sysroot.cxx_headers() {
            gcc.arg("-isystem").arg(directory);
        }
    }
    for directory in sysroot.headers() {
        gcc.arg("-isystem").arg(directory);
    }
}

/// Writes the specs and the linker script of this link, and gives the option that names them.
fn link_specs(
    arguments: &Arguments,
    sysroot: &Sysroot,
    tools: &Tools,
    scratch: &Path,
) -> Result<OsString, DriverError> {
    let image = arguments
        .output
        .as_deref()
        .is_some_and(|output| output.extension().is_some_and(|name| name == "mx"));
    let direct = arguments.kind == Kind::Program && !image;
    let script = scratch.join("mullion.ld");
    let template = sysroot.linker_script()?;
    write(
        &script,
        &specs::linker_script(&template, arguments.protection, arguments.kind, direct),
    )?;

    let mut start = vec![sysroot.start(arguments.kind)];
    if direct {
        start.push(tools.directory.join("interpreter.o"));
    }
    if !arguments.exports.is_empty() {
        start.push(export_records(&arguments.exports, scratch)?);
    }
    let start: Vec<&Path> = start.iter().map(PathBuf::as_path).collect();
    let file = scratch.join("mullion.specs");
    write(&file, &specs::text(&sysroot.library(), &script, &start))?;
    let mut option = OsString::from("-specs=");
    option.push(file);
    Ok(option)
}

/// An object with the records of `--mullion-export`.
fn export_records(names: &[String], scratch: &Path) -> Result<PathBuf, DriverError> {
    let mut text = String::from("\t.section .mullion.exports,\"a\",@progbits\n");
    for (index, name) in names.iter().enumerate() {
        text.push_str(&format!("\t.balign 4\n.Lrecord{index}:\n\t.long {name} - .\n\t.asciz \"{name}\"\n\t.skip .Lrecord{index} + 64 - .\n"));
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    let (source, object) = (scratch.join("exports.s"), scratch.join("exports.o"));
    write(&source, &text)?;
    tools::step(Command::new("as").arg(&source).arg("-o").arg(&object))?;
    Ok(object)
}

fn write(file: &Path, text: &str) -> Result<(), DriverError> {
    fs::write(file, text).map_err(|cause| DriverError::io(file, cause))
}
