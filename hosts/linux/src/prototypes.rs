//! What the kernel's own headers say of the arguments of its functions: to which structures they point. From this the
//! wall's library looks at the arguments of functions that a policy trusts (wall/src/types.rs).

use crate::kernel::{Built, Setup, at};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// Functions that are macros or inline in headers, and what those hand on; and those that constructors of caches call, with the
/// bytes that they write (`mullion_recover.c` holds them against the kernel's structures).
const OTHERS: &str = "\
__init_rwsem: constructed.32
__mutex_init: constructed.24
inode_init_once: constructed.568
down_read: rw_semaphore
down_write: rw_semaphore
ihold: inode
inode_add_bytes: inode
inode_sub_bytes: inode
iput: inode?
mullion_buffer_no_error: buffer_head
mullion_buffer_not_uptodate: buffer_head
mullion_buffer_uptodate: buffer_head
mullion_get_buffer: buffer_head
mullion_lock_buffer: buffer_head
mullion_lock_page: page
mullion_page_checked: page
mullion_page_error: page
mullion_page_no_error: page
mullion_page_not_uptodate: page
mullion_page_uptodate: page
mutex_lock: mutex
mutex_unlock: mutex
up_read: rw_semaphore
up_write: rw_semaphore
";

/// Arguments that may be null, or an error value.
const NULLS: [(&str, usize); 19] = [
    ("d_splice_alias", 0),
    ("d_obtain_alias", 0),
    ("d_instantiate", 1),
    ("d_make_root", 0),
    ("__alloc_pages", 3),
    ("__register_blkdev", 2),
    ("device_add_disk", 2),
    ("dput", 0),
    ("fat_flush_inodes", 1),
    ("fat_flush_inodes", 2),
    ("finish_open", 2),
    ("fsnotify", 3),
    ("fsnotify", 5),
    ("free_percpu", 0),
    ("kmem_cache_create", 4),
    ("mount_bdev", 2),
    ("read_cache_folio", 2),
    ("read_cache_page", 2),
    ("simple_strtoul", 1),
];

/// Arguments that nobody follows, or that a module has and does not read.
const OPAQUE: [(&str, usize); 5] = [
    ("block_write_end", 6),
    ("crypto_destroy_tfm", 0),
    ("full_name_hash", 0),
    ("generic_write_end", 6),
    ("mount_bdev", 3),
];

/// A line for each of these functions of which a header has a prototype with pointers: `iput: inode`. A question mark: it may be null.
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
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for name in names {
        let types = find(&text, name);
        if let Some(types) = types {
            lines.insert(name, types);
        }
    }
    for (name, types) in OTHERS.lines().filter_map(|line| line.split_once(": ")) {
        lines.insert(name, types.to_owned());
    }
    let mut said = String::new();
    for (name, types) in lines {
        let mut types: Vec<String> = types.split(' ').map(str::to_owned).collect();
        for (_, at) in OPAQUE.iter().filter(|(of, _)| *of == name) {
            "-".clone_into(&mut types[*at]);
        }
        for (_, at) in NULLS.iter().filter(|(of, _)| *of == name) {
            types[*at].push('?');
        }
        if types.iter().any(|one| one != "-") {
            let _ = writeln!(said, "{name}: {}", types.join(" "));
        }
    }
    Ok(said)
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
