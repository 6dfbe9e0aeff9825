//! Programs that count their steps, and are limited to a number of them.

use crate::{expect, mullion, text};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

static DIRECTORY: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for protection in ["write-call", "read-write-call", "trap"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/steps.c");
        let mut build = mullion(&["cc", "--mullion-count", "-g", "-O2"]);
        build.arg(format!("--mullion-protection={protection}"));
        let image = directory.path().join(format!("{protection}.mx"));
        let output = build.arg(source).arg("-o").arg(image).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    directory
});

fn image(protection: &str) -> PathBuf {
    DIRECTORY.path().join(format!("{protection}.mx"))
}

fn limited(steps: u64, protection: &str, word: &str) -> Output {
    let mut command = mullion(&["run", "--max-steps", &steps.to_string()]);
    let output = command.arg(image(protection)).arg(word).output();
    output.expect("the command starts")
}

/// Where a report says that the program was, and its registers, but for where the window was.
fn place(output: &Output) -> String {
    let report = text(&output.stderr);
    let line = report.lines().find(|line| line.contains("instruction  "));
    line.unwrap_or_else(|| panic!("no place: {report}"))
        .to_owned()
}

#[test]
fn loops_of_every_kind_end_by_their_steps() {
    let words = [
        "loop",
        "goto",
        "calls",
        "pointers",
        "switch",
        "recursion",
        "setjmp",
        "library",
    ];
    for protection in ["write-call", "read-write-call", "trap"] {
        for word in words {
            let output = limited(100_000, protection, word);
            expect(&output, 124, "");
            let report = text(&output.stderr);
            for part in ["limit of 100000 steps exceeded", "hint: see --max-steps"] {
                assert!(
                    report.contains(part),
                    "{word}: {part:?} is missing:\n{report}"
                );
            }
        }
    }
}

/// With as many steps as it takes it ends by itself; with one less it does not.
#[test]
fn the_limit_is_exact() {
    let ends = |steps| limited(steps, "read-write-call", "ends").status.code() == Some(7);
    let (mut too_few, mut enough) = (0u64, 1 << 20);
    assert!(ends(enough) && !ends(too_few));
    while enough - too_few > 1 {
        let middle = (too_few + enough) / 2;
        *if ends(middle) {
            &mut enough
        } else {
            &mut too_few
        } = middle;
    }
    for _ in 0..10 {
        assert!(ends(enough) && !ends(too_few), "{enough}");
    }
    assert!(enough > 1000, "{enough} are few for a thousand turns");
}

/// The same steps, the same instruction, a hundred times; other numbers of steps, other places.
#[test]
fn the_same_input_ends_at_the_same_instruction() {
    let first = limited(54_321, "read-write-call", "random");
    let expected = (place(&first), first.stdout);
    for _ in 0..99 {
        let again = limited(54_321, "read-write-call", "random");
        assert_eq!((place(&again), again.stdout), expected);
    }
    let mut places: Vec<String> = (0..20)
        .map(|more| place(&limited(54_321 + more, "read-write-call", "random")))
        .collect();
    places.sort();
    places.dedup();
    assert!(places.len() > 1, "{places:?}");
}

#[test]
fn an_image_that_counts_nothing_is_not_limited_silently() {
    let output = mullion(&["run", "--max-steps", "5"])
        .arg(crate::image("faults"))
        .arg("spin")
        .output();
    let output = output.expect("the command starts");
    assert_eq!(output.status.code(), Some(126));
    assert!(text(&output.stderr).contains("--mullion-count"));
}
