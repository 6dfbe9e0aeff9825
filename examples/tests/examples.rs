//! Every example, built as its first lines say and run.

#[path = "../../crates/mullion/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// An extension of these examples, in a directory for the example's output.
fn extension(source_name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("extension.mx");
    support::build(
        &source(source_name),
        &image,
        &["-O2", "-Wall", "-Wextra", "-Werror"],
    );
    (directory, image)
}

/// What a host prints; it must succeed.
fn run(host: &Path, arguments: &[&Path]) -> String {
    let output = Command::new(host).args(arguments).output();
    let output = output.expect("the host starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", host.display());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn hello() {
    let (_directory, image) = extension("hello/extension.c");
    let printed = run(Path::new(env!("CARGO_BIN_EXE_hello")), &[&image]);
    assert_eq!(printed, "2 + 3 = 5\n");
}

#[test]
fn callbacks() {
    let (_directory, image) = extension("callbacks/extension.c");
    let printed = run(Path::new(env!("CARGO_BIN_EXE_callbacks")), &[&image]);
    let mut records: Vec<u32> = (1..=12).collect();
    records.sort_by_key(|record: &u32| record.wrapping_mul(2_654_435_761) >> 24);
    assert!(
        printed.starts_with(&format!("sorted by weight: {records:?}\n")),
        "{printed}"
    );
    assert!(printed.contains("the domain asked "), "{printed}");
}

#[test]
fn pipeline() {
    let (directory, image) = extension("pipeline/filters.c");
    let picture = directory.path().join("picture.pgm");
    let printed = run(
        Path::new(env!("CARGO_BIN_EXE_pipeline")),
        &[&image, &picture],
    );
    assert!(
        printed.contains("read of memory that is not mapped at offset 0x0"),
        "{printed}"
    );
    assert!(printed.contains("filters.c:"), "{printed}");
    assert!(printed.contains("blur: 256 rows, 0 skipped\n"), "{printed}");
    assert!(
        printed.contains("sharpen: 131 rows, 125 skipped\n"),
        "{printed}"
    );
    assert!(printed.contains("in spite of 125 crashes\n"), "{printed}");
    assert_eq!(
        std::fs::read(picture).expect("a picture").len(),
        15 + 256 * 256
    );
}
