//! What is done with what a program has open.

use crate::caller::Caller;
use crate::mount::MODE;
use crate::open::{Open, Way, behind};
use crate::stat::{self, quiet_length, timestamps};
use crate::stop::{of_address, of_io, told};
use crate::streams::Streams;
use mullion_calls::{CallStop, DirectoryEntry, Files, Handle, Moment, STAT, Stream};
use mullion_runtime::Claimed;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Mode, RawDir, SeekFrom};
use rustix::io::Errno;

/// Most bytes of one read or write, as Linux has it.
const LONGEST: u64 = 0x7fff_f000;
/// Most bytes that the kernel moves at a time: between two pieces the time limit is looked at,
/// since a signal interrupts no copy between a file and memory.
const PIECE: u64 = 1 << 20;
/// Most bytes that a receiver is handed at a time.
const TAKEN: u64 = 1 << 16;
/// Longest single wait for the host's input, in milliseconds.
const LONGEST_WAIT: u32 = 100;

impl Files for Caller<'_, '_> {
    fn as_stream(&self, handle: &Handle) -> Option<Stream> {
        behind(handle).ok()?.stream()
    }

    /// Moves bytes piece by piece, until one comes short, the time is up, or all are moved.
    fn transfer(
        &self,
        handle: &Handle,
        (at, length): (u64, u64),
        write: bool,
        position: Option<i64>,
    ) -> Result<u64, CallStop> {
        let open = behind(handle)?;
        let way = Way { write, position };
        let length = length.min(LONGEST);
        open.permits(Some(way)).map_err(told)?;
        let is_stream = open.stream().is_some();
        if write && is_stream {
            let charged = self.caller.charge_output(length);
            charged.map_err(|end| self.ends(end))?;
        }
        // The whole range is checked, not only what is moved of it.
        self.memory()
            .piece(Claimed(at), length)
            .map_err(of_address)?;
        let mut done = 0;
        while done < length {
            let step = PIECE.min(length - done);
            let moved = match self.transfer_piece(open, (at.wrapping_add(done), step), way, done) {
                Ok(moved) => moved,
                // What has been moved is moved; the error comes with the next call.
                Err(_) if done > 0 => break,
                Err(stop) => return Err(stop),
            };
            done += moved;
            // To ask a stream for more would be to wait, while the program has something to work on.
            let enough = moved < step || (!write && is_stream);
            if enough || self.caller.is_out_of_time() {
                break;
            }
        }
        Ok(done)
    }

    fn seek(&self, handle: &Handle, offset: i64, whence: i32) -> Result<u64, CallStop> {
        let open = behind(handle)?;
        open.permits(None).map_err(told)?;
        let from = match (whence, u64::try_from(offset)) {
            (0, Ok(offset)) => SeekFrom::Start(offset),
            (1, _) => SeekFrom::Current(offset),
            (2, _) => SeekFrom::End(offset),
            _ => return Err(told(Errno::INVAL)),
        };
        rustix::fs::seek(open.host(), from).map_err(told)
    }

    fn stat_open(&self, handle: &Handle) -> Result<[u8; STAT], CallStop> {
        let found = rustix::fs::fstat(behind(handle)?.host()).map_err(told)?;
        Ok(stat::bytes(&found))
    }

