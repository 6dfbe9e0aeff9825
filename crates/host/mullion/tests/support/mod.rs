//! Images for tests, built by the `mullion` command of this tree.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The directory that this very test was built in.
pub fn target() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let directory = test.parent().and_then(Path::parent);
    directory.expect("target/PROFILE/deps/TEST").to_owned()
}

/// The packages of all tests together, as `cargo test --workspace` has built them: the libraries and the command. Cargo
/// counts the features that tests ask for only if an example is built with the rest.
const WORKSPACE: [&str; 6] = [
    "--workspace",
    "--lib",
    "--bin",
    "mullion",
    "--example",
    "crowd",
];

/// Builds packages of this tree as the test was built.
///
/// A package alone is built with fewer features than all together, and so anew, with half of what it depends on. Where
/// all tests of the tree run, `MULLION_TEST_WORKSPACE` says so, and next to nothing is left to compile.
pub fn cargo_build(packages: &[&str]) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet"]);
    match std::env::var_os("MULLION_TEST_WORKSPACE") {
        Some(_) => build.args(WORKSPACE),
        None => build.args(packages.iter().flat_map(|package| ["--package", *package])),
    };
    if target().ends_with("release") {
        build.arg("--release");
    }
    let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.expect("cargo starts").success());
}

/// The `mullion` command.
pub static MULLION: LazyLock<PathBuf> = LazyLock::new(|| {
    cargo_build(&["mullion-cli"]);
    target().join("mullion")
});

/// Builds an extension of `source`, with more options.
pub fn build(source: &Path, image: &Path, options: &[&str]) {
    let tool = match source.extension().is_some_and(|kind| kind == "cc") {
        true => "c++",
        false => "cc",
    };
    let mut command = Command::new(&*MULLION);
    command.args([tool, "--mullion-kind=extension", "-g", "-O1"]);
    let output = command
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(image)
        .output();
    let output = output.expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", source.display());
}
