//! Whole values as bytes.

use std::mem::MaybeUninit;

use mullion_sip_core::owner;

use super::accounts;
use super::coding::{DecodeError, EncodeError, Reader, Writer};
use super::parcel::Parcel;
use super::sendable::Exchange;
use crate::inner::CORE;

impl Writer<'_> {
    /// Adds values as they lie in memory.
    ///
    /// # Panics
    /// If they are not plain.
    #[inline]
    pub fn plain<T: Exchange>(&mut self, values: &[T]) -> Result<(), EncodeError> {
        assert!(T::PLAIN, "only plain values are their bytes");
        // SAFETY: plain values have no padding, so all their bytes are initialised.
        self.bytes(unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values))
        })
    }

    /// Adds a value as it lies in memory.
    ///
    /// # Panics
    /// If it is not plain.
    #[inline]
    pub fn value<T: Exchange>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.plain(std::slice::from_ref(value))
    }
}

impl Reader<'_> {
    /// Fills a place with values that are their bytes.
    #[inline]
    pub(super) fn plain<T: Exchange>(
        &mut self,
        place: &mut [MaybeUninit<T>],
    ) -> Result<(), DecodeError> {
        assert!(T::PLAIN, "only plain values are their bytes");
        let bytes = size_of_val(place);
        // SAFETY: the same memory, as bytes; any bytes are plain values.
        self.fill(unsafe { std::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), bytes) })
    }

    /// One value that is its bytes.
    ///
    /// # Panics
    /// If its type is not plain.
    #[inline]
    pub fn value<T: Exchange>(&mut self) -> Result<T, DecodeError> {
        let mut value = MaybeUninit::uninit();
        self.plain(std::slice::from_mut(&mut value))?;
        // SAFETY: written, and any bytes are a plain value.
        Ok(unsafe { value.assume_init() })
    }
}

/// A value as bytes, at most `longest`.
///
/// # Errors
/// As [`Exchange::encode`].
pub fn to_bytes<T: Exchange>(value: &T, longest: usize) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::with_capacity(longest);
    let mut writer = Writer::new(&mut [], &mut bytes.spare_capacity_mut()[..longest]);
    value.encode(&mut writer)?;
    let (written, _) = writer.finish();
    // SAFETY: that many were written, to the only place that has room for any.
    unsafe { bytes.set_len(written) };
    Ok(bytes)
}

/// The value that bytes are, all of them. Its blocks are the calling thread's owner's, as if it had made them.
///
/// # Errors
/// As [`Exchange::decode`]; or the owner holds as much as it may.
pub fn from_bytes<T: Exchange>(bytes: &[u8]) -> Result<T, DecodeError> {
    // Blocks that were read and are nobody's yet are lost if their maker is ended.
    let _critical = CORE.critical();
    let book = accounts::of(owner::current());
    if T::HOLDS {
        book.check(bytes.len() as u64)?;
    }
    let value = CORE.on_large_stack(|| {
        let mut reader = Reader::new(bytes);
        let value = T::decode(&mut reader)?;
        reader.finish()?;
        Ok::<T, DecodeError>(value)
    })?;
    let value = Parcel::arrived(value).open_for(owner::current());
    if T::HOLDS {
        book.check(0)?;
    }
    Ok(value)
}
