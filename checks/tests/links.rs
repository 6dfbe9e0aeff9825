//! Every page's links into the tree lead somewhere.

use mullion_checks::tree::{files, root};
use std::fs;

/// The targets of `[text](target)` outside of code.
fn targets(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for piece in prose.split("](").skip(1) {
            found.extend(piece.split_once(')').map(|(target, _)| target.to_owned()));
        }
    }
    found
}

/// The name that a heading is linked by: lower case, with hyphens for spaces and nothing else.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(files(&root().join("crates"), "md"));
    pages.extend(files(&root().join("examples"), "md"));
    pages.extend(files(&root().join("hosts"), "md"));
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ] {
        pages.push(root().join(page));
    }
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in &pages {
        let text = fs::read_to_string(page).expect("text");
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, part) = target.split_once('#').unwrap_or((&target, ""));
            let aim = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            let there = match (aim.exists(), part) {
                (there, "") => there,
                (true, part) => fs::read_to_string(&aim)
                    .unwrap_or_default()
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line) == part),
                (false, _) => false,
            };
            if !there {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 50, "only {links} links were found");
    assert!(wrong.is_empty(), "links that lead nowhere: {wrong:#?}");
}

#[test]
fn links_are_found_as_they_are_written() {
    let text = "a [b](c.md), `[d](e.md)` and [f](g.md#h)\n```\n[i](j.md)\n```\n";
    assert_eq!(targets(text), ["c.md", "g.md#h"]);
    assert_eq!(anchor("## What it costs, here"), "what-it-costs-here");
}
