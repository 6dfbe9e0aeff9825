//! One value in the exchange heap.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::blocks::{allocate, allocate_in_flight, discard, release};
use super::coding::{DecodeError, EncodeError, Reader, Writer};
use super::error::HeapError;
use super::region::Region;
use super::sendable::{Exchange, Handles, scan};
use super::shape::Shape;
use super::sizes::{Class, Id, LARGEST, SMALLEST};
use super::visitor::Visitor;

/// A value in the exchange heap, which moves by pointer when it is sent. Like a [`Box`] otherwise.
///
/// It stays on the thread that has it, unless it is sent.
pub struct ExBox<T: Exchange> {
    value: NonNull<T>,
    _owns: PhantomData<T>,
}

impl<T: Exchange> ExBox<T> {
    /// Moves a value into the exchange heap.
    ///
    /// # Panics
    /// [`HeapError`]; see [`ExBox::try_new`].
    #[inline]
    pub fn new(value: T) -> ExBox<T> {
        Self::try_new(value).unwrap_or_else(|error| std::panic::panic_any(error))
    }

    /// Moves a value into the exchange heap.
    ///
    /// # Errors
    /// The process's share or the heap is used up.
    #[inline]
    pub fn try_new(value: T) -> Result<ExBox<T>, HeapError> {
        const { assert!(align_of::<T>() <= SMALLEST, "alignment of at most 64 bytes") };
        let block = allocate(size_of::<T>())?.1.cast::<T>();
        // SAFETY: the block is fresh, large enough and aligned to 64 bytes.
        unsafe { block.write(value) };
        Ok(ExBox {
            value: block,
            _owns: PhantomData,
        })
    }

    /// Takes the value out, and frees its block.
    pub fn into_inner(self) -> T {
        // SAFETY: the value moves out, and the handle is forgotten.
        let value = unsafe { self.value.read() };
        release(self.id());
        std::mem::forget(self);
        value
    }

    /// Its block.
    #[inline]
    fn id(&self) -> Id {
        const {
            assert!(
                size_of::<T>() <= LARGEST,
                "at most as large as the largest block"
            )
        };
        match const { Class::holding(size_of::<T>()) } {
            Some(class) => Region::id_of(class, self.value),
            None => unreachable!("larger than the largest block"),
        }
    }
}

impl<T: Exchange> Drop for ExBox<T> {
    #[inline]
    fn drop(&mut self) {
        discard(|visitor| self.visit(visitor));
    }
}

// SAFETY: it is one handle, whose block holds one `T`.
unsafe impl<T: Exchange> Handles for ExBox<T> {
    const HOLDS: bool = true;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        let scan = if T::HOLDS { Some(scan::<T> as _) } else { None };
        visitor.block(self.id(), scan, 1);
    }
}

// SAFETY: the block moves with it, and holds an exchangeable value.
unsafe impl<T: Exchange> Exchange for ExBox<T> {
    const SHAPE: Shape<Self> = Shape::handle("box", T::DIGEST);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.nested(|to| (**self).encode(to))
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.block(size_of::<T>())?;
        let value = from.nested(T::decode)?;
        let block = allocate_in_flight(size_of::<T>())?.1.cast::<T>();
        // SAFETY: the block is fresh, large enough and aligned to 64 bytes.
        unsafe { block.write(value) };
        Ok(ExBox {
            value: block,
            _owns: PhantomData,
        })
    }
}

impl<T: Exchange> Deref for ExBox<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it owns the value.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Exchange> DerefMut for ExBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it owns the value.
        unsafe { self.value.as_mut() }
    }
}

impl<T: Exchange + fmt::Debug> fmt::Debug for ExBox<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: Exchange + PartialEq> PartialEq for ExBox<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
