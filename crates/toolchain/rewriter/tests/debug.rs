//! What makes no code changes no code: debug labels, line numbers and sections of debug
//! information may stand anywhere, and the instructions that come out are the same.

use mullion_rewriter::{Base, Options, Protection, Wall, rewrite};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const EVERYTHING: [Options; 3] = [
    Options {
        wall: Wall::Window,
        protection: Protection::WriteCall,
        base: Base::Segment,
        count: false,
    },
    Options {
        wall: Wall::Window,
        protection: Protection::ReadWriteCall,
        base: Base::Register,
        count: true,
    },
    Options {
        wall: Wall::Window,
        protection: Protection::Trap,
        base: Base::Segment,
        count: false,
    },
];

/// Marks of what was added.
const MARKS: [&str; 4] = [".Ladded", ".loc\t77", ".debug_added", ".file\t77"];

#[test]
fn golden_inputs_with_debug_information_give_the_same_code() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut compared = 0;
    for entry in std::fs::read_dir(directory).expect("the golden files") {
        let file = entry.expect("a golden file").path();
        let text = std::fs::read_to_string(&file).expect("a golden file");
        let input = text.split("#### output\n").next().unwrap_or_default();
        // A label within a repeated piece would be there twice.
        let repeats = [".macro", ".rept", ".irp"];
        if input.len() == text.len() || repeats.iter().any(|name| input.contains(name)) {
            continue;
        }
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        compared += compare(input, &name);
    }
    assert!(compared > 100, "{compared} comparisons");
}

#[test]
fn compiled_programs_with_debug_information_give_the_same_code() {
    for program in [
        "control.c",
        "memory.c",
        "numbers.c",
        "assembly.c",
        "classes.cc",
        "throws.cc",
    ] {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let plain = compile(program, &[level]);
            assert_eq!(compare(&plain, program), EVERYTHING.len());
            // As long as the compiler makes the same of it itself.
            let debugged = compile(program, &[level, "-g"]);
            if code(&plain) == code(&debugged) {
                for options in &EVERYTHING {
                    let (before, after) = (walled(&plain, options), walled(&debugged, options));
                    assert_eq!(
                        code(&before.expect("rewritten")),
                        code(&after.expect("rewritten")),
                        "{program} {level}"
                    );
                }
            }
        }
    }
}

/// Rewrites a text as it is and with additions; how often that could be compared.
fn compare(text: &str, name: &str) -> usize {
    let added = with_debug_information(text);
    let mut compared = 0;
    for options in &EVERYTHING {
        let Some(plain) = walled(text, options) else {
            continue;
        };
        let same = walled(&added, options).map(|text| without_additions(&text));
        assert_eq!(
            same.as_deref(),
            Some(without_additions(&plain).as_str()),
            "{name} {options:?}"
        );
        compared += 1;
    }
    compared
}

fn walled(text: &str, options: &Options) -> Option<String> {
    rewrite(text, "x.s", options)
        .ok()
        .map(|rewritten| rewritten.text)
}

/// A label, a line number and a section of debug information in front of every instruction.
fn with_debug_information(text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let statement = line.trim_start();
        let alone = !statement.starts_with(['.', '#'])
            && !statement.ends_with(':')
            && !statement.contains(';');
        // A prefix may stand in a line of its own.
        let prefix = ["lock", "rep", "repz", "repnz"].contains(&statement);
        if alone
            && !statement.is_empty()
            && !prefix
            && !out.ends_with("rep\n")
            && !out.ends_with("lock\n")
        {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "\t.file\t77 \"added.c\"\n\t.loc\t77 {number} 3\n.Ladded{number}:\n\t.pushsection\t.debug_added,\"\",@progbits\n\
                 \t.quad\t.Ladded{number}\n\t.popsection\t# .debug_added"
            );
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The lines that were not added, without what places code in the source.
fn without_additions(text: &str) -> String {
    let lines = text.lines().filter(|line| {
        !MARKS.iter().any(|mark| line.contains(mark))
            && !line.contains(".popsection")
            && !line.contains(".loc\t")
            && !line.contains(".file\t")
    });
    lines.fold(String::new(), |all, line| all + line + "\n")
}

/// The instructions alone.
fn code(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let code =
        |line: &&str| !line.is_empty() && !line.starts_with(['.', '#']) && !line.ends_with(':');
    lines.filter(code).collect()
}

fn compile(program: &str, options: &[&str]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(program);
    let output = Command::new("gcc")
        .args([
            "-w",
            "-fPIE",
            "-ffixed-r11",
            "-ffixed-r14",
            "-ffixed-r15",
            "-fcf-protection=none",
            "-fno-stack-protector",
            "-S",
            "-o",
            "-",
        ])
        .args(options)
        .arg(source)
        .output()
        .expect("the compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("assembler text")
}
