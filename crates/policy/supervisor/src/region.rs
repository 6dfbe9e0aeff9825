//! The address space as one map: each word has an owner and the grants on it.

use crate::few::Few;
use crate::holdings::{HoldingId, HoldingNumber, Holdings};
use crate::sheet::{Entry, Sheet, Sheets};
use crate::sorted::{Place, Sorted};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// What a subject holds on a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What it may do.
    pub access: Permission,
    /// Up to which level it may grant to others; never above the level of `access`. An owner may grant
    /// everything, whatever stands here.
    pub export: Level,
}

impl Grant {
    /// `access`, exportable up to `export` or to its own level, whichever is less.
    pub fn new(access: Permission, export: Level) -> Grant {
        Grant {
            access,
            export: export.min(access.level()),
        }
    }
}

/// What is the same for all words of a region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holding {
    /// The one owner.
    pub owner: DomainId,
    /// What was granted, in order of subject, each subject at most once, never [`Permission::None`].
    pub grants: Vec<(Subject, Grant)>,
}

impl Holding {
    /// What `subject` was granted itself.
    pub fn direct(&self, subject: Subject) -> Grant {
        match self.grants.binary_search_by_key(&subject, |(s, _)| *s) {
            Ok(index) => self.grants[index].1,
            Err(_) => Grant::default(),
        }
    }

    /// What groups were granted.
    pub(crate) fn of_groups(&self) -> impl Iterator<Item = (GroupId, Grant)> {
        let first = match self.grants.last() {
            Some((Subject::Group(_), _)) => self
                .grants
                .partition_point(|(subject, _)| matches!(subject, Subject::Domain(_))),
            _ => self.grants.len(),
        };
        let groups = self.grants[first..].iter();
        groups.filter_map(|(subject, grant)| match subject {
            Subject::Group(group) => Some((*group, *grant)),
            Subject::Domain(_) => None,
        })
    }

    /// Replaces what `subject` holds.
    pub(crate) fn set(&mut self, subject: Subject, grant: Grant) {
        let found = self.grants.binary_search_by_key(&subject, |(s, _)| *s);
        match (found, grant.access) {
            (Ok(index), Permission::None) => {
                self.grants.remove(index);
            }
            (Ok(index), _) => self.grants[index].1 = grant,
            (Err(_), Permission::None) => {}
            (Err(index), _) => self.grants.insert(index, (subject, grant)),
        }
    }
}

/// The whole space, cut where something changes. Every word is in exactly one region by construction:
/// a region ends where the next begins. Neighbours that are alike are one region, but where there is a cut.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    space: Range,
    by_start: Sorted<Entry>,
    holdings: Holdings,
    /// Holdings of words in regions of which parts come and go. Such a region has a cut at both ends.
    sheets: Sheets,
    /// Words at which a region begins whatever lies before it, with how many want that.
    cuts: BTreeMap<u64, u32>,
}

/// Holdings of a sheet, besides the one of most words.
const KINDS: usize = 16;

/// What has become of a piece: where a holding was changed in its place, only the edition differs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) range: Range,
    pub(crate) before: HoldingNumber,
    pub(crate) after: HoldingNumber,
    /// Whose grant it is, if only one differs.
    pub(crate) subject: Option<Subject>,
}

/// Where a call writes down what it has moved; `None` if nobody wants to know.
pub(crate) type Moves<'a> = Option<&'a mut Few<Moved>>;

impl Regions {
    pub(crate) fn new(space: Range, owner: DomainId) -> Regions {
        let mut holdings = Holdings::new();
        let all = holdings.intern(Holding {
            owner,
            grants: Vec::new(),
        });
        holdings.gain(all);
        let mut by_start = Sorted::default();
        by_start.insert_behind(None, space.start(), Entry::of(all));
        Regions {
            space,
            by_start,
            holdings,
            sheets: Sheets::default(),
            cuts: BTreeMap::new(),
        }
    }

    pub(crate) fn space(&self) -> Range {
        self.space
    }

    pub(crate) fn count(&self) -> usize {
        self.by_start.len()
    }

    /// The region around `word`, which lies in the space.
    pub(crate) fn at(&self, word: u64) -> Option<&Holding> {
        if !self.space.holds(word) {
            return None;
        }
        let (_, entry) = self.by_start.get(self.by_start.floor(word)?);
        let id = match entry.get() {
            Ok(id) => id,
            Err(sheet) => self.sheets.get(sheet)?.at(word),
        };
        Some(self.holdings.get(id))
    }

