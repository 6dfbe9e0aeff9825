//! What may be done with pages.

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What a domain may do with a page. There is no way to say "write and execute".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Read and execute.
    ReadExecute,
}

impl Access {
    pub(crate) const fn protection(self) -> libc::c_int {
        match self {
            Self::None => libc::PROT_NONE,
            Self::Read => libc::PROT_READ,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Self::ReadExecute => libc::PROT_READ | libc::PROT_EXEC,
        }
    }
}
