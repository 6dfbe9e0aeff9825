//! Text in the exchange heap.

use std::fmt;
use std::ops::Deref;

use super::coding::{DecodeError, EncodeError, Reader, Writer};
use super::sendable::{Exchange, Handles};
use super::shape::Shape;
use super::vector::ExVec;
use super::visitor::Visitor;

/// UTF-8 text in the exchange heap. Like a [`String`], as far as it goes. Never in memory that another OS process shares,
/// which could make it anything but a text.
#[derive(Default, PartialEq)]
pub struct ExString(ExVec<u8>);

/// The bytes were not UTF-8: here they are again.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the bytes are not UTF-8")]
pub struct NotText(pub ExVec<u8>);

impl ExString {
    /// Adds a text at the end.
    ///
    /// # Panics
    /// [`super::HeapError`].
    pub fn push_str(&mut self, text: &str) {
        self.0.extend_alone(text.as_bytes());
    }

    /// The text's bytes.
    pub fn into_bytes(self) -> ExVec<u8> {
        self.0
    }
}

impl From<&str> for ExString {
    fn from(text: &str) -> Self {
        let mut bytes = ExVec::new();
        bytes.extend_alone(text.as_bytes());
        ExString(bytes)
    }
}

impl TryFrom<ExVec<u8>> for ExString {
    type Error = NotText;

    fn try_from(bytes: ExVec<u8>) -> Result<Self, NotText> {
        // What is looked at stays as it is.
        let bytes = bytes.alone();
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(ExString(bytes)),
            Err(_) => Err(NotText(bytes)),
        }
    }
}

impl Deref for ExString {
    type Target = str;

    fn deref(&self) -> &str {
        // SAFETY: only texts were put in.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

impl fmt::Debug for ExString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl fmt::Display for ExString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

// SAFETY: its vector is all it has.
unsafe impl Handles for ExString {
    const HOLDS: bool = true;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        self.0.visit(visitor);
    }
}

// SAFETY: its vector is all it has.
unsafe impl Exchange for ExString {
    const SHAPE: Shape<Self> = Shape::handle("text", ExVec::<u8>::DIGEST);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.0.encode(to)
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // Checked in our own block, where the sender cannot change it any more.
        ExString::try_from(ExVec::decode_alone(from)?).map_err(|_| DecodeError::Invalid("UTF-8"))
    }
}
