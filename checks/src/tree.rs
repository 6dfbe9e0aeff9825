//! Where the tree is, and what is in it.

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the tree.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("a crate lies in the tree").to_owned()
}

/// The files under `folder` with this extension, in order; what was built is left out.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The folders of the crates under `crates/`, by their manifests.
pub fn crates() -> Vec<PathBuf> {
    let manifests = files(&root().join("crates"), "toml");
    let folder = |manifest: &PathBuf| manifest.parent().expect("a folder").to_owned();
    let manifests = manifests.iter().filter(|path| path.ends_with("Cargo.toml"));
    manifests
        .map(folder)
        .filter(|folder| folder.join("src").is_dir())
        .collect()
}

/// The file that a crate begins with.
pub fn top(folder: &Path) -> PathBuf {
    let library = folder.join("src/lib.rs");
    match library.exists() {
        true => library,
        false => folder.join("src/main.rs"),
    }
}
