//! Texts of strangers, as they are shown and kept.

use std::borrow::Cow;

/// A text within `most` bytes: itself, or its beginning and how much is left out. Texts of
/// strangers are shown and kept so.
#[must_use]
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.floor_char_boundary(most.saturating_sub(32));
    let left = text.len() - kept;
    Cow::Owned(format!("{}... {left} bytes more", &text[..kept]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "\u{fffd}".repeat(100);
        for most in 40..300 {
            let short = shortened(&text, most);
            assert!(short.len() <= most.max(32), "{most}: {short}");
        }
        assert_eq!(shortened(&text, 300), text);
    }
}
