//! Places whose contents are their relocations' addends, packed. A word with bit 0 clear is a
//! place. One with bit 0 set is a map of the 63 words behind the last one, as in an ELF file's
//! `DT_RELR`. So they take no more than the file's own table, and are gone through, never laid out.

/// Places in ascending order, none across another.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    words: Vec<u64>,
    /// Where the next map begins, or the last one if there is one.
    next: u64,
    /// The least place that may follow.
    free: u64,
}

/// Words that a map is of.
const MAP: u64 = 63;

impl Packed {
    /// Adds a place; whether it follows those before.
    pub(crate) fn push(&mut self, place: u64) -> bool {
        if place < self.free || place & 1 == 1 {
            return false;
        }
        self.free = place + 8;
        if !self.words.is_empty() && !self.is_map() {
            // The last word is a place, and the first map begins behind it.
            return self.start_map(place) || self.start(place);
        }
        if self.is_map() {
            if let Some(bit) = self.bit(place) {
                if let Some(map) = self.words.last_mut() {
                    *map |= 2 << bit;
                }
                return true;
            }
            self.next += MAP * 8;
            return self.start_map(place) || self.start(place);
        }
        self.start(place)
    }

    fn is_map(&self) -> bool {
        self.words.last().is_some_and(|word| word & 1 == 1)
    }

    /// Which bit of a map at `next` a place is.
    fn bit(&self, place: u64) -> Option<u64> {
        let distance = place.checked_sub(self.next)?;
        (distance.is_multiple_of(8) && distance / 8 < MAP).then_some(distance / 8)
    }

    fn start_map(&mut self, place: u64) -> bool {
        let Some(bit) = self.bit(place) else {
            return false;
        };
        self.words.push(1 | 2 << bit);
        true
    }

    fn start(&mut self, place: u64) -> bool {
        self.words.push(place);
        self.next = place + 8;
        true
    }

    /// The places, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut next = 0;
        self.words.iter().flat_map(move |word| {
            let (first, map) = if word & 1 == 0 {
                (*word, 1)
            } else {
                (next, word >> 1)
            };
            next = first + if word & 1 == 0 { 8 } else { MAP * 8 };
            (0..MAP)
                .filter(move |bit| map >> bit & 1 == 1)
                .map(move |bit| first + bit * 8)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(places: &[u64]) -> Packed {
        let mut packed = Packed::default();
        for place in places {
            assert!(packed.push(*place), "{place}");
        }
        assert_eq!(packed.iter().collect::<Vec<_>>(), places);
        packed
    }

    #[test]
    fn what_is_pushed_comes_back_in_little_room() {
        packed(&[]);
        packed(&[0]);
        packed(&[16, 24, 32, 40, 34_000, 34_008]);
        packed(&[2, 10, 20, 28, 36 + 8 * 62, 44 + 8 * 62, 52 + 8 * 62]);
        let dense: Vec<u64> = (0..10_000).map(|index| 0x20000 + 8 * index).collect();
        assert!(packed(&dense).words.len() <= 2 + dense.len() / 63);
        let sparse: Vec<u64> = (0..1000).map(|index| 0x20000 + 4096 * index).collect();
        assert!(packed(&sparse).words.len() <= sparse.len());
        // All sorts of distances.
        let mut place = 0;
        let mixed: Vec<u64> = (0..5000_u64)
            .map(|index| {
                place += 8 + 2 * (index * index % 37) * u64::from(index % 3 == 0);
                place
            })
            .collect();
        assert!(packed(&mixed).words.len() <= mixed.len());
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let mut packed = packed(&[32]);
        for place in [0, 24, 32, 34, 38, 41] {
            assert!(!packed.push(place), "{place}");
        }
        assert!(packed.push(40));
    }
}
