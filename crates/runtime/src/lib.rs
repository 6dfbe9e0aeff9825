//! Windows, stacks, gates, faults and limits: the only crate with assembly.
//!
//! An [`Image`] is verified code, laid out once. A [`Domain`] is an image in a
//! window of its own. [`Domain::call`] runs one of its functions on the calling
//! thread; the function may call back the host functions that the domain was
//! given and nothing else. Whatever it does wrong ends that invocation alone,
//! with a [`Fault`].
//!
//! Read `trampoline.s` first: it is the contract between the two sides.
//!
//! What the host must know: the run time owns the `%gs` base of the threads that
//! enter domains, handles SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP in front
//! of the host's own handlers, and uses one free real-time signal for time
//! limits. A signal handler must not enter a domain, and in the child of a
//! `fork` no domain may be entered.

mod account;
mod call;
mod control;
mod dispatch;
mod domain;
mod error;
mod fault;
mod gates;
mod image;
mod invoke;
mod limits;
mod link;
mod memory;
mod presence;
mod records;
mod regions;
mod runtime;
mod sealed;
mod shared;
mod signals;
mod stacks;
mod thread_end;
mod trampoline;
mod watchdog;
mod window;

pub use call::{Arguments, CallError, MAX_ARGUMENTS, Returned};
pub use control::MAX_CONTROL_STACK;
pub use dispatch::{Caller, End, HostFunction};
pub use domain::{Domain, DomainNumber, Entry};
pub use error::Error;
pub use fault::{Attempt, Cause, Fault, INNERMOST, OUTERMOST, REGISTER_NAMES, Registers};
pub use image::{FloatingPoint, Image, Relocation, Segment};
pub use limits::{CallLimits, Limits};
pub use link::{Failed, LinkOptions, Linked};
pub use memory::{BadAddress, Claimed, MappingError, Memory, Piece};
pub use presence::{Changing, Used, Using};
pub use records::{PageTables, books, snapshot};
pub use shared::{ShareError, Shared};
pub use stacks::{MAX_STACK_SIZE, MAX_STACKS};
pub use thread_end::{AroundThreadEnd, THREAD_END, THREAD_ENDS};
pub use watchdog::TICK;
pub use window::{Access, PAGE};
