//! Output whose reader has gone must not end a host, nor a command.

use mullion_checks::lines::code;
use mullion_checks::tree::{crates, root};

/// `println!` and its kin panic where a pipe is closed or a disk is full. So crates write by `writeln!`, and decide.
#[test]
fn no_crate_prints_by_what_panics() {
    let mut found = Vec::new();
    for source in crates() {
        for (path, file) in code(&source.join("src")) {
            let text = std::fs::read_to_string(&path).expect("text");
            for (number, line) in (1..).zip(text.lines()) {
                let prints = ["print!(", "println!(", "dbg!("];
                let prints = prints.iter().any(|name| {
                    let mut places = line.match_indices(name);
                    // `eprintln!` ends in the same letters.
                    places.any(|(at, _)| {
                        !line[..at]
                            .trim_end_matches('e')
                            .ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    })
                });
                let is_comment = line.trim_start().starts_with("//");
                if prints && !is_comment && file.lines.contains(&number) {
                    let path = path.strip_prefix(root()).expect("in the tree");
                    found.push(format!("{}:{number}", path.display()));
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
