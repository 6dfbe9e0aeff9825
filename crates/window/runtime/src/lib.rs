//! Windows, stacks, gates, faults and limits: the only crate with assembly.
//!
//! An [`ImageLayout`] is verified code, laid out once. A [`WindowDomain`] is an image in a
//! window of its own. [`WindowDomain::call`] runs one of its functions on the calling
//! thread; the function may call back the host functions that the domain was
//! given and nothing else. Whatever it does wrong ends that invocation alone,
//! with a [`RawFault`].
//!
//! Read `trampoline.s` first: it is the contract between the two sides.
//!
//! What the host must know: the run time owns the `%gs` base of the threads that enter domains. It
//! handles SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP in front of the host's own handlers. It uses
//! one free real-time signal for time limits. A signal handler must not enter a domain, and in the
//! child of a `fork` no domain may be entered.

mod access;
mod account;
mod admission;
mod alternate;
mod assembly;
mod attach;
mod barrier;
mod call;
mod caller;
mod cancel;
mod clock;
mod control_stack;
mod deadline;
mod dispatch;
mod domain;
mod enter;
mod explain;
mod fault_record;
mod frame;
mod frames;
mod gates;
mod granted;
mod host_call;
mod host_function;
mod image;
mod import;
mod inner;
mod invoke;
mod leases;
mod life;
mod limits;
mod link;
mod memory;
mod nesting;
mod news;
mod number;
mod object;
mod other_wall;
mod packed;
mod presence;
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
mod tcb;
mod thread_end;
mod time_signal;
mod trampoline;
mod watchdog;
mod window;
mod x87;

pub use access::{Access, PAGE};
pub use admission::is_inside;
pub use attach::{abandon_thread, check_thread, leave_thread, prepare_thread};
pub use call::{AroundThreadEnd, CallArguments, Entry, MAX_ARGUMENTS, Returned};
pub use cancel::Canceller;
pub use clock::{Clock, TICK};
pub use control_stack::MAX_CONTROL_STACK;
pub use domain::WindowDomain;
pub use host_function::{GateCall, HostFunction};
pub use image::{FloatingPoint, ImageLayout, Relocation, Segment};
pub use import::{Failed, LinkOptions, Linked};
pub use limits::{CallLimits, Limits};
pub use memory::{BadAddress, Claimed, Memory, Piece};
pub use mullion_report::error::Error;
pub use mullion_report::fault::{
    Attempt, Cause, INNERMOST, OUTERMOST, REGISTER_NAMES, RawFault, Registers,
};
pub use mullion_report::kinds::{FaultKind, LimitKind};
pub use mullion_report::meter::{Counts, Meter};
pub use mullion_report::refused::{CallEnd, CallError, MappingError, ShareError};
pub use mullion_signals::quietly;
pub use news::until;
pub use number::DomainNumber;
pub use presence::{Changing, Closed, Used, Using};
pub use records::{PageTables, snapshot, start_audit, supervisor};
pub use shared::SharedPages;
pub use stacks::{MAX_STACK_SIZE, MAX_STACKS};
pub use thread_end::{THREAD_END, THREAD_ENDS};
