//! Which number stands for which holding.
//!
//! The shadow has numbers of 16 bits, the supervisor has numbers of its own for holdings. What is true between
//! calls:
//!
//! - Each word of the shadow has a number of the holding that the supervisor says it has, or a *spent* one, or 0.
//! - A number that is not *fixed* belongs to one holding. A holding may have several: when a domain ends, two
//!   holdings can become one, and the shadow is not touched for that.
//! - *Fixed* are 0, which means nobody, and each domain's own number, which means that this domain, and nobody else,
//!   may read and write. What a fixed number means never changes, because code compares with its own
//!   number without looking further.
//! - A *spent* number meant something before a domain's end and means nobody now. It may be in the shadow until
//!   the table is collected.
//! - A number that words have *left* may have been read there before. It gives a domain more only after the threads
//!   of that domain have been brought past their checks. Else one of them could use the new right on those words.
//! - A *resting* number is in no word. Some thread may have read it before that. So it keeps its meaning until
//!   all threads have been brought past their checks; then it is free.

use crate::Access;
use crate::counted::Counted;
use mullion_supervisor::{DomainId, HoldingNumber};
use mullion_word_abi::{OWN_FIRST, OWN_LAST};

/// Nobody.
pub(crate) const NOBODY: u16 = 0;

/// Who may do what by a number: in order of domain, none with nothing.
pub(crate) type Meaning = Vec<(DomainId, Access)>;

/// The numbers of a holding.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) edition: u32,
    /// What new words get.
    pub(crate) first: u16,
    /// What other words may have; none of them is fixed.
    pub(crate) more: Vec<u16>,
}

/// What each holding's numbers are, and what each number means.
#[derive(Debug)]
struct Told {
    /// By the supervisor's number.
    given: Vec<Option<Given>>,
    /// By our number.
    meanings: Vec<Meaning>,
    /// Numbers of holdings whose place another holding has taken. Within the change that did that, it may still be told
    /// what has become of them.
    displaced: Vec<(u32, Given)>,
}

#[derive(Debug)]
pub(crate) struct Numbers {
    told: Counted<Told>,
    is_fixed: Vec<bool>,
    /// Whether words had it that have another one now, while a thread may still have read it there.
    is_left: Vec<bool>,
    /// Never given out so far, for holdings: these and what lies between.
    fresh: (u32, u32),
    free: Vec<u16>,
    /// Never given out so far, for domains: these and what lies between.
    fresh_own: (u32, u32),
    free_own: Vec<u16>,
    pub(crate) resting: Vec<u16>,
    pub(crate) spent: Vec<u16>,
}

impl Numbers {
    /// With so many numbers for holdings, and for so many domains.
    pub(crate) fn new(limit: u16, domains: u32) -> Numbers {
        let (limit, last) = (limit.min(OWN_FIRST - 1), u32::from(OWN_LAST));
        let domains = domains.min(last - u32::from(OWN_FIRST) + 1);
        let all = usize::from(OWN_LAST) + 1;
        let mut numbers = Numbers {
            told: Counted::new(Told {
                given: Vec::new(),
                meanings: vec![Vec::new(); all],
                displaced: Vec::new(),
            }),
            is_fixed: vec![false; all],
            is_left: vec![false; all],
            fresh: (1, u32::from(limit)),
            free: Vec::new(),
            fresh_own: (last + 1 - domains, last),
            free_own: Vec::new(),
            resting: Vec::new(),
            spent: Vec::new(),
        };
        numbers.is_fixed[usize::from(NOBODY)] = true;
        numbers
    }

    /// Whether one more domain can have an own number now.
    pub(crate) fn has_own(&self) -> bool {
        self.fresh_own.0 <= self.fresh_own.1 || !self.free_own.is_empty()
    }

    /// How many can be given out to holdings now.
    pub(crate) fn left(&self) -> u64 {
        let (low, high) = self.fresh;
        u64::from((high + 1).saturating_sub(low)) + self.free.len() as u64
    }

