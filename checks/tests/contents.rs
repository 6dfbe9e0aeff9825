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

/// The site has what the contents name. A link to another page would lead nowhere there.
#[test]
fn every_page_that_is_linked_is_in_the_contents() {
    let docs = root().join("docs");
    let text = fs::read_to_string(docs.join("SUMMARY.md")).expect("there are contents");
    let whole = |from: &Path, target: &str| {
        let file = target.split_once('#').map_or(target, |(file, _)| file);
        let path = from.join(file).canonicalize().ok()?;
        (path.extension()? == "md").then_some(path)
    };
    let listed: BTreeSet<_> = targets(&text)
        .into_iter()
        .filter_map(|target| whole(&docs, target))
        .collect();
    let mut missing = Vec::new();
    for page in &listed {
        let text = fs::read_to_string(page).expect("text");
        let folder = page.parent().expect("a folder");
        for target in targets(&text) {
            if whole(folder, target).is_some_and(|aim| !listed.contains(&aim)) {
                missing.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:#?}");
}

#[test]
fn contents_are_read_as_they_are_written() {
    let text = "[A](a.md)\n\n# Part\n\n- [B](b.md)\n  - [C](c/d.md)\n";
    assert_eq!(targets(text), ["a.md", "b.md", "c/d.md"]);
}
