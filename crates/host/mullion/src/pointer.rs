//! Addresses that a domain states, and what it takes to use them.

use crate::access::Access;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::value::{Value, sealed::Sealed};
use mullion_runtime::Claimed;
use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What can be copied across the wall: plain data, of which every bit pattern is
/// a value, without padding and references.
///
/// Integers, floating-point numbers, [`Ptr`] and arrays of such are. A `#[repr(C)]` structure of them becomes so by
/// `#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]`, which checks all of that when it is compiled. The
/// derive comes from `zerocopy`, re-exported as [`zerocopy`](crate::zerocopy). Then `#[zerocopy(crate =
/// "mullion::zerocopy")]` is needed as well. `bool` is not: a domain may store a 2 there; take `u8`.
pub trait Data: FromBytes + IntoBytes + Immutable + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + Copy> Data for T {}

/// An address of a `T` as a domain states it: an allegation, and no reference.
///
/// It cannot be dereferenced. Reading and writing through it name the domain
/// that it is said to lie in, check that it does, and copy. It says nothing about
/// lifetimes either. The domain may change, free or unmap what is there at any
/// time, so that each copy is of its own moment.
///
/// As a field of a `#[repr(C)]` structure it takes the place of C's pointer.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Ptr<T> {
    address: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// The null pointer.
    #[must_use]
    pub const fn null() -> Self {
        Self::from_address(0)
    }

    /// An address of a domain. Nothing is checked until it is used.
    #[must_use]
    pub const fn from_address(address: u64) -> Self {
        Self {
            address,
            kind: PhantomData,
        }
    }

    /// The address, unchecked.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Whether it is the null pointer.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// The same address of something else.
    #[must_use]
    pub const fn cast<U>(self) -> Ptr<U> {
        Ptr::from_address(self.address)
    }

    /// The address `count` elements further. Wraps around, as any number may come out.
    #[must_use]
    #[allow(
        clippy::should_implement_trait,
        reason = "as the pointers of the language have it"
    )]
    pub const fn add(self, count: u64) -> Self {
        let bytes = count.wrapping_mul(size_of::<T>() as u64);
        Self::from_address(self.address.wrapping_add(bytes))
    }

    fn claimed(self) -> Claimed {
        Claimed(self.address)
    }
}

impl<T: Data> Ptr<T> {
    /// A copy of what is there now.
    ///
    /// # Errors
    /// [`Error::Memory`]: it does not lie in the domain, or cannot be read.
    pub fn read(self, within: &impl DomainMemory) -> Result<T, Error> {
        let access = within.access()?;
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        let piece = access.memory().piece(self.claimed(), bytes.len() as u64);
        access.check(piece.and_then(|piece| piece.read(bytes)))?;
        Ok(value)
    }

    /// Copies `value` there.
    ///
    /// # Errors
    /// [`Error::Memory`]: it does not lie in the domain, or cannot be written.
    pub fn write(self, within: &impl DomainMemory, value: &T) -> Result<(), Error> {
        let access = within.access()?;
        access.check(access.memory().write(self.claimed(), value.as_bytes()))
    }

    /// `count` elements, checked to lie in the domain. A pointer that is not a
    /// multiple of `T`'s alignment is as good as any.
    ///
    /// # Errors
    /// [`Error::Memory`]: they do not lie in the domain.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub fn slice(self, within: &impl DomainMemory, count: u64) -> Result<Slice<'_, T>, Error> {
        self.slice_in(within.access()?, count)
    }

    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub(crate) fn slice_in(self, access: Access<'_>, count: u64) -> Result<Slice<'_, T>, Error> {
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        access.check(access.memory().piece(self.claimed(), bytes).map(drop))?;
        Ok(Slice {
            access,
            start: self,
            count,
        })
    }

    /// As [`Ptr::slice`], for one element.
    ///
    /// # Errors
    /// [`Error::Memory`]: it does not lie in the domain.
    pub fn check(self, within: &impl DomainMemory) -> Result<Slice<'_, T>, Error> {
        self.slice(within, 1)
    }
}

/// Strings: of `u8`, or of `i8`, which is C's `char` here.
impl<T: Character> Ptr<T> {
    /// A copy of the string that begins here, up to its terminating zero.
    ///
    /// # Errors
    /// [`Error::Memory`]: it does not lie in the domain; [`Error::LongString`]: there
    /// is no zero within `longest` bytes.
    pub fn c_string(self, within: &impl DomainMemory, longest: usize) -> Result<CString, Error> {
        let access = within.access()?;
        let read = access.memory().read_string(self.claimed(), longest);
        let bytes = access.check(read)?.ok_or(Error::LongString { longest })?;
        // `read_string` ends at the first zero, so that there is none inside.
        CString::new(bytes).map_err(|_| Error::LongString { longest })
    }

