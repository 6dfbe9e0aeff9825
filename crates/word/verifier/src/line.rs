//! What is known within one straight line of code.
//!
//! Each fact carries the offset of what made it. An instruction that relies on a fact closes the range behind
//! its maker to direct branches.

use mullion_word_abi as abi;

/// Slots of the ring of checks, one bit each.
const SLOTS: usize = abi::MAX_CHECKS;
const _: () = assert!(SLOTS == 32);

/// What a register may be known as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// Below 8 MiB.
    Small,
    /// An address that may be entered.
    Enter,
    /// An address of the domain's own code, with the label in front.
    Labelled,
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
    known: [u16; 3],
    made: [[Made; 16]; 3],
    /// Numbers of checks, in a ring.
    checks: [u32; SLOTS],
    next: usize,
    /// Slots of the ring whose check still holds.
    live: u32,
    /// Slots whose check has this register as base or index.
    uses: [u32; 16],
    /// Offset of the first step of `%r15` that no probe has followed yet.
    pub(crate) stepped: Option<u32>,
    /// Sum of the steps since the last probe.
    pub(crate) steps: i64,
}

impl Line {
    /// Begins anew.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.known = [0; 3];
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
    pub(crate) fn check(&mut self, number: u32, base: u8, index: u8) {
        let slot = self.next % SLOTS;
        self.next = slot + 1;
        let bit = 1 << slot;
        self.uses.iter_mut().for_each(|mask| *mask &= !bit);
        for register in [base, index] {
            if let Some(mask) = self.uses.get_mut(usize::from(register)) {
                *mask |= bit;
            }
        }
        if let Some(place) = self.checks.get_mut(slot) {
            *place = number;
        }
        self.live |= bit;
    }

    /// The checks that hold and use all of these registers, the latest first.
    #[inline]
    pub(crate) fn checks(&self, base: u8, index: u8) -> impl Iterator<Item = u32> + '_ {
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
            let slot = (top + turn) % SLOTS as u32;
            self.checks.get(slot as usize).copied()
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
            );
        }
        let found: Vec<u32> = line.checks(0, 8).collect();
        assert_eq!(found, [36, 30, 24, 18, 12]);
        assert_eq!(line.checks(16, 16).count(), 32);
        line.forget(8);
        assert_eq!(line.checks(0, 8).count(), 0);
        assert_eq!(
            line.checks(0, 16).collect::<Vec<_>>(),
            [39, 33, 27, 21, 15, 9]
        );
        line.forget(15);
        assert_eq!(line.checks(16, 16).count(), 16);
        line.restart();
        assert_eq!(line.checks(16, 16).count(), 0);
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
