//! Grants that come and go: the same words to the same domain, again and again (Mondrix, section 4.7).

use crate::call::{Call, Reply};
use crate::few::Few;
use crate::holdings::HoldingId;
use crate::living::Domain;
use crate::mechanism::{Holders, Mechanism};
use crate::policy::JoinPolicy;
use crate::region::Grant;
use crate::region::{Holding, Moved, Regions};
use crate::sorted::Place;
use crate::state::{Told, carry_out};
use crate::supervisor::Supervisor;
use alloc::vec::Vec;
use mullion_refusal::error::Error;
use mullion_terms::domain::DomainId;
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// A grant that was prepared by [`Supervisor::prepare`]. It has no power of its own: each switch is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreparedGrant {
    index: u32,
    generation: u32,
}

/// All prepared grants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    generation: u32,
    ready: Option<Ready>,
}

/// A prepared grant. A region begins at both ends of `range`, and its words are among those that are prepared
/// for `target`, which lives.
#[derive(Clone, Copy, Debug)]
struct Ready {
    caller: DomainId,
    target: DomainId,
    range: Range,
    grant: Grant,
    known: Option<Pair>,
    /// Where `range` is, as long as the regions have this shape.
    place: (Place, u64),
    /// Parts that could not be decided at once because `range` was several regions.
    misses: u32,
}

/// After so many of them a sheet is made of the regions.
const MISSES: u32 = 4;

/// How a part changes: from nothing, back to it, or whatever was there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    On,
    Off,
    Set(bool),
}

/// Two holdings that are kept. Of `off`, `caller` is the owner, no group has anything, and `target` has nothing;
/// `on` is the same with the grant, which is no gate. So whoever is allowed to do what follows from the
/// holding alone: the owner may go from the one to the other, and nothing else changes by it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    off: HoldingId,
    on: HoldingId,
}

impl Prepared {
    fn add(&mut self, ready: Ready) -> PreparedGrant {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.ready = Some(ready);
        PreparedGrant {
            index,
            generation: slot.generation,
        }
    }

    #[inline]
    fn get(&mut self, grant: PreparedGrant) -> Option<&mut Ready> {
        let slot = self.slots.get_mut(grant.index as usize)?;
        let is_it = slot.generation == grant.generation;
        slot.ready.as_mut().filter(|_| is_it)
    }

