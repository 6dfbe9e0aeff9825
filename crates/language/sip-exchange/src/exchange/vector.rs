//! Values in a row in the exchange heap.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::blocks::{allocate, allocate_in_flight, allocate_plain, discard, release, take_lent};
use super::coding::{DecodeError, EncodeError, Reader, Writer};
use super::error::HeapError;
use super::sendable::{Exchange, Handles, encode_all, scan};
use super::shape::Shape;
use super::sizes::{Id, LARGEST, SMALLEST};
use super::visitor::Visitor;

/// Values in a row in the exchange heap, which move by pointer when they are sent. Like a [`Vec`] otherwise; it
/// grows by powers of two. An empty one has no block.
pub struct ExVec<T: Exchange> {
    /// The values' block; dangling while there is room for none.
    values: NonNull<T>,
    /// The block's number (0 for none) above the count of values: who sends it need not look for the number.
    block_and_count: u64,
    _owns: PhantomData<T>,
}
// A count of bytes at least fits into the lower half.
const _: () = assert!(LARGEST < 1 << 32);

impl<T: Exchange> ExVec<T> {
    /// An empty one.
    pub const fn new() -> ExVec<T> {
        const { assert!(align_of::<T>() <= SMALLEST, "alignment of at most 64 bytes") };
        const { assert!(size_of::<T>() > 0, "values without a size need no vector") };
        ExVec {
            values: NonNull::dangling(),
            block_and_count: 0,
            _owns: PhantomData,
        }
    }

    /// Has the block, and so many values in it.
    ///
    /// # Safety
    /// They are there, and both are the vector's alone; what it had before is somebody else's.
    unsafe fn has(&mut self, (id, block): (Id, NonNull<u8>), count: usize) {
        self.values = block.cast();
        self.block_and_count = u64::from(id.0) << 32 | count as u64;
    }

    /// The block's number; [`Id::NONE`] while there is room for no value.
    #[inline]
    fn id(&self) -> Id {
        Id((self.block_and_count >> 32) as u32)
    }

    #[inline]
    fn count(&self) -> usize {
        self.block_and_count as u32 as usize
    }

    /// There are so many values.
    ///
    /// # Safety
    /// It is so.
    #[inline]
    unsafe fn set_count(&mut self, count: usize) {
        self.block_and_count = self.block_and_count >> 32 << 32 | count as u64;
    }

    /// An empty one, with room for `count` values.
    ///
    /// # Panics
    /// [`HeapError`]; see [`ExVec::try_with_capacity`].
    pub fn with_capacity(count: usize) -> ExVec<T> {
        Self::try_with_capacity(count).unwrap_or_else(|error| std::panic::panic_any(error))
    }

    /// An empty one, with room for `count` values.
    ///
    /// # Errors
    /// The process's share or the heap is used up.
    pub fn try_with_capacity(count: usize) -> Result<ExVec<T>, HeapError> {
        let mut vector = ExVec::new();
        if count > 0 {
            vector.move_to_room_for(count, T::PLAIN)?;
        }
        Ok(vector)
    }

    #[inline]
    fn has_block(&self) -> bool {
        self.id() != Id::NONE
    }

