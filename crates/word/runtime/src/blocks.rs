//! Blocks of allocators, and memory that changes hands: given, freed, handed over, taken away.

use crate::core::Core;
use crate::gates::{Import, Seat};
use crate::holder::{Held, Holder};
use crate::instance;
use crate::learn;
use crate::lent::{Lent, Loans};
use crate::memory::lock;
use crate::note::Want;
use crate::rights::{self, GrantError, words};
use crate::world::world;
use mullion_supervisor::{Holding, Permission, Range};
use mullion_word_table::Access;
use std::ptr;
use std::sync::atomic::Ordering;

/// The module that calls, and who it runs for.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) core: &'static Core,
    pub(crate) holder: &'static Holder,
    seat: *const Seat,
    /// Where the loans of this call begin.
    mark: u64,
}

impl Caller {
    /// Whose newest call this is, with a frame on this thread.
    pub(crate) fn of(seat: *const Seat, core: &'static Core) -> Caller {
        let holder = instance::of_seat(seat);
        let mut caller = Caller {
            core,
            holder,
            seat,
            mark: 0,
        };
        caller.mark = caller.loans().mark();
        caller
    }

    pub(crate) fn loans(&self) -> &Loans {
        // SAFETY: the frame is on this thread's control stack until the call is over, and its seat lives as long.
        unsafe { &(*self.seat).loans }
    }

    /// What the call lends is the module's again.
    #[inline]
    pub(crate) fn takes_back(self) {
        self.loans().end(self.mark);
    }

    /// The same, for an argument whose memory goes: what the call has lent before `mark` is of other arguments, and must not go
    /// by this one. A module may pass one block as both, and the host would read what it has just freed. What the call lends behind
    /// this, of arguments that go later, it must still have: the block is not the module's then, so the look at the right says no.
    pub(crate) fn beside(self, mark: u64) -> Caller {
        Caller { mark, ..self }
    }

    /// Whether another call that runs, or another argument, has something of these bytes from the module; and whether only this
    /// thread can lend.
    fn has_lent(self, address: u64, bytes: u64) -> Lent {
        let bytes = address..address.saturating_add(bytes);
        self.core.lent(&bytes, (self.seat, self.mark))
    }

    /// Who has the block: an instance has its own, and its module's.
    fn keeper(self, address: u64) -> &'static Holder {
        match lock(&self.holder.blocks).get(address) {
            Some(_) => self.holder,
            None => &self.core.holder,
        }
    }
}

pub(crate) fn has_room(core: &Core, bytes: Option<u64>) -> bool {
    let blocks = lock(&core.holder.blocks);
    bytes.is_some_and(|bytes| blocks.has_room(bytes, core.limits.memory))
}

/// Memory of the host that a module takes over: until it gives it away, or begins anew.
pub(crate) fn take_over(holder: &'static Holder, range: Range) -> Result<(), GrantError> {
    let mut supervisor = world().supervisor();
    let raised = rights::raise(&mut supervisor, holder, range, Permission::ReadWrite)?;
    let mut taken = lock(&holder.taken);
    let all = std::mem::take(&mut *taken).into_iter();
    let (old, mut kept): (Vec<_>, Vec<_>) = all.partition(|(taken, _)| range.covers(*taken));
    kept.push((range, raised));
    *taken = kept;
    rights::lower_all(&mut supervisor, old.into_iter().map(|(_, raised)| raised));
    Ok(())
}

/// A block becomes a holder's. An allocator may give an address again, with fewer bytes: then the others are the holder's no longer.
pub(crate) fn give(
    core: &Core,
    holder: &Holder,
    address: u64,
    bytes: u64,
    allocator: &'static str,
) -> Result<(), GrantError> {
    let before = lock(&holder.blocks).get(address);
    if let Some(before) = before.filter(|before| before.bytes > bytes) {
        take_away(core, holder, address, before.bytes);
    }
    if bytes == 0 {
        lock(&holder.blocks).add(address, Held { bytes, allocator });
        return Ok(());
    }
    let range = words(address, bytes)?;
    rights::raise_for_good(
        &mut world().supervisor(),
        holder,
        range,
        Permission::ReadWrite,
    )?;
    lock(&holder.blocks).add(address, Held { bytes, allocator });
    Ok(())
}

