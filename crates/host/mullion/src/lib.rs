//! Load native extensions behind a wall, and call them.
//!
//! An [`Image`] is an extension's code, verified: it cannot leave its window of
//! the address space. A [`Domain`] is an image in a window of its own, with its own
//! memory and stacks, and the host's functions that its [`Imports`] list. Its
//! exports are called as typed [`Function`]s; what it does wrong ends that call
//! alone, with an [`Error::Fault`].
//!
//! ```no_run
//! use mullion::{Caller, DomainMemory, Error, Image, Imports, Ptr};
//!
//! let image = Image::open("sum.mx")?;
//! let imports = Imports::new().function("log", |caller: &Caller<'_>, message: Ptr<u8>| {
//!     println!("{}", message.string(caller, 1000)?);
//!     Ok::<(), Error>(())
//! });
//! let domain = image.domain().imports(imports).load()?;
//!
//! let sum = domain.function::<fn(Ptr<u32>, u64) -> u64>("sum")?;
//! let numbers = domain.copy_in(&[1u32, 2, 3])?;
//! match sum.call(numbers.ptr(), numbers.len()) {
//!     Ok(total) => println!("{total}"),
//!     Err(Error::Fault(fault)) => {
//!         println!("{fault}");
//!         domain.restart()?;
//!     }
//!     Err(other) => return Err(other),
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! # Why a host in safe Rust cannot be harmed
//!
//! - This crate has no `unsafe` code. What it stands on is argued in
//!   `mullion-runtime` and `mullion-verifier`. Whoever gives the host an
//!   `Authoriser` whose policy trusts a compiler in the verifier's place takes its
//!   word for all of what follows ([`Image::is_verified`] tells).
//! - **No reference into a domain is ever made.** The domain's threads may write
//!   any of its bytes at any time. A [`Ptr`] is a number; [`Slice`] and [`Buffer`] copy.
//! - **What comes out is a value whatever its bits are**: integers, floating-point
//!   numbers, `bool` by comparison with 0, [`Data`] by `zerocopy`'s rules. Lengths
//!   and indices are checked against what was checked, not against what the domain
//!   says now.
//! - **A wrong type is not unsound.** Which type an export has cannot be known;
//!   the domain finds other numbers in its registers, and its walls hold for any.
//! - **A domain stays while it is used.** Calls, slices and accesses keep it in place
//!   (`mullion_runtime::Used`); [`Domain::restart`] and [`Domain::unload`] need it alone
//!   and are refused otherwise, at once, so that they cannot deadlock either.
//! - **Host functions** get a [`Caller`] for the time of the call and cannot keep it.
//!   Their panics do not pass through the domain: they go on behind it.
//!
//! # Features
//!
//! - `trust` (on by default): `HostBuilder::authoriser`, with policies, credentials and
//!   compilation records. Without it a host has no cryptography in it.
//! - `rsa` and `passphrases` (on by default): signatures of other KeyNote implementations, and
//!   secret keys under a passphrase. Both need `trust`.
//! - `debug-information` (on by default): lines and inlined functions in the reports of faults, and the comparison
//!   of exports' types. Without it nothing reads what an image's author wrote but the table of names, and
//!   an export's type is unknown. [`HostBuilder::debug_information`] decides the same at run time.
//!
//! A domain can still use up the memory, time and calls it was granted. It can return wrong numbers, call host
//! functions with any arguments in any order. In
//! `write-call` protection it can read the host's memory; the default confines
//! reads.
#![forbid(unsafe_code)]

/// The code of the guide is compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/host-rust.md")]
mod guide {}

mod access;
mod arity;
mod buffer;
mod builder;
mod call;
mod callback;
mod callee;
mod caller;
mod context;
mod domain;
mod domain_memory;
mod error;
mod explain;
mod export;
mod fault;
mod function;
mod gate;
mod grant;
mod heap;
mod held;
mod host;
mod identity;
mod image;
mod import;
mod link;
mod live;
mod metrics;
mod output;
mod perf;
mod pointer;
mod policy;
mod pool;
mod program;
mod records;
mod shared;
mod signature;
mod state;
mod symbols;
mod target;
mod terms;
mod threads;
mod value;

pub use buffer::Buffer;
pub use builder::DomainBuilder;
pub use call::Call;
pub use callback::Callback;
pub use callee::Callee;
pub use caller::Caller;
pub use domain::Domain;
pub use domain_memory::DomainMemory;
pub use error::{BoxedError, Error};
pub use export::Export;
pub use fault::{Fault, Frame};
pub use function::Function;
pub use held::Held;
pub use host::{Host, HostBuilder};
pub use identity::Identity;
pub use image::Image;
pub use import::{Answer, Imports, IntoImport, RawArguments, RawResult};
pub use link::Link;
pub use live::{Live, LiveFunction};
pub use metrics::{Metrics, log_metrics, metrics, prometheus};
#[cfg(feature = "trust")]
pub use mullion_loader::{Asked, Authoriser};
/// The `Content-Type` of [`prometheus()`].
pub use mullion_metrics::CONTENT_TYPE as PROMETHEUS_TYPE;
/// What [`snapshot`] gives, and pictures of it.
pub use mullion_picture as picture;
pub use mullion_runtime::{
    Access as Permission, Attempt, CallArguments, CallLimits, Canceller, Cause, Clock, Counts,
    FaultKind, LimitKind, Limits, Registers, Returned, ShareError, start_audit,
};
pub use mullion_symbols::{Class, Location, Plain, Unknown as UnknownType};
pub use mullion_system::{Mount, MountError, Stream, Streams};
/// What policies, keys and credentials are made of.
#[cfg(feature = "trust")]
pub use mullion_trust as trust;
pub use pointer::{Character, Data, Ptr, Slice};
pub use policy::{Candidate, Policy, Question, Wish};
pub use pool::{Pool, PoolLimits, PoolStats, Pooled, Renewable};
pub use program::{MAX_PROGRAM_THREADS, Program, ProgramBuilder, ProgramEnd, ProgramRun};
pub use records::{records, snapshot};
pub use shared::Shared;
pub use signature::Signature;
pub use target::Target;
pub use value::{Outcome, Value};
pub use zerocopy;

/// Makes the calling thread ready for calls of domains, as its first call does. It has an alternate stack for
/// signals, and SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the signal of time limits are open.
///
/// A thread needs this only if it changes either after its first call: if it blocks these signals, or switches its
/// alternate stack off. Destructors of thread-local variables that call a domain need it, too: the standard
/// library has switched the stack off by then.
///
/// # Errors
/// [`Error::Runtime`]: the thread is in a signal's handler, or the kernel refuses.
pub fn prepare_thread() -> Result<(), Error> {
    Ok(mullion_runtime::prepare_thread()?)
}

/// Whether the host functions that run on this thread are still there. This is for a library over this one that
/// keeps something of theirs on its stack, and is called by C.
///
/// # Errors
/// [`Error::Abandoned`]: one was left by `longjmp` or the like, and not by its return.
#[inline]
pub fn check_thread() -> Result<(), Error> {
    mullion_runtime::check_thread().map_err(|_| Error::Abandoned)
}

/// Has no domain entered on this thread any more ([`Error::Abandoned`]), if a host function runs on it. This is
/// for a library over this one that sees that the innermost one is being left by `longjmp` or the like.
pub fn abandon_thread() {
    mullion_runtime::abandon_thread();
}
