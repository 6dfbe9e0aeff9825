//! The data stacks of a domain.
//!
//! A thread leases a stack of a domain at its first call and keeps it until the thread ends or the domain
//! does. So a call takes none and gives none back. Stacks stay mapped when the domain is restarted or its
//! window is used again.

use crate::access::{Access, PAGE};
use crate::records::{Decided, Record, Wanted};
use crate::window::Window;
use mullion_abi::{HEAP_END, STACK_FIRST, STACK_GUARD, STACK_REGION};
use mullion_report::error::Error;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Greatest number of data stacks of a domain: as many as there is room for.
pub const MAX_STACKS: u32 = ((STACK_FIRST - HEAP_END) / STACK_REGION + 1) as u32;
/// Greatest size of a data stack, in bytes.
pub const MAX_STACK_SIZE: u64 = STACK_REGION - STACK_GUARD;

/// Bytes below the data stack pointer that a function may use without moving it.
pub(crate) const RED_ZONE: u32 = 128;

/// The data stacks of one domain.
#[derive(Debug)]
pub(crate) struct Stacks {
    state: Mutex<State>,
    count: u32,
    size: u64,
}

#[derive(Debug, Default)]
struct State {
    returned: Vec<u32>,
    /// How many have ever been handed out.
    handed_out: u32,
    mapped: Mapped,
}

/// The stacks that are mapped in a window, from the first one on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mapped {
    count: u32,
    /// Bytes of each.
    size: u64,
}

impl Mapped {
    /// Drops what the stacks hold. Nobody runs in the window.
    pub(crate) fn clear(&self, window: &Window) -> Result<(), Error> {
        let Some(mut all) = self.range() else {
            return Ok(());
        };
        // Every thread has used the top page of its stack: that of the first stack stays
        // and is written, which takes less than to fault for a new one.
        all.end -= PAGE;
        // SAFETY: stacks are mapped readable and writable, which no domain can change.
        unsafe { window.zero(all.end..all.end + PAGE) };
        window.discard(all)
    }

    /// Takes stacks of another size away.
    pub(crate) fn resize(
        &mut self,
        window: &Window,
        decided: &Decided<'_>,
        size: u64,
    ) -> Result<(), Error> {
        if let Some(all) = self.range().filter(|_| self.size != size) {
            window.unmap(decided, all)?;
            *self = Self::default();
        }
        Ok(())
    }

    /// What becomes of them in a domain whose stacks are of this size: they stay mapped, or go (`resize`).
    pub(crate) fn wanted(&self, size: u64) -> Vec<Wanted> {
        if self.size != size {
            let all = self.range().map(|all| Wanted::Own(all, Access::None));
            return all.into_iter().collect();
        }
        let stack = |index| {
            let region = Stacks::region(index);
            Wanted::Own(region.end - size..region.end, Access::ReadWrite)
        };
        (0..self.count).map(stack).collect()
    }

    /// From the lowest one to the highest, which is the first.
    fn range(&self) -> Option<Range<u64>> {
        let lowest = Stacks::region(self.count.checked_sub(1)?);
        Some(lowest.end - self.size..STACK_FIRST + STACK_REGION)
    }
}

impl Stacks {
    /// `count` stacks of `size` bytes, both within what the window has room for,
    /// of which some may be mapped and hold zero.
    pub(crate) fn new(count: u32, size: u64, mapped: Mapped) -> Self {
        Self {
            state: Mutex::new(State {
                mapped,
                ..State::default()
            }),
            count: count.clamp(1, MAX_STACKS),
            size: Self::mapped_size(size),
        }
    }

    /// Bytes that a stack has if its limit is `size`.
    pub(crate) fn mapped_size(size: u64) -> u64 {
        size.clamp(0x4000, MAX_STACK_SIZE).next_multiple_of(0x1000)
    }

    /// Those that are mapped.
    pub(crate) fn mapped(&self) -> Mapped {
        self.state().mapped
    }

    /// Takes back what `take` has given.
    pub(crate) fn give_back(&self, index: u32) {
        self.state().returned.push(index);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The region of a stack, of which the upper part is mapped.
    pub(crate) fn region(index: u32) -> Range<u64> {
        let start = STACK_FIRST - u64::from(index) * STACK_REGION;
        start..start + STACK_REGION
    }

    /// Offsets of the stack whose guard holds `offset`, if one does.
    pub(crate) fn overflowed(&self, offset: u64) -> Option<Range<u64>> {
        let end = STACK_FIRST + STACK_REGION;
        let index = end.checked_sub(offset)?.checked_sub(1)? / STACK_REGION;
        let index = u32::try_from(index)
            .ok()
            .filter(|index| *index < self.count)?;
        let region = Self::region(index);
        (offset < region.end - self.size).then_some(region.end - self.size..region.end)
    }

    /// One for a thread, in the window of this record.
    pub(crate) fn take(&self, record: &Record) -> Result<u32, Error> {
        let window = record.window();
        let mut state = self.state();
        if let Some(&index) = state.returned.last() {
            let region = Self::region(index);
            window.discard(region.end - self.size..region.end)?;
            state.returned.pop();
            return Ok(index);
        }
        let index = state.handed_out;
        if index == self.count {
            return Err(Error::NoStack { count: self.count });
        }
        // One that is mapped is the domain's already.
        if index >= state.mapped.count {
            let region = Self::region(index);
            let range = region.end - self.size..region.end;
            let wanted = [Wanted::Own(range.clone(), Access::ReadWrite)];
            record.change("a data stack", &wanted, |window, decided| {
                window.map_stack(decided, range)
            })?;
            state.mapped = Mapped {
                count: index + 1,
                size: self.size,
            };
        }
        state.handed_out += 1;
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_lie_between_heap_and_the_upper_guard() {
        assert!(Stacks::region(MAX_STACKS - 1).start >= HEAP_END);
        assert!(Stacks::region(MAX_STACKS).start < HEAP_END);
        assert_eq!(Stacks::region(0).start, STACK_FIRST);
    }

    #[test]
    fn an_overflow_is_told_from_what_is_mapped_and_from_other_memory() {
        let stacks = Stacks::new(2, 0x10000, Mapped::default());
        let first = Stacks::region(0);
        assert_eq!(stacks.overflowed(first.end - 1), None);
        assert_eq!(stacks.overflowed(first.end - 0x10000), None);
        assert_eq!(
            stacks.overflowed(first.end - 0x10001),
            Some(first.end - 0x10000..first.end)
        );
        assert_eq!(
            stacks.overflowed(Stacks::region(1).start),
            Some(first.start - 0x10000..first.start)
        );
        assert_eq!(
            stacks.overflowed(Stacks::region(2).start),
            None,
            "there is no third stack"
        );
        assert_eq!(stacks.overflowed(0), None);
        assert_eq!(stacks.overflowed(first.end), None);
    }
}
