//! Rights that come and go: for the length of a call, or until they are taken away.

use crate::gone::lower_to;
use crate::holder::Holder;
use crate::memory::lock;
use crate::piece::{Piece, is_data};
use crate::slabs::{Prepared, SLAB, Slabs};
use mullion_supervisor::{DomainId, Error, Level, Permission, PreparedGrant, Range, Supervisor};
use mullion_word_table::{self as table, Settling, Table};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
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
    /// Of words in two slabs: what is in force in each.
    Two(Option<Active>, Option<Active>),
}

impl Raised {
    /// What is in force.
    #[inline]
    fn actives(&self) -> impl Iterator<Item = &Active> {
        let both = match self {
            Raised::Already => [None, None],
            Raised::Active(active) => [Some(active), None],
            Raised::Two(first, second) => [first.as_ref(), second.as_ref()],
        };
        both.into_iter().flatten()
    }
}

/// A grant in force. It has a number: what is taken away from a holder altogether ends what has lower ones.
pub(crate) struct Active {
    holder: &'static Holder,
    number: u64,
    range: Range,
    permission: Permission,
    /// Whether it may be in [`Rights::parts`], and of which slab.
    part: Option<PreparedGrant>,
}

/// The supervisor, and what each holder has by grants that end. One lock for both: whoever decides, knows.
pub(crate) struct Decider {
    supervisor: Supervisor<Table>,
    /// By the holder's number.
    rights: Vec<Option<Box<Rights>>>,
    slabs: Slabs,
}

impl Decider {
    pub(crate) fn new(supervisor: Supervisor<Table>) -> Decider {
        Decider {
            supervisor,
            rights: Vec::new(),
            slabs: Slabs::default(),
        }
    }

    #[inline(always)]
    fn of(&mut self, holder: &Holder) -> (&mut Supervisor<Table>, &mut Rights, &mut Slabs) {
        let at = holder.id.get() as usize;
        if !matches!(self.rights.get(at), Some(Some(_))) {
            self.know(at);
        }
        let rights = self.rights[at].get_or_insert_default();
        (&mut self.supervisor, rights, &mut self.slabs)
    }

    #[cold]
    fn know(&mut self, at: usize) {
        if self.rights.len() <= at {
            self.rights.resize_with(at + 1, || None);
        }
        self.rights[at].get_or_insert_default();
    }
}

impl Deref for Decider {
    type Target = Supervisor<Table>;

    fn deref(&self) -> &Supervisor<Table> {
        &self.supervisor
    }
}

impl DerefMut for Decider {
    fn deref_mut(&mut self) -> &mut Supervisor<Table> {
        &mut self.supervisor
    }
}

/// What one holder has by grants that end, and what it has besides where these are: the *base*.
///
/// Several grants may be in force on the same words. The holder has the most of them, and of the base. Words of no piece
/// have what the supervisor says, and no grant that ends is in force on them but a part.
///
/// Nearly all grants that end are *parts*: on words of the host of which nobody had anything, alone. The supervisor
/// has judged the slab that they are in, and decides each by a look at its bits. A part becomes a piece before
/// anything else is done with what its holder has.
pub(crate) struct Rights {
    /// By first word. They do not overlap each other, nor parts.
    pieces: BTreeMap<u64, Piece>,
    /// They do not overlap.
    parts: Vec<Part>,
    slabs: Prepared,
    latest: u64,
}

/// A grant in force that has its words for itself.
struct Part {
    number: u64,
    range: Range,
    permission: Permission,
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
            parts: Vec::new(),
            slabs: Prepared::default(),
            latest: 0,
        }
    }
}

/// Larger pieces are not looked through word by word.
const WORDS: u64 = 256;

/// Gives a holder at least `permission` on these words until [`lower`]. Acts for who owns them, because the host decides.
pub(crate) fn raise(
    decider: &mut Decider,
    holder: &'static Holder,
    range: Range,
    permission: Permission,
) -> Result<Raised, GrantError> {
    let mut raised = Raised::Already;
    raise_into(decider, holder, range, permission, &mut raised)?;
    Ok(raised)
}

