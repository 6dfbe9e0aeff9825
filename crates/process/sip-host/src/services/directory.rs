//! Files below a directory, to be read ([`mullion_sip::grant::directory`]).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use mullion_sip::ExVec;
use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::grant::directory::{self as contract, IdleMessage};
use mullion_sip::grant::{Found, LARGEST, Piece, Refused};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::ServiceError;

pub(super) fn offer(name: &str, path: &Path) -> Result<(), ServiceError> {
    let directory = open_directory(path).map_err(|error| ServiceError::Directory {
        name: name.to_owned(),
        path: path.to_owned(),
        error,
    })?;
    super::serve(name, contract::Contract::INFO, move |end| {
        contract::Server::<contract::Idle>::from_any(end)
            .map_or(Ok(()), |end| answer(directory.as_fd(), end))
    })?;
    tracing::info!(service = name, directory = %path.display(), "serves");
    Ok(())
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::PATH;
    File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn answer(
    directory: BorrowedFd<'_>,
    mut idle: contract::Server<contract::Idle>,
) -> Result<(), ChannelClosed> {
    loop {
        let IdleMessage::Read(piece, busy) = idle.recv()? else {
            return Ok(());
        };
        idle = match read(directory, &piece) {
            Ok(found) => busy.piece(found)?,
            Err(refused) => busy.refused(refused)?,
        };
    }
}

/// One piece. What is opened is below the directory at that moment, whatever links there are on the way.
pub(super) fn read(directory: BorrowedFd<'_>, wanted: &Piece) -> Result<Found, Refused> {
    // To open a pipe must not wait for who writes it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(directory, &*wanted.path, flags, Mode::empty(), below);
    let file = File::from(file.map_err(refused)?);
    let found = file.metadata().map_err(|_| Refused::Failed)?;
    if !found.is_file() {
        return Err(Refused::NotAFile);
    }
    let mut buffer = vec![0; wanted.bytes.min(LARGEST) as usize];
    let count = if wanted.offset < found.len() {
        fill(&file, &mut buffer, wanted.offset).map_err(|_| Refused::Failed)?
    } else {
        0
    };
    let mut bytes = ExVec::try_with_capacity(count).map_err(|_| Refused::Failed)?;
    bytes.extend_from_slice(&buffer[..count]);
    Ok(Found {
        size: found.len(),
        bytes,
    })
}

fn refused(error: Errno) -> Refused {
    match error {
        Errno::ACCESS | Errno::PERM => Refused::NotPermitted,
        Errno::NFILE | Errno::MFILE | Errno::NOMEM | Errno::IO | Errno::AGAIN => Refused::Failed,
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV => Refused::NotAFile,
        // Among them EXDEV: the way leads out of the directory.
        _ => Refused::NotFound,
    }
}

/// As much as there is from an offset within the file on.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset + count as u64)? {
            0 => break,
            read => count += read,
        }
    }
    Ok(count)
}
