//! The folders of the crate use each other as the table at the head of `src/lib.rs` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Each room of the table, and the rooms that it may use.
fn rooms() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let table = text.lines().skip_while(|line| !line.contains("| room |"));
    let rows = table.skip(2).take_while(|line| line.starts_with("//! |"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let room = cells[1].trim_matches(['[', ']', '`']).to_owned();
        let uses = cells[3].split(',').map(|room| room.trim().to_owned());
        (room, uses.filter(|room| room != "nothing").collect())
    })
    .collect()
}

/// The room that a name at the crate's root leads to.
fn room_of(name: &str, rooms: &BTreeMap<String, Vec<String>>) -> String {
    let is_module = |room: &String| {
        let place = source().join(room).join(name);
        place.is_dir() || place.with_extension("rs").exists()
    };
    match rooms.contains_key(name) {
        true => name.to_owned(),
        false => rooms
            .keys()
            .find(|room| is_module(room))
            .unwrap_or_else(|| panic!("{name}"))
            .clone(),
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn a_room_uses_what_the_table_says_and_nothing_else() {
    let rooms = rooms();
    assert!(rooms.len() >= 4, "{rooms:?}");
    let mut seen = 0;
    for (room, uses) in &rooms {
        let mut found = Vec::new();
        files(&source().join(room), &mut found);
        for file in found {
            let text = fs::read_to_string(&file).unwrap();
            let names = text.split("crate::").skip(1);
            for name in names.map(|rest| {
                rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap()
            }) {
                let other = room_of(name, &rooms);
                seen += 1;
                assert!(
                    other == *room || uses.contains(&other),
                    "{}: crate::{name} is of {other}, which {room} does not use",
                    file.display()
                );
            }
        }
    }
    assert!(seen > 30, "only {seen} uses were found");
}

#[test]
fn every_file_is_in_a_room() {
    let rooms = rooms();
    for entry in fs::read_dir(source()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "lib.rs" || rooms.contains_key(&name), "{name}");
    }
}
