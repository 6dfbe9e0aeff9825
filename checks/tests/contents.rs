//! docs/SUMMARY.md, from which the site of `make docs` is made, has every page once.

use mullion_checks::tree::{files, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The targets of a list of contents, in its order.
fn targets(text: &str) -> Vec<&str> {
    let pieces = text.split("](").skip(1);
    pieces
        .filter_map(|piece| Some(piece.split_once(')')?.0))
        .collect()
}

#[test]
fn every_page_is_in_the_contents_once() {
    let docs = root().join("docs");
    let text = fs::read_to_string(docs.join("SUMMARY.md")).expect("there are contents");
    let listed = targets(&text);
    let once: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let name = |page: &Path| {
        let name = page.strip_prefix(&docs).expect("a page of docs");
        name.to_str().expect("a name").to_owned()
    };
    let missing: Vec<String> = files(&docs, "md")
        .iter()
        .map(|page| name(page))
        .filter(|name| name != "SUMMARY.md" && !once.contains(&**name))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:#?}");
}

#[test]
fn contents_are_read_as_they_are_written() {
    let text = "[A](a.md)\n\n# Part\n\n- [B](b.md)\n  - [C](c/d.md)\n";
    assert_eq!(targets(text), ["a.md", "b.md", "c/d.md"]);
}
