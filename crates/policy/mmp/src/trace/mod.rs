//! The trace format `.mmt`: a header, blocks of events with a checksum each, an end. `docs/trace-format.md`
//! describes it byte by byte.
//!
//! What is read is an allegation. Every length is bounded before it is used, every block is checked before
//! it is decoded. Every event is checked before it is handed on. No input makes the reader panic or
//! take more than two blocks of memory.

mod codec;
pub mod event;
mod reader;
mod writer;

pub use reader::{TraceBlock, TraceEvents, TraceReader};
pub use writer::TraceWriter;

use thiserror::Error;

/// The first eight bytes of a file. The first is not text, the last four show a transfer that changed line
/// ends.
pub const MAGIC: [u8; 8] = *b"\x89MMT\r\n\x1a\n";

/// The version that is written and read.
pub const VERSION: u16 = 1;

/// The most bytes of a block's events.
pub const MAX_BLOCK_BYTES: u32 = 1 << 20;

/// The most bytes of the note in the header.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Before a block.
const BLOCK_MARK: u32 = u32::from_le_bytes(*b"BLK\n");

/// Before the end.
const END_MARK: u32 = u32::from_le_bytes(*b"END\n");

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bits of an address: no event goes beyond. From 20 to 56.
    pub address_bits: u32,
    /// How the trace came to be, for people.
    pub note: String,
}

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("the trace cannot be read")]
    Io(#[from] std::io::Error),
    /// Nothing in the file.
    #[error("the trace is empty: `mullion model synth` makes one")]
    Empty,
    /// Something else than a trace.
    #[error("this is not a trace: it does not begin as a .mmt file does")]
    NotATrace,
    /// A trace of another version.
    #[error("the trace has version {found}, this program reads version {VERSION}: make it again")]
    Version {
        /// What the file says.
        found: u16,
    },
    /// The header is damaged.
    #[error("the trace's header is damaged: {what}")]
    Header {
        /// What is wrong.
        what: &'static str,
    },
    /// The file ends before its end mark.
    #[error("the trace is cut off at byte {at}: its end is missing")]
    Truncated {
        /// The file's length.
        at: u64,
    },
    /// A block's bytes do not have its checksum, or its lengths are impossible.
    #[error("block {block} of the trace, at byte {at}, is damaged: {what}")]
    Damaged {
        /// Counted from 0.
        block: u64,
        /// Where it begins in the file.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A block is whole, but something in it is not an event.
    #[error(
        "block {block} of the trace holds something that is no event, at its byte {at}: {what}"
    )]
    Event {
        /// Counted from 0.
        block: u64,
        /// Offset in the block's events.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The end does not fit what came before it.
    #[error("the trace's end is damaged: {what}")]
    End {
        /// What is wrong.
        what: &'static str,
    },
}
