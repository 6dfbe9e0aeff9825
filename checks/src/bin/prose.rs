//! Prints the sentences that are too long, or begin with a free relative clause, and the numbers of all. It reads our
//! pages, the documentation of public items (`///`, `//!`), and the messages of errors.
//!
//! `prose WORDS` prints those of more than WORDS words.

use mullion_checks::prose::{Sentence, of, pages};
use mullion_checks::rust_text;
use std::path::Path;

fn main() {
    let words = std::env::args().nth(1);
    let most = words.map_or(25, |words| words.parse().expect("a number of words"));
    let mut lengths = [const { Vec::new() }; 3];
    for page in pages() {
        tell(&page, &of(&page), most, &mut lengths[0]);
    }
    for file in rust_text::sources() {
        let texts = rust_text::of(&file);
        tell(&file, &texts.documentation, most, &mut lengths[1]);
        tell(&file, &texts.messages, most, &mut lengths[2]);
    }
    for (kind, mut lengths) in ["pages", "documentation", "messages"]
        .into_iter()
        .zip(lengths)
    {
        lengths.sort_unstable();
        let (count, longest) = (lengths.len(), lengths.last().copied().unwrap_or_default());
        let above: Vec<String> = [15, 25, 30, 40]
            .iter()
            .map(|most| {
                let found = lengths.iter().filter(|words| *words > most).count();
                format!("{found} above {most}")
            })
            .collect();
        let median = lengths.get(count / 2).copied().unwrap_or_default();
        println!(
            "{kind}: {count} sentences, {median} words in the middle, {}, longest {longest}",
            above.join(", ")
        );
    }
}

fn tell(file: &Path, sentences: &[Sentence], most: usize, lengths: &mut Vec<usize>) {
    for sentence in sentences {
        let words = sentence.words();
        if words > most || sentence.begins_with_a_free_relative() {
            let (line, text) = (sentence.line, &sentence.text);
            println!("{}:{line}: {words} words: {text}", file.display());
        }
        lengths.push(words);
    }
}
