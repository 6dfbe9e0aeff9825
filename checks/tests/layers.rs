//! ARCHITECTURE.md says which crates there are, which room each is in, which rooms it may use, and how much
//! `unsafe` it has. This holds the tree to it.

use mullion_checks::tree::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The cells of the table of ARCHITECTURE.md whose head begins with `first`, without code marks.
fn table(first: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        let cells = line.split(" | ");
        cells
            .map(|cell| cell.replace('`', "").trim().to_owned())
            .collect()
    };
    let mut lines = text.lines();
    lines
        .find(|line| line.starts_with(&format!("| {first} |")))
        .unwrap_or_else(|| panic!("ARCHITECTURE.md has no table of {first}s"));
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect()
}

fn words(cell: &str) -> Vec<String> {
    let words = cell.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty() && *word != "nothing")
        .map(str::to_owned)
        .collect()
}

/// A package under `crates/`.
struct Package {
    /// The folder of `crates/` that it is in.
    room: String,
    name: String,
    /// The packages that it is built from.
    uses: BTreeSet<String>,
}

/// The packages by their folders, without `crates/`.
fn packages() -> BTreeMap<String, Package> {
    let crates = root().join("crates");
    let mut found = BTreeMap::new();
    for manifest in files(&crates, "toml") {
        let folder = manifest.parent().expect("a folder");
        let folder = folder.strip_prefix(&crates).expect("under it");
        // A model in a crate's folder is a package of its own, and no part of the product.
        if !manifest.ends_with("Cargo.toml") || folder.ends_with("model") {
            continue;
        }
        let text = fs::read_to_string(&manifest).expect("text");
        let manifest: toml::Table = text.parse().expect("cargo reads it too");
        let Some(package) = manifest.get("package") else {
            continue;
        };
        let name = package["name"].as_str().expect("a name").to_owned();
        let uses = ["dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|kind| manifest.get(kind)?.as_table())
            .flat_map(|table| table.iter());
        let package = |(key, value): (&String, &toml::Value)| {
            let renamed = value.get("package").and_then(|name| name.as_str());
            renamed.unwrap_or(key).to_owned()
        };
        let uses = uses.map(package).collect();
        let folder = folder.to_str().expect("a name").to_owned();
        let room = folder.split('/').next().expect("a room").to_owned();
        found.insert(folder, Package { room, name, uses });
    }
    found
}

#[test]
fn every_crate_is_in_one_room_and_uses_only_what_its_room_may() {
    let packages = packages();
    let mut in_rooms = BTreeSet::new();
    let mut may_use = BTreeMap::new();
    for row in table("room") {
        let [room, _, crates, uses] = &row[..] else {
            panic!("a room's row has four cells: {row:?}");
        };
        in_rooms.extend(words(crates).into_iter().map(|name| match &name == room {
            true => name,
            false => format!("{room}/{name}"),
        }));
        let mut uses: BTreeSet<String> = words(uses).into_iter().collect();
        // A room is written after those it uses, so circles of rooms cannot be written down.
        for used in &uses {
            assert!(
                may_use.contains_key(used),
                "{room} uses {used}, which stands below it or nowhere"
            );
        }
        uses.insert(room.clone());
        may_use.insert(room.clone(), uses);
    }
    let folders: BTreeSet<String> = packages.keys().cloned().collect();
    assert_eq!(
        folders, in_rooms,
        "crates/ and the rooms of ARCHITECTURE.md"
    );
    let listed: BTreeSet<String> = table("crate")
        .into_iter()
        .filter_map(|row| row[0].strip_prefix("crates/").map(str::to_owned))
        .collect();
    assert_eq!(folders, listed, "crates/ and the crates of ARCHITECTURE.md");
    let room_of: BTreeMap<&String, &String> = packages
        .values()
        .map(|package| (&package.name, &package.room))
        .collect();
    let mut wrong = Vec::new();
    for (folder, package) in &packages {
        for used in &package.uses {
            if let Some(room) = room_of.get(used)
                && !may_use[&package.room].contains(*room)
            {
                wrong.push(format!("{folder} uses {used} ({room})"));
            }
        }
    }
    assert!(wrong.is_empty(), "against ARCHITECTURE.md: {wrong:#?}");
}

/// Crates that a kernel can have: they are built without the standard library.
const WITHOUT_STD: [&str; 3] = ["policy/terms", "policy/refusal", "policy/supervisor"];

#[test]
fn the_supervisor_is_built_without_the_standard_library() {
    let packages = packages();
    for folder in WITHOUT_STD {
        // Then nothing but `extern crate std` could bring it back, or a crate that it is built from.
        for used in &packages[folder].uses {
            let mut bare = WITHOUT_STD.iter().map(|bare| &packages[*bare].name);
            assert!(
                bare.any(|bare| bare == used),
                "{folder} is built from {used}"
            );
        }
        let source = root().join("crates").join(folder).join("src");
        let top = fs::read_to_string(source.join("lib.rs")).expect("text");
        assert!(
            top.lines().any(|line| line == "#![no_std]"),
            "{folder}/src/lib.rs says nothing of `#![no_std]`, or not always"
        );
        for file in files(&source, "rs") {
            let text = fs::read_to_string(&file).expect("text");
            let brings = text.lines().any(|line| {
                let code = line.split("//").next().unwrap_or_default();
                code.contains("extern crate std")
            });
            assert!(!brings, "{} brings the standard library", file.display());
        }
    }
}

#[test]
fn each_crate_has_as_much_unsafe_as_is_said() {
    let mut wrong = Vec::new();
    for row in table("crate") {
        let [folder, _, said] = &row[..] else {
            panic!("a crate's row has three cells: {row:?}");
        };
        if !folder.starts_with("crates/") {
            continue;
        }
        let source = root().join(folder).join("src");
        let there: usize = files(&source, "rs")
            .iter()
            .filter(|file| !is_test(file))
            .map(|file| unsafe_pieces(&fs::read_to_string(file).expect("text")))
            .sum();
        if said.parse() != Ok(there) {
            wrong.push(format!(
                "{folder}: {there}, where ARCHITECTURE.md says {said}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "blocks and implementations that are `unsafe` have come or gone; write the new number, and why, if they \
         belong there: {wrong:#?}"
    );
}

/// Whether a file holds tests alone, by its name or its folder's.
fn is_test(file: &Path) -> bool {
    let is_one = |name: &str| name == "tests" || name.ends_with("_tests");
    file.with_extension("")
        .iter()
        .any(|part| is_one(&part.to_string_lossy()))
}

/// How many blocks and implementations are `unsafe`, in comments and strings and behind `mod tests` none.
fn unsafe_pieces(text: &str) -> usize {
    let text = match text.find("#[cfg(test)]\nmod tests {") {
        Some(tests) => &text[..tests],
        None => text,
    };
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .map(|line| format!("{line} "))
        .collect();
    let begins = |rest: &str| {
        let rest = rest.trim_start();
        rest.starts_with('{') || rest.starts_with("impl")
    };
    let mut pieces = code.split("unsafe");
    let mut before = pieces.next().unwrap_or_default();
    let mut count = 0;
    for after in pieces {
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        count += usize::from(is_word && begins(after));
        before = after;
    }
    count
}

#[test]
fn unsafe_is_counted_as_it_is_written() {
    let text = "unsafe { a() }\n// unsafe { b() }\nunsafe impl Send for X {}\nnot_unsafe { }\nunsafe fn f() {}\n\
                #[unsafe(no_mangle)]\nunsafe\n{ c() }\n#[cfg(test)]\nmod tests {\nunsafe { d() }\n}\n";
    assert_eq!(unsafe_pieces(text), 3);
}
