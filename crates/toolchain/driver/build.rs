//! Puts the files of `sysroot/` into the crate, and gives what is built from
//! them a key: the digest of everything that decides its content.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let sysroot = here
        .join("../../../sysroot")
        .canonicalize()
        .expect("sysroot/ is part of the tree");
    let mut files = Vec::new();
    collect(&sysroot, &mut files);
    let mut table = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let name = file
            .strip_prefix(&sysroot)
            .expect("collected below it")
            .display();
        writeln!(
            table,
            "    ({:?}, include_bytes!({:?})),",
            name.to_string(),
            file
        )
        .expect("a string grows");
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("files.rs"), table).expect("the output directory can be written");

    for directory in [
        "src",
        "../rewriter/src",
        "../../window/abi/src",
        "../../word/abi/src",
    ] {
        collect(&here.join(directory), &mut files);
        println!("cargo:rerun-if-changed={directory}");
    }
    println!("cargo:rerun-if-changed={}", sysroot.display());
    let mut hash = DefaultHasher::new();
    for file in &files {
        hash.write(file.file_name().expect("a file").as_encoded_bytes());
        hash.write(&fs::read(file).expect("a source file can be read"));
    }
    println!("cargo:rustc-env=MULLION_SYSROOT_KEY={:016x}", hash.finish());
}

/// The files below a directory, in an order that does not depend on the file system.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
