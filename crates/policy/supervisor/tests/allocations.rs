//! A grant and its revocation allocate nothing, once they have been made before. And the crate is built
//! without the standard library.

use mullion_supervisor::{DomainId, Level, Mechanism, Permission, Range, Supervisor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system's allocator's; the count is a number of the thread's own, without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps what `alloc` asks, of the same allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above, and `block` came from there.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nothing;

impl Mechanism for Nothing {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

/// Allocations of the second hundred rounds.
fn count(mut round: impl FnMut()) -> u64 {
    (0..100).for_each(|_| round());
    let before = COUNT.get();
    (0..100).for_each(|_| round());
    COUNT.get() - before
}

#[test]
fn a_grant_and_its_revocation_allocate_nothing() {
    let words = |first, count| Range::words(first, count).unwrap();
    let (root, rw) = (DomainId::SUPERVISOR, Permission::ReadWrite);
    let mut s = Supervisor::new(words(0, 1 << 20), Nothing);
    let kernel = s.pd_subdivide(&root, words(0, 1 << 19), rw).unwrap();
    let module = s.pd_subdivide(&root, words(1 << 19, 1024), rw).unwrap();
    for size in [16, 1024] {
        let places: Vec<Range> = (0..20).map(|n| words(4096 * n, size)).collect();
        let plain = count(|| {
            for range in &places {
                s.mprot_export(&kernel, module, *range, rw).unwrap();
            }
            for range in &places {
                s.mprot_export(&kernel, module, *range, Permission::None)
                    .unwrap();
            }
        });
        let prepared: Vec<_> = places
            .iter()
            .map(|range| s.prepare(&kernel, module, *range, rw, Level::None).unwrap())
            .collect();
        let switched = count(|| {
            for grant in &prepared {
                s.grant_prepared(&kernel, *grant).unwrap();
                s.revoke_prepared(&kernel, *grant).unwrap();
            }
        });
        assert_eq!((plain, switched), (0, 0), "{size} words");
        for grant in prepared {
            s.release(grant).unwrap();
        }
    }
}
