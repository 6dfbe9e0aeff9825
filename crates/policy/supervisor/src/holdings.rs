//! Holdings, each kept once and known by a number.

use crate::region::Grant;
use crate::region::Holding;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mullion_terms::domain::DomainId;
use mullion_terms::permission::{Level, Permission};
use mullion_terms::subject::Subject;

/// The number of a holding, for as long as a region has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoldingId(u32);

impl HoldingId {
    /// The one that a number stands for, if its edition is the present one.
    pub(crate) fn of(number: HoldingNumber) -> HoldingId {
        HoldingId(number.number)
    }

    pub(crate) fn get(self) -> u32 {
        self.0
    }

    pub(crate) fn from_number(number: u32) -> HoldingId {
        HoldingId(number)
    }
}

/// A holding as a number: what a mechanism is told of instead of names ([`Mechanism::hold`](crate::mechanism::Mechanism::hold)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldingNumber {
    /// Small, and given out again once no word has the holding.
    pub number: u32,
    /// Changes whenever the number gets another meaning.
    pub edition: u32,
}

/// No next slot in a bucket.
const END: u32 = u32::MAX;

/// Holdings that no region has any more are kept, so that a grant that comes and goes finds them again: so
/// many, and none with more grants.
const IDLE: usize = 64;
const IDLE_GRANTS: usize = 64;

/// Answers kept of [`Holdings::with`].
const STEPS: usize = 256;

/// Every holding once: regions hold numbers, so that alike means equal numbers.
#[derive(Clone, Debug)]
pub(crate) struct Holdings {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The first slot of each bucket, or [`END`]; a power of two of them.
    buckets: Vec<u32>,
    /// Slots that no region had when they came here, the oldest first.
    idle: VecDeque<u32>,
    /// What has been asked lately, at a place that the question gives.
    steps: Vec<Option<Step>>,
}

#[derive(Clone, Debug)]
struct Slot {
    holding: Holding,
    /// [`hash`] of `holding`.
    hash: u64,
    /// How many regions have it, and how often it is kept otherwise ([`Holdings::gain`]).
    regions: u32,
    /// Changes whenever `holding` does.
    version: u32,
    /// The next slot in its bucket.
    next: u32,
    is_idle: bool,
}

/// `from` with `grant` for `subject` is `to`.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: (HoldingId, u32),
    subject: Subject,
    grant: Grant,
    to: (HoldingId, u32),
}

impl Holdings {
    pub(crate) fn new() -> Holdings {
        Holdings {
            slots: Vec::new(),
            free: Vec::new(),
            buckets: alloc::vec![END; 16],
            idle: VecDeque::new(),
            steps: alloc::vec![None; STEPS],
        }
    }

    /// The number that mechanisms know it by.
    #[inline]
    pub(crate) fn number(&self, id: HoldingId) -> HoldingNumber {
        HoldingNumber {
            number: id.0,
            edition: self.slots[id.0 as usize].version,
        }
    }

    pub(crate) fn get(&self, id: HoldingId) -> &Holding {
        &self.slots[id.0 as usize].holding
    }

    /// One more region has it, or somebody who wants it to stay as it is.
    pub(crate) fn gain(&mut self, id: HoldingId) {
        self.slots[id.0 as usize].regions += 1;
    }

    /// The reverse of [`gain`](Self::gain).
    pub(crate) fn lose(&mut self, id: HoldingId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.regions -= 1;
        if slot.regions > 0 || slot.is_idle {
            return;
        }
        if slot.holding.grants.len() > IDLE_GRANTS {
            self.forget(id.0);
            return;
        }
        slot.is_idle = true;
        self.idle.push_back(id.0);
        if self.idle.len() > IDLE
            && let Some(oldest) = self.idle.pop_front()
        {
            let slot = &mut self.slots[oldest as usize];
            slot.is_idle = false;
            if slot.regions == 0 {
                self.forget(oldest);
            }
        }
    }

