//! Sets of words as disjoint, never touching ranges.

use crate::sorted::Sorted;
use alloc::vec::Vec;
use mullion_terms::range::Range;

/// A set of words. Neighbouring ranges are always one, so equal sets have equal ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordSet {
    /// End of each range by its start.
    ends: Sorted<u64>,
}

impl PartialEq for WordSet {
    fn eq(&self, other: &WordSet) -> bool {
        self.ends.len() == other.ends.len() && self.ends.iter().eq(other.ends.iter())
    }
}

impl WordSet {
    /// Adds the words of `range`.
    pub(crate) fn insert(&mut self, range: Range) {
        let (mut start, mut end) = (range.start(), range.end());
        let mut place = self.ends.floor(end);
        while let Some(found) = place {
            let (s, e) = self.ends.get(found);
            if e < start {
                break;
            }
            if s <= start && e >= end {
                return;
            }
            start = start.min(s);
            end = end.max(e);
            self.ends.remove(found);
            place = self.ends.floor(end);
        }
        self.ends.insert_behind(place, start, end);
    }

    /// Takes the words of `range` out.
    pub(crate) fn remove(&mut self, range: Range) {
        while let Some(found) = self.ends.floor(range.end() - 1) {
            let (s, e) = self.ends.get(found);
            if e <= range.start() {
                break;
            }
            let mut last = found;
            if s < range.start() {
                self.ends.set(found, range.start());
            } else {
                self.ends.remove(found);
                match self.ends.floor(s) {
                    Some(before) => last = before,
                    None if e > range.end() => {
                        self.ends.insert_behind(None, range.end(), e);
                        break;
                    }
                    None => break,
                }
            }
            if e > range.end() {
                self.ends.insert_behind(Some(last), range.end(), e);
            }
            if s < range.start() {
                break;
            }
        }
    }

    /// The range around `word`, if it is in the set.
    pub(crate) fn around(&self, word: u64) -> Option<Range> {
        let (start, end) = self.ends.get(self.ends.floor(word)?);
        Range::between(start, end).filter(|range| range.holds(word))
    }

    /// Some range of the set that has a word in common with `range`.
    pub(crate) fn overlapping(&self, range: Range) -> Option<Range> {
        let (start, end) = self.ends.get(self.ends.floor(range.end() - 1)?);
        Range::between(start, end).filter(|found| found.overlap(range).is_some())
    }

    /// Adds the words of all of `others`.
    pub(crate) fn insert_all(&mut self, others: &WordSet) {
        others.iter().for_each(|range| self.insert(range));
    }

    /// The words of `range` that are not in the set, as ranges in order.
    pub(crate) fn missing(&self, range: Range) -> Vec<Range> {
        let mut from = range.start();
        let mut gaps = Vec::new();
        let first = self.ends.floor(range.start()).or(self.ends.first());
        for (start, end) in self.ends.from(first) {
            if start >= range.end() {
                break;
            }
            gaps.extend(Range::between(from, start));
            from = from.max(end);
        }
        gaps.extend(Range::between(from, range.end()));
        gaps
    }

    /// The ranges in order of address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.ends
            .iter()
            .filter_map(|(start, end)| Range::between(start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_words(steps in prop::collection::vec((any::<bool>(), 0u64..24, 1u64..9), 0..40)) {
            let mut set = WordSet::default();
            let mut words = [false; 32];
            for (add, start, count) in steps {
                let range = Range::words(start, count).unwrap();
                if add { set.insert(range) } else { set.remove(range) }
                for word in range.start()..range.end() {
                    words[word as usize] = add;
                }
            }
            for word in 0..32 {
                prop_assert_eq!(set.around(word).is_some(), words[word as usize]);
            }
            for start in 0..32 {
                let range = Range::words(start, 32 - start).unwrap();
                let missing = set.missing(range);
                for word in range.start()..range.end() {
                    let found = missing.iter().filter(|gap| gap.holds(word)).count();
                    prop_assert_eq!(found, usize::from(!words[word as usize]));
                }
            }
            let ranges: Vec<Range> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|two| two[0].end() < two[1].start()));
        }
    }
}
