//! One crate: rustc, then the rewriter in the place of what rustc assembled.

use super::arguments::Arguments;
use super::library::{self, Library};
use super::toolchain::Toolchain;
use super::{ALONE, CODE, EXPORTS, NARROWED, RUST_HELP, TARGET, TEXT, depth, object, warnings};
use crate::assembler;
use crate::tools::{self, Tools};
use crate::{DriverError, sysroot::Sysroot};
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// `mullion rustc`: compiles for a domain; rustc's exit status.
///
/// # Errors
/// What is refused, what is missing; an error of rustc is an exit status.
pub fn rustc(arguments: &[OsString]) -> Result<u8, DriverError> {
    let arguments = Arguments::parse(arguments)?;
    if arguments.help {
        let written = std::io::stdout().write_all(RUST_HELP.as_bytes());
        return written
            .map(|()| 0)
            .map_err(|cause| DriverError::io(Path::new("standard output"), cause));
    }
    if let Some(target) = &arguments.target
        && !arguments.is_for_domain()
    {
        return Err(DriverError::Refused {
            option: target.clone(),
            reason: "the code of a domain is for x86_64-unknown-linux-musl; leave --target out",
        });
    }
    compile(&Toolchain::find()?, &arguments)
}

/// Cargo calls this as its wrapper, with the compiler's path first. For the target of a domain it acts as `mullion
/// rustc`. Otherwise (build scripts, procedural macros) it runs the compiler as it is.
///
/// # Errors
/// As of [`rustc`].
pub fn wrapped(arguments: &[OsString]) -> Result<u8, DriverError> {
    let toolchain = Toolchain::find()?;
    let rest = arguments.get(1..).unwrap_or_default();
    let sorted = Arguments::parse(rest)?;
    if sorted.is_for_domain() {
        return compile(&toolchain, &sorted);
    }
    let mut command = Command::new(toolchain.rustc());
    let status = command.args(rest).status();
    let status = status.map_err(|cause| tools::cannot_start(&command, cause))?;
    if rest == ["-vV"] {
        // Cargo compiles everything again when this changes.
        let line = concat!("mullion: ", env!("MULLION_SYSROOT_KEY"), "\n");
        let written = std::io::stdout().write_all(line.as_bytes());
        written.map_err(|cause| DriverError::io(Path::new("standard output"), cause))?;
    }
    Ok(code(status))
}

pub(super) fn compile(toolchain: &Toolchain, arguments: &Arguments) -> Result<u8, DriverError> {
    let elastic = arguments.elastic.as_ref();
    let alone = elastic.is_some_and(|elastic| elastic.alone);
    let prepared = || Library::prepare(toolchain, &arguments.options);
    let sysroot = match (elastic, alone) {
        (_, true) => library::alone(toolchain)?,
        (None, _) => prepared()?.sysroot().to_owned(),
        (Some(_), _) => prepared()?.without_std()?,
    };
    let compiler = elastic.and_then(|elastic| elastic.compiler.clone());
    let mut command = Command::new(compiler.unwrap_or_else(|| toolchain.rustc()));
    command.args(&arguments.forwarded);
    command.args(["--target", TARGET, "--sysroot"]).arg(sysroot);
    command.args(if alone { ALONE } else { CODE });
    if arguments.names_processor {
        command.arg(NARROWED);
    }
    if let Some(directory) = &arguments.directory {
        command.arg("--out-dir").arg(directory);
    }
    if arguments.test {
        // The only way to tell rustc that tests may end their program by a panic.
        command
            .arg("-Zpanic-abort-tests")
            .env("RUSTC_BOOTSTRAP", "1");
    }
    if !arguments.makes_code() {
        if !arguments.emit.is_empty() {
            command
                .arg("--emit")
                .arg(arguments.emit.join(OsStr::new(",")));
        }
        if let Some(output) = &arguments.output {
            command.arg("-o").arg(output);
        }
        return run(&mut command).map(code);
    }
    if alone {
        return as_it_is(&mut command, arguments);
    }
    let archives = archives(&command, arguments)?;
    let scratch =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let text = scratch.path().join("crate.s");
    let options = &arguments.options;
    let tools = Tools::prepare(&Sysroot::prepare(options)?.overlay())?;
    let mut linker = OsString::from("-Clinker=");
    linker.push(tools.directory.join("mullion-rustc-ld"));
    command.arg(arguments.emit_with(&text));
    command.arg(linker);
    command.args(["-Clinker-flavor=gcc", "-Clink-self-contained=no"]);
    command.env(TEXT, &text);
    if let Some(elastic) = elastic {
        command.env(EXPORTS, elastic.exports.join(","));
    }
    assembler::hand_on(&mut command, options, arguments.keep.as_deref());
    let status = run(&mut command)?;
    if !status.success() {
        return Ok(code(status));
    }
    if elastic.is_some_and(|elastic| elastic.checks_depth) && text.is_file() {
        let said = std::fs::read_to_string(&text).map_err(|cause| DriverError::io(&text, cause))?;
        if let Some(said) = depth::checked(&said) {
            std::fs::write(&text, said).map_err(|cause| DriverError::io(&text, cause))?;
        }
    }
    for archive in archives {
        object::replace(
            &archive,
            &text,
            options,
            arguments.keep.as_deref(),
            scratch.path(),
        )?;
    }
    Ok(0)
}

/// Compiles a crate behind no wall but its language. rustc writes object and text of the same code.
fn as_it_is(command: &mut Command, arguments: &Arguments) -> Result<u8, DriverError> {
    let scratch =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let text = scratch.path().join("crate.s");
    let status = run(command.arg(arguments.emit_with(&text)))?;
    // A crate without code has no text.
    if let (true, Some(directory), true) = (status.success(), &arguments.keep, text.is_file()) {
        let said = std::fs::read_to_string(&text).map_err(|cause| DriverError::io(&text, cause))?;
        assembler::keep(directory, &text, &said, &said)?;
    }
    Ok(code(status))
}

/// The libraries that rustc will write.
fn archives(command: &Command, arguments: &Arguments) -> Result<Vec<PathBuf>, DriverError> {
    let mut asked = Command::new(command.get_program());
    asked.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            asked.env(name, value);
        }
    }
    let said = tools::output(asked.args(["--print", "file-names"]).stderr(Stdio::null()))?;
    // If it fails, rustc will say why.
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let directory = arguments.directory.clone().unwrap_or_default();
    let archive = |name: &&str| name.ends_with(".rlib") || name.ends_with(".a");
    let found = said.lines().filter(archive).map(|name| {
        let named = arguments.named_output();
        named.unwrap_or_else(|| directory.join(name))
    });
    Ok(found.collect())
}

/// Runs rustc, and leaves out what it says about the registers.
fn run(command: &mut Command) -> Result<ExitStatus, DriverError> {
    let colours = |argument: &OsStr| {
        let text = argument.to_string_lossy();
        text.starts_with("--color") || text.starts_with("--error-format")
    };
    if std::io::stderr().is_terminal() && !command.get_args().any(colours) {
        command.args(["--color", "always"]);
    }
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| tools::cannot_start(command, cause))?;
    if let Some(said) = child.stderr.take() {
        // Nobody to read is no reason to fail.
        let _unread = warnings::copy(BufReader::new(said), std::io::stderr().lock());
    }
    let status = child.wait();
    status.map_err(|cause| DriverError::io(Path::new("rustc"), cause))
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code();
    let code = code.unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
