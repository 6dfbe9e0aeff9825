//! What a program may have open: a stream, a file, a directory.

use crate::stat;
use crate::stop::told;
use crate::streams::{Streams, null};
use mullion_calls::{CallStop, Handle, Stream};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use std::sync::Arc;

/// What is done with the bytes of what is open.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) write: bool,
    /// Where in the file; `None`: where it is.
    pub(crate) position: Option<i64>,
}

/// What is behind a [`Handle`].
pub(crate) enum Open {
    /// Standard input, output or error of the host.
    Stream(Stream),
    /// The same of a program whose streams its host takes (`Streams::Taken`).
    Taken(Stream),
    File {
        descriptor: OwnedFd,
        /// Whether it lies in a directory that is granted for reading only. The host's descriptor
        /// does not know: its owner may change a file's times by any descriptor.
        read_only: bool,
    },
    Directory(OwnedFd),
}

/// The three streams.
pub(crate) fn streams(streams: &Streams) -> [Handle; 3] {
    [Stream::Input, Stream::Output, Stream::Error].map(|stream| -> Handle {
        Arc::new(match streams {
            Streams::Host => Open::Stream(stream),
            Streams::Taken(_) => Open::Taken(stream),
        })
    })
}

/// What is behind a handle; nobody else makes any.
pub(crate) fn behind(handle: &Handle) -> Result<&Open, CallStop> {
    handle.downcast_ref().ok_or_else(|| told(Errno::BADF))
}

impl Open {
    /// What has just been opened, if it is of a kind that a program may have.
    pub(crate) fn of(descriptor: OwnedFd, read_only: bool) -> Result<Self, Errno> {
        use rustix::fs::{fcntl_getfl, fcntl_setfl};
        if stat::permitted(&descriptor)? == FileType::Directory {
            return Ok(Open::Directory(descriptor));
        }
        // Files never wait, so what was set for the opening alone goes.
        let flags = fcntl_getfl(&descriptor)?;
        fcntl_setfl(&descriptor, flags.difference(OFlags::NONBLOCK))?;
        Ok(Open::File {
            descriptor,
            read_only,
        })
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Open::Directory(_))
    }

    /// The host's descriptor behind it, to read, write or ask.
    pub(crate) fn host(&self) -> BorrowedFd<'_> {
        match self {
            Open::Stream(Stream::Input) => rustix::stdio::stdin(),
            Open::Stream(Stream::Output) => rustix::stdio::stdout(),
            Open::Stream(Stream::Error) => rustix::stdio::stderr(),
            Open::Taken(_) => null(),
            Open::File { descriptor, .. } | Open::Directory(descriptor) => descriptor.as_fd(),
        }
    }

    pub(crate) fn stream(&self) -> Option<Stream> {
        match self {
            Open::Stream(stream) | Open::Taken(stream) => Some(*stream),
            Open::File { .. } | Open::Directory(_) => None,
        }
    }

    /// Refuses what a stream is not for; without a way, to go to a place. The host's own descriptor may allow more:
    /// its output may be a file in which the host has written before, open for reading too, and
    /// a terminal can be read and written by each of the three.
    pub(crate) fn permits(&self, way: Option<Way>) -> Result<(), Errno> {
        let Some(stream) = self.stream() else {
            return Ok(());
        };
        let input = stream == Stream::Input;
        if way.is_some_and(|way| way.write == input) {
            return Err(Errno::BADF);
        }
        let seeks = way.is_none_or(|way| way.position.is_some());
        match seeks && (!input || matches!(self, Open::Taken(_))) {
            true => Err(Errno::SPIPE),
            false => Ok(()),
        }
    }
}
