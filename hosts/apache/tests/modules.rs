//! Twelve of httpd's modules, made with both protections and verified. All of them: `apache-modules` (README.md).
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_apache::{Maker, Outcome, Protection, modules, tool};
use mullion_fetch::{Lock, fetch};
use std::process::ExitCode;

/// Small ones, one with many files, one with thousands of calls of the host, one with tables of cases.
const SOME: [&str; 12] = [
    "alias",
    "authz_core",
    "deflate",
    "dir",
    "expires",
    "headers",
    "include",
    "log_forensic",
    "proxy_ajp",
    "rewrite",
    "sed",
    "socache_shmcb",
];

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    if !std::path::Path::new("/usr/include/apache2/httpd.h").is_file() {
        let missing = "httpd's headers are not here (Debian's package apache2-dev)";
        println!("skipped: {missing}");
        assert!(
            std::env::var_os("MULLION_REQUIRE_APACHE").is_none(),
            "{missing}"
        );
        return ExitCode::SUCCESS;
    }
    let lock = Lock::parse(include_str!("../../../sysroot/sources.toml")).expect("a lock file");
    let tree = fetch(lock.source("apache").expect("it is listed")).expect("httpd's source");
    let all = modules(&tree).expect("a tree");
    assert!(all.len() > 120, "{}", all.len());
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let maker = Maker::new(&tree, &all, scratch.path()).expect("headers");
    for name in SOME {
        let module = all
            .iter()
            .find(|module| module.name == name)
            .expect("httpd has it");
        let checks = [Protection::ReadWrite, Protection::Write].map(|protection| {
            let row = maker.make(module, protection).expect("tools");
            match row.outcome {
                Outcome::Verified { checks, gates, .. } => {
                    assert!(gates > 0, "{name}: the core calls it");
                    checks
                }
                why => panic!("{name}, {}: {why:?}", protection.name()),
            }
        });
        assert!(checks[0] > checks[1], "{name}: {checks:?}");
    }
    println!("{} modules are made and verified", SOME.len());
    ExitCode::SUCCESS
}