/// Names of allocators are constants: nearly always they are the same one.
fn is_same(one: &str, other: &str) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// A block that was given goes back; which it was. Null is nothing.
pub(crate) fn free(
    who: Caller,
    import: &Import,
    address: u64,
    allocator: &str,
) -> Result<Option<Held>, String> {
    if address == 0 {
        return Ok(None);
    }
    let holder = who.keeper(address);
    let mut all = lock(&holder.blocks);
    let held = match all.get(address) {
        Some(held) if is_same(held.allocator, allocator) => held,
        Some(_) => return Err(format!("{address:#x} is a block of another allocator")),
        None => {
            drop(all);
            let want = Want::Free {
                function: &import.name,
                address,
            };
            if learn::note(who.core, 0, want) {
                return Ok(None);
            }
            let none = "is no block that was given to the module";
            return Err(format!("{address:#x} {none}"));
        }
    };
    match who.loses(address, held.bytes) {
        true => Ok(all.remove(address)),
        // It stays a block: a restart gives it back.
        false => {
            drop(all);
            let want = Want::Free {
                function: &import.name,
                address,
            };
            match learn::note(who.core, 0, want) {
                true => Ok(None),
                false => Err(format!("{address:#x} {LENT}")),
            }
        }
    }
}

/// Why something cannot go.
const LENT: &str = "is lent to a call that has not returned, or by another argument";

/// Memory that a module gives away for good: it has nothing there from then on. What it could not lose, it cannot
/// give: its own data and stacks, which it reaches without a check, a part of a block, which it could free, and what it has for
/// a time only.
pub(crate) fn hand_over(
    who: Caller,
    argument: u8,
    address: u64,
    bytes: u64,
) -> Result<Option<Held>, String> {
    let (core, holder) = (who.core, who.keeper(address));
    let mut all = lock(&holder.blocks);
    let end = address.saturating_add(bytes);
    let touches = |(at, held): (u64, Held)| at < end && address < at + held.bytes;
    let block = match all.get(address) {
        Some(block) if bytes == block.bytes => Some(block),
        None if !all.iter().any(touches) => None,
        _ => return Err(format!("argument {argument} is not one whole block")),
    };
    let holders = match ptr::eq(who.holder, &raw const core.holder) {
        true => &[who.holder][..],
        false => &[&core.holder, who.holder],
    };
    if block.is_none() {
        let range = words(address, bytes).map_err(|error| error.to_string())?;
        let owns = |(_, holding): (_, &Holding)| {
            holding.owner == core.id || holding.owner == who.holder.id
        };
        let stacks = &world().stacks;
        let mut supervisor = world().supervisor();
        if supervisor.regions(range).any(owns) || stacks.is_near(address) || stacks.is_near(end - 1)
        {
            return Err(format!("argument {argument} is the module's own memory"));
        }
        let mut holders = holders.iter();
        if holders.any(|holder| rights::is_for_a_time(&mut supervisor, holder, range)) {
            return Err(format!("argument {argument} is lent to the module"));
        }
        // A domain that learns has been told already.
        let has = who.holder.view.allows(address, bytes, Access::READ_WRITE);
        if !has && core.learning.is_none() {
            return Err(format!("argument {argument} is the module's no longer"));
        }
    }
    if !who.loses(address, bytes) {
        return Err(format!("argument {argument} {LENT}"));
    }
    Ok(all.remove(address))
}

impl Caller {
    /// Takes memory away from the module and all its instances; whether nothing of it is lent. Otherwise the call ends, and so does
    /// the module. It is one code that runs for all of them. So none may keep what the host has passed to a call for it, while the
    /// block goes back by another call, or by the same one for the module.
    fn loses(self, address: u64, bytes: u64) -> bool {
        let before = self.has_lent(address, bytes);
        if before.is_lent {
            return false;
        }
        for holder in self.core.holders() {
            let is_own =
                ptr::eq(holder, self.holder) || ptr::eq(holder, &raw const self.core.holder);
            if is_own || has_some(holder, address, bytes) {
                take_away(self.core, holder, address, bytes);
            }
        }
        // Another thread may have lent it meanwhile (`lent.rs`).
        before.is_alone || !self.has_lent(address, bytes).is_lent
    }
}

fn has_some(holder: &Holder, address: u64, bytes: u64) -> bool {
    words(address, bytes).is_ok_and(|range| rights::has_some(&world().supervisor(), holder, range))
}

/// Takes memory of the host away from a domain, on all threads.
pub(crate) fn take_away(core: &Core, holder: &Holder, address: u64, bytes: u64) {
    if bytes != 0
        && let Ok(range) = words(address, bytes)
    {
        // What is kept for a call may not be whole any more.
        core.inner.edition.fetch_add(1, Ordering::Release);
        let mut supervisor = world().supervisor();
        rights::take_away(&mut supervisor, holder, range);
        // What was handed over, and went again as a whole, is forgotten.
        lock(&holder.taken).retain(|(taken, _)| !range.covers(*taken));
    }
}
