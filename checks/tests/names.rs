//! docs/names.md has each name that public types of several crates share, and what it means.

use mullion_checks::names::{defined, given_out, shared, twice};
use mullion_checks::tree::{crates, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rows of the page: names, and the crates that share each.
fn listed() -> BTreeMap<String, Vec<String>> {
    let page = fs::read_to_string(root().join("docs/names.md")).expect("the page is there");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.len(), 3, "a name, its crates, its meaning: {row}");
        let has_one = !cells[2].contains("Two meanings") && !cells[2].contains("Not looked at");
        assert!(has_one, "one name, one meaning; rename one of them: {row}");
        let in_marks = |cell: &str| -> Vec<String> {
            let marked = cell.split('`').skip(1).step_by(2);
            marked.map(str::to_owned).collect()
        };
        (in_marks(cells[0])[0].clone(), in_marks(cells[1]))
    };
    rows.map(row).collect()
}

#[test]
fn a_name_that_several_crates_share_is_listed_with_its_meaning() {
    let (shared, mut listed) = (shared(), listed());
    let mut wrong = Vec::new();
    for (name, crates) in shared {
        let listed = listed.remove(&name).unwrap_or_default();
        if listed != crates {
            let crates = crates.join(", ");
            wrong.push(format!("{name} is shared by {crates}"));
        }
    }
    wrong.extend(listed.keys().map(|name| format!("{name} is not shared")));
    assert!(
        wrong.is_empty(),
        "give the newer type a name of its own, or correct docs/names.md if it means the same: {wrong:#?}"
    );
}

#[test]
fn a_name_means_one_type_within_a_crate() {
    let twice = twice();
    assert!(
        twice.is_empty(),
        "give the newer type a name of its own: {twice:#?}"
    );
}

/// Cargo writes examples of all crates into one folder, by their names alone.
#[test]
fn an_example_has_a_name_of_its_own() {
    let mut known: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for folder in crates() {
        for entry in fs::read_dir(folder.join("examples")).into_iter().flatten() {
            let path = entry.expect("readable").path();
            let name = path.file_stem().expect("a name").to_owned();
            known.entry(name).or_default().push(path);
        }
    }
    assert!(known.len() > 5, "examples are found: {known:?}");
    known.retain(|_, paths| paths.len() > 1);
    assert!(known.is_empty(), "rename one of each: {known:#?}");
}

#[test]
fn what_a_crate_gives_out_is_found() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gives");
    let files = [
        (
            "lib.rs",
            "mod a; pub mod b; mod c { pub struct Inner; }\npub use a::{A, Other as Another};\npub use std::io::Error;\n\
             pub(crate) struct Own;\n#[cfg(test)]\nmod tests { pub struct OfTests; }\nstruct Private;\npub enum E { V }\n",
        ),
        (
            "a.rs",
            "pub struct A;\npub struct Other;\npub struct NotGivenOut;\n",
        ),
        (
            "b.rs",
            "mod deep;\npub use deep::*;\npub trait T {}\npub type Name = u8;\n",
        ),
        ("b/deep.rs", "pub union Deep { a: u8 }\npub struct A;\n"),
    ];
    for (path, text) in files {
        let path = source.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        fs::write(path, text).expect("can be written");
    }
    let found = given_out(&source.join("lib.rs"));
    let expected = ["A", "Another", "Deep", "E", "Name", "T"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
    let two = defined(&source.join("lib.rs"));
    let several = two.iter().filter(|(_, places)| places.len() > 1);
    let places = BTreeSet::from(["a", "b::deep"].map(str::to_owned));
    assert_eq!(several.collect::<Vec<_>>(), [(&"A".to_owned(), &places)]);
}
