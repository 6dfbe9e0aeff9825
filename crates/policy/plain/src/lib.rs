//! Text of others, fit for a line of a log or a terminal. The author of a module has chosen the names of its symbols, functions,
//! files and types.
//!
//! A [`Plain`] is made from any text, and nothing else makes one. So a report that has nothing but `Plain`s has one line, in the
//! order that it was written in, whoever has written the names.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::ops::Deref;

/// Text without control characters, and without marks that break a line or turn its direction: these are escaped
/// as Rust writes them (`\n`, `\u{1b}`).
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plain(String);

/// Whether a character would end a line, move the cursor, or show what follows in another order (Unicode, annex 9).
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Plain {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Plain {
    fn from(text: String) -> Plain {
        match text.contains(acts) {
            true => text.as_str().into(),
            false => Plain(text),
        }
    }
}

impl From<&str> for Plain {
    fn from(text: &str) -> Plain {
        if !text.contains(acts) {
            return Plain(text.to_owned());
        }
        let mut plain = String::with_capacity(text.len() + 8);
        for letter in text.chars() {
            match acts(letter) {
                true => plain.extend(letter.escape_default()),
                false => plain.push(letter),
            }
        }
        Plain(plain)
    }
}

impl From<Plain> for String {
    fn from(text: Plain) -> String {
        text.0
    }
}

impl Deref for Plain {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), formatter)
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl PartialEq<str> for Plain {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Plain {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for Plain {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn one_line_in_the_order_that_it_was_written_in() {
        let hostile = "a\nb\r\t\u{1b}[2J\u{7f}\u{9b}1m\u{2028}\u{202e}txt\u{2066}\u{200f}";
        let plain = Plain::from(hostile);
        assert_eq!(
            plain,
            "a\\nb\\r\\t\\u{1b}[2J\\u{7f}\\u{9b}1m\\u{2028}\\u{202e}txt\\u{2066}\\u{200f}"
        );
        assert_eq!(Plain::from(hostile.to_owned()), plain);
        assert_eq!(Plain::from(plain.to_string()), plain);
    }

    #[test]
    fn every_character_that_acts_is_escaped_and_others_stay() {
        for letter in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let text = letter.to_string();
            let plain = Plain::from(text.as_str());
            assert_eq!(plain != text, acts(letter), "{letter:?}");
            assert!(!plain.contains(acts), "{letter:?}");
        }
        let kept = "naïve::größe<名前> `x` \\ \"";
        assert_eq!(Plain::from(kept), kept);
    }
}
