//! Exceptions of C++ in modules, with all parts: what a module throws it catches, as a plain program does. What it does not
//! catch ends its call, and crosses no gate. Forged tables, places and exceptions harm the module alone.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, Limits, Module, Policy, Report, Size,
};
use mullion_word_verifier::{Permission, Verified, verify};
use std::ffi::{CStr, OsString, c_char, c_int};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Fn0 = extern "C" fn() -> c_int;
type Fn1 = extern "C" fn(c_int) -> c_int;
type Fn2 = extern "C" fn(c_int, c_int) -> c_int;
type Long1 = extern "C" fn(u64) -> u64;
type Long2 = extern "C" fn(u64, u64) -> c_int;
type Sum = extern "C" fn(c_int) -> i64;
type Main = extern "C" fn(c_int, *const *const c_char) -> c_int;

const PROTECTIONS: [&str; 2] = ["write", "read-write"];
const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];
/// The value that an ended call returns.
const REFUSED: c_int = -9;
/// Memory of a module.
const LIMIT: u64 = 8 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let arguments: Vec<String> = arguments.filter_map(|a| a.into_string().ok()).collect();
            match &arguments[..] {
                [role, module] if role == "main" => run_main(Path::new(module)),
                [role, module] if role == "mutants" => run_mutants(Path::new(module)),
                _ => all(),
            }
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn all() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    programs_do_what_plain_ones_do(scratch.path());
    let host = Host::new().expect("Linux, with address space");
    for protection in PROTECTIONS {
        for level in LEVELS {
            let module = module(scratch.path(), "throws.cc", protection, level);
            let domain = load(&host, &module, "throws");
            println!("{protection} {level}");
            what_is_thrown_is_caught(&domain);
            what_nobody_catches_ends_the_call(&domain);
            no_gate_is_crossed(&host, &domain, &module);
            return_addresses_of_others_are_not_read(&domain);
            landing_is_at_labels_of_the_call_that_runs(&domain);
            forged_exceptions_harm_the_module_alone(&domain, protection);
        }
        let module = module(scratch.path(), "throws.cc", protection, "-O2");
        memory_ends_with_an_exception(&host, &module);
        threads_throw_at_once(&load(&host, &module, "threads"));
        forged_tables_harm_the_module_alone(&scratch.path().join("throws.cc.so"));
    }
}

fn source(name: &str) -> PathBuf {
    let folder = match name {
        "exceptions.cc" => "../../cli/tests/programs",
        _ => "tests/word",
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name)
}

