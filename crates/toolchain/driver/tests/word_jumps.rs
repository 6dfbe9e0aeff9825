//! `setjmp` and `longjmp` of a module, with all parts: the driver makes it, the verifier accepts it, the run time loads it,
//! and each jump that is none of its own ends the call.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_word_runtime::{
    Domain, Effect, FaultKind, FunctionPolicy, Host, Limits, Module, Policy,
};
use mullion_word_verifier::verify;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

type Plain = extern "C" fn() -> i32;
type Forged = extern "C" fn(i32, i64) -> i32;

const REFUSED: i32 = -9;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            let scratch = tempfile::tempdir().expect("a temporary directory");
            let host = Host::new().expect("Linux, with address space");
            for (protection, level) in [("read-write", "-O2"), ("write", "-O0")] {
                let domain = load(&host, &module(scratch.path(), protection, level));
                jumps_go_up(&domain);
                what_is_no_jump_up_ends_the_call(&domain);
            }
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

fn module(scratch: &Path, protection: &str, level: &str) -> Arc<Module> {
    let output = scratch.join("jumps.so");
    let protection = format!("--protection={protection}");
    let mut line: Vec<OsString> = ["--wall=word", &protection, "-w", level]
        .map(OsString::from)
        .into();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/word/jumps.c");
    line.extend([source.into(), "-o".into(), output.clone().into()]);
    let arguments = Arguments::parse(&line).expect("a good command line");
    assert_eq!(
        compile(Language::C, &arguments).expect("a compiler").code,
        0
    );
    let verified = verify(std::fs::read(output).expect("a module"));
    let verified = verified.unwrap_or_else(|rejected| panic!("{rejected:#?}"));
    assert_eq!(
        verified.imports(),
        ["call_back"],
        "nothing of it is the host's"
    );
    Module::new("jumps", &verified).expect("a module")
}

extern "C" fn call_back(function: Plain) -> i32 {
    function() + 1
}

fn load(host: &Host, module: &Arc<Module>) -> Domain {
    let callback = FunctionPolicy::of(&[Effect::Callback(0)]);
    // Whoever jumps to where it was before may go round for ever.
    let limits = Limits {
        time: Some(Duration::from_secs(2)),
        ..Limits::default()
    };
    let mut policy = Policy::new().limits(limits);
    for name in [
        "up", "masked", "gone", "over", "again", "marked", "forged", "moved",
    ] {
        policy = policy.export(name, FunctionPolicy::default().error(REFUSED.into()));
    }
    // SAFETY: it is given what the module may enter.
    let policy =
        unsafe { policy.offer("call_back", call_back as *const () as usize, Some(callback)) };
    host.load(module, policy).expect("a domain")
}

fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the functions are as `jumps.c` has them.
    unsafe { std::mem::transmute_copy(&address) }
}

fn jumps_go_up(domain: &Domain) {
    let up: extern "C" fn(i32, i32, i32, i32) -> i32 = function(domain, "up");
    for depth in [1, 2, 50, 1000] {
        // The second jump is with 0, of which `longjmp` makes 1.
        assert_eq!(up(depth, 2, 3, 4), 1 + 20 + 300 + 4000 + 30000, "{depth}");
    }
    assert_eq!(function::<Plain>(domain, "masked")(), 5);
    assert!(domain.take_reports().is_empty());
}

fn what_is_no_jump_up_ends_the_call(domain: &Domain) {
    let ends = |name: &str, kind: FaultKind, call: &dyn Fn() -> i32| {
        assert_eq!(call(), REFUSED, "{name}");
        let reports = domain.take_reports();
        assert_eq!(
            reports.first().map(|r| r.kind),
            Some(kind),
            "{name}: {reports:?}"
        );
        domain.restart().expect("it starts again");
    };
    let plain = |name| function::<Plain>(domain, name);
    ends("gone", FaultKind::Unwind, &|| plain("gone")());
    ends("over", FaultKind::Unwind, &|| plain("over")());
    // Another call of the module stands where the one that has returned stood: a label of the module's own, and a
    // control stack that is in order. Only the module is led astray.
    assert_eq!(plain("marked")(), 0);
    let _any = plain("again")();
    let _said = domain.take_reports();
    if domain.is_ended() {
        domain.restart().expect("it starts again");
    }
    let (forged, moved): (Forged, Forged) = (function(domain, "forged"), function(domain, "moved"));
    let (place, depth) = (5, 6);
    for by in [-8, -16, 4, 1, 1 << 20, 1 << 40, i64::MIN, -(1 << 20)] {
        ends("moved down or away", FaultKind::Unwind, &|| {
            moved(depth, by)
        });
    }
    for by in [1, -7, 16, -4] {
        ends("no label", FaultKind::Label, &|| moved(place, by));
    }
    let host = call_back as *const () as i64;
    for at in [host, host + 4, 8] {
        ends("not the module's", FaultKind::Label, &|| forged(place, at));
    }
    // The look at the table is at no address then.
    for at in [-1, 1 << 62] {
        ends("nobody's", FaultKind::NoMapping, &|| forged(place, at));
    }
}
