//! Writing a trace.

use super::codec::{self, Context};
use super::event::TraceEvent;
use super::{BLOCK_MARK, END_MARK, Header, MAGIC, MAX_NOTE_BYTES, VERSION};
use std::io::{self, Write};

/// A block is closed when it has grown to this; the longest event is far shorter than what is left to the
/// limit.
const BLOCK_BYTES: usize = 256 << 10;

/// Writes a trace to anything that takes bytes. [`TraceWriter::finish`] writes the end, without which the trace
/// counts as cut off.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    payload: Vec<u8>,
    context: Context,
    in_block: u32,
    blocks: u64,
    events: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace. A note beyond [`MAX_NOTE_BYTES`] is cut.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        let mut end = header.note.len().min(MAX_NOTE_BYTES);
        while !header.note.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.push(header.address_bits as u8);
        bytes.push(0);
        bytes.extend((end as u32).to_le_bytes());
        bytes.extend(&header.note.as_bytes()[..end]);
        let sum = crc32fast::hash(&bytes);
        bytes.extend(sum.to_le_bytes());
        out.write_all(&bytes)?;
        Ok(TraceWriter {
            out,
            payload: Vec::with_capacity(BLOCK_BYTES + 256),
            context: Context::default(),
            in_block: 0,
            blocks: 0,
            events: 0,
        })
    }

    /// Appends an event.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        codec::encode(&mut self.payload, &mut self.context, event);
        self.in_block += 1;
        if self.payload.len() >= BLOCK_BYTES {
            self.close_block()?;
        }
        Ok(())
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events + u64::from(self.in_block)
    }

    /// Writes the end; gives back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        if self.in_block > 0 {
            self.close_block()?;
        }
        let mut bytes = END_MARK.to_le_bytes().to_vec();
        bytes.extend(self.blocks.to_le_bytes());
        bytes.extend(self.events.to_le_bytes());
        let sum = crc32fast::hash(&bytes);
        bytes.extend(sum.to_le_bytes());
        self.out.write_all(&bytes)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn close_block(&mut self) -> io::Result<()> {
        let mut head = BLOCK_MARK.to_le_bytes().to_vec();
        head.extend((self.payload.len() as u32).to_le_bytes());
        head.extend(self.in_block.to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        sum.update(&self.payload);
        head.extend(sum.finalize().to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(&self.payload)?;
        self.blocks += 1;
        self.events += u64::from(self.in_block);
        self.in_block = 0;
        self.payload.clear();
        self.context = Context::default();
        Ok(())
    }
}
