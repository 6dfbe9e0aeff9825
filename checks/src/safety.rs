//! `SAFETY:` lines that argue, and those that only point elsewhere.

/// The words of a line that only points elsewhere. A line that has another word says something.
const POINTERS: [&str; 36] = [
    "a",
    "above",
    "and",
    "as",
    "before",
    "below",
    "by",
    "caller",
    "callers",
    "caller's",
    "contract",
    "for",
    "function's",
    "guaranteed",
    "handed",
    "has",
    "in",
    "is",
    "it",
    "its",
    "of",
    "on",
    "promise",
    "promised",
    "promises",
    "same",
    "see",
    "so",
    "struct's",
    "text",
    "the",
    "there",
    "to",
    "trait's",
    "type's",
    "upheld",
];

/// In two pieces, so that this line is none itself.
const MARK: &str = concat!("// SAFE", "TY:");

/// Whether what stands behind `SAFETY:` is no argument: it has no word but those that point elsewhere, and names.
#[must_use]
pub fn is_empty(said: &str) -> bool {
    // A name of something else stands between backquotes.
    let outside: String = said.split('`').step_by(2).collect();
    let outside = outside.to_lowercase();
    let mut words = outside.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.all(|word| word.is_empty() || POINTERS.contains(&word))
}

/// The comments that begin with `SAFETY:`, each with the number of its first line and as one line.
#[must_use]
pub fn lines(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start().strip_prefix("//");
        if let Some((before, said)) = line.split_once(MARK) {
            found.push((number, said.trim().to_owned()));
            goes_on = before.trim().is_empty();
        } else if let Some(comment) = comment.filter(|_| goes_on) {
            if let Some((_, said)) = found.last_mut() {
                *said = format!("{said} {}", comment.trim()).trim().to_owned();
            }
        } else {
            goes_on = false;
        }
    }
    found
}
