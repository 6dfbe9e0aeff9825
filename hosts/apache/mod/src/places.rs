//! What is known of a module's copies of buckets and brigades, by their addresses. Copies lie side by side in chunks of memory, so an
//! address says where it is kept. A module may name any address.

/// What is kept for each place of some chunks; a place has so many bytes.
pub(crate) struct Places<T, const BYTES: u64> {
    /// Where each chunk begins and ends, and the number of its first place, in order.
    chunks: Vec<(u64, u64, usize)>,
    all: Vec<Option<T>>,
    /// How many places have something.
    count: usize,
}

impl<T, const BYTES: u64> Default for Places<T, BYTES> {
    fn default() -> Places<T, BYTES> {
        Places {
            chunks: Vec::new(),
            all: Vec::new(),
            count: 0,
        }
    }
}

impl<T, const BYTES: u64> Places<T, BYTES> {
    /// Places from an address on, which are in no chunk yet.
    pub(crate) fn add(&mut self, first: u64, count: u64) {
        let behind = self.chunks.partition_point(|(start, ..)| *start < first);
        let chunk = (first, first + BYTES * count, self.all.len());
        self.chunks.insert(behind, chunk);
        let room = self.all.len() + count as usize;
        self.all.resize_with(room, || None);
    }

    /// The number of the place that begins at an address.
    #[inline]
    fn place(&self, at: u64) -> Option<usize> {
        // A module with few copies has one chunk.
        let (start, end, base) = match *self.chunks {
            [one] => one,
            _ => self.chunk(at)?,
        };
        let distance = at.wrapping_sub(start);
        let is_place = distance < end - start && distance.is_multiple_of(BYTES);
        is_place.then(|| base + (distance / BYTES) as usize)
    }

    /// The chunk that an address could be in.
    #[inline(never)]
    fn chunk(&self, at: u64) -> Option<(u64, u64, usize)> {
        let behind = self.chunks.partition_point(|(start, ..)| *start <= at);
        self.chunks.get(behind.checked_sub(1)?).copied()
    }

    #[inline]
    pub(crate) fn get(&self, at: u64) -> Option<&T> {
        self.all[self.place(at)?].as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u64) -> Option<&mut T> {
        let place = self.place(at)?;
        self.all[place].as_mut()
    }

    /// Keeps something at a place; none if there is no such place.
    #[inline]
    pub(crate) fn put(&mut self, at: u64, kept: T) -> Option<&mut T> {
        let place = self.place(at)?;
        let place = &mut self.all[place];
        self.count += usize::from(place.is_none());
        Some(place.insert(kept))
    }

    /// Whether no place has anything.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes all that a rule picks out of their places.
    pub(crate) fn remove_all(&mut self, is_it: impl Fn(&T) -> bool, mut take: impl FnMut(u64, T)) {
        for (start, end, base) in &self.chunks {
            let places = ((end - start) / BYTES) as usize;
            let places = self.all[*base..].iter_mut().take(places);
            for (at, place) in (*start..).step_by(BYTES as usize).zip(places) {
                if let Some(taken) = place.take_if(|kept| is_it(kept)) {
                    self.count -= 1;
                    take(at, taken);
                }
            }
        }
    }

    /// Nothing is kept at a place any more.
    #[inline]
    pub(crate) fn clear(&mut self, at: u64) {
        if let Some(place) = self.place(at) {
            let place = &mut self.all[place];
            self.count -= usize::from(place.is_some());
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use std::collections::HashMap;

    /// All addresses around some chunks, which come in any order and may adjoin, against a map.
    #[test]
    fn an_address_is_a_place_if_one_begins_there() {
        // One chunk alone is looked at in another way.
        for chunks in [&[400, 160, 240, 80, 800][..], &[400], &[]] {
            against_a_map(chunks);
        }
    }

    fn against_a_map(chunks: &[u64]) {
        let mut state = 7u64;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        let (mut places, mut known) = (
            Places::<u64, 8>::default(),
            HashMap::<u64, Option<u64>>::new(),
        );
        for first in chunks {
            places.add(*first, 10);
            known.extend((0..10).map(|place| (first + 8 * place, None)));
        }
        let mut done = [0; 3];
        for turn in 0..20_000 {
            let at = below(1000);
            let entry = known.get_mut(&at);
            let is_place = entry.is_some();
            done[0] += u32::from(is_place);
            match below(3) {
                0 => {
                    assert_eq!(places.put(at, turn).is_some(), is_place);
                    entry.into_iter().for_each(|entry| *entry = Some(turn));
                }
                1 => {
                    done[1] += u32::from(places.get(at).is_some());
                    places.clear(at);
                    entry.into_iter().for_each(|entry| *entry = None);
                }
                _ => {
                    assert_eq!(places.get_mut(at).copied(), entry.copied().flatten());
                    done[2] += u32::from(places.get(at).is_some());
                }
            }
        }
        let enough = 20 * chunks.len() as u32;
        assert!(done.into_iter().all(|count| count >= enough), "{done:?}");
        let kept = |known: &HashMap<u64, Option<u64>>| known.values().flatten().count();
        assert_eq!(places.is_empty(), kept(&known) == 0);
        let is_odd = |kept: &u64| kept % 2 == 1;
        let mut taken = Vec::new();
        places.remove_all(is_odd, |at, kept| taken.push((at, kept)));
        let odd = known.iter_mut().filter_map(|(at, kept)| {
            let taken = kept.take_if(|kept| is_odd(kept));
            taken.map(|kept| (*at, kept))
        });
        let mut odd: Vec<(u64, u64)> = odd.collect();
        taken.sort_unstable();
        odd.sort_unstable();
        assert_eq!(taken, odd);
        for (at, kept) in &known {
            assert_eq!(places.get(*at), kept.as_ref());
        }
        assert_eq!(places.is_empty(), kept(&known) == 0);
        places.remove_all(|_| true, |_, _| {});
        assert!(places.is_empty());
        for at in [u64::MAX, 0, 79, 880] {
            assert_eq!(places.get(at), None);
        }
    }
}
