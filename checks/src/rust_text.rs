//! Texts in files of Rust that people read: the documentation of public items, and the messages of errors.

use crate::prose::{Sentence, sentences};
use crate::tree::{files, root};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::path::{Path, PathBuf};

/// The sentences of one file.
#[derive(Debug, Default)]
pub struct Texts {
    /// Of `//!`, and of `///` at items, fields and variants that are public where they stand.
    pub documentation: Vec<Sentence>,
    /// Of error types (`#[error("...")]`, `impl Display`), and of macros that tell an error.
    pub messages: Vec<Sentence>,
}

/// Macros whose texts reach a person.
const TELLING: [&str; 6] = ["anyhow", "bail", "ensure", "sayln", "eprintln", "say"];

/// The files of Rust that libraries and commands are built from, without tests and benches.
#[must_use]
pub fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["crates", "hosts", "conformance", "bench", "checks"] {
        found.extend(files(&root().join(folder), "rs"));
    }
    let is_aside = |name: &str| ["tests", "benches", "build", "corpus"].contains(&name);
    found.retain(|file| {
        let mut parts = file.strip_prefix(root()).expect("in the tree").iter();
        !parts.any(|part| part.to_str().is_some_and(is_aside))
    });
    found
}

/// Reads a file.
///
/// # Panics
///
/// If it is no text, or not made of Rust's tokens.
#[must_use]
pub fn of(file: &Path) -> Texts {
    read(&std::fs::read_to_string(file).expect("text"))
}

/// Reads the text of a file.
///
/// # Panics
///
/// If it is not made of Rust's tokens.
#[must_use]
pub fn read(text: &str) -> Texts {
    let tokens: TokenStream = text.parse().expect("the compiler reads it too");
    let mut texts = Texts::default();
    walk(tokens, Around::Items, &mut texts);
    texts
}

/// The brackets that tokens stand in.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    /// An item or a field is public if it says so.
    Items,
    /// A public enumeration or trait: everything in it is public.
    Public,
    /// The body of `impl Display`: its strings are messages.
    Display,
}

/// One item's documentation, as it is gathered, and what is known of the item so far.
#[derive(Default)]
struct Item {
    line: usize,
    text: String,
    is_public: bool,
    /// Whether the documentation is that of what is around, `//!`.
    is_inner: bool,
    /// Whether it is for tests alone.
    is_test: bool,
    /// An enumeration or a trait.
    is_open: bool,
    words: Vec<String>,
}

impl Item {
    /// Whether this sign ends it. Bounds and parameters of an item have commas, too; those of fields do no harm.
    fn ends_with(&self, sign: char) -> bool {
        const KINDS: [&str; 15] = [
            "fn",
            "struct",
            "enum",
            "trait",
            "impl",
            "type",
            "const",
            "static",
            "mod",
            "use",
            "union",
            "unsafe",
            "async",
            "extern",
            "macro_rules",
        ];
        let first = self.words.first().map_or("", String::as_str);
        sign == ';' || (sign == ',' && !KINDS.contains(&first))
    }
}

fn walk(tokens: TokenStream, around: Around, texts: &mut Texts) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut item = Item::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let is_attribute = matches!(token, TokenTree::Punct(sign) if sign.as_char() == '#');
        if item.is_inner && !is_attribute {
            tell(std::mem::take(&mut item), around, texts);
        }
        match token {
            TokenTree::Punct(_) if is_attribute => {
                let is_inner = matches!(tokens.get(at), Some(TokenTree::Punct(_)));
                at += usize::from(is_inner);
                if let Some(TokenTree::Group(group)) = tokens.get(at) {
                    at += 1;
                    if item.is_inner && !is_inner {
                        tell(std::mem::take(&mut item), around, texts);
                    }
                    item.is_inner = is_inner;
                    attribute(group, &mut item, texts);
                }
            }
            TokenTree::Ident(word) if word == "pub" => {
                let is_restricted = matches!(tokens.get(at),
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                at += usize::from(is_restricted);
                item.is_public |= !is_restricted;
            }
            TokenTree::Ident(word) => {
                item.is_open |= word == "enum" || word == "trait";
                item.words.push(word.to_string());
            }
            TokenTree::Punct(sign) if item.ends_with(sign.as_char()) => {
                tell(std::mem::take(&mut item), around, texts);
            }
            TokenTree::Punct(_) => {}
            TokenTree::Literal(literal) if around == Around::Display => {
                message(&literal.to_string(), literal.span().start().line, texts);
            }
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                if is_telling(&tokens[..at - 1]) {
                    literals(group.stream(), texts);
                } else if !item.is_test {
                    walk(group.stream(), inside(&item, group, around), texts);
                }
                // A body ends its item.
                if group.delimiter() == Delimiter::Brace {
                    tell(std::mem::take(&mut item), around, texts);
                }
            }
        }
    }
    tell(item, around, texts);
}

