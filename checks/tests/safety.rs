//! A `SAFETY:` line argues from something that a reader can find: a line that only points somewhere is refused.

use mullion_checks::safety::{is_empty, lines};
use mullion_checks::tree::{files, root};
use std::fs;

/// Where there is Rust that is ours.
const FOLDERS: [&str; 7] = [
    "bench",
    "checks",
    "conformance",
    "crates",
    "examples",
    "fuzz",
    "hosts",
];

#[test]
fn no_safety_line_only_points_elsewhere() {
    let mut found: Vec<String> = Vec::new();
    for folder in FOLDERS {
        for file in files(&root().join(folder), "rs") {
            let text = fs::read_to_string(&file).expect("text");
            for (number, said) in lines(&text) {
                if is_empty(&said) {
                    let file = file.strip_prefix(root()).expect("in the tree");
                    found.push(format!("{}:{number}: {said}", file.display()));
                }
            }
        }
    }
    let count = found.len();
    assert!(
        found.is_empty(),
        "{count} lines say nothing; say what holds, and who has made sure of it: {found:#?}"
    );
}

#[test]
fn an_argument_is_told_from_a_pointer() {
    for empty in [
        "",
        "As above.",
        "as above",
        "By the caller.",
        "by the caller",
        "for the caller, as above.",
        "as in `take`.",
        "As for `send`.",
        "see the struct's text.",
        "the caller's promise is the same.",
        "the trait's promise, handed on.",
        "as the caller has it.",
        "the same as above.",
        "upheld by the caller.",
    ] {
        assert!(is_empty(empty), "{empty:?}");
    }
    for argues in [
        "the word outlives the call.",
        "by the caller, `to` is the top of a suspended stack.",
        "as above, the place is within the mapping.",
        "takes nothing.",
        "see the struct's text: only the worker reaches the cells.",
    ] {
        assert!(!is_empty(argues), "{argues:?}");
    }
}

#[test]
fn a_comment_is_read_to_its_end() {
    let text = "// SAFETY: the word\n// outlives the call.\nunsafe { f() }\nlet x = 1; // SAFETY: as above.\n";
    let expected = [
        (1, "the word outlives the call.".to_owned()),
        (4, "as above.".to_owned()),
    ];
    assert_eq!(lines(text), expected);
}
