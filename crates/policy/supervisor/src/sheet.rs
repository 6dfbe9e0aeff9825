//! Regions of which parts come and go: a bit for each word instead of a region for each part.
//!
//! ```text
//!   by_start:   ... | other | sheet 3                                  | other | ...
//!                             off: (owner)
//!                             kind 0: (owner, module 7: read-write)   ....1111............
//!                             kind 1: (owner, module 9: read)         .............111....
//!                             any                                     ....1111.....111....
//! ```
//!
//! A word whose bit is in no kind has `off`. A word's bit is in one kind at most, and then in `any`. So a grant of a part and
//! its revocation look at bits and write bits, whatever the part's length and wherever it begins. All other changes of these words
//! first make regions of the sheet ([`Regions::unfold`](crate::region::Regions)), and the next parts make a sheet of the regions.

use crate::holdings::HoldingId;
use alloc::vec;
use alloc::vec::Vec;
use mullion_terms::range::Range;

/// What a region's entry says: its holding, or the sheet that has its words' holdings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry(u32);

/// Of an entry that is a sheet's. Holdings never have so high a number: each takes more than two bytes of memory.
const SHEET: u32 = 1 << 31;

impl Entry {
    pub(crate) fn of(id: HoldingId) -> Entry {
        Entry(id.get() & !SHEET)
    }

    /// The holding, or the number of the sheet.
    #[inline]
    pub(crate) fn get(self) -> Result<HoldingId, u32> {
        match self.0 & SHEET {
            0 => Ok(HoldingId::from_number(self.0)),
            _ => Err(self.0 & !SHEET),
        }
    }
}

/// All sheets, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheets {
    all: Vec<Option<Sheet>>,
    free: Vec<u32>,
    count: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) range: Range,
    pub(crate) off: HoldingId,
    any: Bits,
    pub(crate) kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) on: HoldingId,
    words: Bits,
}

impl Sheets {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Sheet> {
        self.all.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Sheet> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    pub(crate) fn add(&mut self, range: Range, off: HoldingId) -> Entry {
        let sheet = Sheet {
            range,
            off,
            any: Bits::new(range.count()),
            kinds: Vec::new(),
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() as u32 - 1
        });
        self.all[number as usize] = Some(sheet);
        self.count += 1;
        Entry(number | SHEET)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Sheet> {
        let sheet = self.all.get_mut(number as usize)?.take()?;
        self.free.push(number);
        self.count -= 1;
        Some(sheet)
    }

    #[cfg(feature = "check")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sheet> {
        self.all.iter().flatten()
    }
}

