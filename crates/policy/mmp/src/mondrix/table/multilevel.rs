//! Multi-level tables: a trie of entries, of which those above the leaves either point to a table or
//! describe their whole span themselves. [`Vector`] and [`Runs`] are two encodings of an entry.

use super::encoding::{Content, Encoding, ONES, parts};
use super::geometry::{Geometry, GeometryError};
use super::memory::TableMemory;
use super::{MemoryBlock, PermissionTable, Root, Walk};
use crate::access::Perm;
use std::marker::PhantomData;
use std::ops::Range;

pub use super::runs::Runs;
pub use super::vector::Vector;

/// A multi-level table with the entries of one encoding.
#[derive(Clone, Debug)]
pub struct MultiLevel<E> {
    geometry: Geometry,
    encoding: PhantomData<E>,
}

impl<E: Encoding> MultiLevel<E> {
    /// A table over addresses of this many bits, whose smallest unit is `granularity` bytes.
    pub fn new(address_bits: u32, granularity: u64) -> Result<Self, GeometryError> {
        Ok(MultiLevel {
            geometry: Geometry::new(address_bits, granularity, E::PARTS_LOG2)?,
            encoding: PhantomData,
        })
    }

    /// The levels.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_leaf(&self, level: usize) -> bool {
        level + 1 == self.geometry.levels()
    }

    /// The sub-blocks of an entry, as they look from one of its `1 << bits` children.
    fn inherit(perms: u64, child: u64, bits: u32) -> u64 {
        let mut inherited = 0;
        for part in 0..1 << E::PARTS_LOG2 {
            let parent_part = ((child << E::PARTS_LOG2) + part) >> bits;
            inherited |= (perms >> (2 * parent_part) & 3) << (2 * part);
        }
        inherited
    }

    /// Sets a range in tables of one level that all begin at the address `base` and that only the
    /// writing group reaches. Entries that are equal before are equal, and shared, afterwards.
    fn set_level(
        &self,
        memory: &mut TableMemory,
        level: usize,
        tables: &[u32],
        base: u64,
        range: &Range<u64>,
        perm: Perm,
    ) {
        let span_log2 = self.geometry.span_log2[level];
        let first = (range.start.max(base) - base) >> span_log2;
        let last = (range.end - 1 - base) >> span_log2;
        let last = last.min((1 << self.geometry.index_bits[level]) - 1);
        for index in first..=last {
            let begin = base + (index << span_log2);
            let mut before: Vec<(u32, u32)> = tables
                .iter()
                .map(|&table| {
                    let at = table + index as u32;
                    (memory.read(at), at)
                })
                .collect();
            before.sort_unstable();
            let mut children = Vec::new();
            for same in before.chunk_by(|one, other| one.0 == other.0) {
                children.extend(self.set_entry(memory, level, same, begin, range, perm));
            }
            if !children.is_empty() {
                self.set_level(memory, level + 1, &children, begin, range, perm);
            }
        }
    }

    /// Sets equal entries of one index; answers with the table to go on in.
    fn set_entry(
        &self,
        memory: &mut TableMemory,
        level: usize,
        same: &[(u32, u32)],
        begin: u64,
        range: &Range<u64>,
        perm: Perm,
    ) -> Option<u32> {
        let entry = same[0].0;
        let leaf = self.is_leaf(level);
        let span_log2 = self.geometry.span_log2[level];
        let part_log2 = span_log2 - E::PARTS_LOG2;
        let end = begin + (1 << span_log2);
        let from = range.start.max(begin) - begin;
        let to = range.end.min(end) - begin;
        let whole = from == 0 && to == 1 << span_log2;
        let content = E::decode(entry, leaf);
        let perms = match content {
            Content::Perms(perms) => perms,
            Content::Table(child) if !whole => {
                return Some(self.own(memory, level, child, same));
            }
            Content::OutOfLine(at) if !whole => {
                u64::from(memory.read(at)) | u64::from(memory.read(at + 1)) << 32
            }
            // All of it is replaced, whatever it is; what it cannot be is what it becomes.
            Content::Table(_) | Content::OutOfLine(_) => !(perm.bits() * ONES),
        };
        let touched = parts(from >> part_log2, (to - 1) >> part_log2);
        let wanted = (perms & !touched) | ((perm.bits() * ONES) & touched);
        if wanted == perms {
            return None;
        }
        if (from | to) & ((1 << part_log2) - 1) == 0 {
            if let Some(new) = E::encode(wanted, leaf) {
                self.replace(memory, level, content, same, new);
                return None;
            }
            if leaf {
                self.set_out_of_line(memory, level, content, same, wanted);
                return None;
            }
        }
        // Part of a sub-block, or too many runs: a table of its own, filled with what was here.
        let bits = self.geometry.index_bits[level + 1];
        let child = memory.allocate(bits);
        if perms != 0 {
            for index in 0..1u64 << bits {
                let inherited = Self::inherit(perms, index, bits);
                if inherited != 0 {
                    let entry = E::encode(inherited, self.is_leaf(level + 1))
                        .expect("a piece of an entry has no more runs than the entry");
                    memory.write(child + index as u32, entry);
                }
            }
        }
        memory.set_parents(child, same.len() as u32);
        for &(_, at) in same {
            memory.write(at, E::table(child));
        }
        Some(child)
    }

    /// Makes tables of one level that begin at `base` share what is equal at the edges of a range.
    fn share_level(
        &self,
        memory: &mut TableMemory,
        level: usize,
        tables: &[u32],
        base: u64,
        range: &Range<u64>,
    ) {
        let span_log2 = self.geometry.span_log2[level];
        let last = (1 << self.geometry.index_bits[level]) - 1;
        let first_index = (range.start.max(base) - base) >> span_log2;
        let last_index = ((range.end - 1 - base) >> span_log2).min(last);
        let mut edges = vec![first_index, last_index];
        edges.dedup();
        for index in edges {
            let begin = base + (index << span_log2);
            let mut children: Vec<(u32, Vec<u32>)> = Vec::new();
            for &table in tables {
                let at = table + index as u32;
                if let Content::Table(child) = E::decode(memory.read(at), self.is_leaf(level)) {
                    match children.iter_mut().find(|(known, _)| *known == child) {
                        Some((_, entries)) => entries.push(at),
                        None => children.push((child, vec![at])),
                    }
                }
            }
            if !self.is_leaf(level) && children.len() > 1 {
                let distinct: Vec<u32> = children.iter().map(|(child, _)| *child).collect();
                self.share_level(memory, level + 1, &distinct, begin, range);
                self.merge(memory, level, &children);
            }
        }
    }

    /// Of tables that are word for word the same, keeps one.
    fn merge(&self, memory: &mut TableMemory, level: usize, children: &[(u32, Vec<u32>)]) {
        let size = 1 << self.geometry.index_bits[level + 1];
        let mut kept: Vec<u32> = Vec::new();
        for (child, entries) in children {
            let same = kept.iter().copied().find(|&other| {
                (0..size).all(|word| memory.read(child + word) == memory.read(other + word))
            });
            let Some(other) = same else {
                kept.push(*child);
                continue;
            };
            for &at in entries {
                memory.write(at, E::table(other));
                memory.set_parents(other, memory.parents(other) + 1);
                self.let_go(memory, level, Content::Table(*child));
            }
        }
    }

    /// A child that only these entries reach: itself, or a copy when others share it.
    fn own(&self, memory: &mut TableMemory, level: usize, child: u32, same: &[(u32, u32)]) -> u32 {
        let parents = memory.parents(child);
        let ours = same.len() as u32;
        if parents <= ours {
            return child;
        }
        let bits = self.geometry.index_bits[level + 1];
        let copy = memory.allocate(bits);
        memory.copy(child, copy, 1 << bits);
        for index in 0..1 << bits {
            match E::decode(memory.peek(copy + index), self.is_leaf(level + 1)) {
                Content::Perms(_) => {}
                Content::Table(below) | Content::OutOfLine(below) => {
                    memory.set_parents(below, memory.parents(below) + 1);
                }
            }
        }
        memory.set_parents(child, parents - ours);
        memory.set_parents(copy, ours);
        for &(_, at) in same {
            memory.write(at, E::table(copy));
        }
        copy
    }

    /// Writes a new entry where it differs, and lets go of what the old one pointed to.
    fn replace(
        &self,
        memory: &mut TableMemory,
        level: usize,
        old: Content,
        same: &[(u32, u32)],
        new: u32,
    ) {
        for &(before, at) in same {
            if before != new {
                memory.write(at, new);
            }
        }
        for _ in same {
            self.let_go(memory, level, old);
        }
    }

    /// Two words out of line for a leaf entry with too many runs.
    fn set_out_of_line(
        &self,
        memory: &mut TableMemory,
        level: usize,
        old: Content,
        same: &[(u32, u32)],
        perms: u64,
    ) {
        debug_assert!(E::OUT_OF_LINE);
        let at = match old {
            Content::OutOfLine(at) if memory.parents(at) <= same.len() as u32 => at,
            _ => {
                let at = memory.allocate(1);
                memory.set_parents(at, same.len() as u32);
                self.replace(memory, level, old, same, E::out_of_line(at));
                at
            }
        };
        memory.write(at, perms as u32);
        memory.write(at + 1, (perms >> 32) as u32);
    }

    /// One parent fewer for what an entry pointed to; the last one frees it, and all below.
    fn let_go(&self, memory: &mut TableMemory, level: usize, content: Content) {
        let (at, log2) = match content {
            Content::Perms(_) => return,
            Content::OutOfLine(at) => (at, 1),
            Content::Table(at) => (at, self.geometry.index_bits[level + 1]),
        };
        let parents = memory.parents(at);
        if parents > 1 {
            memory.set_parents(at, parents - 1);
            return;
        }
        if let Content::Table(at) = content {
            for index in 0..1 << log2 {
                let entry = memory.read(at + index);
                let below = E::decode(entry, self.is_leaf(level + 1));
                self.let_go(memory, level + 1, below);
            }
        }
        memory.release(at, log2);
    }
}

