//! A module's own heap (`sysroot/word/heap`): `malloc` without a gate, whatever the host does meanwhile.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_word_runtime::{Domain, Effect, FunctionPolicy, Host, Limits, Module, Policy, Size};
use mullion_word_verifier::verify;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Churn = extern "C" fn(u64, i64) -> i64;
type FillUp = extern "C" fn(usize) -> i64;
type Pairs = extern "C" fn(i64) -> i64;
type Foreign = extern "C" fn() -> i64;

/// What a module may have.
const LIMIT: u64 = 32 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let scratch = tempfile::tempdir().expect("a temporary directory");
            let host = Host::new().expect("Linux, with address space");
            for protection in ["write", "read-write"] {
                let module = module(scratch.path(), protection, "own");
                blocks_are_as_they_were_left(&load(&host, &module));
                threads_share_a_heap(&load(&host, &module));
                the_limit_is_reached_and_kept(&load(&host, &module));
                the_host_is_asked_rarely(&host, &module);
                who_finds_the_heap_taken_is_served(&host, &module);
            }
            let module = module(scratch.path(), "write", "host");
            blocks_are_as_they_were_left(&load(&host, &module));
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn module(scratch: &Path, protection: &str, heap: &str) -> Arc<Module> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/word/heap.c");
    let output = scratch.join(format!("{protection}-{heap}.so"));
    let (protection, heap) = (
        format!("--protection={protection}"),
        format!("--heap={heap}"),
    );
    let mut line: Vec<OsString> = ["--wall=word", &protection, &heap, "-w", "-O2", "-o"]
        .map(OsString::from)
        .into();
    line.extend([output.clone().into(), source.into()]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    let compiled = compile(Language::C, &arguments).expect("a compiler");
    assert_eq!(compiled.code, 0);
    let bytes = std::fs::read(output).expect("a module");
    let verified = verify(bytes).unwrap_or_else(|rejected| panic!("{rejected:#?}"));
    Module::new("heap", &verified).expect("a module")
}

fn policy() -> Policy {
    let copies = FunctionPolicy::of(&[
        Effect::In(0, Size::Text),
        // As many bytes as the one text has that is copied.
        Effect::Gives(Size::Bytes(22)),
    ]);
    let limits = Limits {
        memory: LIMIT,
        ..Limits::default()
    };
    let policy = Policy::new().allocators().limits(limits);
    policy.allow_with("strdup", copies)
}

fn load(host: &Host, module: &Arc<Module>) -> Domain {
    host.load(module, policy()).expect("a domain")
}

fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the functions are as `heap.c` has them.
    unsafe { std::mem::transmute_copy(&address) }
}

fn is_well(domain: &Domain) {
    let reports = domain.take_reports();
    assert!(reports.is_empty(), "{}", reports[0]);
}

fn blocks_are_as_they_were_left(domain: &Domain) {
    let churn: Churn = function(domain, "churn");
    let foreign: Foreign = function(domain, "foreign");
    for _life in 0..2 {
        assert_eq!((churn(1, 10_000), foreign()), (0, 0));
        is_well(domain);
        domain.restart().expect("nobody is in it");
    }
}

fn threads_share_a_heap(domain: &Domain) {
    let churn: Churn = function(domain, "churn");
    let threads: Vec<_> = (0..4)
        .map(|seed| std::thread::spawn(move || churn(seed, 5_000)))
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), 0);
    }
    is_well(domain);
}

fn the_limit_is_reached_and_kept(domain: &Domain) {
    let fill_up: FillUp = function(domain, "fill_up");
    let full = i64::try_from(LIMIT).expect("it is small");
    for (size, least) in [
        (1_000, full * 3 / 4),
        (16, full / 2),
        (20_000, full * 3 / 4),
    ] {
        let got = fill_up(size);
        assert!((least..full).contains(&got), "{size}: {got}");
    }
    is_well(domain);
}

/// `malloc` of the host, as it is offered.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static MEANWHILE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn counted(bytes: usize) -> *mut libc::c_void {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let meanwhile = MEANWHILE.load(Ordering::Relaxed);
    if meanwhile != 0 && bytes > 60_000 {
        // SAFETY: it is `meanwhile` of the module, which takes nothing.
        let meanwhile: extern "C" fn() = unsafe { std::mem::transmute(meanwhile) };
        meanwhile();
    }
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(bytes) }
}

fn counting() -> Policy {
    let gives = FunctionPolicy::of(&[Effect::Gives(Size::Argument(0))]);
    // SAFETY: it does what its row says.
    unsafe { policy().offer("malloc", counted as *const () as usize, Some(gives)) }
}

fn the_host_is_asked_rarely(host: &Host, module: &Arc<Module>) {
    let domain = host.load(module, counting()).expect("a domain");
    let pairs: Pairs = function(&domain, "pairs");
    let before = CALLS.load(Ordering::Relaxed);
    pairs(100_000);
    is_well(&domain);
    let calls = CALLS.load(Ordering::Relaxed) - before;
    assert!((1..5).contains(&calls), "{calls}");
}

/// The host's `malloc` calls the module, whose thread has the heap: as if another thread had it, and did not go on.
fn who_finds_the_heap_taken_is_served(host: &Host, module: &Arc<Module>) {
    let domain = host.load(module, counting()).expect("a domain");
    let churn: Churn = function(&domain, "churn");
    let meanwhile = domain.function("meanwhile").expect("it is there") as usize;
    MEANWHILE.store(meanwhile, Ordering::Relaxed);
    assert_eq!(churn(3, 10_000), 0);
    MEANWHILE.store(0, Ordering::Relaxed);
    assert_eq!(churn(4, 10_000), 0);
    is_well(&domain);
}
