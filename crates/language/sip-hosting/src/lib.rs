//! What only hosts of software isolated processes may call.
//!
//! ```text
//!   a process's library ---> mullion-sip (feature `separate`)       what a process may name
//!   a host              ---> mullion-sip-hosting ---> mullion-sip   what a host may name as well
//! ```
//! **No process depends on this crate.** A process's library is built with the feature `separate` of `mullion-sip`, in
//! which the functions of this crate do not exist. So this crate does not compile in such a build, whatever a manifest
//! calls it and however many crates lie between. One build has one `mullion-sip`, because the package has a `links`
//! key.
//!
//! The items are implemented in `mullion-sip`, beside the state that they work with.

#![forbid(unsafe_code)]

mullion_sip::__no_process_depends_on! {"mullion-sip-hosting"}

pub use mullion_sip::__host::{
    ChannelEnd, Critical, DecideError, Decider, Deputy, Host, HostError, Parcel, Refused, Span,
    Start, StartError, Supervised, common_memory, end_as, enter_kernel, enter_kernel_as_host,
    in_use, remote, share,
};
