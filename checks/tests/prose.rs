//! Pages are read by people to whom English may be a second language: sentences are short, and have a subject.

use mullion_checks::prose::{Sentence, of, pages, sentences};
use mullion_checks::rust_text;
use mullion_checks::tree::root;

const WORDS: usize = 25;

/// In the middle.
const MEDIAN: usize = 15;

#[test]
fn sentences_are_short_and_begin_with_a_subject() {
    let mut wrong = Vec::new();
    let mut lengths = Vec::new();
    for page in pages() {
        let name = page.strip_prefix(root()).expect("in the tree").display();
        for sentence in of(&page) {
            let (line, words) = (sentence.line, sentence.words());
            if words > WORDS {
                wrong.push(format!("{name}:{line}: {words} words: {}", sentence.text));
            }
            if sentence.begins_with_a_free_relative() {
                wrong.push(format!("{name}:{line}: no subject: {}", sentence.text));
            }
            lengths.push(words);
        }
    }
    assert!(
        wrong.is_empty(),
        "at most {WORDS} words, and a named subject first; divide these: {wrong:#?}"
    );
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median <= MEDIAN, "{median} words in the middle");
}

/// In the documentation of public items, and in the messages of errors.
const WORDS_IN_RUST: usize = 25;

#[test]
fn documentation_and_messages_are_short() {
    let mut wrong = Vec::new();
    let (mut long_documentation, mut long_messages, mut read) = (0, 0, 0);
    for file in rust_text::sources() {
        let texts = rust_text::of(&file);
        let name = file.strip_prefix(root()).expect("in the tree").display();
        for sentence in texts.documentation.iter().chain(&texts.messages) {
            let (line, words) = (sentence.line, sentence.words());
            if words > WORDS_IN_RUST {
                wrong.push(format!("{name}:{line}: {words} words: {}", sentence.text));
            }
        }
        let long = |sentences: &[Sentence]| {
            let long = sentences.iter().filter(|one| one.words() > WORDS);
            long.count()
        };
        long_documentation += long(&texts.documentation);
        long_messages += long(&texts.messages);
        read += texts.documentation.len();
    }
    assert!(
        wrong.is_empty(),
        "at most {WORDS_IN_RUST} words; divide these: {wrong:#?}"
    );
    assert!(read > 5_000, "{read} sentences were found");
    assert!(
        long_documentation + long_messages == 0,
        "{long_documentation} sentences of documentation and {long_messages} of messages have more than {WORDS} words; \
         `cargo run -p mullion-checks --bin prose` shows them"
    );
}

#[test]
fn texts_in_rust_are_found() {
    let text = "//! The file. It has two.\n\n/// Seen,\n/// over lines.\npub struct A<B, C> where B: D, C: E {\n    \
                /// A field.\n    pub a: fn(B) -> C,\n    /// Not seen.\n    b: u8,\n}\n/// Open.\npub enum F {\n    \
                /// A variant.\n    #[error(\"it broke {a}; mend it\")]\n    G {\n        /// Its field.\n        h: u8,\n    },\n}\n\
                /// Not open.\nenum I {\n    /// Not seen.\n    J,\n}\nimpl fmt::Display for A {\n    \
                fn fmt() { write!(f, \"shown \\\n    so\") }\n}\n/// Not out.\npub(crate) fn k() { anyhow::bail!(\"no: {}\", \
                l(\"none\")); m(\"none\"); }\n#[cfg(test)]\nmod tests {\n    /// Not seen.\n    pub fn n() {}\n}\n";
    let texts = rust_text::read(text);
    let documentation: Vec<(usize, &str)> = texts
        .documentation
        .iter()
        .map(|one| (one.line, &*one.text))
        .collect();
    let expected = [
        (1, "The file."),
        (1, "It has two."),
        (6, "A field."),
        (3, "Seen, over lines."),
        (16, "Its field."),
        (13, "A variant."),
        (11, "Open."),
    ];
    assert_eq!(documentation, expected);
    let messages: Vec<&str> = texts.messages.iter().map(|one| &*one.text).collect();
    assert_eq!(messages, ["it broke @.", "mend it", "shown so", "no: @"]);
}

#[test]
fn sentences_are_found() {
    let text = "# No heading.\nOne [of them](a.b. c) and\n`x. y` in 3 lines. \"Two.\"\n\n- item one\n- 1.5 is no end: three\n  goes on.\n\n    no code.\n```\nno code.\n```\n| no | table. |\n1. (What is\nit?) **What is it.** What is it.\n";
    let found = sentences(text);
    let texts: Vec<(usize, &str)> = found.iter().map(|one| (one.line, &*one.text)).collect();
    let expected = [
        (2, "One of them and @ in 3 lines."),
        (2, "\"Two.\""),
        (5, "item one"),
        (6, "1.5 is no end: three goes on."),
        (14, "(What is it?)"),
        (14, "**What is it.**"),
        (14, "What is it."),
    ];
    assert_eq!(texts, expected);
    assert_eq!((found[0].words(), found[3].words()), (6, 6));
    let relatives: Vec<bool> = found
        .iter()
        .map(|one| one.begins_with_a_free_relative())
        .collect();
    assert_eq!(relatives[4..], [false, false, true]);
}
