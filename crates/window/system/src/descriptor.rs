//! The program's descriptors: numbers of its own, none of the host's.

use crate::streams::{Stream, Streams, null};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;

/// Greatest number of descriptors.
const LIMIT: usize = 256;

/// What descriptors 0, 1 and 2 stand for.
const STREAMS: [Stream; 3] = [Stream::Input, Stream::Output, Stream::Error];

/// What a descriptor stands for.
#[derive(Clone)]
pub(crate) enum Handle {
    /// Standard input, output or error of the host.
    Stream(Stream),
    /// The same of a program whose streams its host takes (`Streams::Taken`).
    Taken(Stream),
    /// A regular file.
    File(Arc<File>),
    /// A directory, by the program's own path.
    Directory(Arc<Directory>),
}

/// What a program does with a descriptor's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// To read where the descriptor is.
    Read,
    /// To write where the descriptor is.
    Write,
    /// To name a position: lseek, pread64, pwrite64.
    Seek,
}

/// An open file.
pub(crate) struct File {
    pub(crate) descriptor: OwnedFd,
    /// Whether it lies in a directory that is granted for reading only. The host's descriptor
    /// does not know: its owner may change a file's times by any descriptor.
    pub(crate) read_only: bool,
}

/// An open directory.
pub(crate) struct Directory {
    pub(crate) descriptor: OwnedFd,
    /// The program's path of it.
    pub(crate) path: String,
}

impl Handle {
    /// The host's descriptor behind it, to read, write or ask.
    pub(crate) fn host(&self) -> BorrowedFd<'_> {
        match self {
            Handle::Stream(Stream::Input) => rustix::stdio::stdin(),
            Handle::Stream(Stream::Output) => rustix::stdio::stdout(),
            Handle::Stream(Stream::Error) => rustix::stdio::stderr(),
            Handle::Taken(_) => null(),
            Handle::File(file) => file.descriptor.as_fd(),
            Handle::Directory(directory) => directory.descriptor.as_fd(),
        }
    }

    /// The stream that it is, if it is one.
    fn stream(&self) -> Option<Stream> {
        match self {
            Handle::Stream(stream) | Handle::Taken(stream) => Some(*stream),
            Handle::File(_) | Handle::Directory(_) => None,
        }
    }

    /// Whether it is one of the three streams: to read from it may be to wait.
    pub(crate) fn is_stream(&self) -> bool {
        self.stream().is_some()
    }

    /// Whether it is standard output or error, of which a host may limit the bytes.
    pub(crate) fn is_output(&self) -> bool {
        self.stream().is_some_and(|stream| stream != Stream::Input)
    }

    /// Refuses what a stream is not for. The host's own descriptor may allow more: its
    /// output may be a file in which the host has written before, open for reading too, and
    /// a terminal can be read and written by each of the three.
    pub(crate) fn permits(&self, wanted: Use) -> Result<(), Errno> {
        let Some(stream) = self.stream() else {
            return Ok(());
        };
        let input = stream == Stream::Input;
        match wanted {
            Use::Read if !input => Err(Errno::BADF),
            Use::Write if input => Err(Errno::BADF),
            Use::Seek if !input || matches!(self, Handle::Taken(_)) => Err(Errno::SPIPE),
            _ => Ok(()),
        }
    }

    /// The descriptor of something that has bytes.
    pub(crate) fn bytes(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Handle::Directory(_) => Err(Errno::ISDIR),
            _ => Ok(self.host()),
        }
    }
}

/// The table of descriptors.
pub(crate) struct Descriptors {
    list: Vec<Option<Handle>>,
}

impl Descriptors {
    /// The three streams.
    pub(crate) fn new(streams: &Streams) -> Self {
        let list = match streams {
            Streams::Host => STREAMS.map(|stream| Some(Handle::Stream(stream))).into(),
            Streams::Taken(_) => STREAMS.map(|stream| Some(Handle::Taken(stream))).into(),
        };
        Self { list }
    }

    /// What `number` stands for. A clone, so that the table is not locked while it is used.
    pub(crate) fn get(&self, number: i32) -> Result<Handle, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        self.list.get(index).cloned().flatten().ok_or(Errno::BADF)
    }

    /// Gives `handle` the lowest free number from `least` on.
    pub(crate) fn add(&mut self, handle: Handle, least: usize) -> Result<u64, Errno> {
        let free = (least..LIMIT)
            .find(|&index| self.list.get(index).is_none_or(Option::is_none))
            .ok_or(Errno::MFILE)?;
        self.put(free, handle);
        Ok(free as u64)
    }

    /// Gives `handle` this number, whatever it stood for.
    pub(crate) fn replace(&mut self, number: i32, handle: Handle) -> Result<u64, Errno> {
        let index = usize::try_from(number).map_err(|_| Errno::BADF)?;
        if index >= LIMIT {
            return Err(Errno::BADF);
        }
        self.put(index, handle);
        Ok(index as u64)
    }

    fn put(&mut self, index: usize, handle: Handle) {
        if self.list.len() <= index {
            self.list.resize(index + 1, None);
        }
        if let Some(place) = self.list.get_mut(index) {
            *place = Some(handle);
        }
    }

    /// Forgets `number`; the host's descriptor closes with its last user.
    pub(crate) fn close(&mut self, number: i32) -> Result<(), Errno> {
        self.get(number)?;
        if let Some(place) = self.list.get_mut(number as usize) {
            *place = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_lowest_free_ones_and_limited() {
        let mut table = Descriptors::new(&Streams::Host);
        assert_eq!(table.add(Handle::Stream(Stream::Output), 0), Ok(3));
        table.close(0).expect("open");
        assert_eq!(table.add(Handle::Stream(Stream::Output), 0), Ok(0));
        assert_eq!(table.add(Handle::Stream(Stream::Output), 10), Ok(10));
        assert_eq!(table.get(9).err(), Some(Errno::BADF));
        assert_eq!(table.get(-1).err(), Some(Errno::BADF));
        assert_eq!(table.close(9), Err(Errno::BADF));
        while table.add(Handle::Stream(Stream::Output), 0).is_ok() {}
        assert_eq!(
            table.add(Handle::Stream(Stream::Output), 0),
            Err(Errno::MFILE)
        );
        assert_eq!(
            table.replace(256, Handle::Stream(Stream::Output)),
            Err(Errno::BADF)
        );
    }
}