fn build(scratch: &Path, name: &str, protection: &str, level: &str) -> PathBuf {
    let output = scratch.join(format!("{name}.so"));
    let protection = format!("--protection={protection}");
    let mut line: Vec<OsString> = ["--wall=word", &protection, "-w", "-g", level, "-o"]
        .map(OsString::from)
        .into();
    line.extend([output.clone().into(), source(name).into()]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(Language::Cxx, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0, "{name} {level} {protection}");
    output
}

fn verified(file: &Path) -> Verified {
    verify(std::fs::read(file).expect("a module"))
        .unwrap_or_else(|rejected| panic!("{rejected:#?}"))
}

fn module(scratch: &Path, name: &str, protection: &str, level: &str) -> Arc<Module> {
    let file = build(scratch, name, protection, level);
    Module::new("throws", &verified(&file)).expect("a module")
}

// ---- Whole programs.

fn programs_do_what_plain_ones_do(scratch: &Path) {
    let plain = scratch.join("plain");
    let mut native = Command::new("g++");
    native.args(["-O1", "-w"]).arg(source("exceptions.cc"));
    let status = native.arg("-o").arg(&plain).status().expect("g++ starts");
    assert!(status.success());
    let expected = Command::new(&plain).output().expect("it starts");
    assert_eq!(expected.status.code(), Some(1));
    for protection in PROTECTIONS {
        for level in LEVELS {
            let file = build(scratch, "exceptions.cc", protection, level);
            let got = myself("main", &file);
            let said = String::from_utf8_lossy(&got.stderr);
            let place = format!("{protection} {level}: {said}");
            assert_eq!(got.status.code(), Some(1), "{place}");
            let [wanted, got] = [&expected, &got].map(|o| String::from_utf8_lossy(&o.stdout));
            assert_eq!(got, wanted, "{place}");
        }
    }
}

fn myself(role: &str, file: &Path) -> Output {
    let this = std::env::current_exe().expect("a program");
    let output = Command::new(this).arg(role).arg(file).output();
    output.expect("it starts")
}

extern "C" fn at_exit(_: usize, _: usize, _: usize) -> c_int {
    0
}

/// Calls the module's `main`, in a process of its own.
fn run_main(file: &Path) {
    let text = FunctionPolicy::of(&[Effect::In(0, Size::Text)]);
    let number = FunctionPolicy::of(&[
        Effect::In(0, Size::Text),
        Effect::Into(1, Size::Bytes(8), 0),
    ]);
    let limits = Limits {
        stack: 6 << 20,
        ..Limits::default()
    };
    let mut policy = Policy::new().allocators().limits(limits);
    for name in ["printf", "__printf_chk"] {
        policy = policy.allow_with(name, text.clone().stacked(12));
    }
    policy = policy.allow_with("puts", text).allow("putchar");
    for name in ["strtol", "__isoc23_strtol"] {
        policy = policy.allow_with(name, number.clone());
    }
    policy = policy.allow("__errno_location");
    // SAFETY: it takes numbers.
    policy = unsafe { policy.offer("__cxa_atexit", at_exit as *const () as usize, None) };
    let host = Host::new().expect("Linux, with address space");
    let module = Module::new("program", &verified(file)).expect("a module");
    let domain = host.load(&module, policy).expect("a domain");
    // SAFETY: nobody of the host relies on its value across a call.
    unsafe { host.grant(&domain, libc::__errno_location() as usize, 4, true) }.expect("a grant");
    let main: Main = function(&domain, "main");
    let status = main(1, std::ptr::null());
    if let Some(report) = domain.take_report() {
        eprintln!("{report}");
        std::process::exit(125);
    }
    // SAFETY: no other thread runs.
    unsafe { libc::exit(status) };
}

// ---- Functions of one module.

extern "C" fn call_back(function: Fn1, argument: c_int) -> c_int {
    function(argument).wrapping_add(1000)
}

fn policy() -> Policy {
    // Whoever lands somewhere else may go round for ever.
    let limits = Limits {
        time: Some(Duration::from_secs(5)),
        memory: LIMIT,
        stack: 2 << 20,
        ..Limits::default()
    };
    let error = mullion_word_runtime::ErrorValue {
        integer: i64::from(REFUSED),
        ..Default::default()
    };
    let callback = FunctionPolicy::of(&[Effect::Callback(0)]);
    let policy = Policy::new().allocators().limits(limits).error(error);
    // SAFETY: it is given what the module may enter.
    unsafe { policy.offer("call_back", call_back as *const () as usize, Some(callback)) }
}

fn load(host: &Host, module: &Arc<Module>, _name: &str) -> Domain {
    host.load(module, policy()).expect("a domain")
}

fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the functions are as the sources have them.
    unsafe { std::mem::transmute_copy(&address) }
}

fn is_well(domain: &Domain) {
    let reports = domain.take_reports();
    assert!(reports.is_empty(), "{}", reports[0]);
}

