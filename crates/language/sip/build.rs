//! A separately built SIP and its host must have more in common than the compiler knows by itself.
//! These are the sources of this crate, of its macros and of the crates below, and the compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use mullion_sip_digest::Digest;

fn main() -> io::Result<()> {
    let mut files = vec![PathBuf::from("Cargo.toml"), PathBuf::from("build.rs")];
    for directory in [
        "src",
        "../sip-core/src",
        "../sip-digest/src",
        "../sip-exchange/src",
        "../sip-macros/src",
    ] {
        println!("cargo:rerun-if-changed={directory}");
        collect(Path::new(directory), &mut files)?;
    }
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-changed=build.rs");
    files.sort();
    let mut hasher = Digest::new();
    for file in &files {
        let bytes = fs::read(file)?;
        hasher = hasher
            .text(&file.to_string_lossy())
            .number(bytes.len() as u64);
        hasher = hasher.bytes(&bytes);
    }
    println!("cargo:rustc-env=MULLION_SIP_SOURCES={}", hasher.finish());
    println!("cargo:rustc-env=MULLION_SIP_RUSTC={}", compiler()?);
    println!("cargo:rustc-env=MULLION_SIP_TARGET={}", variable("TARGET")?);
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    // Absent where these crates come from elsewhere; the compiler then sees their output in both builds.
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The first line of `rustc --version`: number, commit and date.
fn compiler() -> io::Result<String> {
    let output = Command::new(variable("RUSTC")?).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
