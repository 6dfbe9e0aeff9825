//! Rights that come and go: for the length of a call, or until they are taken away.

use crate::core::Core;
use crate::gates::Seat;
use crate::memory::lock;
use mullion_supervisor::{DomainId, Error, Level, Permission, PreparedGrant, Range, Supervisor};
use mullion_word_table::{self as table, Table};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};
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
    /// The active grant with this number.
    Active(&'static Core, u64),
}

/// What one domain has for the length of calls, and what it has besides where these are.
///
/// Several grants may be active on the same words. The domain has the most of them, and of its *base*: what it has
/// besides. When one ends, it has the most of what is left. A word under an active grant without a base has the base
/// `None`; that is so only under grants that went the quick way, which do not overlap others.
#[derive(Default)]
pub(crate) struct Grants {
    active: Vec<Active>,
    base: Vec<Base>,
    /// The same memory comes again and again.
    prepared: HashMap<Key, PreparedGrant>,
    latest: u64,
}

/// First word, the one behind the last, and whether to write.
type Key = (u64, u64, bool);

struct Active {
    number: u64,
    /// How many have it.
    calls: u64,
    range: Range,
    permission: Permission,
    prepared: Option<PreparedGrant>,
    /// Where it was taken away meanwhile.
    lost: Vec<Range>,
}

struct Base {
    first: u64,
    end: u64,
    permission: Permission,
}

/// Words on which all is the same.
struct Piece {
    first: u64,
    end: u64,
    owner: DomainId,
    held: Permission,
}

impl Active {
    fn overlaps(&self, range: Range) -> bool {
        self.range.overlap(range).is_some()
    }

