//! The rows of `httpd.txt` against httpd's and APR's own headers: each structure that a function takes is looked at, or the function
//! only reads it (`reads.txt`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// This function gives a string back, and does not read it.
const UNREAD: &str = "ap_set_deprecated";

const FOLDERS: [&str; 2] = ["/usr/include/apache2", "/usr/include/apr-1.0"];

/// Without comments and lines of the preprocessor.
fn plain(header: &str) -> String {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, behind)) = rest.split_once("/*") {
        text.push_str(before);
        rest = behind.split_once("*/").map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join(" ")
}

/// Parameters of a list that begins behind its bracket, and how long it is.
fn parameters(text: &str) -> Option<(Vec<String>, usize)> {
    let (mut depth, mut all, mut now) = (0, Vec::new(), String::new());
    for (at, letter) in text.char_indices() {
        match letter {
            ')' if depth == 0 => {
                all.push(now.trim().to_owned());
                return Some((all, at));
            }
            ',' if depth == 0 => all.push(std::mem::take(&mut now).trim().to_owned()),
            ';' | '{' | '}' => return None,
            letter => {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                now.push(letter);
            }
        }
    }
    None
}

/// Functions of the headers with their parameters.
fn prototypes() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let folders = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("headers"));
    for file in folders.flatten() {
        let Ok(text) = fs::read_to_string(file.path()) else {
            continue;
        };
        let text = plain(&text);
        for (at, _) in text.match_indices('(') {
            let head = text[..at].trim_end();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let name = &head[head
                .rfind(|letter| !is_part(letter))
                .map_or(0, |end| end + 1)..];
            let Some((all, length)) = parameters(&text[at + 1..]) else {
                continue;
            };
            let behind = text[at + 1 + length + 1..].trim_start();
            let ends = [";", "AP", "__"];
            if name.starts_with("ap") && ends.iter().any(|end| behind.starts_with(end)) {
                found.entry(name.to_owned()).or_insert(all);
            } else if name.is_empty() && behind.starts_with(')') {
                // `AP_DECLARE_HOOK(int,name,(parameters))` is a function, too.
                let hook = head.trim_end_matches(',').rsplit([',', '(']).next();
                let name = format!("ap_run_{}", hook.unwrap_or_default().trim());
                found.entry(name).or_insert(all);
            }
        }
    }
    found
}

/// The structure that a parameter points to.
fn structure(parameter: &str) -> Option<&str> {
    let (kind, _) = parameter.split_once('*')?;
    let is_kind = |word: &&str| !matches!(*word, "const" | "struct" | "volatile" | "unsigned");
    let kind = kind.split_whitespace().rfind(is_kind)?;
    (!matches!(kind, "char" | "void" | "int")).then_some(kind)
}

pub(crate) fn each_structure_is_looked_at() {
    let prototypes = prototypes();
    assert!(prototypes.len() > 1000, "{} functions", prototypes.len());
    let reads: BTreeSet<(&str, &str)> = include_str!("reads.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .collect();
    let (mut compared, mut used) = (0, BTreeSet::new());
    for line in include_str!("../../src/httpd.txt").lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next().filter(|name| name.starts_with("ap")) else {
            continue;
        };
        let (words, is_text) = (words.collect::<Vec<_>>(), line.ends_with("= str"));
        let words: Vec<&str> = words.into_iter().take_while(|word| *word != "=").collect();
        let is_own = words
            .iter()
            .any(|word| word.starts_with('!') || *word == "^");
        let Some(parameters) = prototypes.get(name).filter(|_| !is_own) else {
            continue;
        };
        compared += 1;
        // A datum that is passed itself is two words.
        let words_of = |parameter: &String| {
            1 + usize::from(parameter.starts_with("apr_datum_t ") && !parameter.contains('*'))
        };
        let mut next = 0;
        for parameter in parameters {
            let at = next;
            next += words_of(parameter);
            let is_string = parameter.starts_with("const char *");
            let is_one = is_string && !parameter.contains("**");
            assert!(
                !(is_text && is_one && words[at].starts_with(['.', '\''])),
                "{name}: {parameter} may be read twice"
            );
            // What leads nowhere, or has no end, would end the process.
            assert!(
                !is_one || words[at] != "." || name == UNREAD,
                "{name}: {parameter} is not looked at"
            );
            let Some(kind) = structure(parameter) else {
                continue;
            };
            // A count that says how much is written is looked at with that.
            let counts = [format!("w@{at}"), format!("w@@{at}")];
            let is_count = words
                .iter()
                .any(|word| counts.iter().any(|count| count == word));
            if is_count || words.get(at).is_some_and(|word| *word != ".") {
                continue;
            }
            assert!(
                reads.contains(&(name, kind)),
                "{name}: {parameter} is not looked at"
            );
            used.insert((name, kind));
        }
    }
    assert!(compared > 350, "{compared} rows were compared");
    let stale: Vec<_> = reads.difference(&used).collect();
    assert!(stale.is_empty(), "looked at by now: {stale:?}");
}
