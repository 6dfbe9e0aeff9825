//! Lines of a file, one at a time, none longer than a bound.

use std::io::{self, BufRead, Read};

/// The most bytes of a line.
pub(super) const MAX_BYTES: usize = 16 << 10;

/// Why there is no next line.
pub(super) enum Failure {
    /// It is longer than [`MAX_BYTES`].
    TooLong,
    /// The system's word.
    Io(io::Error),
}

/// The lines.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines {
            input,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// How many lines were read.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.buffer.clear();
        let mut bounded = (&mut self.input).take(MAX_BYTES as u64 + 1);
        let read = bounded.read_until(b'\n', &mut self.buffer);
        if read.map_err(Failure::Io)? == 0 {
            return Ok(None);
        }
        match self.buffer.last() {
            Some(b'\n') => _ = self.buffer.pop(),
            _ if self.buffer.len() > MAX_BYTES => return Err(Failure::TooLong),
            _ => {}
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        self.number += 1;
        Ok(Some(&self.buffer))
    }
}
