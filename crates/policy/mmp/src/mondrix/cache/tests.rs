use super::*;
use crate::config::{CacheConfig, Caches};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Obviously right: for each set a queue of lines, the most recent in front.
struct Naive {
    sets: Vec<VecDeque<u64>>,
    ways: usize,
}

impl Naive {
    fn access(&mut self, address: u64) -> bool {
        let line = address / 64;
        let index = (line % self.sets.len() as u64) as usize;
        let set = &mut self.sets[index];
        let hit = set.contains(&line);
        set.retain(|&other| other != line);
        set.push_front(line);
        set.truncate(self.ways);
        hit
    }
}

proptest! {
    #[test]
    fn agrees_with_queues(
        addresses in proptest::collection::vec(0u64..16384, 1..2000),
        ways in 1u32..5,
    ) {
        let config = CacheConfig { bytes: 64 * 8 * u64::from(ways), ways };
        let mut cache = Cache::new(&config, 64).unwrap();
        let mut naive = Naive { sets: vec![VecDeque::new(); 8], ways: ways as usize };
        for address in addresses {
            prop_assert_eq!(cache.access(address), naive.access(address));
        }
    }
}

#[test]
fn the_papers_penalties_add_up() {
    let mut caches = Hierarchy::new(&Caches::default()).unwrap();
    assert_eq!(caches.data(0), 216, "misses both levels");
    assert_eq!(caches.data(63), 0, "the same line");
    assert_eq!(
        caches.fetch(0),
        16,
        "in level two, not in the other level one"
    );
    // Four more lines of the same set of 64 push the first out of a 4-way level one.
    for way in 1..=4 {
        assert_eq!(caches.data(way * 64 * 64), 216);
    }
    assert_eq!(caches.data(0), 16);
}

#[test]
fn an_access_over_the_end_of_a_line_touches_both() {
    let mut caches = Hierarchy::new(&Caches::default()).unwrap();
    assert_eq!(caches.data_bytes(60, 8), 432);
    assert_eq!(caches.data_bytes(0, 128), 0);
}

#[test]
fn a_line_forgets_its_gate_bit_when_it_is_evicted() {
    let mut cache = Cache::new(
        &CacheConfig {
            bytes: 128,
            ways: 2,
        },
        64,
    )
    .unwrap();
    cache.access(0);
    assert!(!cache.known_without_gates(0, 7));
    cache.note_without_gates(0, 7);
    cache.access(64);
    cache.access(0);
    assert!(cache.known_without_gates(0, 7));
    assert!(!cache.known_without_gates(0, 8));
    cache.access(64);
    cache.access(128);
    cache.access(0);
    assert!(!cache.known_without_gates(0, 7));
}
