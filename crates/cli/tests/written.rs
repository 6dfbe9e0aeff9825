//! Assembler that people write does the same in a domain as natively, and what has no place in one is refused with its
//! place in the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WAYS: &[&[&str]] = &[
    &["--mullion-protection=write-call"],
    &["--mullion-protection=read-write-call"],
    &["--mullion-protection=trap"],
    &["--mullion-base=register"],
];

fn output(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn functions_by_hand_compute_what_they_do_natively() {
    computes_as_natively(&["main.c", "functions.S"]);
}

#[test]
fn inline_assembler_may_name_every_register() {
    for level in ["-O0", "-O2"] {
        computes_as_natively(&["inline.c", level]);
    }
}

/// Files, which have a dot in their names, and options.
fn computes_as_natively(arguments: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/written");
    let files: Vec<PathBuf> = arguments
        .iter()
        .map(|name| match name.contains('.') {
            true => sources.join(name),
            false => PathBuf::from(name),
        })
        .collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let native = directory.path().join("native");
    output(Command::new("gcc").args(&files).arg("-o").arg(&native));
    let expected = output(&mut Command::new(&native)).stdout;
    assert!(expected.len() > 200, "{expected:?}");
    let mullion = env!("CARGO_BIN_EXE_mullion");
    for way in WAYS {
        let image = directory.path().join("program.mx");
        let mut build = Command::new(mullion);
        output(
            build
                .arg("cc")
                .args(*way)
                .args(&files)
                .arg("-o")
                .arg(&image),
        );
        output(Command::new(mullion).arg("verify").arg(&image));
        let said = output(Command::new(mullion).arg("run").arg(&image));
        assert_eq!(said.stdout, expected, "{way:?}");
    }
}

#[test]
fn a_refusal_names_the_line_of_the_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("bad.S");
    let all = "push %rbx; push %rbp; push %r12; push %r13; push %r10";
    let text = format!(
        "#define GO jmp *%r14\n\t.macro leave\n\tnop\n\tGO\n\t.endm\nf:\t{all}\n\tleave\n\tsyscall\n"
    );
    fs::write(&file, text).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    let said = command
        .arg("cc")
        .arg("-c")
        .arg(&file)
        .arg("-o")
        .arg("/dev/null")
        .output();
    let said = said.expect("the command starts");
    assert!(!said.status.success());
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let place = file.display();
    for line in [
        format!(
            "{place}:7: error: the registers r11, r14 and r15 are reserved; name another, or let the compiler choose one \
             (\"=r\"): `jmp *%r14`"
        ),
        format!("{place}:8: error: not an instruction that an extension may use"),
    ] {
        assert!(said.contains(&line), "{said}");
    }
}
