//! Children that are known by number: what a [`Child`] is to code that knows no types.

use std::time::Instant;

use super::child::Child;
use super::ending::end;
use super::exit::Exit;
use super::rights::Rights;
use super::tree::{self, Tree};
use crate::critical::as_host;
use crate::current;
use crate::owners::Owner;
use crate::wait;

/// Why an end was not waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// The caller has no such child, or has it as a [`Child`].
    NoSuchChild,
    /// Another thread of the caller waits for it.
    Waited,
    /// It lives on.
    Deadline,
}

impl Child {
    /// From now on the child is known by number, until its end was waited for.
    pub(crate) fn into_number(self) -> u64 {
        let _host = as_host();
        let mut tree = tree::lock();
        if let Some(node) = tree.of(self.owner()) {
            node.numbered = true;
        }
        let number = self.owner().to_bits();
        std::mem::forget(self);
        number
    }
}

/// The node of a child that the calling process knows by number.
fn child(tree: &mut Tree, which: Owner) -> Option<&mut tree::Node> {
    let node = tree.of(which)?;
    (node.numbered && node.parent == Some(current::current())).then_some(node)
}

/// Ends a child; nothing if it has ended. `None` if there is none.
pub(crate) fn kill_numbered(which: Owner) -> Option<()> {
    let _host = as_host();
    let mut tree = tree::lock();
    if child(&mut tree, which)?.exit.is_none() {
        end(which.index());
    }
    Some(())
}

/// Waits for the end of a child, which is forgotten then.
pub(crate) fn wait_numbered(which: Owner, deadline: Option<Instant>) -> Result<Exit, Unfinished> {
    let me = wait::current();
    loop {
        {
            let _host = as_host();
            let mut tree = tree::lock();
            let node = child(&mut tree, which).ok_or(Unfinished::NoSuchChild)?;
            if node.looking.is_some_and(|waiting| waiting != me) {
                return Err(Unfinished::Waited);
            }
            if let Some(exit) = node.exit {
                tree.remove(which.index());
                return Ok(exit);
            }
            node.looking = Some(me);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                node.looking = None;
                return Err(Unfinished::Deadline);
            }
        }
        match deadline {
            Some(deadline) => wait::park_until(deadline),
            None => wait::park(),
        }
    }
}

/// What the calling process may bind and look up.
pub(crate) fn own_rights() -> Rights {
    let _host = as_host();
    tree::lock().rights(current::current())
}
