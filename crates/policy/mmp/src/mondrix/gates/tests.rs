use super::*;
use crate::table::Walk;
use crate::table::memory::TableMemory;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_table_agrees_with_a_map(
        steps in proptest::collection::vec((0u64..300, 0u16..3, any::<bool>()), 1..400),
        wide: bool,
    ) {
        let mut memory = TableMemory::new();
        let mut table = GateTable::new(&mut memory, if wide { 40 } else { 32 }, 64);
        let mut map = BTreeMap::new();
        let high = if wide { 1 << 36 } else { 0 };
        for (word, kind, add) in steps {
            let address = high + word * 4;
            let gate = if kind == 0 { GateEntry::Return } else { GateEntry::Switch { to: kind } };
            if add {
                table.insert(&mut memory, address, gate);
                map.insert(address, gate);
            } else {
                table.remove(&mut memory, address);
                map.remove(&address);
            }
        }
        prop_assert_eq!(table.len(), map.len());
        for line in 0..20 {
            let address = high + line * 64;
            let mut walk = Walk::default();
            let mut found = table.walk(&memory, address + 12, &mut walk);
            found.sort_by_key(|(at, _)| *at);
            let expected: Vec<_> = map.range(address..address + 64).map(|(&at, &gate)| (at, gate)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert!(walk.loads().len() > found.len());
        }
        table.destroy(&mut memory);
        prop_assert_eq!(memory.traffic().in_use, 0);
    }

    #[test]
    fn the_buffer_agrees_with_a_list(
        steps in proptest::collection::vec((0u32..3, 0u64..24, 0usize..6), 1..600),
        capacity in 1u32..12,
    ) {
        let mut glb = Glb::new(capacity, 64);
        // The most recently used in front; each with the number of gates on its line.
        let mut naive: Vec<(u32, u64, usize)> = Vec::new();
        for (domain, line, what) in steps {
            let address = line * 64;
            let gates = 1 + (line as usize + domain as usize) % 4;
            if what == 0 {
                glb.flush(domain, address..address + 1);
                naive.retain(|entry| (entry.0, entry.1) != (domain, line));
                continue;
            }
            let expected = naive.iter().position(|entry| (entry.0, entry.1) == (domain, line));
            prop_assert_eq!(glb.look_up(domain, address), expected.is_some());
            match expected {
                Some(index) => {
                    let entry = naive.remove(index);
                    naive.insert(0, entry);
                    prop_assert_eq!(glb.gate(domain, address), Some(GateEntry::Return));
                    prop_assert_eq!(glb.gate(domain, address + 63), None);
                }
                None => {
                    let on_line = (0..gates as u64).map(|gate| (address + 4 * gate, GateEntry::Return));
                    glb.refill(domain, address, on_line.collect());
                    if gates <= capacity as usize {
                        naive.insert(0, (domain, line, gates));
                        while naive.iter().map(|entry| entry.2).sum::<usize>() > capacity as usize {
                            naive.pop();
                        }
                    }
                }
            }
        }
    }
}
