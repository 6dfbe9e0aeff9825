//! Prints the sentences of our pages that are too long or begin with a free relative clause, and the numbers of all.

use mullion_checks::prose::{of, pages};

fn main() {
    let mut lengths = Vec::new();
    for page in pages() {
        for sentence in of(&page) {
            let words = sentence.words();
            if words > 25 || sentence.begins_with_a_free_relative() {
                let line = sentence.line;
                println!(
                    "{}:{line}: {words} words: {}",
                    page.display(),
                    sentence.text
                );
            }
            lengths.push(words);
        }
    }
    lengths.sort_unstable();
    let (count, median) = (lengths.len(), lengths[lengths.len() / 2]);
    println!("{count} sentences, {median} words in the middle");
}