    /// The number of `holding`, which no region has by this.
    pub(crate) fn intern(&mut self, holding: Holding) -> HoldingId {
        let hash = hash(&holding);
        match self.find(hash, |found| *found == holding) {
            Some(found) => found,
            None => self.add(holding, hash),
        }
    }

    /// The number of the holding that `from` is once `subject` holds `grant`. Where `alone`, the one region
    /// that has `from` is about to get the answer: then it may be `from` itself, changed.
    pub(crate) fn with(
        &mut self,
        from: HoldingId,
        subject: Subject,
        grant: Grant,
        alone: bool,
    ) -> HoldingId {
        let slot = &self.slots[from.0 as usize];
        let key = (from, slot.version);
        let asked = (mix(u64::from(from.0)) ^ hash_grant(subject, grant)) as usize % STEPS;
        if let Some(step) = self.steps[asked]
            && (step.from, step.subject, step.grant) == (key, subject, grant)
            && self.slots[step.to.0.0 as usize].version == step.to.1
        {
            return step.to.0;
        }
        let old = slot.holding.direct(subject);
        let mut hash = slot.hash;
        if old.access != Permission::None {
            hash ^= hash_grant(subject, old);
        }
        if grant.access != Permission::None {
            hash ^= hash_grant(subject, grant);
        }
        let base = &slot.holding;
        let found = self.find(hash, |found| is_with(found, base, subject, grant));
        let to = match found {
            Some(found) => found,
            None if alone && slot.regions == 1 => {
                self.unchain(from.0);
                let slot = &mut self.slots[from.0 as usize];
                slot.holding.set(subject, grant);
                slot.hash = hash;
                slot.version = slot.version.wrapping_add(1);
                self.chain(from.0);
                return from;
            }
            None => {
                let mut holding = base.clone();
                holding.set(subject, grant);
                self.add(holding, hash)
            }
        };
        self.steps[asked] = Some(Step {
            from: key,
            subject,
            grant,
            to: (to, self.slots[to.0 as usize].version),
        });
        to
    }

    fn find(&self, hash: u64, is_it: impl Fn(&Holding) -> bool) -> Option<HoldingId> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != END {
            let slot = &self.slots[at as usize];
            if slot.hash == hash && is_it(&slot.holding) {
                return Some(HoldingId(at));
            }
            at = slot.next;
        }
        None
    }

    fn add(&mut self, holding: Holding, hash: u64) -> HoldingId {
        let at = match self.free.pop() {
            Some(at) => {
                let slot = &mut self.slots[at as usize];
                slot.holding = holding;
                slot.hash = hash;
                at
            }
            None => {
                let at = self.slots.len() as u32;
                self.slots.push(Slot {
                    holding,
                    hash,
                    regions: 0,
                    version: 0,
                    next: END,
                    is_idle: false,
                });
                if self.slots.len() > self.buckets.len() {
                    self.grow();
                }
                at
            }
        };
        self.chain(at);
        HoldingId(at)
    }

    fn forget(&mut self, at: u32) {
        self.unchain(at);
        let slot = &mut self.slots[at as usize];
        slot.version = slot.version.wrapping_add(1);
        slot.holding.grants = Vec::new();
        self.free.push(at);
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn chain(&mut self, at: u32) {
        let bucket = self.bucket(self.slots[at as usize].hash);
        self.slots[at as usize].next = self.buckets[bucket];
        self.buckets[bucket] = at;
    }

    fn unchain(&mut self, at: u32) {
        let bucket = self.bucket(self.slots[at as usize].hash);
        let behind = self.slots[at as usize].next;
        if self.buckets[bucket] == at {
            self.buckets[bucket] = behind;
            return;
        }
        let mut before = self.buckets[bucket];
        while before != END {
            let next = &mut self.slots[before as usize].next;
            if *next == at {
                *next = behind;
                return;
            }
            before = *next;
        }
    }

    /// Twice as many buckets. Only called where every slot but the last is in one, or free.
    fn grow(&mut self) {
        let chained: Vec<u32> = self.ids().map(|id| id.0).collect();
        self.buckets = alloc::vec![END; self.buckets.len() * 2];
        for at in chained {
            self.chain(at);
        }
    }

    /// Those that no region has, and some that one has again.
    pub(crate) fn idle(&self) -> impl Iterator<Item = HoldingId> + '_ {
        self.idle.iter().copied().map(HoldingId)
    }

    /// All that are known, those that no region has by now too.
    fn ids(&self) -> impl Iterator<Item = HoldingId> + '_ {
        self.buckets.iter().flat_map(|first| {
            let first = (*first != END).then_some(*first);
            let next = |at: &u32| Some(self.slots[*at as usize].next).filter(|next| *next != END);
            core::iter::successors(first, next).map(HoldingId)
        })
    }

    /// Whether every holding is there once, and is counted as often as it comes in `regions`.
    #[cfg(feature = "check")]
    pub(crate) fn agrees(&self, regions: impl Iterator<Item = HoldingId>) -> bool {
        let mut counted = alloc::vec![0; self.slots.len()];
        for id in regions {
            counted[id.0 as usize] += 1;
        }
        let mut holdings: Vec<&Holding> = self.ids().map(|id| self.get(id)).collect();
        holdings.sort_unstable();
        let once = holdings.windows(2).all(|two| two[0] < two[1]);
        let mut listed = alloc::vec![false; self.slots.len()];
        for id in self.ids() {
            listed[id.0 as usize] = true;
        }
        once && self
            .slots
            .iter()
            .zip(counted)
            .zip(listed)
            .all(|((slot, regions), listed)| match listed {
                true => slot.regions == regions && slot.hash == hash(&slot.holding),
                false => regions == 0,
            })
    }
}

