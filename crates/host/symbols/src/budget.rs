//! What reading an image's own words may cost.
//!
//! Everything that is read of an image's debug information goes through a [`Counted`], and each
//! read takes a step from its [`Budget`]. When none is left, every read fails, and so does
//! whatever needed it. Time and memory are thus bounded wherever in the format a trap lies.

use gimli::{EndianSlice, Error, LittleEndian, Reader, ReaderOffsetId, Result};
use std::borrow::Cow;
use std::cell::Cell;

/// Steps that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    pub(crate) const fn new(steps: u64) -> Self {
        Self {
            left: Cell::new(steps),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes steps.
    #[inline]
    pub(crate) fn charge(&self, steps: u64) -> Result<()> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(SPENT)
            }
        }
    }

    /// Does a piece of the work that may take no more than `most` steps.
    pub(crate) fn within<R>(&self, most: u64, work: impl FnOnce() -> R) -> R {
        let all = self.left.get();
        let part = all.min(most);
        self.left.set(part);
        let done = work();
        self.left.set(all - (part - self.left.get()));
        done
    }
}

/// What a read says when no step is left. Nobody looks at the place in it.
pub(crate) const SPENT: Error = Error::UnexpectedEof(ReaderOffsetId(0));

/// Bytes that are searched or copied for one step.
const STRIDE: u64 = 32;

/// Bytes of an image, each read of which is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    bytes: EndianSlice<'a, LittleEndian>,
    budget: &'a Budget,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(bytes: &'a [u8], budget: &'a Budget) -> Self {
        Self {
            bytes: EndianSlice::new(bytes, LittleEndian),
            budget,
        }
    }

    /// The bytes, for whoever has bounds of his own.
    pub(crate) fn slice(&self) -> &'a [u8] {
        self.bytes.slice()
    }
}

impl Reader for Counted<'_> {
    type Endian = LittleEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    #[inline]
    fn len(&self) -> usize {
        self.bytes.slice().len()
    }

    fn empty(&mut self) {
        self.bytes.empty();
    }

    fn truncate(&mut self, length: usize) -> Result<()> {
        self.bytes.truncate(length)
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(base.bytes)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        self.budget.charge(1)?;
        let found = Reader::find(&self.bytes, byte);
        let searched = found.as_ref().map_or(self.len(), |at| *at);
        self.budget.charge(searched as u64 / STRIDE)?;
        found
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Result<()> {
        self.budget.charge(1)?;
        self.bytes.skip(length)
    }

    #[inline]
    fn split(&mut self, length: usize) -> Result<Self> {
        self.budget.charge(1)?;
        let bytes = self.bytes.split(length)?;
        Ok(Self { bytes, ..*self })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(self.slice().into())
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.budget.charge(self.len() as u64 / STRIDE)?;
        Reader::to_string(&self.bytes).map(|text| text.into_owned().into())
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.budget.charge(self.len() as u64 / STRIDE)?;
        Ok(String::from_utf8_lossy(self.slice()).into_owned().into())
    }

    #[inline]
    fn read_slice(&mut self, to: &mut [u8]) -> Result<()> {
        self.budget.charge(1 + to.len() as u64 / STRIDE)?;
        Reader::read_slice(&mut self.bytes, to)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.budget.charge(1)?;
        self.bytes.read_u8()
    }
}
