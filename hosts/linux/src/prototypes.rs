//! What the kernel's own headers say of the arguments of its functions: to which structures they point. From this the
//! wall's library looks at the arguments of functions that a policy trusts (wall/src/types.rs).

use crate::kernel::{Built, Setup, at};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// The lines that there are. Headers do not say all: what may be null, what macros hand on, how many bytes a constructor writes. So
/// a line that is there is never taken out or changed.
const KNOWN: &str = include_str!("../kernel.types");

/// The lines that there are, and new ones for functions that have none: by a header's prototype with pointers, `iput: inode`. Somebody has to look at those, and puts a question mark where a null pointer may be.
///
/// # Errors
/// The headers cannot be read.
pub fn prototypes(built: &Built, names: &[String]) -> Result<String, Setup> {
    let mut text = String::new();
    let mut files = Vec::new();
    for folder in ["include/linux", "include/net"] {
        let folder = built.tree().join(folder);
        let listed = fs::read_dir(&folder).map_err(at(&folder))?;
        let paths = listed.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "h")));
    }
    files.sort();
    for file in files {
        text.push_str(&fs::read_to_string(&file).map_err(at(&file))?);
    }
    let text = without_comments(&text);
    Ok(with_known(names, |name| find(&text, name)))
}

/// In the order of the file.
fn with_known(names: &[String], find: impl Fn(&str) -> Option<String>) -> String {
    let known = KNOWN.lines().filter_map(|line| line.split_once(": "));
    let mut lines: BTreeMap<&str, String> = known
        .map(|(name, types)| (name, types.to_owned()))
        .collect();
    for name in names
        .iter()
        .filter(|name| !lines.contains_key(name.as_str()))
        .collect::<Vec<_>>()
    {
        if let Some(types) = find(name).filter(|types| types.split(' ').any(|one| one != "-")) {
            lines.insert(name, types);
        }
    }
    let mut said = String::new();
    for (name, types) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(said, "{name}: {types}");
    }
    said
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once("*/").map_or("", |(_, behind)| behind));
    }
    plain
}

/// The types of the first prototype: `-` for what is no pointer to a structure.
fn find(text: &str, name: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(found) = text[from..].find(name) {
        let start = from + found;
        from = start + name.len();
        let before = text[..start].trim_end_matches([' ', '\t', '*', '\n']);
        let is_whole = !text[..start].ends_with(is_name);
        // A word before it is its type. `return f(x)` is a call.
        let is_typed = before.ends_with(is_name) && !before.ends_with("return");
        let Some(rest) = text[from..].strip_prefix('(') else {
            continue;
        };
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        let behind = rest[end + 1..].trim_start();
        let is_declared = behind.starts_with([';', '_', '{']);
        if !is_whole || !is_typed || !is_declared {
            continue;
        }
        let types = arguments(&rest[..end]).into_iter().map(pointed);
        return Some(types.collect::<Vec<&str>>().join(" "));
    }
    None
}

/// The list's parts: commas within brackets part nothing.
fn arguments(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            all.push(&list[start..at]);
            start = at + 1;
        }
    }
    all.push(&list[start..]);
    all
}

/// Types of functions that the headers name.
const FUNCTIONS: [&str; 3] = ["filler_t", "get_block_t", "writepage_t"];

/// The structure that an argument points to. What else it may point to is `text` or `memory`, or `stored` or `out` for a number or
/// pointer that is written there, or `code` for a function.
fn pointed(argument: &str) -> &str {
    let mut words = argument.split([' ', '\t', '\n', '*']);
    if argument.contains("(*") || words.any(|word| FUNCTIONS.contains(&word)) {
        return "code";
    }
    let (before, stars) = match argument.split_once('*') {
        Some((before, _)) => (before, argument.matches('*').count()),
        None => return "-",
    };
    let structure = before.split_once("struct ").map(|(_, name)| name.trim());
    match (stars, structure) {
        _ if argument.contains('(') => "-",
        (1, Some(structure)) => structure,
        (1, None) if before.contains("char ") && before.contains("const") => "text",
        (2, _) if !before.contains("const") => "out",
        (1, None) if !before.contains("const") && !before.contains("void ") => "stored",
        _ => "memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_there_stay() {
        assert_eq!(with_known(&[], |_| None), KNOWN);
        let names = ["iput", "zzz", "plain"].map(str::to_owned);
        let said = with_known(&names, |name| {
            Some(if name == "plain" { "- -" } else { "inode -" }.to_owned())
        });
        assert_eq!(said, format!("{KNOWN}zzz: inode -\n"));
    }

    #[test]
    fn prototypes_are_found() {
        let text = "/* f(x); */ static inline int g(void) { return f(1); }\n\
                    extern struct inode *f(struct super_block *sb,\n\tconst struct path *, int n, struct page **pages,\n\
                    \tint (*g)(struct inode *)) __must_check;";
        let text = without_comments(text);
        assert_eq!(
            find(&text, "f").as_deref(),
            Some("super_block path - out code")
        );
        assert_eq!(find(&text, "g").as_deref(), Some("-"));
        let other =
            "int k(const char *name, void *at, get_block_t *block, const char **all, u64 *n);";
        assert_eq!(
            find(other, "k").as_deref(),
            Some("text memory code memory stored")
        );
        assert_eq!(find(&text, "h"), None);
    }
}
