//! Reading a trace, block by block.

use super::codec::Decoder;
use super::event::TraceEvent;
use super::{
    BLOCK_MARK, END_MARK, Header, MAGIC, MAX_BLOCK_BYTES, MAX_NOTE_BYTES, TraceError, VERSION,
};
use std::io::{ErrorKind, Read};

/// Reads a trace from anything that gives bytes.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    header: Header,
    payload: Vec<u8>,
    /// Bytes read so far.
    at: u64,
    blocks: u64,
    events: u64,
    ended: bool,
}

/// The events of one block, whose checksum is right.
#[derive(Debug)]
pub struct TraceBlock<'a> {
    payload: &'a [u8],
    /// Where its events begin in the file.
    at: u64,
    address_bits: u32,
    number: u64,
    events: u32,
}

impl<'a> TraceBlock<'a> {
    /// How many events the block says it has.
    pub fn len(&self) -> u32 {
        self.events
    }

    /// Never: a block has an event.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// The events, in order; after an error nothing more.
    pub fn events(&self) -> TraceEvents<'a> {
        TraceEvents {
            decoder: Decoder::new(self.payload, self.address_bits),
            block: self.number,
            at: self.at,
            left: self.events,
            bytes: self.payload.len(),
        }
    }
}

/// The events of a block, one after another.
#[derive(Debug)]
pub struct TraceEvents<'a> {
    decoder: Decoder<'a>,
    block: u64,
    /// Where the block's events begin in the file.
    at: u64,
    left: u32,
    bytes: usize,
}

impl Iterator for TraceEvents<'_> {
    type Item = Result<TraceEvent, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let at = self.decoder.at();
        self.left -= 1;
        match self.decoder.event() {
            Ok(event) if self.left > 0 || self.decoder.at() == self.bytes => Some(Ok(event)),
            Ok(_) => Some(Err(self.fail(self.decoder.at(), "more bytes than events"))),
            Err(what) => Some(Err(self.fail(at, what))),
        }
    }
}

impl TraceEvents<'_> {
    /// The byte of the file at which the next event begins.
    #[inline]
    pub fn position(&self) -> u64 {
        self.at + self.decoder.at() as u64
    }

    #[cold]
    fn fail(&mut self, at: usize, what: &'static str) -> TraceError {
        self.left = 0;
        TraceError::Event {
            block: self.block,
            at,
            what,
        }
    }
}

impl<R: Read> TraceReader<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<Self, TraceError> {
        let mut reader = TraceReader {
            input,
            header: Header {
                address_bits: 0,
                note: String::new(),
            },
            payload: Vec::new(),
            at: 0,
            blocks: 0,
            events: 0,
            ended: false,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next block, or nothing when the end has been read and found right.
    pub fn next_block(&mut self) -> Result<Option<TraceBlock<'_>>, TraceError> {
        if self.ended {
            return Ok(None);
        }
        let begin = self.at;
        let mut head = [0; 16];
        self.fill(&mut head[..4])?;
        match word(&head, 0) {
            BLOCK_MARK => {}
            END_MARK => {
                self.read_end()?;
                return Ok(None);
            }
            _ => return Err(self.damaged(begin, "it has no mark")),
        }
        self.fill(&mut head[4..])?;
        let (bytes, events) = (word(&head, 4), word(&head, 8));
        if bytes > MAX_BLOCK_BYTES || events == 0 || events > bytes {
            return Err(self.damaged(begin, "its lengths are impossible"));
        }
        self.payload.resize(bytes as usize, 0);
        let mut payload = std::mem::take(&mut self.payload);
        let filled = self.fill(&mut payload);
        self.payload = payload;
        filled?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head[..12]);
        sum.update(&self.payload);
        if sum.finalize() != word(&head, 12) {
            return Err(self.damaged(begin, "its checksum is wrong"));
        }
        let number = self.blocks;
        self.blocks += 1;
        self.events += u64::from(events);
        Ok(Some(TraceBlock {
            payload: &self.payload,
            at: begin + 16,
            address_bits: self.header.address_bits,
            number,
            events,
        }))
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        let mut head = vec![0; 16];
        match self.fill(&mut head[..8]) {
            Err(TraceError::Truncated { at: 0 }) => return Err(TraceError::Empty),
            Err(TraceError::Truncated { at }) if head[..at as usize] != MAGIC[..at as usize] => {
                return Err(TraceError::NotATrace);
            }
            other => other?,
        }
        if head[..8] != MAGIC {
            return Err(TraceError::NotATrace);
        }
        self.fill(&mut head[8..])?;
        let version = u16::from_le_bytes([head[8], head[9]]);
        if version != VERSION {
            return Err(TraceError::Version { found: version });
        }
        let header = |what| TraceError::Header { what };
        let note_bytes = word(&head, 12) as usize;
        if note_bytes > MAX_NOTE_BYTES {
            return Err(header("its note is too long"));
        }
        head.resize(16 + note_bytes, 0);
        self.fill(&mut head[16..])?;
        let mut sum = [0; 4];
        self.fill(&mut sum)?;
        if crc32fast::hash(&head) != u32::from_le_bytes(sum) {
            return Err(header("its checksum is wrong"));
        }
        let address_bits = u32::from(head[10]);
        if !(20..=56).contains(&address_bits) {
            return Err(header("addresses have 20 to 56 bits"));
        }
        if head[11] != 0 {
            return Err(header("it has flags that this version does not know"));
        }
        let note = String::from_utf8(head.split_off(16));
        self.header = Header {
            address_bits,
            note: note.map_err(|_| header("its note is not UTF-8"))?,
        };
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), TraceError> {
        let end = |what| TraceError::End { what };
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&END_MARK.to_le_bytes());
        self.fill(&mut bytes[4..])?;
        if crc32fast::hash(&bytes[..20]) != word(&bytes, 20) {
            return Err(end("its checksum is wrong"));
        }
        let long = |at| u64::from(word(&bytes, at)) | u64::from(word(&bytes, at + 4)) << 32;
        if (long(4), long(12)) != (self.blocks, self.events) {
            return Err(end("blocks are missing, doubled or of another trace"));
        }
        if self.events == 0 {
            return Err(TraceError::Empty);
        }
        if self.input.read(&mut [0])? != 0 {
            return Err(end("something follows it"));
        }
        self.ended = true;
        Ok(())
    }

    fn damaged(&self, at: u64, what: &'static str) -> TraceError {
        TraceError::Damaged {
            block: self.blocks,
            at,
            what,
        }
    }

    fn fill(&mut self, mut room: &mut [u8]) -> Result<(), TraceError> {
        while !room.is_empty() {
            match self.input.read(room) {
                Ok(0) => return Err(TraceError::Truncated { at: self.at }),
                Ok(count) => {
                    self.at += count as u64;
                    room = &mut room[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
