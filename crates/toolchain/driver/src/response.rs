//! Response files: `@file` on a command line stands for the arguments in it.
//! gcc hands the same form on to the assembler and the linker.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Splits a response file as gcc does: white space separates, quotes of both
/// kinds group, a backslash takes the next character as it is.
pub(crate) fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => current.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => {
                quote = Some(byte);
                current.get_or_insert_default();
            }
            _ if quote.is_none() && byte.is_ascii_whitespace() => arguments.extend(current.take()),
            _ => current.get_or_insert_default().push(byte),
        }
    }
    arguments.extend(current);
    arguments
}

/// Replaces each `@file` that can be read by what is in it, as far down as it goes.
pub(crate) fn expand(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut expanded = Vec::new();
    for argument in arguments {
        match read(&argument) {
            Some(text) => expanded.extend(expand(split(&text).into_iter().map(OsString::from_vec))),
            None => expanded.push(argument),
        }
    }
    expanded
}

fn read(argument: &OsStr) -> Option<Vec<u8>> {
    let file = argument.as_bytes().strip_prefix(b"@")?;
    std::fs::read(OsStr::from_bytes(file)).ok()
}

/// The text of a response file with these arguments.
pub(crate) fn join<'a>(arguments: impl IntoIterator<Item = &'a OsString>) -> Vec<u8> {
    let mut text = Vec::new();
    for argument in arguments {
        for byte in argument.as_bytes() {
            if byte.is_ascii_whitespace() || matches!(byte, b'\\' | b'"' | b'\'') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        if argument.is_empty() {
            text.extend(b"\"\"");
        }
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_files_are_split_as_gcc_does() {
        let split = split(b"a 'b c' \"d'e\" f\\ g\n\th\\\\i ''");
        let expected: Vec<&[u8]> = vec![b"a", b"b c", b"d'e", b"f g", b"h\\i", b""];
        assert_eq!(split, expected);
    }

    #[test]
    fn what_is_joined_splits_into_the_same() {
        let arguments: Vec<OsString> = ["a b", "", "c\\d\"e'", "-o", "\u{e9}\n"]
            .map(OsString::from)
            .into();
        let split: Vec<OsString> = split(&join(&arguments))
            .into_iter()
            .map(OsString::from_vec)
            .collect();
        assert_eq!(split, arguments);
    }

    #[test]
    fn files_name_files() {
        let directory = tempfile::tempdir().unwrap();
        let (outer, inner) = (
            directory.path().join("outer"),
            directory.path().join("inner"),
        );
        std::fs::write(&inner, "-o x").unwrap();
        std::fs::write(&outer, format!("a @{} b", inner.display())).unwrap();
        let arguments =
            [format!("@{}", outer.display()), "@/absent".to_owned()].map(OsString::from);
        assert_eq!(expand(arguments), ["a", "-o", "x", "b", "@/absent"]);
    }
}