/// Whether `found` is `base` once `subject` holds `grant`.
fn is_with(found: &Holding, base: &Holding, subject: Subject, grant: Grant) -> bool {
    if found.owner != base.owner || found.direct(subject) != grant {
        return false;
    }
    let others = |holding: &Holding| {
        let at = holding
            .grants
            .partition_point(|(other, _)| *other < subject);
        let has = holding
            .grants
            .get(at)
            .is_some_and(|(other, _)| *other == subject);
        (at, at + usize::from(has))
    };
    let (before, behind) = others(found);
    let (base_before, base_behind) = others(base);
    found.grants[..before] == base.grants[..base_before]
        && found.grants[behind..] == base.grants[base_behind..]
}

/// The same for equal holdings. A grant more or less changes it in one step, whatever else is granted. It
/// spreads holdings over buckets and protects nothing: who finds two with the same makes look-ups slower.
fn hash(holding: &Holding) -> u64 {
    let grants = holding
        .grants
        .iter()
        .map(|(subject, grant)| hash_grant(*subject, *grant));
    grants.fold(mix(u64::from(holding.owner.get())), |all, one| all ^ one)
}

fn hash_grant(subject: Subject, grant: Grant) -> u64 {
    let who = match subject {
        Subject::Domain(domain) => u64::from(domain.get()),
        Subject::Group(group) => 1 << 32 | u64::from(group.get()),
    };
    let (kind, to) = match grant.access {
        Permission::None => (0, DomainId::SUPERVISOR),
        Permission::Read => (1, DomainId::SUPERVISOR),
        Permission::ReadWrite => (2, DomainId::SUPERVISOR),
        Permission::ExecuteRead => (3, DomainId::SUPERVISOR),
        Permission::SwitchGate { to } => (4, to),
        Permission::ReturnGate => (5, DomainId::SUPERVISOR),
    };
    let export = match grant.export {
        Level::None => 0,
        Level::Read => 1,
        Level::Full => 2,
    };
    let what = u64::from(to.get()) << 8 | kind << 2 | export;
    mix(mix(who) ^ what)
}

/// Spreads a number over 64 bits (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
