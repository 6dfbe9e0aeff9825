//! The table: what the supervisor decided, in shadow and maps.

use crate::inside::Inside;
use crate::numbers::{Given, Meaning, NOBODY, Numbers};
use crate::shifted::Shifted;
use crate::space::{Space, SpaceError, WORDS};
use crate::{ADDRESS_BITS, Access};
use mullion_supervisor::{
    DomainId, Holders, HoldingNumber, JoinPolicy, Mechanism, Permission, Range, Subject, Supervisor,
};
use mullion_word_abi::{OWN_FIRST, OWN_LAST};
use std::sync::Arc;

/// What a table may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Domains at a time, at most 16,383. Each takes a page or two of memory for its map.
    pub domains: u32,
    /// Words that one call may change to somebody's: it writes two bytes for each of them.
    pub words: u64,
    /// Numbers for shared holdings, at most 49,151.
    pub numbers: u16,
    /// Of these, so many are left to calls that only take something away.
    pub reserve: u16,
}

impl Default for Limits {
    /// 16,383 domains, 4 GiB a call, all numbers.
    fn default() -> Limits {
        Limits {
            domains: u32::from(OWN_LAST - OWN_FIRST) + 1,
            words: 1 << 30,
            numbers: OWN_FIRST - 1,
            reserve: 1024,
        }
    }
}

/// When a right that was taken away is gone on all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Settling {
    /// When the call that takes it away returns.
    #[default]
    Now,
    /// When [`Table::settle_now`] returns: for hosts that take away much and wait once.
    Later,
}

/// How much a table uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Numbers that can be given out.
    pub numbers_left: u64,
    /// Numbers that come back when all threads are past their checks.
    pub numbers_resting: u64,
    /// Numbers that come back with [`Table::collect`].
    pub numbers_spent: u64,
    /// Living domains.
    pub domains: u64,
    /// Words written into the shadow so far.
    pub words_written: u64,
    /// Bytes written into maps so far.
    pub map_bytes_written: u64,
}

/// The supervisor's mechanism for the word wall.
#[derive(Debug)]
pub struct Table {
    space: Arc<Space>,
    inside: Arc<Inside>,
    numbers: Numbers,
    /// The own numbers of those that live, by the domain's number.
    owns: Vec<Option<u16>>,
    limits: Limits,
    settling: Settling,
    /// Who has lost something since it was settled; possibly twice.
    lost: Vec<DomainId>,
    is_collecting: bool,
    written: (u64, u64),
    /// Words that nobody is ever granted.
    closed: Vec<Range>,
    /// The latest change of words to a holding with a higher number, and to one with a lower number: where grants come and
    /// go, these are the grant and its revocation. Several domains may take turns, so each has a place, which it shares with
    /// those of the same number modulo [`TURNS`].
    latest: [[Option<Known>; 2]; TURNS],
    /// The latest words that have changed places ([`Mechanism::shift`]).
    shifted: Option<Shifted>,
}

/// So many domains' latest changes are remembered.
const TURNS: usize = 16;

/// The place of a domain's latest changes.
#[inline(always)]
fn turn(changed: Option<Subject>) -> Option<usize> {
    match changed {
        Some(Subject::Domain(domain)) => Some(domain.get() as usize % TURNS),
        _ => None,
    }
}

/// What a change of words has come to. It comes to the same as long as no number changes.
#[derive(Clone, Copy, Debug)]
struct Known {
    before: HoldingNumber,
    after: HoldingNumber,
    /// For whom permissions differ: nobody else loses anything.
    domain: DomainId,
    /// What the words get.
    number: u16,
    /// Whether the domain loses something.
    is_lost: bool,
    /// Of [`Numbers::changes`].
    changes: u64,
}

impl Known {
    /// Whether it is this change.
    #[inline]
    fn is(
        &self,
        changes: u64,
        before: HoldingNumber,
        after: HoldingNumber,
        changed: Option<Subject>,
    ) -> bool {
        self.changes == changes
            && (self.before, self.after) == (before, after)
            && changed == Some(Subject::Domain(self.domain))
    }
}

