//! What `mullion-sip-hosting` gives out. Not for people, and not there in the copy of a process.

pub use crate::host::{Deputy, Host, HostError, enter_kernel, enter_kernel_as_host};
pub use crate::process::program::end_as;
pub use crate::start::{Start, StartError};
pub use crate::supervised::Supervised;
pub use mullion_sip_core::{ChannelEnd, Critical, DecideError, Decider, Refused, Span};
pub use mullion_sip_exchange::interior::Parcel;

use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::owner::Owner;
use mullion_sip_exchange::exchange::Share;

/// Memory that several OS processes have in common.
pub mod common_memory {
    pub use mullion_sip_exchange::exchange::common_memory::*;
}

/// Channels between OS processes, by way of memory that both have mapped.
pub mod remote {
    pub use crate::remote::*;
}

/// What an owner holds, from any thread; for [`Owner::HOST`] the calling thread's own share. Nothing, if the owner's process
/// has ended or has not begun.
pub fn share(owner: Owner) -> Share {
    EXCHANGE.share_of(owner)
}

/// Bytes of all processes' heaps together, exact while no process takes or gives any.
pub fn in_use() -> usize {
    CORE.in_use()
}
