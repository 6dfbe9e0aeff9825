//! ARCHITECTURE.md says how large circles of imports may be in each crate. This holds the tree to it.

use mullion_checks::imports::{circles, of};
use mullion_checks::tree::{crates, root, top};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What the table of ARCHITECTURE.md says: the largest circle of each crate that has a row.
fn bounds() -> BTreeMap<PathBuf, usize> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| circles of imports in |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let bound = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let files = cells[2].parse().expect("a number of files");
        (PathBuf::from(cells[1].trim_matches('`')), files)
    };
    rows.map(bound).collect()
}

#[test]
fn no_crate_has_a_larger_circle_of_imports_than_is_said() {
    let bounds = bounds();
    let usual = bounds[Path::new("any other crate")];
    let mut known = BTreeSet::from([PathBuf::from("any other crate")]);
    let mut wrong = Vec::new();
    for folder in crates() {
        let name = folder.strip_prefix(root()).expect("in the tree").to_owned();
        let bound = bounds.get(&name).copied().unwrap_or(usual);
        let circles = circles(&of(&top(&folder)));
        if let Some(largest) = circles.first().filter(|largest| largest.len() > bound) {
            let name = name.display();
            let files = largest.len();
            wrong.push(format!(
                "{name}: {files} files, at most {bound}: {largest:?}"
            ));
        }
        known.insert(name);
    }
    assert!(
        wrong.is_empty(),
        "move what several files need to a file below all of them; `cargo run -p mullion-checks --bin imports CRATE \
         -- --edges` shows who imports whom: {wrong:#?}"
    );
    let gone: Vec<_> = bounds
        .keys()
        .filter(|name| !known.contains(*name))
        .collect();
    assert!(
        gone.is_empty(),
        "rows of crates that are not there: {gone:?}"
    );
}

/// Writes a crate of these files, and reads its imports.
fn imports(name: &str, files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (path, text) in files {
        let path = source.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        fs::write(path, text).expect("can be written");
    }
    let text = |path: &PathBuf| path.to_str().expect("a name").to_owned();
    let names = |all: &BTreeSet<PathBuf>| all.iter().map(text).collect::<Vec<_>>().join(" ");
    let found = of(&source.join("lib.rs"));
    found
        .iter()
        .map(|(file, all)| (text(file), names(all)))
        .collect()
}

#[test]
fn an_import_leads_to_the_file_that_has_the_name() {
    let found = imports(
        "names",
        &[
            (
                "lib.rs",
                "mod a; mod b; mod c;\npub use a::A;\n#[cfg(test)]\nmod tests { use crate::c::C; }\n",
            ),
            // By the name that the top passes on, in a group, under another name.
            (
                "a.rs",
                "use crate::{b::B as Other, c};\npub struct A(Other);\nfn f() { c::inner::g() }\n",
            ),
            ("b/mod.rs", "mod deep;\npub use deep::B;\n"),
            (
                "b/deep.rs",
                "pub struct B;\nimpl B { fn f() -> crate::A { todo!() } }\n",
            ),
            (
                "c.rs",
                "pub mod inner;\n/// [`crate::A`]\npub(in crate::c) struct C;\n",
            ),
            (
                "c/inner.rs",
                "pub fn g() {}\nmod here { use super::super::C; }\n#[cfg(test)]\nuse crate::a::A;\n",
            ),
        ],
    );
    let expected = [
        ("a.rs", "b/deep.rs c/inner.rs c.rs"),
        ("b/deep.rs", "a.rs"),
        ("b/mod.rs", "b/deep.rs"),
        ("c.rs", ""),
        ("c/inner.rs", "c.rs"),
        ("lib.rs", "a.rs"),
    ];
    let expected = expected.map(|(file, all)| (file.to_owned(), all.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn a_circle_is_all_files_that_reach_each_other() {
    let import = |from: &str, to: &[&str]| (from.into(), to.iter().map(Into::into).collect());
    let imports = BTreeMap::from([
        import("a", &["b", "x"]),
        import("b", &["c"]),
        import("c", &["a"]),
        import("x", &["y"]),
        import("y", &["x", "z"]),
        import("z", &[]),
    ]);
    let found = circles(&imports);
    let expected: [Vec<PathBuf>; 2] = [
        ["a", "b", "c"].map(Into::into).to_vec(),
        ["x", "y"].map(Into::into).to_vec(),
    ];
    assert_eq!(found, expected);
}

/// The layers of a table of ARCHITECTURE.md whose head begins so: the number of each file's line.
fn layers(head: &str) -> BTreeMap<PathBuf, usize> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {head} | files |")));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let mut layers = BTreeMap::new();
    for (number, row) in rows.enumerate() {
        for name in row.split('`').skip(1).step_by(2) {
            layers.insert(PathBuf::from(format!("{name}.rs")), number);
        }
    }
    layers
}

/// Holds a crate to such a table.
fn is_layered(folder: &str, head: &str) {
    let mut imports = of(&root().join(folder).join("src/lib.rs"));
    imports.remove(Path::new("lib.rs"));
    let layers = layers(head);
    let files: BTreeSet<_> = imports.keys().collect();
    assert_eq!(
        files,
        layers.keys().collect(),
        "the files of {folder}, and ARCHITECTURE.md's layers"
    );
    let upwards: Vec<_> = imports
        .iter()
        .flat_map(|(file, all)| all.iter().map(move |other| (file, other)))
        .filter(|(file, other)| layers[*other] > layers[*file])
        .collect();
    assert!(
        upwards.is_empty(),
        "{folder}, against ARCHITECTURE.md: {upwards:?}"
    );
}

#[test]
fn the_run_time_s_files_import_no_file_of_a_layer_above_them() {
    is_layered("crates/window/runtime", "layer");
}

#[test]
fn the_files_of_the_core_of_processes_import_no_file_of_a_layer_above_them() {
    is_layered("crates/language/sip-core", "layer of sip-core");
}
