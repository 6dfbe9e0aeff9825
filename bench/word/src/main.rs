//! `word-host [--seconds N] MODULE.so ARGUMENTS...`: verifies a module, loads it, and calls its `main`.
//!
//! The status is that of `main`. 124: its time was over; 125: a fault, which is reported; 126: it was not accepted.
//! 127: bad usage. The C library's functions that a program may call are in `library.rs`, each with its policy.

mod library;

use anyhow::{Context, bail};
use mullion_word_runtime::{Domain, FaultKind, Host, Limits, Module};
use mullion_word_verifier::{Verified, verify};
use std::ffi::{CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::time::Duration;

/// `main`, behind its gate.
type Main = extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let seconds = match arguments.first() {
        Some(first) if first == "--seconds" && arguments.len() > 1 => {
            let value = arguments.drain(..2).nth(1).unwrap_or_default();
            match value.to_str().and_then(|value| value.parse().ok()) {
                Some(seconds) => Some(seconds),
                None => return usage(),
            }
        }
        _ => None,
    };
    if arguments.is_empty() {
        return usage();
    }
    match run(arguments, seconds) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("word-host: {error:#}");
            ExitCode::from(126)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("word-host: usage: word-host [--seconds N] MODULE.so ARGUMENTS...");
    ExitCode::from(127)
}

/// What ended the call, as a status. It does not return if `main` does: then the C library ends the process.
fn run(arguments: Vec<OsString>, seconds: Option<u64>) -> anyhow::Result<u8> {
    let file = arguments.first().context("no module")?.clone();
    let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
    let verified = verify(bytes)?;
    let module = Module::new(&file.to_string_lossy(), &verified)?;
    let limits = Limits {
        time: seconds.map(Duration::from_secs),
        memory: 4 << 30,
        stack: 6 << 20,
        image: 2 << 30,
    };
    // What it calls by name, and what it has the address of.
    let named = verified.symbols().map(|(_, symbol)| symbol);
    let named = named.filter(|symbol| symbol.address.is_none());
    let mut wanted = verified.imports().to_vec();
    wanted.extend(named.map(|symbol| symbol.name.to_owned()));
    let policy = library::policy(&wanted).limits(limits);
    let host = Host::new()?;
    let domain = host.load_with(&module, policy, &mut library::resolve)?;
    for name in library::VARIABLES {
        grant_variable(&host, &domain, &verified, name)?;
    }
    let Some(main) = domain.function("main") else {
        bail!("{} has no `main`", file.display());
    };
    let strings: Vec<CString> = arguments
        .into_iter()
        .map(|argument| CString::new(argument.into_vec()))
        .collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    for text in &strings {
        let bytes = text.as_bytes_with_nul().len();
        // SAFETY: nobody but the program uses its arguments.
        unsafe { host.grant(&domain, text.as_ptr() as usize, bytes, true)? };
    }
    let bytes = size_of_val(&pointers[..]);
    // SAFETY: the array of pointers is the program's `argv`, which nobody else uses.
    unsafe { host.grant(&domain, pointers.as_ptr() as usize, bytes, true)? };
    // SAFETY: nobody of the host relies on its value across a call.
    unsafe { host.grant(&domain, libc::__errno_location() as usize, 4, true)? };
    // SAFETY: `main` of a C program takes these, or fewer, and it is behind a gate.
    let main: Main = unsafe { std::mem::transmute(main) };
    let no_environment = std::ptr::from_ref(&pointers[strings.len()]);
    let status = main(strings.len() as c_int, pointers.as_ptr(), no_environment);
    let reports = domain.take_reports();
    if reports.is_empty() {
        // SAFETY: no other thread runs, and the handlers that programs register are C's.
        unsafe { libc::exit(status) };
    }
    for report in &reports {
        eprintln!("word-host: {report}");
    }
    let slow = reports.iter().any(|report| report.kind == FaultKind::Time);
    Ok(if slow { 124 } else { 125 })
}

/// A variable of the C library that the program names: it may read it.
fn grant_variable(
    host: &Host,
    domain: &Domain,
    verified: &Verified,
    name: &str,
) -> anyhow::Result<()> {
    let named = verified
        .symbols()
        .any(|(_, symbol)| symbol.name == name && symbol.address.is_none());
    if let Some(address) = library::resolve(name).filter(|_| named) {
        // SAFETY: it is read only.
        unsafe { host.grant(domain, address, size_of::<usize>(), false)? };
    }
    Ok(())
}
