//! What a parent has of its child.

use std::time::Instant;

use super::ending::end;
use super::exit::Exit;
use super::tree;
use crate::critical::as_host;
use crate::owners::Owner;
use crate::wait::{self, Waiter};

/// A process's child. Dropping it lets the child live on, with nobody to ask how it ended.
#[derive(Debug)]
#[must_use]
pub struct Child {
    owner: Owner,
}

impl Child {
    pub(super) fn new(owner: Owner) -> Child {
        Child { owner }
    }

    /// The process.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Ends it. It may run on for a moment, until its worker has got the message.
    pub fn kill(&self) {
        let _host = as_host();
        let mut tree = tree::lock();
        if tree.of(self.owner).is_some_and(|node| node.exit.is_none()) {
            end(self.owner.index());
        }
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Option<Exit> {
        self.look(None)
    }

    /// Waits for its end. Any number of threads may.
    pub fn wait(&self) -> Exit {
        loop {
            match self.ended(true) {
                Some(exit) => return exit,
                None => wait::park(),
            }
        }
    }

    /// [`Child::wait`], but not beyond `deadline`.
    pub fn wait_until(&self, deadline: Instant) -> Option<Exit> {
        loop {
            let waits = Instant::now() < deadline;
            match self.ended(waits) {
                None if waits => wait::park_until(deadline),
                found => return found,
            }
        }
    }

    /// How it ended, if it has; else whether the calling thread waits for it from now on.
    fn ended(&self, waits: bool) -> Option<Exit> {
        let me = wait::current();
        let _host = as_host();
        let mut tree = tree::lock();
        let node = tree.of(self.owner)?;
        if node.exit.is_none() {
            node.waiting.retain(|waiter| *waiter != me);
            node.waiting.extend(waits.then_some(me));
        }
        node.exit
    }

    /// How it ended, if it has; else `waiter` is woken when it does, in the place of who was to be before.
    pub fn look(&self, waiter: Option<Waiter>) -> Option<Exit> {
        let _host = as_host();
        let mut tree = tree::lock();
        let node = tree.of(self.owner)?;
        if node.exit.is_none() && waiter.is_some() {
            node.looking = waiter;
        }
        node.exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _host = as_host();
        let mut tree = tree::lock();
        if let Some(node) = tree.of(self.owner) {
            node.detached = true;
            node.looking = None;
            node.waiting.clear();
            if node.exit.is_some() {
                tree.remove(self.owner.index());
            }
        }
    }
}
