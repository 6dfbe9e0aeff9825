//! The licensees of one assertion in one query, kept up to date. Each principal's growth costs the way from
//! its place up to the root, however many licensees there are.
//!
//! Every form is "so many of these": `&&` is all of them, `||` one, `K-of` K. A node counts its
//! parts by rank, and its own rank is the greatest that enough of them have.

use crate::Form;
use alloc::vec;
use alloc::vec::Vec;

/// A place in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Where the principals of a field are in its tree.
type Leaves<P> = Vec<(Place, P)>;

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

pub(crate) struct Tree {
    nodes: Vec<Node>,
    ranks: usize,
}

impl Tree {
    /// The tree of licensees of whom nobody has a rank yet, and its leaves. Everybody has the greatest rank.
    pub(crate) fn new<P: Clone>(form: &Form<P>, ranks: usize) -> (Tree, Leaves<P>) {
        let mut tree = Tree {
            nodes: Vec::new(),
            ranks,
        };
        let mut leaves = Leaves::new();
        tree.add(ROOT, form, &mut leaves);
        (tree, leaves)
    }

    fn node(&mut self, parent: usize, parts: usize, needed: usize) -> usize {
        let mut counts = Vec::new();
        if parts > 0 {
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
        self.nodes.len() - 1
    }

    fn add<P: Clone>(&mut self, parent: usize, form: &Form<P>, leaves: &mut Leaves<P>) {
        match form {
            Form::Nobody | Form::One(None) => drop(self.node(parent, 0, 0)),
            Form::Everybody => {
                let node = self.node(parent, 0, 0);
                self.nodes[node].rank = self.ranks - 1;
            }
            Form::One(Some(principal)) => {
                let node = self.node(parent, 0, 0);
                leaves.push((Place(node as u32), principal.clone()));
            }
            Form::Enough(needed, parts) => {
                let node = self.node(parent, parts.len(), *needed);
                for part in parts {
                    self.add(node, part, leaves);
                }
            }
        }
    }

    /// The rank that the licensees together have.
    pub(crate) fn rank(&self) -> usize {
        self.nodes[ROOT].rank
    }

    /// The principal at `place` has this rank from now on; whether that of all of them grew.
    pub(crate) fn raise(&mut self, place: Place, rank: usize) -> bool {
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
