//! Ways back: within a function, and among functions.

use crate::counted::{is_mark, made};
use rustc_data_structures::fx::FxHashSet;
use rustc_index::bit_set::DenseBitSet;
use rustc_middle::mir::{BasicBlock, Body};
use rustc_span::Span;
use std::collections::BTreeMap;

/// The component of each node.
pub fn components(next: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let count = next.len();
    let (mut index, mut low, mut component) =
        (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut stack, mut clock, mut found) = (Vec::new(), 0, 0);
    for root in 0..count {
        if index[root] != NONE {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((at, edge)) = work.pop() {
            if edge == 0 {
                index[at] = clock;
                low[at] = clock;
                clock += 1;
                stack.push(at);
            }
            if let Some(&to) = next[at].get(edge) {
                work.push((at, edge + 1));
                if index[to] == NONE {
                    work.push((to, 0));
                } else if component[to] == NONE {
                    low[at] = low[at].min(index[to]);
                }
                continue;
            }
            if low[at] == index[at] {
                while let Some(top) = stack.pop() {
                    component[top] = found;
                    if top == at {
                        break;
                    }
                }
                found += 1;
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[at]);
            }
        }
    }
    component
}

/// Where a function may come back without end.
///
/// A mark is met as often as its iterator has rounds, until another iterator takes that one's place. So among blocks that
/// come back to each other, a mark counts if none of them makes its iterator. Without the marks that count, what still
/// comes back is looked at in the same way. So a counted loop within a loop counts for itself alone.
pub fn uncounted(body: &Body<'_>, reached: &DenseBitSet<BasicBlock>) -> Vec<Span> {
    let mut next = vec![Vec::new(); body.basic_blocks.len()];
    let mut marks = BTreeMap::new();
    for (from, data) in body.basic_blocks.iter_enumerated() {
        if !reached.contains(from) {
            continue;
        }
        let successors = data.terminator().successors();
        next[from.as_usize()] = successors.map(BasicBlock::as_usize).collect();
        if is_mark(data)
            && let Some(made) = made(body, from)
        {
            marks.insert(from.as_usize(), made);
        }
    }
    let mut heads = Vec::new();
    let mut inside: FxHashSet<usize> = (0..next.len()).collect();
    while !inside.is_empty() {
        let within: Vec<Vec<usize>> = next
            .iter()
            .enumerate()
            .map(|(from, next)| match inside.contains(&from) {
                true => next
                    .iter()
                    .copied()
                    .filter(|to| inside.contains(to))
                    .collect(),
                false => Vec::new(),
            })
            .collect();
        let component = components(&within);
        let mut cyclic: BTreeMap<usize, FxHashSet<usize>> = BTreeMap::new();
        for (from, next) in within.iter().enumerate() {
            if next.iter().any(|to| component[*to] == component[from]) {
                cyclic.entry(component[from]).or_default().insert(from);
            }
        }
        inside.clear();
        for blocks in cyclic.into_values() {
            let counts = |at: &usize| marks.get(at).is_some_and(|made| !blocks.contains(made));
            if blocks.iter().any(counts) {
                inside.extend(blocks.iter().copied().filter(|at| !counts(at)));
            } else {
                heads.extend(blocks.iter().min());
            }
        }
    }
    heads.sort_unstable();
    let span = |at| {
        body.basic_blocks[BasicBlock::from_usize(at)]
            .terminator()
            .source_info
            .span
    };
    heads.into_iter().map(span).collect()
}

/// The loops of a function.
pub struct Loops {
    pub all: u32,
    /// Those that no other one stands around.
    pub outermost: u32,
    /// How many stand around each block; none, if it is not here.
    pub around: BTreeMap<BasicBlock, u32>,
}

/// Finds the loops of a function.
pub fn nests(body: &Body<'_>, reached: &DenseBitSet<BasicBlock>) -> Loops {
    let before = body.basic_blocks.predecessors();
    let dominators = body.basic_blocks.dominators();
    // Blocks by the head of the loop that they belong to.
    let mut heads: BTreeMap<BasicBlock, FxHashSet<BasicBlock>> = BTreeMap::new();
    for (from, data) in body.basic_blocks.iter_enumerated() {
        if !reached.contains(from) {
            continue;
        }
        for to in data.terminator().successors() {
            if reached.contains(to) && dominators.dominates(to, from) {
                let inside = heads.entry(to).or_default();
                inside.insert(to);
                let mut left = vec![from];
                while let Some(at) = left.pop() {
                    if reached.contains(at) && inside.insert(at) {
                        left.extend(before[at].iter().copied());
                    }
                }
            }
        }
    }
    let mut around = BTreeMap::new();
    for inside in heads.values() {
        for block in inside {
            *around.entry(*block).or_insert(0) += 1;
        }
    }
    let outermost = heads.keys().filter(|head| around.get(head) == Some(&1));
    let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
    Loops {
        all: count(heads.len()),
        outermost: count(outermost.count()),
        around,
    }
}
