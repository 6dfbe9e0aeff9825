use super::*;
use proptest::prelude::*;

const WORDS: u64 = 1 << 18;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn agrees_with_a_flat_array(
        writes in proptest::collection::vec((0..512u64, 1..64u64, 0u64..4), 1..120),
        wide: bool,
    ) {
        let table = SortedTable::new(if wide { 40 } else { 20 }).unwrap();
        let mut memory = TableMemory::new();
        let mut root = table.create(&mut memory);
        let mut flat = vec![Perm::None; 600];
        for (first, count, perm) in writes {
            let perm = Perm::from_bits(perm);
            let range = first * 4..(first + count) * 4;
            table.set(&mut memory, std::slice::from_mut(&mut root), range, perm);
            flat[first as usize..(first + count) as usize].fill(perm);
        }
        let segments = 1 + flat.windows(2).filter(|pair| pair[0] != pair[1]).count();
        prop_assert_eq!(root.count as usize, segments, "neighbours differ");
        for (word, &perm) in flat.iter().enumerate() {
            let address = word as u64 * 4;
            let block = table.look_up(&memory, root, address, &mut Walk::default());
            prop_assert_eq!(block.perm_at(address), perm);
            // The block lies inside one segment: all of its words have this permission.
            let first = (block.base / 4) as usize;
            let end = (first + (1 << block.size_log2 >> 2)).min(600);
            prop_assert!(flat[first..end].iter().all(|&inside| inside == perm));
        }
        table.destroy(&mut memory, root);
        prop_assert_eq!(memory.traffic().in_use, 0);
    }
}

#[test]
fn the_ends_of_the_space_are_in_it() {
    let table = SortedTable::new(20).unwrap();
    let mut memory = TableMemory::new();
    let mut root = table.create(&mut memory);
    let one = std::slice::from_mut(&mut root);
    table.set(&mut memory, one, 0..4, Perm::Read);
    table.set(
        &mut memory,
        one,
        (WORDS - 1) * 4..WORDS * 4,
        Perm::ReadWrite,
    );
    let perm = |word: u64| {
        let block = table.look_up(&memory, root, word * 4, &mut Walk::default());
        block.perm_at(word * 4)
    };
    assert_eq!([perm(0), perm(1)], [Perm::Read, Perm::None]);
    assert_eq!(
        [perm(WORDS - 2), perm(WORDS - 1)],
        [Perm::None, Perm::ReadWrite]
    );
    assert_eq!(root.count, 3);
}

#[test]
fn a_look_up_halves() {
    let table = SortedTable::new(32).unwrap();
    let mut memory = TableMemory::new();
    let mut root = table.create(&mut memory);
    for object in 0..32 {
        let start = 0x1000 + object * 64;
        let one = std::slice::from_mut(&mut root);
        table.set(&mut memory, one, start..start + 32, Perm::Read);
    }
    assert_eq!(root.count, 65);
    let mut walk = Walk::default();
    table.look_up(&memory, root, 0x1000, &mut walk);
    assert!((6..=7).contains(&walk.loads().len()));
}
