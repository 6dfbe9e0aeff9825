//! Sizes and times as people write them.

use mullion_runtime::MAX_STACK_SIZE;
use std::time::Duration;

/// Greatest memory of a domain: what lies between image and stacks, roundly.
const MOST_MEMORY: u64 = 3 << 30;

/// `64M`, `1G`, `4096`: bytes, in powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    match bytes <= MOST_MEMORY {
        true => Ok(bytes),
        false => Err("a domain's window has room for 3G".to_owned()),
    }
}

/// As [`size`], for a data stack.
pub(crate) fn stack(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    match bytes <= MAX_STACK_SIZE {
        true => Ok(bytes),
        false => Err(format!(
            "a data stack has at most {}K",
            MAX_STACK_SIZE >> 10
        )),
    }
}

/// As [`size`], without a limit.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let form = || "a size is a number, with K, M or G behind it".to_owned();
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| form())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(form)
}

/// `500ms`, `1s`, `1.5s`, `2m`; a bare number is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let form = || "a time is a number, with ms, s or m behind it, like 500ms".to_owned();
    let (digits, seconds) = if let Some(digits) = text.strip_suffix("ms") {
        (digits, 0.001)
    } else if let Some(digits) = text.strip_suffix('s') {
        (digits, 1.0)
    } else if let Some(digits) = text.strip_suffix('m') {
        (digits, 60.0)
    } else {
        (text, 1.0)
    };
    let number: f64 = digits.parse().map_err(|_| form())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| form())?;
    if time.is_zero() || time > Duration::from_secs(86_400 * 365) {
        return Err("a time limit lies between a millisecond and a year".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("3G"), Ok(3 << 30));
        for bad in [
            "",
            "G",
            "-1",
            "4G",
            "1.5M",
            "99999999999999999999",
            "0",
            "16777216T",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(stack("9M").is_err());
        assert_eq!(stack("8128K"), Ok(MAX_STACK_SIZE));
    }

    #[test]
    fn times() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "s", "0", "-1s", "nan", "inf", "1h", "1e30s"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
