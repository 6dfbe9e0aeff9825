//! Rights that come and go: for the length of a call, or until they are taken away.

use crate::gates::Seat;
use crate::holder::Holder;
use crate::memory::lock;
use mullion_supervisor::{
    DomainId, Error, Level, Permission, PreparedGrant, Range, Subject, Supervisor,
};
use mullion_word_table::{self as table, Settling, Table};
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Mutex;
use std::sync::atomic::AtomicPtr;
use thiserror::Error;

pub(crate) const ROOT: DomainId = DomainId::SUPERVISOR;

/// Exports with the level that cannot be passed on.
pub(crate) const NOT_FURTHER: Level = Level::None;

/// Why memory was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GrantError {
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] Error),
    /// The instance has ended.
    #[error("the instance has ended")]
    Ended,
    /// It is no memory that can be granted.
    #[error("{bytes} bytes at {address:#x} are no memory that can be granted")]
    NoMemory {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
    },
}

/// The words that bytes lie in.
pub(crate) fn words(address: u64, bytes: u64) -> Result<Range, GrantError> {
    let wrong = GrantError::NoMemory { address, bytes };
    let last = address.checked_add(bytes.max(1) - 1).ok_or(wrong)?;
    Range::words(address / 4, last / 4 - address / 4 + 1).map_err(|_| wrong)
}

/// A grant that ends before its domain does.
#[must_use = "put it back"]
pub(crate) enum Raised {
    /// Nothing: the domain had the right.
    Already,
    /// A grant in force.
    Active(Active),
}

/// A grant in force. It has a number: what is taken away from a holder altogether ends what has lower ones.
pub(crate) struct Active {
    holder: &'static Holder,
    number: u64,
    range: Range,
    permission: Permission,
    /// The prepared grant by which it is, and its slot.
    prepared: Option<(PreparedGrant, usize)>,
}

/// What one holder has by grants that end, and what it has besides where these are: the *base*.
///
/// Several grants may be in force on the same words. The holder has the most of them, and of the base. Words of no piece
/// have what the supervisor says, and no grant that ends is in force on them.
pub(crate) struct Rights {
    /// By first word. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    /// The same memory comes again and again: slots of what is prepared.
    known: HashMap<Key, usize, Quick>,
    prepared: Vec<Ready>,
    free: Vec<usize>,
    latest: u64,
}

impl Default for Rights {
    fn default() -> Rights {
        // Behind all words: so the map is never empty, and a piece that comes and goes costs no allocation.
        let behind = Piece {
            end: u64::MAX,
            base: Permission::None,
            reads: 0,
            writes: 0,
            since: 0,
        };
        Rights {
            pieces: BTreeMap::from([(u64::MAX, behind)]),
            known: HashMap::default(),
            prepared: Vec::new(),
            free: Vec::new(),
            latest: 0,
        }
    }
}

/// Words on which all is the same.
#[derive(Clone, Copy)]
struct Piece {
    end: u64,
    base: Permission,
    /// Grants in force, to read, and to read and write.
    reads: u32,
    writes: u32,
    /// The latest number when the piece was made. Older grants that cover it had lost it before.
    since: u64,
}

/// First word, the one behind the last, and whether to write.
type Key = (u64, u64, bool);

struct Ready {
    key: Key,
    grant: PreparedGrant,
    /// The number of the grant that is in force by it, or 0.
    in_force: u64,
}

/// Hashes keys that no stranger chooses in a way that would matter: at most so many are kept.
#[derive(Clone, Copy, Default)]
struct Quick(u64);

impl BuildHasher for Quick {
    type Hasher = Quick;

    fn build_hasher(&self) -> Quick {
        Quick(0)
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }
}

impl Piece {
    fn wanted(&self) -> Permission {
        let given = match (self.reads, self.writes) {
            (0, 0) => Permission::None,
            (_, 0) => Permission::Read,
            _ => Permission::ReadWrite,
        };
        self.base.max(given)
    }

    fn is_idle(&self) -> bool {
        self.reads == 0 && self.writes == 0
    }

    fn count(&mut self, permission: Permission) -> &mut u32 {
        match permission {
            Permission::ReadWrite => &mut self.writes,
            _ => &mut self.reads,
        }
    }
}

