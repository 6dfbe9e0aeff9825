//! What is known within one straight line of code.
//!
//! Each fact carries the offset of what made it. An instruction that relies on a fact closes the range behind
//! its maker to direct branches.

use mullion_word_abi as abi;

/// Slots of the ring of checks, one bit each.
const SLOTS: usize = abi::MAX_CHECKS;
const _: () = assert!(SLOTS == 32);

/// A check that steps have led further away than this is forgotten: sums of 64 bits stay exact.
const FARTHEST: i64 = 1 << 40;

/// What a register may be known as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// Below 8 MiB.
    Small,
    /// At most what [`Line::most`] says.
    Index,
    /// An address that may be entered.
    Enter,
    /// An address of the domain's own code, with the label in front.
    Labelled,
    /// The body behind one of the module's own gates.
    Body,
}

/// Where a fact was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    /// Behind the first instruction of its maker no branch may enter ...
    pub(crate) since: u32,
    /// ... and from here on the table's answer is relied on.
    pub(crate) looked: u32,
}

/// The state of a straight line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// For each [`Fact`], the registers of which it is known.
    known: [u16; 5],
    made: [[Made; 16]; 5],
    /// The greatest value of a register of which [`Fact::Index`] is known.
    most: [u32; 16],
    /// Numbers of checks, in a ring.
    checks: [u32; SLOTS],
    next: usize,
    /// Slots of the ring whose check still holds.
    live: u32,
    /// Slots whose check has this register as base or index.
    uses: [u32; 16],
    /// For each slot, its check's base, index and scale (1, 2, 4 or 8) ...
    operands: [(u8, u8, i64); SLOTS],
    /// ... and how far constant steps have moved what they add up to since.
    shifts: [i64; SLOTS],
    /// Offset of the first step of `%r15` that no probe has followed yet.
    pub(crate) stepped: Option<u32>,
    /// Sum of the steps since the last probe.
    pub(crate) steps: i64,
}