    /// As [`Ptr::c_string`], as text: what is not UTF-8 is replaced by U+FFFD.
    ///
    /// # Errors
    /// As [`Ptr::c_string`].
    pub fn string(self, within: &impl DomainMemory, longest: usize) -> Result<String, Error> {
        let string = self.c_string(within, longest)?;
        Ok(string.to_string_lossy().into_owned())
    }
}

/// A type that strings are made of.
pub trait Character: Sealed + Data {}
impl Character for u8 {}
impl Character for i8 {}

/// Elements that have been checked to lie in a domain: what a [`Ptr`] becomes.
///
/// They are copied in and out, never referred to, as the domain may change them
/// at any time. Until the slice is dropped the domain can be neither restarted
/// nor unloaded.
pub struct Slice<'a, T> {
    access: Access<'a>,
    start: Ptr<T>,
    count: u64,
}

impl<T: Data> Slice<'_, T> {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A copy of the element `index`.
    ///
    /// # Errors
    /// [`Error::Index`]: there is none; [`Error::Memory`]: the domain cannot read it.
    pub fn get(&self, index: u64) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.transfer(index, 1)?;
        let read = self
            .piece(index, 1)
            .and_then(|p| p.read(value.as_mut_bytes()));
        self.access.check(read)?;
        Ok(value)
    }

    /// Copies `value` to the element `index`.
    ///
    /// # Errors
    /// As [`Slice::get`].
    pub fn set(&self, index: u64, value: &T) -> Result<(), Error> {
        self.transfer(index, 1)?;
        let written = self.piece(index, 1).and_then(|p| p.write(value.as_bytes()));
        self.access.check(written)
    }

    /// Copies the first elements to `to`, as many as it has room for.
    ///
    /// # Errors
    /// [`Error::Index`]: `to` is longer; [`Error::Memory`]: they cannot be read.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub fn copy_to(&self, to: &mut [T]) -> Result<(), Error> {
        self.transfer(0, to.len() as u64)?;
        let piece = self.piece(0, to.len() as u64);
        self.access
            .check(piece.and_then(|p| p.read(to.as_mut_bytes())))
    }

    /// Copies `from` to the first elements.
    ///
    /// # Errors
    /// [`Error::Index`]: `from` is longer; [`Error::Memory`]: they cannot be written.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub fn copy_from(&self, from: &[T]) -> Result<(), Error> {
        self.transfer(0, from.len() as u64)?;
        let piece = self.piece(0, from.len() as u64);
        self.access
            .check(piece.and_then(|p| p.write(from.as_bytes())))
    }

    /// A copy of all elements.
    ///
    /// # Errors
    /// [`Error::Memory`]: they cannot be read. A domain can name up to 4 GiB: check
    /// [`Slice::len`] first where it came from the domain.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut list = vec![T::new_zeroed(); self.count as usize];
        self.copy_to(&mut list)?;
        Ok(list)
    }

    #[inline]
    fn piece(
        &self,
        index: u64,
        count: u64,
    ) -> Result<mullion_runtime::Piece<'_>, mullion_runtime::BadAddress> {
        let bytes = count * size_of::<T>() as u64;
        let start = self.start.add(index).claimed();
        self.access.memory().piece(start, bytes)
    }

    /// Whether `count` elements from `index` on belong to the slice.
    #[inline]
    fn transfer(&self, index: u64, count: u64) -> Result<(), Error> {
        match index.checked_add(count) {
            Some(end) if end <= self.count => Ok(()),
            _ => Err(beyond(index, count, self.count)),
        }
    }
}

/// There are only `length` elements.
#[cold]
#[inline(never)]
fn beyond(index: u64, count: u64, length: u64) -> Error {
    Error::Index {
        index: index.saturating_add(count).saturating_sub(1),
        length,
    }
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Ptr({:#x})", self.address)
    }
}

impl<T> Sealed for Ptr<T> {}
impl<T: 'static> Value for Ptr<T> {
    fn into_raw(self) -> u64 {
        self.address
    }
    fn from_raw(raw: u64) -> Self {
        Self::from_address(raw)
    }
}
