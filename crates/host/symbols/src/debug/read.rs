//! Debug information, read when somebody asks: the tables of an image, kept, and the bounds.

use crate::budget::Budget;
use crate::elf::Elf;
use crate::entry::{Place, Reading};
use crate::index::{Allowance, Found, Index};
use crate::{Location, Symbols};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Steps for one question, beside those for tables that are kept.
const QUESTION: u64 = 1 << 20;

/// What is kept of an image.
pub(crate) struct Debug {
    index: Option<Index>,
    allowance: Allowance,
    exhausted: bool,
    steps: u64,
}

impl Debug {
    pub(crate) fn new(elf: &Elf) -> Option<Self> {
        Some(Self {
            index: None,
            allowance: Allowance::new(elf),
            exhausted: false,
            steps: 0,
        })
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }
}

impl Symbols {
    /// As [`Symbols::find`], by debug information alone.
    pub(crate) fn locations_of(&mut self, offset: u64) -> Vec<Location> {
        let look_up = |symbols: &mut Self, reading: &Reading<'_>, found: &Found| {
            symbols.locations(reading, found, offset).ok()
        };
        self.ask(offset, look_up).flatten().unwrap_or_default()
    }

    /// Asks what the debug information knows of an offset. A parser that panics knows nothing.
    pub(crate) fn ask<R>(
        &mut self,
        offset: u64,
        question: impl FnOnce(&mut Self, &Reading<'_>, &Found) -> R,
    ) -> Option<R> {
        let answer = AssertUnwindSafe(|| {
            let elf = self.elf.clone();
            let found = self.found(offset)?;
            let budget = Budget::new(QUESTION);
            let answer = question(self, &Reading::new(&elf, &budget), &found);
            if let Some(debug) = &mut self.debug {
                debug.exhausted |= budget.left() == 0;
                debug.steps += QUESTION - budget.left();
            }
            Some(answer)
        });
        catch_unwind(answer).ok().flatten()
    }

    fn found(&mut self, offset: u64) -> Option<Found> {
        self.with_index(|index, elf, allowance| index.find(elf, offset, allowance))
            .flatten()
    }

    /// The names around an entry, the innermost first.
    pub(crate) fn scopes(&mut self, place: Place, most: usize) -> Vec<gimli::UnitOffset> {
        self.with_index(|index, elf, allowance| {
            let tables = index.tables(elf, place.unit, allowance);
            tables.map(|tables| tables.scopes(place.entry, most))
        })
        .flatten()
        .unwrap_or_default()
    }

    /// `None` if debug information is not to be read.
    pub(crate) fn with_index<R>(
        &mut self,
        use_it: impl FnOnce(&mut Index, &Elf, &mut Allowance) -> R,
    ) -> Option<R> {
        let debug = self.debug.as_mut()?;
        let before = debug.allowance.steps();
        let index = debug
            .index
            .get_or_insert_with(|| Index::read(&self.elf, &mut debug.allowance));
        let done = use_it(index, &self.elf, &mut debug.allowance);
        debug.exhausted |= debug.allowance.is_spent();
        debug.steps += before - debug.allowance.steps();
        Some(done)
    }
}