impl<E: Encoding> PermissionTable for MultiLevel<E> {
    fn create(&self, memory: &mut TableMemory) -> Root {
        Root {
            at: memory.allocate(self.geometry.index_bits[0]),
            ..Root::default()
        }
    }

    fn destroy(&self, memory: &mut TableMemory, root: Root) {
        let bits = self.geometry.index_bits[0];
        for index in 0..1 << bits {
            let entry = memory.read(root.at + index);
            self.let_go(memory, 0, E::decode(entry, self.is_leaf(0)));
        }
        memory.release(root.at, bits);
    }

    fn set(&self, memory: &mut TableMemory, roots: &mut [Root], range: Range<u64>, perm: Perm) {
        let tables: Vec<u32> = roots.iter().map(|root| root.at).collect();
        self.set_level(memory, 0, &tables, 0, &range, perm);
    }

    fn share(&self, memory: &mut TableMemory, roots: &[Root], range: Range<u64>) {
        let tables: Vec<u32> = roots.iter().map(|root| root.at).collect();
        self.share_level(memory, 0, &tables, 0, &range);
    }

    fn look_up(
        &self,
        memory: &TableMemory,
        root: Root,
        address: u64,
        walk: &mut Walk,
    ) -> MemoryBlock {
        let mut table = root.at;
        let mut level = 0;
        loop {
            let span_log2 = self.geometry.span_log2[level];
            let index = address >> span_log2 & ((1 << self.geometry.index_bits[level]) - 1);
            let at = table + index as u32;
            walk.load(at);
            let perms = match E::decode(memory.peek(at), self.is_leaf(level)) {
                Content::Table(next) => {
                    table = next;
                    level += 1;
                    continue;
                }
                Content::OutOfLine(at) => {
                    walk.load(at);
                    u64::from(memory.peek(at)) | u64::from(memory.peek(at + 1)) << 32
                }
                Content::Perms(perms) => perms,
            };
            return MemoryBlock {
                base: address >> span_log2 << span_log2,
                size_log2: span_log2,
                parts_log2: E::PARTS_LOG2,
                perms,
            };
        }
    }
}

#[cfg(test)]
#[path = "multilevel_tests.rs"]
mod tests;