fn what_is_thrown_is_caught(domain: &Domain) {
    let caught: Fn1 = function(domain, "caught");
    for depth in [0, 1, 7, 1000] {
        assert_eq!(caught(depth), 11111 + depth, "{depth}");
    }
    let by_pointer: Fn2 = function(domain, "by_pointer");
    assert_eq!((by_pointer(0, 21), by_pointer(1, 21)), (49, 26));
    let sorts: Fn1 = function(domain, "through_the_library");
    assert_eq!((sorts(2), sorts(13)), (1, 13));
    assert_eq!(function::<Fn1>(domain, "library")(7), 11111);
    assert_eq!(
        function::<Fn1>(domain, "kept")(9),
        c_int::from(b'f'),
        "std::exception_ptr"
    );
    assert_eq!(function::<Sum>(domain, "sum")(1000), 249_500 + 1500);
    let caught_inside: Fn1 = function(domain, "caught_inside");
    assert_eq!(caught_inside(5), 1050 + 17);
    assert_eq!(function::<Fn1>(domain, "between")(3), 1050);
    assert_eq!(function::<Fn0>(domain, "uncaught_now")(), 0);
    is_well(domain);
}

/// The call must end so.
fn ends(domain: &Domain, what: &str, call: impl FnOnce() -> c_int) -> Report {
    assert_eq!(call(), REFUSED, "{what}");
    let mut reports = domain.take_reports();
    assert!(!reports.is_empty(), "{what}: no report");
    domain.restart().expect("nobody is in it");
    assert_eq!(function::<Fn0>(domain, "uncaught_now")(), 0, "{what}");
    assert_eq!(function::<Fn1>(domain, "caught")(3), 11114, "{what}");
    reports.remove(0)
}

fn what_nobody_catches_ends_the_call(domain: &Domain) {
    let nobody: Fn1 = function(domain, "nobody");
    let report = ends(domain, "nobody", || nobody(4));
    assert_eq!(report.kind, FaultKind::Uncaught, "{report}");
    assert_eq!(report.object, "from the deep");
    assert_ne!(report.instruction, 0, "{report}");
    assert_eq!((&*report.export, report.address), ("nobody", None));
    // Nothing was unwound: whoever looks at the module finds it as it was.
    let unknown: Fn1 = function(domain, "unknown");
    let report = ends(domain, "unknown", || unknown(4));
    assert_eq!((report.kind, &*report.object), (FaultKind::Uncaught, "i"));
    assert!(report.function.starts_with("unknown+"), "{report}");

    let broken_promise: Fn1 = function(domain, "broken_promise");
    let report = ends(domain, "noexcept", || broken_promise(2));
    let found = (report.kind, &*report.object);
    assert_eq!(found, (FaultKind::Uncaught, "from the deep"), "{report}");

    let rethrow: Fn0 = function(domain, "nothing_to_rethrow");
    assert_eq!(ends(domain, "rethrow", || rethrow()).kind, FaultKind::Abort);
    let own_handler: Fn1 = function(domain, "own_handler");
    assert_eq!(own_handler(1), REFUSED);
    let destroyed: Fn0 = function(domain, "how_many_destroyed");
    assert_eq!(destroyed(), REFUSED, "it has ended");
    assert_eq!(domain.take_reports()[0].kind, FaultKind::Abort);
    domain.restart().expect("nobody is in it");
    the_text_is_shown_as_a_text(domain);
}

/// A module says what it will.
fn the_text_is_shown_as_a_text(domain: &Domain) {
    let says: extern "C" fn(*const c_char) -> c_int = function(domain, "says");
    let host = Host::new().expect("the same");
    let long = "long ".repeat(100);
    let texts = ["a\n\u{1b}[31mb", "", "\u{fe}", &long].map(|t| format!("{t}\0"));
    for text in texts {
        // SAFETY: it is only read.
        unsafe { host.grant(domain, text.as_ptr() as usize, text.len(), false) }.expect("a grant");
        let text = CStr::from_bytes_with_nul(text.as_bytes()).expect("a text");
        let report = ends(domain, "a text", || says(text.as_ptr()));
        assert_eq!(report.kind, FaultKind::Uncaught, "{report}");
        assert!(!report.object.contains(char::is_control), "{report}");
        assert!(report.object.len() < 300, "{report}");
    }
}

