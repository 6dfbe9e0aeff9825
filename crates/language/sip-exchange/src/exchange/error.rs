//! What an owner may hold, and why a value is refused.

use mullion_sip_core::Refused;

use super::sizes;

/// Why a block was not to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeapError {
    /// The owner's share is used up.
    #[error(
        "the process holds {held} of {limit} bytes in the exchange heap; {wanted} more were asked for"
    )]
    Limit {
        /// Bytes that it holds, and has sent without an answer.
        held: u64,
        /// Bytes that it may hold.
        limit: u64,
        /// Bytes asked for, as the heap rounds them up.
        wanted: u64,
    },
    /// More than the largest block.
    #[error("{0} bytes are more than the largest block of the exchange heap ({largest})", largest = sizes::LARGEST)]
    TooLarge(usize),
    /// Whoever decides about the host's processes refuses the ends of a channel.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The span of blocks of this size is full.
    #[error("no more blocks of {0} bytes in the exchange heap")]
    Exhausted(usize),
}

/// What an owner holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Bytes that it holds, and has sent without an answer.
    pub held: u64,
    /// Bytes that it may hold.
    pub limit: u64,
}

/// How deep boxes and vectors may lie in each other: both walks recurse, on a stack of at least 1 MiB.
pub const DEPTH: u32 = 256;
/// Bytes of blocks that one message may unfold into: as many as the largest block has.
pub const BLOCKS: usize = sizes::LARGEST;

/// Endpoints in one message.
pub const ENDS: usize = 1024;

/// Why a value cannot go to another OS process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// More than there is room for.
    #[error(
        "the message is longer than the {0} bytes that a channel between OS processes has room for"
    )]
    TooLong(usize),
    /// More than [`DEPTH`].
    #[error("boxes lie more than {DEPTH} deep in each other")]
    TooDeep,
    /// Endpoints go along with messages only, and not where nobody makes lines for them.
    #[error(
        "an endpoint cannot go there: it is no message, or nobody makes channels between these OS processes"
    )]
    Endpoint,
    /// More than [`ENDS`].
    #[error("the message has more than {ENDS} endpoints")]
    TooManyEnds,
}

/// What is wrong with bytes that a peer in another OS process has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// They end within a value.
    #[error("the message ends within a value")]
    Short,
    /// They go on behind the last value.
    #[error("{0} bytes follow the message")]
    Long(usize),
    /// No such value.
    #[error("the bytes are no {0}")]
    Invalid(&'static str),
    /// More than [`DEPTH`].
    #[error("boxes lie more than {DEPTH} deep in each other")]
    TooDeep,
    /// More blocks than [`BLOCKS`].
    #[error("the message asks for more than {BLOCKS} bytes of blocks")]
    TooLarge,
    /// More endpoints than [`ENDS`].
    #[error("the message has more than {ENDS} endpoints")]
    TooManyEnds,
    /// No block is to be had.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// The pages of a block that has come cannot be opened: there are too many mappings.
    #[error("Linux refuses the pages of a block: too many mappings (vm.max_map_count)")]
    Refused,
}