    fn gives(&self, word: u64) -> Permission {
        match self.range.holds(word) && !self.lost.iter().any(|lost| lost.holds(word)) {
            true => self.permission,
            false => Permission::None,
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

/// Gives a domain at least `permission` on these words until [`lower`]. Acts for who owns them, because the host decides.
pub(crate) fn raise(
    supervisor: &mut Supervisor<Table>,
    core: &'static Core,
    range: Range,
    permission: Permission,
) -> Result<Raised, GrantError> {
    let mut grants = lock(&core.grants);
    let same = |active: &&mut Active| {
        active.range == range && active.permission == permission && active.lost.is_empty()
    };
    if let Some(active) = grants.active.iter_mut().find(same) {
        active.calls += 1;
        return Ok(Raised::Active(core, active.number));
    }
    let is_apart = !grants.active.iter().any(|active| active.overlaps(range));
    let mut prepared = None;
    if is_apart && range.count() <= WORDS {
        let wanted = table::Access::of(permission, core.id);
        let (mut has_all, mut has_some) = (true, false);
        for word in range.start()..range.end() {
            let access = core.view.access(4 * word);
            has_all &= access.covers(wanted);
            has_some |= access != table::Access::NONE;
        }
        if has_all {
            return Ok(Raised::Already);
        }
        if !has_some {
            prepared = grants.prepare(supervisor, core.id, range, permission);
        }
    }
    if prepared.is_none() {
        for piece in grants.pieces(supervisor, core.id, range) {
            grants.base_of(&piece);
        }
    }
    let number = grants.begin(range, permission, prepared);
    let done = match prepared {
        Some(prepared) => supervisor.grant_prepared(&ROOT, prepared),
        None => grants.write(supervisor, core.id, range),
    };
    if let Err(error) = done {
        grants.end(supervisor, core.id, number);
        return Err(error.into());
    }
    Ok(Raised::Active(core, number))
}

/// Puts back what [`raise`] has given.
pub(crate) fn lower(supervisor: &mut Supervisor<Table>, raised: Raised) {
    if let Raised::Active(core, number) = raised {
        lock(&core.grants).end(supervisor, core.id, number);
    }
}

/// As [`raise`], to stay.
pub(crate) fn raise_for_good(
    supervisor: &mut Supervisor<Table>,
    core: &Core,
    range: Range,
    permission: Permission,
) -> Result<(), GrantError> {
    let mut grants = lock(&core.grants);
    // The usual case is a block of the host's that nobody has: then there is nothing to look through. Where the host
    // is not the owner it is refused, and nothing has changed.
    let has_none = |word| core.view.access(4 * word) == table::Access::NONE;
    if grants.is_apart(range)
        && range.count() <= WORDS
        && (range.start()..range.end()).all(has_none)
        && let Ok(()) = supervisor.mprot_export(&ROOT, core.id, range, permission)
    {
        return Ok(());
    }
    for piece in grants.pieces(supervisor, core.id, range) {
        grants.base_of(&piece);
    }
    for base in grants.base_in(range) {
        if is_data(base.permission) {
            base.permission = base.permission.max(permission);
        }
    }
    Ok(grants.write(supervisor, core.id, range)?)
}

/// Takes words of others away from a domain, on all threads, whatever it had them for.
pub(crate) fn take_away(
    supervisor: &mut Supervisor<Table>,
    core: &Core,
    range: Range,
) -> Result<(), Error> {
    let mut grants = lock(&core.grants);
    // What is kept for a call may not be whole any more.
    core.inner.edition.fetch_add(1, Ordering::Release);
    // As in `raise_for_good`.
    let none = Permission::None;
    if grants.is_apart(range)
        && let Ok(()) = supervisor.mprot_export(&ROOT, core.id, range, none)
    {
        return Ok(());
    }
    for active in &mut grants.active {
        active.lost.extend(active.range.overlap(range));
    }
    for piece in grants.pieces(supervisor, core.id, range) {
        if piece.owner == core.id {
            continue;
        }
        if let Some(base) = grants
            .base
            .iter_mut()
            .find(|base| base.first == piece.first)
        {
            base.permission = Permission::None;
        }
        if piece.held != Permission::None {
            supervisor.mprot_export(&piece.owner, core.id, piece.range(), Permission::None)?;
        }
    }
    Ok(())
}

impl Piece {
    fn range(&self) -> Range {
        Range::words(self.first, self.end - self.first).expect("a part of a range")
    }
}

impl Grants {
    /// A prepared grant, if the words are the host's.
    fn prepare(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        id: DomainId,
        range: Range,
        permission: Permission,
    ) -> Option<PreparedGrant> {
        let writes = permission == Permission::ReadWrite;
        let key = (range.start(), range.end(), writes);
        if let Some(found) = self.prepared.get(&key) {
            return Some(*found);
        }
        let made = supervisor.prepare(&ROOT, id, range, permission, NOT_FURTHER);
        let made = made.ok()?;
        if self.prepared.len() >= MOST {
            let active = &self.active;
            self.prepared.retain(|_, old| {
                let stays = active.iter().any(|active| active.prepared == Some(*old));
                if !stays {
                    let _gone = supervisor.release(*old);
                }
                stays
            });
        }
        self.prepared.insert(key, made);
        Some(made)
    }

    fn begin(
        &mut self,
        range: Range,
        permission: Permission,
        prepared: Option<PreparedGrant>,
    ) -> u64 {
        self.latest += 1;
        self.active.push(Active {
            number: self.latest,
            calls: 1,
            range,
            permission,
            prepared,
            lost: Vec::new(),
        });
        self.latest
    }

    /// The domain or the owner may have ended meanwhile: then it has nothing there, and the supervisor refuses.
    fn end(&mut self, supervisor: &mut Supervisor<Table>, id: DomainId, number: u64) {
        let Some(at) = self
            .active
            .iter()
            .position(|active| active.number == number)
        else {
            return;
        };
        self.active[at].calls -= 1;
        if self.active[at].calls > 0 {
            return;
        }
        let range = self.active[at].range;
        let is_apart = self.base_in(range).next().is_none();
        if let Some(prepared) = self.active[at].prepared.filter(|_| is_apart) {
            self.active.swap_remove(at);
            let _gone = supervisor.revoke_prepared(&ROOT, prepared);
            return;
        }
        for piece in self.pieces(supervisor, id, range) {
            self.base_of(&piece);
        }
        self.active.swap_remove(at);
        let _gone = self.write(supervisor, id, range);
    }

    /// Whether no grant is active there, and nothing is remembered of it.
    fn is_apart(&mut self, range: Range) -> bool {
        !self.active.iter().any(|active| active.overlaps(range))
            && self.base_in(range).next().is_none()
    }

    /// What active grants give on a word.
    fn given(&self, word: u64) -> Option<Permission> {
        let active = self.active.iter().filter(|active| active.range.holds(word));
        active.map(|active| active.gives(word)).max()
    }

    /// Cut so that no base, no grant and no holding begins or ends inside of a piece.
    fn pieces(&mut self, supervisor: &Supervisor<Table>, id: DomainId, range: Range) -> Vec<Piece> {
        let mut cuts = Vec::new();
        for active in self.active.iter().filter(|active| active.overlaps(range)) {
            let parts = active.lost.iter().chain([&active.range]);
            cuts.extend(parts.flat_map(|part| [part.start(), part.end()]));
        }
        for base in self.base_in(range) {
            cuts.extend([base.first, base.end]);
        }
        let mut pieces = Vec::new();
        for (region, holding) in supervisor.regions(range) {
            let Some(region) = region.overlap(range) else {
                continue;
            };
            let inside = cuts.iter().copied().filter(|cut| region.holds(*cut));
            let mut ends: Vec<u64> = inside.chain([region.start(), region.end()]).collect();
            ends.sort_unstable();
            ends.dedup();
            pieces.extend(ends.windows(2).map(|ends| Piece {
                first: ends[0],
                end: ends[1],
                owner: holding.owner,
                held: holding.direct(id.into()).access,
            }));
        }
        for piece in &pieces {
            self.split(piece.first);
            self.split(piece.end);
        }
        pieces
    }

    fn split(&mut self, at: u64) {
        let inside = |base: &&mut Base| base.first < at && at < base.end;
        if let Some(base) = self.base.iter_mut().find(inside) {
            let (end, permission) = (std::mem::replace(&mut base.end, at), base.permission);
            self.base.push(Base {
                first: at,
                end,
                permission,
            });
        }
    }

    fn base_in(&mut self, range: Range) -> impl Iterator<Item = &mut Base> {
        let bases = self.base.iter_mut();
        bases.filter(move |base| base.first < range.end() && range.start() < base.end)
    }

    /// The base of a piece, remembered if it is not yet.
    fn base_of(&mut self, piece: &Piece) -> Permission {
        if let Some(base) = self.base.iter().find(|base| base.first == piece.first) {
            return base.permission;
        }
        let permission = match self
            .active
            .iter()
            .any(|active| active.range.holds(piece.first))
        {
            true => Permission::None,
            false => piece.held,
        };
        self.base.push(Base {
            first: piece.first,
            end: piece.end,
            permission,
        });
        permission
    }

    /// Makes the table say what base and active grants come to. A base without a grant over it is forgotten.
    fn write(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        id: DomainId,
        range: Range,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        for piece in self.pieces(supervisor, id, range) {
            let base = self.base_of(&piece);
            let given = self.given(piece.first);
            let wanted = base.max(given.unwrap_or_default());
            if is_data(piece.held) && is_data(wanted) && wanted != piece.held {
                let done = supervisor.mprot_export(&piece.owner, id, piece.range(), wanted);
                outcome = outcome.and(done);
            }
            if given.is_none() {
                self.base.retain(|base| base.first != piece.first);
            }
        }
        outcome
    }
}

/// Pieces of memory that a call is granted, at most.
const PIECES: usize = 8;

/// What a call is granted: words, and a bit for each piece that it may write.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) count: usize,
    writes: u64,
    pieces: [(u64, u64); PIECES],
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
    /// False: there is no room.
    #[must_use]
    pub(crate) fn add(&mut self, range: Range, write: bool) -> bool {
        let Some(piece) = self.pieces.get_mut(self.count) else {
            return false;
        };
        *piece = (range.start(), range.count());
        self.writes |= u64::from(write) << self.count;
        self.count += 1;
        true
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Range, Permission)> {
        let pieces = self.pieces[..self.count].iter().enumerate();
        pieces.map(|(at, &(start, count))| {
            let range = Range::words(start, count).expect("it was a range");
            (range, right(self.writes >> at & 1 == 1))
        })
    }
}

/// To read, or to read and write.
pub(crate) fn right(write: bool) -> Permission {
    match write {
        true => Permission::ReadWrite,
        false => Permission::Read,
    }
}
