//! What enforces the supervisor's decisions.

use crate::holdings::HoldingNumber;
use crate::region::Holding;
use crate::state::State;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use mullion_terms::domain::{DomainId, ThreadId};
use mullion_terms::permission::Permission;
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// The bottom half: writes the permissions that the supervisor has decided on (Mondrix, section 3).
///
/// The supervisor decides a call completely before it writes the first permission, so a call that is
/// refused reaches no mechanism. Nothing here can fail: a mechanism that could not take a permission away
/// must stop the machine, because what the supervisor believes would no longer be true.
///
/// A domain starts with no permission on anything. A mechanism is told what changes in one of two ways, or in
/// both:
///
/// - *By domain* ([`write`](Self::write), [`flush`](Self::flush)): for tables that each domain has for itself.
///   Within one call each word of a domain is written at most once, only where its permission changes, and
///   neighbouring words with the same permission come in one range; all writes come before the first flush.
/// - *By holding* ([`hold`](Self::hold), [`rehold`](Self::rehold), [`succeed`](Self::succeed)): for one table of
///   all domains, whose entries are numbers for *who may do what here*. Within one call each word comes at most
///   once, and only where its holding changes. At first all words have a holding that gives nobody anything.
pub trait Mechanism {
    /// Whether it is to be told by domain.
    const BY_DOMAIN: bool = true;

    /// Whether it is to be told by holding.
    const BY_HOLDING: bool = false;

    /// Asked before a call changes anything: whether there is room for `words` that change, in `pieces` pieces, each
    /// of which may get a holding that is new. `taking` says that the call can only take something away. After
    /// `false` the call is refused as [`Error::NoRoom`](mullion_refusal::error::Error::NoRoom), and nothing changes. Not asked
    /// before a domain's end and a change of a group's members.
    fn room(&mut self, words: u64, pieces: u64, taking: bool) -> bool {
        let _ = (words, pieces, taking);
        true
    }

    /// Whether permissions on all of `range` can be enforced. After `false` the call is refused as
    /// [`Error::NotEnforced`](mullion_refusal::error::Error::NotEnforced).
    fn enforces(&self, range: Range) -> bool {
        let _ = range;
        true
    }

    /// Asked before a domain is made: whether there is room for one more. After `false` the call is refused as
    /// [`Error::NoRoom`](mullion_refusal::error::Error::NoRoom).
    fn room_for_domain(&mut self) -> bool {
        true
    }

    /// By holding: the words of `range` had `before` and have `after` now, which means `holders`. Where only the
    /// edition differs, these are all words that had `before`.
    fn hold(
        &mut self,
        range: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        holders: Holders<'_>,
    ) {
        let _ = (range, before, after, holders);
    }

    /// By holding: from now on `domain`, which has joined or left a group or was just made, has `permission` on
    /// every word with this holding. Only holdings that grant something to groups change like this.
    fn rehold(&mut self, holding: HoldingNumber, domain: DomainId, permission: Permission) {
        let _ = (holding, domain, permission);
    }

    /// By holding: a domain ends. All words that had `before` have `after` now, and for no domain that lives
    /// does `after` give more. Comes once for each `before`; first where only the edition differs.
    fn succeed(&mut self, before: HoldingNumber, after: HoldingNumber, holders: Holders<'_>) {
        let _ = (before, after, holders);
    }

    /// By holding: the call has told all that it changes. Where checked code acts on what it has read before, the
    /// mechanism waits here until it no longer does: what the call has taken away is gone when it returns.
    fn settle(&mut self) {}

    /// `domain` exists from now on and holds nothing.
    fn create(&mut self, domain: DomainId) {
        let _ = domain;
    }

    /// `domain` is gone. By domain, all it held has been written to [`Permission::None`] before; by holding, it is
    /// in no holding that a word has. Its number does not come back.
    fn remove(&mut self, domain: DomainId) {
        let _ = domain;
    }

    /// From now on `domain` holds `permission` on every word of `range`.
    fn write(&mut self, domain: DomainId, range: Range, permission: Permission);

    /// What caches say of `domain` and `range` may be stale. Comes once for each connected piece that the
    /// call wrote.
    fn flush(&mut self, domain: DomainId, range: Range);

