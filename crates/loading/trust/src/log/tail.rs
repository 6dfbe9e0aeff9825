//! The end of a log, read backwards, whatever stands there: lines of any length, or none.

use super::{Head, LogError};
use crate::record::Sha256Digest;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at a time.
const BLOCK: u64 = 64 << 10;
/// Bytes that the beginning of a line takes, up to its event: two numbers and a digest.
const BEGINNING: u64 = 160;

/// The last whole line.
pub(super) struct LastLine {
    /// Its number, from 0.
    pub(super) seq: u64,
    /// The digest of the line before, as it says.
    pub(super) prev: String,
    /// Its own digest.
    pub(super) digest: String,
    /// Its bytes, without the newline.
    pub(super) length: u64,
}

impl LastLine {
    /// The head of a log that ends with it.
    pub(super) fn head(&self) -> Head {
        Head {
            lines: self.seq + 1,
            last: self.digest.clone(),
        }
    }
}

/// Bytes of whole lines: up to and with the last newline before `end`.
pub(super) fn whole_length(file: &File, end: u64) -> io::Result<u64> {
    let mut block = [0; BLOCK as usize];
    let mut end = end;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let piece = &mut block[..(end - start) as usize];
        file.read_exact_at(piece, start)?;
        if let Some(index) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + index as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The SHA-256 of the bytes from `start` to `end`, in hexadecimal.
pub(super) fn digest(file: &File, start: u64, end: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut block = [0; BLOCK as usize];
    let mut at = start;
    while at < end {
        let length = (end - at).min(BLOCK);
        let piece = &mut block[..length as usize];
        file.read_exact_at(piece, at)?;
        hash.update(piece);
        at += length;
    }
    Ok(Sha256Digest::from_bytes(hash.finalize().into()).to_string())
}

/// The line that ends, with its newline, at `end`.
pub(super) fn last_line(
    file: &File,
    end: u64,
    io: impl Fn(io::Error) -> LogError,
) -> Result<Option<LastLine>, LogError> {
    let Some(stop) = end.checked_sub(1) else {
        return Ok(None);
    };
    let start = whole_length(file, stop).map_err(&io)?;
    let mut beginning = vec![0; (stop - start).min(BEGINNING) as usize];
    file.read_exact_at(&mut beginning, start).map_err(&io)?;
    let (seq, prev) = parts(&beginning).ok_or(LogError::LastLine)?;
    Ok(Some(LastLine {
        seq,
        prev,
        digest: digest(file, start, stop).map_err(&io)?,
        length: stop - start,
    }))
}

/// Number and link of a line, from its beginning in the one spelling that lines have.
fn parts(beginning: &[u8]) -> Option<(u64, String)> {
    let text = beginning.strip_prefix(b"{\"seq\":")?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, text) = text.split_at(digits);
    let text = text.strip_prefix(b",\"prev\":\"")?;
    let (prev, text) = text.split_at_checked(64)?;
    text.strip_prefix(b"\",\"time\":")?;
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((number, std::str::from_utf8(prev).ok()?.to_owned()))
}
