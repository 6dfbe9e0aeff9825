//! A module's reports in memory that the forwarder shares with a user's process: the user reads them without asking.
//!
//! ```text
//!   0    form (4 bytes), bytes of the ring (4)        numbers are little endian, places are bytes
//!   64   bytes that were put so far (8)               the forwarder writes it
//!   128  bytes that were taken so far (8)             the user writes it
//!   192  reports that were refused (8)                the forwarder writes it
//!   256  1, if nothing comes any more (4)             the forwarder writes it
//!   4096 the ring: of each report its length (4 bytes), its bytes, and what makes it a multiple of 8
//! ```
//! The memory is sealed: nobody makes it shorter under the other's feet. The forwarder believes nothing that the user
//! can write, but for how much was taken: who lies there spoils their own reports.

use crate::memory::{Memory, sealed};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of the ring, a power of two; and in front of it.
const RING: u64 = 1 << 20;
const HEAD: usize = 4096;
/// Of what is above.
const FORM: u32 = 1;
/// Bytes of a report, at most.
pub(crate) const REPORT: u64 = 4096;

const SIZE_AT: usize = 4;
const PUT_AT: usize = 64;
const TAKEN_AT: usize = 128;
const REFUSED_AT: usize = 192;
const CLOSED_AT: usize = 256;

/// Memory of this form.
#[derive(Debug)]
struct Ring(Memory);

impl Ring {
    fn of(file: &OwnedFd) -> io::Result<Ring> {
        let length = HEAD + RING as usize;
        Memory::map(length, libc::MAP_SHARED, file.as_raw_fd(), 0).map(Ring)
    }

    fn small(&self, at: usize) -> &AtomicU32 {
        // SAFETY: it lies in the memory, at a multiple of its size, and all who have the memory change it atomically.
        unsafe { AtomicU32::from_ptr(self.0.start().add(at).cast()) }
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        // SAFETY: it lies in the memory, at a multiple of eight, and both processes change it atomically.
        unsafe { AtomicU64::from_ptr(self.0.start().add(at).cast()) }
    }

    /// Where a byte of this number lies, and how many follow it.
    fn place(&self, at: u64) -> (*mut u8, usize) {
        let at = (at % RING) as usize;
        // SAFETY: it lies in the ring.
        (unsafe { self.0.start().add(HEAD + at) }, RING as usize - at)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let (place, rest) = self.place(at);
        let (first, second) = bytes.split_at(bytes.len().min(rest));
        // SAFETY: both lie in the ring, whose bytes nobody borrows: they are copied in and out. That the other process
        // writes there meanwhile may spoil what it reads, and nothing else.
        unsafe {
            ptr::copy_nonoverlapping(first.as_ptr(), place, first.len());
            ptr::copy_nonoverlapping(second.as_ptr(), self.place(0).0, second.len());
        }
    }

    fn read(&self, at: u64, bytes: &mut [u8]) {
        let (place, rest) = self.place(at);
        let (first, second) = bytes.split_at_mut(bytes.len().min(rest));
        // SAFETY: both lie in the ring, whose bytes nobody borrows. That the other process writes there meanwhile may
        // spoil what is copied, and nothing else.
        unsafe {
            ptr::copy_nonoverlapping(place, first.as_mut_ptr(), first.len());
            ptr::copy_nonoverlapping(self.place(0).0, second.as_mut_ptr(), second.len());
        }
    }
}

/// How many bytes of the ring a report takes.
fn taken_by(length: u64) -> u64 {
    (4 + length).next_multiple_of(8)
}

/// The forwarder's end.
#[derive(Debug)]
pub(crate) struct Writer {
    ring: Ring,
    put: u64,
    refused: u64,
}

impl Writer {
    /// New memory, and what a user's process gets of it.
    pub(crate) fn new() -> io::Result<(Writer, OwnedFd)> {
        let file = sealed(c"packets-reports", HEAD as u64 + RING)?;
        let ring = Ring::of(&file)?;
        ring.small(SIZE_AT).store(RING as u32, Ordering::Relaxed);
        ring.small(0).store(FORM, Ordering::Release);
        let (put, refused) = (0, 0);
        Ok((Writer { ring, put, refused }, file))
    }

