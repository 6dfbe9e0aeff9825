//! What there is, for people who look.

use mullion_sip_core::process::{Exit, Life};

use super::names;
use crate::host::Host;
use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::owner::Owner;
use mullion_sip_exchange::exchange::Share;

/// One process, at the moment of asking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Which process.
    pub owner: Owner,
    /// Whose child it is.
    pub parent: Owner,
    /// Its program's name.
    pub name: &'static str,
    /// The worker that it lives on.
    pub worker: u16,
    /// Its threads.
    pub threads: u32,
    /// Its children, those included that have ended and that nobody has asked after.
    pub children: u32,
    /// Names that it has bound.
    pub names: u32,
    /// Bytes of its heap, and the most that it may have.
    pub memory: (usize, usize),
    /// Bytes of the exchange heap that it holds or has sent without an answer, and the most that it may.
    pub exchange: Share,
    /// Messages that it has sent from ends of channels that it has closed since; `survey` has the
    /// others.
    pub sent: u64,
    /// How it ended, if its parent has not asked yet.
    pub exit: Option<Exit>,
}

impl Host {
    /// All processes, the dead included that nobody has asked after.
    pub fn statistics(&self) -> Vec<Statistics> {
        let _host = CORE.as_host();
        CORE.lives().into_iter().map(of).collect()
    }
}

/// One process, if it is `asker` or a child of it.
pub(crate) fn statistics_of(which: Owner, asker: Owner) -> Option<Statistics> {
    CORE.life(which, asker, of)
}

#[inline]
fn of(life: Life) -> Statistics {
    let owner = life.owner;
    Statistics {
        owner,
        parent: life.parent,
        name: life.name,
        worker: life.worker,
        threads: life.threads,
        children: life.children,
        names: names::count(owner),
        memory: (life.memory, life.limits.memory),
        // The ledger has the limit only from when the process begins to when it ends.
        exchange: Share {
            limit: life.limits.exchange,
            ..EXCHANGE.share_of(owner)
        },
        sent: EXCHANGE.sent(owner),
        exit: life.exit,
    }
}
