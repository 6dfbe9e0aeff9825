//! Sentences of pages: how long they are, and what they begin with.

use crate::tree::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// A sentence as a reader of the page sees it, with code between backquotes left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The number of the line on which its paragraph begins.
    pub line: usize,
    /// Its words, with spaces between them.
    pub text: String,
}

impl Sentence {
    /// How many words it has. Code and figures do not count: a list of names or of measurements is read one by one.
    #[must_use]
    pub fn words(&self) -> usize {
        let is_word = |word: &&str| word.contains(|c: char| c.is_ascii_alphabetic());
        self.text.split(' ').filter(is_word).count()
    }

    /// Whether its subject is a free relative clause, as in "What is missing is in the table". A question is none, and
    /// neither is a phrase in bold that names a paragraph.
    #[must_use]
    pub fn begins_with_a_free_relative(&self) -> bool {
        let first = self.text.split(' ').next().unwrap_or_default();
        let is_relative = ["Who", "Whoever", "What", "Whatever", "Which", "Whichever"];
        is_relative.contains(&first) && !self.text.ends_with('?')
    }
}

/// The pages of the tree, but for the list of contents, foreign sources and pages that were built.
#[must_use]
pub fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [
        "docs",
        "crates",
        "hosts",
        "examples",
        "bench",
        "conformance",
    ] {
        found.extend(files(&root().join(folder), "md"));
    }
    for page in ["README", "ARCHITECTURE", "CHANGELOG", "SECURITY"] {
        found.push(root().join(page).with_extension("md"));
    }
    found.retain(|page| page.exists() && !is_foreign(page) && !page.ends_with("SUMMARY.md"));
    found
}

fn is_foreign(page: &Path) -> bool {
    page.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("build" | "corpus")))
}

/// The sentences of a page.
///
/// # Panics
///
/// If the page cannot be read.
#[must_use]
pub fn of(page: &Path) -> Vec<Sentence> {
    sentences(&fs::read_to_string(page).expect("text"))
}

/// The sentences of a text in Markdown: of paragraphs and of items of lists. Code, tables and headings have none.
#[must_use]
pub fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut paragraph = (0, String::new());
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.trim();
        let is_fence = words.starts_with("```");
        let is_listing = paragraph.1.is_empty() && line.starts_with("    ");
        let item = after_bullet(words);
        let is_none = words.is_empty() || words.starts_with(['#', '|', '<']);
        if is_fence || in_code || is_none || item.is_some() {
            split(&mut paragraph, &mut found);
        }
        in_code ^= is_fence;
        if is_fence || in_code || is_none || (is_listing && item.is_none()) {
            continue;
        }
        if paragraph.1.is_empty() {
            paragraph.0 = number;
        }
        paragraph.1.push_str(item.unwrap_or(words));
        paragraph.1.push(' ');
    }
    split(&mut paragraph, &mut found);
    found
}

/// The rest of a line that begins an item of a list.
fn after_bullet(line: &str) -> Option<&str> {
    let (mark, rest) = line.split_once(' ')?;
    let number = mark.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number || matches!(mark, "-" | "*" | "+")).then_some(rest.trim_start())
}

/// Takes a paragraph apart.
fn split(paragraph: &mut (usize, String), found: &mut Vec<Sentence>) {
    let (line, text) = std::mem::take(paragraph);
    let text = without_links(&without_code(&text));
    let mut sentence = String::new();
    for word in text.split_whitespace() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let end = word.trim_end_matches(['"', ')', '*']);
        if end.ends_with(['.', '?', '!']) {
            let text = std::mem::take(&mut sentence);
            found.push(Sentence { line, text });
        }
    }
    if !sentence.is_empty() {
        found.push(Sentence {
            line,
            text: sentence,
        });
    }
}

/// The text with a sign in place of each piece of code.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("@")
}

/// The text with what a link says in place of the link.
fn without_links(text: &str) -> String {
    let mut rest = text;
    let mut found = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        found.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    found.push_str(rest);
    found.replace('[', "")
}
