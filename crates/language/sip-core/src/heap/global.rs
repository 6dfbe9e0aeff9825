//! The program's allocator: memory for who runs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use super::region;
use super::size::Size;
use crate::critical::critical;
use crate::process::Cause;
use crate::thread::here;

/// Declare one as the program's `#[global_allocator]`: standard containers of a process are then on its own
/// heap and cost nothing at its end. Its limit holds for them. Everything outside a process gets the
/// system's memory, as without.
///
/// ```
/// # extern crate mullion_sip_core as mullion_sip;
/// #[global_allocator]
/// static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProcessHeaps;

// SAFETY: blocks come from `Heap`, which gives each to one at a time until it is released, or from `System`;
// which of the two is told by the address, whoever releases it. A heap is used by its own process's threads
// only, which all live on one OS thread.
unsafe impl GlobalAlloc for ProcessHeaps {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match here::heap() {
            Some(heap) => match heap.allocate(layout) {
                Ok(block) => block,
                Err(_) if here::is_leaving() => here::die(Cause::Panic),
                Err(_) if here::in_critical_piece() => {
                    // The process ends when the piece is closed; until then the kernel gets what it needs.
                    here::die_later(Cause::Memory);
                    // SAFETY: the caller's layout is the trait's.
                    unsafe { System.alloc(layout) }
                }
                Err(_) => here::die(Cause::Memory),
            },
            // SAFETY: the caller's layout is the trait's.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if here::heap().is_none() {
            // SAFETY: the caller's layout is the trait's.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as above; the block has the layout's size.
        unsafe {
            let block = self.alloc(layout);
            ptr::write_bytes(block, 0, layout.size());
            block
        }
    }

    // SAFETY (the trait's): a block goes back to whoever it came from, which its address tells.
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if region::unit_of(block).is_none() {
            // The system's allocator holds locks; no process may end inside.
            let _whole = critical();
            // SAFETY: what is not of the region came from `System`.
            return unsafe { System.dealloc(block, layout) };
        }
        // Outside of any process the block waits for the end of its own.
        if let Some(heap) = here::heap() {
            // SAFETY: the trait's caller gives a block that is in use, with its layout; it is of the region, and so of
            // a heap.
            unsafe { heap.release(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let in_region = region::unit_of(block).is_some();
        if !in_region && here::heap().is_none() {
            // SAFETY: the trait's caller gives a block that is in use, with its layout; outside of the region it is
            // `System`'s.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: `bytes` and the alignment make a layout, says the trait.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if in_region && Size::of(wanted) == Size::of(layout) {
            return block;
        }
        // SAFETY: both blocks hold the smaller of the sizes, and a new block overlaps no old one.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}
