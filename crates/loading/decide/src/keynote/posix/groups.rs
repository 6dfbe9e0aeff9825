//! What the groups of a match hold, by the rule of POSIX. Within the longest of the leftmost
//! matches each part, from left to right, takes the longest text that lets the others match. A
//! group that is repeated holds its last repetition. Of alternatives that match the same text the
//! first counts.
//!
//! For each part the places are known from which the others can reach the end. That is one reading of the
//! match from its end, part by part. The part then takes the farthest of its own ends that is among
//! them. Parts without groups in them are passed over.

use super::parse::Node;
use super::program::{Direction, Machine, Program};
use super::{Set, Work};
use crate::keynote::work::{Cost, Exhausted};
use std::ops::Range;

/// Places of a match.
struct Places {
    first: usize,
    bits: Vec<u64>,
}

impl Places {
    /// Pays for their memory.
    fn new(range: &Range<usize>, work: &mut Work) -> Result<Self, Exhausted> {
        let words = (range.end - range.start) / 64 + 1;
        work.pay(Cost::Copied, 8 * words)?;
        Ok(Places {
            first: range.start,
            bits: vec![0; words],
        })
    }

    fn insert(&mut self, place: usize) {
        let bit = place - self.first;
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    fn contains(&self, place: usize) -> bool {
        let bit = place.wrapping_sub(self.first);
        let word = self.bits.get(bit / 64);
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

pub(super) struct Groups<'a> {
    sets: &'a [Set],
    text: &'a [u8],
    pub(super) found: Vec<Option<Range<usize>>>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(sets: &'a [Set], text: &'a [u8], count: usize) -> Self {
        Groups {
            sets,
            text,
            found: vec![None; count],
        }
    }

    /// Notes the groups of `node`, which matches exactly this range.
    pub(super) fn fill(
        &mut self,
        node: &Node,
        range: Range<usize>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        work.pay(Cost::Step, 1)?;
        if !node.has_groups() {
            return Ok(());
        }
        match node {
            Node::Set(_) | Node::Start | Node::End => Ok(()),
            Node::Group(number, inner) => {
                if let Some(group) = self.found.get_mut(number - 1) {
                    *group = Some(range.clone());
                }
                self.fill(inner, range, work)
            }
            Node::All(parts) => self.all(parts, range, work),
            Node::One(parts) => self.one(parts, range, work),
            Node::Repeat(inner, least, most) => self.repeat(inner, *least, *most, range, work),
        }
    }

    fn all(
        &mut self,
        parts: &[Node],
        range: Range<usize>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        // From where the parts behind each one reach the end; the last one's are the end itself.
        let mut end = Places::new(&range, work)?;
        end.insert(range.end);
        let mut behind = vec![end];
        for part in parts.iter().skip(1).rev() {
            let mut places = Places::new(&range, work)?;
            let program = Program::new(part, Direction::Backward, work)?;
            let mut machine = Machine::new(&program, self.sets, self.text);
            let from = &behind[behind.len() - 1];
            let begins = |place| from.contains(place);
            machine.ends(range.clone(), begins, true, work, |place| {
                places.insert(place)
            })?;
            behind.push(places);
        }
        let mut at = range.start;
        for (part, places) in parts.iter().zip(behind.iter().rev()) {
            let program = Program::new(part, Direction::Forward, work)?;
            let mut machine = Machine::new(&program, self.sets, self.text);
            let stop = farthest(&mut machine, at..range.end, places, work)?.unwrap_or(at);
            self.fill(part, at..stop, work)?;
            at = stop;
        }
        Ok(())
    }

    fn one(
        &mut self,
        parts: &[Node],
        range: Range<usize>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let mut end = Places::new(&range, work)?;
        end.insert(range.end);
        for part in parts {
            let program = Program::new(part, Direction::Forward, work)?;
            let mut machine = Machine::new(&program, self.sets, self.text);
            if farthest(&mut machine, range.clone(), &end, work)?.is_some() {
                return self.fill(part, range, work);
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        inner: &Node,
        least: usize,
        most: Option<usize>,
        range: Range<usize>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let program = Program::new(inner, Direction::Forward, work)?;
        let mut machine = Machine::new(&program, self.sets, self.text);
        let mut rest = None;
        let (mut at, mut done, mut last) = (range.start, 0, None);
        // A repetition of nothing counts, where there is no other: no match is shorter still.
        while at < range.end || done < least || done == 0 {
            if most.is_some_and(|most| done >= most) {
                break;
            }
            done += 1;
            let left = (least.saturating_sub(done), most.map(|most| most - done));
            let places = match rest.take() {
                Some((same, places)) if same == left => places,
                _ => self.rest(inner, left, &range, work)?,
            };
            let stop = farthest(&mut machine, at..range.end, &places, work)?;
            rest = Some((left, places));
            let Some(stop) = stop else {
                break;
            };
            last = Some(at..stop);
            at = stop;
        }
        match last {
            Some(last) => self.fill(inner, last, work),
            None => Ok(()),
        }
    }

    /// From where so many repetitions reach the end of the range.
    fn rest(
        &self,
        inner: &Node,
        (least, most): (usize, Option<usize>),
        range: &Range<usize>,
        work: &mut Work,
    ) -> Result<Places, Exhausted> {
        let mut places = Places::new(range, work)?;
        let program = Program::repeated(inner, least, most, work)?;
        let mut machine = Machine::new(&program, self.sets, self.text);
        let end = range.end;
        machine.ends(
            range.clone(),
            |place| place == end,
            false,
            work,
            |place| {
                places.insert(place);
            },
        )?;
        Ok(places)
    }
}

/// The farthest end of a match from the range's start that is among `places`.
fn farthest(
    machine: &mut Machine<'_>,
    range: Range<usize>,
    places: &Places,
    work: &mut Work,
) -> Result<Option<usize>, Exhausted> {
    let mut best = None;
    let start = range.start;
    machine.ends(
        range,
        |place| place == start,
        false,
        work,
        |place| {
            if places.contains(place) {
                best = Some(place);
            }
        },
    )?;
    Ok(best)
}