    /// The pieces of `range`, each of one region, in order.
    pub(crate) fn pieces(&self, range: Range) -> impl Iterator<Item = (Range, &Holding)> {
        self.numbered(range)
            .map(|(piece, id)| (piece, self.holdings.get(id)))
    }

    pub(crate) fn numbered(&self, range: Range) -> impl Iterator<Item = (Range, HoldingId)> {
        let first = self.by_start.floor(range.start());
        let mut starts = self
            .by_start
            .from(first)
            .take_while(move |(start, _)| *start < range.end())
            .peekable();
        let mut within: Option<(&Sheet, Range)> = None;
        let mut runs = core::iter::from_fn(move || {
            loop {
                if let Some((sheet, left)) = within.take() {
                    let (run, id) = sheet.run(left);
                    within = Range::between(run.end(), left.end()).map(|left| (sheet, left));
                    return Some((run, id));
                }
                let (start, entry) = starts.next()?;
                let end = starts.peek().map_or(range.end(), |(next, _)| *next);
                let piece = Range::between(start, end)?.overlap(range)?;
                match entry.get() {
                    Ok(id) => return Some((piece, id)),
                    Err(sheet) => within = Some((self.sheets.get(sheet)?, piece)),
                }
            }
        })
        .peekable();
        core::iter::from_fn(move || {
            let (mut piece, id) = runs.next()?;
            // Behind a cut there may be more of the same.
            while let Some((next, _)) = runs.next_if(|(_, next)| *next == id) {
                piece = Range::between(piece.start(), next.end())?;
            }
            Some((piece, id))
        })
    }

    /// Gives `subject` this grant on all of `range`, and tells `note` of each piece that changes by it what
    /// was there before.
    pub(crate) fn set(
        &mut self,
        range: Range,
        subject: Subject,
        grant: Grant,
        mut moves: Moves<'_>,
        mut note: impl FnMut(Range, &Holding),
    ) {
        self.unfold(range);
        let mut next = self.by_start.floor(range.start());
        while let Some(place) = next {
            let (region, id) = (self.region(place), self.id_at(place));
            let (Some(piece), Some(id)) = (region.overlap(range), id) else {
                break;
            };
            let holding = self.holdings.get(id);
            let mut now = place;
            if holding.direct(subject) != grant {
                note(piece, holding);
                let was = self.holdings.number(id);
                let new = self.holdings.with(id, subject, grant, region == piece);
                if let Some(moves) = &mut moves {
                    moves.push(Moved {
                        range: piece,
                        before: was,
                        after: self.holdings.number(new),
                        subject: Some(subject),
                    });
                }
                if new != id {
                    now = self.replace(place, piece, new);
                }
            }
            next = self.by_start.next(now);
        }
    }

    /// Edits every piece of `range`, and tells `note` what becomes of those that change.
    pub(crate) fn change(
        &mut self,
        range: Range,
        mut moves: Moves<'_>,
        mut edit: impl FnMut(&mut Holding),
        mut note: impl FnMut(Range, &Holding, &Holding),
    ) {
        self.unfold(range);
        let mut next = self.by_start.floor(range.start());
        while let Some(place) = next {
            let (region, id) = (self.region(place), self.id_at(place));
            let (Some(piece), Some(id)) = (region.overlap(range), id) else {
                break;
            };
            let before = self.holdings.get(id);
            let mut after = before.clone();
            edit(&mut after);
            let mut now = place;
            if *before != after {
                note(piece, before, &after);
                let new = self.holdings.intern(after);
                if let Some(moves) = &mut moves {
                    moves.push(Moved {
                        range: piece,
                        before: self.holdings.number(id),
                        after: self.holdings.number(new),
                        subject: None,
                    });
                }
                now = self.replace(place, piece, new);
            }
            next = self.by_start.next(now);
        }
    }

    /// The region that begins at `place`.
    fn region(&self, place: Place) -> Range {
        let start = self.by_start.get(place).0;
        let next = self.by_start.next(place);
        let end = next.map_or(self.space.end(), |next| self.by_start.get(next).0);
        Range::between(start, end).unwrap_or(self.space)
    }

