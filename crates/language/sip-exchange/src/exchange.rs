//! The exchange heap: blocks that move between processes by pointer.
//!
//! ```text
//!   one reservation of address space, aligned to its size
//!   ├─ records   32 bytes for each block that there could be: links, owner, ...
//!   ├─ ledgers   what each owner holds and may hold
//!   └─ blocks    one span for each size, 64 bytes to 128 MiB
//! ```
//! Everything the heap itself relies on is in the records, apart from the blocks: what a peer may write is
//! payload only. A block's size and record follow from its address by arithmetic.
//!
//! **Owners.** Every block is on the list of its owner, inner blocks of a tree as well. So the end of a
//! process frees each of its blocks once, at a cost in their number alone. It also frees those that it has
//! leaked (`mem::forget`) or hung into a tree somewhere. Only the owner's worker touches a list. A sent block
//! leaves the sender's list on the sender's worker and joins the receiver's on the receiver's. In between it
//! is on none, and is found through the queue it waits in. So no list needs a lock or an atomic operation.
//! The price is that a tree is visited, node by node, when it is sent and received. It is not copied. The
//! visit has no recursion, so a deep tree costs no stack. A message of one block costs two unlinks and two
//! links. An owner's latest block waits beside its list, so that what is sent on or dropped at once needs
//! neither.
//!
//! **Limits.** What a process holds counts against its share; what it has sent counts until its peer answers,
//! so that a queue is nobody's hiding place.

pub use block::ExBox;
pub use error::{HeapError, Share};
pub use sendable::{Exchange, Handles};
pub use shape::Shape;
pub use text::{ExString, NotText};
pub use vector::ExVec;

pub(crate) mod accounts;
mod block;
pub(crate) mod blocks;
pub(crate) mod census;
mod claim;
pub(crate) mod coding;
#[cfg(feature = "separate")]
pub(crate) mod common_memory;
#[cfg(not(feature = "separate"))]
pub mod common_memory;
mod credit;
pub(crate) mod ends;
mod error;
mod given;
pub(crate) mod ledger;
pub(crate) mod life;
mod pages;
pub(crate) mod parcel;
pub(crate) mod region;
pub(crate) mod sendable;
pub(crate) mod shape;
pub(crate) mod sizes;
mod table;
mod text;
mod values;
mod vector;
pub(crate) mod visitor;
pub(crate) mod walk;
pub(crate) mod worker;

pub use census::{Census, census};

/// Values as bytes, for a peer that shares no exchange heap: an OS process of its own.
pub mod wire {
    pub use super::coding::{
        BLOCKS, COPIED, Copied, DEPTH, Decode, DecodeError, ENDS, Encode, EncodeError, Reader,
        Step, Wire, Writer,
    };
    pub use super::values::{from_bytes, to_bytes};
}
