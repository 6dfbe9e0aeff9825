//! Memory to share, as files without names.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// A new one of a size that nobody can change again. It takes memory page by page, as it is written.
pub(crate) fn create(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let file = memfd_create(name, flags)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// A file in memory with these bytes, which nobody can change. The name is for people.
///
/// # Errors
/// The system refuses.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(bytes)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// What is in a file, from its beginning, whatever others have read of it.
///
/// # Errors
/// The system refuses.
pub fn contents(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let length = file.metadata()?.len();
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
