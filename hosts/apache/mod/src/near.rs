//! A map of addresses that has a few entries nearly always: these are looked through. A map has all beyond them.

use crate::quick::Map;

/// So many entries are looked through.
const FEW: usize = 12;

/// Numbers by addresses.
#[derive(Default)]
pub(crate) struct Near {
    few: Vec<(u64, u64)>,
    more: Map<u64>,
}

impl Near {
    #[inline]
    fn place(&self, key: u64) -> Option<usize> {
        self.few.iter().position(|(known, _)| *known == key)
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u64> {
        match self.place(key) {
            Some(place) => Some(self.few[place].1),
            None if self.more.is_empty() => None,
            None => self.more.get(&key).copied(),
        }
    }

    /// A key has one value.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, value: u64) {
        if let Some(place) = self.place(key) {
            self.few[place].1 = value;
        } else if self.few.len() < FEW && (self.more.is_empty() || !self.more.contains_key(&key)) {
            self.few.push((key, value));
        } else {
            self.more.insert(key, value);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: u64) -> Option<u64> {
        match self.place(key) {
            Some(place) => Some(self.few.swap_remove(place).1),
            None if self.more.is_empty() => None,
            None => self.more.remove(&key),
        }
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
            let (mut near, mut known) = (Near::default(), HashMap::<u64, u64>::new());
            let mut most = 0;
            for turn in 0..20_000 {
                let key = below(keys);
                match below(3) {
                    0 => {
                        near.insert(key, turn);
                        known.insert(key, turn);
                    }
                    1 => assert_eq!(near.remove(key), known.remove(&key)),
                    _ => assert_eq!(near.get(key), known.get(&key).copied()),
                }
                most = most.max(known.len());
            }
            assert!(most as u64 > keys / 2, "{most} of {keys}");
            assert!((0..keys).all(|key| near.get(key) == known.get(&key).copied()));
        }
    }
}
