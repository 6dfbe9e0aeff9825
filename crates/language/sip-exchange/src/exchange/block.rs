//! One value in the exchange heap.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::inner::CORE;
use mullion_sip_core::owner;

use super::region::{Holder, Region};
use super::sendable::{Exchange, Handles, scan};
use super::shape::Shape;
use super::sizes::{Class, Id, LARGEST, SMALLEST};
use super::walk::{Discard, Visitor};
use super::wire::{DecodeError, EncodeError, Reader, Writer};
use super::{HeapError, ledger, worker};

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

/// A block that was just taken, and where it is.
type Fresh = (Id, NonNull<u8>);

/// A fresh block for `bytes` on the caller's list.
pub(super) fn allocate(bytes: usize) -> Result<Fresh, HeapError> {
    allocate_of(Class::holding(bytes).ok_or(HeapError::TooLarge(bytes))?)
}

#[inline]
fn allocate_of(class: Class) -> Result<Fresh, HeapError> {
    let _critical = CORE.critical();
    let book = ledger::of(owner::current());
    book.check(class.bytes() as u64)?;
    let id = worker::current().take(class)?;
    // SAFETY: the block is fresh, and the calling thread is its owner's worker.
    unsafe { book.link(id, Holder::FREE) };
    book.add(class.bytes() as u64);
    Ok((id, book.region().block(id)))
}

/// A fresh block for `bytes` of values of which any bytes are one: in memory that other OS processes share, if there is
/// such memory, and room in it.
#[inline]
pub(super) fn allocate_plain(bytes: usize) -> Result<Fresh, HeapError> {
    if bytes > super::commons::COPIED
        && let Some(commons) = super::commons::get()
        && let Some(class) = commons.class(bytes)
    {
        match allocate_of(class) {
            Err(HeapError::Exhausted(_)) => {}
            other => return other,
        }
    }
    allocate(bytes)
}

/// A fresh block for `bytes` that is in flight: nobody's yet, and on no list.
pub(super) fn allocate_in_flight(bytes: usize) -> Result<Fresh, HeapError> {
    let class = Class::holding(bytes).ok_or(HeapError::TooLarge(bytes))?;
    let _critical = CORE.critical();
    let worker = worker::current();
    let id = worker.take(class)?;
    // SAFETY: the block is fresh and the caller's.
    unsafe { (*worker.region().record(id)).holder = Holder::FREE.in_flight() };
    Ok((id, worker.region().block(id)))
}

/// A block that another OS process says that it has sent, in flight.
pub(super) fn take_lent(number: u32, from: u16) -> Result<Fresh, DecodeError> {
    let _critical = CORE.critical();
    let commons = super::commons::get().ok_or(DecodeError::Invalid("lent block"))?;
    let id = Id(number);
    let block = commons.arrive(id, from)?;
    worker::current().count_taken();
    Ok((id, block))
}

/// A block of a message that is to be dropped goes to another OS process then, by its life.
pub(crate) fn lend(number: u32, to: u16) {
    if let Some(commons) = super::commons::get() {
        commons.lend(Id(number), to);
    }
}

/// Blocks that were sent to that life, and that it has not read, are nobody's: it reads nothing any more.
pub(crate) fn recall(numbers: &[u32], from: u16) {
    if let Some(commons) = super::commons::get() {
        numbers
            .iter()
            .for_each(|number| commons.recall(Id(*number), from));
    }
}

/// The number by which a block goes to another OS process that shares memory, unless it is to be copied. Nobody touches it
/// any more, and it is to be lent.
pub(super) fn leave(id: Id) -> Option<u32> {
    let goes = super::commons::is_common(id) && super::commons::get()?.leave(id);
    goes.then_some(id.0)
}

/// Frees a block of the caller's, whatever is in it.
pub(super) fn release(id: Id) {
    discard(|visitor| visitor.block(id, None, 0));
}

/// Frees what `visit` shows.
pub(crate) fn discard(visit: impl FnOnce(&mut Discard)) {
    let _critical = CORE.critical();
    let mut discard = Discard::new(worker::current());
    visit(&mut discard);
    discard.finish();
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
