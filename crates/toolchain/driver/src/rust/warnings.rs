//! rustc warns about each register that is kept free, in each crate. Users cannot do anything
//! about that, so those warnings are taken out of what it says.

use std::io::{BufRead, Write};

/// How the warnings begin, and what they name.
const BEGINNING: &str = "unknown and unstable feature specified for `-Ctarget-feature`";
const FEATURE: &str = "`reserve-r1";

/// Copies what rustc says, in lines for people or as JSON, without those warnings.
pub(super) fn copy(from: impl BufRead, mut to: impl Write) -> std::io::Result<()> {
    let (mut dropped, mut inside) = (0_u64, false);
    for line in from.split(b'\n') {
        let line = line?;
        let text = String::from_utf8_lossy(&line);
        let json = text.starts_with('{');
        if text.contains(BEGINNING) && text.contains(FEATURE) {
            dropped += 1;
            inside = !json;
            continue;
        }
        if std::mem::take(&mut inside) {
            inside = !text.trim().is_empty();
            continue;
        }
        if !json && let Some(count) = emitted(&text) {
            match count.saturating_sub(dropped) {
                0 => {}
                1 => to.write_all(b"warning: 1 warning emitted\n")?,
                more => writeln!(to, "warning: {more} warnings emitted")?,
            }
            // An empty line follows.
            inside = count <= dropped;
            continue;
        }
        to.write_all(&line)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// The number in `warning: 3 warnings emitted`, whatever its colours.
fn emitted(line: &str) -> Option<u64> {
    let text = line.trim_end().trim_end_matches("\u{1b}[0m");
    let text = text
        .strip_suffix(" warnings emitted")
        .or_else(|| text.strip_suffix(" warning emitted"))?;
    let digits = text.rfind(|c: char| !c.is_ascii_digit())? + 1;
    text[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> String {
        let mut out = Vec::new();
        copy(text.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn warnings_about_the_registers_are_left_out() {
        let ours = format!("warning: {BEGINNING}: `reserve-r11`\n  |\n  = help: file it\n\n");
        let others = "warning: unused variable: `x`\n --> a.rs:1:1\n\n";
        let text = format!("{ours}{others}{ours}warning: 3 warnings emitted\n\n");
        assert_eq!(
            copied(&text),
            format!("{others}warning: 1 warning emitted\n\n")
        );
        let alone = format!("{ours}\u{1b}[1mwarning: 1 warning emitted\u{1b}[0m\n\n");
        assert_eq!(copied(&alone), "");
    }

    #[test]
    fn json_is_taken_line_by_line() {
        let other = "{\"message\":\"3 warnings emitted\"}\n";
        let text = format!("{{\"message\":\"{BEGINNING}: `reserve-r14`\"}}\n{other}");
        assert_eq!(copied(&text), other);
    }
}
