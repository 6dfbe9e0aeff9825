//! Text files that people write, read up to a bound: a device has no end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

pub use mullion_wire::text::shortened;

/// The largest text that [`read`] takes, in bytes: 64 MiB.
pub const LARGEST: u64 = 64 << 20;

/// The whole file: a policy, a credential, a record, a list of keys.
///
/// # Errors
/// What the system says; [`ErrorKind::FileTooLarge`] beyond [`LARGEST`]; or it is not UTF-8.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    within(File::open(path)?, LARGEST)
}

/// As [`read`], of any bytes.
///
/// # Errors
/// As [`read`], but for UTF-8.
pub fn read_bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    bytes_within(File::open(path)?, LARGEST)
}

/// Everything that comes, if it is at most `limit` bytes.
///
/// # Errors
/// As [`read`].
pub fn within(from: impl Read, limit: u64) -> io::Result<String> {
    let bytes = bytes_within(from, limit)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "not UTF-8"))
}

fn bytes_within(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("larger than {limit} bytes, the limit for a text of this kind"),
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_limit_is_taken_and_one_byte_more_is_not() {
        assert_eq!(within(&b"four"[..], 4).expect("four bytes"), "four");
        let error = within(&b"fives"[..], 4).expect_err("five bytes");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read("/dev/zero").expect_err("no end");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