    /// Gives `piece`, which lies in the region at `place`, another holding, and joins it to neighbours that have
    /// the same. Says where the region is from then on that `piece` lies in. The region is no sheet.
    fn replace(&mut self, place: Place, piece: Range, new: HoldingId) -> Place {
        let (region, old) = (self.region(place), self.by_start.get(place).1);
        let lose = |holdings: &mut Holdings, entry: Entry| {
            if let Ok(id) = entry.get() {
                holdings.lose(id);
            }
        };
        let (entry, mut here) = (Entry::of(new), place);
        // Who has it must be counted before anybody loses one: what nobody has may be forgotten.
        self.holdings.gain(new);
        if piece.start() > region.start() {
            here = self
                .by_start
                .insert_behind(Some(here), piece.start(), entry);
        } else {
            self.by_start.set(here, entry);
            lose(&mut self.holdings, old);
        }
        if piece.end() < region.end() {
            if let Ok(old) = old.get() {
                self.holdings.gain(old);
            }
            let rest = self.by_start.insert_behind(Some(here), piece.end(), old);
            // A chunk may have been cut in two in between.
            here = self.by_start.previous(rest).unwrap_or(here);
        } else if let Some(next) = self.by_start.next(here)
            && self.by_start.get(next).1 == entry
            && !self.is_cut(piece.end())
        {
            here = self.by_start.remove_behind(here);
            self.holdings.lose(new);
        }
        if let Some(before) = self.by_start.previous(here)
            && self.by_start.get(before).1 == entry
            && !self.is_cut(self.by_start.get(here).0)
        {
            here = self.by_start.remove_behind(before);
            self.holdings.lose(new);
        }
        here
    }

    /// Makes regions of the sheets that have words of `range`.
    #[inline]
    pub(crate) fn unfold(&mut self, range: Range) {
        if !self.sheets.is_empty() {
            self.unfold_all(range);
        }
    }

    #[cold]
    fn unfold_all(&mut self, range: Range) {
        let first = self.by_start.floor(range.start());
        let entries = self.by_start.from(first);
        let entries = entries.take_while(|(start, _)| *start < range.end());
        let found: Vec<u32> = entries.filter_map(|(_, entry)| entry.get().err()).collect();
        for number in found {
            let Some(sheet) = self.sheets.remove(number) else {
                continue;
            };
            if let Some(place) = self.by_start.floor(sheet.range.start()) {
                self.by_start.set(place, Entry::of(sheet.off));
            }
            let mut left = Some(sheet.range);
            while let Some(rest) = left {
                let (run, id) = sheet.run(rest);
                left = Range::between(run.end(), rest.end());
                if id != sheet.off
                    && let Some(place) = self.by_start.floor(run.start())
                {
                    self.replace(place, run, id);
                }
            }
            for kind in sheet.kinds {
                self.holdings.lose(kind.on);
            }
        }
    }

    /// The runs of `part` with what each has and is to have, once `subject` holds `grant` there: for a part of a sheet at
    /// `place`, which is made if it is a region. None if the part is no part of that, or `is_plain` says no to one of them.
    /// Nothing that anybody sees has changed.
    #[inline]
    pub(crate) fn steps(
        &mut self,
        place: Place,
        part: Range,
        (subject, grant): (Subject, Grant),
        is_plain: impl Fn(&Holding) -> bool,
    ) -> Option<Few<(Range, HoldingId, HoldingId)>> {
        let number = match self.by_start.get(place).1.get() {
            Err(number) => number,
            Ok(off) => self.fold_one(place, off),
        };
        let sheet = self.sheets.get_mut(number)?;
        if !sheet.range.covers(part) {
            return None;
        }
        let mut steps = Few::new();
        let mut left = Some(part);
        while let Some(rest) = left {
            let (run, from) = sheet.run(rest);
            left = Range::between(run.end(), rest.end());
            if !is_plain(self.holdings.get(from)) {
                return None;
            }
            let to = self.holdings.with(from, subject, grant, false);
            if to != sheet.off && sheet.kind(to).is_none() {
                // Counted before anybody loses one: what nobody has may be forgotten.
                self.holdings.gain(to);
                // The kinds of runs before this one have no words yet.
                if sheet.kinds.len() >= KINDS && run.start() == part.start() {
                    let gone = sheet.prune();
                    gone.into_iter().for_each(|kind| self.holdings.lose(kind));
                }
                if sheet.kinds.len() >= KINDS {
                    self.holdings.lose(to);
                    return None;
                }
                sheet.add_kind(to);
            }
            steps.push((run, from, to));
        }
        Some(steps)
    }

    /// Takes `on` from one part of the sheet at `place` and gives it to another one; whether that is done. Nothing has changed
    /// if it is not.
    #[inline(always)]
    pub(crate) fn shift_at_once(
        &mut self,
        place: Place,
        (off, on): (HoldingId, HoldingId),
        (from, to): (Range, Range),
    ) -> bool {
        let Err(number) = self.by_start.get(place).1.get() else {
            return false;
        };
        let Some(sheet) = self.sheets.get_mut(number) else {
            return false;
        };
        let covers = sheet.range.covers(from) && sheet.range.covers(to);
        covers && sheet.off == off && sheet.shift(on, from, to)
    }