fn no_gate_is_crossed(host: &Host, domain: &Domain, module: &Arc<Module>) {
    // The callback's call ends, and with it the one that has called the host.
    let through_host: Fn1 = function(domain, "through_host");
    let report = ends(domain, "through the host", || through_host(2));
    assert_eq!(report.kind, FaultKind::Uncaught, "{report}");
    assert_eq!(report.export, "from_inside", "{report}");

    // Another module has its error value, and goes on.
    let inner = domain.function("from_inside").expect("it is exported") as usize;
    // SAFETY: it is a gate, which checks nothing of a number.
    let policy = unsafe { policy().offer("other", inner, None) };
    let outer = host.load(module, policy).expect("a domain");
    let through_other: Fn1 = function(&outer, "through_other");
    assert_eq!(through_other(3), REFUSED);
    is_well(&outer);
    let report = domain.take_report().expect("it has ended");
    assert_eq!(report.kind, FaultKind::Uncaught, "{report}");
    domain.restart().expect("nobody is in it");
}

fn return_addresses_of_others_are_not_read(domain: &Domain) {
    let reads: Long1 = function(domain, "reads");
    let caught: Fn1 = function(domain, "caught");
    let base = domain.base() as u64;
    let own = |address: u64| (base..base + (1 << 20)).contains(&address);
    assert!(own(reads(0)), "its own call");
    let end = (1..9).find(|depth| reads(*depth) == 0);
    let end = end.expect("the return gate");
    assert!((1..end).all(|depth| own(reads(depth))));
    is_well(domain);
    let refused = (end + 1..end + 40)
        .chain((4..61).map(|bit| 1 << bit))
        .chain((1..61).map(|bit| (1_u64 << bit).wrapping_neg()));
    for depth in refused {
        let name = format!("{depth:#x}");
        let report = ends(domain, &name, || reads(depth) as c_int);
        assert_eq!(report.kind, FaultKind::Unwind, "{name}: {report}");
    }
    // From a callback: what the same module has called before lies above a function of the host.
    let reads_inside: Fn1 = function(domain, "reads_inside");
    let end = (1..9).find(|depth| reads_inside(*depth) == 1000);
    let end = end.expect("the return gate of the inner call");
    for depth in end + 1..end + 60 {
        let report = ends(domain, "inside", || reads_inside(depth));
        assert_eq!(report.kind, FaultKind::Unwind, "{depth}: {report}");
        assert_eq!(report.export, "inside_read", "{report}");
    }
    assert_eq!(caught(1), 11112);
}

fn landing_is_at_labels_of_the_call_that_runs(domain: &Domain) {
    let lands: Long2 = function(domain, "lands");
    let inside: Long2 = function(domain, "lands_inside");
    let body = domain.function("caught").expect("it is exported") as u64 + 32;
    let data = domain.symbol("_ZTI5Shape").unwrap_or_default() as u64;
    let host = call_back as *const () as u64;
    for target in [body, body + 1, data + 8, host, host + 8, 8] {
        let report = ends(domain, "no label", || lands(1, target));
        assert_eq!(report.kind, FaultKind::Label, "{target:#x}: {report}");
    }
    // Places come before targets.
    for depth in (9..60)
        .chain((5..61).map(|bit| 1 << bit))
        .chain([0, 1 << 61])
    {
        let report = ends(domain, "no place", || lands(depth, body));
        assert_eq!(report.kind, FaultKind::Unwind, "{depth:#x}: {report}");
        let report = ends(domain, "no place inside", || inside(depth, body));
        assert_eq!(report.kind, FaultKind::Unwind, "{depth:#x}: {report}");
    }
}

/// Memory of the host.
static CANARY: [AtomicU64; 64] = [const { AtomicU64::new(0x5ec2_e700_5ec2_e700) }; 64];

fn is_untouched() -> bool {
    let is_same = |word: &AtomicU64| word.load(Ordering::SeqCst) == 0x5ec2_e700_5ec2_e700;
    CANARY.iter().all(is_same)
}

