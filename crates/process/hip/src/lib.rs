//! Hardware isolated processes: the same processes as of [`mullion_sip`], unchanged, in OS processes of their
//! own, with no powers beyond their channels (*Deconstructing Process Isolation*, section 2.4).
//!
//! ```text
//!   host ------------ control socket ------------ domain "disk" (an OS process: seccomp, Landlock, no files)
//!    | names: who has bound what, who may             | its own kernel: workers, heaps, names
//!    | lives: started, watched, ended                 | its processes
//!    +------------ control socket ------------ domain "net"
//!                                                     |
//!              "net" and "disk" share memory for their channels; the host is not in between
//! ```
//! A program that launches domains calls [`enter`] first thing in `main`: [`launch`] runs the program again, and
//! there it does not return. What the host holds of a domain is a process of its own like any other. It is a
//! [`Child`](mullion_sip::process::Child) that ends as the domain has ended, by whatever signal. So kills, waits
//! and restarts need nothing new. A domain of [`launch_idle`] has its members begun and ended one by one.

pub use child::{Member, enter};
pub use decide::{Decider, Pair, Supervised};
pub use files::{contents, sealed};
pub use host::{
    FILES, Launch, LaunchError, Listener, Notice, Output, launch, launch_idle, on_notice,
};
pub use lives::{DomainView, EndSeen, Idle, Life, Seen};
pub use memory::{LineSeen, MemorySeen, PieceSeen};
pub use message::LifeSeen;
pub use mullion_closed::{Call, DOMAIN_CALLS, When};
pub use mullion_sip_hosting::common_memory::Sharing;
pub use output::{OUTPUT_BURST, OUTPUT_RATE};
pub use registry::{Group, decided_by, groups};
pub use reports::REPORTS;
pub use sandbox::{Sandbox, sandbox_of_this_kernel};

mod child;
mod control;
mod decide;
mod endpoints;
mod files;
mod host;
#[cfg(test)]
mod hostile;
mod lives;
mod members;
mod memory;
mod message;
mod output;
#[cfg(test)]
#[path = "../../../language/sip/tests/host/mod.rs"]
mod power;
mod registry;
mod reports;
mod sandbox;
mod system;
mod upstream;