/// Brackets of an item.
fn inside(item: &Item, group: &Group, around: Around) -> Around {
    let has = |word: &str| item.words.iter().any(|found| found == word);
    if around == Around::Display || (has("impl") && has("Display") && has("for")) {
        return Around::Display;
    }
    let is_brace = group.delimiter() == Delimiter::Brace;
    let is_public = item.is_public && item.is_open;
    // A variant's fields are as public as the variant.
    let is_variant = around == Around::Public && item.words.len() == 1;
    match is_brace && (is_public || is_variant) {
        true => Around::Public,
        false => Around::Items,
    }
}

/// Whether the tokens before a group call a macro that tells an error.
fn is_telling(before: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(name), TokenTree::Punct(sign)] = before else {
        return false;
    };
    sign.as_char() == '!' && TELLING.iter().any(|telling| name == telling)
}

fn attribute(group: &Group, item: &mut Item, texts: &mut Texts) {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    match &tokens[..] {
        [TokenTree::Ident(name), _, TokenTree::Literal(text)] if name == "doc" => {
            if item.text.is_empty() {
                item.line = text.span().start().line;
            }
            let text = unquoted(&text.to_string());
            item.text += text.strip_prefix(' ').unwrap_or(&text);
            item.text.push('\n');
        }
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "error" => {
            literals(inner.stream(), texts);
        }
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "cfg" => {
            item.is_test |= inner.stream().to_string().starts_with("test");
        }
        _ => {}
    }
}

/// Keeps an item's documentation if others see the item.
fn tell(item: Item, around: Around, texts: &mut Texts) {
    if item.is_public || item.is_inner || around == Around::Public {
        for mut sentence in sentences(&item.text) {
            sentence.line += item.line - 1;
            texts.documentation.push(sentence);
        }
    }
}

/// All strings of a macro, but for those in groups: these are arguments.
fn literals(tokens: TokenStream, texts: &mut Texts) {
    for token in tokens {
        if let TokenTree::Literal(literal) = token {
            message(&literal.to_string(), literal.span().start().line, texts);
        }
    }
}

fn message(literal: &str, line: usize, texts: &mut Texts) {
    if !literal.contains('"') {
        return;
    }
    // A message says the thing, the rule and the way out, with semicolons between them.
    let text = without_places(&unquoted(literal)).replace("; ", ". ");
    for mut sentence in sentences(&text) {
        sentence.line += line - 1;
        texts.messages.push(sentence);
    }
}

/// The text of a literal. A line that goes on behind a backslash goes on.
fn unquoted(literal: &str) -> String {
    let (begin, end) = (literal.find('"'), literal.rfind('"'));
    let (Some(begin), Some(end)) = (begin, end) else {
        return String::new();
    };
    let inner = literal.get(begin + 1..end).unwrap_or_default();
    let mut text = String::new();
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('\n')) => while letters.next_if(|next| next.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                letters.next();
                text.push('\n');
            }
            ('\\', Some(_)) => text.extend(letters.next()),
            _ => text.push(letter),
        }
    }
    text
}

/// The text with a sign in place of each value.
fn without_places(text: &str) -> String {
    let mut found = String::new();
    let mut depth = 0;
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                found.push('@');
            }
            letter if depth == 0 => found.push(letter),
            _ => {}
        }
    }
    found
}
