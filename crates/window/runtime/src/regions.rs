//! Which offsets of a window are mapped, and how: bookkeeping without a machine.
//!
//! Regions are sorted, do not overlap, and neighbours that are alike are one.
//! The number of mappings that they take is limited. A process may have 65,530 mappings by
//! default (vm.max_map_count), and a domain must not use up its host's.

use crate::access::Access;
use std::ops::Range;

/// Who put a region there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The loader: a segment of the image. The domain cannot change it.
    Image,
    /// The domain itself, through the system interface.
    Domain,
    /// The host: pages of a shared object. The domain cannot change them.
    Shared,
}

/// A piece of a window, all of it alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) range: Range<u64>,
    pub(crate) access: Access,
    pub(crate) owner: Owner,
}

/// All regions of a window below its data stacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    list: Vec<Region>,
}

impl Regions {
    /// Bytes of its own that the domain may access.
    pub(crate) fn accessible(&self) -> u64 {
        let own = |region: &&Region| region.owner != Owner::Shared;
        let lengths = self
            .list
            .iter()
            .filter(own)
            .filter(|region| region.access != Access::None);
        lengths
            .map(|region| region.range.end - region.range.start)
            .sum()
    }

    /// How many mappings of the kernel they take at most: each region, and each gap in front of one.
    pub(crate) fn mappings(&self) -> usize {
        let gaps = self.list.windows(2);
        let gaps = gaps.filter(|pair| pair[0].range.end < pair[1].range.start);
        self.list.len() + gaps.count()
    }

    /// The region with this offset.
    pub(crate) fn at(&self, offset: u64) -> Option<&Region> {
        let next = self
            .list
            .partition_point(|region| region.range.end <= offset);
        self.list
            .get(next)
            .filter(|region| region.range.start <= offset)
    }

    /// Whether every region of `range` is the domain's own.
    pub(crate) fn is_the_domains(&self, range: &Range<u64>) -> bool {
        self.overlapping(range)
            .all(|region| region.owner == Owner::Domain)
    }

    /// Whether every region of `range` is of a shared object.
    pub(crate) fn is_shared(&self, range: &Range<u64>) -> bool {
        self.overlapping(range)
            .all(|region| region.owner == Owner::Shared)
    }

    /// From the first region behind the image, which is all below `end`, to the last one.
    pub(crate) fn behind(&self, end: u64) -> Option<Range<u64>> {
        let first = self.list.iter().find(|region| region.range.start >= end)?;
        let last = self.list.last()?;
        Some(first.range.start..last.range.end)
    }

