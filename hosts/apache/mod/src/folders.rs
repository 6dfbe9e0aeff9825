//! Folders and files by their names: what a policy names, and what a word of a directive does.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a word of a directive names: a path, or one behind the kind of a store, as `shmcb:/path(512000)` has it.
pub(crate) fn named(word: &[u8]) -> Option<&Path> {
    let kind = word.iter().position(|byte| *byte == b':');
    let path = kind.map_or(word, |end| &word[end + 1..]);
    let end = path.iter().position(|byte| *byte == b'(');
    let path = &path[..end.filter(|_| kind.is_some()).unwrap_or(path.len())];
    // A program is none.
    let is_path = !path.is_empty() && word[0] != b'|';
    is_path.then(|| Path::new(OsStr::from_bytes(path)))
}

/// Words as the configuration has them, quoted or not.
pub(crate) fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = text.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        let Some(first) = rest.peek().copied() else {
            return words;
        };
        let quote = rest.next_if(|_| matches!(first, b'"' | b'\''));
        let mut word = Vec::new();
        while let Some(byte) = rest.next() {
            match byte {
                b'\\' if quote.is_some() && rest.peek() == quote.as_ref() => {
                    word.extend(rest.next())
                }
                byte if Some(byte) == quote || quote.is_none() && byte.is_ascii_whitespace() => {
                    break;
                }
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// A folder or a file that a policy names, without links.
pub(crate) struct Root {
    path: PathBuf,
    is_folder: bool,
}

impl Root {
    pub(crate) fn of(path: &Path) -> Option<Root> {
        if let Ok(whole) = fs::canonicalize(path)
            && whole.is_dir()
        {
            return Some(Root {
                path: whole,
                is_folder: true,
            });
        }
        // The last name may be that of a link, or of nothing yet.
        let folder = fs::canonicalize(path.parent()?).ok()?;
        Some(Root {
            path: folder.join(path.file_name()?),
            is_folder: false,
        })
    }

    /// Whether a path without links is below it. A file has others beside it, whose names begin with its own and a dot.
    pub(crate) fn has(&self, path: &Path) -> bool {
        if self.path.file_name().is_none() {
            return false;
        }
        let Ok(rest) = path.strip_prefix(&self.path) else {
            let names = [&self.path, path].map(|of| of.file_name().map(OsStr::as_bytes));
            let is_beside = !self.is_folder && self.path.parent() == path.parent();
            return is_beside
                && matches!(names, [Some(own), Some(name)]
                    if name.strip_prefix(own).is_some_and(|rest| rest.first() == Some(&b'.')));
        };
        !self.is_folder || rest.components().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Root, named, split};
    use std::path::Path;

    #[test]
    fn a_folder_has_what_is_below_and_a_file_what_is_beside_it_by_its_name() {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().canonicalize().expect("it is there");
        let root = Root::of(&path).expect("a folder");
        for (name, is_below) in [("a", true), ("a/b", true), ("", false)] {
            assert_eq!(root.has(&path.join(name)), is_below, "{name}");
        }
        assert!(!root.has(&path.with_extension("more")));
        let file = Root::of(&path.join("keys")).expect("in a folder");
        for (name, is_its) in [
            ("keys", true),
            ("keys.pag", true),
            ("keys/in", true),
            ("keysmore", false),
            ("other", false),
        ] {
            assert_eq!(file.has(&path.join(name)), is_its, "{name}");
        }
        assert!(
            !Root::of(Path::new("/"))
                .expect("a folder")
                .has(Path::new("/etc/passwd"))
        );
    }

    #[test]
    fn words_of_directives() {
        let words = split(b" /a \"b c\" 'd \\' e'  f\"g");
        let expected: [&[u8]; 4] = [b"/a", b"b c", b"d ' e", b"f\"g"];
        assert_eq!(words, expected);
        assert_eq!(named(b"/a/b"), Some(Path::new("/a/b")));
        assert_eq!(named(b"shmcb:/a/b(512000)"), Some(Path::new("/a/b")));
        assert_eq!(named(b"|/bin/sh"), None);
    }
}
