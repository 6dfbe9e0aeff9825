//! Modules that attack their host, each of them refused for the right reason: in C, compiled by
//! `mullion cc --wall=word`, verified, loaded and called. `attacks/*.c` has the code, `attacks/table/` what it is given
//! and how it ends, `attacks/story.rs` those in which the host does something in between.
//!
//! Most of them are also compiled by plain gcc, and run without a wall in a process of their own, where they must do harm.
//! What no compiler makes is in the verifier's own corpus (`crates/word/verifier/tests/attacks`).
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

#![allow(unreachable_pub, reason = "the parts of one test")]

#[path = "attacks/scene.rs"]
mod scene;
#[path = "attacks/story.rs"]
mod story;
#[path = "attacks/table/mod.rs"]
mod table;

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_word_runtime::{FaultKind, Host, Module, Report};
use mullion_word_verifier::verify;
use scene::{Fn3, Scene, function};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use table::{Attack, Ends, Harm};

const FILES: [&str; 5] = ["memory", "control", "deputies", "time", "heap"];
/// What a process says of itself when it was harmed.
const HARMED: i32 = 42;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            if let [role, library, number] = &arguments[..]
                && role == "harm"
            {
                let number: usize = number.parse().expect("a number");
                harm(library, &table::attacks()[number]);
            }
            all();
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
        .join("tests/attacks")
        .join(name)
}

fn walled(scratch: &Path, file: &str) -> Arc<Module> {
    let output = scratch.join(format!("{file}.so"));
    let heap = match file {
        "heap" => "--heap=own",
        _ => "--heap=host",
    };
    let mut line: Vec<OsString> = ["--wall=word", heap, "-w", "-O2"]
        .map(OsString::from)
        .into();
    line.extend([
        source(&format!("{file}.c")).into(),
        "-o".into(),
        output.clone().into(),
    ]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(Language::C, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0, "{file}");
    let bytes = std::fs::read(output).expect("a module");
    let verified = verify(bytes).unwrap_or_else(|rejected| panic!("{file}: {rejected}"));
    Module::new(file, &verified).expect("a module")
}

fn plain(scratch: &Path, file: &str) -> PathBuf {
    let output = scratch.join(format!("{file}.plain.so"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-w", "-O2", "-DPLAIN", "-o"]);
    let status = gcc.arg(&output).arg(source(&format!("{file}.c"))).status();
    assert!(status.expect("gcc starts").success(), "{file}");
    output
}

fn all() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let host = Host::new().expect("a word wall");
    let modules: BTreeMap<&str, Arc<Module>> = FILES
        .map(|file| (file, walled(scratch.path(), file)))
        .into();
    let plain: BTreeMap<&str, PathBuf> =
        FILES.map(|file| (file, plain(scratch.path(), file))).into();
    let attacks = table::attacks();
    let mut names = BTreeSet::new();
    let (mut failures, mut harms) = (Vec::new(), 0);
    for (number, attack) in attacks.iter().enumerate() {
        assert!(names.insert(attack.name), "{} is there twice", attack.name);
        if let Err(what) = refused(&host, &modules, attack) {
            failures.push(format!("{}: {what}", attack.name));
        }
        if attack.harm != Harm::Unseen {
            harms += 1;
            if let Err(what) = harms_without_a_wall(&plain[attack.file], number, attack) {
                failures.push(format!("{} without a wall: {what}", attack.name));
            }
        }
    }
    for (name, story) in story::STORIES {
        assert!(names.insert(name), "{name} is there twice");
        story(&host, &modules);
    }
    assert!(
        failures.is_empty(),
        "{} fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    println!(
        "{} attacks refused, {harms} of them seen to harm a host without a wall",
        names.len()
    );
    assert!(names.len() >= 120, "there are to be 120 at least");
}

/// Whether the attack ends as it must, and has changed nothing.
fn refused(
    host: &Host,
    modules: &BTreeMap<&str, Arc<Module>>,
    attack: &Attack,
) -> Result<(), String> {
    let scene = Scene::new(host, modules, attack.file, (attack.policy)());
    let arguments = (attack.with)(&scene);
    let [a, b, c] = arguments;
    let domain = scene.domain();
    let answer = function::<Fn3>(domain, attack.function)(a, b, c);
    let reports = domain.take_reports();
    scene.unharmed()?;
    let told = match (&attack.ends, &reports[..]) {
        (Ends::Answers(wanted), []) if *wanted == answer => Ok(()),
        (Ends::Fault(kind, object), [report]) => right(report, *kind, object, attack),
        _ => Err(format!(
            "answer {answer:#x} for {arguments:#x?}, {reports:?}"
        )),
    };
    if matches!(attack.ends, Ends::Fault(..)) != domain.is_ended() {
        return Err(format!("answer {answer:#x}, {reports:?}"));
    }
    // The host goes on, and the domain can begin anew.
    domain.restart().map_err(|error| error.to_string())?;
    told?;
    scene.leave()
}

fn right(report: &Report, kind: FaultKind, object: &str, attack: &Attack) -> Result<(), String> {
    let in_block =
        |address: u64| scene::block().contains(&address) && !scene::lent().contains(&address);
    let place = match (kind, attack.harm) {
        (FaultKind::Access, Harm::Changes | Harm::Reads) => report.address.is_some_and(in_block),
        (FaultKind::Access, _) => report.address.is_some(),
        _ => true,
    };
    let export = report.export == attack.function;
    match report.kind == kind && report.object.contains(object) && place && export {
        true => Ok(()),
        false => Err(format!("another reason: {report}")),
    }
}

fn harms_without_a_wall(library: &Path, number: usize, attack: &Attack) -> Result<(), String> {
    let mut child = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    child.arg("harm").arg(library).arg(number.to_string());
    let output = child.output().map_err(|error| error.to_string())?;
    let status = output.status;
    let harmed = match attack.harm {
        Harm::Changes | Harm::Reads | Harm::Does => status.code() == Some(HARMED),
        Harm::Dies => status.signal().is_some(),
        Harm::Unseen => true,
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    harmed.then_some(()).ok_or(format!("{status}: {said}"))
}

/// Runs the attack without a wall, in this process.
fn harm(library: &str, attack: &Attack) -> ! {
    let library = CString::new(library).expect("a path");
    let scene = Scene::plain();
    let [a, b, c] = (attack.with)(&scene);
    // SAFETY: it is made to do harm: to this process, which is there for that.
    let answer = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "the library is loaded");
        for (name, address) in scene::HOST {
            let name = CString::new(*name).expect("a name");
            let place = libc::dlsym(handle, name.as_ptr()).cast::<usize>();
            if !place.is_null() {
                place.write(address());
            }
        }
        let name = CString::new(attack.function).expect("a name");
        let attack = libc::dlsym(handle, name.as_ptr());
        assert!(!attack.is_null(), "the function is there");
        std::mem::transmute::<*mut libc::c_void, Fn3>(attack)(a, b, c)
    };
    let harmed = match attack.harm {
        Harm::Changes => scene.unharmed().is_err(),
        Harm::Reads => scene::is_secret(answer),
        Harm::Does => answer != 0,
        Harm::Dies | Harm::Unseen => false,
    };
    std::process::exit(if harmed { HARMED } else { 0 })
}
