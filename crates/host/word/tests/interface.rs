//! The example in C (`examples/word-c`), built with both libraries and as C++ too, and run; lines of the source in
//! reports; and gdb.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

#[path = "../../mullion/tests/support/mod.rs"]
mod support;

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_mmp::config::Config;
use mullion_mmp::machine::Machine;
use mullion_mmp::recorder::ADDRESS_BITS;
use mullion_mmp::trace::TraceReader;
use mullion_mmp::trace::event::TraceEvent;
use mullion_word::runtime::{Domain, Effect, FaultKind, FunctionPolicy, Host, Note, Policy, Size};
use mullion_word_policy::{File, Interface, Learned};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

fn example(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../../examples/word-c").join(name)
}

/// Where the libraries are.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    support::cargo_build(&["mullion-word"]);
    support::target()
});

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            if let Some(module) = std::env::var_os("MULLION_WORD_TEST_GDB") {
                under_gdb(module.as_ref());
                return ExitCode::SUCCESS;
            }
            let directory = tempfile::tempdir().expect("a temporary directory");
            let module = make(directory.path());
            reports_have_lines(&module);
            what_is_learnt_names_types(&module, &LEARNT);
            members_are_named_at_other_levels(directory.path());
            members_are_named_in_cpp(directory.path());
            exceptions_are_told_by_line(directory.path());
            gdb_names_functions_and_lines_of_a_module(directory.path(), &module);
            the_example_in_c_is_content(directory.path(), &module);
            grants_from_c_allocate_nothing(directory.path(), &module);
            a_run_of_a_host_in_c_is_a_trace(directory.path(), &module);
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{wrong}");
    said
}

fn make(directory: &Path) -> PathBuf {
    let module = directory.join("module.so");
    build(Language::C, "-O1", &example("module.c"), &module);
    module
}

