use super::*;
use crate::access::Perm;
use proptest::prelude::*;

/// Obviously right: a list of blocks, the most recently used in front.
#[derive(Default)]
struct Naive {
    entries: Vec<(u32, MemoryBlock)>,
    capacity: usize,
}

impl Naive {
    fn look_up(&mut self, domain: u32, address: u64) -> Option<Perm> {
        let found = self
            .entries
            .iter()
            .position(|(of, block)| *of == domain && block.contains(address))?;
        let entry = self.entries.remove(found);
        self.entries.insert(0, entry);
        Some(entry.1.perm_at(address))
    }

    fn refill(&mut self, domain: u32, block: MemoryBlock) {
        self.flush(domain, block.base..block.base + (1 << block.size_log2));
        self.entries.insert(0, (domain, block));
        self.entries.truncate(self.capacity);
    }

    fn flush(&mut self, domain: u32, range: Range<u64>) {
        self.entries.retain(|(of, block)| {
            let end = block.base + (1 << block.size_log2);
            *of != domain || block.base >= range.end || end <= range.start
        });
    }
}

#[derive(Clone, Debug)]
enum Step {
    LookUp(u32, u64),
    Flush(u32, u64, u64),
    FlushStack,
}

fn step() -> impl Strategy<Value = Step> {
    let domain = prop_oneof![4 => 0u32..4, 1 => Just(STACK)];
    prop_oneof![
        20 => (domain.clone(), 0u64..0x4000).prop_map(|(domain, at)| Step::LookUp(domain, at)),
        2 => (domain, 0u64..0x4000, 1u64..0x400).prop_map(|(domain, at, bytes)| Step::Flush(domain, at, bytes)),
        1 => Just(Step::FlushStack),
    ]
}

/// A block that depends on domain and address only, so that refills agree.
fn block_of(domain: u32, address: u64) -> MemoryBlock {
    let size_log2 = [6, 6, 7, 9, 12][(address >> 12) as usize % 5];
    let base = address >> size_log2 << size_log2;
    let perms = (base + u64::from(domain)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    MemoryBlock {
        base,
        size_log2,
        parts_log2: 4,
        perms: perms & 0xffff_ffff,
    }
}

proptest! {
    #[test]
    fn agrees_with_a_list(
        steps in proptest::collection::vec(step(), 1..1500),
        entries in 1u32..24,
    ) {
        let mut plb = Plb::new(entries);
        let mut naive = Naive { capacity: entries as usize, ..Naive::default() };
        let mut misses = 0;
        for step in steps {
            match step {
                Step::LookUp(domain, address) => {
                    for access in [MachineAccess::Read, MachineAccess::Write, MachineAccess::Execute] {
                        let expected = naive.look_up(domain, address);
                        let found = plb.look_up(domain, address, address + 1, access);
                        prop_assert_eq!(
                            found.map(|answer| answer.allowed),
                            expected.map(|perm| perm.allows(access))
                        );
                        if found.is_none() {
                            misses += 1;
                            let block = block_of(domain, address);
                            naive.refill(domain, block);
                            let answer = plb.refill(domain, block, address, address + 1, access);
                            prop_assert_eq!(answer.allowed, block.perm_at(address).allows(access));
                        }
                    }
                }
                Step::Flush(domain, address, bytes) => {
                    naive.flush(domain, address..address + bytes);
                    plb.flush(domain, address..address + bytes);
                }
                Step::FlushStack => {
                    naive.flush(STACK, 0..u64::MAX);
                    plb.flush_all_of(STACK);
                }
            }
        }
        prop_assert_eq!(plb.counts().misses, misses);
    }

    #[test]
    fn an_access_over_words_needs_them_all(address in 0u64..64, bytes in 1u64..17, perms: u32) {
        let block = MemoryBlock { base: 0, size_log2: 6, parts_log2: 4, perms: u64::from(perms) };
        let end = address + bytes;
        for access in [MachineAccess::Read, MachineAccess::Write, MachineAccess::Execute] {
            let expected = (address..end.min(64)).all(|byte| block.perm_at(byte).allows(access));
            prop_assert_eq!(answer(block, address, end, access).allowed, expected);
        }
    }
}

#[test]
fn ranges_are_cut_into_powers_of_two() {
    assert_eq!(power_of_two_pieces(0..4096), 1);
    assert_eq!(power_of_two_pieces(4..8), 1);
    assert_eq!(power_of_two_pieces(4..20), 3);
    assert_eq!(power_of_two_pieces(0..1 << 40), 1);
}
