//! Expressions as states, and their simulation: every state at most once at each place of the
//! text, so nothing is tried twice.

use super::parse::{Node, contains};
use super::{Set, Work};
use crate::keynote::work::{Cost, Exhausted};
use std::ops::Range;

/// Which way the text is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

#[derive(Clone, Copy)]
enum State {
    /// Reads a byte of that set, and goes on to the next state.
    Set(u32),
    Start,
    End,
    Split(u32, u32),
    Jump(u32),
    Match,
}

/// An expression's states; the first begins.
pub(super) struct Program {
    states: Vec<State>,
    direction: Direction,
}

impl Program {
    /// Pays for every state before it makes them.
    pub(super) fn new(
        node: &Node,
        direction: Direction,
        work: &mut Work,
    ) -> Result<Self, Exhausted> {
        let count = node.states() + 1;
        work.pay(Cost::State, count)?;
        let mut program = Program {
            states: Vec::with_capacity(count),
            direction,
        };
        program.push(node);
        program.states.push(State::Match);
        Ok(program)
    }

    /// As [`Program::new`], of repetitions of `inner`, read backwards.
    pub(super) fn repeated(
        inner: &Node,
        least: usize,
        most: Option<usize>,
        work: &mut Work,
    ) -> Result<Self, Exhausted> {
        let times = most.unwrap_or(least + 1).max(1);
        work.pay(Cost::State, (inner.states() + 2).saturating_mul(times))?;
        let mut program = Program {
            states: Vec::new(),
            direction: Direction::Backward,
        };
        program.repeat(inner, least, most);
        program.states.push(State::Match);
        Ok(program)
    }

    fn here(&self) -> u32 {
        self.states.len() as u32
    }

    /// A state whose targets are not yet known.
    fn hole(&mut self) -> usize {
        self.states.push(State::Match);
        self.states.len() - 1
    }

    fn push(&mut self, node: &Node) {
        match node {
            Node::Set(set) => self.states.push(State::Set(*set)),
            Node::Start => self.states.push(State::Start),
            Node::End => self.states.push(State::End),
            Node::Group(_, inner) => self.push(inner),
            Node::All(list) if self.direction == Direction::Backward => {
                list.iter().rev().for_each(|part| self.push(part));
            }
            Node::All(list) => list.iter().for_each(|part| self.push(part)),
            Node::One(list) => self.one(list),
            Node::Repeat(inner, least, most) => self.repeat(inner, *least, *most),
        }
    }

    fn one(&mut self, list: &[Node]) {
        let mut ends = Vec::new();
        for (index, part) in list.iter().enumerate() {
            if index + 1 == list.len() {
                self.push(part);
                continue;
            }
            let split = self.hole();
            self.push(part);
            ends.push(self.hole());
            self.states[split] = State::Split(split as u32 + 1, self.here());
        }
        for end in ends {
            self.states[end] = State::Jump(self.here());
        }
    }

    fn repeat(&mut self, inner: &Node, least: usize, most: Option<usize>) {
        for _ in 0..least {
            self.push(inner);
        }
        let Some(most) = most else {
            let split = self.hole();
            self.push(inner);
            self.states.push(State::Jump(split as u32));
            self.states[split] = State::Split(split as u32 + 1, self.here());
            return;
        };
        let splits: Vec<_> = (least..most)
            .map(|_| {
                let split = self.hole();
                self.push(inner);
                split
            })
            .collect();
        for split in splits {
            self.states[split] = State::Split(split as u32 + 1, self.here());
        }
    }
}