    fn wait_ready(&self, handle: &Handle, milliseconds: u32) -> Result<bool, CallStop> {
        let Open::Stream(Stream::Input) = behind(handle)? else {
            return Ok(true);
        };
        let input = rustix::stdio::stdin();
        let mut asked = [PollFd::new(&input, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(milliseconds.min(LONGEST_WAIT)) * 1_000_000,
        };
        self.retry(|| match rustix::event::poll(&mut asked, Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            Err(error) => Err(told(error)),
        })
    }

    fn window_size(&self, handle: &Handle) -> Result<[u16; 4], CallStop> {
        let open = behind(handle)?;
        if !matches!(open, Open::Stream(_)) {
            return Err(told(Errno::NOTTY));
        }
        let size = rustix::termios::tcgetwinsize(open.host()).map_err(told)?;
        Ok([size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel])
    }

    fn flags(&self, handle: &Handle) -> Result<u32, CallStop> {
        let flags = rustix::fs::fcntl_getfl(behind(handle)?.host());
        Ok(flags.map_err(told)?.bits())
    }

    fn set_appends(&self, handle: &Handle, appends: bool) -> Result<(), CallStop> {
        let Open::File { descriptor, .. } = behind(handle)? else {
            return Ok(());
        };
        let mut flags = rustix::fs::fcntl_getfl(descriptor).map_err(told)?;
        flags.set(rustix::fs::OFlags::APPEND, appends);
        rustix::fs::fcntl_setfl(descriptor, flags).map_err(told)
    }

    fn set_open_length(&self, handle: &Handle, length: u64) -> Result<(), CallStop> {
        match behind(handle)? {
            Open::File { descriptor, .. } => quiet_length(descriptor, length),
            _ => Err(told(Errno::INVAL)),
        }
    }

    fn set_open_times(&self, handle: &Handle, times: [Moment; 2]) -> Result<(), CallStop> {
        let set = match behind(handle)? {
            Open::File {
                read_only: true, ..
            } => Err(Errno::ROFS),
            Open::File { descriptor, .. } => rustix::fs::futimens(descriptor, &timestamps(times)),
            _ => Err(Errno::ACCESS),
        };
        set.map_err(told)
    }

    fn set_open_mode(&self, handle: &Handle, mode: u32) -> Result<(), CallStop> {
        let set = match behind(handle)? {
            Open::File {
                read_only: true, ..
            } => Err(Errno::ROFS),
            Open::File { descriptor, .. } => {
                rustix::fs::fchmod(descriptor, Mode::from_raw_mode(mode & MODE))
            }
            _ => Err(Errno::ACCESS),
        };
        set.map_err(told)
    }

    fn sync(&self, handle: &Handle) -> Result<(), CallStop> {
        let open = behind(handle)?;
        self.retry(|| rustix::fs::fsync(open.host()).map_err(told))
    }

    /// The kernel counts entries into `room`, and keeps the position, so that those
    /// that go meanwhile do not make it skip others.
    fn entries(
        &self,
        handle: &Handle,
        room: usize,
        each: &mut dyn FnMut(DirectoryEntry<'_>),
    ) -> Result<(), CallStop> {
        let Open::Directory(directory) = behind(handle)? else {
            return Err(told(Errno::NOTDIR));
        };
        let mut buffer = Vec::with_capacity(room);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(told)?;
            each(DirectoryEntry {
                inode: entry.ino(),
                next: entry.next_entry_cookie(),
                kind: match entry.file_type() {
                    FileType::Directory => 4,
                    FileType::RegularFile => 8,
                    FileType::Symlink => 10,
                    _ => 0,
                },
                name: entry.file_name().to_bytes_with_nul(),
            });
            if entries.is_buffer_empty() {
                break;
            }
        }
        Ok(())
    }
}

impl Caller<'_, '_> {
    /// One piece; the kernel moves the bytes, so that no buffer is needed.
    fn transfer_piece(
        &self,
        open: &Open,
        (at, length): (u64, u64),
        way: Way,
        done: u64,
    ) -> Result<u64, CallStop> {
        let descriptor = match open {
            Open::Taken(stream) => return self.taken(*stream, (at, length), way.write),
            Open::Directory(_) => return Err(told(Errno::ISDIR)),
            _ => open.host(),
        };
        let piece = self.memory().piece(Claimed(at), length);
        let piece = piece.map_err(of_address)?;
        let position = way
            .position
            .map(|position| position.saturating_add(done as i64));
        let moved = self.retry(|| {
            let moved = match way.write {
                true => piece.drain_to(descriptor, position),
                false => piece.fill_from(descriptor, position),
            };
            moved.map_err(of_io)
        })?;
        Ok(moved as u64)
    }

    /// read and write on a taken stream.
    fn taken(
        &self,
        stream: Stream,
        (at, length): (u64, u64),
        write: bool,
    ) -> Result<u64, CallStop> {
        let Streams::Taken(receiver) = &self.system.grants.streams else {
            return Err(told(Errno::BADF));
        };
        if !write {
            return Ok(0);
        }
        let mut bytes = vec![0; length.min(TAKEN) as usize];
        let piece = self.memory().piece(Claimed(at), bytes.len() as u64);
        piece
            .and_then(|piece| piece.read(&mut bytes))
            .map_err(of_address)?;
        receiver(stream, &bytes).map_err(|end| self.ends(end))?;
        Ok(bytes.len() as u64)
    }
}
