//! What owners hold, from the beginning of a process to its end.

use std::sync::atomic::{Ordering, fence};

use mullion_sip_core::Hooks;
use mullion_sip_core::owner::Owner;

use super::error::Share;
use super::{accounts, walk, worker};
use crate::inner::CORE;

/// What the heap does when workers and processes begin and end. Blocks go back before any other teardown.
pub(crate) const HOOKS: Hooks = Hooks {
    worker_begins: Some(|| {
        worker::current();
    }),
    process_begins: Some(|owner, limits| set_limit(owner, limits.exchange)),
    ..Hooks::NONE
};

/// Lets a process hold `limit` bytes from now on; what it holds already it keeps.
/// To be called on the process's worker, or before it runs.
pub(crate) fn set_limit(owner: Owner, limit: u64) {
    let _critical = CORE.critical();
    accounts::of(owner).set_limit(limit);
}

/// What an owner holds, from any thread; for [`Owner::HOST`] the calling thread's own share. Nothing, if the owner's
/// process has ended.
///
/// The owner's worker goes on meanwhile, and may end the process and begin another one with its number. So the ledger is
/// read, and never written: what has not begun is opened by its worker alone. What was read counts only if the process
/// still lives after that. Its end begins a new generation before anything of the next life is written
/// (`Process::close`), so a number of the next life is never taken for one of the last. While a process ends, its share
/// falls to 0, and its limit may be seen as none.
pub(crate) fn share_of(owner: Owner) -> Share {
    if owner == Owner::HOST {
        return accounts::of(owner).share();
    }
    alive_after(owner, accounts::look(owner).share())
}

/// Messages that an owner has sent from ends that it has closed, from any thread; as [`share_of`].
pub(crate) fn sent(owner: Owner) -> u64 {
    if owner == Owner::HOST {
        return accounts::of(owner).sent();
    }
    alive_after(owner, accounts::look(owner).sent())
}

/// What was read of an owner, if its process has not ended since.
fn alive_after<T: Default>(owner: Owner, read: T) -> T {
    fence(Ordering::Acquire);
    if CORE.is_alive(owner) {
        read
    } else {
        T::default()
    }
}

/// Frees everything that an owner still holds, and closes its endpoints: the end of a process.
/// To be called on its worker, when none of its threads runs any more; processes have it done by themselves.
pub(crate) fn end_of(owner: Owner) {
    let _critical = CORE.critical();
    if owner != Owner::HOST {
        walk::end(accounts::of(owner));
    }
}