/// Runs one program over one text, as often as is wanted.
pub(super) struct Machine<'a> {
    program: &'a Program,
    sets: &'a [Set],
    text: &'a [u8],
    /// States at this place, with where their match began, the earliest first.
    now: Vec<(u32, usize)>,
    next: Vec<(u32, usize)>,
    /// The visit in which each state was last reached.
    reached: Vec<u64>,
    visit: u64,
    pending: Vec<u32>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &'a Program, sets: &'a [Set], text: &'a [u8]) -> Self {
        Machine {
            program,
            sets,
            text,
            now: Vec::new(),
            next: Vec::new(),
            reached: vec![0; program.states.len()],
            visit: 0,
            pending: Vec::new(),
        }
    }

    /// Adds to `next` what can be reached at `place` without reading; whether that is a match.
    fn reach(&mut self, state: u32, began: usize, place: usize) -> bool {
        let mut matched = false;
        self.pending.push(state);
        while let Some(state) = self.pending.pop() {
            let index = state as usize;
            if std::mem::replace(&mut self.reached[index], self.visit) == self.visit {
                continue;
            }
            match self.program.states[index] {
                State::Set(_) => self.next.push((state, began)),
                State::Start if place == 0 => self.pending.push(state + 1),
                State::End if place == self.text.len() => self.pending.push(state + 1),
                State::Start | State::End => {}
                State::Jump(to) => self.pending.push(to),
                State::Split(one, other) => self.pending.extend([other, one]),
                State::Match => matched = true,
            }
        }
        matched
    }

    /// The bytes that lead from `place` to the next one.
    fn byte(&self, place: usize) -> Option<u8> {
        match self.program.direction {
            Direction::Forward => self.text.get(place).copied(),
            Direction::Backward => self.text[..place].last().copied(),
        }
    }

    fn accepts(&self, state: u32, byte: u8) -> bool {
        match self.program.states[state as usize] {
            State::Set(set) => contains(&self.sets[set as usize], byte),
            _ => false,
        }
    }

    /// The longest of the leftmost matches anywhere in the text; `any`: the first that is found.
    ///
    /// States that a match which began earlier has reached come first, and later ones do not
    /// take their place: so each state knows its earliest beginning.
    pub(super) fn search(
        &mut self,
        work: &mut Work,
        any: bool,
    ) -> Result<Option<Range<usize>>, Exhausted> {
        let mut best: Option<Range<usize>> = None;
        self.now.clear();
        for place in 0..=self.text.len() {
            work.pay(Cost::Match, self.now.len() + 1)?;
            self.visit += 1;
            let now = std::mem::take(&mut self.now);
            let before = place.checked_sub(1).and_then(|place| self.byte(place));
            let mut found = None;
            for (state, began) in &now {
                let goes_on = best.as_ref().is_none_or(|best| *began <= best.start);
                if goes_on
                    && before.is_some_and(|byte| self.accepts(*state, byte))
                    && self.reach(state + 1, *began, place)
                {
                    found = found.or(Some(*began));
                }
            }
            if best.is_none() && self.reach(0, place, place) {
                found = found.or(Some(place));
            }
            if let Some(began) = found
                && best.as_ref().is_none_or(|best| began <= best.start)
            {
                best = Some(began..place);
            }
            self.now = std::mem::replace(&mut self.next, now);
            self.next.clear();
            if best.is_some() && (any || self.now.is_empty()) {
                break;
            }
        }
        Ok(best)
    }

    /// Tells `found` of every place where a match ends that begins at one for which `begins`
    /// holds. Reads from one end of `range` to the other, in the program's direction.
    pub(super) fn ends(
        &mut self,
        range: Range<usize>,
        begins: impl Fn(usize) -> bool,
        lasts: bool,
        work: &mut Work,
        mut found: impl FnMut(usize),
    ) -> Result<(), Exhausted> {
        let length = range.end - range.start;
        let forward = self.program.direction == Direction::Forward;
        let at = |index: usize| {
            if forward {
                range.start + index
            } else {
                range.end - index
            }
        };
        self.now.clear();
        for index in 0..=length {
            let place = at(index);
            work.pay(Cost::Match, self.now.len() + 1)?;
            self.visit += 1;
            let now = std::mem::take(&mut self.now);
            let before = index.checked_sub(1).and_then(|index| self.byte(at(index)));
            let mut matched = false;
            for (state, _) in &now {
                if before.is_some_and(|byte| self.accepts(*state, byte)) {
                    matched |= self.reach(state + 1, 0, place);
                }
            }
            if begins(place) {
                matched |= self.reach(0, 0, place);
            }
            if matched {
                found(place);
            }
            self.now = std::mem::replace(&mut self.next, now);
            self.next.clear();
            // Where more may begin later, an empty place is not the last one.
            if self.now.is_empty() && !lasts {
                break;
            }
        }
        Ok(())
    }
}
