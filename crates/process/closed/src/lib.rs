//! A process that closes itself: it gives its powers up, and Linux ends it for any call that its table does not have.
//!
//! A compiler that reads what a stranger has written keeps its calls, and gives up files and sockets alone (`files.rs`).
//!
//! Two kinds of processes do so: a domain of hardware isolated processes ([`DOMAIN_CALLS`]), and the process of one
//! program or module ([`PROGRAM_CALLS`]).
//!
//! Each row says under which conditions on its arguments a call is let through. It also says what the process wants it
//! for, and why nothing but the process's own is reached by it. A filter sees numbers only, not what a pointer points to.
//! So no call is here that takes a name, or a structure that says what is to be done. The tests try each row, each bit
//! that a condition forbids, and each call that has no row.

#![cfg_attr(not(test), forbid(unsafe_code))]

pub use call::{Call, When};
pub use domain::DOMAIN_CALLS;
pub use files::{drop_sockets, keep_files};
pub use powers::{drop_capabilities, drop_files};
pub use program::PROGRAM_CALLS;

mod call;
mod domain;
mod files;
mod powers;
mod program;
#[cfg(test)]
mod tests;

use call::{Here, NO_SOCKET, filter};
use seccompiler::{SeccompAction, apply_filter_all_threads};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From here on all threads have the calls of a domain, whose control socket this is.
///
/// # Errors
///
/// If Linux takes no filter.
pub fn close_domain(control: BorrowedFd<'_>) -> io::Result<()> {
    let here = Here {
        control: control.as_raw_fd().cast_unsigned(),
        process: std::process::id(),
    };
    let program =
        filter(DOMAIN_CALLS, here, SeccompAction::KillProcess).map_err(io::Error::other)?;
    apply_filter_all_threads(&program).map_err(io::Error::other)
}

/// From here on all threads have the calls of a program's process.
///
/// # Errors
///
/// If Linux takes no filter.
pub fn close_program() -> io::Result<()> {
    let here = Here {
        control: NO_SOCKET,
        process: std::process::id(),
    };
    let programs = program::filters(here, SeccompAction::KillProcess).map_err(io::Error::other)?;
    for each in programs {
        apply_filter_all_threads(&each).map_err(io::Error::other)?;
    }
    Ok(())
}
