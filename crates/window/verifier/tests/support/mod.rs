//! Images from assembler text, by `as` and `ld`.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod build;
pub(crate) mod pool;

use std::path::Path;
use std::process::Command;

/// What every test image starts with: the note, an import, an export, a
/// labelled entry. `TEXT` is replaced by the test's code.
const FRAME: &str = r#"
    .set LABEL, 0x4e6c754d
    .macro label
    .byte 0x0f, 0x1f, 0x80
    .long LABEL
    .endm
    .section .mullion.gates, "aG", @nobits, import, comdat
    .globl import
    .type import, @function
import: .skip 32
    .section .mullion.imports, "aG", @progbits, import, comdat
    .asciz "import"
    .skip 64 - 7
    .section .mullion.exports, "a", @progbits
0:  .long _start - 0b
    .asciz "export"
    .skip 60 - 7
    .text
    .balign 32
    label
    .globl _start
_start:
"#;

/// Assembles and links `text`, which starts in `.text` behind the label of `_start`.
/// `.globl PROTECTION` and `.set PROTECTION, n` in it override the default of 1.
pub(crate) fn assemble(directory: &Path, text: &str) -> Vec<u8> {
    let path = |name: &str| directory.join(name);
    std::fs::write(path("image.s"), format!("{FRAME}\n{text}\n")).expect("a temporary file");
    run(
        Command::new("as")
            .arg("-o")
            .arg(path("image.o"))
            .arg(path("image.s")),
        text,
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/image.ld");
    let mut ld = Command::new("ld");
    ld.args([
        "-shared",
        "-Bsymbolic",
        "-e",
        "_start",
        "-z",
        "text",
        "-z",
        "norelro",
        "-z",
        "max-page-size=4096",
        "-T",
        script,
    ]);
    run(
        ld.arg("-o").arg(path("image.mx")).arg(path("image.o")),
        text,
    );
    std::fs::read(path("image.mx")).expect("ld wrote the image")
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
