//! A map from words to small values, in order of word.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries of a full chunk.
const FULL: usize = 64;

/// Keys in order, in chunks of at most [`FULL`]: one binary search over the chunks and one inside. Neighbours
/// lie side by side in memory, which a tree of nodes does not give, and no call allocates but one in about
/// thirty insertions.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<V> {
    /// The first key of each chunk.
    firsts: Vec<u64>,
    /// As many as `firsts`; none is empty.
    chunks: Vec<Box<Chunk<V>>>,
    len: usize,
    /// Changes whenever an entry comes, goes or moves: a [`Place`] stays true until then.
    shape: u64,
}

#[derive(Clone, Debug)]
struct Chunk<V> {
    len: usize,
    keys: [u64; FULL],
    values: [V; FULL],
}

/// Where an entry is, until the map is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    chunk: usize,
    slot: usize,
}

impl<V: Copy + Default> Chunk<V> {
    fn empty() -> Box<Chunk<V>> {
        Box::new(Chunk {
            len: 0,
            keys: [0; FULL],
            values: [V::default(); FULL],
        })
    }

    fn insert(&mut self, slot: usize, key: u64, value: V) {
        self.keys.copy_within(slot..self.len, slot + 1);
        self.values.copy_within(slot..self.len, slot + 1);
        self.keys[slot] = key;
        self.values[slot] = value;
        self.len += 1;
    }

    fn remove(&mut self, slot: usize) {
        self.keys.copy_within(slot + 1..self.len, slot);
        self.values.copy_within(slot + 1..self.len, slot);
        self.len -= 1;
    }

    /// Moves the upper half into a new chunk.
    fn split(&mut self) -> Box<Chunk<V>> {
        let half = self.len / 2;
        let mut upper = Chunk::empty();
        upper.append(self, half);
        self.len = half;
        upper
    }

    /// Adds the entries of `other` from `slot` on behind the last one.
    fn append(&mut self, other: &Chunk<V>, slot: usize) {
        let more = other.len - slot;
        let all = self.len + more;
        self.keys[self.len..all].copy_from_slice(&other.keys[slot..other.len]);
        self.values[self.len..all].copy_from_slice(&other.values[slot..other.len]);
        self.len = all;
    }
}

impl<V> Default for Sorted<V> {
    fn default() -> Sorted<V> {
        Sorted {
            firsts: Vec::new(),
            chunks: Vec::new(),
            len: 0,
            shape: 0,
        }
    }
}