/// As [`raise`], with the answer in its place: to move it takes longer than to decide.
#[inline]
pub(crate) fn raise_into(
    decider: &mut Decider,
    holder: &'static Holder,
    range: Range,
    permission: Permission,
    raised: &mut Raised,
) -> Result<(), GrantError> {
    let border = (range.end() - 1) / SLAB * SLAB;
    if border > range.start() && range.count() <= SLAB {
        return raise_two(decider, holder, (range, border), permission, raised);
    }
    *raised = match raise_one(decider, holder, range, permission)? {
        None => Raised::Already,
        Some(Begun { number, part }) => Raised::Active(Active {
            holder,
            number,
            range,
            permission,
            part,
        }),
    };
    Ok(())
}

/// As [`raise_into`], of words in two slabs.
#[cold]
fn raise_two(
    decider: &mut Decider,
    holder: &'static Holder,
    (range, border): (Range, u64),
    permission: Permission,
    raised: &mut Raised,
) -> Result<(), GrantError> {
    let part = |from, to| Range::between(from, to).expect("the border is inside");
    let mut one = |range| {
        let begun = raise_one(decider, holder, range, permission)?;
        Ok(begun.map(|Begun { number, part }| Active {
            holder,
            number,
            range,
            permission,
            part,
        }))
    };
    let left = one(part(range.start(), border))?;
    match one(part(border, range.end())) {
        Ok(right) => {
            *raised = Raised::Two(left, right);
            Ok(())
        }
        Err(error) => {
            lower(decider, &Raised::Two(left, None));
            Err(error)
        }
    }
}

/// A grant that is in force now.
struct Begun {
    number: u64,
    part: Option<PreparedGrant>,
}

/// As [`raise`]; none if the holder has it already.
#[inline]
fn raise_one(
    decider: &mut Decider,
    holder: &'static Holder,
    range: Range,
    permission: Permission,
) -> Result<Option<Begun>, GrantError> {
    let (supervisor, rights, slabs) = decider.of(holder);
    let way = (&mut *supervisor, &mut *slabs);
    let (number, part) = match rights.part(way, holder, range, permission)? {
        Found::Already => return Ok(None),
        Found::No => (rights.raise(supervisor, holder, range, permission)?, None),
        Found::Part(slab) => (rights.begin(range, permission), Some(slab)),
    };
    Ok(Some(Begun { number, part }))
}

/// Puts back what [`raise`] has given. The domain or the owner may have ended meanwhile: then it has nothing there, and the
/// supervisor refuses.
#[inline]
pub(crate) fn lower(decider: &mut Decider, raised: &Raised) {
    for active in raised.actives() {
        let (supervisor, rights, _) = decider.of(active.holder);
        rights.lower(supervisor, active);
    }
}

/// Gives a holder other words in the place of those that it was given, with the same permission; whether that is done. Where
/// it is not, nothing has changed. It is done for a part that moves within its slab, and for words that the holder has by itself.
#[inline]
pub(crate) fn shift(
    decider: &mut Decider,
    holder: &'static Holder,
    raised: &mut Raised,
    (range, permission): (Range, Permission),
) -> bool {
    let (supervisor, rights, _) = decider.of(holder);
    if !rights.is_clear(range) {
        return false;
    }
    let (active, slab) = match raised {
        Raised::Active(active) => match active.part {
            Some(slab) => (active, slab),
            None => return false,
        },
        Raised::Already => return rights.has_already(holder, range, permission),
        Raised::Two(..) => return false,
    };
    let mut parts = rights.parts.iter();
    let Some(at) = parts.rposition(|part| part.number == active.number) else {
        return false;
    };
    if !supervisor.move_part(&ROOT, slab, active.range, range) {
        return false;
    }
    rights.latest += 1;
    (active.number, active.range) = (rights.latest, range);
    let part = &mut rights.parts[at];
    (part.number, part.range) = (active.number, range);
    true
}

