//! What can go wrong apart from what a domain does.

use std::io;

/// The run time could not do what the host asked. No domain is to blame.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The processor or kernel does not let user code write the `%gs` base.
    #[error(
        "this processor or kernel does not offer FSGSBASE (AT_HWCAP2 bit 1), which entering a domain needs; \
         a kernel from 5.9 on a processor from 2012 (Intel) or 2015 (AMD) on has it, unless started with `nofsgsbase`"
    )]
    NoFsgsbase,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What the run time was doing.
        what: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
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
    /// The supervisor refuses what the run time would record.
    #[error("the supervisor refuses: {0}")]
    Record(#[from] mullion_supervisor::Error),
    /// Another domain's call is in the domain.
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
    /// As many threads as there are data stacks are in the domain, or were and live on.
    #[error("all {count} data stacks of the domain are in use by threads")]
    NoStack {
        /// The number of data stacks that the limits allow.
        count: u32,
    },
    /// Invocations are nested too deep.
    #[error("{depth} invocations are nested on this thread: that is the limit")]
    Depth {
        /// The limit.
        depth: u32,
    },
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
    pub(crate) fn last(what: &'static str) -> Self {
        Self::System {
            what,
            source: io::Error::last_os_error(),
        }
    }
}