/// Nothing, or to read, or to read and write. Gates and code stay what they are.
fn is_data(permission: Permission) -> bool {
    permission <= Permission::ReadWrite
}

/// So many grants are prepared at a time.
const MOST: usize = 256;
/// Larger pieces are not looked through word by word.
const WORDS: u64 = 256;

/// Gives a holder at least `permission` on these words until [`lower`]. Acts for who owns them, because the host decides.
/// `again`: the same memory may come again and again.
pub(crate) fn raise(
    supervisor: &mut Supervisor<Table>,
    holder: &'static Holder,
    range: Range,
    permission: Permission,
    again: bool,
) -> Result<Raised, GrantError> {
    lock(&holder.rights).raise(supervisor, holder, range, permission, again)
}

/// Puts back what [`raise`] has given. The domain or the owner may have ended meanwhile: then it has nothing there, and the
/// supervisor refuses.
pub(crate) fn lower(supervisor: &mut Supervisor<Table>, raised: Raised) {
    if let Raised::Active(active) = raised {
        lock(&active.holder.rights).lower(supervisor, &active);
    }
}

/// Puts back what a holder was given for a call, and gives it other pieces.
pub(crate) fn exchange(
    supervisor: &mut Supervisor<Table>,
    holder: &'static Holder,
    raised: &mut Vec<Raised>,
    wanted: impl Iterator<Item = (Range, Permission)>,
) -> Result<(), GrantError> {
    let mut rights = lock(&holder.rights);
    for old in raised.drain(..) {
        if let Raised::Active(active) = old {
            rights.lower(supervisor, &active);
        }
    }
    for (range, permission) in wanted {
        raised.push(rights.raise(supervisor, holder, range, permission, true)?);
    }
    Ok(())
}

impl Rights {
    fn raise(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &'static Holder,
        range: Range,
        permission: Permission,
        again: bool,
    ) -> Result<Raised, GrantError> {
        let rights = self;
        if again && range.count() <= WORDS && rights.is_clear(range) {
            let wanted = table::Access::of(permission, holder.id);
            let (mut has_all, mut has_some) = (true, false);
            for word in range.start()..range.end() {
                let access = holder.view.access(4 * word);
                has_all &= access.covers(wanted);
                has_some |= access != table::Access::NONE;
            }
            // What an instance has by its module may go while its call goes on.
            if has_all && !holder.is_instance {
                return Ok(Raised::Already);
            }
            if !has_some
                && let Some(prepared) = rights.prepare(supervisor, holder, range, permission)
            {
                supervisor.grant_prepared(&ROOT, prepared.0)?;
                let number = rights.begin(range, permission, prepared.1);
                return Ok(Raised::Active(Active {
                    holder,
                    number,
                    range,
                    permission,
                    prepared: Some(prepared),
                }));
            }
        }
        rights.cover(supervisor, holder, range);
        rights.latest += 1;
        let active = Active {
            holder,
            number: rights.latest,
            range,
            permission,
            prepared: None,
        };
        for piece in rights.inside(range) {
            *piece.count(permission) += 1;
        }
        if let Err(error) = rights.write(supervisor, holder, range) {
            rights.discount(&active);
            let _gone = rights.write(supervisor, holder, range);
            return Err(error.into());
        }
        Ok(Raised::Active(active))
    }

    fn lower(&mut self, supervisor: &mut Supervisor<Table>, active: &Active) {
        if let Some((prepared, _)) = active.prepared {
            self.put_down(active);
            if self.end_alone(active) {
                let _gone = supervisor.revoke_prepared(&ROOT, prepared);
                return;
            }
        }
        self.discount(active);
        let _gone = self.write(supervisor, active.holder, active.range);
    }
}

