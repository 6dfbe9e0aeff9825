//! How the handles of a value are found.

use std::ptr::NonNull;

use super::sizes::Id;

/// How to visit the handles in a block: `count` values of the type that it is made for.
///
/// # Safety
/// At `values` there are `count` values of that type, which nobody else uses meanwhile.
pub type Scan = unsafe fn(values: NonNull<u8>, count: usize, visitor: &mut dyn Visitor);

/// Is shown each handle of a value.
pub trait Visitor {
    /// A handle of a block of values; with `scan`, `count` values in it hold handles themselves.
    fn block(&mut self, block: Id, scan: Option<Scan>, count: usize);

    /// An endpoint, by its place.
    fn endpoint(&mut self, place: NonNull<()>);
}