impl Table {
    /// An empty table. `inside` knows the threads that are to be waited for.
    pub fn reserve(limits: Limits, inside: Arc<Inside>) -> Result<Table, SpaceError> {
        Ok(Table {
            space: Arc::new(Space::reserve()?),
            inside,
            numbers: Numbers::new(limits.numbers, limits.domains),
            owns: Vec::new(),
            limits,
            settling: Settling::Now,
            lost: Vec::new(),
            is_collecting: false,
            written: (0, 0),
            closed: Vec::new(),
            latest: [[None; 2]; TURNS],
            shifted: None,
        })
    }

    /// Says when rights that are taken away are gone.
    pub fn set_settling(&mut self, settling: Settling) {
        self.settling = settling;
    }

    /// Nobody is granted anything there from now on: what gates and threads keep, for which no module may ever ask. Nothing
    /// may have been granted there before.
    pub fn close(&mut self, range: Range) {
        self.closed.push(range);
    }

    /// Waits until no thread is to make an access that it has checked before something was taken away.
    #[inline]
    pub fn settle_now(&mut self) {
        if self.lost.len() > 1 {
            self.lost.sort_unstable();
            self.lost.dedup();
        }
        self.inside.settle(&self.lost);
        self.lost.clear();
    }

    /// What checked code of a living domain reads; none if the domain does not live.
    #[must_use]
    pub fn view(&self, domain: DomainId) -> Option<View> {
        let own = self.own(domain)?;
        Some(View {
            space: Arc::clone(&self.space),
            own,
        })
    }

    /// What `domain` may do at `address`, as checked code of it would find.
    #[must_use]
    pub fn access(&self, domain: DomainId, address: u64) -> Access {
        let word = address / 4;
        match self.own(domain) {
            Some(own) if word < WORDS => self.space.access(own, self.space.number(word)),
            _ => Access::NONE,
        }
    }