/// Puts many of them back, and waits once until no access of any thread comes that was checked before.
pub(crate) fn lower_all(supervisor: &mut Supervisor<Table>, all: impl Iterator<Item = Raised>) {
    supervisor.mechanism_mut().set_settling(Settling::Later);
    let mut places: Vec<(&'static Holder, Range)> = Vec::new();
    for raised in all {
        let Raised::Active(active) = raised else {
            continue;
        };
        let mut rights = lock(&active.holder.rights);
        rights.put_down(&active);
        rights.discount(&active);
        places.push((active.holder, active.range));
    }
    places.sort_unstable_by_key(|(holder, range)| (holder.id, range.start()));
    let mut places = places.into_iter().peekable();
    while let Some((holder, mut range)) = places.next() {
        // What adjoins is one change.
        while let Some((_, more)) =
            places.next_if(|(other, next)| other.id == holder.id && next.start() <= range.end())
        {
            let end = range.end().max(more.end());
            range = Range::words(range.start(), end - range.start()).expect("two ranges that meet");
        }
        let _gone = lock(&holder.rights).write(supervisor, holder, range);
    }
    supervisor.mechanism_mut().settle_now();
    supervisor.mechanism_mut().set_settling(Settling::Now);
}

/// As [`raise`], to stay.
pub(crate) fn raise_for_good(
    supervisor: &mut Supervisor<Table>,
    holder: &Holder,
    range: Range,
    permission: Permission,
) -> Result<(), GrantError> {
    let mut rights = lock(&holder.rights);
    // The usual case is a block of the host's that nobody has: then there is nothing to look through. Where the host
    // is not the owner it is refused, and nothing has changed.
    let has_none = |word| holder.view.access(4 * word) == table::Access::NONE;
    if rights.is_clear(range)
        && range.count() <= WORDS
        && (range.start()..range.end()).all(has_none)
        && let Ok(()) = supervisor.mprot_export(&ROOT, holder.subject, range, permission)
    {
        return Ok(());
    }
    rights.cover(supervisor, holder, range);
    for piece in rights.inside(range) {
        if is_data(piece.base) {
            piece.base = piece.base.max(permission);
        }
    }
    Ok(rights.write(supervisor, holder, range)?)
}

/// Takes words of others away from a holder, on all threads, whatever it had them for.
pub(crate) fn take_away(
    supervisor: &mut Supervisor<Table>,
    holder: &Holder,
    range: Range,
) -> Result<(), Error> {
    let mut rights = lock(&holder.rights);
    // As in `raise_for_good`.
    let none = Permission::None;
    if rights.is_clear(range)
        && let Ok(()) = supervisor.mprot_export(&ROOT, holder.subject, range, none)
    {
        return Ok(());
    }
    let own = holder.id;
    let all = supervisor.regions(range);
    let theirs: Vec<(Range, DomainId, Permission)> = all
        .filter(|(_, holding)| holding.owner != own)
        .filter_map(|(region, holding)| {
            let held = holding.direct(holder.subject).access;
            Some((region.overlap(range)?, holding.owner, held))
        })
        .collect();
    for (region, owner, held) in theirs {
        rights.cut(region);
        let inside: Vec<u64> = rights.keys(region).collect();
        for first in inside {
            rights.pieces.remove(&first);
        }
        if held != Permission::None {
            supervisor.mprot_export(&owner, holder.subject, region, Permission::None)?;
        }
    }
    Ok(())
}

/// Takes everything away that a holder has by grants that end.
pub(crate) fn take_all_away(supervisor: &mut Supervisor<Table>, holder: &Holder) {
    let pieces: Vec<(u64, u64)> = {
        let rights = lock(&holder.rights);
        let pieces = rights.pieces.range(..u64::MAX);
        pieces.map(|(first, piece)| (*first, piece.end)).collect()
    };
    for (first, end) in pieces {
        if let Ok(range) = Range::words(first, end - first) {
            let _gone = take_away(supervisor, holder, range);
        }
    }
}

impl Rights {
    /// Whether no piece touches these words.
    fn is_clear(&self, range: Range) -> bool {
        let before = self.pieces.range(..range.end()).next_back();
        before.is_none_or(|(_, piece)| piece.end <= range.start())
    }

    /// A prepared grant, if the words are the host's.
    fn prepare(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &Holder,
        range: Range,
        permission: Permission,
    ) -> Option<(PreparedGrant, usize)> {
        let key = key(range, permission);
        if let Some(at) = self.known.get(&key) {
            return Some((self.prepared.get(*at)?.grant, *at));
        }
        let Subject::Domain(id) = holder.subject else {
            return None;
        };
        let made = supervisor.prepare(&ROOT, id, range, permission, NOT_FURTHER);
        let grant = made.ok()?;
        if self.known.len() >= MOST {
            for (at, ready) in self.prepared.iter().enumerate() {
                if ready.in_force == 0 && self.known.remove(&ready.key).is_some() {
                    let _gone = supervisor.release(ready.grant);
                    self.free.push(at);
                }
            }
        }
        let ready = Ready {
            key,
            grant,
            in_force: 0,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.prepared[at] = ready;
                at
            }
            None => {
                self.prepared.push(ready);
                self.prepared.len() - 1
            }
        };
        self.known.insert(key, at);
        Some((grant, at))
    }

    fn put_down(&mut self, active: &Active) {
        let slot = active
            .prepared
            .and_then(|(_, at)| self.prepared.get_mut(at));
        if let Some(ready) = slot.filter(|ready| ready.in_force == active.number) {
            ready.in_force = 0;
        }
    }

    /// A grant on words of which nothing was known.
    fn begin(&mut self, range: Range, permission: Permission, slot: usize) -> u64 {
        let mut piece = Piece {
            end: range.end(),
            base: Permission::None,
            reads: 0,
            writes: 0,
            since: self.latest,
        };
        *piece.count(permission) += 1;
        self.pieces.insert(range.start(), piece);
        self.latest += 1;
        if let Some(ready) = self.prepared.get_mut(slot) {
            ready.in_force = self.latest;
        }
        self.latest
    }

    /// Forgets the piece of a grant that nothing else has touched; whether it was so.
    fn end_alone(&mut self, active: &Active) -> bool {
        let Some(piece) = self.pieces.get(&active.range.start()) else {
            return false;
        };
        let is_alone = piece.end == active.range.end()
            && piece.since < active.number
            && piece.base == Permission::None
            && piece.reads + piece.writes == 1;
        if is_alone {
            self.pieces.remove(&active.range.start());
        }
        is_alone
    }

    fn discount(&mut self, active: &Active) {
        self.cut(active.range);
        for piece in self.inside(active.range) {
            if piece.since < active.number {
                let count = piece.count(active.permission);
                *count = count.saturating_sub(1);
            }
        }
    }

    fn inside(&mut self, range: Range) -> impl Iterator<Item = &mut Piece> {
        let pieces = self.pieces.range_mut(range.start()..range.end());
        pieces.map(|(_, piece)| piece)
    }

    fn keys(&self, range: Range) -> impl Iterator<Item = u64> {
        let pieces = self.pieces.range(range.start()..range.end());
        pieces.map(|(first, _)| *first)
    }

    /// No piece goes across the ends of `range`.
    fn cut(&mut self, range: Range) {
        for at in [range.start(), range.end()] {
            let before = self.pieces.range_mut(..at).next_back();
            if let Some((_, piece)) = before.filter(|(_, piece)| piece.end > at) {
                let behind = *piece;
                piece.end = at;
                self.pieces.insert(at, behind);
            }
        }
    }

    /// Every word of `range` is in a piece.
    fn cover(&mut self, supervisor: &Supervisor<Table>, holder: &Holder, range: Range) {
        self.cut(range);
        let mut gaps: Vec<Range> = Vec::new();
        let mut at = range.start();
        let ends = self.pieces.range(range.start()..range.end());
        for (first, end) in ends
            .map(|(first, piece)| (*first, piece.end))
            .chain([(range.end(), 0)])
        {
            gaps.extend(
                first
                    .checked_sub(at)
                    .and_then(|count| Range::words(at, count).ok()),
            );
            at = end;
        }
        for gap in gaps {
            for (region, holding) in supervisor.regions(gap) {
                let Some(part) = region.overlap(gap) else {
                    continue;
                };
                let piece = Piece {
                    end: part.end(),
                    base: holding.direct(holder.subject).access,
                    reads: 0,
                    writes: 0,
                    since: self.latest,
                };
                self.pieces.insert(part.start(), piece);
            }
        }
    }

    /// Makes the table say what the pieces of `range` come to, and forgets those without a grant.
    fn write(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &Holder,
        range: Range,
    ) -> Result<(), Error> {
        let mut changes: Vec<(u64, u64, DomainId, Permission)> = Vec::new();
        for (region, holding) in supervisor.regions(range) {
            let held = holding.direct(holder.subject).access;
            let before = self.pieces.range(..=region.start()).next_back();
            let behind = self.pieces.range(region.start() + 1..region.end());
            for (first, piece) in before.into_iter().chain(behind) {
                let first = (*first).max(region.start()).max(range.start());
                let end = piece.end.min(region.end()).min(range.end());
                let wanted = piece.wanted();
                if first >= end || !is_data(held) || !is_data(wanted) || wanted == held {
                    continue;
                }
                match changes.last_mut() {
                    Some(last) if (last.1, last.2, last.3) == (first, holding.owner, wanted) => {
                        last.1 = end;
                    }
                    _ => changes.push((first, end, holding.owner, wanted)),
                }
            }
        }
        let mut outcome = Ok(());
        for (first, end, owner, wanted) in changes {
            let words = Range::words(first, end - first).expect("a part of a range");
            let done = supervisor.mprot_export(&owner, holder.subject, words, wanted);
            outcome = outcome.and(done);
        }
        let idle = self.pieces.range(range.start()..range.end());
        let idle = idle.filter(|(_, piece)| piece.is_idle());
        let idle: Vec<u64> = idle.map(|(first, _)| *first).collect();
        for first in idle {
            self.pieces.remove(&first);
        }
        outcome
    }
}

