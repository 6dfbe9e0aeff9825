//! The licensees of one assertion in one query, kept up to date: each principal's growth costs the
//! way from its place up to the root, however many licensees there are.
//!
//! Every form is "so many of these": `&&` is all of them, `||` one, `K-of` K. A node counts its
//! parts by rank, and its own rank is the greatest that enough of them have.

use super::syntax::{Licensees, PrincipalRef};
use super::work::{Cost, Exhausted, Work};

/// A place in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// Where the principals of a field are in its tree.
type Leaves<'a> = Vec<(Place, &'a PrincipalRef)>;

/// The root.
const ROOT: usize = 0;

struct Node {
    parent: usize,
    rank: usize,
    /// How many of its parts must have a rank.
    needed: usize,
    /// How many have a greater one than it.
    above: usize,
    /// How many have each.
    counts: Vec<u32>,
}

pub(super) struct Tree {
    nodes: Vec<Node>,
    ranks: usize,
}

impl Tree {
    /// The tree of a `Licensees` field in which nobody has a rank yet, and its leaves. Without a
    /// field everybody is meant, with the greatest rank.
    pub(super) fn new<'a>(
        field: Option<&'a Licensees>,
        ranks: usize,
        work: &mut Work,
    ) -> Result<(Tree, Leaves<'a>), Exhausted> {
        let mut tree = Tree {
            nodes: Vec::new(),
            ranks,
        };
        let mut leaves = Leaves::new();
        match field {
            Some(field) => tree.add(ROOT, field, &mut leaves, work)?,
            None => {
                tree.node(ROOT, 0, 0, work)?;
                tree.nodes[ROOT].rank = ranks - 1;
            }
        }
        Ok((tree, leaves))
    }

    fn node(
        &mut self,
        parent: usize,
        parts: usize,
        needed: usize,
        work: &mut Work,
    ) -> Result<usize, Exhausted> {
        work.pay(Cost::Edge, 1)?;
        let mut counts = Vec::new();
        if parts > 0 {
            work.pay(Cost::Copied, 4 * self.ranks)?;
            counts = vec![0; self.ranks];
            counts[0] = parts as u32;
        }
        self.nodes.push(Node {
            parent,
            rank: 0,
            needed,
            above: 0,
            counts,
        });
        Ok(self.nodes.len() - 1)
    }

    fn add<'a>(
        &mut self,
        parent: usize,
        field: &'a Licensees,
        leaves: &mut Leaves<'a>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let (parts, needed) = match field {
            Licensees::Empty => return self.node(parent, 0, 0, work).map(drop),
            Licensees::One(reference) => return self.leaf(parent, reference, leaves, work),
            Licensees::And(parts) => (parts, parts.len()),
            Licensees::Or(parts) => (parts, 1),
            Licensees::AtLeast(count, list) => {
                let node = self.node(parent, list.len(), *count, work)?;
                for reference in list {
                    self.leaf(node, reference, leaves, work)?;
                }
                return Ok(());
            }
        };
        let node = self.node(parent, parts.len(), needed, work)?;
        for part in parts {
            self.add(node, part, leaves, work)?;
        }
        Ok(())
    }

    fn leaf<'a>(
        &mut self,
        parent: usize,
        reference: &'a PrincipalRef,
        leaves: &mut Leaves<'a>,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let node = self.node(parent, 0, 0, work)?;
        leaves.push((Place(node as u32), reference));
        Ok(())
    }

    /// The rank that the licensees together have.
    pub(super) fn rank(&self) -> usize {
        self.nodes[ROOT].rank
    }

    /// The principal at `place` has this rank from now on; whether that of all of them grew.
    pub(super) fn raise(&mut self, place: Place, rank: usize) -> bool {
        let (mut at, mut rank) = (place.0 as usize, rank);
        loop {
            let old = self.nodes[at].rank;
            if rank <= old {
                return false;
            }
            self.nodes[at].rank = rank;
            if at == ROOT {
                return true;
            }
            at = self.nodes[at].parent;
            let node = &mut self.nodes[at];
            node.counts[old] -= 1;
            node.counts[rank] += 1;
            if old <= node.rank && rank > node.rank {
                node.above += 1;
            }
            rank = node.rank;
            while rank + 1 < self.ranks && node.above >= node.needed {
                rank += 1;
                node.above -= node.counts[rank] as usize;
            }
        }
    }
}
