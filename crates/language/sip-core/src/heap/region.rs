//! The address space of all process heaps, and who has which unit of it.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::owners::Owner;
use crate::system;
use crate::table::{Table, Zeroed};

/// Bytes of a unit, the granule of what a process gets and gives back.
pub const UNIT: usize = 16 << 10;
/// Bytes of address space for all heaps together.
const REGION: usize = 256 << 30;
/// Runs have 1 << order units; the largest has 16 GiB.
pub(super) const ORDERS: usize = 21;

/// The region, once for the program.
pub(crate) struct State {
    /// No pointer of user space is within a region from 1 << 63 on, so nothing is ours before `reserve`.
    base: AtomicUsize,
    /// The first unit that nobody has had. Number 0 stands for none.
    frontier: AtomicU32,
    units: OnceLock<Table<Unit, { REGION / UNIT }>>,
}

impl State {
    pub(crate) const fn new() -> State {
        State {
            base: AtomicUsize::new(1 << 63),
            frontier: AtomicU32::new(1),
            units: OnceLock::new(),
        }
    }
}

__state!(State = State::new());

/// What is known of a unit. Only the worker that has it writes; `owner` and `units` are read by [`runs`] too.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The process that has it, as bits; 0 while it is in a pool.
    pub(super) owner: AtomicU64,
    /// How many units the run has that begins here; 0 inside a run.
    pub(super) units: AtomicU32,
    /// The neighbours in the heap's or the pool's list, in a run's first unit; 0 for none.
    pub(super) next: Cell<u32>,
    pub(super) previous: Cell<u32>,
    /// Whether the process asked for the run itself, as pages.
    pub(super) pages: Cell<bool>,
}

// SAFETY: zero is no owner, no run, no neighbours.
unsafe impl Zeroed for Unit {}
// SAFETY: the cells are touched only by the worker whose pool or heap holds the run, and a run comes to a
// worker from the frontier, where nobody had it, or stays.
unsafe impl Sync for Unit {}

/// Reserves the address space, once.
pub(crate) fn reserve() -> io::Result<()> {
    let state = state();
    if state.units.get().is_none() {
        let base = system::reserve(REGION, UNIT << 8)?;
        let units = Table::reserve()?;
        if state.units.set(units).is_ok() {
            state
                .base
                .store(base.expose_provenance(), Ordering::Release);
        }
    }
    Ok(())
}

/// The entry of a unit of the region.
#[inline]
pub(super) fn unit(number: u32) -> &'static Unit {
    state()
        .units
        .get()
        .and_then(|units| units.get(number as usize))
        .unwrap_or_else(|| unreachable!("unit {number} is not of the region"))
}

/// Where a unit's memory starts.
#[inline]
pub(super) fn address(number: u32) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(
        state().base.load(Ordering::Relaxed) + number as usize * UNIT,
    )
}

/// The unit that an address lies in, if it is of the region.
#[inline]
pub(super) fn unit_of(address: *const u8) -> Option<u32> {
    let offset = address
        .addr()
        .wrapping_sub(state().base.load(Ordering::Relaxed));
    (offset < REGION).then_some((offset / UNIT) as u32)
}

/// Takes a run from the frontier, aligned to its own size up to 256 units.
pub(super) fn carve(order: usize) -> Option<u32> {
    let units = 1u32 << order;
    let align = units.min(256);
    let mut start = 0;
    state()
        .frontier
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |frontier| {
            start = frontier.next_multiple_of(align);
            let end = start.checked_add(units)?;
            (end as usize <= REGION / UNIT).then_some(end)
        })
        .ok()
        .map(|_| start)
}

/// Bytes of all processes' heaps together, exact while no process takes or gives any. The caller allocates as the host.
pub(crate) fn in_use() -> usize {
    runs().iter().map(|(_, _, bytes)| bytes).sum()
}

/// Every run that a process has at the moment: owner, first byte, bytes. A picture, not a lock.
pub(crate) fn runs() -> Vec<(Owner, usize, usize)> {
    let mut found = Vec::new();
    let end = state().frontier.load(Ordering::Relaxed);
    let mut number = 1;
    while number < end {
        let unit = unit(number);
        let units = unit.units.load(Ordering::Relaxed).max(1);
        let owner = Owner::from_bits(unit.owner.load(Ordering::Relaxed));
        if owner != Owner::HOST {
            found.push((owner, address(number).addr(), units as usize * UNIT));
        }
        number += units;
    }
    found
}
