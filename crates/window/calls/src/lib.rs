//! How a program's calls of the system are answered with what it was granted: Linux' numbers, names, descriptors and
//! structures.
//!
//! A program in a domain asks for system calls through one import, `__mullion_system` (docs/window.md). What is
//! answered stands in one table ([`table`]): each row names the call, the grant that it needs, and why it may be
//! granted. What has no row is answered `ENOSYS`. By default a program has its three streams, memory in its own
//! window, random numbers and its own end; nothing else.
//!
//! This crate is not trusted. It has neither the standard library nor a dependency nor `unsafe`, so it reaches nothing
//! but what a [`Program`] does for it. `crates/window/system` is the one that does it, and checks on each use that
//! it was granted. So the worst that a fault here does is what the program itself might have asked for.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod above;
mod call;
mod descriptor;
mod device;
mod errno;
mod files;
mod handle;
mod limits;
mod locked;
mod locks;
mod memory;
mod names;
mod path;
mod pipe;
mod pipes;
mod poll;
mod process;
mod program;
mod state;
pub mod table;
mod time;

pub use errno::{Answer, CallStop, Errno};
pub use handle::{Handle, STAT};
pub use locked::{FileLock, LockKind};
pub use program::{
    Access, Clocks, Directories, DirectoryEntry, Files, Locks, Memory, Moment, Place, Program,
    Stream, Threads,
};
pub use state::ProgramState;

use call::Call;

/// Answers the call that `program` has just made.
///
/// # Errors
/// What the program is told, or that it ends.
pub fn answer(program: &dyn Program) -> Answer {
    let call = Call::new(program);
    let answer = match table::row_of(call.number()) {
        None => Err(Errno::NOSYS.into()),
        Some(row) if !row.grant.is_given(program) => Err(Errno::PERM.into()),
        Some(row) => (row.function)(&call),
    };
    // A name that leads out of what was granted is, to the program, not there.
    match answer {
        Err(CallStop::Error(Errno::REMOTE)) => Err(Errno::NOENT.into()),
        answer => answer,
    }
}
