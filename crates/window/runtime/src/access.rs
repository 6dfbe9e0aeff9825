//! What may be done with pages.

pub use mullion_abi::Access;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// As the kernel has it.
pub(crate) const fn protection(access: Access) -> libc::c_int {
    match access {
        Access::None => libc::PROT_NONE,
        Access::Read => libc::PROT_READ,
        Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        Access::ReadExecute => libc::PROT_READ | libc::PROT_EXEC,
    }
}
