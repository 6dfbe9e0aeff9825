//! A prepared grant and its revocation allocate nothing, with the table written; nor do those of a slab's parts.

use mullion_supervisor::{DomainId, Level, Permission, Range, Supervisor};
use mullion_word_table::{ADDRESS_BITS, Inside, Limits, Table};
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

#[test]
fn a_prepared_grant_and_its_revocation_allocate_nothing() {
    let space = Range::bytes(0, 1 << ADDRESS_BITS).unwrap();
    let table = Table::reserve(Limits::default(), Inside::new().unwrap()).unwrap();
    let (root, rw) = (DomainId::SUPERVISOR, Permission::ReadWrite);
    let mut s = Supervisor::new(space, table);
    let own = |at| Range::bytes(at, 4096).unwrap();
    let module = s.pd_subdivide(&root, own(0x10000), rw).unwrap();
    let other = s.pd_subdivide(&root, own(0x20000), rw).unwrap();
    for (range, target, permission) in [
        (own(0x30000), module, rw),
        (own(0x40000), module, Permission::Read),
        (own(0x50000), other, rw),
    ] {
        let grant = s
            .prepare(&root, target, range, permission, Level::None)
            .unwrap();
        let mut rounds = || {
            for _ in 0..100 {
                s.grant_prepared(&root, grant).unwrap();
                s.revoke_prepared(&root, grant).unwrap();
            }
        };
        rounds();
        let before = COUNT.get();
        rounds();
        assert_eq!(COUNT.get() - before, 0, "{range}");
    }
    let slab = own(0x60000);
    let [one, two] =
        [module, other].map(|target| s.prepare(&root, target, slab, rw, Level::None).unwrap());
    let mut rounds = || {
        for at in 0..60 {
            let part = Range::bytes(0x60000 + 64 * at, 64).unwrap();
            for slab in [one, two] {
                assert_eq!(s.grant_part(&root, slab, part), Ok(true));
            }
            for slab in [two, one] {
                assert_eq!(s.revoke_part(&root, slab, part), Ok(true));
            }
        }
    };
    rounds();
    let before = COUNT.get();
    rounds();
    assert_eq!(COUNT.get() - before, 0, "parts of a slab");
}