    /// Whether some region has a part of `range`.
    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.overlapping(range).next().is_some()
    }

    /// Whether all of `range` is in regions.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        let mut reached = range.start;
        for region in self.overlapping(range) {
            if region.range.start > reached {
                return false;
            }
            reached = region.range.end;
        }
        reached >= range.end
    }

    /// The parts of `range` that are in regions.
    pub(crate) fn parts(&self, range: &Range<u64>) -> Vec<Region> {
        let clip = |region: &Region| Region {
            range: region.range.start.max(range.start)..region.range.end.min(range.end),
            ..region.clone()
        };
        self.overlapping(range).map(clip).collect()
    }

    /// The highest `length` free bytes within `within`.
    pub(crate) fn find_free(&self, within: &Range<u64>, length: u64) -> Option<u64> {
        let mut ceiling = within.end;
        for region in self.list.iter().rev() {
            if region.range.end <= ceiling
                && ceiling.saturating_sub(region.range.end.max(within.start)) >= length
            {
                break;
            }
            ceiling = ceiling.min(region.range.start);
        }
        let start = ceiling.checked_sub(length)?;
        (start >= within.start).then_some(start)
    }

    /// Makes `range` one region, whatever was there.
    pub(crate) fn insert(&mut self, range: Range<u64>, access: Access, owner: Owner) {
        self.remove(&range);
        let place = self
            .list
            .partition_point(|region| region.range.start < range.start);
        self.list.insert(
            place,
            Region {
                range,
                access,
                owner,
            },
        );
        self.merge(place + 1);
        self.merge(place);
    }

    /// Leaves nothing at `range`.
    pub(crate) fn remove(&mut self, range: &Range<u64>) {
        let from = self
            .list
            .partition_point(|region| region.range.end <= range.start);
        let to = self
            .list
            .partition_point(|region| region.range.start < range.end);
        if from >= to {
            return;
        }
        let mut rest = Vec::new();
        for region in &self.list[from..to] {
            for kept in [
                region.range.start..range.start.min(region.range.end),
                range.end.max(region.range.start)..region.range.end,
            ] {
                if kept.start < kept.end {
                    rest.push(Region {
                        range: kept,
                        ..region.clone()
                    });
                }
            }
        }
        self.list.splice(from..to, rest);
    }

    /// Joins the region at `place` with the one before, if they are alike.
    fn merge(&mut self, place: usize) {
        let Some(region) = self.list.get(place).cloned() else {
            return;
        };
        let Some(before) = place
            .checked_sub(1)
            .and_then(|index| self.list.get_mut(index))
        else {
            return;
        };
        if before.range.end == region.range.start
            && before.access == region.access
            && before.owner == region.owner
        {
            before.range.end = region.range.end;
            self.list.remove(place);
        }
    }

    fn overlapping<'a>(&'a self, range: &'a Range<u64>) -> impl Iterator<Item = &'a Region> {
        let from = self
            .list
            .partition_point(|region| region.range.end <= range.start);
        self.list[from..]
            .iter()
            .take_while(|region| region.range.start < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{None as Nothing, Read, ReadWrite};

    fn regions(list: &[(u64, u64, Access)]) -> Regions {
        let mut regions = Regions::default();
        for (start, end, access) in list {
            regions.insert(*start..*end, *access, Owner::Domain);
        }
        regions
    }

    /// One byte of the model per page: the slow, obviously right implementation.
    #[derive(Clone, PartialEq, Debug)]
    struct Model([Option<(Access, Owner)>; 32]);

    impl Model {
        fn of(regions: &Regions) -> Self {
            Self(std::array::from_fn(|page| {
                regions
                    .at(page as u64)
                    .map(|region| (region.access, region.owner))
            }))
        }
    }

    #[test]
    fn agrees_with_a_model_page_by_page() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut regions = Regions::default();
        let mut model = Model([None; 32]);
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let start = random(32);
            let end = start + 1 + random(32 - start);
            if random(3) == 0 {
                regions.remove(&(start..end));
                model.0[start as usize..end as usize].fill(None);
            } else {
                let access = [Nothing, Read, ReadWrite][random(3) as usize];
                let owner = [Owner::Image, Owner::Domain][random(2) as usize];
                regions.insert(start..end, access, owner);
                model.0[start as usize..end as usize].fill(Some((access, owner)));
            }
            assert_eq!(Model::of(&regions), model);
            let accessible = model
                .0
                .iter()
                .flatten()
                .filter(|(access, _)| *access != Nothing)
                .count();
            assert_eq!(regions.accessible(), accessible as u64);
            assert_eq!(
                regions.covers(&(start..end)),
                model.0[start as usize..end as usize]
                    .iter()
                    .all(Option::is_some)
            );
            let alike = |pair: &[Region]| {
                pair[0].range.end == pair[1].range.start
                    && (pair[0].access, pair[0].owner) == (pair[1].access, pair[1].owner)
            };
            assert!(
                !regions.list.windows(2).any(alike),
                "alike neighbours are one region"
            );
            let length = 1 + random(8);
            let free = (0..=32 - length).rev().find(|at| {
                model.0[*at as usize..(at + length) as usize]
                    .iter()
                    .all(Option::is_none)
            });
            assert_eq!(regions.find_free(&(0..32), length), free);
        }
    }

    #[test]
    fn free_space_is_found_from_the_top_within_bounds() {
        let regions = regions(&[(0, 10, Read), (30, 40, ReadWrite)]);
        assert_eq!(regions.find_free(&(10..60), 20), Some(40));
        assert_eq!(regions.find_free(&(10..50), 20), Some(10));
        assert_eq!(regions.find_free(&(11..50), 20), None);
        assert_eq!(regions.find_free(&(10..35), 5), Some(25));
    }
}
