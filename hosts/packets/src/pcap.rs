//! Files of captured frames, as tcpdump writes and reads them: the classic format, Ethernet only.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;
use thiserror::Error;

/// Longest frame that is read.
pub const LONGEST: usize = 256 << 10;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;

/// Why a file is not read.
#[derive(Debug, Error)]
pub enum PcapError {
    /// The system.
    #[error("it cannot be read: {0}")]
    System(#[from] io::Error),
    /// Another format.
    #[error(
        "it is no capture in the classic format of pcap; `tcpdump -r FILE -w OTHER` writes one"
    )]
    Format,
    /// Not Ethernet.
    #[error("its frames are of the link type {0}; only Ethernet (1) is taken")]
    Link(u32),
    /// Damaged.
    #[error("frame {0} is cut off, or longer than {LONGEST} bytes")]
    Damaged(u64),
}

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Since 1970.
    pub time: Duration,
    /// Bytes that it had.
    pub original: u32,
    /// Those that are there.
    pub bytes: Vec<u8>,
}

/// Reads frames, one after the other.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    is_big: bool,
    has_nanoseconds: bool,
    read: u64,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// As [`PcapError`] lists.
    pub fn new(mut from: R) -> Result<Reader<R>, PcapError> {
        let mut header = [0; 24];
        from.read_exact(&mut header)
            .map_err(|_| PcapError::Format)?;
        let (little, big) = (number(&header, 0, false), number(&header, 0, true));
        let is_big = [MICROSECONDS, NANOSECONDS].contains(&big);
        let magic = if is_big { big } else { little };
        if ![MICROSECONDS, NANOSECONDS].contains(&magic) {
            return Err(PcapError::Format);
        }
        match number(&header, 20, is_big) {
            ETHERNET => Ok(Reader {
                from,
                is_big,
                has_nanoseconds: magic == NANOSECONDS,
                read: 0,
            }),
            other => Err(PcapError::Link(other)),
        }
    }

    fn frame(&mut self) -> Result<Option<Captured>, PcapError> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.read += 1;
        let damaged = PcapError::Damaged(self.read);
        let mut header = [0; 16];
        if self.from.read_exact(&mut header).is_err() {
            return Err(damaged);
        }
        let at = |at| number(&header, at, self.is_big);
        let (seconds, parts, length, original) = (at(0), at(4), at(8), at(12));
        if length as usize > LONGEST {
            return Err(damaged);
        }
        let mut bytes = Vec::new();
        self.from
            .by_ref()
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(damaged);
        }
        let nanoseconds = u64::from(parts) * if self.has_nanoseconds { 1 } else { 1000 };
        Ok(Some(Captured {
            time: Duration::from_secs(seconds.into()) + Duration::from_nanos(nanoseconds),
            original,
            bytes,
        }))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Captured, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frame().transpose()
    }
}

fn number(bytes: &[u8], at: usize, is_big: bool) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
    let field = field.unwrap_or_default();
    match is_big {
        true => u32::from_be_bytes(field),
        false => u32::from_le_bytes(field),
    }
}

/// Writes frames, with times to the nanosecond.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The system's.
    pub fn new(mut to: W) -> io::Result<Writer<W>> {
        to.write_all(&NANOSECONDS.to_le_bytes())?;
        to.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        to.write_all(&(LONGEST as u32).to_le_bytes())?;
        to.write_all(&ETHERNET.to_le_bytes())?;
        Ok(Writer(to))
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        for field in [time.as_secs() as u32, time.subsec_nanos(), length, length] {
            self.0.write_all(&field.to_le_bytes())?;
        }
        self.0.write_all(frame)
    }

    /// Writes out what waits.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in prop::collection::vec((any::<u32>(), 0u32..1_000_000_000, prop::collection::vec(any::<u8>(), 0..100)), 0..10)) {
            let mut writer = Writer::new(Vec::new()).unwrap();
            for (seconds, parts, bytes) in &frames {
                writer.write(Duration::new((*seconds).into(), *parts), bytes).unwrap();
            }
            let file = writer.finish().unwrap();
            let read: Vec<Captured> = Reader::new(&file[..]).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), frames.len());
            for (read, (seconds, parts, bytes)) in read.iter().zip(&frames) {
                prop_assert_eq!(read.time, Duration::new((*seconds).into(), *parts));
                prop_assert_eq!(&read.bytes, bytes);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), is_capture in any::<bool>()) {
            if is_capture && bytes.len() >= 24 {
                bytes[..4].copy_from_slice(&NANOSECONDS.to_le_bytes());
                bytes[20..24].copy_from_slice(&1u32.to_le_bytes());
            }
            if let Ok(reader) = Reader::new(&bytes[..]) {
                for frame in reader.take(100) {
                    if frame.is_err() {
                        break;
                    }
                }
            }
        }
    }
}
