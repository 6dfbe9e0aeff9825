//! The page of trusted lines is near the truth.

use mullion_checks::tree::{crates, files, root, top};
use mullion_checks::trusted::{BESIDE, counted};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[test]
fn the_page_of_trusted_lines_is_near_the_truth() {
    let page = fs::read_to_string(root().join("docs/trusted-lines.md")).expect("the page is there");
    for (trusted, there) in counted() {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", trusted.folder)));
        let cell = row.and_then(|row| row.split('|').nth(2));
        let said: usize = cell
            .and_then(|cell| cell.trim().parse().ok())
            .unwrap_or_default();
        assert!(
            said.abs_diff(there) <= there / 20,
            "{} has {there} lines, and the page says {said}; make it anew: cargo run -p mullion-checks --bin trusted > \
             docs/trusted-lines.md",
            trusted.folder
        );
    }
}

#[test]
fn it_has_the_crates_that_architecture_calls_trusted() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let line = architecture
        .lines()
        .find_map(|line| line.strip_prefix("Trusted: "));
    let (names, _) = line
        .and_then(|line| line.split_once('.'))
        .expect("a sentence that begins with \"Trusted:\"");
    let names: BTreeSet<&str> = names
        .split(", ")
        .map(|name| name.trim_matches('`'))
        .collect();
    let counted = counted();
    let folders = counted
        .iter()
        .filter_map(|(trusted, _)| trusted.folder.rsplit('/').next());
    assert_eq!(names, folders.collect());
}

#[test]
fn what_stands_beside_is_as_its_reason_says() {
    for beside in BESIDE {
        let folder = root().join(beside.folder);
        let text = fs::read_to_string(top(&folder)).expect("text");
        let says = |attribute: &str| text.lines().any(|line| line == attribute);
        assert!(says("#![forbid(unsafe_code)]"), "{}", beside.folder);
        if beside.bare {
            assert!(says("#![no_std]"), "{}", beside.folder);
            for file in files(&folder.join("src"), "rs") {
                let text = fs::read_to_string(&file).expect("text");
                let brings = text.contains("extern crate std") || text.contains("std::");
                assert!(!brings, "{} names the standard library", file.display());
            }
        }
        let Some(allowed) = beside.built_from else {
            continue;
        };
        for name in built_from(&folder).1 {
            let may = allowed.contains(&name.as_str());
            assert!(may, "{} is built from {name}, too", beside.folder);
        }
    }
}

/// The packages that a crate is built from.
fn built_from(folder: &Path) -> (String, BTreeSet<String>) {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("text");
    let manifest: toml::Table = manifest.parse().expect("cargo reads it too");
    let name = manifest["package"]["name"].as_str().expect("a name");
    let kinds = ["dependencies", "build-dependencies"];
    let tables = kinds
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table());
    let uses = tables.flat_map(|table| table.keys().cloned()).collect();
    (name.to_owned(), uses)
}

#[test]
fn no_trusted_crate_reads_debug_information() {
    let all: BTreeMap<_, _> = crates().iter().map(|folder| built_from(folder)).collect();
    for (trusted, _) in counted() {
        let (name, _) = built_from(&root().join(trusted.folder));
        let (mut seen, mut pending) = (BTreeSet::new(), vec![name]);
        while let Some(next) = pending.pop() {
            let reads = ["mullion-symbols", "gimli", "addr2line"].contains(&next.as_str());
            assert!(!reads, "{} is built from {next}", trusted.folder);
            if seen.insert(next.clone()) {
                pending.extend(all.get(&next).into_iter().flatten().cloned());
            }
        }
    }
}

/// Code behind the feature `check` is counted as tests are. So only tests may switch it on.
#[test]
fn only_tests_have_the_feature_check() {
    let mut manifests = vec![root().join("Cargo.toml")];
    for folder in [
        "crates",
        "hosts",
        "bench",
        "examples",
        "recipes",
        "conformance",
    ] {
        manifests.extend(files(&root().join(folder), "toml"));
    }
    manifests.retain(|path| path.ends_with("Cargo.toml"));
    let mut declared = 0;
    for path in manifests {
        let text = fs::read_to_string(&path).expect("text");
        let mut manifest: toml::Table = text.parse().expect("cargo reads it too");
        manifest.remove("dev-dependencies");
        if let Some(features) = manifest
            .get_mut("features")
            .and_then(toml::Value::as_table_mut)
        {
            declared += usize::from(features.remove("check").is_some());
        }
        let left = manifest.to_string();
        let asks = ["\"check\"", "/check\""]
            .iter()
            .any(|name| left.contains(name));
        assert!(!asks, "{} has the feature `check`", path.display());
    }
    assert_eq!(declared, 1, "it is the supervisor's");
}

/// What signs has a secret key. The crates that decide have none, and so lose none.
#[test]
fn no_trusted_crate_has_a_secret_key() {
    for (trusted, _) in counted() {
        for file in files(&root().join(trusted.folder).join("src"), "rs") {
            let text = fs::read_to_string(&file).expect("text");
            let library = text.split("#[cfg(test)]").next().unwrap_or_default();
            for name in ["SigningKey", "SecretKey"] {
                assert!(!library.contains(name), "{} has a {name}", file.display());
            }
        }
    }
}