impl Line {
    /// Begins anew.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.known = [0; 5];
        self.live = 0;
        self.stepped = None;
        self.steps = 0;
    }

    /// What is known of `register` is not true any more, nor any check by it.
    #[inline]
    pub(crate) fn forget(&mut self, register: u8) {
        let keep = !(1 << (register & 15));
        self.known.iter_mut().for_each(|mask| *mask &= keep);
        self.live &= !self.using(register);
    }

    /// `by` was added to `register`, all 64 bits of it: checks by it hold, so much further off. What else is known of
    /// it is not true any more.
    pub(crate) fn step(&mut self, register: u8, by: i64) {
        let keep = !(1 << (register & 15));
        self.known.iter_mut().for_each(|mask| *mask &= keep);
        let mut slots = self.live & self.using(register);
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let (Some((base, index, scale)), Some(shift)) =
                (self.operands.get(slot), self.shifts.get_mut(slot))
            else {
                continue;
            };
            let factor = i64::from(*base == register) + if *index == register { *scale } else { 0 };
            *shift += by * factor;
            if shift.abs() > FARTHEST {
                self.live &= !(1 << slot);
            }
        }
    }

    #[inline]
    fn using(&self, register: u8) -> u32 {
        let uses = self.uses.get(usize::from(register)).copied();
        uses.unwrap_or(0)
    }

    #[inline]
    pub(crate) fn learn(&mut self, fact: Fact, register: u8, made: Made) {
        let register = usize::from(register & 15);
        if let (Some(mask), Some(places)) = (
            self.known.get_mut(fact as usize),
            self.made.get_mut(fact as usize),
        ) && let Some(place) = places.get_mut(register)
        {
            *mask |= 1 << register;
            *place = made;
        }
    }

    /// A register holds this at most.
    pub(crate) fn bound(&mut self, register: u8, most: u32, made: Made) {
        if let Some(place) = self.most.get_mut(usize::from(register & 15)) {
            *place = most;
        }
        self.learn(Fact::Index, register, made);
    }

    /// What a register holds at most, and where that was made known.
    pub(crate) fn most(&self, register: u8) -> Option<(u32, Made)> {
        let most = *self.most.get(usize::from(register & 15))?;
        Some((most, self.known(Fact::Index, register)?))
    }

    /// Where it was made, if it is known.
    #[inline]
    pub(crate) fn known(&self, fact: Fact, register: u8) -> Option<Made> {
        let register = usize::from(register & 15);
        let mask = self.known.get(fact as usize)?;
        let made = self.made.get(fact as usize)?.get(register)?;
        (mask >> register & 1 == 1).then_some(*made)
    }

    /// Up to there no branch enters any more, so that nothing is closed twice: the pass is linear.
    pub(crate) fn relied(&mut self, fact: Fact, register: u8, since: u32) {
        let places = self.made.get_mut(fact as usize);
        if let Some(place) = places.and_then(|places| places.get_mut(usize::from(register & 15))) {
            place.since = since;
        }
    }

    /// A check by these registers was made; those that are none are above 15.
    pub(crate) fn check(&mut self, number: u32, base: u8, index: u8, scale: u8) {
        let slot = self.next % SLOTS;
        self.next = slot + 1;
        let bit = 1 << slot;
        self.uses.iter_mut().for_each(|mask| *mask &= !bit);
        for register in [base, index] {
            if let Some(mask) = self.uses.get_mut(usize::from(register)) {
                *mask |= bit;
            }
        }
        if let (Some(place), Some(operand), Some(shift)) = (
            self.checks.get_mut(slot),
            self.operands.get_mut(slot),
            self.shifts.get_mut(slot),
        ) {
            (*place, *operand, *shift) = (number, (base, index, 1 << (scale & 3)), 0);
        }
        self.live |= bit;
    }

    /// The checks that hold and use all of these registers, the latest first, and how far the registers have been
    /// moved since.
    #[inline]
    pub(crate) fn checks(&self, base: u8, index: u8) -> impl Iterator<Item = (u32, i64)> + '_ {
        let mut mask = self.live;
        for register in [base, index] {
            if register < 16 {
                mask &= self.using(register);
            }
        }
        // The slot behind the latest one is the oldest: turned to the lowest bit.
        let turn = (self.next % SLOTS) as u32;
        let mut mask = mask.rotate_right(turn);
        std::iter::from_fn(move || {
            let top = 31_u32.checked_sub(mask.leading_zeros())?;
            mask &= !(1 << top);
            let slot = ((top + turn) % SLOTS as u32) as usize;
            Some((*self.checks.get(slot)?, *self.shifts.get(slot)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_checks() {
        let mut line = Line::default();
        for number in 0..40 {
            line.check(
                number,
                (number % 3) as u8,
                if number % 2 == 0 { 8 } else { 16 },
                3,
            );
        }
        let numbers = |line: &Line, base, index| -> Vec<u32> {
            line.checks(base, index).map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(&line, 0, 8), [36, 30, 24, 18, 12]);
        assert_eq!(line.checks(16, 16).count(), 32);
        line.forget(8);
        assert_eq!(line.checks(0, 8).count(), 0);
        assert_eq!(numbers(&line, 0, 16), [39, 33, 27, 21, 15, 9]);
        line.forget(15);
        assert_eq!(line.checks(16, 16).count(), 16);
        line.restart();
        assert_eq!(line.checks(16, 16).count(), 0);
    }

    #[test]
    fn a_check_moves_with_steps_of_its_registers() {
        let mut line = Line::default();
        line.check(1, 3, 5, 2);
        line.check(2, 5, 5, 3);
        line.step(3, 8);
        line.step(5, -2);
        assert_eq!(line.checks(3, 5).collect::<Vec<_>>(), [(1, 0)]);
        assert_eq!(line.checks(5, 5).next(), Some((2, -18)));
        for _ in 0..1024 {
            line.step(3, i64::from(i32::MAX));
        }
        assert_eq!(line.checks(3, 5).count(), 0, "too far");
        assert_eq!(line.checks(5, 5).count(), 1);
        // The slot is used again.
        line.check(3, 3, 5, 2);
        assert_eq!(line.checks(3, 5).next(), Some((3, 0)));
        let made = Made::default();
        line.learn(Fact::Small, 3, made);
        line.step(3, 0);
        assert!(line.known(Fact::Small, 3).is_none());
    }

    #[test]
    fn facts_go_with_their_register() {
        let mut line = Line::default();
        let made = Made {
            since: 5,
            looked: 9,
        };
        line.learn(Fact::Small, 11, made);
        line.learn(Fact::Enter, 3, made);
        assert!(line.known(Fact::Small, 11).is_some());
        assert!(line.known(Fact::Enter, 11).is_none());
        line.forget(11);
        assert!(line.known(Fact::Small, 11).is_none());
        assert_eq!(line.known(Fact::Enter, 3).map(|made| made.looked), Some(9));
        line.relied(Fact::Enter, 3, 70);
        assert_eq!(line.known(Fact::Enter, 3).map(|made| made.since), Some(70));
        line.restart();
        assert!(line.known(Fact::Enter, 3).is_none());
    }
}