impl Sheet {
    /// The number of the kind with this holding.
    #[inline]
    pub(crate) fn kind(&self, on: HoldingId) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.on == on)
    }

    pub(crate) fn add_kind(&mut self, on: HoldingId) -> usize {
        let words = Bits::new(self.range.count());
        self.kinds.push(Kind { on, words });
        self.kinds.len() - 1
    }

    /// Gives a part another holding, if each of its words has `from`, and there is a kind for `to`.
    #[inline]
    pub(crate) fn turn(&mut self, part: Range, from: HoldingId, to: HoldingId) -> bool {
        let is_on = from == self.off;
        if !is_on && to != self.off {
            return self.turn_kind(part, from, to);
        }
        let Some(kind) = self.kind(if is_on { to } else { from }) else {
            return false;
        };
        let (first, end) = self.places(part);
        let (any, words) = (&mut self.any, &mut self.kinds[kind].words);
        let (asked, other) = match is_on {
            true => (any, words),
            false => (words, any),
        };
        let is_done = asked.turn(first, end, is_on);
        if is_done {
            other.set(first, end, is_on);
        }
        is_done
    }

    /// Takes `on` from one part and gives it to another one; whether that is done. Each word of the first has it, and each of
    /// the other one has `off` then.
    #[inline]
    pub(crate) fn shift(&mut self, on: HoldingId, from: Range, to: Range) -> bool {
        let Some(kind) = self.kind(on) else {
            return false;
        };
        let (old, new) = (self.places(from), self.places(to));
        let (any, words) = (&mut self.any, &mut self.kinds[kind].words);
        // Nearly all parts are small, and each lies in one cell.
        let (gone, come) = (Bits::cells(old.0, old.1), Bits::cells(new.0, new.1));
        if gone.0 != gone.1 || come.0 != come.1 {
            return Bits::shift_many((any, words), old, new);
        }
        let (out, into) = (gone.2 & gone.3, come.2 & come.3);
        let has_all = words.0[gone.0] & out == out;
        // The words that go may be among those that come.
        let own = if gone.0 == come.0 { out } else { 0 };
        let is_free = any.0[come.0] & into & !own == 0;
        if !(has_all && is_free) {
            return false;
        }
        for bits in [any, words] {
            bits.0[gone.0] &= !out;
            bits.0[come.0] |= into;
        }
        true
    }

    /// As [`turn`](Self::turn), from one kind to another one.
    fn turn_kind(&mut self, part: Range, from: HoldingId, to: HoldingId) -> bool {
        let (Some(kind), Some(_)) = (self.kind(from), self.kind(to)) else {
            return false;
        };
        let (first, end) = self.places(part);
        let is_it = self.kinds[kind].words.is_all(first, end, true);
        if is_it {
            self.switch(part, from, to);
        }
        is_it
    }

    /// Gives a part another holding. Whoever calls this sees to it that there is a kind for it.
    #[inline]
    pub(crate) fn switch(&mut self, part: Range, from: HoldingId, to: HoldingId) {
        let (first, end) = self.places(part);
        for kind in &mut self.kinds {
            if kind.on == from || kind.on == to {
                kind.words.set(first, end, kind.on == to);
            }
        }
        if (from == self.off) != (to == self.off) {
            self.any.set(first, end, to != self.off);
        }
    }

    /// Takes kinds away that no word has, and says which.
    pub(crate) fn prune(&mut self) -> Vec<HoldingId> {
        let gone = |kind: &Kind| kind.words.0.iter().all(|cell| *cell == 0);
        let all = core::mem::take(&mut self.kinds);
        let (gone, kept): (Vec<Kind>, Vec<Kind>) = all.into_iter().partition(gone);
        self.kinds = kept;
        gone.into_iter().map(|kind| kind.on).collect()
    }

    #[inline]
    pub(crate) fn at(&self, word: u64) -> HoldingId {
        let at = word - self.range.start();
        if !self.any.get(at) {
            return self.off;
        }
        let kind = self.kinds.iter().find(|kind| kind.words.get(at));
        kind.map_or(self.off, |kind| kind.on)
    }

    /// The first words of `range` that have the same.
    #[inline]
    pub(crate) fn run(&self, range: Range) -> (Range, HoldingId) {
        let id = self.at(range.start());
        let (from, to) = self.places(range);
        let words = match self.kind(id).filter(|_| id != self.off) {
            Some(kind) => &self.kinds[kind].words,
            None => &self.any,
        };
        let end = self.range.start() + words.same_until(from, to);
        (Range::between(range.start(), end).unwrap_or(range), id)
    }

    /// Whether each word's bit is in `any` and in one kind, or in none.
    #[cfg(feature = "check")]
    pub(crate) fn check(&self) -> bool {
        (0..self.range.count()).all(|at| {
            let kinds = self.kinds.iter().filter(|kind| kind.words.get(at));
            kinds.count() == usize::from(self.any.get(at))
        })
    }

    fn places(&self, part: Range) -> (u64, u64) {
        let first = self.range.start();
        (part.start() - first, part.end() - first)
    }
}

