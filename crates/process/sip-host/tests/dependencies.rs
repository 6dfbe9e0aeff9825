//! What a process's library may depend on. Each project is built as its author would build it, and is refused by the
//! compiler or by Cargo: there is no library that a host would have to judge.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// A library's manifest but for its dependencies, and its source.
const PACKAGE: &str = r#"
    [package]
    name = "NAME"
    edition = "2024"
    [workspace]
    [lib]
    crate-type = ["cdylib", "rlib"]
    [dependencies]
"#;
const SIP: &str = "\
    #![forbid(unsafe_code)]\n\
    fn main(_: Vec<String>) {}\n\
    mullion_sip::sip_main! { name: \"sip\", main: main }\n";

/// The sources that this test is of.
fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    root.canonicalize().expect("the workspace")
}

/// One of our crates, as a dependency under a name.
fn ours(name: &str, package: &str, more: &str) -> String {
    let rooms = fs::read_dir(workspace().join("crates")).expect("the rooms");
    let mut places = rooms.map(|room| {
        let room = room.expect("a room").path();
        room.join(&package["mullion-".len()..])
    });
    let path = places.find(|place| place.is_dir()).expect("the package");
    format!("{name} = {{ package = {package:?}, path = {path:?}{more} }}\n")
}

fn separate() -> String {
    ours("mullion-sip", "mullion-sip", ", features = [\"separate\"]")
}

fn project(directory: &Path, name: &str, dependencies: &str, source: &str) -> io::Result<()> {
    fs::create_dir_all(directory.join("src"))?;
    let manifest = PACKAGE.replace("NAME", name) + dependencies;
    fs::write(directory.join("Cargo.toml"), manifest)?;
    fs::write(directory.join("src/lib.rs"), source)?;
    // The versions of what our crates depend on; Cargo drops what is not needed.
    let locked = workspace().join("examples/sip/Cargo.lock");
    fs::copy(locked, directory.join("Cargo.lock")).map(drop)
}

/// Whether a project compiles, and what is said.
fn compiled(directory: &Path) -> (bool, String) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dependencies");
    let mut command = Command::new(env!("CARGO"));
    command.args(["check", "--quiet", "--offline", "--target-dir"]);
    let output = command.arg(target).current_dir(directory).output();
    let output = output.expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

/// A project with these dependencies and this source in front of a SIP's.
fn judged(dependencies: &str, source: &str) -> (bool, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let source = SIP.to_owned() + source;
    project(directory.path(), "sip", dependencies, &source).expect("written");
    compiled(directory.path())
}

/// The project is refused, with these words.
fn is_refused(dependencies: &str, source: &str, words: &str) {
    let (compiled, said) = judged(dependencies, source);
    assert!(!compiled, "{dependencies}{source} compiles");
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_library_without_more_is_built() {
    let (compiled, said) = judged(&separate(), "");
    assert!(compiled, "{said}");
}

/// By its own name, by another one, and called `mullion_sip` in the source.
#[test]
fn no_library_depends_on_the_crate_for_hosts() {
    let words = "mullion-sip-hosting is for hosts";
    let own = separate() + &ours("mullion-sip-hosting", "mullion-sip-hosting", "");
    is_refused(&own, "", words);
    let renamed = separate() + &ours("innocent", "mullion-sip-hosting", "");
    is_refused(&renamed, "", words);
    is_refused(
        &renamed,
        "extern crate innocent as mullion_sip_core;",
        words,
    );
}

#[test]
fn no_library_depends_on_a_host_itself() {
    let whole = separate() + &ours("innocent", "mullion-hip", "");
    is_refused(&whole, "", "mullion-sip-hosting is for hosts");
}

#[test]
fn no_library_depends_on_it_through_another() {
    let between = tempfile::tempdir().expect("a directory");
    let hosts = ours("hosts", "mullion-sip-hosting", "");
    project(between.path(), "between", &hosts, "pub use hosts::*;").expect("written");
    let (alone, said) = compiled(between.path());
    assert!(alone, "a host has it: {said}");
    let through = format!(
        "{}between = {{ path = {:?} }}\n",
        separate(),
        between.path()
    );
    is_refused(&through, "", "mullion-sip-hosting is for hosts");
}

/// Without the feature there is what hosts have, and no SIP.
#[test]
fn no_library_is_built_without_the_feature() {
    let hosts = ours("mullion-sip", "mullion-sip", "");
    is_refused(&hosts, "", "`attach`");
}

/// The same package from another place, which Cargo takes for another one.
#[test]
fn no_library_has_a_second_copy() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let link = elsewhere.path().join("again");
    std::os::unix::fs::symlink(workspace(), &link).expect("a link");
    let path = link.join("crates/language/sip");
    let second = format!("second = {{ package = \"mullion-sip\", path = {path:?} }}\n");
    is_refused(
        &(separate() + &second),
        "",
        "links to the native library `mullion-sip`",
    );
}

#[test]
fn what_hosts_have_is_not_there() {
    for name in [
        "__host::Host",
        "Host",
        "Deputy",
        "Parcel",
        "Start",
        "host::Host",
        "host::enter_kernel",
        "remote::join",
        "exchange::share",
        "exchange::parcel::Parcel",
        "heap::in_use",
        "process::end_as",
        "process::spawn::end_as",
        "critical::critical",
        "state::OWN",
        "__core::hooks::register",
        "exchange::common_memory::share",
    ] {
        let source = format!("use mullion_sip::{name} as _;");
        let (compiled, said) = judged(&separate(), &source);
        assert!(!compiled, "{name} is there");
        let refused = ["E0432", "E0603", "E0433"];
        assert!(
            refused.iter().any(|code| said.contains(code)),
            "{name}: {said}"
        );
    }
}

/// What the kernel alone may call is a method of a value that only `unsafe` code makes, and a library has none.
#[test]
fn a_library_that_depends_on_the_crates_below_reaches_nothing_in_them() {
    let own = separate()
        + &ours("below", "mullion-sip-core", "")
        + &ours("exchange", "mullion-sip-exchange", "");
    let (compiled, said) = judged(&own, "pub use below::thread::spawn;");
    assert!(compiled, "{said}");
    let made =
        "pub fn critical() { let core = UNSAFE { below::Core::new() }; drop(core.critical()); }";
    is_refused(&own, &made.replace("UNSAFE", ""), "E0133");
    is_refused(
        &own,
        &made.replace("UNSAFE", "unsafe"),
        "usage of an `unsafe` block",
    );
    let made = "pub fn own() { exchange::Interior::new(); }";
    is_refused(&own, made, "E0133");
    for name in [
        "below::critical::critical",
        "below::process::Process",
        "below::hooks::register",
        "below::state::OWN",
        "exchange::exchange::common_memory::share",
        "exchange::exchange::ledger::OwnerLedger",
        "exchange::channel::foreign::Foreign",
    ] {
        let (compiled, said) = judged(&own, &format!("use {name} as _;"));
        assert!(!compiled, "{name} is there: {said}");
    }
    let pack = "pub fn pack() { exchange::interior::Parcel::pack(1u32); }";
    is_refused(&own, pack, "E0599");
}
