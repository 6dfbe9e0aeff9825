//! Pages are read by people to whom English may be a second language: sentences are short, and have a subject.

use mullion_checks::prose::{of, pages, sentences};
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