fn forged_exceptions_harm_the_module_alone(domain: &Domain, protection: &str) {
    let forged: Long1 = function(domain, "forged");
    let canary = CANARY.as_ptr() as u64 + 256;
    let may_read = protection == "write";
    for at in [canary, canary + 4, 0, 8, 1 << 46, u64::MAX - 4096] {
        let report = ends(domain, "forged", || forged(at) as c_int);
        let known = match report.kind {
            FaultKind::Access | FaultKind::NoMapping => true,
            // It has read what it may, and found no place of that number.
            FaultKind::Uncaught | FaultKind::Abort => may_read,
            _ => false,
        };
        assert!(known, "{at:#x}: {report}");
        assert!(is_untouched());
    }
}

fn memory_ends_with_an_exception(host: &Host, module: &Arc<Module>) {
    let domain = load(host, module, "memory");
    let no_memory: Fn1 = function(&domain, "no_memory");
    for bytes in [64, 4000, 100_000] {
        let got = no_memory(bytes);
        let most = i32::try_from(LIMIT).expect("it is small") / bytes;
        assert!((most / 2..=most).contains(&got), "{bytes}: {got}");
        // The heap keeps what it has.
        domain.restart().expect("nobody is in it");
    }
    let not_even: Fn0 = function(&domain, "not_even_for_the_exception");
    assert_eq!((not_even(), not_even()), (5, 5));
    is_well(&domain);
}

fn threads_throw_at_once(domain: &Domain) {
    let sum: Sum = function(domain, "sum");
    let threads: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(move || sum(20_000)))
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), 99_990_000 + 30_000);
    }
    is_well(domain);
}

// ---- Tables that are not what the compiler wrote.

/// Where the unwinder's tables are in the file: `.eh_frame_hdr`, `.eh_frame`, `.gcc_except_table`.
fn tables(bytes: &[u8]) -> Vec<Range<usize>> {
    let module = verify(bytes.to_vec()).expect("a module");
    // They are what is read and not written, behind the code.
    let code = module
        .segments()
        .iter()
        .position(|s| s.permission() == Permission::ReadExecute)
        .expect("code");
    let behind = &module.segments()[code + 1..];
    let constants = behind
        .iter()
        .find(|s| s.permission() == Permission::Read)
        .expect("constants");
    vec![constants.file()]
}

/// Each mutant is the same code, so it is verified; and it runs in a process that must live.
fn forged_tables_harm_the_module_alone(file: &Path) {
    let got = myself("mutants", file);
    let said = String::from_utf8_lossy(&got.stderr);
    let told = String::from_utf8_lossy(&got.stdout);
    assert_eq!(got.status.signal(), None, "{said}");
    assert_eq!(got.status.code(), Some(0), "{said}");
    print!("{told}");
}

fn run_mutants(file: &Path) {
    let good = std::fs::read(file).expect("a module");
    let places: Vec<usize> = tables(&good).into_iter().flatten().collect();
    let host = Host::new().expect("Linux, with address space");
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let count = std::env::var("MULLION_MUTANTS").ok();
    let count: usize = count.map_or(60, |text| text.parse().expect("a number"));
    let (mut same, mut ended) = (0, 0);
    for _ in 0..count {
        let mut bytes = good.clone();
        for _ in 0..1 + random(200) {
            bytes[places[random(places.len())]] = random(256) as u8;
        }
        let verified = verify(bytes).expect("the code is the same");
        let module = Module::new("mutant", &verified).expect("a module");
        let limits = Limits {
            time: Some(Duration::from_millis(300)),
            memory: LIMIT,
            ..Limits::default()
        };
        let domain = host
            .load(&module, policy().limits(limits))
            .expect("a domain");
        for name in ["caught", "through_the_library", "library", "kept"] {
            let got = function::<Fn1>(&domain, name)(7);
            match domain.take_report() {
                None => same += usize::from(got != REFUSED),
                Some(_) => {
                    ended += 1;
                    domain.restart().expect("nobody is in it");
                }
            }
            assert!(is_untouched());
        }
        domain.unload().expect("nobody is in it");
    }
    println!("{count} mutants of tables: {same} calls returned, {ended} ended");
    assert!(same > 0 && ended > 0, "they must make a difference");
}
