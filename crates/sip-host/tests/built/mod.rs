//! The examples' libraries, built as their authors would build them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library of an example.
pub(crate) fn library(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).join(format!("libsip_{name}.so"))
}

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sips");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sip/Cargo.toml");
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path", manifest])
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(done.success(), "the examples are built");
    target.join("debug")
}
