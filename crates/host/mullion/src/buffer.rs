//! Memory in a domain, owned by the host.

use crate::access::Access;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::heap::{Block, Heap};
use crate::pointer::{Data, Ptr, Slice};
use mullion_runtime::{BadAddress, Claimed};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Elements in a domain's memory, which it may read and write at any time, given
/// back when the buffer is dropped.
///
/// After a restart of the domain the memory is gone, and the buffer is
/// [`Error::Stale`]. Its [`Buffer::ptr`] is a number all the while: what is read
/// through it then is whatever the fresh domain has there, or an error.
pub struct Buffer<T> {
    heap: Arc<Heap>,
    block: Block,
    count: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T: Data> Buffer<T> {
    pub(crate) fn new(access: &Access<'_>, count: u64) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory {
            domain: access.name().to_owned(),
            count,
            size: size_of::<T>() as u64,
        };
        let length = count.checked_mul(size_of::<T>() as u64);
        let length = length.ok_or(mullion_runtime::MappingError::NoMemory);
        let block = length.and_then(|length| access.heap().take(access.memory(), length));
        let buffer = Self {
            heap: access.heap().clone(),
            block: block.map_err(no_memory)?,
            count,
            kind: PhantomData,
        };
        buffer.clear(access)?;
        Ok(buffer)
    }

    /// Whoever had the block before may have left something in it.
    fn clear(&self, access: &Access<'_>) -> Result<(), Error> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let length = self.count * size_of::<T>() as u64;
        let mut done = 0;
        while done < length {
            let step = (length - done).min(ZEROS.len() as u64);
            let at = Claimed(self.block.address + done);
            access.check(access.memory().write(at, &ZEROS[..step as usize]))?;
            done += step;
        }
        Ok(())
    }

    /// Its address, for a call. It stays the host's: the domain must not free it.
    #[must_use]
    pub fn ptr(&self) -> Ptr<T> {
        Ptr::from_address(self.block.address)
    }

    pub(crate) fn claimed(&self) -> Claimed {
        Claimed(self.block.address)
    }

    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How often the domain had been restarted when this was made: if that is not what
    /// [`DomainMemory::restarts`] says, it is [`Error::Stale`].
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.block.life
    }

    /// Its elements, to be copied in and out.
    ///
    /// # Errors
    /// [`Error::Memory`]: the domain is another one; [`Error::Stale`]: it was restarted.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub fn slice<'a>(&self, within: &'a impl DomainMemory) -> Result<Slice<'a, T>, Error> {
        let access = within.access()?;
        if !Arc::ptr_eq(&self.heap, access.heap()) {
            return Err(access.identity().has_no_memory(BadAddress {
                address: self.claimed(),
                length: self.count.saturating_mul(size_of::<T>() as u64),
            }));
        }
        if !self.heap.has(self.block) {
            return Err(access.identity().is_stale());
        }
        self.ptr().slice_in(access, self.count)
    }

    /// A copy of its elements as they are now.
    ///
    /// # Errors
    /// [`Error::Memory`]: the domain is another one, or has unmapped them;
    /// [`Error::Stale`]: it was restarted.
    pub fn to_vec(&self, within: &impl DomainMemory) -> Result<Vec<T>, Error> {
        self.slice(within)?.to_vec()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.heap.give_back(self.block);
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, count) = (self.block.address, self.count);
        write!(formatter, "Buffer({address:#x}, {count} elements)")
    }
}
