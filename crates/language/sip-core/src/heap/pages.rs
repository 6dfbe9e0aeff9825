//! Whole pages of a process's heap, by request.

use super::region;
use crate::thread::here;

/// Pages of the calling process's heap; `None` in no process, or if its limit does not allow them.
#[inline]
pub(crate) fn allocate_pages(bytes: usize) -> Option<*mut u8> {
    let heap = here::heap()?;
    let units = bytes
        .max(1)
        .div_ceil(super::UNIT)
        .checked_next_power_of_two()?;
    let order = units.ilog2() as usize;
    if order >= region::ORDERS {
        return None;
    }
    let number = heap.run(order).ok()?;
    region::unit(number).pages.set(true);
    Some(region::address(number))
}

/// Gives back what [`allocate_pages`] gave to the calling process. Anything else is left alone.
#[inline]
pub(crate) fn release_pages(pages: *mut u8) {
    let Some((heap, number)) = here::heap().zip(region::unit_of(pages)) else {
        return;
    };
    // Another's unit is its worker's: of it nothing but the owner is read.
    if !heap.owns(number) {
        return;
    }
    let unit = region::unit(number);
    let whole = unit.pages.get() && region::address(number) == pages;
    if whole {
        unit.pages.set(false);
        heap.unlink(number);
    }
}
