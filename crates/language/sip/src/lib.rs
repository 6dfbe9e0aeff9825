//! Software isolated processes: many small processes in one address space, separated by the language instead of the
//! MMU. They talk only over typed channels (*Deconstructing Process Isolation*, section 2).
//!
//! ```text
//!   channel/   endpoints whose contract is a state machine        wait, critical, owner only
//!   exchange/  blocks with one owner, that move by pointer        wait, critical, owner only
//!   ------------------------------------------------------------- the seam: wait.rs, critical.rs, owner.rs
//!   process/   table, limits, kill, restart       thread/  coroutines, scheduler, stacks
//!   heap/      a heap and pages for each process  kernel/  the versioned table of calls
//!   remote/    channels to other OS processes, over shared memory
//!   grant      contracts of what a host may grant: a socket, a directory
//! ```
//! What a process may name is public here. What only a host may call is implemented here too, and public in
//! `mullion-sip-hosting` alone.
//!
//!
//! A process and all its threads live on one worker (an OS thread pinned to one core) and never leave it. So its heap,
//! its threads and the channels within one worker need no atomic operation.

//!
//! A rule for code under `channel/` and `exchange/`: a separately built SIP has its own copy of this crate's statics.
//! So state that all must share hangs on one pointer that the kernel's table hands out. Hot thread-local state is
//! reached through [`wait`] and [`owner`] only.

// A library's copy has all of the kernel, and calls a part of it.
#![cfg_attr(
    feature = "separate",
    allow(dead_code, unused_imports, unreachable_pub)
)]

extern crate self as mullion_sip;

pub mod grant;
mod host;
mod inner;
pub mod kernel;
pub mod manifest;
pub mod process;
mod remote;
pub mod separate;
mod start;
mod state;
#[cfg(not(feature = "separate"))]
mod supervised;

#[cfg(not(feature = "separate"))]
#[doc(hidden)]
#[path = "hosting.rs"]
pub mod __host;

/// Crates for hosts begin with it, so that a process's build ends with a sentence.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "separate")]
macro_rules! __no_process_depends_on {
    ($name:literal) => {
        compile_error!(concat!(
            $name,
            " is for hosts: no library of a process can depend on it (mullion-sip has the feature `separate` in this build)"
        ));
    };
}

/// Nothing, in a host's build.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "separate"))]
macro_rules! __no_process_depends_on {
    ($name:literal) => {};
}

#[doc(hidden)]
pub use mullion_sip_core as __core;
pub use mullion_sip_core::{heap, owner, thread, wait};
pub use mullion_sip_digest::{Digest, Hasher};
#[doc(hidden)]
pub use mullion_sip_exchange::__private;
pub use mullion_sip_exchange::{ExBox, ExString, ExVec, Exchange, channel, contract, exchange};
