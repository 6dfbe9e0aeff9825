//! Programs that must be accepted, and that do what gcc's own reading of their source does.

#[allow(dead_code, reason = "each test uses a part of it")]
mod programs;

use programs::{cases, judged, source};
use std::path::Path;
use std::process::Command;

fn run(directory: &Path, name: &str, text: &str, wrapped: bool) -> Result<Option<i32>, String> {
    let (source, program) = (directory.join(format!("{name}.i")), directory.join(name));
    std::fs::write(&source, text).map_err(|error| error.to_string())?;
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-O1",
        "-w",
        "-std=gnu11",
        "-fwrapv",
        "-fno-strict-aliasing",
        "-fno-builtin",
        "-x",
        "cpp-output",
    ]);
    if wrapped {
        gcc.args([
            "-Werror=int-conversion",
            "-Werror=incompatible-pointer-types",
        ]);
    }
    let output = gcc.arg(&source).arg("-o").arg(&program).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(Command::new(&program)
        .status()
        .map_err(|error| error.to_string())?
        .code())
}

#[test]
fn each_program_is_accepted_and_does_what_its_source_does() {
    let mut wrong = Vec::new();
    for mut case in cases("accepted.txt") {
        let directory = tempfile::tempdir().expect("a directory");
        if !case.table.contains("entries") {
            case.table.push_str("\nentries = [\"main\"]");
        }
        let judged = match judged(directory.path(), &case) {
            Ok(judged) => judged,
            Err(refusals) => {
                let told: Vec<_> = refusals
                    .iter()
                    .map(|refusal| refusal.render("tested", false))
                    .collect();
                wrong.push(format!("{}: refused: {}", case.name, told.join("\n")));
                continue;
            }
        };
        let source = source(directory.path(), &case);
        let given = run(
            directory.path(),
            "given",
            &format!("{}\n{}", source.environment, source.program),
            false,
        );
        let written = run(
            directory.path(),
            "written",
            &format!("{}\n{}", source.environment, judged.text),
            true,
        );
        let expected: Option<i32> = case.expected.first().and_then(|word| word.parse().ok());
        let alone = case.expected.iter().any(|word| word == "alone");
        if written != Ok(expected) || (given != written && !alone) {
            wrong.push(format!(
                "{}: expected {expected:?}; source {given:?}, judged {written:?}\n{}",
                case.name, judged.text
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_author_s_inline_reaches_the_compiler() {
    let mut all = cases("accepted.txt").into_iter();
    let mut case = all
        .find(|case| case.name == "inline-function")
        .expect("a case");
    case.table.push_str("\nentries = [\"main\"]");
    let directory = tempfile::tempdir().expect("a directory");
    let judged = judged(directory.path(), &case).expect("an accepted program");
    let heads: Vec<_> = judged.text.lines().collect();
    let of = |name: &str| {
        heads
            .iter()
            .find(|line| line.contains(name) && line.contains('{'))
    };
    assert!(of("four").is_some_and(|head| head.starts_with("static inline int ")));
    assert!(of("main").is_some_and(|head| !head.contains("inline")));
}
