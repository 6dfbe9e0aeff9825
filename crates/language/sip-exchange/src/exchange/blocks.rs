//! Blocks, whatever is in them: taken, lent, given back.

use std::ptr::NonNull;

use mullion_sip_core::owner;

use super::error::{DecodeError, HeapError};
use super::region::Holder;
use super::sizes::{Class, Id};
use super::visitor::Visitor;
use super::walk::Discard;
use super::{accounts, common_memory, worker};
use crate::inner::CORE;

/// A block that was just taken, and where it is.
type Fresh = (Id, NonNull<u8>);

/// A fresh block for `bytes` on the caller's list.
pub(super) fn allocate(bytes: usize) -> Result<Fresh, HeapError> {
    allocate_of(Class::holding(bytes).ok_or(HeapError::TooLarge(bytes))?)
}

#[inline]
fn allocate_of(class: Class) -> Result<Fresh, HeapError> {
    let _critical = CORE.critical();
    let book = accounts::of(owner::current());
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
    if bytes > common_memory::COPIED
        && let Some(common_memory) = common_memory::get()
        && let Some(class) = common_memory.class(bytes)
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
    let common_memory = common_memory::get().ok_or(DecodeError::Invalid("lent block"))?;
    let id = Id(number);
    let block = common_memory.arrive(id, from)?;
    worker::current().count_taken();
    Ok((id, block))
}

/// A block of a message that is to be dropped goes to another OS process then, by its life.
pub(crate) fn lend(number: u32, to: u16) {
    if let Some(common_memory) = common_memory::get() {
        common_memory.lend(Id(number), to);
    }
}

/// Blocks that were sent to that life, and that it has not read, are nobody's: it reads nothing any more.
pub(crate) fn recall(numbers: &[u32], from: u16) {
    if let Some(common_memory) = common_memory::get() {
        numbers
            .iter()
            .for_each(|number| common_memory.recall(Id(*number), from));
    }
}

/// The number by which a block goes to another OS process that shares memory, unless it is to be copied. Nobody touches it
/// any more, and it is to be lent.
pub(super) fn leave(id: Id) -> Option<u32> {
    let goes = id.is_common() && common_memory::get()?.leave(id);
    goes.then_some(id.0)
}

/// Frees a block of the caller's, whatever is in it.
pub(super) fn release(id: Id) {
    discard(|visitor: &mut Discard| visitor.block(id, None, 0));
}

/// Frees what `visit` shows.
pub(crate) fn discard(visit: impl FnOnce(&mut Discard)) {
    let _critical = CORE.critical();
    let mut discard = Discard::new(worker::current());
    visit(&mut discard);
    discard.finish();
}
