//! The rows of `httpd.txt` against the headers: each pointer is looked at as its type needs, or `reads.txt` says why it is not.

use crate::Place;
use crate::headers::{Headers, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// A row with its words, up to its result.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<&'static str>,
    is_text: bool,
}

impl Row {
    /// Whether a function of ours stands for it, or it is another module's.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.words.first(), Some(&("!" | "!v" | "^")))
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let lines = include_str!("../../src/httpd.txt").lines();
    let lines = lines.filter(|line| !line.starts_with(['#', '[']));
    let rows = lines.filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        Some(Row {
            name: words.next()?,
            words: words.take_while(|word| *word != "=").collect(),
            is_text: line.ends_with("= str"),
        })
    });
    rows.collect()
}

/// Parameters that are not looked at, or whose pointers are not, each with its reason. A function without a place is one that no
/// header has.
fn reasons() -> BTreeMap<(&'static str, Option<usize>), &'static str> {
    let lines = include_str!("reads.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    let all = lines.map(|line| {
        let (head, reason) = line.split_once(": ").expect("a reason");
        assert!(reason.len() > 10, "{line}");
        let (name, place) = head.split_once(' ').expect("a place");
        let place = (place != "-").then(|| place.parse().expect("a number"));
        ((name, place), reason)
    });
    all.collect()
}

/// Whether a word has the wall look at no more than that there is memory.
fn is_memory(word: &str) -> bool {
    let behind = |sign: char| {
        word.strip_prefix(sign).is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit() || "*@iu<-!".contains(c))
        })
    };
    behind('\'') || behind('w')
}

/// So many bytes, if a word says how many.
fn bytes(word: &str) -> Option<u64> {
    let rest = word.strip_prefix(['w', '\''])?;
    let rest = rest.strip_prefix('!').unwrap_or(rest);
    rest.trim_end_matches('?').parse().ok()
}

/// Bytes that a function writes in a place of the wall's.
fn out(word: &str) -> Option<u64> {
    match word.strip_prefix('w') {
        Some(rest) => rest.trim_end_matches('?').parse().ok(),
        None => word.starts_with('>').then_some(8),
    }
}

/// Whether all such places of a row have room (`outs.rs`), and each count that bytes are read by lies in one. A longer one has room
/// for itself.
fn fits(words: &[&str]) -> bool {
    const PLACES: usize = 6;
    const MOST: u64 = 256;
    const ROOM: u64 = 48 * 8;
    let all = || words.iter().filter_map(|word| out(word));
    let outs = || all().filter(|bytes| *bytes <= MOST);
    let sum: u64 = outs().map(|bytes| bytes.next_multiple_of(8)).sum();
    let mut counts = words.iter().filter_map(|word| word.strip_prefix("'@"));
    let is_out = |at: &str| {
        let word = at.parse().ok().and_then(|at: usize| words.get(at));
        word.is_some_and(|word| out(word) == Some(8))
    };
    outs().count() <= PLACES && sum <= ROOM && counts.all(is_out)
}

pub(crate) fn each_structure_is_looked_at(place: &Place) {
    let headers = Headers::read(place);
    let reasons = reasons();
    let (mut used, mut faults, mut sizes) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    let mut compared = 0;
    for row in rows() {
        let name = row.name;
        let Some(shapes) = headers.function(name) else {
            // Libraries that need not be installed.
            match reasons.contains_key(&(name, None)) || name.starts_with("ldap_") {
                true => drop(used.insert((name, None))),
                false => faults.push(format!("{name}: no header has it")),
            }
            continue;
        };
        if row.is_own() {
            continue;
        }
        compared += 1;
        if !fits(&row.words) {
            faults.push(format!("{name}: no room, or no count"));
        }
        // A datum that is passed itself is two words.
        let words: usize = shapes.iter().map(Shape::words).sum();
        if words != row.words.len() {
            faults.push(format!(
                "{name}: {words} words, and not {}",
                row.words.len()
            ));
            continue;
        }
        let mut next = 0;
        for (at, shape) in shapes.iter().enumerate() {
            let word = row.words[next];
            next += shape.words();
            let is_string = *shape == Shape::Bytes { is_const: true };
            let text = headers.text(name, at);
            // Bytes of a length that the call says are read once.
            if row.is_text && is_string && word == "." {
                faults.push(format!("{name} {at} `{text}` may be read twice"));
            }
            // Another thread of the module may change a string, or give its memory back, while the function reads.
            if matches!(word, "'" | "'?" | "'[" | "'[?" | "'+" | "'+?") {
                faults.push(format!("{name} {at} `{text}` is read where it lies"));
            }
            if let Shape::Plain { name, .. } | Shape::Structure { name, .. } = shape
                && let Some(bytes) = bytes(word)
            {
                sizes.insert((name.clone(), bytes));
            }
            let is_seen = match shape {
                Shape::Number => word == "." || word.starts_with('#'),
                Shape::Pointer | Shape::Structure { .. } | Shape::List => {
                    word != "." && !is_memory(word)
                }
                Shape::Bytes { .. } | Shape::Plain { .. } | Shape::Function | Shape::Datum => {
                    word != "."
                }
            };
            if is_seen {
                continue;
            }
            match reasons.contains_key(&(name, Some(at))) {
                true => drop(used.insert((name, Some(at)))),
                false => faults.push(format!("{name} {at}: `{text}` is `{word}`")),
            }
        }
    }
    assert!(faults.is_empty(), "not looked at:\n{}", faults.join("\n"));
    assert!(compared > 500, "{compared} rows were compared");
    let stale = reasons.keys().filter(|key| !used.contains(*key));
    let stale: Vec<_> = stale.collect();
    assert!(stale.is_empty(), "looked at by now: {stale:?}");
    structures_are_as_long_as_rows_say(place, &sizes);
}

fn structures_are_as_long_as_rows_say(place: &Place, sizes: &BTreeSet<(String, u64)>) {
    let mut source = Headers::includes();
    for (name, bytes) in sizes {
        // Places of several numbers are of any length.
        let check = format!(
            "sizeof({name}) == {bytes} || {bytes} % sizeof({name}) == 0 && sizeof({name}) < 9"
        );
        writeln!(
            source,
            "_Static_assert({check}, \"{name} is not {bytes} bytes\");"
        )
        .expect("memory");
    }
    let file = place.scratch.path().join("sizes.c");
    fs::write(&file, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-fsyntax-only", "-w"]).args(Headers::options());
    let output = gcc.arg(&file).output().expect("gcc starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(sizes.len() > 10, "{sizes:?}");
}
