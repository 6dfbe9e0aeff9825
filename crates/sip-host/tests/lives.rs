//! Separately built SIPs, run: they end, are restarted and are heard as linked ones are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use mullion_sip::process::Cause;
use mullion_sip_host::supervisor::{Outcome, SetupError};
use mullion_sip_host::{Configuration, Supervisor};

/// Where the examples' libraries are, built as their authors would build them.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("sips", &[]))
}

fn build(target: &str, options: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target);
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sip/Cargo.toml");
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path", manifest])
        .args(options)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(done.success(), "the examples are built");
    target.join("debug")
}

fn setup(text: &str) -> Result<Supervisor, SetupError> {
    let mut configuration = Configuration::parse(text).expect("well formed");
    for process in configuration.processes.values_mut() {
        process.library = libraries().join(&process.library);
    }
    Supervisor::new(&configuration)
}

fn run(text: &str) -> Vec<Outcome> {
    setup(text).unwrap_or_else(|error| panic!("{error}")).run()
}

/// How a process ends that is told to end in this way.
fn odd(way: &str) -> (Cause, String) {
    let text = format!(
        "[processes.odd-{way}]\nlibrary = \"libsip_odd.so\"\narguments = [\"{way}\"]\nbind = [\"/odd\"]"
    );
    let exit = run(&text)[0].exit.expect("an end");
    (exit.cause, exit.message.to_string())
}

#[test]
fn every_end_is_the_one_that_a_linked_process_has() {
    assert_eq!(odd("return"), (Cause::Returned, String::new()));
    assert_eq!(odd("fail"), (Cause::Exited(1), "as it was told".into()));
    assert_eq!(odd("exit"), (Cause::Exited(7), String::new()));
    let (cause, message) = odd("panic");
    assert_eq!(cause, Cause::Panic);
    assert!(
        message.ends_with("on purpose, with 1 arguments"),
        "{message}"
    );
    assert_eq!(odd("hook").0, Cause::Panic);
    assert_eq!(odd("memory").0, Cause::Memory);
    assert_eq!(odd("stack").0, Cause::Stack);
    assert_eq!(odd("loop").0, Cause::Slice);
    assert_eq!(odd("abort").0, Cause::Abort);
    assert_eq!(odd("names"), (Cause::Returned, String::new()));
}

#[test]
fn a_service_and_its_clients_find_each_other() {
    let outcomes = run(r#"
        [processes.echo]
        library = "libsip_echo.so"
        bind = ["/echo"]
        arguments = ["/echo", "2"]
        [processes.one]
        library = "libsip_asker.so"
        arguments = ["1000"]
        look-up = ["/echo"]
        [processes.two]
        library = "libsip_asker.so"
        arguments = ["1000"]
        look-up = ["/echo"]
        "#
    .replace("restart = \"always\"", "arguments = [\"/echo\", \"2\"]")
    .as_str());
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.exit.is_some_and(|exit| exit.cause.is_success())),
        "{outcomes:?}"
    );
}
