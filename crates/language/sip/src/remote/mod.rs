//! Channels between OS processes, by way of memory that both have mapped.
//!
//! ```text
//!   upstream    names of this OS process, for others
//!   hand_over   endpoints that leave in messages       arrivals       and that come
//!   travel      from one line to another
//!   bridge      a local channel at each side, joined   worker_lines   what a worker hears
//!   line        the messages in shared memory          link           two OS processes, and their bells
//!   memory      mapped files that cannot shrink        bell           a word to sleep on
//!   turn        a bridge is used by one thread at a time
//! ```
//! Nothing that the other side writes is trusted: see [`mullion_sip_exchange::exchange::wire`] for what messages are made of.

pub use bridge::{JoinError, join};
pub use fault::{Fault, PENDING, Reporter};
pub use hand_over::{Carrier, Offer, Passage, Peer, WINDOW, begin_hand_over, carry, given};
pub use line::{ARENA, line_bytes};
pub use link::{LINK_BYTES, Link, Path, refuse};
pub use memory::Memory;
pub use upstream::{Elsewhere, Place, Upstream, accept, bind_elsewhere, place_of};
pub use worker_lines::{LineMemory, line_memory, lines};

mod arrivals;
mod bell;
mod bridge;
mod fault;
mod hand_over;
mod head;
mod line;
mod link;
mod memory;
mod travel;
mod turn;
mod upstream;
mod worker_lines;