    /// Puts a report. Whether there was room for it.
    pub(crate) fn put(&mut self, report: &[u8]) -> bool {
        let length = taken_by(report.len() as u64);
        let taken = self.ring.number(TAKEN_AT).load(Ordering::Acquire);
        // Who claims to have taken what was never put has no room.
        let waiting = self.put.wrapping_sub(taken);
        if waiting > RING || RING - waiting < length {
            self.refused += 1;
            let refused = self.ring.number(REFUSED_AT);
            refused.store(self.refused, Ordering::Relaxed);
            return false;
        }
        let head = (report.len() as u32).to_le_bytes();
        self.ring.write(self.put, &head);
        self.ring.write(self.put + 4, report);
        self.put += length;
        self.ring.number(PUT_AT).store(self.put, Ordering::Release);
        true
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ring.small(CLOSED_AT).store(1, Ordering::Release);
    }
}

/// The user's end.
#[derive(Debug)]
pub struct Reader {
    ring: Ring,
    taken: u64,
    /// The numbers in the memory were none of the forwarder's.
    is_damaged: bool,
}

impl Reader {
    /// Maps what the forwarder has given.
    ///
    /// # Errors
    /// The system's; it is memory of another form.
    pub fn of(file: &OwnedFd) -> io::Result<Reader> {
        let size = std::fs::File::from(file.try_clone()?).metadata()?.len();
        if size != HEAD as u64 + RING {
            return Err(io::Error::other("it is no memory of reports of this form"));
        }
        let ring = Ring::of(file)?;
        if ring.small(0).load(Ordering::Acquire) != FORM {
            return Err(io::Error::other("it is memory of reports of another form"));
        }
        Ok(Reader {
            ring,
            taken: 0,
            is_damaged: false,
        })
    }

    /// The next report, if there is one.
    pub fn next_report(&mut self) -> Option<Vec<u8>> {
        if self.is_damaged {
            return None;
        }
        let put = self.ring.number(PUT_AT).load(Ordering::Acquire);
        let waiting = put.wrapping_sub(self.taken);
        if waiting == 0 {
            return None;
        }
        let mut head = [0; 4];
        self.ring.read(self.taken, &mut head);
        let length = u64::from(u32::from_le_bytes(head));
        // Whoever has the memory can write there. What no forwarder writes is the end, for nothing behind it is a report.
        if waiting > RING || length > REPORT || taken_by(length) > waiting {
            self.is_damaged = true;
            return None;
        }
        let mut report = vec![0; length as usize];
        self.ring.read(self.taken + 4, &mut report);
        self.taken += taken_by(length);
        self.ring
            .number(TAKEN_AT)
            .store(self.taken, Ordering::Release);
        Some(report)
    }

    /// Whether nothing comes any more, beyond what is there.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_damaged || self.ring.small(CLOSED_AT).load(Ordering::Acquire) != 0
    }

    /// Whether somebody has written there who is no forwarder. No report is read any more.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Reports that the forwarder had no room for.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.ring.number(REFUSED_AT).load(Ordering::Relaxed)
    }
}