impl<V: Copy + Default> Sorted<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A number that stays the same as long as every [`Place`] stays true.
    pub(crate) fn shape(&self) -> u64 {
        self.shape
    }

    /// The entry with the greatest key that is at most `key`.
    pub(crate) fn floor(&self, key: u64) -> Option<Place> {
        let chunk = self
            .firsts
            .partition_point(|first| *first <= key)
            .checked_sub(1)?;
        let found = &self.chunks[chunk];
        let slot = found.keys[..found.len].partition_point(|at| *at <= key) - 1;
        Some(Place { chunk, slot })
    }

    pub(crate) fn get(&self, place: Place) -> (u64, V) {
        let chunk = &self.chunks[place.chunk];
        (chunk.keys[place.slot], chunk.values[place.slot])
    }

    pub(crate) fn next(&self, place: Place) -> Option<Place> {
        let Place { chunk, slot } = place;
        if slot + 1 < self.chunks[chunk].len {
            return Some(Place {
                chunk,
                slot: slot + 1,
            });
        }
        (chunk + 1 < self.chunks.len()).then_some(Place {
            chunk: chunk + 1,
            slot: 0,
        })
    }

    pub(crate) fn previous(&self, place: Place) -> Option<Place> {
        let Place { chunk, slot } = place;
        if let Some(slot) = slot.checked_sub(1) {
            return Some(Place { chunk, slot });
        }
        let chunk = chunk.checked_sub(1)?;
        Some(Place {
            chunk,
            slot: self.chunks[chunk].len - 1,
        })
    }

    /// All entries from `place` on.
    pub(crate) fn from(&self, place: Option<Place>) -> impl Iterator<Item = (u64, V)> + '_ {
        core::iter::successors(place, |place| self.next(*place)).map(|place| self.get(place))
    }

    /// Where the first entry is.
    pub(crate) fn first(&self) -> Option<Place> {
        (self.len > 0).then_some(Place { chunk: 0, slot: 0 })
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, V)> + '_ {
        self.from(self.first())
    }

    /// Replaces the value at `place`.
    pub(crate) fn set(&mut self, place: Place, value: V) {
        self.chunks[place.chunk].values[place.slot] = value;
    }

    /// Adds an entry right behind `place`, or as the first one. Its key lies between that one and the next.
    pub(crate) fn insert_behind(&mut self, place: Option<Place>, key: u64, value: V) -> Place {
        self.len += 1;
        self.shape += 1;
        let Some(place) = place else {
            return self.insert_first(key, value);
        };
        let mut at = Place {
            chunk: place.chunk,
            slot: place.slot + 1,
        };
        if self.chunks[at.chunk].len == FULL {
            let upper = self.chunks[at.chunk].split();
            let half = self.chunks[at.chunk].len;
            self.firsts.insert(at.chunk + 1, upper.keys[0]);
            self.chunks.insert(at.chunk + 1, upper);
            // Behind the lower half's last entry is still the lower half: its first key stays true.
            if at.slot > half {
                at = Place {
                    chunk: at.chunk + 1,
                    slot: at.slot - half,
                };
            }
        }
        self.chunks[at.chunk].insert(at.slot, key, value);
        at
    }

    fn insert_first(&mut self, key: u64, value: V) -> Place {
        if self.chunks.first().is_none_or(|first| first.len == FULL) {
            self.chunks.insert(0, Chunk::empty());
            self.firsts.insert(0, key);
        }
        self.chunks[0].insert(0, key, value);
        self.firsts[0] = key;
        Place { chunk: 0, slot: 0 }
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, place: Place) {
        self.take(place);
        self.shrink(place.chunk);
    }

    /// Takes the entry behind `place` out, and says where the one at `place` is from then on.
    pub(crate) fn remove_behind(&mut self, place: Place) -> Place {
        let Some(next) = self.next(place) else {
            return place;
        };
        self.take(next);
        let before = place.chunk.checked_sub(1);
        let slots = before.map_or(0, |chunk| self.chunks[chunk].len);
        let joined_left = self.shrink(next.chunk);
        match before {
            Some(chunk) if joined_left && next.chunk == place.chunk => Place {
                chunk,
                slot: slots + place.slot,
            },
            _ => place,
        }
    }

    fn take(&mut self, place: Place) {
        self.len -= 1;
        self.shape += 1;
        let Place { chunk, slot } = place;
        self.chunks[chunk].remove(slot);
        self.firsts[chunk] = self.chunks[chunk].keys[0];
    }

    /// Keeps chunks from staying nearly empty: whether this one has joined the one before it. An empty one
    /// goes.
    fn shrink(&mut self, chunk: usize) -> bool {
        let left = self.chunks[chunk].len;
        if left == 0 {
            self.chunks.remove(chunk);
            self.firsts.remove(chunk);
            return false;
        }
        if left >= FULL / 8 {
            return false;
        }
        self.join(chunk + 1);
        self.join(chunk)
    }

    /// Joins a chunk to the one before it when both together leave room to grow.
    fn join(&mut self, chunk: usize) -> bool {
        if chunk == 0 || chunk >= self.chunks.len() {
            return false;
        }
        let fits = self.chunks[chunk - 1].len + self.chunks[chunk].len <= FULL / 2;
        if fits {
            let next = self.chunks.remove(chunk);
            self.firsts.remove(chunk);
            self.chunks[chunk - 1].append(&next, 0);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn agree(map: &Sorted<u32>, model: &BTreeMap<u64, u32>) {
        assert_eq!(map.len(), model.len());
        assert!(
            map.iter()
                .eq(model.iter().map(|(key, value)| (*key, *value)))
        );
        assert!(map.chunks.iter().all(|chunk| chunk.len > 0));
        for (first, chunk) in map.firsts.iter().zip(&map.chunks) {
            assert_eq!(*first, chunk.keys[0]);
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_in_order(steps in prop::collection::vec((0u8..4, 0u64..600, any::<u32>()), 0..1500)) {
            let mut map = Sorted::default();
            let mut model = BTreeMap::new();
            for (what, key, value) in steps {
                let place = map.floor(key);
                let found = place.map(|place| map.get(place));
                let expected = model.range(..=key).next_back().map(|(key, value)| (*key, *value));
                prop_assert_eq!(found, expected);
                let here = place.filter(|place| map.get(*place).0 == key);
                match (what, here) {
                    (0, Some(place)) if value % 2 == 0 => {
                        map.remove(place);
                        model.remove(&key);
                    }
                    (0, Some(place)) => {
                        let next = map.next(place).map(|next| map.get(next).0);
                        let now = map.remove_behind(place);
                        prop_assert_eq!(Some(map.get(now)), found);
                        next.map(|next| model.remove(&next));
                    }
                    (0, None) => {}
                    (_, Some(place)) => {
                        map.set(place, value);
                        model.insert(key, value);
                    }
                    (_, None) => {
                        let at = map.insert_behind(place, key, value);
                        prop_assert_eq!(map.get(at), (key, value));
                        let before = map.previous(at).map(|place| map.get(place));
                        prop_assert_eq!(before, expected);
                        model.insert(key, value);
                    }
                }
            }
            agree(&map, &model);
        }
    }

    #[test]
    fn filled_and_emptied_from_each_end_it_keeps_its_chunks_true() {
        for (fill_up, empty_up) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut map = Sorted::default();
            let mut model = BTreeMap::new();
            let order = |up: bool, n: u64| if up { n } else { 999 - n };
            for key in (0..1000).map(|n| order(fill_up, n)) {
                map.insert_behind(map.floor(key), key, key as u32);
                model.insert(key, key as u32);
            }
            agree(&map, &model);
            for key in (0..1000).map(|n| order(empty_up, n)) {
                if key % 17 != 0 {
                    map.remove(map.floor(key).unwrap());
                    model.remove(&key);
                }
            }
            agree(&map, &model);
            assert!(map.chunks.len() < 8, "{} chunks for 59", map.chunks.len());
        }
    }
}
