//! A mechanism that keeps what the supervisor tells it: for tests, for examples, and for pictures of what was decided.
//!
//! This is not trusted. It enforces nothing: a fault in it shows another permission than the one that was decided.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use mullion_supervisor::{
    DomainId, Holders, HoldingNumber, Mechanism, Permission, Range, ThreadId,
};

/// A mechanism that keeps what it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recorder {
    /// What holds now: for each domain its ranges by first word, with what lies there. Words without a
    /// range have [`Permission::None`].
    tables: BTreeMap<DomainId, BTreeMap<u64, (u64, Permission)>>,
    /// The writable words of each thread's earlier frames, as ranges by first word.
    stacks: BTreeMap<ThreadId, BTreeMap<u64, u64>>,
    /// How many writes, flushes and hints came so far.
    counts: [u64; 3],
    /// The holding of each word that one was told of, as ranges by first word.
    holdings: BTreeMap<u64, (u64, HoldingNumber)>,
    /// What they mean.
    meanings: BTreeMap<HoldingNumber, BTreeMap<DomainId, Permission>>,
}

impl Recorder {
    /// Nothing recorded.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// What `domain` may do with `word`, as far as it was told.
    pub fn permission(&self, domain: DomainId, word: u64) -> Permission {
        self.tables
            .get(&domain)
            .and_then(|table| table.range(..=word).next_back())
            .filter(|(_, (end, _))| word < *end)
            .map_or(Permission::None, |(_, (_, permission))| *permission)
    }

    /// The same, as it follows from what was told by holding.
    pub fn permission_by_holding(&self, domain: DomainId, word: u64) -> Permission {
        let found = self.holdings.range(..=word).next_back();
        found
            .filter(|(_, (end, _))| word < *end)
            .and_then(|(_, (_, holding))| self.meanings.get(holding)?.get(&domain))
            .copied()
            .unwrap_or_default()
    }

    /// Every word with `before` has `after` now.
    fn renumber(&mut self, before: HoldingNumber, after: HoldingNumber) {
        let all = self.holdings.values_mut();
        all.filter(|(_, holding)| *holding == before)
            .for_each(|(_, holding)| *holding = after);
    }

    fn mean(&mut self, holding: HoldingNumber, holders: Holders<'_>) {
        let mut meaning = BTreeMap::new();
        holders.each(|domain, permission| {
            meaning.insert(domain, permission);
        });
        self.meanings.insert(holding, meaning);
    }

    /// Every range with a permission, in order of domain and address. Neighbours are not joined.
    pub fn ranges(&self) -> impl Iterator<Item = (DomainId, Range, Permission)> + '_ {
        self.tables.iter().flat_map(|(domain, table)| {
            table.iter().filter_map(|(start, (end, permission))| {
                Some((*domain, Range::between(*start, *end)?, *permission))
            })
        })
    }

    /// Whether the stack write table lets `thread` store to `word`.
    pub fn stack_writable(&self, thread: ThreadId, word: u64) -> bool {
        self.stacks
            .get(&thread)
            .and_then(|table| table.range(..=word).next_back())
            .is_some_and(|(_, end)| word < *end)
    }

    /// The domains that exist.
    pub fn domains(&self) -> Vec<DomainId> {
        self.tables.keys().copied().collect()
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.counts[0]
    }

    /// Flushes so far.
    pub fn flushes(&self) -> u64 {
        self.counts[1]
    }

    /// Hints on groups so far.
    pub fn hints(&self) -> u64 {
        self.counts[2]
    }
}

/// Removes `range` from a map of disjoint ranges, keeping what lies on both sides of it.
fn cut<T: Copy>(
    map: &mut BTreeMap<u64, T>,
    range: Range,
    end_of: impl Fn(&T) -> u64,
    with_end: impl Fn(T, u64) -> T,
) {
    if let Some((&start, &value)) = map.range(..range.start()).next_back() {
        let end = end_of(&value);
        if end > range.start() {
            map.insert(start, with_end(value, range.start()));
            if end > range.end() {
                map.insert(range.end(), value);
            }
        }
    }
    while let Some((&start, &value)) = map.range(range.start()..range.end()).next() {
        map.remove(&start);
        if end_of(&value) > range.end() {
            map.insert(range.end(), value);
        }
    }
}

impl Mechanism for Recorder {
    const BY_HOLDING: bool = true;

    fn hold(
        &mut self,
        range: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        holders: Holders<'_>,
    ) {
        if before.number == after.number {
            self.renumber(before, after);
        }
        let table = &mut self.holdings;
        cut(table, range, |(end, _)| *end, |(_, kept), end| (end, kept));
        table.insert(range.start(), (range.end(), after));
        self.mean(after, holders);
    }

    fn rehold(&mut self, holding: HoldingNumber, domain: DomainId, permission: Permission) {
        if let Some(meaning) = self.meanings.get_mut(&holding) {
            meaning.insert(domain, permission);
        }
    }

    fn succeed(&mut self, before: HoldingNumber, after: HoldingNumber, holders: Holders<'_>) {
        self.renumber(before, after);
        self.mean(after, holders);
    }

    fn create(&mut self, domain: DomainId) {
        self.tables.insert(domain, BTreeMap::new());
    }

    fn remove(&mut self, domain: DomainId) {
        self.tables.remove(&domain);
        for meaning in self.meanings.values_mut() {
            meaning.remove(&domain);
        }
    }

    fn write(&mut self, domain: DomainId, range: Range, permission: Permission) {
        self.counts[0] += 1;
        let table = self.tables.entry(domain).or_default();
        cut(table, range, |(end, _)| *end, |(_, kept), end| (end, kept));
        if permission != Permission::None {
            table.insert(range.start(), (range.end(), permission));
        }
    }

    fn flush(&mut self, _: DomainId, _: Range) {
        self.counts[1] += 1;
    }

    fn alike(&mut self, _: &[DomainId], _: Range, _: Permission) {
        self.counts[2] += 1;
    }

    fn write_stack(&mut self, thread: ThreadId, range: Range, writable: bool) {
        let table = self.stacks.entry(thread).or_default();
        cut(table, range, |end| *end, |_, end| end);
        if writable {
            table.insert(range.start(), range.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range::between(start, end).unwrap()
    }

    #[test]
    fn a_later_write_replaces_what_it_covers_and_nothing_else() {
        let mut recorder = Recorder::new();
        let domain = DomainId::new(1);
        recorder.write(domain, range(0, 10), Permission::Read);
        recorder.write(domain, range(3, 5), Permission::ReadWrite);
        recorder.write(domain, range(4, 12), Permission::None);
        let seen: Vec<_> = (0..12)
            .map(|word| recorder.permission(domain, word))
            .collect();
        let mut expected = alloc::vec![Permission::Read; 3];
        expected.push(Permission::ReadWrite);
        expected.resize(12, Permission::None);
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_stack_table_has_one_bit_for_each_word() {
        let mut recorder = Recorder::new();
        let thread = ThreadId::new(7);
        recorder.write_stack(thread, range(10, 20), true);
        recorder.write_stack(thread, range(12, 14), false);
        assert!(recorder.stack_writable(thread, 11));
        assert!(!recorder.stack_writable(thread, 12));
        assert!(recorder.stack_writable(thread, 14));
        assert!(!recorder.stack_writable(thread, 20));
    }
}