    fn take(&mut self, index: u32) -> Option<Ready> {
        let slot = self.slots.get_mut(index as usize)?;
        let ready = slot.ready.take()?;
        // A number whose generations are used up is not given out again.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(index);
        }
        Some(ready)
    }

    /// The holdings that are kept for prepared grants.
    #[cfg(feature = "check")]
    pub(crate) fn kept(&self) -> impl Iterator<Item = HoldingId> {
        let pairs = self.slots.iter().filter_map(|slot| slot.ready?.known);
        pairs.flat_map(|pair| [pair.off, pair.on])
    }
}

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// Prepares what [`mprot_export_up_to`](Self::mprot_export_up_to) would grant, so that it can be granted and
    /// revoked in a few nanoseconds. It grants nothing yet, and is refused if the grant would be refused now.
    /// It ends with `target`, or by [`release`](Self::release).
    ///
    /// Quick is what an owner gives to a domain that has nothing there, where no group has. All else is done
    /// as the plain call does it.
    pub fn prepare(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        target: DomainId,
        range: Range,
        permission: Permission,
        export: Level,
    ) -> Result<PreparedGrant, Error> {
        let caller = stack.current();
        let grant = Grant::new(permission, export);
        self.state.domain(caller)?;
        self.plan_export(caller, target.into(), range, grant)?;
        self.state.regions.cut(range.start());
        self.state.regions.cut(range.end());
        let prepared = self.state.prepared.add(Ready {
            caller,
            target,
            range,
            grant,
            known: None,
            place: (Place::default(), u64::MAX),
            misses: 0,
        });
        if let Some(domain) = self.state.domains.get_mut(target) {
            domain.prepared.insert(range);
            domain.handles.push(prepared.index);
        }
        Ok(prepared)
    }

    /// Grants what was prepared: the same as [`mprot_export_up_to`](Self::mprot_export_up_to) by the present
    /// caller.
    pub fn grant_prepared(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
    ) -> Result<(), Error> {
        self.switch(stack.current(), prepared, true)
    }

    /// Takes back what was prepared: the same as [`mprot_export`](Self::mprot_export) of [`Permission::None`] by
    /// the present caller.
    pub fn revoke_prepared(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
    ) -> Result<(), Error> {
        self.switch(stack.current(), prepared, false)
    }

    /// Grants a part of what was prepared, in a few nanoseconds wherever it begins (Mondrix, section 4.7: a slab is
    /// prepared, its objects are granted). The answer is no, and nothing has changed, if that cannot be decided at
    /// once. So it is if `target` has something there, the caller does not own all of it, or a group has something.
    /// Then the plain call decides.
    ///
    /// The caller is the one who prepared it.
    pub fn grant_part(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
        part: Range,
    ) -> Result<bool, Error> {
        self.switch_part(stack.current(), prepared, part, Part::On)
    }

    /// Takes back what [`grant_part`](Self::grant_part) has granted. The answer is no, and nothing has changed, if
    /// `target` has anything else there, or as above.
    pub fn revoke_part(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
        part: Range,
    ) -> Result<bool, Error> {
        self.switch_part(stack.current(), prepared, part, Part::Off)
    }

    /// Gives `target` what was prepared on a part, or nothing, whatever it has there of the caller's. The answer as above.
    pub fn set_part(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
        part: Range,
        on: bool,
    ) -> Result<bool, Error> {
        self.switch_part(stack.current(), prepared, part, Part::Set(on))
    }

    /// [`revoke_part`](Self::revoke_part) of `from`, and [`grant_part`](Self::grant_part) of `to` behind it: two calls, settled
    /// once. The answer is no, and nothing has changed, if one of the two cannot be decided at once, or if decisions are
    /// recorded.
    #[inline]
    pub fn move_part(
        &mut self,
        stack: &impl mullion_terms::domain::CallStack,
        prepared: PreparedGrant,
        from: Range,
        to: Range,
    ) -> bool {
        let regions = &mut self.state.regions;
        let Some(ready) = self.state.prepared.get(prepared) else {
            return false;
        };
        let Some(Pair { off, on }) = ready.known else {
            return false;
        };
        let (place, shape) = ready.place;
        let (target, access) = (ready.target, ready.grant.access);
        let is_it = ready.caller == stack.current()
            && ready.range.covers(from)
            && ready.range.covers(to)
            && shape == regions.shape();
        if !is_it || self.audit.is_some() || !self.mechanism.room(to.count(), 2, false) {
            return false;
        }
        let regions = &mut self.state.regions;
        if !regions.shift_at_once(place, (off, on), (from, to)) {
            return false;
        }
        if M::BY_HOLDING {
            let numbers = (regions.number(off), regions.number(on));
            let (state, who) = (&self.state, Some(target.into()));
            let holders = |id| Holders::new(state, state.regions.holding(id), who);
            let holders = || (holders(off), holders(on));
            self.mechanism.shift((from, to), numbers, holders);
        }
        if M::BY_DOMAIN {
            for (part, access) in [(from, Permission::None), (to, access)] {
                self.mechanism.write(target, part, access);
                self.mechanism.flush(target, part);
            }
        }
        true
    }

    #[inline]
    fn switch_part(
        &mut self,
        caller: DomainId,
        prepared: PreparedGrant,
        part: Range,
        how: Part,
    ) -> Result<bool, Error> {
        let regions = &mut self.state.regions;
        let Some(ready) = self.state.prepared.get(prepared) else {
            return Err(Error::UnknownPrepared);
        };
        if ready.caller != caller || !ready.range.covers(part) {
            return Ok(false);
        }
        if ready.place.1 != regions.shape() {
            let Some(place) = place_of(regions, ready) else {
                return Ok(false);
            };
            ready.place = (place, regions.shape());
        }
        let (place, ready_target, grant) = (ready.place.0, ready.target, ready.grant);
        if let Some(pair) = ready.known
            && let Some(done) =
                self.switch_at_once((place, ready_target, pair), part, how, grant.access)
        {
            return match self.note(caller, prepared, part, how == Part::On, done) {
                Ok(()) => Ok(true),
                Err(error) => Err(error),
            };
        }
        let target = Subject::Domain(ready_target);
        let none = Grant::default();
        let (on, wanted) = match how {
            Part::On | Part::Set(true) => (true, grant),
            Part::Off | Part::Set(false) => (false, none),
        };
        // An owner may do that where no group has anything, and nothing else changes by it (`Pair`).
        let is_plain = |holding: &Holding| {
            let held = holding.direct(target);
            let is_it = match how {
                Part::On => held == none,
                Part::Off => held == grant,
                Part::Set(_) => true,
            };
            is_it
                && holding.owner == caller
                && !is_gate(held)
                && holding.of_groups().next().is_none()
        };
        if is_gate(grant) || grant.access == Permission::None {
            return Ok(false);
        }
        let regions = &mut self.state.regions;
        let Some(steps) = regions.steps(place, part, (target, wanted), is_plain) else {
            return Ok(false);
        };
        let words = part.count();
        if !self.mechanism.room(words, steps.count(), !on) {
            return Err(Error::NoRoom { words });
        }
        if let (Part::On, Some((_, from, to))) = (how, steps.only())
            && from != to
        {
            self.learn(
                prepared,
                Pair {
                    off: *from,
                    on: *to,
                },
            );
        }
        let mut told = Told::new::<M>();
        for step @ (range, from, to) in steps {
            if from == to {
                continue;
            }
            let regions = &mut self.state.regions;
            // Writes where permissions differ, and not only how far they may be exported.
            if M::BY_DOMAIN && regions.holding(from).direct(target).access != wanted.access {
                told.write(ready_target, range, wanted.access);
            }
            if M::BY_HOLDING {
                told.moves.push(Moved {
                    range,
                    before: regions.number(from),
                    after: regions.number(to),
                    subject: Some(target),
                });
            }
            regions.step(place, step);
        }
        carry_out(&self.state, &mut self.mechanism, told);
        self.note(caller, prepared, part, on, Ok(()))?;
        Ok(true)
    }

    /// As [`switch_part`](Self::switch_part), where all of the part has one of the two holdings that are known: `is_plain` was said of
    /// the first, and holdings do not change while they are kept. None if it has not.
    #[inline]
    fn switch_at_once(
        &mut self,
        (place, target, pair): (Place, DomainId, Pair),
        part: Range,
        how: Part,
        granted: Permission,
    ) -> Option<Result<(), Error>> {
        let (from, to, access) = match how {
            Part::On => (pair.off, pair.on, granted),
            Part::Off => (pair.on, pair.off, Permission::None),
            Part::Set(_) => return None,
        };
        let words = part.count();
        if !self.mechanism.room(words, 1, how == Part::Off) {
            return Some(Err(Error::NoRoom { words }));
        }
        let regions = &mut self.state.regions;
        if !regions.step_at_once(place, (part, from, to)) {
            return None;
        }
        if M::BY_HOLDING {
            let (before, after) = (regions.number(from), regions.number(to));
            let holders = Holders::new(
                &self.state,
                self.state.regions.holding(to),
                Some(target.into()),
            );
            self.mechanism.hold(part, before, after, holders);
            self.mechanism.settle();
        }
        if M::BY_DOMAIN {
            self.mechanism.write(target, part, access);
            self.mechanism.flush(target, part);
        }
        Some(Ok(()))
    }

    /// Two holdings that parts go between.
    fn learn(&mut self, prepared: PreparedGrant, pair: Pair) {
        let before = match self.state.prepared.get(prepared) {
            Some(ready) => ready.known.replace(pair),
            None => return,
        };
        self.state.regions.keep(pair.off);
        self.state.regions.keep(pair.on);
        self.let_go(before);
    }

    /// Ends a prepared grant. What is granted at the moment stays granted.
    pub fn release(&mut self, prepared: PreparedGrant) -> Result<(), Error> {
        let found = self.state.prepared.get(prepared);
        let Some(Ready { target, range, .. }) = found.copied() else {
            return Err(Error::UnknownPrepared);
        };
        self.forget_prepared(prepared.index);
        let Some(domain) = self.state.domains.get_mut(target) else {
            return Ok(());
        };
        domain.handles.retain(|index| *index != prepared.index);
        domain.prepared.remove(range);
        let others: Vec<Range> = domain
            .handles
            .iter()
            .filter_map(|index| self.state.prepared.slots[*index as usize].ready)
            .map(|ready| ready.range)
            .collect();
        for other in others {
            domain.prepared.insert(other);
        }
        // What `held` says of these words counts again.
        for (piece, holding) in self.state.regions.pieces(range) {
            match holding.direct(target.into()).access {
                Permission::None => domain.held.remove(piece),
                _ => domain.held.insert(piece),
            }
        }
        Ok(())
    }

    /// At a domain's end: what was prepared for it.
    pub(crate) fn forget_prepared_for(&mut self, gone: &Domain) {
        for index in &gone.handles {
            self.forget_prepared(*index);
        }
    }

    fn forget_prepared(&mut self, index: u32) {
        if let Some(ready) = self.state.prepared.take(index) {
            self.state.regions.unfold(ready.range);
            self.let_go(ready.known);
            self.state.regions.join(ready.range.start());
            self.state.regions.join(ready.range.end());
        }
    }

    fn let_go(&mut self, pair: Option<Pair>) {
        if let Some(Pair { off, on }) = pair {
            self.state.regions.let_go(off);
            self.state.regions.let_go(on);
        }
    }

    fn switch(&mut self, caller: DomainId, prepared: PreparedGrant, on: bool) -> Result<(), Error> {
        let Some(ready) = self.state.prepared.get(prepared) else {
            return Err(Error::UnknownPrepared);
        };
        let known = ready.known.filter(|_| ready.caller == caller);
        let outcome = match known.and_then(|pair| self.switch_known(prepared, pair, on)) {
            Some(outcome) => outcome,
            None => self.switch_plainly(caller, prepared, on),
        };
        let range = self.state.prepared.get(prepared).map(|ready| ready.range);
        match range {
            Some(range) => self.note(caller, prepared, range, on, outcome),
            None => outcome,
        }
    }

    /// Records a switch of `range`, if somebody wants to know.
    #[inline]
    fn note(
        &mut self,
        caller: DomainId,
        prepared: PreparedGrant,
        range: Range,
        on: bool,
        outcome: Result<(), Error>,
    ) -> Result<(), Error> {
        if self.audit.is_none() {
            return outcome;
        }
        let ready = self.state.prepared.get(prepared);
        let Some(Ready { target, grant, .. }) = ready.copied() else {
            return outcome;
        };
        let asked = if on { grant } else { Grant::default() };
        let call = Call::MprotExport {
            target: Subject::Domain(target),
            range,
            permission: asked.access,
            export: asked.export,
        };
        self.record(caller, call, outcome.map(|()| Reply::Done))
            .map(drop)
    }

    /// The quick way, if the words have one of the two holdings.
    fn switch_known(
        &mut self,
        prepared: PreparedGrant,
        pair: Pair,
        on: bool,
    ) -> Option<Result<(), Error>> {
        let regions = &mut self.state.regions;
        let ready = self.state.prepared.get(prepared)?;
        if ready.place.1 != regions.shape() {
            ready.place = (regions.exactly(ready.range)?.0, regions.shape());
        }
        let (from, to, access) = match on {
            true => (pair.off, pair.on, ready.grant.access),
            false => (pair.on, pair.off, Permission::None),
        };
        let (place, range, target) = (ready.place.0, ready.range, ready.target);
        match regions.id_at(place)? {
            here if here == to => return Some(Ok(())),
            here if here != from => return None,
            _ => {}
        }
        let words = range.count();
        if !self.mechanism.room(words, 1, !on) {
            return Some(Err(Error::NoRoom { words }));
        }
        regions.put(place, from, to);
        if M::BY_HOLDING {
            let mut told = Told::new::<M>();
            told.moves = Few::of(Moved {
                range,
                before: regions.number(from),
                after: regions.number(to),
                subject: Some(target.into()),
            });
            carry_out(&self.state, &mut self.mechanism, told);
        }
        if M::BY_DOMAIN {
            self.mechanism.write(target, range, access);
            self.mechanism.flush(target, range);
        }
        Some(Ok(()))
    }

    /// The plain call; it learns the pair from it if there is one.
    fn switch_plainly(
        &mut self,
        caller: DomainId,
        prepared: PreparedGrant,
        on: bool,
    ) -> Result<(), Error> {
        let Some(ready) = self.state.prepared.get(prepared).copied() else {
            return Err(Error::UnknownPrepared);
        };
        let (target, range) = (Subject::Domain(ready.target), ready.range);
        self.state.domain(caller)?;
        if !on {
            self.decide_export(caller, target, range, Grant::default())?;
            return Ok(());
        }
        let off = self.state.regions.exactly(range).map(|(_, id)| id);
        // Else it could be changed in its place.
        if let Some(off) = off {
            self.state.regions.keep(off);
        }
        let outcome = self.decide_export(caller, target, range, ready.grant);
        let on = self.state.regions.exactly(range).map(|(_, id)| id);
        if let (Some(off), Some(on), true) = (off, on, caller == ready.caller)
            && off != on
            && is_plain(self.state.regions.holding(off), ready)
        {
            self.state.regions.keep(on);
            self.let_go(ready.known);
            if let Some(ready) = self.state.prepared.get(prepared) {
                ready.known = Some(Pair { off, on });
            }
        } else if let Some(off) = off {
            self.state.regions.let_go(off);
        }
        outcome.map(drop)
    }
}

fn is_gate(grant: Grant) -> bool {
    matches!(grant.access, Permission::SwitchGate { .. })
}

/// Where all of a prepared grant's words are one region, or a sheet. Regions become one after some parts that could not
/// be decided at once.
#[cold]
fn place_of(regions: &mut Regions, ready: &mut Ready) -> Option<Place> {
    if let Some(place) = regions.place(ready.range) {
        return Some(place);
    }
    ready.misses += 1;
    if ready.misses < MISSES {
        return None;
    }
    ready.misses = 0;
    regions.fold(ready.range)
}

/// Whether `off` is what [`Pair`] says of it.
fn is_plain(off: &Holding, ready: Ready) -> bool {
    off.owner == ready.caller
        && off.of_groups().next().is_none()
        && off.direct(ready.target.into()).access == Permission::None
        && !matches!(ready.grant.access, Permission::SwitchGate { .. })
}
