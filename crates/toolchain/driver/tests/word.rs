//! Modules of checked code, from C to their answers: `mullion cc --wall=word` makes what a host made by hand
//! (`word/host.c`) loads and calls. They must do what the plain programs do, and what they may not touch must trap.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

/// What the host's process says of a refused access.
const REFUSED: i32 = 99;
const PROTECTIONS: [&str; 2] = ["write", "read-write"];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let scratch = tempfile::tempdir().expect("a temporary directory");
            let host = host(scratch.path());
            modules_do_what_plain_programs_do(scratch.path(), &host);
            what_was_not_granted_is_refused(scratch.path(), &host);
            objects_do_what_plain_ones_do(scratch.path(), &host);
            the_note_knows_how_much_was_added(scratch.path());
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/word")
        .join(name)
}

fn gcc(options: &[&str], from: &str, to: &Path) {
    let mut command = Command::new("gcc");
    command.args(options).arg(source(from)).arg("-o").arg(to);
    let status = command.arg("-lm").status().expect("gcc starts");
    assert!(status.success(), "{from}");
}

fn host(scratch: &Path) -> PathBuf {
    let host = scratch.join("host");
    gcc(&["-O2", "-rdynamic"], "host.c", &host);
    host
}

fn module(options: &[&str], from: &str, to: &Path) {
    module_of(Language::C, options, from, to);
}

fn module_of(language: Language, options: &[&str], from: &str, to: &Path) {
    let mut line: Vec<OsString> = ["--wall=word", "-w"].map(OsString::from).into();
    line.extend(options.iter().map(OsString::from));
    line.extend([source(from).into(), "-o".into(), to.into()]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(language, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0, "{from} {options:?}");
}

fn run(host: &Path, module: &Path, argument: &str) -> Output {
    let mut command = Command::new(host);
    command.arg("--strict").arg(module).arg(argument);
    command.output().expect("the host starts")
}

fn modules_do_what_plain_programs_do(scratch: &Path, host: &Path) {
    let (plain, walled) = (scratch.join("program"), scratch.join("program.so"));
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        gcc(&["-w", level], "program.c", &plain);
        let expected = Command::new(&plain).arg("word").output();
        let expected = expected.expect("the program starts");
        assert_eq!(expected.status.code(), Some(3));
        for protection in PROTECTIONS {
            let option = format!("--protection={protection}");
            module(&[level, &option], "program.c", &walled);
            let got = run(host, &walled, "word");
            let said = String::from_utf8_lossy(&got.stderr);
            assert_eq!(got.status.code(), Some(3), "{level} {protection}: {said}");
            assert_eq!(got.stdout, expected.stdout, "{level} {protection}");
        }
    }
}

fn objects_do_what_plain_ones_do(scratch: &Path, host: &Path) {
    let (plain, walled) = (scratch.join("objects"), scratch.join("objects.so"));
    let mut native = Command::new("g++");
    native.args(["-O1", "-w"]).arg(source("objects.cc"));
    let status = native.arg("-o").arg(&plain).status().expect("g++ starts");
    assert!(status.success());
    let expected = Command::new(&plain).output().expect("the program starts");
    assert_eq!(expected.status.code(), Some(3));
    for options in [
        ["-O0", "--protection=write"],
        ["-O2", "--protection=read-write"],
    ] {
        module_of(Language::Cxx, &options, "objects.cc", &walled);
        let got = run(host, &walled, "word");
        let said = String::from_utf8_lossy(&got.stderr);
        assert_eq!(got.status.code(), Some(3), "{options:?}: {said}");
        assert_eq!(got.stdout, expected.stdout, "{options:?}");
    }
}

fn what_was_not_granted_is_refused(scratch: &Path, host: &Path) {
    let walled = scratch.join("wild.so");
    for level in ["-O0", "-O2"] {
        for protection in PROTECTIONS {
            let option = format!("--protection={protection}");
            module(&[level, &option], "wild.c", &walled);
            for access in 0..=6 {
                let refused = match access {
                    0 => false,
                    // A load.
                    6 => protection == "read-write",
                    _ => true,
                };
                let got = run(host, &walled, &access.to_string());
                let expected = if refused { REFUSED } else { 0 };
                let said = String::from_utf8_lossy(&got.stderr);
                let place = format!("{level} {protection} access {access}: {said}");
                assert_eq!(got.status.code(), Some(expected), "{place}");
            }
        }
    }
}

fn the_note_knows_how_much_was_added(scratch: &Path) {
    let walled = scratch.join("noted.so");
    module(&["-O2"], "wild.c", &walled);
    let bytes = std::fs::read(&walled).expect("a module");
    let name = bytes.windows(8).position(|w| w == b"Mullion\0");
    let words = name.expect("a note") + 8;
    let word = |number: usize| {
        let at = words + 4 * number;
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    assert_eq!((word(0), word(1)), (1, 1));
    assert!(0 < word(6) && word(6) < word(7), "{} {}", word(6), word(7));
}