    /// How much is used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            numbers_left: self.numbers.left(),
            numbers_resting: self.numbers.resting.len() as u64,
            numbers_spent: self.numbers.spent.len() as u64,
            domains: self.owns.iter().flatten().count() as u64,
            words_written: self.written.0,
            map_bytes_written: self.written.1,
        }
    }

    /// The threads that this table waits for.
    #[must_use]
    pub fn inside(&self) -> &Arc<Inside> {
        &self.inside
    }

    /// Writes the whole shadow anew, with one number for each holding, and so gets back what domains that ended have
    /// left behind. Costs as much as is granted. For when numbers run out
    /// ([`Error::NoRoom`](mullion_supervisor::Error::NoRoom)).
    pub fn collect<P: JoinPolicy>(supervisor: &mut Supervisor<Table, P>) {
        supervisor.mechanism_mut().is_collecting = true;
        supervisor.tell_again();
        let table = supervisor.mechanism_mut();
        table.is_collecting = false;
        table.numbers.rest_displaced();
        let spare = table.numbers.spare();
        table.numbers.resting.extend(spare);
        table.wake_resting();
    }

    /// The number that means `domain` alone.
    fn own(&self, domain: DomainId) -> Option<u16> {
        *self.owns.get(domain.get() as usize)?
    }

    /// Brings every thread past its check, and gives out what rested until then.
    fn wake_resting(&mut self) {
        self.inside.settle_all();
        self.lost.clear();
        for number in std::mem::take(&mut self.numbers.resting) {
            self.mean(number, Meaning::new());
            self.numbers.free(number);
        }
    }

    /// Gives a number that is not an own one another meaning, in the maps of all whom it concerns.
    fn mean(&mut self, number: u16, meaning: Meaning) {
        let was = self.numbers.replace_meaning(number, Vec::new());
        let find = |list: &Meaning, domain: DomainId| {
            let at = list.binary_search_by_key(&domain, |(found, _)| *found);
            at.map_or(Access::NONE, |at| list[at].1)
        };
        for (domain, access) in &meaning {
            if find(&was, *domain) != *access {
                self.write_map(*domain, number, *access);
            }
        }
        for (domain, access) in &was {
            let now = find(&meaning, *domain);
            if now == Access::NONE {
                self.write_map(*domain, number, now);
            }
            if !now.covers(*access) {
                self.lost.push(*domain);
            }
        }
        self.numbers.replace_meaning(number, meaning);
    }

    fn write_map(&mut self, domain: DomainId, number: u16, access: Access) {
        // Who has ended has no map.
        let Some(own) = self.own(domain) else {
            return;
        };
        if own != number {
            if self.numbers.is_left(number) && !self.space.access(own, number).covers(access) {
                self.inside.settle(&[domain]);
            }
            self.space.set_access(own, number, access);
            self.written.1 += 1;
        }
    }

    /// What a number gives a domain.
    fn meant(&self, number: u16, domain: DomainId) -> Access {
        let meaning = self.numbers.meaning(number);
        let at = meaning.binary_search_by_key(&domain, |(found, _)| *found);
        at.map_or(Access::NONE, |at| meaning[at].1)
    }

    /// Gives one domain another access by a number that is not an own one.
    fn mean_for(&mut self, number: u16, domain: DomainId, access: Access) {
        let meaning = self.numbers.meaning_mut(number);
        let at = meaning.binary_search_by_key(&domain, |(found, _)| *found);
        let was = at.map_or(Access::NONE, |at| meaning[at].1);
        match at {
            Ok(at) if access == Access::NONE => drop(meaning.remove(at)),
            Ok(at) => meaning[at].1 = access,
            Err(_) if access == Access::NONE => {}
            Err(at) => meaning.insert(at, (domain, access)),
        }
        if was != access {
            self.write_map(domain, number, access);
        }
        if !access.covers(was) {
            self.lost.push(domain);
        }
    }

    /// Who loses something on words that had `before` and get `number`.
    #[inline]
    fn note_lost(&mut self, before: HoldingNumber, number: u16, changed: Option<Subject>) {
        let Some(Given { first, .. }) = self.numbers.known(before) else {
            return;
        };
        let first = *first;
        if let Some(Subject::Domain(domain)) = changed {
            if !self.meant(number, domain).covers(self.meant(first, domain)) {
                self.lost.push(domain);
            }
            return;
        }
        let was = std::mem::take(self.numbers.meaning_mut(first));
        for (domain, access) in &was {
            if first != number && !self.meant(number, *domain).covers(*access) {
                self.lost.push(*domain);
            }
        }
        self.numbers.replace_meaning(first, was);
    }

    /// Makes a change that is the latest of its kind again; whether it was.
    #[inline]
    fn hold_again(
        &mut self,
        range: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        changed: Option<Subject>,
    ) -> bool {
        let way = usize::from(after.number < before.number);
        let Some(known) = turn(changed).and_then(|turn| self.latest[turn][way]) else {
            return false;
        };
        let is_it = known.is(self.numbers.changes(), before, after, changed);
        if is_it {
            if known.is_lost {
                self.lost.push(known.domain);
            }
            self.write(range, known.number);
        }
        is_it
    }

    /// The number for words that get a holding which has none in this edition, and whether words that had `before`
    /// have it already.
    #[cold]
    fn number_anew(
        &mut self,
        before: HoldingNumber,
        after: HoldingNumber,
        holders: &Holders<'_>,
    ) -> (u16, bool) {
        let old = self.numbers.remove(after);
        let fixed = self.fixed(holders);
        // Changed in its place: all its words are those that are told.
        if let Some(given) = old {
            let in_place = before.number == after.number && given.edition == before.edition;
            if in_place && fixed.is_none() && !self.numbers.is_fixed(given.first) {
                let numbers = given.more.iter().chain([&given.first]);
                if let Some(Subject::Domain(domain)) = holders.changed() {
                    let access = Access::of(holders.permission(domain), domain);
                    numbers.for_each(|number| self.mean_for(*number, domain, access));
                } else {
                    let meaning = meaning_of(holders);
                    numbers.for_each(|number| self.mean(*number, meaning.clone()));
                }
                self.numbers.give(after, given.first, given.more);
                return (given.first, true);
            }
            match in_place {
                true => {
                    self.note_lost_of(&given, holders);
                    self.numbers.rest(given);
                }
                false => self.numbers.displace(after.number, given),
            }
        }
        let number = fixed.or_else(|| {
            let number = self.numbers.take()?;
            self.mean(number, meaning_of(holders));
            Some(number)
        });
        // `room` has seen to it that there is one. Without, nobody may do anything: that is safe.
        let number = number.unwrap_or(NOBODY);
        self.numbers.give(after, number, Vec::new());
        (number, false)
    }

    /// As [`Mechanism::shift`], and remembers what it has come to.
    #[cold]
    fn shift_anew(
        &mut self,
        (from, to): (Range, Range),
        (off, on): (HoldingNumber, HoldingNumber),
        holders: (Holders<'_>, Holders<'_>),
    ) {
        let changed = holders.1.changed();
        self.hold(from, on, off, holders.0);
        self.hold(to, off, on, holders.1);
        let changes = self.numbers.changes();
        let known = |before: HoldingNumber, after: HoldingNumber| {
            let way = usize::from(after.number < before.number);
            let latest = self.latest[turn(changed)?][way];
            latest.filter(|known| known.is(changes, before, after, changed))
        };
        self.shifted = known(on, off)
            .zip(known(off, on))
            .map(|(gone, come)| Shifted {
                off,
                on,
                domain: gone.domain,
                numbers: (gone.number, come.number),
                changes,
            });
        self.settle();
    }

    fn note_lost_of(&mut self, given: &Given, holders: &Holders<'_>) {
        for (domain, access) in self.numbers.meaning(given.first) {
            let now = Access::of(holders.permission(*domain), *domain);
            if !now.covers(*access) {
                self.lost.push(*domain);
            }
        }
    }

    /// The fixed number for a holding that gives nobody anything, or read-write to one domain alone that is its owner,
    /// or whose owner never ends.
    fn fixed(&self, holders: &Holders<'_>) -> Option<u16> {
        let holding = holders.holding();
        match &holding.grants[..] {
            [] => Some(NOBODY),
            [(Subject::Domain(domain), grant)] => {
                let is_own = [*domain, DomainId::SUPERVISOR].contains(&holding.owner)
                    && grant.access == Permission::ReadWrite;
                if is_own { self.own(*domain) } else { None }
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn write(&mut self, range: Range, number: u16) {
        let words = self.space.fill(range.start(), range.end(), number);
        if number != NOBODY {
            self.written.0 += words;
        }
    }
}

fn meaning_of(holders: &Holders<'_>) -> Meaning {
    let mut meaning = Meaning::new();
    holders.each(|domain, permission| {
        meaning.push((domain, Access::of(permission, domain)));
    });
    meaning
}

impl Mechanism for Table {
    const BY_DOMAIN: bool = false;
    const BY_HOLDING: bool = true;

    #[inline]
    fn room(&mut self, words: u64, pieces: u64, taking: bool) -> bool {
        let wanted = pieces + 1;
        let reserve = if taking {
            0
        } else {
            u64::from(self.limits.reserve)
        };
        if self.numbers.left() < wanted + reserve {
            self.wake_resting();
        }
        self.numbers.left() >= wanted + reserve && (taking || words <= self.limits.words)
    }

    fn enforces(&self, range: Range) -> bool {
        let is_closed = self
            .closed
            .iter()
            .any(|closed| closed.overlap(range).is_some());
        !is_closed && self.space.enforces(range.start(), range.end())
    }

    fn room_for_domain(&mut self) -> bool {
        if !self.numbers.has_own() {
            self.wake_resting();
        }
        self.numbers.has_own()
    }

    #[inline]
    fn hold(
        &mut self,
        range: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        holders: Holders<'_>,
    ) {
        if self.is_collecting {
            let first = self.numbers.known(after).map(|given| given.first);
            let number = first.unwrap_or_else(|| self.number_anew(before, after, &holders).0);
            return self.write(range, number);
        }
        if self.hold_again(range, before, after, holders.changed()) {
            return;
        }
        let number = match self.numbers.known(after) {
            Some(given) => given.first,
            None => match self.number_anew(before, after, &holders) {
                (_, true) => return,
                (number, false) => number,
            },
        };
        let lost = self.lost.len();
        self.note_lost(before, number, holders.changed());
        let same = self
            .numbers
            .known(before)
            .is_some_and(|given| given.first == number && given.more.is_empty());
        if !same {
            self.numbers.leave(before);
            self.write(range, number);
            if let Some(Subject::Domain(domain)) = holders.changed() {
                let turn = domain.get() as usize % TURNS;
                self.latest[turn][usize::from(after.number < before.number)] = Some(Known {
                    before,
                    after,
                    domain,
                    number,
                    is_lost: self.lost.len() > lost,
                    changes: self.numbers.changes(),
                });
            }
        }
    }

    #[inline(always)]
    fn shift<'a>(
        &mut self,
        (from, to): (Range, Range),
        (off, on): (HoldingNumber, HoldingNumber),
        holders: impl FnOnce() -> (Holders<'a>, Holders<'a>),
    ) {
        let changes = self.numbers.changes();
        let shifted = self.shifted;
        let Some(Shifted {
            domain, numbers, ..
        }) = shifted.filter(|shifted| shifted.is(changes, off, on))
        else {
            return self.shift_anew((from, to), (off, on), holders());
        };
        self.write(from, numbers.0);
        self.write(to, numbers.1);
        match self.settling {
            Settling::Now => self.inside.settle(&[domain]),
            Settling::Later => {
                self.lost.push(domain);
                self.settle();
            }
        }
    }

    fn rehold(&mut self, holding: HoldingNumber, domain: DomainId, permission: Permission) {
        let Some(given) = self.numbers.known(holding) else {
            return;
        };
        let access = Access::of(permission, domain);
        let numbers: Vec<u16> = given.more.iter().chain([&given.first]).copied().collect();
        for number in numbers {
            self.mean_for(number, domain, access);
        }
    }

    fn succeed(&mut self, before: HoldingNumber, after: HoldingNumber, holders: Holders<'_>) {
        let in_place = before.number == after.number;
        let Some(Given { first, more, .. }) = self.numbers.remove_known(before) else {
            // No word was ever told of it: they have 0, and nobody has anything there.
            return;
        };
        let mut numbers = more;
        numbers.insert(0, first);
        let nobody = holders.holding().grants.is_empty();
        // Where only the grant to the domain that ends is gone, nothing changes for those who live.
        let gone = holders.changed().is_some_and(|subject| match subject {
            Subject::Domain(domain) => self.own(domain).is_none() || !holders.lives(domain),
            Subject::Group(_) => false,
        });
        let meaning = match gone {
            true => Meaning::new(),
            false => meaning_of(&holders),
        };
        for number in &numbers {
            if gone && !nobody {
                break;
            }
            if self.numbers.is_fixed(*number) {
                // An own number: its domain's, who ends; code that compares with it ends with it.
                self.numbers.replace_meaning(*number, Vec::new());
            } else {
                self.mean(*number, meaning.clone());
            }
        }
        if nobody {
            for number in numbers {
                if !self.numbers.spent.contains(&number) {
                    self.numbers.spend(number);
                }
            }
            self.numbers.give(after, NOBODY, Vec::new());
            return;
        }
        match self.numbers.remove_known(after) {
            Some(mut given) if !in_place => {
                given.more.extend(numbers);
                self.numbers.give(after, given.first, given.more);
            }
            _ => {
                if let Some(other) = self.numbers.remove(after) {
                    self.numbers.displace(after.number, other);
                }
                let first = numbers.remove(0);
                self.numbers.give(after, first, numbers);
            }
        }
    }

    #[inline]
    fn settle(&mut self) {
        self.numbers.rest_displaced();
        match self.settling {
            Settling::Now if !self.lost.is_empty() => self.settle_now(),
            Settling::Later if self.lost.len() > 4096 => {
                self.lost.sort_unstable();
                self.lost.dedup();
            }
            _ => {}
        }
    }

    fn create(&mut self, domain: DomainId) {
        let at = domain.get() as usize;
        if self.owns.len() <= at {
            self.owns.resize(at + 1, None);
        }
        // `room_for_domain` has seen to it that there is one. The supervisor's own domain has none: no code is its.
        let is_root = domain == DomainId::SUPERVISOR;
        let own = (!is_root).then(|| self.numbers.take_own(domain)).flatten();
        if let Some(own) = own {
            // For checks of several words, of which some are the domain's own.
            self.space.set_access(own, own, Access::READ_WRITE);
        }
        self.owns[at] = own;
    }

    fn remove(&mut self, domain: DomainId) {
        let Some(own) = self
            .owns
            .get_mut(domain.get() as usize)
            .and_then(Option::take)
        else {
            return;
        };
        // Its code must not run any more; a thread that does all the same finds nothing from now on, but for its
        // own number, which stays with nobody.
        self.inside.settle(&[domain]);
        self.space.clear_map(own);
        // Words that had it at the end have it still (`succeed`). Otherwise it is in no word.
        self.numbers.replace_meaning(own, Vec::new());
        if !self.numbers.spent.contains(&own) {
            self.numbers.resting.push(own);
        }
    }

    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}

    fn flush(&mut self, _: DomainId, _: Range) {}
}

