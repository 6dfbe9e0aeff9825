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
mod admission;
mod alternate;
mod call;
mod cancel;
mod clock;
mod control;
mod dispatch;
mod domain;
mod error;
mod fault;
mod gates;
mod image;
mod invoke;
mod kinds;
mod life;
mod limits;
mod link;
mod memory;
mod meter;
mod nesting;
mod news;
mod packed;
mod presence;
mod quiet;
mod records;
#[cfg(test)]
mod refusals;
mod regions;
mod reserve;
mod runtime;
mod sealed;
mod shared;
mod signals;
mod stacks;
mod steps;
mod thread_end;
mod trampoline;
mod watchdog;
mod window;
mod x87;

pub use admission::is_inside;
pub use call::{Arguments, CallError, MAX_ARGUMENTS, Returned};
pub use cancel::Canceller;
pub use clock::Clock;
pub use control::{MAX_CONTROL_STACK, abandon_thread, check_thread, leave_thread, prepare_thread};
pub use dispatch::{Caller, End, HostFunction};
pub use domain::{Domain, DomainNumber, Entry};
pub use error::Error;
pub use fault::{Attempt, Cause, Fault, INNERMOST, OUTERMOST, REGISTER_NAMES, Registers};
pub use image::{FloatingPoint, Image, Relocation, Segment};
pub use kinds::{FaultKind, LimitKind};
pub use limits::{CallLimits, Limits};
pub use link::{Failed, LinkOptions, Linked};
pub use memory::{BadAddress, Claimed, MappingError, Memory, Piece};
pub use meter::{Counts, Meter};
pub use news::until;
pub use presence::{Changing, Closed, Used, Using};
pub use quiet::quietly;
pub use records::{PageTables, books, snapshot, start_audit};
pub use shared::{ShareError, Shared};
pub use stacks::{MAX_STACK_SIZE, MAX_STACKS};
pub use thread_end::{AroundThreadEnd, THREAD_END, THREAD_ENDS};
pub use watchdog::TICK;
pub use window::{Access, PAGE};