    /// Gives a part of a sheet at `place` the holding `to`, if all of it has `from`, and words of the sheet have had both.
    #[inline]
    pub(crate) fn step_at_once(
        &mut self,
        place: Place,
        (part, from, to): (Range, HoldingId, HoldingId),
    ) -> bool {
        let Err(number) = self.by_start.get(place).1.get() else {
            return false;
        };
        let Some(sheet) = self.sheets.get_mut(number) else {
            return false;
        };
        sheet.range.covers(part) && sheet.turn(part, from, to)
    }

    /// Takes one of these steps.
    #[inline]
    pub(crate) fn step(&mut self, place: Place, (run, from, to): (Range, HoldingId, HoldingId)) {
        if let Err(number) = self.by_start.get(place).1.get()
            && let Some(sheet) = self.sheets.get_mut(number)
        {
            sheet.switch(run, from, to);
        }
    }

    /// Makes a sheet of a region.
    #[cold]
    fn fold_one(&mut self, place: Place, off: HoldingId) -> u32 {
        let entry = self.sheets.add(self.region(place), off);
        self.by_start.set(place, entry);
        entry.get().err().unwrap_or_default()
    }

    /// Makes a sheet of all regions in `range`, if there are few holdings, and nobody wants a region to begin between its ends.
    #[cold]
    pub(crate) fn fold(&mut self, range: Range) -> Option<Place> {
        let mut inside = self.cuts.range(range.start() + 1..range.end());
        if inside.next().is_some() {
            return None;
        }
        self.unfold(range);
        let begins = |word| {
            let place = self.by_start.floor(word)?;
            (self.by_start.get(place).0 == word).then_some(place)
        };
        begins(range.start())?;
        if range.end() != self.space.end() {
            begins(range.end())?;
        }
        let runs: Vec<(Range, HoldingId)> = self.numbered(range).collect();
        let off = runs.iter().max_by_key(|(run, _)| run.count())?.1;
        let mut kinds: Vec<HoldingId> = runs.iter().map(|(_, id)| *id).collect();
        kinds.sort_unstable_by_key(|id| id.get());
        kinds.dedup();
        if kinds.len() > KINDS {
            return None;
        }
        // Before anybody loses one: what nobody has may be forgotten.
        self.holdings.gain(off);
        let entry = self.sheets.add(range, off);
        if let Err(number) = entry.get()
            && let Some(sheet) = self.sheets.get_mut(number)
        {
            for kind in kinds.into_iter().filter(|kind| *kind != off) {
                self.holdings.gain(kind);
                sheet.add_kind(kind);
            }
            for (run, id) in runs {
                sheet.switch(run, off, id);
            }
        }
        while let Some(first) = self.by_start.floor(range.start())
            && let Some(next) = self.by_start.next(first)
            && self.by_start.get(next).0 < range.end()
        {
            if let Some(id) = self.id_at(next) {
                self.holdings.lose(id);
            }
            self.by_start.remove(next);
        }
        let first = self.by_start.floor(range.start())?;
        if let Some(id) = self.id_at(first) {
            self.holdings.lose(id);
        }
        self.by_start.set(first, entry);
        Some(first)
    }

    fn is_cut(&self, word: u64) -> bool {
        !self.cuts.is_empty() && self.cuts.contains_key(&word)
    }

    #[cfg(feature = "check")]
    fn is_cut_or_end(&self, word: u64) -> bool {
        self.is_cut(word) || word == self.space.start() || word == self.space.end()
    }

    /// Has a region begin at `word` until it is [joined](Self::join) again.
    pub(crate) fn cut(&mut self, word: u64) {
        if word <= self.space.start() || word >= self.space.end() {
            return;
        }
        *self.cuts.entry(word).or_default() += 1;
        if let Some(place) = self.by_start.floor(word)
            && self.by_start.get(place).0 != word
        {
            self.unfold(self.region(place));
            if let Some(place) = self.by_start.floor(word)
                && self.by_start.get(place).0 != word
                && let Some(id) = self.id_at(place)
            {
                self.holdings.gain(id);
                self.by_start
                    .insert_behind(Some(place), word, Entry::of(id));
            }
        }
    }

    /// Ends one [`cut`](Self::cut).
    pub(crate) fn join(&mut self, word: u64) {
        match self.cuts.get_mut(&word) {
            None => return,
            Some(count) if *count > 1 => {
                *count -= 1;
                return;
            }
            Some(_) => self.cuts.remove(&word),
        };
        if let Some(around) = Range::between(word - 1, word + 1) {
            self.unfold(around);
        }
        if let Some(here) = self.by_start.floor(word)
            && let Some(before) = self.by_start.previous(here)
            && let (left, right) = (self.by_start.get(before).1, self.by_start.get(here).1)
            && left == right
            && let Ok(right) = right.get()
        {
            self.by_start.remove(here);
            self.holdings.lose(right);
        }
    }

