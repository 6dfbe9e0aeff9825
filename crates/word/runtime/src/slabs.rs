//! Slabs: memory of the host that the supervisor judges once for a holder, and of which parts are then granted.

use crate::holder::Holder;
use mullion_supervisor::{
    DomainId, Holding, Level, Permission, PreparedGrant, Range, Subject, Supervisor,
};
use mullion_word_table::Table;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Memory of the host that is prepared for a holder, to read, and to read and write.
struct Slab {
    range: Range,
    grants: [Option<PreparedGrant>; 2],
}

/// Which slabs are prepared for one holder, in order, and the place of the one that was used last.
#[derive(Default)]
pub(crate) struct Prepared {
    all: Vec<Slab>,
    hot: usize,
}

/// The slabs of all holders, by first word, with their ends and how many holders have them prepared. They do not overlap:
/// where two holders have slabs, these are the same.
pub(crate) type Slabs = BTreeMap<u64, (u64, u32)>;

/// So many slabs are prepared for a holder. If it needs more, it begins anew.
const SLABS: usize = 4096;
/// Words of a slab, at most: it begins and ends at multiples of these, or where other holdings begin.
pub(crate) const SLAB: u64 = (64 << 10) / 4;

impl Prepared {
    /// Its prepared grant to write.
    #[inline]
    pub(crate) fn to_write(&self, at: usize) -> Option<PreparedGrant> {
        self.all.get(at)?.grants[1]
    }

    /// Any of its prepared grants.
    pub(crate) fn any(&self, at: usize) -> Option<PreparedGrant> {
        self.all.get(at)?.grants.into_iter().flatten().next()
    }

    /// The place of the slab that all of these words are in.
    #[inline]
    pub(crate) fn find(&mut self, range: Range) -> Option<usize> {
        let hot = self.all.get(self.hot);
        if !hot.is_some_and(|slab| slab.range.covers(range)) {
            let behind = self
                .all
                .partition_point(|slab| slab.range.start() <= range.start());
            let found = behind.checked_sub(1)?;
            if !self.all[found].range.covers(range) {
                return None;
            }
            self.hot = found;
        }
        Some(self.hot)
    }

    /// Makes a slab around words of the host of which nobody has anything.
    #[cold]
    pub(crate) fn make(
        &mut self,
        (supervisor, slabs): (&mut Supervisor<Table>, &mut Slabs),
        holder: &Holder,
        range: Range,
    ) -> Option<usize> {
        let Subject::Domain(_) = holder.subject else {
            return None;
        };
        let known = slabs.range(..range.end()).next_back();
        let known = known.and_then(|(start, (end, _))| Range::between(*start, *end));
        let found = match known.filter(|known| known.covers(range)) {
            Some(known) => known,
            None => {
                let (mut first, mut end) = (
                    range.start() / SLAB * SLAB,
                    range.end().next_multiple_of(SLAB),
                );
                // Behind the slab before it, and in front of the next one.
                first = first.max(known.map_or(0, Range::end));
                end = end.min(
                    slabs
                        .range(range.start()..)
                        .next()
                        .map_or(end, |(at, _)| *at),
                );
                let around = Range::between(first, end).filter(|around| around.covers(range))?;
                let mut regions = supervisor.regions(around);
                let is_free = |holding: &Holding| {
                    holding.owner == DomainId::SUPERVISOR && holding.grants.is_empty()
                };
                regions.find_map(|(region, holding)| {
                    let region = region.overlap(around)?;
                    (region.covers(range) && is_free(holding)).then_some(region)
                })?
            }
        };
        if self.all.len() >= SLABS {
            self.let_go(supervisor, slabs);
        }
        slabs.entry(found.start()).or_insert((found.end(), 0)).1 += 1;
        let at = self
            .all
            .partition_point(|slab| slab.range.start() < found.start());
        let grants = [None; 2];
        self.all.insert(
            at,
            Slab {
                range: found,
                grants,
            },
        );
        self.hot = at;
        Some(at)
    }

    /// Gives all slabs up. What is granted in them stays, as regions.
    #[cold]
    pub(crate) fn let_go(&mut self, supervisor: &mut Supervisor<Table>, slabs: &mut Slabs) {
        for old in self.all.drain(..) {
            for grant in old.grants.into_iter().flatten() {
                let _gone = supervisor.release(grant);
            }
            if let Entry::Occupied(mut known) = slabs.entry(old.range.start()) {
                known.get_mut().1 -= 1;
                if known.get().1 == 0 {
                    known.remove();
                }
            }
        }
    }

    /// The prepared grant of a slab.
    #[inline]
    pub(crate) fn grant(
        &mut self,
        supervisor: &mut Supervisor<Table>,
        holder: &Holder,
        at: usize,
        permission: Permission,
    ) -> Option<PreparedGrant> {
        let slab = self.all.get_mut(at)?;
        let grant = &mut slab.grants[usize::from(permission == Permission::ReadWrite)];
        if grant.is_none() {
            let Subject::Domain(id) = holder.subject else {
                return None;
            };
            let made = supervisor.prepare(
                &DomainId::SUPERVISOR,
                id,
                slab.range,
                permission,
                Level::None,
            );
            *grant = made.ok();
        }
        *grant
    }
}