/// Puts back what a holder was given for a call, and gives it other pieces.
pub(crate) fn exchange(
    decider: &mut Decider,
    holder: &'static Holder,
    raised: &mut Vec<Raised>,
    wanted: impl Iterator<Item = (Range, Permission)>,
) -> Result<(), GrantError> {
    for old in raised.drain(..) {
        lower(decider, &old);
    }
    for (range, permission) in wanted {
        raised.push(raise(decider, holder, range, permission)?);
    }
    Ok(())
}

impl Rights {
    /// Grants a part, if these words are the host's and nobody has anything of them.
    #[inline]
    fn part(
        &mut self,
        (supervisor, slabs): (&mut Supervisor<Table>, &mut Slabs),
        holder: &Holder,
        range: Range,
        permission: Permission,
    ) -> Result<Found, GrantError> {
        if !self.is_clear(range) {
            return Ok(Found::No);
        }
        let at = match self.slabs.find(range) {
            Some(at) => at,
            None => match self.already(holder, range, permission) {
                Some(found) => return Ok(found),
                None => match self.slabs.make((supervisor, slabs), holder, range) {
                    Some(at) => at,
                    None => return Ok(Found::No),
                },
            },
        };
        let Some(slab) = self.slabs.grant(supervisor, holder, at, permission) else {
            return Ok(Found::No);
        };
        match supervisor.grant_part(&ROOT, slab, range)? {
            true => Ok(Found::Part(slab)),
            false => {
                let found = self.already(holder, range, permission);
                Ok(found.unwrap_or(Found::No))
            }
        }
    }

    #[inline]
    fn begin(&mut self, range: Range, permission: Permission) -> u64 {
        self.latest += 1;
        let number = self.latest;
        self.parts.push(Part {
            number,
            range,
            permission,
        });
        number
    }

    /// Whether the holder has all of it by itself; none if it has nothing of it, or that was not looked at.
    fn already(&self, holder: &Holder, range: Range, permission: Permission) -> Option<Found> {
        let mut parts = self.parts.iter();
        if parts.any(|part| part.range.overlap(range).is_some()) {
            return Some(Found::No);
        }
        if range.count() > WORDS {
            return None;
        }
        let wanted = table::Access::of(permission, holder.id);
        let (mut has_all, mut has_some) = (true, false);
        for word in range.start()..range.end() {
            let access = holder.view.access(4 * word);
            has_all &= access.covers(wanted);
            has_some |= access != table::Access::NONE;
        }
        // What an instance has by its module may go while its call goes on.
        let all = has_all && !holder.is_instance;
        has_some.then_some(if all { Found::Already } else { Found::No })
    }

    #[cold]
    fn has_already(&self, holder: &Holder, range: Range, permission: Permission) -> bool {
        matches!(
            self.already(holder, range, permission),
            Some(Found::Already)
        )
    }

    fn raise(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &'static Holder,
        range: Range,
        permission: Permission,
    ) -> Result<u64, GrantError> {
        self.cover(supervisor, holder, range);
        self.latest += 1;
        let active = Active {
            holder,
            number: self.latest,
            range,
            permission,
            part: None,
        };
        for piece in self.inside(range) {
            *piece.count(permission) += 1;
        }
        if let Err(error) = self.write(supervisor, holder, range) {
            self.discount(&active);
            let _gone = self.write(supervisor, holder, range);
            return Err(error.into());
        }
        Ok(active.number)
    }

    #[inline]
    fn lower(&mut self, supervisor: &mut Supervisor<Table>, active: &Active) {
        if !self.end_part(supervisor, active) {
            self.discount(active);
            let _gone = self.write(supervisor, active.holder, active.range);
        }
    }

