//! A map of addresses that has a few entries nearly always: these are looked through. A map has all beyond them.

use crate::quick::Map;

/// So many entries are looked through.
const FEW: usize = 12;

/// Values by addresses.
pub(crate) struct Near<V> {
    few: Vec<(u64, V)>,
    more: Map<V>,
}

impl<V> Default for Near<V> {
    fn default() -> Near<V> {
        Near {
            few: Vec::new(),
            more: Map::default(),
        }
    }
}

impl<V> Near<V> {
    #[inline]
    fn place(&self, key: u64) -> Option<usize> {
        self.few.iter().position(|(known, _)| *known == key)
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        match self.place(key) {
            Some(place) => self.few.get(place).map(|(_, value)| value),
            None if self.more.is_empty() => None,
            None => self.more.get(&key),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        match self.place(key) {
            Some(place) => self.few.get_mut(place).map(|(_, value)| value),
            None if self.more.is_empty() => None,
            None => self.more.get_mut(&key),
        }
    }

    /// The value of a key, which may be a new one.
    pub(crate) fn get_or_insert_with(&mut self, key: u64, fresh: impl FnOnce() -> V) -> &mut V {
        match self.place(key) {
            Some(place) => &mut self.few[place].1,
            None => match self.few.len() < FEW
                && (self.more.is_empty() || !self.more.contains_key(&key))
            {
                true => {
                    let place = self.few.len();
                    self.few.push((key, fresh()));
                    &mut self.few[place].1
                }
                false => self.more.entry(key).or_insert_with(fresh),
            },
        }
    }

    /// A key has one value.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        if let Some(place) = self.place(key) {
            self.few[place].1 = value;
        } else if self.few.len() < FEW && (self.more.is_empty() || !self.more.contains_key(&key)) {
            self.few.push((key, value));
        } else {
            self.more.insert(key, value);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        match self.place(key) {
            Some(place) => Some(self.few.swap_remove(place).1),
            None if self.more.is_empty() => None,
            None => self.more.remove(&key),
        }
    }

    /// All of them, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        let few = self.few.iter().map(|(key, value)| (*key, value));
        few.chain(self.more.iter().map(|(key, value)| (*key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Near};
    use std::collections::HashMap;

    /// Few and many entries, against a map.
    #[test]
    fn it_is_a_map() {
        let mut state = 9u64;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        for keys in [3, FEW as u64 + 1, 60] {
            let (mut near, mut known) = (Near::<u64>::default(), HashMap::<u64, u64>::new());
            let mut most = 0;
            for turn in 0..20_000 {
                let key = below(keys);
                match below(5) {
                    0 => {
                        near.insert(key, turn);
                        known.insert(key, turn);
                    }
                    1 => {
                        let value = near.get_or_insert_with(key, || turn);
                        assert_eq!(value, known.entry(key).or_insert(turn));
                    }
                    2 => assert_eq!(near.remove(key), known.remove(&key)),
                    3 => assert_eq!(near.get_mut(key), known.get_mut(&key)),
                    _ => assert_eq!(near.get(key), known.get(&key)),
                }
                most = most.max(known.len());
            }
            assert!(most as u64 > keys / 2, "{most} of {keys}");
            assert!((0..keys).all(|key| near.get(key) == known.get(&key)));
            let all: HashMap<u64, u64> = near.iter().map(|(key, value)| (key, *value)).collect();
            assert_eq!((all.len(), &all), (near.iter().count(), &known));
        }
    }
}