fn key(range: Range, permission: Permission) -> Key {
    (
        range.start(),
        range.end(),
        permission == Permission::ReadWrite,
    )
}

/// Pieces of memory that a call is granted without an allocation, and that are kept for the next one.
const PIECES: usize = 8;

/// What a call is granted: words, and a bit for each piece that it may write.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) count: usize,
    writes: u64,
    pieces: [(u64, u64); PIECES],
    /// Beyond these; they are not kept between calls.
    more: Vec<(Range, Permission)>,
}

impl PartialEq for Wanted {
    #[inline]
    fn eq(&self, other: &Wanted) -> bool {
        self.count == other.count
            && self.writes == other.writes
            && self.pieces[..self.count] == other.pieces[..self.count]
    }
}

/// What is granted for a call, in the table.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) wanted: Wanted,
    pub(crate) raised: Vec<Raised>,
    pub(crate) edition: u64,
}

/// What a domain keeps between calls. Its bias and its edition are in its `Inner`, where gates see them.
#[derive(Default)]
pub(crate) struct Keep {
    /// Whose `kept` is, if there may be something in it. Changes under `turn`.
    pub(crate) owner: AtomicPtr<Seat>,
    /// Belongs to the seat that has the bias while its depth is not 0; otherwise to whoever has `turn`.
    pub(crate) kept: UnsafeCell<Kept>,
    pub(crate) turn: Mutex<()>,
}

impl Wanted {
    pub(crate) fn add(&mut self, range: Range, write: bool) {
        let Some(piece) = self.pieces.get_mut(self.count) else {
            self.more.push((range, right(write)));
            return;
        };
        *piece = (range.start(), range.count());
        self.writes |= u64::from(write) << self.count;
        self.count += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.writes = 0;
        self.more.clear();
    }

    /// Becomes what a small one is.
    pub(crate) fn copy(&mut self, other: &Wanted) {
        let count = other.count;
        self.pieces[..count].copy_from_slice(&other.pieces[..count]);
        (self.count, self.writes) = (count, other.writes);
    }

    /// Whether it may be kept.
    pub(crate) fn is_small(&self) -> bool {
        self.more.is_empty()
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Range, Permission)> {
        let pieces = self.pieces[..self.count].iter().enumerate();
        let pieces = pieces.map(|(at, &(start, count))| {
            let range = Range::words(start, count).expect("it was a range");
            (range, right(self.writes >> at & 1 == 1))
        });
        pieces.chain(self.more.iter().copied())
    }
}

/// To read, or to read and write.
pub(crate) fn right(write: bool) -> Permission {
    match write {
        true => Permission::ReadWrite,
        false => Permission::Read,
    }
}