/// The table as checked code of one domain reads it.
#[derive(Clone, Debug)]
pub struct View {
    space: Arc<Space>,
    own: u16,
}

impl View {
    /// The number that means this domain alone, four times: what checked code has in a register.
    #[must_use]
    pub fn own(&self) -> u64 {
        u64::from(self.own) * 0x0001_0001_0001_0001
    }

    /// The shadow: what checked code has as the base of `%gs`.
    #[must_use]
    pub fn shadow(&self) -> *const u8 {
        self.space.shadow_base()
    }

    /// The number itself.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.own
    }

    /// What the domain may do with the word at `address`.
    #[must_use]
    pub fn access(&self, address: u64) -> Access {
        let word = address / 4;
        match word < WORDS {
            true => self.space.access(self.own, self.space.number(word)),
            false => Access::NONE,
        }
    }

    /// Whether `bytes` bytes from `address` on may be accessed so: every word that they touch.
    #[must_use]
    pub fn allows(&self, address: u64, bytes: u64, access: Access) -> bool {
        let Some(last) = address.checked_add(bytes.max(1) - 1) else {
            return false;
        };
        if last >> ADDRESS_BITS != 0 {
            return false;
        }
        // Nearly all that is asked for is one or two words with the same number.
        let (first, end) = (address / 4, last / 4);
        if end - first <= 1 {
            let number = self.space.number(first);
            if end == first || self.space.number(end) == number {
                return self.space.access(self.own, number).covers(access);
            }
        }
        let bytes = bytes.max(1);
        self.allowed(address, bytes, access) == bytes
    }

    /// How many of the `limit` bytes from `address` on may be accessed so: up to the first word that may not.
    #[must_use]
    pub fn allowed(&self, address: u64, limit: u64, access: Access) -> u64 {
        let end = address.saturating_add(limit).min(1 << ADDRESS_BITS);
        // Words that lie together nearly always have one number. It is looked up in the map when it first comes.
        let mut known = None;
        let mut at = address;
        while at < end {
            let is_group = at.is_multiple_of(16) && end - at >= 16;
            if known.is_some_and(|number| is_group && self.space.are(at / 16, number)) {
                at += 16;
                continue;
            }
            let number = self.space.number(at / 4);
            if known != Some(number) && !self.space.access(self.own, number).covers(access) {
                break;
            }
            known = Some(number);
            at = (at | 3) + 1;
        }
        at.min(end) - address.min(end)
    }
}