    /// A hint, behind the writes of the same call: after it all of `members` hold `permission` on all of
    /// `range` through one group, so aligned pieces of their tables can be shared (Mondrix, section 3.6).
    fn alike(&mut self, members: &[DomainId], range: Range, permission: Permission) {
        let _ = (members, range, permission);
    }

    /// The stack write table of `thread`: one bit for each word of `range`.
    fn write_stack(&mut self, thread: ThreadId, range: Range, writable: bool) {
        let _ = (thread, range, writable);
    }

    /// `thread` is about to run: its stack registers and its stack write table take effect.
    fn load_stack(&mut self, thread: ThreadId, registers: StackRegisters) {
        let _ = (thread, registers);
    }

    /// `thread` is not running any more: what caches say of its stack is stale.
    fn flush_stack(&mut self, thread: ThreadId) {
        let _ = thread;
    }
}

/// What a holding means for those who live now.
#[derive(Clone, Copy, Debug)]
pub struct Holders<'a> {
    state: &'a State,
    holding: &'a Holding,
    changed: Option<Subject>,
}

impl<'a> Holders<'a> {
    pub(crate) fn new(
        state: &'a State,
        holding: &'a Holding,
        changed: Option<Subject>,
    ) -> Holders<'a> {
        Holders {
            state,
            holding,
            changed,
        }
    }

    /// The only one whose grant differs from the holding before, if it is only one and known: for all others, but
    /// the members of this group, nothing changes.
    pub fn changed(&self) -> Option<Subject> {
        self.changed
    }

    /// The owner, and what was granted to domains and groups.
    pub fn holding(&self) -> &'a Holding {
        self.holding
    }

    /// What `domain`, if it lives, may do, itself and through groups.
    pub fn permission(&self, domain: DomainId) -> Permission {
        match self.state.domain(domain) {
            Ok(_) => self.state.effective(self.holding, domain).access,
            Err(_) => Permission::None,
        }
    }

    /// Whether `domain` lives.
    pub fn lives(&self, domain: DomainId) -> bool {
        self.state.domain(domain).is_ok()
    }

    /// All living domains that may do something, in order.
    pub fn each(&self, mut with: impl FnMut(DomainId, Permission)) {
        let mut tell = |domain| match self.permission(domain) {
            Permission::None => {}
            permission => with(domain, permission),
        };
        let grants = &self.holding.grants;
        if self.holding.of_groups().next().is_none() {
            // In order already.
            return grants.iter().for_each(|(subject, _)| match subject {
                Subject::Domain(domain) => tell(*domain),
                Subject::Group(_) => {}
            });
        }
        let mut all: Vec<DomainId> = Vec::new();
        for (subject, _) in grants {
            match subject {
                Subject::Domain(domain) => all.push(*domain),
                Subject::Group(group) => all.extend(self.state.members(*group)),
            }
        }
        all.sort_unstable();
        all.dedup();
        all.into_iter().for_each(tell);
    }
}

/// The registers that give a thread access to its stack (Mondrix, section 2.3), as word numbers. Stacks
/// grow down: `limit <= frame <= base`.
///
/// ```text
///   base  sb ->  +----------------------+  first word above the stack
///                | frames of callers    |  read; write where the table says so
///   frame fb ->  +----------------------+
///                | frames of the        |  read and write
///                | current domain       |
///   limit sl ->  +----------------------+  lowest word of the stack
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackRegisters {
    /// `sb`: the word behind the highest word of the stack.
    pub base: u64,
    /// `fb`: frames at or above this word belong to earlier domains.
    pub frame: u64,
    /// `sl`: the lowest word of the stack.
    pub limit: u64,
}

impl StackRegisters {
    /// Whether the registers alone allow a load from `word`.
    pub fn reads(&self, word: u64) -> bool {
        self.limit <= word && word < self.base
    }

    /// Whether the registers alone, without the stack write table, allow a store to `word`.
    pub fn writes(&self, word: u64) -> bool {
        self.limit <= word && word < self.frame
    }
}

/// A mechanism that keeps what it is told, for tests and examples.
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