/// A bit for each word.
#[derive(Clone, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: u64) -> Bits {
        Bits(vec![0; count.div_ceil(64) as usize])
    }

    fn get(&self, at: u64) -> bool {
        self.0[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// The cells that `from..to` is in, and the bits of the first and of the last one. `from` is below `to`.
    #[inline]
    fn cells(from: u64, to: u64) -> (usize, usize, u64, u64) {
        let (first, last) = (from as usize / 64, (to - 1) as usize / 64);
        (first, last, !0 << (from % 64), !0 >> (63 - (to - 1) % 64))
    }

    #[inline]
    fn is_all(&self, from: u64, to: u64, value: bool) -> bool {
        let (first, last, head, tail) = Bits::cells(from, to);
        let wanted = if value { !0 } else { 0 };
        if first == last {
            return (self.0[first] ^ wanted) & head & tail == 0;
        }
        self.is_all_of_many((first, last), (head, tail), wanted)
    }

    /// Of several cells.
    #[inline]
    fn is_all_of_many(
        &self,
        (first, last): (usize, usize),
        (head, tail): (u64, u64),
        wanted: u64,
    ) -> bool {
        let cells = &self.0[first..=last];
        let (Some(low), Some(high)) = (cells.first(), cells.last()) else {
            return false;
        };
        let middle = cells[1..cells.len() - 1].iter();
        let middle = middle.fold(0, |all, cell| all | (cell ^ wanted));
        ((low ^ wanted) & head) | middle | ((high ^ wanted) & tail) == 0
    }

    #[inline]
    fn set(&mut self, from: u64, to: u64, value: bool) {
        let (first, last, head, tail) = Bits::cells(from, to);
        if first != last {
            return self.set_many((first, last), (head, tail), value);
        }
        let (cell, bits) = (&mut self.0[first], head & tail);
        *cell = if value { *cell | bits } else { *cell & !bits };
    }

    /// Of several cells.
    #[inline]
    fn set_many(&mut self, (first, last): (usize, usize), (head, tail): (u64, u64), value: bool) {
        let mut write = |at: usize, bits: u64| {
            let cell = &mut self.0[at];
            *cell = if value { *cell | bits } else { *cell & !bits };
        };
        write(first, head);
        write(last, tail);
        self.0[first + 1..last].fill(if value { !0 } else { 0 });
    }

    /// [`Sheet::shift`] of parts in several cells: of all kinds, and of the kind.
    fn shift_many((any, words): (&mut Bits, &mut Bits), old: (u64, u64), new: (u64, u64)) -> bool {
        if !words.turn(old.0, old.1, false) {
            return false;
        }
        any.set(old.0, old.1, false);
        let is_free = any.is_all(new.0, new.1, false);
        let (first, end) = if is_free { new } else { old };
        any.set(first, end, true);
        words.set(first, end, true);
        is_free
    }

    /// Makes all of them `value`, if none is yet.
    #[inline]
    fn turn(&mut self, from: u64, to: u64, value: bool) -> bool {
        let is_free = self.is_all(from, to, !value);
        if is_free {
            self.set(from, to, value);
        }
        is_free
    }

    /// Up to where all are as the one at `from`, or `to`.
    #[inline]
    fn same_until(&self, from: u64, to: u64) -> u64 {
        let value = self.get(from);
        let mut at = from;
        while at < to {
            let differing = self.0[at as usize / 64] ^ if value { !0 } else { 0 };
            let left = differing >> (at % 64);
            if left != 0 {
                return to.min(at + u64::from(left.trailing_zeros()));
            }
            at = (at / 64 + 1) * 64;
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_a_list() {
        let mut state = 7u64;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        let (mut bits, mut list) = (Bits::new(300), vec![false; 300]);
        for _ in 0..4_000 {
            let from = below(300);
            let to = from + 1 + below(300 - from);
            let part = from as usize..to as usize;
            let value = below(2) == 1;
            let same = list[part.clone()].iter().all(|one| *one == value);
            assert_eq!(bits.is_all(from, to, value), same);
            let differs = |at: &u64| list[*at as usize] != list[from as usize];
            let end = (from..to).find(differs).unwrap_or(to);
            assert_eq!(bits.same_until(from, to), end);
            if below(3) == 0 {
                bits.set(from, to, value);
                list[part].fill(value);
            }
        }
    }

    /// Parts of any length, in one cell or in several, against a list.
    #[test]
    fn a_shift_takes_from_one_part_and_gives_to_another_if_both_are_as_it_says() {
        let mut state = 7u64;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        let (off, one, two) = (1, 2, 3);
        let id = HoldingId::from_number;
        let range = Range::words(1000, 300).expect("a range");
        let mut sheets = Sheets::default();
        let number = sheets.add(range, id(off)).get().expect_err("a sheet's");
        let sheet = sheets.get_mut(number).expect("it was added");
        for kind in [one, two] {
            sheet.add_kind(id(kind));
        }
        let mut list = [off; 300];
        let (mut done, mut not) = ([0, 0], [0, 0]);
        for _ in 0..20_000 {
            let most = [3, 6, 100][below(3) as usize];
            let mut part = || {
                let first = below(300);
                (first as usize, (first + 1 + below(most)).min(300) as usize)
            };
            let (from, to) = (part(), part());
            let words = |(first, end)| {
                Range::between(1000 + first as u64, 1000 + end as u64).expect("a range")
            };
            let on = [one, two][below(2) as usize];
            // Now and then all are given back. Mostly the first part is as it should be.
            let (set, value) = match below(8) {
                0 => ((0, 300), off),
                1 | 2 => ((from.0, from.0), on),
                _ => (from, on),
            };
            for (at, word) in list.iter_mut().enumerate().take(set.1).skip(set.0) {
                sheet.switch(words((at, at + 1)), id(*word), id(value));
                *word = value;
            }
            let has_all = list[from.0..from.1].iter().all(|word| *word == on);
            let mut after = list;
            after[from.0..from.1].fill(off);
            let is_free = after[to.0..to.1].iter().all(|word| *word == off);
            after[to.0..to.1].fill(on);
            let is_done = sheet.shift(id(on), words(from), words(to));
            assert_eq!(is_done, has_all && is_free, "{from:?} to {to:?}");
            let mut parts = [from, to].into_iter();
            let way = usize::from(parts.all(|part| part.0 / 64 == (part.1 - 1) / 64));
            if is_done {
                list = after;
                done[way] += 1;
            } else {
                not[way] += 1;
            }
            assert!(sheet.check());
            for (at, word) in (1000..).zip(list) {
                assert_eq!(sheet.at(at), id(word), "word {at}");
            }
        }
        let counts = [done, not].into_iter().flatten();
        assert!(counts.min() > Some(100), "{done:?} {not:?}");
    }
}
