//! Lines of code: lines that hold a token which is neither a comment nor part of a test.

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What one file of Rust holds.
#[derive(Debug, Default)]
pub struct File {
    /// The numbers of its lines of code, from 1 on.
    pub lines: BTreeSet<usize>,
    /// The modules that it declares for tests alone.
    pub tests: Vec<TestModule>,
}

/// `#[cfg(test)] mod NAME;`
#[derive(Debug, PartialEq, Eq)]
pub enum TestModule {
    /// In the usual place.
    Named(String),
    /// In the place that a `#[path]` names.
    At(String),
}

/// Reads a file of Rust.
///
/// # Panics
///
/// If `text` is not made of Rust's tokens.
#[must_use]
pub fn read(text: &str) -> File {
    let mut file = File::default();
    let tokens: TokenStream = text.parse().expect("the compiler reads it too");
    walk(tokens, &mut file);
    file
}

fn walk(tokens: TokenStream, file: &mut File) {
    let mut rest = tokens.into_iter().peekable();
    let mut attributes: Vec<Group> = Vec::new();
    while let Some(token) = rest.next() {
        if let TokenTree::Punct(sign) = &token
            && sign.as_char() == '#'
            && sign.spacing() == Spacing::Alone
        {
            rest.next_if(|next| matches!(next, TokenTree::Punct(sign) if sign.as_char() == '!'));
            if let Some(TokenTree::Group(group)) = rest.next_if(is_bracket) {
                // Comments on items come as attributes, too.
                let is_text = group.stream().to_string().starts_with("doc =");
                if !is_text {
                    attributes.push(group);
                }
                continue;
            }
        }
        if attributes
            .iter()
            .any(|group| is_for_tests(&group.stream().to_string().replace(' ', "")))
        {
            let mut item = vec![token];
            while !ends(item.last().expect("it begins")) {
                let Some(next) = rest.next() else { break };
                item.push(next);
            }
            file.tests.extend(module(&item, &attributes));
            attributes.clear();
            continue;
        }
        for group in attributes.drain(..) {
            add(group.span(), file);
        }
        if let TokenTree::Group(group) = token {
            add(group.span_open(), file);
            walk(group.stream(), file);
            add(group.span_close(), file);
        } else {
            add(token.span(), file);
        }
    }
}

/// `check` is the feature of what only tests ask for; a test holds that nothing else has it.
fn is_for_tests(attribute: &str) -> bool {
    attribute == "cfg(test)"
        || attribute.starts_with("cfg(all(test,")
        || attribute == "cfg(feature=\"check\")"
}

fn is_bracket(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// Whether an item, or a statement, ends here.
fn ends(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    }
}

fn module(item: &[TokenTree], attributes: &[Group]) -> Option<TestModule> {
    if !matches!(item.last(), Some(TokenTree::Punct(_))) {
        return None;
    }
    let at = item.iter().position(|token| token.to_string() == "mod")?;
    let path = attributes.iter().find_map(|group| {
        let text = group.stream().to_string();
        let path = text.strip_prefix("path = ")?;
        Some(TestModule::At(path.trim_matches('"').to_owned()))
    });
    path.or_else(|| Some(TestModule::Named(item.get(at + 1)?.to_string())))
}

fn add(span: Span, file: &mut File) {
    file.lines.extend(span.start().line..=span.end().line);
}

/// The files of Rust under `source` with what they hold, without those of tests.
///
/// # Panics
///
/// If a file is no text, or not made of Rust's tokens.
#[must_use]
pub fn code(source: &Path) -> Vec<(PathBuf, File)> {
    let mut tests: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for path in crate::tree::files(source, "rs") {
        let file = read(&fs::read_to_string(&path).expect("text"));
        let folder = path.parent().expect("a file is in a folder");
        let name = path.file_stem().expect("a file has a name");
        let modules = match name.to_str() {
            Some("lib" | "main" | "mod") => folder.to_owned(),
            _ => folder.join(name),
        };
        for test in &file.tests {
            match test {
                TestModule::At(place) => tests.push(folder.join(place)),
                TestModule::Named(name) => {
                    tests.push(modules.join(name).with_extension("rs"));
                    tests.push(modules.join(name));
                }
            }
        }
        found.push((path, file));
    }
    found.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
    found
}

/// How many lines of code are in the files of Rust and of assembler under `source`, without tests.
///
/// # Panics
///
/// As [`code`].
#[must_use]
pub fn count(source: &Path) -> usize {
    let rust: usize = code(source).iter().map(|(_, file)| file.lines.len()).sum();
    let assembler: usize = crate::tree::files(source, "s")
        .iter()
        .map(|path| assembler(&fs::read_to_string(path).expect("text")))
        .sum();
    rust + assembler
}

/// Lines of assembler that hold more than a comment.
fn assembler(text: &str) -> usize {
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty()
            && !line.starts_with('#')
            && !line.starts_with("//")
            && !line.starts_with("/*")
    };
    text.lines().filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let text = "//! The file.\n\nuse a::b;\n/* a\n b */\n/// An item.\n#[inline]\nfn f() {\n    // Nothing.\n    g(\n        \
                    \"two\n lines\",\n    );\n}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn h() {\n    #[cfg(test)]\n    \
                    refuse()?;\n}\n#[cfg(test)]\nmod random_tests;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod y;\n";
        let file = read(text);
        let lines: Vec<usize> = file.lines.into_iter().collect();
        assert_eq!(lines, [3, 7, 8, 10, 11, 12, 13, 14, 19, 22]);
        let named = TestModule::Named("random_tests".to_owned());
        assert_eq!(file.tests, [named, TestModule::At("x.rs".to_owned())]);
    }

    #[test]
    fn what_only_tests_ask_for_is_no_code() {
        let gate = "#[cfg(feature = \"check\")]\n";
        let text = format!(
            "fn f() {{}}\n{gate}fn g() {{\n    h();\n}}\n#[cfg(feature = \"other\")]\nfn i() {{}}\n"
        );
        let lines: Vec<usize> = read(&text).lines.into_iter().collect();
        assert_eq!(lines, [1, 6, 7]);
    }

    #[test]
    fn assembler_without_its_comments() {
        assert_eq!(assembler("# a\n\n// b\nx:\n    ret # c\n"), 2);
    }
}
