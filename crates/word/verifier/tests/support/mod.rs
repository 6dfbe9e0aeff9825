//! Modules from assembler text, by `as` and `ld`.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod encode;
pub(crate) mod generate;

use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What every module starts with: a gate, an import, data, macros for the sequences of the form.
const FRAME: &str = include_str!("frame.s");

/// A module, and the addresses of its symbols.
pub(crate) struct Assembled {
    pub(crate) bytes: Vec<u8>,
    pub(crate) symbols: BTreeMap<String, u64>,
}

/// Assembles and links `text`, which starts in `.text` behind the gate `_start`, as its body.
/// `.globl PROTECTION` and `.set PROTECTION, n` in it override the default of 1.
pub(crate) fn assemble(text: &str) -> Assembled {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assemble_in(directory.path(), text)
}

fn assemble_in(directory: &Path, text: &str) -> Assembled {
    let path = |name: &str| directory.join(name);
    std::fs::write(path("module.s"), format!("{FRAME}\n{text}\n")).expect("a temporary file");
    let mut assembler = Command::new("as");
    run(
        assembler
            .arg("-o")
            .arg(path("module.o"))
            .arg(path("module.s")),
        text,
    );
    std::fs::write(path("module.ld"), include_str!("module.ld")).expect("a temporary file");
    let mut ld = Command::new("ld");
    ld.args(["-shared", "-Bsymbolic", "-z", "text", "-z", "relro"]);
    ld.args(["-z", "max-page-size=4096", "--hash-style=gnu", "-T"]);
    ld.arg(path("module.ld"));
    run(
        ld.arg("-o").arg(path("module.so")).arg(path("module.o")),
        text,
    );
    let bytes = std::fs::read(path("module.so")).expect("ld wrote the module");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let symbols = elf
        .symbols()
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.address())));
    Assembled {
        symbols: symbols.collect(),
        bytes,
    }
}

fn run(command: &mut Command, text: &str) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; binutils are needed"));
    let diagnostics = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {diagnostics}\n{text}"
    );
}

/// A small generator of random numbers (xorshift), for tests that must run alike everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