fn build(language: Language, level: &str, source: &Path, module: &Path) {
    let mut line: Vec<OsString> = ["--wall=word", "-g", level].map(OsString::from).into();
    line.extend([source.into(), "-o".into(), module.into()]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(language, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0);
}

fn the_example_in_c_is_content(directory: &Path, module: &Path) {
    for (compiler, language, shared) in [
        ("gcc", &["-std=c99"][..], false),
        ("gcc", &["-std=c99"], true),
        ("g++", &["-std=c++17", "-x", "c++"], true),
    ] {
        let program = directory.join("host");
        let mut command = Command::new(compiler);
        command
            .args(language)
            .args(["-g", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"])
            .arg("-I")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include"))
            .arg(example("host.c"))
            .args(["-x", "none"])
            .arg("-o")
            .arg(&program);
        match shared {
            true => {
                // Found under its own name when the program starts.
                let link = directory.join("libmullion_word.so.0");
                let _again = std::fs::remove_file(&link);
                std::os::unix::fs::symlink(BUILT.join("libmullion_word.so"), link).expect("a link");
                command.arg("-L").arg(&*BUILT).arg("-l:libmullion_word.so");
            }
            false => {
                command.arg(BUILT.join("libmullion_word.a"));
                command.args(["-lgcc_s", "-lpthread", "-ldl", "-lm"]);
            }
        }
        run(&mut command);
        let said = run(Command::new(&program)
            .arg(module)
            .env("LD_LIBRARY_PATH", directory));
        assert!(said.ends_with("content\n"), "{said}");
        let line = line_of("return remembered->price;");
        let expected = "module.so: Access in recall+";
        assert!(said.contains(expected) && said.contains(&line), "{said}");
    }
}

/// `grants.c` counts allocations, and ends with 1 if there was one.
fn grants_from_c_allocate_nothing(directory: &Path, module: &Path) {
    let program = directory.join("grants");
    run(Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include"))
        .arg(example("grants.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&*BUILT)
        .arg("-l:libmullion_word.so"));
    let said = run(Command::new(&program)
        .arg(module)
        .arg("50")
        .env("LD_LIBRARY_PATH", directory));
    assert!(said.ends_with("content\n"), "{said}");
}

/// What `trace.c` writes, the hardware model runs, and refuses nothing of. Accesses are those of the source.
fn a_run_of_a_host_in_c_is_a_trace(directory: &Path, module: &Path) {
    let program = directory.join("trace");
    run(Command::new("gcc")
        .args(["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic"])
        .args(["-Werror", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include"))
        .arg(example("trace.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&*BUILT)
        .arg("-l:libmullion_word.so"));
    let file = directory.join("run.mmt");
    let said = run(Command::new(&program)
        .args([module, &file])
        .env("LD_LIBRARY_PATH", directory));
    assert!(said.ends_with("content\n"), "{said}");
    let numbers = said.split(|it: char| !it.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let [items, summary] = numbers[..] else {
        panic!("{said}");
    };
    let bytes = std::fs::read(&file).expect("it was written");
    let mut reader = TraceReader::new(&bytes[..]).expect("a trace");
    let mut events = Vec::new();
    while let Some(block) = reader.next_block().expect("whole") {
        events.extend(block.events().map(|event| event.expect("an event")));
    }
    let model = |events: &[TraceEvent]| {
        let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).expect("a machine");
        for event in events {
            machine.step(event).expect("it can be run");
        }
        machine.report()
    };
    let report = model(&events);
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    // The constructors aside, the host calls `total` and `told`, and `told` calls `say`.
    let (calls, returns) = (report.crossings.calls, report.crossings.returns);
    assert!(calls >= 3 && calls == returns, "{calls} and {returns}");
    // `total` reads both numbers of each item, and writes both of the summary.
    let touched = |of: u64, count: u64, is_store: bool| {
        let bytes = events.iter().filter_map(|event| match *event {
            TraceEvent::Load { address, bytes } if !is_store => Some((address, bytes)),
            TraceEvent::Store { address, bytes } if is_store => Some((address, bytes)),
            _ => None,
        });
        let bytes = bytes.flat_map(|(at, bytes)| at..at + u64::from(bytes));
        let mut bytes: Vec<u64> = bytes.filter_map(|at| at.checked_sub(of)).collect();
        bytes.retain(|at| *at < count);
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    };
    let all = |count: u64| (0..count).collect::<Vec<u64>>();
    assert_eq!(touched(items, 32, false), all(32));
    assert!(touched(items, 32, true).is_empty());
    assert_eq!(touched(summary, 16, true), all(16));
    // One word behind what was lent, the model refuses the store.
    let mut moved = events.clone();
    for event in &mut moved {
        if let TraceEvent::Store { address, .. } = event
            && *address == summary + 8
        {
            *address += 8;
        }
    }
    assert_eq!(model(&moved).refusals.len(), 1);
}

/// `module.c:LINE` of the line with this text.
fn line_of(text: &str) -> String {
    let source = std::fs::read_to_string(example("module.c")).expect("text");
    let line = source.lines().position(|line| line.contains(text));
    format!("module.c:{}", line.expect("a line") + 1)
}

type Total = extern "C" fn(*const i64, usize, *mut i64) -> i64;
type Number = extern "C" fn(i64) -> i64;

fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).expect("an export");
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the functions are as `module.c` has them.
    unsafe { std::mem::transmute_copy(&address) }
}

fn load(module: &Path) -> Domain {
    let policy = Policy::new().allocators().export(
        "total",
        FunctionPolicy::of(&[Effect::In(0, Size::Bytes(16))]).error(-1),
    );
    let module = mullion_word::read(module).expect("a module");
    let host = Host::new().expect("Linux, with address space");
    host.load(&module, policy).expect("a domain")
}

/// Of an access by the line of the access, of a call by the line of the call.
fn reports_have_lines(module: &Path) {
    let domain = load(module);
    let (items, mut summary) = ([1i64; 4], [0i64; 2]);
    let total: Total = function(&domain, "total");
    for (count, line) in [(2, "sum += items[at].price"), (1, "summary->total = sum")] {
        assert_eq!(total(items.as_ptr(), count, summary.as_mut_ptr()), -1);
        let report = domain.take_report().expect("a report");
        let found = report.line.clone().unwrap_or_default();
        assert!(found.ends_with(&line_of(line)), "{report}");
        assert!(report.function.starts_with("total+"), "{report}");
        domain.restart().expect("nobody is in it");
    }
    says_what_it_was(&domain);
    assert_eq!(function::<Number>(&domain, "told")(1), 0);
    let report = domain.take_report().expect("a report");
    let found = report.line.clone().unwrap_or_default();
    assert!(found.ends_with(&line_of("say(text)")), "{report}");
    assert_eq!(
        report.allow.as_deref(),
        Some("allow = [\"say\"]"),
        "{report}"
    );
    assert!(report.to_string().contains(&*found), "{report}");
}

/// A refused access by type and member, with a line of policy that allows it.
fn says_what_it_was(domain: &Domain) {
    let (items, mut summary) = ([1i64; 4], [0i64; 2]);
    let total: Total = function(domain, "total");
    total(items.as_ptr(), 1, summary.as_mut_ptr());
    let report = domain.take_report().expect("a report");
    domain.restart().expect("nobody is in it");
    let field = report.field.clone().expect("a parameter points to it");
    assert_eq!(
        (field.member.as_str(), field.bytes),
        ("total", 16),
        "{report}"
    );
    assert_eq!(
        (field.variable.as_str(), field.parameter),
        ("summary", Some(2))
    );
    assert!(field.of.contains("summary"), "{report}");
    let line = "export.total.effects = [\"inout(2, 16)\"]";
    assert_eq!(report.allow.as_deref(), Some(line), "{report}");
    let said = report.to_string();
    assert!(said.contains("`total` of") && said.contains(line), "{said}");
    // The line is one that a policy may have, and with it the call goes.
    let file = File::parse(&format!("module = \"m\"\n{line}\n")).expect("a policy");
    assert_eq!(file.exports["total"].call.effects.len(), 1);
}

/// With more optimisation as with little, and without any: then variables lie on the data stack.
fn members_are_named_at_other_levels(directory: &Path) {
    for level in ["-O0", "-O2"] {
        let module = directory.join("level.so");
        build(Language::C, level, &example("module.c"), &module);
        says_what_it_was(&load(&module));
        if level == "-O0" {
            what_is_learnt_names_types(&module, &["`total` of", "inout(2, 16)"]);
        }
    }
}

/// A reference of C++ to a class with a base.
fn members_are_named_in_cpp(directory: &Path) {
    let (source, module) = (directory.join("shape.cc"), directory.join("shape.so"));
    let text = "struct Named { const char *name; };
        struct Point { int x, y; };
        struct Shape : Named { Point at[2]; };
        extern \"C\" long turn(Shape &shape, long by) { shape.at[1].y = int(by); return by; }\n";
    std::fs::write(&source, text).expect("a file");
    build(Language::Cxx, "-O2", &source, &module);
    let module = mullion_word::read(&module).expect("a module");
    let host = Host::new().expect("Linux, with address space");
    let domain = host.load(&module, Policy::new().allocators());
    let domain = domain.expect("a domain");
    let mut shape = [0u64; 3];
    let turn: extern "C" fn(*mut u64, i64) -> i64 = function(&domain, "turn");
    turn(shape.as_mut_ptr(), 7);
    let report = domain.take_report().expect("a report");
    let field = report.field.clone().expect("a parameter refers to it");
    let (member, of) = (field.member.as_str(), field.of.as_str());
    assert_eq!((member, of), ("at[1].y", "Shape"), "{report}");
    let line = "export.turn.effects = [\"inout(0, 24)\"]";
    assert_eq!(report.allow.as_deref(), Some(line), "{report}");
    assert_eq!(shape, [0; 3], "it was refused");
}

/// An exception that nothing in the call catches is told by its text, and by the line that threw it.
fn exceptions_are_told_by_line(directory: &Path) {
    let (source, module) = (directory.join("far.cc"), directory.join("far.so"));
    let text = "#include <stdexcept>
        __attribute__((noinline)) static int deep(int n) {
            if (n > 2)
                throw std::out_of_range(\"too far\");
            return n;
        }
        extern \"C\" int far(int n) { return deep(n) + 1; }\n";
    std::fs::write(&source, text).expect("a file");
    build(Language::Cxx, "-O1", &source, &module);
    let module = mullion_word::read(&module).expect("a module");
    let host = Host::new().expect("Linux, with address space");
    let domain = host.load(&module, Policy::new().allocators());
    let domain = domain.expect("a domain");
    let far: extern "C" fn(i32) -> i32 = function(&domain, "far");
    assert_eq!((far(2), far(3)), (3, 0));
    let report = domain.take_report().expect("a report");
    assert_eq!(report.kind, FaultKind::Uncaught, "{report}");
    assert_eq!(report.object, "too far", "{report}");
    let line = report.line.clone().unwrap_or_default();
    assert!(line.ends_with("far.cc:4"), "{report}");
}

/// At `-O1`. One check serves both members, and is told by its first byte.
const LEARNT: [&str; 2] = [
    "writes 16 bytes, memory of the host, `total` of",
    "export.total.effects = [\"in(0, 32)\", \"inout(2, 16)\"]",
];

/// A module that learns has each access told by type and member, and the line that would lend the argument.
fn what_is_learnt_names_types(module: &Path, wanted: &[&str]) {
    let module = mullion_word::read(module).expect("a module");
    let host = Host::new().expect("Linux, with address space");
    let learned = Arc::new(Mutex::new(Learned::default()));
    let hook = Arc::clone(&learned);
    let hook = move |note: &Note<'_>| hook.lock().expect("nobody panics").note(note, None);
    // SAFETY: nothing is at stake here.
    let domain = unsafe { host.learn(&module, Policy::new().allocators(), hook) };
    let domain = domain.expect("a domain");
    let (items, mut summary) = ([1i64; 4], [0i64; 2]);
    let total: Total = function(&domain, "total");
    assert_eq!(total(items.as_ptr(), 2, summary.as_mut_ptr()), 2);
    let interface = Interface::new(&[]);
    let learned = learned.lock().expect("nobody panics");
    let text = learned.policy(&File::default(), &interface, &mut |_| None);
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    domain.unload().expect("nobody is in it");
}

/// What gdb runs.
fn under_gdb(module: &Path) {
    let domain = load(module);
    let script = std::env::var_os("MULLION_WORD_TEST_SCRIPT").expect("set with the other");
    std::fs::write(script, domain.gdb_command(module)).expect("written");
    stop();
    let mean: extern "C" fn(f64, f64) -> f64 = function(&domain, "mean");
    assert_eq!(mean(1.0, 2.0), 1.5);
}

/// This very program, started again under gdb.
fn gdb_names_functions_and_lines_of_a_module(directory: &Path, module: &Path) {
    if Command::new("gdb").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("MULLION_REQUIRE_GDB").is_none(),
            "there is no gdb"
        );
        println!("not tested: there is no gdb on this machine");
        return;
    }
    let script = directory.join("module.gdb");
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]);
    for command in [
        "set confirm off",
        "set debuginfod enabled off",
        "handle SIGSTOP stop print nopass",
        "run",
        &format!("source {}", script.display()),
        "break __mullion_call.mean",
        "continue",
        "info line *$pc",
        "backtrace 1",
        "kill",
    ] {
        gdb.args(["-ex", command]);
    }
    let output = gdb
        .arg("--args")
        .arg(std::env::current_exe().expect("a test has a file"))
        .env("MULLION_WORD_TEST_GDB", module)
        .env("MULLION_WORD_TEST_SCRIPT", &script)
        .stdin(Stdio::null())
        .output()
        .expect("gdb starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    let refusals = ["ptrace: Operation not permitted", "Could not trace"];
    if refusals
        .iter()
        .any(|words| said.contains(words) || wrong.contains(words))
    {
        assert!(std::env::var_os("MULLION_REQUIRE_GDB").is_none(), "{wrong}");
        println!("not tested: gdb may not trace programs here");
        return;
    }
    assert!(
        said.contains("mean (") && said.contains("module.c"),
        "{said}\n{wrong}"
    );
}

fn stop() {
    unsafe extern "C" {
        fn raise(signal: i32) -> i32;
    }
    // SAFETY: gdb stops at SIGSTOP, and does not pass it on.
    unsafe { raise(19) };
}