    /// Takes a part back; whether it was one.
    #[inline]
    fn end_part(&mut self, supervisor: &mut Supervisor<Table>, active: &Active) -> bool {
        let Some(slab) = active.part else {
            return false;
        };
        let mut parts = self.parts.iter();
        let Some(at) = parts.rposition(|part| part.number == active.number) else {
            return false;
        };
        // Otherwise the supervisor has made regions of the slab, or the slab has ended.
        let is_done = supervisor.revoke_part(&ROOT, slab, active.range) == Ok(true);
        if is_done {
            self.parts.swap_remove(at);
        }
        is_done
    }

    /// What is in force by a part is so by a piece from here on.
    #[inline]
    fn settle(&mut self) {
        for part in self.parts.drain(..) {
            let mut piece = Piece {
                end: part.range.end(),
                base: Permission::None,
                reads: 0,
                writes: 0,
                since: part.number - 1,
            };
            *piece.count(part.permission) += 1;
            self.pieces.insert(part.range.start(), piece);
        }
    }
}

/// Whether a part was granted.
enum Found {
    /// By this prepared grant.
    Part(PreparedGrant),
    /// The holder has it by itself.
    Already,
    No,
}

/// Puts many of them back, and waits once until no access of any thread comes that was checked before.
pub(crate) fn lower_all(decider: &mut Decider, all: impl Iterator<Item = Raised>) {
    decider.mechanism_mut().set_settling(Settling::Later);
    let mut places: Vec<(&'static Holder, Range)> = Vec::new();
    for raised in all {
        for active in raised.actives() {
            let (supervisor, rights, _) = decider.of(active.holder);
            if !rights.end_part(supervisor, active) {
                rights.discount(active);
                places.push((active.holder, active.range));
            }
        }
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
        let (supervisor, rights, _) = decider.of(holder);
        let _gone = rights.write(supervisor, holder, range);
    }
    decider.mechanism_mut().settle_now();
    decider.mechanism_mut().set_settling(Settling::Now);
}

/// As [`raise`], to stay.
pub(crate) fn raise_for_good(
    decider: &mut Decider,
    holder: &Holder,
    range: Range,
    permission: Permission,
) -> Result<(), GrantError> {
    let (supervisor, rights, slabs) = decider.of(holder);
    // The usual case is a block of the host's that nobody has.
    let way = (&mut *supervisor, &mut *slabs);
    if let Found::Part(_) = rights.part(way, holder, range, permission)? {
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
pub(crate) fn take_away(decider: &mut Decider, holder: &Holder, range: Range) {
    let (supervisor, rights, _) = decider.of(holder);
    // The usual case is what `raise_for_good` has given.
    let mut parts = rights.parts.iter();
    let is_alone = parts.all(|part| part.range.overlap(range).is_none()) && rights.is_clear(range);
    if is_alone
        && let Some(at) = rights.slabs.find(range)
        && let Some(slab) = rights.slabs.to_write(at)
        && supervisor.revoke_part(&ROOT, slab, range) == Ok(true)
    {
        return;
    }
    rights.settle();
    // Where the host is not the owner of all it is refused, and nothing has changed.
    if is_alone
        && let Ok(()) = supervisor.mprot_export(&ROOT, holder.subject, range, Permission::None)
    {
        return;
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
            lower_to(
                supervisor,
                (holder.id, holder.subject),
                (owner, region),
                Permission::None,
            );
        }
    }
}

/// Whether the holder has something of others' there.
pub(crate) fn has_some(supervisor: &Supervisor<Table>, holder: &Holder, range: Range) -> bool {
    let mut regions = supervisor.regions(range);
    regions.any(|(_, holding)| {
        holding.owner != holder.id && holding.direct(holder.subject).access != Permission::None
    })
}

/// Whether the holder has something of these words only by grants that end, other than what was handed over to it.
pub(crate) fn is_for_a_time(decider: &mut Decider, holder: &Holder, range: Range) -> bool {
    let taken = lock(&holder.taken);
    let is_its = |words: Range| taken.iter().any(|(taken, _)| taken.covers(words));
    let (_, rights, _) = decider.of(holder);
    let parts = rights.parts.iter().map(|part| (part.range, true));
    let pieces = rights
        .pieces
        .range(..range.end())
        .filter_map(|(first, piece)| {
            let words = Range::between(*first, piece.end)?;
            Some((
                words,
                !piece.is_idle() && piece.base < Permission::ReadWrite,
            ))
        });
    let mut all = parts.chain(pieces);
    all.any(|(words, ends)| {
        let inside = words.overlap(range);
        ends && inside.is_some_and(|inside| !is_its(inside))
    })
}

/// At a holder's end: nothing is known of it any more.
pub(crate) fn forget(decider: &mut Decider, holder: &Holder) {
    let (supervisor, rights, slabs) = decider.of(holder);
    rights.slabs.let_go(supervisor, slabs);
    decider.rights[holder.id.get() as usize] = None;
}

/// Takes everything away that a holder has by grants that end.
pub(crate) fn take_all_away(decider: &mut Decider, holder: &Holder) {
    let pieces: Vec<(u64, u64)> = {
        let (_, rights, _) = decider.of(holder);
        rights.settle();
        let pieces = rights.pieces.range(..u64::MAX);
        pieces.map(|(first, piece)| (*first, piece.end)).collect()
    };
    for (first, end) in pieces {
        if let Ok(range) = Range::words(first, end - first) {
            take_away(decider, holder, range);
        }
    }
}

impl Rights {
    /// Whether no piece touches these words.
    #[inline]
    fn is_clear(&self, range: Range) -> bool {
        self.pieces.len() == 1 || self.is_clear_of_pieces(range)
    }

    #[cold]
    fn is_clear_of_pieces(&self, range: Range) -> bool {
        let before = self.pieces.range(..range.end()).next_back();
        before.is_none_or(|(_, piece)| piece.end <= range.start())
    }

    /// Gives a part of a slab another permission; whether that is done.
    fn write_part(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &Holder,
        range: Range,
        wanted: Permission,
    ) -> bool {
        let Some(at) = self.slabs.find(range) else {
            return false;
        };
        let on = wanted != Permission::None;
        let slab = match on {
            true => self.slabs.grant(supervisor, holder, at, wanted),
            false => self.slabs.any(at),
        };
        slab.is_some_and(|slab| supervisor.set_part(&ROOT, slab, range, on) == Ok(true))
    }

    fn discount(&mut self, active: &Active) {
        self.settle();
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
        self.settle();
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

    /// Makes the table say what the pieces of `range` come to, and forgets those without a grant. What is less is so when this
    /// returns. An error says that something is not more.
    fn write(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &Holder,
        range: Range,
    ) -> Result<(), Error> {
        let mut changes: Vec<(u64, u64, DomainId, (Permission, bool))> = Vec::new();
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
                let change = (wanted, wanted < held);
                match changes.last_mut() {
                    Some(last) if (last.1, last.2, last.3) == (first, holding.owner, change) => {
                        last.1 = end;
                    }
                    _ => changes.push((first, end, holding.owner, change)),
                }
            }
        }
        let mut outcome = Ok(());
        for (first, end, owner, (wanted, is_less)) in changes {
            let words = Range::words(first, end - first).expect("a part of a range");
            if owner == ROOT && self.write_part(supervisor, holder, words, wanted) {
                continue;
            }
            if is_less {
                lower_to(
                    supervisor,
                    (holder.id, holder.subject),
                    (owner, words),
                    wanted,
                );
                continue;
            }
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

/// To read, or to read and write.
pub(crate) fn right(write: bool) -> Permission {
    match write {
        true => Permission::ReadWrite,
        false => Permission::Read,
    }
}