    /// How many values there is room for without moving. Follows from the block.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.has_block() {
            self.id().class().bytes() / size_of::<T>()
        } else {
            0
        }
    }

    /// Adds a value at the end.
    ///
    /// # Panics
    /// [`HeapError`]; see [`ExVec::try_push`].
    #[inline]
    pub fn push(&mut self, value: T) {
        self.try_push(value)
            .unwrap_or_else(|error| std::panic::panic_any(error));
    }

    /// Adds a value at the end; if there is no room, all move to a block of twice the size.
    ///
    /// # Errors
    /// The process's share or the heap is used up; the value is dropped.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), HeapError> {
        let count = self.count();
        if count == self.capacity() {
            self.move_to_room_for(count + 1, T::PLAIN)?;
        }
        // SAFETY: there is room behind the last value.
        unsafe {
            self.values.add(count).write(value);
            self.set_count(count + 1);
        }
        Ok(())
    }

    /// Takes the last value.
    pub fn pop(&mut self) -> Option<T> {
        let count = self.count().checked_sub(1)?;
        // SAFETY: the value was the last and is now behind the end.
        Some(unsafe {
            self.set_count(count);
            self.values.add(count).read()
        })
    }

    /// Drops the values from `count` on.
    pub fn truncate(&mut self, count: usize) {
        if !std::mem::needs_drop::<T>() {
            // SAFETY: there are as many, or fewer.
            return unsafe { self.set_count(count.min(self.count())) };
        }
        while self.count() > count {
            self.pop();
        }
    }

    /// In memory that other OS processes may change, if `common` allows it.
    fn move_to_room_for(&mut self, count: usize, common: bool) -> Result<(), HeapError> {
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(HeapError::TooLarge(usize::MAX))?;
        let (before, count) = (self.id(), self.count());
        let (id, block) = match common {
            true => allocate_plain(bytes)?,
            false => allocate(bytes)?,
        };
        // SAFETY: the values move to a fresh block with room for more.
        unsafe {
            block.cast().copy_from_nonoverlapping(self.values, count);
            self.has((id, block), count);
        }
        if before != Id::NONE {
            release(before);
        }
        Ok(())
    }
}

impl<T: Exchange + Copy> ExVec<T> {
    /// A copy of some values.
    ///
    /// # Panics
    /// [`HeapError`].
    pub fn copy_of(values: &[T]) -> ExVec<T> {
        let mut vector = ExVec::with_capacity(values.len());
        vector.extend_from_slice(values);
        vector
    }

    /// Adds copies of some values at the end.
    ///
    /// # Panics
    /// [`HeapError`].
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.extend_in(values, T::PLAIN);
    }

    /// The same, in memory that nobody else can change: for who relies on what it has seen there.
    pub(super) fn extend_alone(&mut self, values: &[T]) {
        self.extend_in(values, false);
    }

    /// In memory that nobody else can change, as [`ExVec::extend_alone`] has it.
    pub(super) fn alone(self) -> ExVec<T> {
        if !self.id().is_common() {
            return self;
        }
        let mut vector = ExVec::new();
        vector.extend_alone(&self);
        vector
    }

    fn extend_in(&mut self, values: &[T], common: bool) {
        let before = self.count();
        let count = before + values.len();
        if count > self.capacity() {
            self.move_to_room_for(count, common)
                .unwrap_or_else(|error| std::panic::panic_any(error));
        }
        // SAFETY: there is room for them behind the last value.
        unsafe {
            let end = self.values.add(before).as_ptr();
            std::ptr::copy_nonoverlapping(values.as_ptr(), end, values.len());
            self.set_count(count);
        }
    }
}

impl<T: Exchange> Default for ExVec<T> {
    fn default() -> Self {
        ExVec::new()
    }
}

impl<T: Exchange> Drop for ExVec<T> {
    #[inline]
    fn drop(&mut self) {
        if self.has_block() {
            discard(|visitor| self.visit(visitor));
        }
    }
}

// SAFETY: it is one handle, or none, whose block holds `count` values.
unsafe impl<T: Exchange> Handles for ExVec<T> {
    const HOLDS: bool = true;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        if self.has_block() {
            let scan = if T::HOLDS { Some(scan::<T> as _) } else { None };
            visitor.block(self.id(), scan, self.count());
        }
    }
}

// SAFETY: the block moves with it, and holds exchangeable values.
unsafe impl<T: Exchange> Exchange for ExVec<T> {
    const SHAPE: Shape<Self> = Shape::handle("vector", T::DIGEST);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        if T::PLAIN
            && let Some(number) = to.lend(self.id())
        {
            to.bytes(&(self.count() as u64 | LENT).to_le_bytes())?;
            return to.bytes(&number.to_le_bytes());
        }
        to.bytes(&(self.count() as u64).to_le_bytes())?;
        to.nested(|to| encode_all(self, to))
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = from.count()?;
        match from.lender() {
            Some(lender) if T::PLAIN && count & LENT != 0 => {
                ExVec::decode_lent(count & !LENT, lender, from)
            }
            _ => ExVec::decode_counted(count, from),
        }
    }
}

