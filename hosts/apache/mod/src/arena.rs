//! Memory for what a module allocates from pools: reserved once, granted to the module in steps, and given out in chunks. A chunk
//! that comes back with its pool goes to the next pool of the same module. So a request grants nothing and takes nothing back.
//! A large block has a chunk of its own, which is granted as long as its pool lives. None of it is ever the core's. So a function
//! of the host may still write there when another thread ends the pool.
//!
//! Nobody but the module and the core, which reads what the module has made, has anything there. A module that uses a freed chunk
//! changes its own memory.

use crate::walled::Answer;
use mullion_word_runtime::{Domain, Host};

/// What is granted at a time.
const STEP: u64 = 64 << 10;
/// The smallest chunk, and how many sizes there are, each twice the one before.
const SMALLEST: u64 = 1 << 10;
const SIZES: usize = 24;

/// The largest chunk that is taken for small pieces.
pub(crate) const LARGEST: u64 = SMALLEST << 3;

#[derive(Default)]
pub(crate) struct Arena {
    /// Where the next chunk begins, and where what is granted and what is reserved ends.
    next: u64,
    granted: u64,
    end: u64,
    free: [Vec<u64>; SIZES],
}

/// The size of chunks that a number of bytes fits in, by its place among the sizes.
fn size(bytes: u64) -> usize {
    let times = bytes.div_ceil(SMALLEST).max(1).next_power_of_two();
    (times.trailing_zeros() as usize).min(SIZES - 1)
}

impl Arena {
    /// A chunk for at least `bytes`: where, and how large.
    pub(crate) fn take(
        &mut self,
        host: &Host,
        domain: &Domain,
        room: u64,
        bytes: u64,
    ) -> Answer<(u64, u64)> {
        let (at, bytes) = self.place(room, bytes)?;
        if at + bytes > self.granted {
            let step = (at + bytes - self.granted).next_multiple_of(STEP);
            // SAFETY: the step is the module's alone; the core reads what a stranger has written, as it does with all that
            // modules make.
            unsafe { host.grant(domain, self.granted as usize, step as usize, true) }
                .map_err(|error| error.to_string())?;
            self.granted += step;
        }
        Ok((at, bytes))
    }

    /// The same, and nothing is granted.
    pub(crate) fn place(&mut self, room: u64, wanted: u64) -> Answer<(u64, u64)> {
        let size = size(wanted);
        let bytes = SMALLEST << size;
        if bytes < wanted {
            return Err("a block is too large".to_owned());
        }
        if let Some(at) = self.free[size].pop() {
            return Ok((at, bytes));
        }
        if self.end == 0 {
            self.reserve(room)?;
        }
        if bytes > self.end - self.next {
            return Err("the module has used up its memory for pools".to_owned());
        }
        self.next += bytes;
        Ok((self.next - bytes, bytes))
    }

    /// Gives a chunk back.
    pub(crate) fn give(&mut self, at: u64, bytes: u64) {
        self.free[size(bytes)].push(at);
    }

    fn reserve(&mut self, room: u64) -> Answer<()> {
        // Of addresses there are many: a chunk is up to twice as large as what is asked for, and one that came back may fit nothing
        // at the moment.
        let bytes = room.saturating_mul(4).max(STEP);
        let bytes = bytes
            .checked_next_multiple_of(STEP)
            .unwrap_or(u64::MAX - STEP + 1);
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: fresh addresses, of which nothing is known.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().to_string());
        }
        (self.next, self.granted, self.end) = (at as u64, at as u64, at as u64 + bytes);
        Ok(())
    }
}