    /// The place of `range`, if it is exactly one region.
    pub(crate) fn place(&self, range: Range) -> Option<Place> {
        let place = self.by_start.floor(range.start())?;
        (self.region(place) == range).then_some(place)
    }

    /// As [`place`](Self::place), with the holding; not of a sheet.
    pub(crate) fn exactly(&self, range: Range) -> Option<(Place, HoldingId)> {
        let place = self.place(range)?;
        Some((place, self.id_at(place)?))
    }

    /// The holding at a place that is known to be true; none of a sheet.
    #[inline]
    pub(crate) fn id_at(&self, place: Place) -> Option<HoldingId> {
        self.by_start.get(place).1.get().ok()
    }

    /// As long as this stays the same, every [`Place`] stays true, and regions stay where they are.
    pub(crate) fn shape(&self) -> u64 {
        self.by_start.shape()
    }

    /// Gives the whole region at `place`, which has a cut at both ends, another holding.
    pub(crate) fn put(&mut self, place: Place, old: HoldingId, new: HoldingId) {
        self.holdings.gain(new);
        self.by_start.set(place, Entry::of(new));
        self.holdings.lose(old);
    }

    pub(crate) fn holding(&self, id: HoldingId) -> &Holding {
        self.holdings.get(id)
    }

    #[inline]
    pub(crate) fn number(&self, id: HoldingId) -> HoldingNumber {
        self.holdings.number(id)
    }

    /// What a number that is still the same one stands for.
    pub(crate) fn numbered_holding(&self, number: HoldingNumber) -> &Holding {
        self.holdings.get(HoldingId::of(number))
    }

    /// The holdings that words in one of `ranges` have, and those that no region has by now, each once.
    pub(crate) fn holdings_in(
        &self,
        ranges: impl Iterator<Item = Range>,
    ) -> impl Iterator<Item = (HoldingNumber, &Holding)> {
        let of_regions = ranges.flat_map(|range| self.numbered(range).map(|(_, id)| id));
        let mut ids: Vec<HoldingId> = of_regions.chain(self.holdings.idle()).collect();
        ids.sort_unstable_by_key(|id| self.holdings.number(*id));
        ids.dedup();
        ids.into_iter()
            .map(|id| (self.holdings.number(id), self.holdings.get(id)))
    }

    /// Keeps a holding, and its number, as they are until it is [let go](Self::let_go).
    pub(crate) fn keep(&mut self, id: HoldingId) {
        self.holdings.gain(id);
    }

    /// Ends one [`keep`](Self::keep).
    pub(crate) fn let_go(&mut self, id: HoldingId) {
        self.holdings.lose(id);
    }

    /// Whether neighbours differ but at cuts, and every holding is counted right: as often as it is in a region
    /// or among `kept`.
    #[cfg(feature = "check")]
    pub(crate) fn check(&self, kept: impl Iterator<Item = HoldingId>) -> bool {
        let entries = || self.by_start.iter();
        let mut pairs = entries().zip(entries().skip(1));
        let starts = |word: &u64| {
            let found = self.by_start.floor(*word);
            found.is_some_and(|place| self.by_start.get(place).0 == *word)
        };
        let has_sheet = |(start, entry): (u64, Entry)| match entry.get() {
            Ok(_) => true,
            Err(number) => self.sheets.get(number).is_some_and(|sheet| {
                let (start_of, end) = (sheet.range.start(), sheet.range.end());
                let next = self
                    .by_start
                    .floor(end)
                    .map(|next| self.by_start.get(next).0);
                let ends = end == self.space.end() || next == Some(end);
                start_of == start && ends && self.is_cut_or_end(start) && self.is_cut_or_end(end)
            }),
        };
        let of_entries = entries().filter_map(|(_, entry)| match entry.get() {
            Ok(id) => Some(id),
            Err(number) => self.sheets.get(number).map(|sheet| sheet.off),
        });
        let of_kinds = self.sheets.iter().flat_map(|sheet| sheet.kinds.iter());
        pairs.all(|((_, left), (start, right))| left != right || self.is_cut(start))
            && self.cuts.keys().all(starts)
            && entries().all(has_sheet)
            && self.sheets.iter().all(Sheet::check)
            && self
                .holdings
                .agrees(of_entries.chain(of_kinds.map(|kind| kind.on)).chain(kept))
    }
}
