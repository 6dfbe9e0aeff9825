//! What gcc calls as its linker: the real one, two corrections, a sum, and a warning.

use crate::{
    DriverError, arguments, assembler, checked, foreign, growth, opened, response, shared, sysroot,
    tools, word,
};
use mullion_rewriter::{Base, Options};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

/// `mullion ld`: the linker's command line in, an image out, whole or not at all.
///
/// # Errors
/// Files; the real linker missing.
pub fn link(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, DriverError> {
    let mut arguments = response::expand(arguments);
    let output = output_of(&mut arguments);
    if let Some(protection) = checked::from_environment()? {
        return word::link(arguments, &output, protection);
    }
    let special = assembler::is_special(&output);
    let temporary = if special {
        output.clone()
    } else {
        assembler::beside(&output)
    };
    let needed = if shared::is_asked_for() {
        let (kept, needed) = shared::for_library(arguments);
        arguments = kept;
        Some(needed)
    } else {
        arguments = shared::for_image(arguments);
        None
    };
    let mut opened = None;
    if needed.is_none() {
        let libraries = opened::prepare(&mut arguments)?;
        arguments.splice(0..0, libraries.first.iter().cloned());
        arguments.extend(libraries.last.iter().cloned());
        opened = Some(libraries);
        with_named(&mut arguments)?;
    }
    let inputs = opened::inputs(&arguments);
    arguments.push("-o".into());
    arguments.push(temporary.clone().into());
    let success = with_libraries(&mut arguments)?;
    drop(opened);
    let code = if success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    // A question (`--version`) leaves no file.
    if special || !temporary.exists() {
        return Ok(code);
    }
    let finished = if success {
        let made = match &needed {
            Some(needed) => shared::finish(&temporary, needed),
            None => finish(&temporary, &inputs),
        };
        made.and_then(|()| {
            if needed.is_none() && arguments::base_from_environment()? == Base::Register {
                warn_of_segment(&temporary, &output)?;
            }
            fs::rename(&temporary, &output).map_err(|cause| DriverError::io(&output, cause))
        })
    } else {
        Ok(())
    };
    if !success || finished.is_err() {
        let _absent = fs::remove_file(&temporary);
    }
    finished.map(|()| code)
}

/// Takes the output's name out of the linker's command line.
fn output_of(arguments: &mut Vec<OsString>) -> PathBuf {
    let mut output = PathBuf::from("a.out");
    while let Some(place) = arguments.iter().position(|argument| argument == "-o") {
        arguments.remove(place);
        if place < arguments.len() {
            output = arguments.remove(place).into();
        }
    }
    output
}

/// A library that is built when it is first asked for.
type Built = fn(&Options) -> Result<PathBuf, DriverError>;

/// Libraries that the command line names, gcc itself for its options or a build system.
const NAMED: &[(&str, Built)] = &[
    ("-lgcov", sysroot::profiles),
    ("-lquadmath", sysroot::quadmath),
];

/// Has these libraries found in the sysroot.
fn with_named(arguments: &mut [OsString]) -> Result<(), DriverError> {
    for (name, built) in NAMED {
        let mut library = None;
        for argument in arguments.iter_mut().filter(|argument| *argument == name) {
            if library.is_none() {
                library = Some(built(&assembler::options_from_environment()?)?);
            }
            if let Some(library) = &library {
                *argument = library.clone().into();
            }
        }
    }
    Ok(())
}

/// Runs the real linker; whether it succeeded. A program that asks for more of the C++ library, or of gcc's, than is
/// built at first gets the whole of it.
fn with_libraries(arguments: &mut Vec<OsString>) -> Result<bool, DriverError> {
    let first = run(arguments, Stdio::piped())?;
    let said = String::from_utf8_lossy(&first.stderr);
    let cxx = arguments.iter().position(|argument| argument == CXX);
    let cxx = cxx.filter(|_| !first.status.success() && wants_more(&said));
    let decimal = !first.status.success() && wants_decimals(&said);
    if cxx.is_none() && !decimal {
        let _ = std::io::stderr().write_all(&first.stderr);
        return Ok(first.status.success());
    }
    let built = |library: Built| {
        let library = library(&assembler::options_from_environment()?);
        library.inspect_err(|_| {
            let _ = std::io::stderr().write_all(&first.stderr);
        })
    };
    // Each may ask for the other.
    let together = |names: &[OsString]| {
        let begin = std::iter::once("--start-group".into());
        let whole = begin.chain(names.iter().cloned());
        whole
            .chain(["--end-group".into()])
            .collect::<Vec<OsString>>()
    };
    if let Some(place) = cxx {
        let whole = built(sysroot::whole_cxx)?;
        arguments.splice(place..=place, together(&[whole.into(), CXX.into()]));
    }
    if decimal {
        let names = [
            built(sysroot::decimal)?.into(),
            "-lc".into(),
            "-lgcc".into(),
        ];
        arguments.extend(together(&names));
    }
    Ok(run(arguments, Stdio::inherit())?.status.success())
}

/// Whether the linker missed a function of decimal floating point.
fn wants_decimals(said: &str) -> bool {
    let beginning = format!("`{}", sysroot::DECIMAL);
    said.lines()
        .any(|line| line.contains("undefined") && line.contains(&beginning))
}

/// How g++ names the C++ library.
const CXX: &str = "-lstdc++";

/// Whether the linker missed something that may be the C++ library's: by its names, plain or mangled.
fn wants_more(said: &str) -> bool {
    let missed = said.lines().filter(|line| line.contains("undefined"));
    let mut names = missed.filter_map(|line| line.rsplit_once(": ").map(|parts| parts.1));
    names.any(|name| {
        [
            "std::",
            "__gnu_cxx::",
            "__cxa_",
            "_ZS",
            "_ZNS",
            "_ZNKS",
            "_ZTVN10__cxxabi",
            "_ZN9__gnu_cxx",
        ]
        .iter()
        .any(|part| name.contains(part))
    })
}

fn run(arguments: &[OsString], errors: Stdio) -> Result<Output, DriverError> {
    let mut command = Command::new("ld");
    let scratch = tempfile::NamedTempFile::new();
    let scratch = scratch.map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    if arguments
        .iter()
        .map(|argument| argument.len() + 1)
        .sum::<usize>()
        > COMMAND_LINE
    {
        let text = response::join(arguments);
        fs::write(&scratch, text).map_err(|cause| DriverError::io(scratch.path(), cause))?;
        let mut file = OsString::from("@");
        file.push(scratch.path());
        command.arg(file);
    } else {
        command.args(arguments);
    }
    command.stdout(Stdio::inherit()).stderr(errors);
    let child = command.spawn();
    let child = child.map_err(|cause| tools::cannot_start(&command, cause))?;
    child
        .wait_with_output()
        .map_err(|cause| tools::cannot_start(&command, cause))
}

/// Bytes of arguments beyond which a response file is used.
const COMMAND_LINE: usize = 64 << 10;

/// Places in an ELF64 file: of the header's type, table of program headers and
/// their number; in a program header, of its type and its length in memory.
const E_TYPE: u64 = 16;
const E_PHOFF: u64 = 32;
const E_PHNUM: u64 = 56;
const P_MEMSZ: u64 = 40;
const PROGRAM_HEADER: u64 = 56;

const ET_EXEC: [u8; 2] = [2, 0];
const ET_DYN: [u8; 2] = [3, 0];
const PT_NULL: [u8; 4] = [0; 4];
const PT_TLS: [u8; 4] = [7, 0, 0, 0];

/// Says so if an image that was to do without `%gs` does not: then some of what was linked was
/// not made so, and the whole image pays for it.
fn warn_of_segment(image: &Path, output: &Path) -> Result<(), DriverError> {
    let bytes = fs::read(image).map_err(|cause| DriverError::io(image, cause))?;
    let accesses = mullion_verifier::survey(bytes, 1).stats.gs;
    if accesses > 0 {
        let _ = writeln!(
            std::io::stderr(),
            "mullion: warning: {}: {accesses} accesses go through %gs, so calls of the image write its base; \
             something that was linked was not compiled with --mullion-base=register",
            output.display()
        );
    }
    Ok(())
}

fn finish(temporary: &Path, inputs: &[PathBuf]) -> Result<(), DriverError> {
    let file = OpenOptions::new().read(true).write(true).open(temporary);
    file.and_then(|file| {
        correct(&file)?;
        // Without the sum the image is as good.
        let _unknown = growth::add_up(&file, growth::IN_IMAGE);
        read::<2>(&file, E_TYPE)
    })
    .map_err(|cause| DriverError::io(temporary, cause))
    .and_then(|kind| match kind {
        ET_DYN => foreign::check(temporary, inputs),
        // A part of an image (`-r`).
        _ => Ok(()),
    })
}

/// What GNU ld says and does not mean. It calls a position-independent
/// executable whose lowest address is not zero an executable at a fixed
/// address. And a linker script that knows of thread-locals always gets a
/// template of them, which may be empty.
fn correct(file: &File) -> io::Result<()> {
    if read::<2>(file, E_TYPE)? != ET_EXEC {
        return Ok(());
    }
    write(file, E_TYPE, &ET_DYN)?;
    let table = u64::from_le_bytes(read(file, E_PHOFF)?);
    for index in 0..u64::from(u16::from_le_bytes(read(file, E_PHNUM)?)) {
        let header = table + index * PROGRAM_HEADER;
        if read(file, header)? == PT_TLS && read(file, header + P_MEMSZ)? == [0; 8] {
            write(file, header, &PT_NULL)?;
        }
    }
    Ok(())
}

fn read<const N: usize>(mut file: &File, at: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}
