//! Accepted programs with one token changed: whatever becomes of them, the judge ends, and what it lets pass holds
//! nothing that elastic C does not have.

#[allow(dead_code, reason = "each test uses a part of it")]
mod programs;

use mullion_judge::{ProgramSource, judge};
use programs::{cases, elastic};

/// What is put in the place of a token, or behind it.
const PIECES: [&str; 24] = [
    "",
    "(",
    ")",
    "{",
    "}",
    ";",
    "*",
    "&",
    "&&",
    "asm(\"nop\")",
    "goto *",
    "__attribute__((packed))",
    "[n]",
    "...",
    "static",
    "extern",
    "typedef",
    "struct",
    "sizeof",
    "?:",
    "0",
    "->",
    "#pragma x\n",
    "\"",
];

/// Tokens, roughly: names, and single marks.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word = false;
    for letter in text.chars() {
        let part = letter.is_alphanumeric() || letter == '_' || letter == '"' || letter == '\'';
        match found.last_mut() {
            Some(last) if word && part => last.push(letter),
            _ => found.push(letter.to_string()),
        }
        word = part;
    }
    found
}

#[test]
fn one_token_changes_and_nothing_forbidden_passes() {
    let mut accepted = 0;
    let mut seed = 1u32;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (seed >> 8) as usize % below
    };
    for case in cases("accepted.txt")
        .iter()
        .filter(|case| !case.text.contains(['#', '\'', '"']))
    {
        let elastic = elastic(&case.table);
        let whole = tokens(case.text.split("//").next().expect("text"));
        for _ in 0..12 {
            let mut changed = whole.clone();
            let (at, piece) = (next(changed.len()), PIECES[next(PIECES.len())]);
            match next(3) {
                0 => changed[at] = piece.to_owned(),
                1 => changed.insert(at, format!(" {piece} ")),
                _ => {
                    let other = next(changed.len());
                    changed.swap(at, other);
                }
            }
            let source = ProgramSource {
                environment: "struct packet { unsigned length, source; }; void public_fill(struct packet *p);".to_owned(),
                program: format!("# 1 \"x.c\"\n{}", changed.concat()),
                ..ProgramSource::default()
            };
            if let Ok(judged) = judge(&elastic, &source) {
                accepted += 1;
                let own = judged
                    .text
                    .lines()
                    .filter(|line| !line.contains("__mullion_index(unsigned long index"));
                let text = own.collect::<Vec<_>>().join("\n");
                for word in [
                    "asm",
                    "__attribute__",
                    "__builtin",
                    "extern",
                    "goto *",
                    "#pragma",
                    "({",
                ] {
                    assert!(
                        !text.contains(word),
                        "{word} of {}:\n{text}",
                        changed.concat()
                    );
                }
            }
        }
    }
    assert!(
        accepted > 30,
        "{accepted}: most changes must not be nonsense"
    );
}
