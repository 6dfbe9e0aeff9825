//! No file of Rust is longer than 800 lines, but for those that are listed here until somebody divides them.

use mullion_checks::tree::{files, root};
use std::fs;

const LINES: usize = 800;

/// Files that are longer. A new one does not belong here: divide it.
const LONGER: [&str; 5] = [
    "crates/toolchain/driver/src/arguments.rs",
    "crates/toolchain/driver/tests/attacks/table.rs",
    "crates/toolchain/rewriter/src/emit/access.rs",
    "crates/word/verifier/src/code.rs",
    "crates/word/verifier/tests/slow/mod.rs",
];

#[test]
fn no_other_file_is_longer() {
    let mut found = Vec::new();
    for folder in [
        "bench",
        "checks",
        "conformance",
        "crates",
        "examples",
        "hosts",
    ] {
        for file in files(&root().join(folder), "rs") {
            let text = fs::read_to_string(&file).expect("text");
            let lines = text.lines().count();
            let name = file.strip_prefix(root()).expect("in the tree");
            let name = name.to_str().expect("a name");
            if lines > LINES && !LONGER.contains(&name) {
                found.push(format!("{name}: {lines} lines"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "longer than {LINES} lines; divide them: {found:#?}"
    );
}
