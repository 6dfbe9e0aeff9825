//! Text in a picture: escaping, measuring, shortening.

/// Replaces what XML gives a meaning to, and what it cannot hold.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The width of `text` in pixels, estimated from above for the fonts that the style asks for.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars()
        .map(|c| if c.is_ascii() { 0.62 } else { 1.0 })
        .sum::<f64>()
        * size
}

/// The start of `text` that fits, with an ellipsis if that is not all.
pub(crate) fn shorten(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        let longer = format!("{short}{character}…");
        if width(&longer, size) > room {
            break;
        }
        short.push(character);
    }
    match short.is_empty() {
        true => String::new(),
        false => format!("{short}…"),
    }
}

/// `4 KiB`, `12 B`, `1.5 MiB`.
pub(crate) fn bytes(count: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut divisor: u128 = 1;
    while count >= divisor * 1024 && unit + 1 < UNITS.len() {
        divisor *= 1024;
        unit += 1;
    }
    let tenths = count * 10 / divisor;
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        rest => format!("{}.{rest} {}", tenths / 10, UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_text() {
        assert_eq!(
            escape("<a b=\"c\">&\u{0}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}"
        );
    }

    #[test]
    fn shortened_text_fits() {
        for room in [0.0, 5.0, 20.0, 55.0, 200.0] {
            let short = shorten("unix domain sockets", 10.0, room);
            assert!(width(&short, 10.0) <= room, "{short}");
        }
        assert_eq!(shorten("kernel", 10.0, 100.0), "kernel");
    }

    #[test]
    fn sizes_are_for_people() {
        let sizes = [4, 1024, 1536, 1 << 20, 1 << 64].map(bytes);
        assert_eq!(sizes, ["4 B", "1 KiB", "1.5 KiB", "1 MiB", "16 EiB"]);
    }
}
