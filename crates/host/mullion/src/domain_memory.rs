//! Where a pointer is used: in a domain, or in the one that has just called.

use crate::access::Access;
use crate::buffer::Buffer;
use crate::domain::Domain;
use crate::error::Error;
use crate::pointer::Data;
use crate::value::sealed::Sealed;
use zerocopy::IntoBytes;

/// A domain whose memory is used: a [`Domain`], or a [`Caller`](crate::Caller) in a host function.
pub trait DomainMemory: Sealed {
    #[doc(hidden)]
    fn access(&self) -> Result<Access<'_>, Error>;

    /// The domain, if it is used from outside.
    #[doc(hidden)]
    fn outside(&self) -> Option<&Domain> {
        None
    }

    /// Zeroed memory for `count` elements in the domain, given back when the
    /// buffer is dropped.
    ///
    /// The list of these allocations is the host's. Nothing that the domain
    /// does to its own heap confuses them, and no code of the domain runs. The
    /// domain's `free` must not be given such memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`]: the domain's limit.
    fn alloc<T: Data>(&self, count: u64) -> Result<Buffer<T>, Error> {
        let access = self.access()?;
        Buffer::new(&access, count)
    }

    /// A copy of `data` in the domain.
    ///
    /// # Errors
    /// As [`DomainMemory::alloc`].
    fn copy_in<T: Data>(&self, data: &[T]) -> Result<Buffer<T>, Error> {
        let access = self.access()?;
        let buffer = Buffer::new(&access, data.len() as u64)?;
        let written = access.memory().write(buffer.claimed(), data.as_bytes());
        access.check(written)?;
        Ok(buffer)
    }

    /// How often the domain was restarted.
    ///
    /// # Errors
    /// [`Error::Unloaded`]; [`Error::NotOpen`]: it is just being restarted.
    fn restarts(&self) -> Result<u64, Error> {
        Ok(self.access()?.heap().life())
    }

    /// A copy of `text` in the domain, with a terminating zero behind it, which
    /// [`Buffer::len`] counts. Zeros inside end the string early, as C has it.
    ///
    /// # Errors
    /// As [`DomainMemory::alloc`].
    fn string_in(&self, text: &str) -> Result<Buffer<u8>, Error> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.copy_in(&bytes)
    }
}

impl Sealed for Domain {}
impl DomainMemory for Domain {
    #[inline]
    fn outside(&self) -> Option<&Domain> {
        Some(self)
    }
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn access(&self) -> Result<Access<'_>, Error> {
        self.hold()
    }
}
