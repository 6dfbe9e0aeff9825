//! `struct stat` as x86-64 Linux lays it out: 144 bytes; and which kinds of files are a program's.

use crate::stop::of_io;
use mullion_calls::{CallStop, Moment, STAT};
use mullion_runtime::quietly;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Stat, Timespec, Timestamps};
use rustix::io::Errno;

/// The structure's bytes. Device, owner and group are the host's affair and stay 0;
/// the file's number is kept, because programs compare it.
pub(crate) fn bytes(stat: &Stat) -> [u8; STAT] {
    let mut bytes = [0; STAT];
    let mut put = |at: usize, field: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    };
    put(8, &stat.st_ino.to_le_bytes());
    put(16, &stat.st_nlink.to_le_bytes());
    put(24, &stat.st_mode.to_le_bytes());
    put(48, &stat.st_size.to_le_bytes());
    put(56, &stat.st_blksize.to_le_bytes());
    put(64, &stat.st_blocks.to_le_bytes());
    put(72, &stat.st_atime.to_le_bytes());
    put(80, &stat.st_atime_nsec.to_le_bytes());
    put(88, &stat.st_mtime.to_le_bytes());
    put(96, &stat.st_mtime_nsec.to_le_bytes());
    put(104, &stat.st_ctime.to_le_bytes());
    put(112, &stat.st_ctime_nsec.to_le_bytes());
    bytes
}

/// Refuses what is neither a file nor a directory: what waits for a peer, or is a device, is
/// none of the program's. Nor is anything in /proc. `found` may be a mere name of it (`O_PATH`):
/// opening can have effects.
pub(crate) fn permitted(found: &OwnedFd) -> Result<FileType, Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode);
    let usual = matches!(kind, FileType::RegularFile | FileType::Directory);
    match usual && !is_of_processes(found)? {
        true => Ok(kind),
        false => Err(Errno::ACCESS),
    }
}

/// Whether it lies in /proc, where files are the memory of processes, and of the host.
pub(crate) fn is_of_processes(found: &OwnedFd) -> Result<bool, Errno> {
    const PROC: u64 = 0x9fa0;
    Ok(rustix::fs::fstatfs(found)?.f_type as u64 == PROC)
}

/// ftruncate, for which more than the host's own files may have is an error and no signal.
pub(crate) fn quiet_length(file: &OwnedFd, length: u64) -> Result<(), CallStop> {
    quietly(|| Ok(rustix::fs::ftruncate(file, length)?)).map_err(of_io)
}

/// Of the last access, and of the last change.
pub(crate) fn timestamps(times: [Moment; 2]) -> Timestamps {
    let [last_access, last_modification] =
        times.map(|(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec });
    Timestamps {
        last_access,
        last_modification,
    }
}
