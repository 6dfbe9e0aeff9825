//! Ends of channels by number: what a process has that knows no types.
//!
//! ```text
//!   number = generation (32 bits, from 1) | place (32 bits)        an old number is nobody's
//! ```
//! The table is the kernel's and goes with the process. The ends in it are on the process's list like any of its ends,
//! and are closed from there.

use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use mullion_sip_core::owner::{self, Owner};
use mullion_sip_core::{Core, Hooks, Table, Zeroed};

use crate::inner::{CORE, EXCHANGE};
use mullion_sip_exchange::channel::AnyEndpoint;
use mullion_sip_exchange::interior::ByBytes;

use super::Refusal;

/// Ends that a process may have by number.
pub const ENDS: usize = 1 << 18;

/// One process's.
#[derive(Default)]
pub(super) struct Ends {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    /// None while it is free, or lent out.
    end: Option<ManuallyDrop<AnyEndpoint>>,
    /// One of the process's threads waits for its next message.
    waited_for: bool,
}

/// The place of one process's, by the process's own. All zero is none.
pub(crate) struct Held(Cell<Option<Box<Ends>>>);

// SAFETY: zero is no box.
unsafe impl Zeroed for Held {}
// SAFETY: a place is reached through `held` alone, by threads of its process and by the process's end: all of them run on
// the OS thread of its home worker.
unsafe impl Sync for Held {}

/// All of them.
pub(crate) type State = OnceLock<Table<Held, { Core::PLACES }>>;

mullion_sip_core::__state!(State = OnceLock::new());

/// Reserves the table, once.
pub(crate) fn reserve() -> io::Result<()> {
    let table = state();
    if table.get().is_none() {
        let _ = table.set(CORE.table()?);
    }
    Ok(())
}

/// The numbers of an ended process are nobody's.
pub(crate) const HOOKS: Hooks = Hooks {
    // The ends were on the owner's list, and are closed.
    process_ended: Some(|owner| drop(held(owner).and_then(|held| held.0.take()))),
    ..Hooks::NONE
};

/// The place of a process that lives on the calling worker.
fn held(owner: Owner) -> Option<&'static Held> {
    state().get()?.get(owner.index() as usize)
}

/// Does something with the calling process's ends, in a critical piece and as the host. `body` does not park and does
/// not call this again.
pub(super) fn with<R>(body: impl FnOnce(&mut Ends) -> Result<R, Refusal>) -> Result<R, Refusal> {
    let _host = CORE.as_host();
    let held = process().and_then(held).ok_or(Refusal::NoProcess)?;
    let mut ends = held.0.take().unwrap_or_default();
    let done = body(&mut ends);
    held.0.set(Some(ends));
    done
}

/// The calling process.
pub(super) fn process() -> Option<Owner> {
    Some(owner::current()).filter(|owner| *owner != Owner::HOST)
}

/// Gives an end of the calling process a number, by which code that knows no types can use it.
///
/// # Errors
/// The caller is in no process, or has [`ENDS`] of them.
pub fn number_of(end: AnyEndpoint) -> Result<u64, (Refusal, AnyEndpoint)> {
    let mut end = Some(end);
    let numbered = with(|ends| ends.add(&mut end));
    match (numbered, end) {
        (Err(refusal), Some(end)) => Err((refusal, end)),
        (numbered, _) => Ok(numbered.unwrap_or_default()),
    }
}

impl Ends {
    /// Takes the end, and gives its number.
    pub(super) fn add(&mut self, end: &mut Option<AnyEndpoint>) -> Result<u64, Refusal> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.slots.len() >= ENDS => return Err(Refusal::TooMany),
            None => {
                self.slots.push(Slot {
                    generation: 1,
                    end: None,
                    waited_for: false,
                });
                self.slots.len() as u32 - 1
            }
        };
        let slot = &mut self.slots[place as usize];
        slot.end = end.take().map(ManuallyDrop::new);
        Ok(u64::from(slot.generation) << 32 | u64::from(place))
    }

    fn slot(&mut self, number: u64) -> Result<&mut Slot, Refusal> {
        let slot = self.slots.get_mut(number as u32 as usize);
        slot.filter(|slot| u64::from(slot.generation) == number >> 32)
            .ok_or(Refusal::Unknown)
    }

    /// An end, whoever waits there.
    pub(super) fn look(&mut self, number: u64) -> Result<ByBytes<'_>, Refusal> {
        let end = self.slot(number)?.end.as_mut().ok_or(Refusal::Unknown)?;
        Ok(EXCHANGE.by_bytes(end))
    }

    /// An end at which nobody waits.
    pub(super) fn get(&mut self, number: u64) -> Result<ByBytes<'_>, Refusal> {
        if self.slot(number)?.waited_for {
            return Err(Refusal::Busy);
        }
        self.look(number)
    }

    /// Notes whether somebody waits at an end.
    pub(super) fn wait_at(&mut self, number: u64, waited_for: bool) {
        if let Ok(slot) = self.slot(number) {
            slot.waited_for = waited_for;
        }
    }

    /// Takes an end, at which nobody waits, and keeps its number for [`give_back`](Ends::give_back).
    pub(super) fn lend(&mut self, number: u64) -> Result<AnyEndpoint, Refusal> {
        self.get(number)?;
        let end = self.slot(number)?.end.take();
        end.map(ManuallyDrop::into_inner).ok_or(Refusal::Unknown)
    }

    pub(super) fn give_back(&mut self, number: u64, end: AnyEndpoint) {
        if let Ok(slot) = self.slot(number) {
            slot.end = Some(ManuallyDrop::new(end));
        }
    }

    /// Takes an end, at which nobody waits, and its number.
    pub(super) fn remove(&mut self, number: u64) -> Result<AnyEndpoint, Refusal> {
        let end = self.lend(number)?;
        self.forget(number);
        Ok(end)
    }

    /// The number of an end that was lent is nobody's from now on.
    pub(super) fn forget(&mut self, number: u64) {
        if let Ok(slot) = self.slot(number) {
            slot.generation = slot.generation.wrapping_add(1).max(1);
            slot.end = None;
            self.free.push(number as u32);
        }
    }
}