/// Sends bytes and a descriptor.
pub(crate) fn hand_over(to: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let pieces = [IoSlice::new(bytes)];
    match sendmsg(to, &pieces, &mut control, SendFlags::NOSIGNAL)? {
        sent if sent == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives a line and the descriptor that came with it, if one did.
pub(crate) fn take_over(from: &UnixStream) -> io::Result<(String, Option<OwnedFd>)> {
    let mut bytes = vec![0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(&mut bytes)];
    let count = recvmsg(from, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    bytes.truncate(count);
    if bytes.last() != Some(&b'\n') && count > 0 {
        from.take(1 << 16).read_to_end(&mut bytes)?;
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_in_order_and_beyond_the_ring_are_refused() {
        let (mut writer, file) = Writer::new().unwrap();
        let mut reader = Reader::of(&file).unwrap();
        assert_eq!(reader.next_report(), None);
        // Round the ring several times, with lengths that do not divide it.
        let mut number = 0u64;
        for round in 0..40_000u64 {
            let length = 8 + (round * 37 % 90) as usize;
            let mut report = vec![round as u8; length];
            report[..8].copy_from_slice(&round.to_le_bytes());
            assert!(writer.put(&report));
            if round % 3 != 0 {
                while let Some(found) = reader.next_report() {
                    assert_eq!(found[..8], number.to_le_bytes());
                    assert_eq!(found.len(), 8 + (number * 37 % 90) as usize);
                    number += 1;
                }
            }
        }
        let mut more = 0;
        while writer.put(&[7; 4000]) {
            more += 1;
        }
        assert!((200..=262).contains(&more), "{more}");
        assert_eq!(reader.refused(), 1);
        assert!(!reader.is_closed());
        drop(writer);
        assert!(reader.is_closed());
        let rest = std::iter::from_fn(|| reader.next_report()).count();
        assert_eq!(rest as u64, more + 40_000 - number);
    }

    #[test]
    fn a_reader_that_lies_harms_itself_alone() {
        let (mut writer, file) = Writer::new().unwrap();
        let liar = Ring::of(&file).unwrap();
        for claim in [1, u64::MAX, RING, 1 << 63] {
            liar.number(TAKEN_AT).store(claim, Ordering::Relaxed);
            let _ = writer.put(b"report");
        }
        liar.number(TAKEN_AT).store(writer.put, Ordering::Relaxed);
        liar.number(PUT_AT).store(u64::MAX, Ordering::Relaxed);
        assert!(writer.put(b"report"));
        // Nobody makes it shorter.
        let file = std::fs::File::from(file);
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn a_reader_of_damaged_memory_comes_to_its_end() {
        let damages: [fn(&Ring, u64); 6] = [
            // More was put than there is room for; less than was taken; a part of a report.
            |ring, put| ring.number(PUT_AT).store(put + RING + 8, Ordering::Relaxed),
            |ring, _| ring.number(PUT_AT).store(8, Ordering::Relaxed),
            |ring, put| ring.number(PUT_AT).store(put - 8, Ordering::Relaxed),
            |ring, _| ring.number(PUT_AT).store(u64::MAX, Ordering::Relaxed),
            // A length that no report has, and one beyond what was put.
            |ring, _| ring.write(16, &u32::MAX.to_le_bytes()),
            |ring, _| ring.write(16, &100u32.to_le_bytes()),
        ];
        for (which, damage) in damages.iter().enumerate() {
            let (mut writer, file) = Writer::new().unwrap();
            let mut reader = Reader::of(&file).unwrap();
            assert!(writer.put(b"a report") && writer.put(b"another one"));
            assert_eq!(reader.next_report().as_deref(), Some(&b"a report"[..]));
            damage(&Ring::of(&file).unwrap(), writer.put);
            assert_eq!(reader.next_report(), None, "{which}");
            assert!(reader.is_damaged() && reader.is_closed(), "{which}");
            // It stays so, whatever is put now.
            assert!(writer.put(b"more"), "{which}");
            assert_eq!(reader.next_report(), None, "{which}");
        }
    }

    #[test]
    fn memory_goes_through_a_socket() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut writer, file) = Writer::new().unwrap();
        hand_over(&one, b"done\n", std::os::fd::AsFd::as_fd(&file)).unwrap();
        let (line, file) = take_over(&other).unwrap();
        assert_eq!(line, "done\n");
        let mut reader = Reader::of(&file.unwrap()).unwrap();
        assert!(writer.put(b"hello"));
        assert_eq!(reader.next_report().as_deref(), Some(&b"hello"[..]));
    }
}
