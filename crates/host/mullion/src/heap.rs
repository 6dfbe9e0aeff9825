//! Memory in a domain that its host hands out.
//!
//! The allocations are on the host's side; the domain's bytes are never read to find
//! out what is free. So nothing that a domain does can confuse them: it can
//! unmap the pages, which makes the next copy an error, and no more.

use mullion_runtime::{Access, MappingError, Memory, PAGE};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Smallest block; blocks below a page have sizes that are powers of two.
const SMALLEST: u64 = 16;
/// Bytes taken at a time for small blocks.
const CHUNK: u64 = 1 << 16;

/// One domain's memory that its host hands out.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// How often the domain was restarted. Whoever keeps it from that finds it unchanged.
    life: AtomicU64,
    allocations: Mutex<Allocations>,
}

#[derive(Debug, Default)]
struct Allocations {
    /// Free blocks, by size.
    free: BTreeMap<u64, Vec<u64>>,
    /// What is left of the last chunk.
    rest: std::ops::Range<u64>,
}

/// A block that was handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) address: u64,
    /// What it takes, at least what was asked for.
    size: u64,
    /// The domain's life that it is of.
    pub(crate) life: u64,
}

impl Heap {
    /// A block of at least `length` bytes, aligned to 16, whose first `length` are zero.
    pub(crate) fn take(&self, memory: &Memory, length: u64) -> Result<Block, MappingError> {
        let size = block_size(length).ok_or(MappingError::NoMemory)?;
        let mut allocations = self
            .allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let life = self.life();
        let block = |address| Block {
            address,
            size,
            life,
        };
        if let Some(address) = allocations.free.get_mut(&size).and_then(Vec::pop) {
            return Ok(block(address));
        }
        let address = if size >= PAGE {
            memory.map(None, size, Access::ReadWrite)?
        } else {
            allocations.carve(memory, size)?
        };
        Ok(block(address))
    }

    /// The domain has been restarted: its memory has gone, with all blocks.
    pub(crate) fn reset(&self) {
        let mut allocations = self
            .allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.life.fetch_add(1, Ordering::Relaxed);
        *allocations = Allocations::default();
    }

    /// Whether the memory of a block is still there.
    #[inline]
    pub(crate) fn has(&self, block: Block) -> bool {
        block.life == self.life()
    }

    #[inline]
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }

    /// Takes a block back, if it has not gone before.
    pub(crate) fn give_back(&self, block: Block) {
        let mut allocations = self
            .allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !self.has(block) {
            return;
        }
        allocations
            .free
            .entry(block.size)
            .or_default()
            .push(block.address);
    }
}

impl Allocations {
    /// What is left of a chunk that is too small stays unused: it is less than a
    /// page, once per chunk.
    fn carve(&mut self, memory: &Memory, size: u64) -> Result<u64, MappingError> {
        if self.rest.end - self.rest.start < size {
            let start = memory.map(None, CHUNK, Access::ReadWrite)?;
            self.rest = start..start + CHUNK;
        }
        let address = self.rest.start;
        self.rest.start += size;
        Ok(address)
    }
}

/// Powers of two below a page, then eight steps between them, in whole pages, so
/// that a block given back fits more than one request.
fn block_size(length: u64) -> Option<u64> {
    if length < PAGE {
        return Some(length.max(SMALLEST).next_power_of_two());
    }
    let step = (1 << (length.ilog2() - 3)).max(PAGE);
    length.checked_next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_enough_and_not_far_too_much() {
        for length in (0..70_000).chain([1 << 20, (1 << 32) - 1]) {
            let size = block_size(length).expect("no overflow");
            assert!(size >= length);
            let most = if length < PAGE {
                2 * length + SMALLEST
            } else {
                length + length / 4 + PAGE
            };
            assert!(size <= most, "{size} for {length}");
            assert_eq!(size % SMALLEST, 0);
            assert!(size < PAGE || size.is_multiple_of(PAGE));
        }
        assert_eq!(block_size(u64::MAX), None);
    }
}
