//! The examples' libraries, built as their authors would build them. The command's tests use this file, too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where they are.
pub(crate) fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

/// The library of an example.
#[allow(
    dead_code,
    reason = "of those who use this file, some load none by name"
)]
pub(crate) fn library(name: &str) -> PathBuf {
    libraries().join(format!("libsip_{name}.so"))
}

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sips");
    // Crates that use this file lie at different depths.
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let manifest = above
        .find_map(|folder| {
            Some(folder.join("examples/sip/Cargo.toml")).filter(|file| file.is_file())
        })
        .expect("the examples are in the tree");
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(done.success(), "the examples are built");
    target.join("debug")
}
