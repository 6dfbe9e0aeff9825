//! Modules by hand: assembled and linked by the host's gcc.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some")]

use mullion_word_runtime::{Domain, Host, Module, Policy};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Assembles and links `text`, which begins behind the prelude.
pub fn build(name: &str, text: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/module");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join(format!("{name}.s"));
    let all = format!("{}{text}\n{}", read("prelude.s"), read("postlude.s"));
    std::fs::write(&source, all).unwrap();
    let output = work.path().join(format!("{name}.so"));
    let done = Command::new("gcc")
        .args([
            "-shared",
            "-nostdlib",
            "-Wl,-Bsymbolic,-z,relro,-z,max-page-size=4096,--build-id=none,--hash-style=sysv",
        ])
        .arg(format!("-Wl,-T,{}", folder.join("module.ld").display()))
        .arg("-o")
        .args([&output, &source])
        .output()
        .expect("gcc runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut bytes = std::fs::read(output).unwrap();
    for header in 0..usize::from(u16::from_le_bytes([bytes[56], bytes[57]])) {
        let kind = 64 + 56 * header;
        if bytes[kind..kind + 4] == 0x6000_0001u32.to_le_bytes() {
            bytes[kind..kind + 4].copy_from_slice(&0x6474_e552u32.to_le_bytes());
        }
    }
    bytes
}

pub fn module(name: &str, text: &str) -> Arc<Module> {
    // SAFETY: the tests' modules keep the contract, or break it on purpose where the test says so.
    unsafe { Module::unchecked(name, &build(name, text)) }.unwrap()
}

pub fn load(name: &str, text: &str, policy: Policy) -> (Host, Domain) {
    let host = Host::new().unwrap();
    let domain = host.load(&module(name, text), policy).unwrap();
    (host, domain)
}

/// A function of a domain as the host calls it.
pub fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the test names the function's type.
    unsafe { std::mem::transmute_copy(&address) }
}
