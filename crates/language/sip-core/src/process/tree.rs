//! Who is whose child, and what is left of the dead until their parents have asked.

use std::sync::{Mutex, MutexGuard};

use super::exit::Exit;
use super::limits::Limits;
use super::record::{self, Process};
use super::rights::Rights;
use crate::owners::Owner;
use crate::thread::fiber::NewFiber;
use crate::thread::stacks::Stack;
use crate::wait::Waiter;

/// What a new process runs first ([`First`](super::First)), on its way to the home worker.
pub(super) trait Begin: Send {
    fn fiber(self: Box<Self>, stack: Stack, owner: Owner) -> NewFiber;
}

/// The family tree. Taken in critical pieces of the kernel only, never across a park.
pub(crate) struct Tree {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

/// What is known of a place. Node 0 is the host.
#[derive(Default)]
pub(super) struct Node {
    pub(super) owner: Option<Owner>,
    pub(super) parent: Option<Owner>,
    pub(super) name: &'static str,
    pub(super) limits: Limits,
    pub(super) rights: Rights,
    /// Begins it on its home worker.
    pub(super) first: Option<Box<dyn Begin>>,
    /// Set at its end, until its parent takes it.
    pub(super) exit: Option<Exit>,
    /// Who is woken by the exit, and looks then: one.
    pub(super) looking: Option<Waiter>,
    /// The threads that wait for the exit. Who waits no more takes itself away.
    pub(super) waiting: Vec<Waiter>,
    /// Nobody will ask for the exit.
    pub(super) detached: bool,
    /// Its parent knows it by number, and not as a [`Child`](super::Child).
    pub(super) numbered: bool,
    pub(super) children: u32,
    first_child: u32,
    next: u32,
    previous: u32,
}

__state!(Mutex<Tree> = Mutex::new(Tree::new()));

/// The tree, locked.
pub(super) fn lock() -> MutexGuard<'static, Tree> {
    state()
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Shows which names a process may bind and look up, all of them for the host, while the tree is locked. No copy is
/// made: whoever binds a name asks.
pub(crate) fn with_rights<R>(owner: Owner, look: impl FnOnce(&Rights) -> R) -> R {
    let tree = lock();
    match tree.nodes.get(owner.index() as usize) {
        Some(node) if node.owner == Some(owner) => look(&node.rights),
        _ => look(&tree.rights(owner)),
    }
}

impl Tree {
    pub(crate) const fn new() -> Tree {
        Tree {
            nodes: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A place for a new child of `parent`; `None` if the parent or the table can have no more.
    pub(super) fn add(&mut self, parent: Owner) -> Option<(u32, &'static Process)> {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let above = parent.index();
        let family = &self.nodes[above as usize];
        if parent != Owner::HOST && family.children >= family.limits.children {
            return None;
        }
        let index = self.free.pop().or_else(|| self.grow())?;
        let process = record::place(index)?;
        self.nodes[index as usize] = Node::default();
        self.link(index, parent);
        Some((index, process))
    }

    fn grow(&mut self) -> Option<u32> {
        let index = u32::try_from(self.nodes.len()).ok()?;
        (index < record::capacity()).then(|| {
            self.nodes.push(Node::default());
            index
        })
    }

    /// The node of a process, dead or alive, that nobody has taken the exit of.
    pub(super) fn of(&mut self, owner: Owner) -> Option<&mut Node> {
        let node = self.nodes.get_mut(owner.index() as usize)?;
        (node.owner == Some(owner)).then_some(node)
    }

    /// Which names a process may bind and look up; all of them for the host.
    pub(super) fn rights(&self, owner: Owner) -> Rights {
        match self.nodes.get(owner.index() as usize) {
            Some(node) if node.owner == Some(owner) => node.rights.clone(),
            _ if owner == Owner::HOST => Rights::all(),
            _ => Rights::none(),
        }
    }

    pub(super) fn node(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    /// Every process, dead or alive.
    pub(super) fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.owner.is_some())
    }

    /// The children of a place.
    pub(super) fn children(&self, index: u32) -> Vec<u32> {
        let first = self.nodes[index as usize].first_child;
        let next = |child: &u32| Some(self.nodes[*child as usize].next);
        std::iter::successors(Some(first), next)
            .take_while(|child| *child != 0)
            .collect()
    }

    /// Its parent has ended: it is the host's, until it has ended too.
    pub(super) fn adopt(&mut self, index: u32) {
        self.unlink(index);
        self.link(index, Owner::HOST);
    }

    /// Forgets a dead process; its place is for another.
    pub(super) fn remove(&mut self, index: u32) {
        self.unlink(index);
        self.nodes[index as usize] = Node::default();
        self.free.push(index);
    }

    fn link(&mut self, index: u32, parent: Owner) {
        let family = &mut self.nodes[parent.index() as usize];
        family.children += 1;
        let next = std::mem::replace(&mut family.first_child, index);
        let node = &mut self.nodes[index as usize];
        node.parent = Some(parent);
        node.previous = 0;
        node.next = next;
        if next != 0 {
            self.nodes[next as usize].previous = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let node = &self.nodes[index as usize];
        let (previous, next) = (node.previous, node.next);
        let above = node.parent.map_or(0, Owner::index) as usize;
        if next != 0 {
            self.nodes[next as usize].previous = previous;
        }
        match previous {
            0 => self.nodes[above].first_child = next,
            _ => self.nodes[previous as usize].next = next,
        }
        self.nodes[above].children -= 1;
    }
}
