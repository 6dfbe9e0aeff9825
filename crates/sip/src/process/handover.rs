//! What the kernel may keep for a process.

use crate::Parcel;
use crate::exchange::sendable::Handles;

/// Values that refer to no process's heap, so that they may outlive whoever made them.
///
/// # Safety
/// No part of the value is memory from the allocator, and none is a reference or a pointer into anything but
/// tables and heaps that outlive processes.
pub unsafe trait Handover: Send + 'static {}

macro_rules! plain {
    ($($name:ty),*) => {
        $(
            // SAFETY: a value without any reference.
            unsafe impl Handover for $name {}
        )*
    };
}
plain!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64
);
plain!(
    crate::owner::Owner,
    crate::wait::Waiter,
    std::time::Duration,
    std::time::Instant,
    &'static str
);

// SAFETY: what is packed lies in the exchange heap and belongs to nobody until it is opened.
unsafe impl<T: Handles> Handover for Parcel<T> {}

// SAFETY: each part is one.
unsafe impl<T: Handover, const COUNT: usize> Handover for [T; COUNT] {}
// SAFETY: as above.
unsafe impl<T: Handover> Handover for Option<T> {}
// SAFETY: as above.
unsafe impl<A: Handover, B: Handover> Handover for (A, B) {}
// SAFETY: as above.
unsafe impl<A: Handover, B: Handover, C: Handover> Handover for (A, B, C) {}
// SAFETY: as above.
unsafe impl<A: Handover, B: Handover, C: Handover, D: Handover> Handover for (A, B, C, D) {}
