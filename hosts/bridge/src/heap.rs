//! A module's heap: memory of the host that is the module's to read and write.
//!
//! ```text
//!   | granted, in steps of 1 MiB                  | reserved, nobody's    |
//!   | blocks of powers of two, from 16 bytes on   |
//! ```
//!
//! What blocks there are is known in memory that no module sees. So nothing that a module writes leads the host astray.

use mullion_word_runtime::{Domain, GrantError, Host};
use thiserror::Error;

const STEP: u64 = 1 << 20;
const GRAIN: u64 = 16;
const CLASSES: usize = 40;

/// Why there is no heap.
#[derive(Debug, Error)]
pub enum HeapError {
    /// The system gives none.
    #[error("no addresses for a heap: {0}")]
    Memory(#[from] std::io::Error),
    /// The supervisor does not grant it.
    #[error("{0}")]
    Grant(#[from] GrantError),
}

/// The heap of one module.
pub struct Heap {
    base: u64,
    /// Reserved.
    bytes: u64,
    /// Granted.
    granted: u64,
    /// Where no block was made yet.
    next: u64,
    /// For each 16 bytes: 0, or the class of the block in use that begins there, plus one.
    used: Vec<u8>,
    free: [Vec<u64>; CLASSES],
    /// In blocks that are in use.
    pub total: u64,
}

fn class(bytes: u64) -> usize {
    let bytes = bytes.max(GRAIN).next_power_of_two();
    (bytes.trailing_zeros() - GRAIN.trailing_zeros()) as usize
}

fn size(class: usize) -> u64 {
    GRAIN << class
}

impl Heap {
    /// Reserves addresses for `bytes`.
    pub fn new(bytes: u64) -> Result<Heap, HeapError> {
        let bytes = bytes.max(1).next_multiple_of(STEP);
        // SAFETY: fresh addresses, of which nothing is known.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(Heap {
            base: base as u64,
            bytes,
            granted: 0,
            next: 0,
            used: vec![0; (bytes / GRAIN) as usize],
            free: [const { Vec::new() }; CLASSES],
            total: 0,
        })
    }

    /// Sees to it that `bytes` more can be taken without a grant.
    pub fn reserve(&mut self, host: &Host, domain: &Domain, bytes: u64) {
        let end = (self.next + bytes).next_multiple_of(STEP).min(self.bytes);
        if end > self.granted {
            let from = (self.base + self.granted) as usize;
            // SAFETY: the memory is for the module alone; the host reads it as what a stranger has written.
            let granted = unsafe { host.grant(domain, from, (end - self.granted) as usize, true) };
            if granted.is_ok() {
                self.granted = end;
            }
        }
    }

    /// From now on it grows no more.
    pub fn close(&mut self) {
        self.bytes = self.granted;
    }

    /// A block, or nothing if there is no room.
    pub fn take(&mut self, host: &Host, domain: &Domain, bytes: u64) -> Option<u64> {
        if bytes > self.bytes {
            return None;
        }
        let class = class(bytes);
        let at = match self.free[class].pop() {
            Some(at) => at,
            None => {
                let at = self.next;
                let end = at
                    .checked_add(size(class))
                    .filter(|end| *end <= self.bytes)?;
                if end > self.granted {
                    let more = (end - self.granted).next_multiple_of(STEP);
                    let from = (self.base + self.granted) as usize;
                    // SAFETY: the memory is for the module alone; the host reads it as what a stranger has written.
                    unsafe { host.grant(domain, from, more as usize, true) }.ok()?;
                    self.granted += more;
                }
                self.next = end;
                at
            }
        };
        self.used[(at / GRAIN) as usize] = class as u8 + 1;
        self.total += size(class);
        Some(self.base + at)
    }

    /// How large the block at an address is, if there is one.
    pub fn size(&self, address: u64) -> Option<u64> {
        let at = address
            .checked_sub(self.base)
            .filter(|at| at % GRAIN == 0)?;
        match *self.used.get((at / GRAIN) as usize)? {
            0 => None,
            class => Some(size(usize::from(class) - 1)),
        }
    }

    /// Gives a block back; whether there was one.
    pub fn give(&mut self, address: u64) -> bool {
        let Some(bytes) = self.size(address) else {
            return false;
        };
        let at = address - self.base;
        self.used[(at / GRAIN) as usize] = 0;
        self.free[class(bytes)].push(at);
        self.total -= bytes;
        true
    }

    /// All blocks are gone.
    pub fn clear(&mut self) {
        self.used[..(self.next / GRAIN) as usize].fill(0);
        self.free.iter_mut().for_each(Vec::clear);
        self.next = 0;
        self.total = 0;
    }

    /// Whether an address is the heap's.
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        let end = self.base + self.granted;
        address >= self.base && address.checked_add(bytes).is_some_and(|last| last <= end)
    }
}
