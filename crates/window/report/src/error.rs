//! What can go wrong apart from what a domain does.

use std::io;

/// The run time could not do what the host asked. No domain is to blame.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// User code may not write the `%gs` base, or so it is told.
    #[error(
        "this process is told (AT_HWCAP2 bit 1) that it may not use FSGSBASE, which entering a domain needs; \
         a kernel from 5.9 on a processor from 2012 (Intel) or 2015 (AMD) on has it, unless started with `nofsgsbase`; \
         under valgrind, and other programs that run a process's instructions in the processor's place, it is never there: run without"
    )]
    NoFsgsbase,
    /// The word wall is in this process, or another copy of this run time.
    #[error(
        "the word wall (or another copy of this run time) is in this process, and both need the %gs base of every thread; \
         one process has one wall: put the other one into a process of its own"
    )]
    OtherWall,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What the run time was doing.
        what: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The thread runs a signal's handler, on an alternate stack.
    #[error(
        "a signal handler must not enter a domain: a fault there would overwrite the handler's own stack; \
         have the handler note what is to be done, and the thread do it when the handler has returned"
    )]
    InHandler,
    /// A host function on this thread was left by `longjmp` or the like, and not by its return.
    #[error(
        "a host function on this thread was left by a jump (longjmp) and did not return; no domain can be entered on the thread any more, \
         and what its calls had begun is not ended; have host functions return an error"
    )]
    Abandoned,
    /// An offset or length lies where a domain may have nothing mapped, or is no multiple of a page.
    #[error(
        "offsets {start:#x} to {end:#x} are not whole pages of the part of a window that may be mapped"
    )]
    Range {
        /// First offset.
        start: u64,
        /// One past the last offset.
        end: u64,
    },
    /// The image's segments overlap, or hold more content than they are long.
    #[error(
        "the segment at offset {offset:#x} overlaps another one or is shorter than its content"
    )]
    Segment {
        /// Where it begins.
        offset: u32,
    },
    /// A relocation lies outside of the image's data.
    #[error("the relocation at offset {offset:#x} lies outside of the image's data")]
    Relocation {
        /// Its place.
        offset: u32,
    },
    /// The address is not one that the domain may be entered at.
    #[error("{address:#x} is no labelled instruction of this domain")]
    NotAnEntry {
        /// The address that was claimed to be one.
        address: u64,
    },
    /// An entry of another domain, or of this one before it was restarted.
    #[error("the entry belongs to another domain")]
    WrongDomain,
    /// The domain has faulted or ended by itself; restart it.
    #[error("the domain has ended and takes no calls until it is restarted")]
    Ended,
    /// The domain is being started or restarted, or waits for that until it is empty.
    #[error(
        "the domain is not open: it is being started or restarted (a caller may wait for that, see Limits::start_wait)"
    )]
    NotOpen,
    /// The call was cancelled before it entered the domain, which is as it was.
    #[error("the call was cancelled before it began")]
    Cancelled,
    /// A mistake of the run time's: it would have changed what the supervisor was not asked about. It has not.
    #[error(
        "the supervisor was not asked about the addresses {start:#x} to {end:#x}: nothing is changed there; please report this"
    )]
    Undecided {
        /// First address.
        start: u64,
        /// One past the last address.
        end: u64,
    },
    /// The supervisor refuses what the run time would change. Nothing has changed.
    #[error("the supervisor refuses: {0}")]
    Record(#[from] mullion_supervisor::Error),
    /// Another domain's call is in the domain, or that of a thread that ends.
    #[error("another domain is calling this one: restart it when that call has returned")]
    Busy,
    /// The domain has no import with this index.
    #[error("the domain has no import {import}")]
    NoImport {
        /// The index.
        import: usize,
    },
    /// The import is another domain's function already.
    #[error("the import is linked to a domain already")]
    Linked,
    /// The domain has used up its time for all calls.
    #[error("the domain has used its {granted:?} for all calls; a restart gives them anew")]
    TimeSpent {
        /// What it was granted.
        granted: std::time::Duration,
    },
    /// The domain has used up its time on processors for all calls.
    #[error(
        "the domain has used its {granted:?} of processor time for all calls; a restart gives them anew"
    )]
    ProcessorTimeSpent {
        /// What it was granted.
        granted: std::time::Duration,
    },
    /// As many threads as there are data stacks are in the domain, or were and live on.
    #[error("all {count} data stacks of the domain are in use by threads")]
    NoStack {
        /// The number of data stacks that the limits allow.
        count: u32,
    },
    /// The domain's own set-up for a thread failed; it is as it was, for other threads too.
    #[error(
        "the domain could not set up what it needs for this thread: its C library reports error {code}{}; \
         give it more memory, or call it from threads that have called it before",
        if *.code == libc::ENOMEM { " (no memory)" } else { "" }
    )]
    ThreadStart {
        /// The error number that it returned.
        code: i32,
    },
    /// Invocations are nested too deep.
    #[error("{depth} invocations are nested on this thread: that is the limit")]
    Depth {
        /// The limit.
        depth: u32,
    },
    /// The domain would take more of the kernel's mappings than its limits grant.
    #[error(
        "the domain needs {needed} mappings of memory; its limit is {limit} (see --max-mappings)"
    )]
    Mappings {
        /// What is needed.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// Steps are limited, and the image does not count any.
    #[error(
        "the image counts no steps that could be limited; build it with mullion cc --mullion-count"
    )]
    NotCounted,
    /// The domain would have more memory than its limits grant.
    #[error("the domain needs {needed} bytes of memory; its limit is {limit} (see --max-memory)")]
    Memory {
        /// What is needed, in bytes.
        needed: u64,
        /// The limit, in bytes.
        limit: u64,
    },
}

impl Error {
    /// The failure of the system call just made, as `errno` has it.
    /// What the system has just said.
    #[must_use]
    pub fn last(what: &'static str) -> Self {
        Self::System {
            what,
            source: io::Error::last_os_error(),
        }
    }
}
