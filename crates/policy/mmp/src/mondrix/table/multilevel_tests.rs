use super::*;
use crate::table::memory::TableMemory;
use proptest::prelude::*;

/// A small space: 64 KiB, so that a flat map of words is a fair judge.
const BITS: u32 = 20;
const WORDS: u64 = 1 << (BITS - 2);

fn all<E: Encoding>(
    table: &MultiLevel<E>,
    memory: &TableMemory,
    root: Root,
    flat: &[Perm],
) -> Result<(), TestCaseError> {
    let mut walk = Walk::default();
    for (word, &perm) in flat.iter().enumerate() {
        walk.clear();
        let address = word as u64 * 4;
        let block = table.look_up(memory, root, address, &mut walk);
        prop_assert!(block.contains(address));
        prop_assert_eq!(block.perm_at(address), perm, "{:#x}", address);
        prop_assert!(walk.loads().len() <= table.geometry().levels() + 1);
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct Write {
    domains: u8,
    first: u64,
    count: u64,
    perm: Perm,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let count = prop_oneof![1u64..40, 1u64..2000, Just(16), Just(1024), Just(WORDS)];
    let first = prop_oneof![0..WORDS, (0..WORDS / 1024).prop_map(|page| page * 1024)];
    let one = (1u8..8, first, count, 0u64..4).prop_map(|(domains, first, count, perm)| Write {
        domains,
        first,
        count: count.min(WORDS - first),
        perm: Perm::from_bits(perm),
    });
    proptest::collection::vec(one, 1..40)
}

/// Three tables, written alone and together, against three flat arrays; then all memory comes back.
fn agrees<E: Encoding>(writes: Vec<Write>, granularity: u64) -> Result<(), TestCaseError> {
    let table = MultiLevel::<E>::new(BITS, granularity).unwrap();
    let unit = granularity / 4;
    let mut memory = TableMemory::new();
    let mut roots = [(); 3].map(|()| table.create(&mut memory));
    let empty = memory.traffic().in_use;
    let mut flat = vec![vec![Perm::None; WORDS as usize]; 3];
    for Write {
        domains,
        first,
        count,
        perm,
    } in writes
    {
        let first = first / unit * unit;
        let end = (first + count).next_multiple_of(unit).min(WORDS);
        let members: Vec<usize> = (0..3).filter(|domain| domains >> domain & 1 == 1).collect();
        let mut group: Vec<Root> = members.iter().map(|&member| roots[member]).collect();
        table.set(&mut memory, &mut group, first * 4..end * 4, perm);
        table.share(&mut memory, &group, first * 4..end * 4);
        for (&member, root) in members.iter().zip(group) {
            roots[member] = root;
            flat[member][first as usize..end as usize].fill(perm);
        }
    }
    for (root, flat) in roots.iter().zip(&flat) {
        all(&table, &memory, *root, flat)?;
    }
    let last = WORDS * 4;
    for root in &mut roots {
        table.set(&mut memory, std::slice::from_mut(root), 0..last, Perm::None);
    }
    prop_assert_eq!(memory.traffic().in_use, empty, "subtrees leaked");
    for root in roots {
        table.destroy(&mut memory, root);
    }
    prop_assert_eq!(memory.traffic().in_use, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn vector_agrees_with_flat_arrays(writes in writes()) {
        agrees::<Vector>(writes, 4)?;
    }

    #[test]
    fn runs_agree_with_flat_arrays(writes in writes()) {
        agrees::<Runs>(writes, 4)?;
    }

    #[test]
    fn coarse_tables_agree_too(writes in writes(), log2 in 3u32..9) {
        agrees::<Vector>(writes.clone(), 1 << log2)?;
        agrees::<Runs>(writes, 1 << log2)?;
    }

    #[test]
    fn runs_decode_what_they_encode(perms: u64) {
        for perms in [perms, perms & 0xff, perms & 0xffff << 20] {
            if let Some(entry) = Runs::encode(perms, true) {
                prop_assert_eq!(Runs::decode(entry, true), Content::Perms(perms));
            } else {
                let changes = (1..32).filter(|part| (perms >> (2 * part) ^ perms >> (2 * part - 2)) & 3 != 0);
                prop_assert!(changes.count() >= 5);
            }
        }
    }
}

/// The paper's geometry: a whole page is one word of the middle table, a word in it costs a leaf table.
#[test]
fn writes_are_counted_word_by_word() {
    let table = MultiLevel::<Vector>::new(32, 4).unwrap();
    let mut memory = TableMemory::new();
    let mut root = [table.create(&mut memory)];
    assert_eq!(memory.traffic().in_use, 1024);
    let before = memory.traffic();
    table.set(&mut memory, &mut root, 0x40_0000..0x80_0000, Perm::Read);
    let root_entry = memory.traffic();
    assert_eq!(
        root_entry.written - before.written,
        1,
        "4 MiB: one root entry"
    );
    table.set(
        &mut memory,
        &mut root,
        0x40_1000..0x40_2000,
        Perm::ReadWrite,
    );
    let page = memory.traffic();
    // The middle table is cleared, filled with what the root entry said, linked, and one entry changed.
    assert_eq!(page.written - root_entry.written, 1024 + 1024 + 1 + 1);
    assert_eq!(page.in_use, 2048);
    table.set(&mut memory, &mut root, 0x40_1040..0x40_1044, Perm::None);
    let word = memory.traffic();
    assert_eq!(word.written - page.written, 64 + 64 + 1 + 1);
    assert_eq!(word.in_use, 2048 + 64);
    // Nothing changes, nothing is written.
    table.set(&mut memory, &mut root, 0x40_1040..0x40_1044, Perm::None);
    assert_eq!(memory.traffic().written, word.written);
}

#[test]
fn a_look_up_loads_one_word_a_level() {
    let table = MultiLevel::<Vector>::new(32, 4).unwrap();
    let mut memory = TableMemory::new();
    let mut root = [table.create(&mut memory)];
    table.set(&mut memory, &mut root, 0x1000..0x1004, Perm::Read);
    let mut walk = Walk::default();
    let leaf = table.look_up(&memory, root[0], 0x1000, &mut walk);
    assert_eq!(
        (walk.loads().len(), leaf.base, leaf.size_log2),
        (3, 0x1000, 6)
    );
    walk.clear();
    let page = table.look_up(&memory, root[0], 0x2000, &mut walk);
    assert_eq!(
        (walk.loads().len(), page.base, page.size_log2),
        (2, 0x2000, 12)
    );
    walk.clear();
    let root_entry = table.look_up(&memory, root[0], 0x40_0000, &mut walk);
    assert_eq!((walk.loads().len(), root_entry.size_log2), (1, 22));
}

#[test]
fn a_group_writes_its_pages_once() {
    let table = MultiLevel::<Vector>::new(32, 4).unwrap();
    let used = |together: bool| {
        let mut memory = TableMemory::new();
        let mut roots = [(); 8].map(|()| table.create(&mut memory));
        let before = memory.traffic();
        for object in 0..16 {
            let range = object * 256..object * 256 + 100;
            if together {
                table.set(&mut memory, &mut roots, range, Perm::Read);
            } else {
                for root in &mut roots {
                    table.set(
                        &mut memory,
                        std::slice::from_mut(root),
                        range.clone(),
                        Perm::Read,
                    );
                }
            }
        }
        let after = memory.traffic();
        (after.in_use - before.in_use, after.written - before.written)
    };
    let (alone, alone_written) = used(false);
    let (shared, shared_written) = used(true);
    assert_eq!(alone, 8 * (1024 + 64));
    assert_eq!(
        shared,
        1024 + 64,
        "one middle table and one leaf for eight domains"
    );
    assert!(shared_written * 7 < alone_written);
}

#[test]
fn who_joins_later_shares_when_told_to() {
    let table = MultiLevel::<Vector>::new(32, 4).unwrap();
    let mut memory = TableMemory::new();
    let mut roots = [(); 2].map(|()| table.create(&mut memory));
    let empty = memory.traffic().in_use;
    for root in &mut roots {
        table.set(
            &mut memory,
            std::slice::from_mut(root),
            0x1000..0x1010,
            Perm::Read,
        );
    }
    assert_eq!(memory.traffic().in_use - empty, 2 * (1024 + 64));
    table.share(&mut memory, &roots, 0x1000..0x1010);
    assert_eq!(memory.traffic().in_use - empty, 1024 + 64);
    // A private write afterwards copies, and the other does not see it.
    table.set(
        &mut memory,
        &mut roots[..1],
        0x1020..0x1024,
        Perm::ReadWrite,
    );
    let perm = |root| {
        table
            .look_up(&memory, root, 0x1020, &mut Walk::default())
            .perm_at(0x1020)
    };
    assert_eq!(
        [perm(roots[0]), perm(roots[1])],
        [Perm::ReadWrite, Perm::None]
    );
}
