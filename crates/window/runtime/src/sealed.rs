//! Files in memory whose contents, or whose length, can never change again.

use mullion_report::error::Error;
use mullion_signals::quietly;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// `MFD_EXEC`, from Linux 6.3 on: says that the file is meant to be executed.
const MFD_EXEC: libc::c_uint = 0x10;

/// A sealed file of `length` bytes, zero but for the given pieces (position, content).
pub(crate) fn file(name: &CStr, pieces: &[(u64, &[u8])], length: u64) -> Result<OwnedFd, Error> {
    let file = File::from(create(name)?);
    // The limit on the size of files (`ulimit -f`) holds for files in memory too.
    let written = quietly(|| {
        file.set_len(length)?;
        pieces
            .iter()
            .try_for_each(|(position, content)| file.write_all_at(content, *position))
    });
    written.map_err(|source| Error::System {
        what: "writing an image to memory",
        source,
    })?;
    seal(&file, libc::F_SEAL_WRITE)?;
    Ok(file.into())
}

/// A file of `length` zeroes whose length can never change: no access to a mapping
/// of it can fail.
pub(crate) fn shared(name: &CStr, length: u64) -> Result<OwnedFd, Error> {
    let file = File::from(create(name)?);
    quietly(|| file.set_len(length)).map_err(|source| Error::System {
        what: "making a shared object",
        source,
    })?;
    seal(&file, 0)?;
    Ok(file.into())
}

/// Seals the length, and what `more` says. Linux refuses to seal the content for a moment while it holds pages of the file
/// itself, to move them or to count them. Then it is asked again, for two seconds.
fn seal(file: &File, more: libc::c_int) -> Result<(), Error> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL | more;
    let begin = Instant::now();
    // SAFETY: the descriptor is open; the command takes an integer.
    while unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        let source = std::io::Error::last_os_error();
        if source.raw_os_error() != Some(libc::EBUSY) || begin.elapsed() > PATIENCE {
            return Err(Error::System {
                what: "sealing a file in memory",
                source,
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn create(name: &CStr) -> Result<OwnedFd, Error> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a C string; the call has no other memory operand.
    let mut descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags | MFD_EXEC) };
    if descriptor < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // SAFETY: `name` is a C string; the call has no other memory operand. Kernels before 6.3 do not know MFD_EXEC.
        descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    }
    if descriptor < 0 {
        return Err(Error::last(
            "creating a file in memory (is vm.memfd_noexec 2?)",
        ));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