    /// While this is the same, so is what each holding's numbers are, and what each number means.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.told.changes()
    }

    pub(crate) fn meaning(&self, number: u16) -> &Meaning {
        &self.told.meanings[usize::from(number)]
    }

    pub(crate) fn replace_meaning(&mut self, number: u16, meaning: Meaning) -> Meaning {
        std::mem::replace(
            &mut self.told.change().meanings[usize::from(number)],
            meaning,
        )
    }

    pub(crate) fn meaning_mut(&mut self, number: u16) -> &mut Meaning {
        &mut self.told.change().meanings[usize::from(number)]
    }

    pub(crate) fn is_fixed(&self, number: u16) -> bool {
        self.is_fixed[usize::from(number)]
    }

    /// Words of a holding get another number.
    pub(crate) fn leave(&mut self, holding: HoldingNumber) {
        let displaced = self
            .displaced_at(holding)
            .map(|at| &self.told.displaced[at].1);
        let given = self.told.given.get(holding.number as usize);
        let given = given.and_then(Option::as_ref);
        let given = given.filter(|given| given.edition == holding.edition);
        let Some(given) = given.or(displaced) else {
            return;
        };
        for number in given.more.iter().chain([&given.first]) {
            self.is_left[usize::from(*number)] = true;
        }
    }

    pub(crate) fn is_left(&self, number: u16) -> bool {
        self.is_left[usize::from(number)]
    }

    /// A number for a holding.
    pub(crate) fn take(&mut self) -> Option<u16> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        let (low, high) = self.fresh;
        (low <= high).then(|| {
            self.fresh.0 += 1;
            low as u16
        })
    }

    /// A number that means this domain alone, for ever.
    pub(crate) fn take_own(&mut self, domain: DomainId) -> Option<u16> {
        let number = match self.free_own.pop() {
            Some(number) => number,
            None => {
                let (low, high) = self.fresh_own;
                if low > high {
                    return None;
                }
                self.fresh_own.1 -= 1;
                high as u16
            }
        };
        self.is_fixed[usize::from(number)] = true;
        self.told.change().meanings[usize::from(number)] = vec![(domain, Access::READ_WRITE)];
        Some(number)
    }

    /// The numbers of a holding in this edition.
    #[inline]
    pub(crate) fn known(&self, holding: HoldingNumber) -> Option<&Given> {
        let found = self.told.given.get(holding.number as usize)?.as_ref();
        let found = found.filter(|given| given.edition == holding.edition);
        found.or_else(|| {
            self.displaced_at(holding)
                .map(|at| &self.told.displaced[at].1)
        })
    }

    fn displaced_at(&self, holding: HoldingNumber) -> Option<usize> {
        let mut displaced = self.told.displaced.iter();
        displaced.position(|(number, given)| {
            (*number, given.edition) == (holding.number, holding.edition)
        })
    }

    /// Another holding takes this one's place: its numbers are in words until the change says something else.
    pub(crate) fn displace(&mut self, number: u32, given: Given) {
        self.told.change().displaced.push((number, given));
    }

    /// The change is over: of what nothing was said, no word is left.
    #[inline]
    pub(crate) fn rest_displaced(&mut self) {
        if self.told.displaced.is_empty() {
            return;
        }
        for (_, given) in std::mem::take(&mut self.told.change().displaced) {
            self.rest(given);
        }
    }

    /// Takes the numbers away from a holding, of whatever edition.
    pub(crate) fn remove(&mut self, holding: HoldingNumber) -> Option<Given> {
        let given = &mut self.told.change().given;
        given.get_mut(holding.number as usize)?.take()
    }

    /// As [`remove`](Self::remove), if the edition is this one.
    pub(crate) fn remove_known(&mut self, holding: HoldingNumber) -> Option<Given> {
        self.known(holding)?;
        match self.displaced_at(holding) {
            Some(at) => Some(self.told.change().displaced.swap_remove(at).1),
            None => self.remove(holding),
        }
    }

    pub(crate) fn give(&mut self, holding: HoldingNumber, first: u16, more: Vec<u16>) {
        let at = holding.number as usize;
        let all = &mut self.told.change().given;
        if all.len() <= at {
            all.resize_with(at + 1, || None);
        }
        all[at] = Some(Given {
            edition: holding.edition,
            first,
            more,
        });
    }

    /// No word has the numbers of `given` any more.
    pub(crate) fn rest(&mut self, given: Given) {
        self.told.change();
        let all = std::iter::once(given.first).chain(given.more);
        let loose: Vec<u16> = all
            .filter(|number| *number < OWN_FIRST && !self.is_fixed(*number))
            .collect();
        self.resting.extend(loose);
    }

    /// Words have this number that nobody may use by it.
    pub(crate) fn spend(&mut self, number: u16) {
        self.told.change();
        if number != NOBODY {
            self.is_fixed[usize::from(number)] = true;
            self.spent.push(number);
        }
    }

    /// All numbers besides the first of each holding: for a shadow that is to be written anew.
    pub(crate) fn spare(&mut self) -> Vec<u16> {
        let given = self.told.change().given.iter_mut().flatten();
        let mut spare: Vec<u16> = given.flat_map(|given| given.more.drain(..)).collect();
        spare.append(&mut self.spent);
        spare
    }

    /// A number that means nothing any more, to be given out again.
    pub(crate) fn free(&mut self, number: u16) {
        self.told.change();
        self.is_fixed[usize::from(number)] = false;
        self.is_left[usize::from(number)] = false;
        match number < OWN_FIRST {
            true => self.free.push(number),
            false => self.free_own.push(number),
        }
    }
}