/// In a count: the values are in a block that was lent, whose number follows.
const LENT: u64 = 1 << 63;

impl<T: Exchange> ExVec<T> {
    /// As bytes, which are read into memory that nobody else can change.
    pub(super) fn decode_alone(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = from.count()?;
        ExVec::decode_counted(count, from)
    }

    fn decode_counted(count: u64, from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = from.covered(count)?;
        let mut vector = ExVec::new();
        if count > 0 {
            vector.decode_values(count, from)?;
        }
        Ok(vector)
    }

    fn decode_lent(count: u64, lender: u16, from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const { assert!(size_of::<T>() > 0) };
        let invalid = DecodeError::Invalid("lent block");
        let number = u32::from_le_bytes(from.array()?);
        let block = take_lent(number, lender)?;
        let mut vector = ExVec::new();
        // SAFETY: the block is the vector's, and any bytes in it are values, as its callers have made sure.
        unsafe { vector.has(block, 0) };
        match usize::try_from(count) {
            // SAFETY: there is room for so many.
            Ok(count) if count <= vector.capacity() => unsafe { vector.set_count(count) },
            // It is dropped.
            _ => return Err(invalid),
        }
        Ok(vector)
    }
}

impl<T: Exchange> ExVec<T> {
    /// Reads values into an empty vector. What was read before a fault is dropped with it.
    fn decode_values(&mut self, count: usize, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(DecodeError::TooLarge)?;
        from.block(bytes)?;
        // SAFETY: the block is the vector's.
        unsafe { self.has(allocate_in_flight(bytes)?, 0) };
        if T::PLAIN {
            // SAFETY: the block has room for that many.
            let room = unsafe {
                std::slice::from_raw_parts_mut(self.values.cast::<MaybeUninit<T>>().as_ptr(), count)
            };
            from.plain(room)?;
            // SAFETY: so many were read.
            unsafe { self.set_count(count) };
            return Ok(());
        }
        from.nested(|from| {
            while self.count() < count {
                let value = T::decode(from)?;
                // SAFETY: the block has room for `count` values.
                unsafe {
                    self.values.add(self.count()).write(value);
                    self.set_count(self.count() + 1);
                }
            }
            Ok(())
        })
    }
}

impl<T: Exchange> Deref for ExVec<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `count` values are there, and it owns them.
        unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.count()) }
    }
}

impl<T: Exchange> DerefMut for ExVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `count` values are there, and it owns them.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.count()) }
    }
}

impl<T: Exchange> FromIterator<T> for ExVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut vector = ExVec::new();
        vector.extend(values);
        vector
    }
}

impl<T: Exchange> Extend<T> for ExVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Exchange + fmt::Debug> fmt::Debug for ExVec<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: Exchange + PartialEq> PartialEq for ExVec<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ledger::OwnerLedger;
    use super::super::region::Region;
    use super::super::{ExString, worker};
    use super::*;

    /// Does the same to both, and compares them.
    fn follow<T: Exchange + PartialEq + fmt::Debug>(
        steps: &[(u8, usize)],
        make: impl Fn(usize) -> T,
    ) {
        let (mut vector, mut model) = (ExVec::new(), Vec::new());
        for (what, number) in steps {
            match what {
                0..=2 => {
                    vector.push(make(*number));
                    model.push(make(*number));
                }
                3 => assert_eq!(vector.pop(), model.pop()),
                4 => {
                    vector.truncate(*number);
                    model.truncate(*number);
                }
                _ => {
                    vector.extend((0..*number).map(&make));
                    model.extend((0..*number).map(&make));
                }
            }
            assert_eq!(vector[..], model[..]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]
        #[test]
        fn it_does_as_a_vector_and_loses_no_block(
            steps in prop::collection::vec((0u8..6, 0usize..40), 0..40)
        ) {
            follow(&steps, |number| number as u64);
            follow(&steps, |number| ExString::from(number.to_string().as_str()));
            assert_eq!(OwnerLedger::of_thread(Region::get(), worker::current().number()).first(), None);
        }
    }
}
