//! Random assembler bodies do the same rewritten as natively: registers of every
//! width, flags, memory, the stack, branches, loops, switches, calls and strings.
//!
//! `MULLION_BODIES=N` makes N bodies in place of 300, `MULLION_SEED=N` others. A body that
//! differs is printed.

mod body;

use crate::processor_tests::ARCHITECTURE;
use crate::{Base, Options, Protection, Wall, rewrite};
use body::{body, templates};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the program is compiled with, as in tests/execution.rs.
const FLAGS: &[&str] = &[
    "-O1",
    "-w",
    "-fPIE",
    "-ffixed-r11",
    "-ffixed-r14",
    "-ffixed-r15",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-tree-loop-distribute-patterns",
];

#[test]
fn random_bodies_do_the_same_rewritten() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |v| v.parse().expect(name))
    };
    let (seed, count) = (number("MULLION_SEED", 1), number("MULLION_BODIES", 300));
    let templates = templates();
    let mut done = 0;
    while done < count {
        let batch = (count - done).min(300);
        let first = seed << 32 | done;
        let bodies: Vec<String> = (0..batch).map(|n| body(n, first + n, &templates)).collect();
        compare(&bodies);
        done += batch;
    }
    println!("{count} bodies, seed {seed}");
}

/// Runs the bodies natively and in every form of protection.
fn compare(bodies: &[String]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let mut text = ARCHITECTURE.to_owned() + &bodies.concat();
    text.push_str(
        "\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n\t.globl bodies, body_count\nbodies:\n",
    );
    for number in 0..bodies.len() {
        let _ = writeln!(text, "\t.quad body{number}");
    }
    let _ = writeln!(
        text,
        "body_count: .quad {}\n\t.section .note.GNU-stack,\"\",@progbits",
        bodies.len()
    );
    std::fs::write(path("bodies.s"), &text).expect("a temporary file");
    let gcc = |arguments: &[&str], files: &[PathBuf], output: &Path| {
        succeed(
            Command::new("gcc")
                .args(FLAGS)
                .args(["-Wa,-W"])
                .args(arguments)
                .args(files)
                .arg("-o")
                .arg(output),
        );
    };
    gcc(&["-O1"], &[harness("harness.c")], &path("harness"));
    gcc(
        &[],
        &[harness("native.c"), harness("bodies.c"), path("bodies.s")],
        &path("native"),
    );
    gcc(&["-S"], &[harness("bodies.c")], &path("main.s"));
    gcc(&["-S"], &[harness("support.c")], &path("support.s"));
    let native = |which: usize| outcome(Command::new(path("native")).arg(which.to_string()));
    let expected = native(0);
    assert!(!expected.contains("signal"), "natively: {expected}");
    let protections = [
        Protection::WriteCall,
        Protection::ReadWriteCall,
        Protection::Trap,
    ];
    for protection in protections {
        for (base, count) in [
            (Base::Segment, false),
            (Base::Register, false),
            (Base::Segment, true),
        ] {
            let image = path("image.mx");
            let options = Options {
                wall: Wall::Window,
                protection,
                base,
                count,
            };
            let rewritten = build(directory.path(), &options, &image);
            let bytes = std::fs::read(&image).expect("the image");
            mullion_verifier::verify(bytes).unwrap_or_else(|rejected| {
                panic!(
                    "{options:?}: {rejected}\n{}",
                    near(&image, &rejected.to_string())
                )
            });
            let run = |which: usize| {
                outcome(
                    Command::new(path("harness"))
                        .arg(&image)
                        .arg(which.to_string()),
                )
            };
            if run(0) == expected {
                continue;
            }
            let which = (1..=bodies.len())
                .find(|n| run(*n) != native(*n))
                .expect("one of them differs");
            let own = rewritten
                .split(&format!("body{}:\n", which - 1))
                .nth(1)
                .unwrap_or_default();
            let own = own.split("\t.size").next().unwrap_or_default();
            panic!(
                "{} {}{}: body {which}: {} natively {}\n{}\n--- rewritten:\n{own}",
                protection.name(),
                base.name(),
                if count { " counted" } else { "" },
                run(which),
                native(which),
                bodies[which - 1]
            );
        }
    }
}

/// The code in front of a violation, whose place is the first hexadecimal number of its text.
fn near(image: &Path, violation: &str) -> String {
    let place = violation.split("0x").nth(1).unwrap_or_default();
    let place = place
        .split(|c: char| !c.is_ascii_hexdigit())
        .next()
        .unwrap_or_default();
    let place = u64::from_str_radix(place, 16).unwrap_or_default();
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn"]).arg(image);
    objdump.arg(format!("--start-address={}", place.saturating_sub(160)));
    objdump.arg(format!("--stop-address={}", place + 16));
    outcome(&mut objdump)
}

/// Rewrites, assembles and links; the text of the bodies.
fn build(directory: &Path, options: &Options, image: &Path) -> String {
    let path = |name: &str| directory.join(name);
    let mut ld = Command::new("ld");
    ld.args([
        "-pie",
        "--no-dynamic-linker",
        "-e",
        "entry",
        "-z",
        "text",
        "-z",
        "norelro",
        "-z",
        "max-page-size=4096",
    ]);
    ld.args([
        "--defsym",
        &format!("PROTECTION={}", options.protection as u32),
        "-T",
    ]);
    ld.arg(harness("image.ld")).arg("-o").arg(image);
    let mut bodies = String::new();
    for name in ["main.s", "support.s", "bodies.s"] {
        let source = std::fs::read_to_string(path(name)).expect("assembler text");
        let rewritten = rewrite(&source, name, options).unwrap_or_else(|refusals| {
            let lines: Vec<String> = refusals.iter().take(5).map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"))
        });
        let (text, object) = (
            path(&format!("{name}.walled.s")),
            path(&format!("{name}.o")),
        );
        std::fs::write(&text, &rewritten.text).expect("a temporary file");
        succeed(
            Command::new("as")
                .arg("-W")
                .arg("-o")
                .arg(&object)
                .arg(text),
        );
        ld.arg(object);
        bodies = rewritten.text;
    }
    succeed(&mut ld);
    let mut bytes = std::fs::read(image).expect("the image");
    // As in tests/execution.rs: position-independent.
    bytes[16] = 3;
    std::fs::write(image, bytes).expect("the image");
    bodies
}

fn harness(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/harness")
        .join(name)
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn succeed(command: &mut Command) {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn outcome(command: &mut Command) -> String {
    let output = run(command);
    format!(
        "{} {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
