//! Which process holds which ends of channels, and what has gone through them; and which memory.
//!
//! ```text
//!   who asks: notes that the workers are asked, asks each, waits        worker: walks its processes' lists, answers
//! ```
//! Lists belong to workers, so each walks its own, between two threads: nobody else counts anything for it, and
//! sending costs what it cost. A worker is kept from its threads for as long as the lists of its processes are.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::owner::Owner;
use mullion_sip_core::wait::{self, Waiter};
use mullion_sip_core::{Hooks, Worker};
use mullion_sip_exchange::channel::Side;
use mullion_sip_exchange::interior::EndpointPlace;

/// One end of a channel that a process holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Who holds it.
    pub owner: Owner,
    /// Which channel: the same for both ends, and for no other channel at the time.
    pub channel: usize,
    /// The contract's name.
    pub contract: &'static str,
    /// Which side's end.
    pub side: Side,
    /// Messages that were sent from here, modulo 2^32.
    pub sent: u32,
    /// Messages that were received here, modulo 2^32.
    pub received: u32,
}

/// A piece of memory that is a process's alone, or the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holding {
    /// Whose it is; the host's, if it is the kernel's.
    pub owner: Owner,
    /// Its first address.
    pub start: usize,
    /// Its bytes.
    pub bytes: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a process has memory for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Kind {
    /// Pages of its heap.
    Heap,
    /// A thread's stack, without the guard page.
    Stack,
    /// A block of the exchange heap.
    Exchange,
    /// The queues of a channel, where both ends write: the kernel's.
    Queues,
    /// A block of a message that waits in a queue: nobody's until it is received. The kernel has it meanwhile.
    Waiting,
}

/// Answers when a worker is asked.
pub(crate) const HOOKS: Hooks = Hooks {
    survey: Some(answer),
    ..Hooks::NONE
};

/// What the workers have answered.
pub(crate) struct State {
    /// Who asks, one at a time.
    asking: Mutex<()>,
    answers: Mutex<Answers>,
}

struct Answers {
    /// Workers that have not answered.
    open: usize,
    ends: Vec<End>,
    /// If they are wanted.
    holdings: Option<Vec<Holding>>,
    waiter: Waiter,
}

impl State {
    const fn new() -> State {
        State {
            asking: Mutex::new(()),
            answers: Mutex::new(Answers {
                open: 0,
                ends: Vec::new(),
                holdings: None,
                waiter: Waiter::NONE,
            }),
        }
    }
}

mullion_sip_core::__state!(State = State::new());

/// Workers answer between two threads: one that is kept by a thread for longer is not waited for.
const PATIENCE: Duration = Duration::from_millis(200);

impl Host {
    /// Every end that a process holds, of the workers that answer within 200 ms.
    pub fn survey(&self) -> Vec<End> {
        ask(None).0
    }
}

/// Stacks, queues and blocks of the exchange heap, of the workers that answer within 200 ms; for threads of the host.
pub(super) fn holdings() -> Vec<Holding> {
    ask(Some(Vec::new())).1
}

fn ask(holdings: Option<Vec<Holding>>) -> (Vec<End>, Vec<Holding>) {
    let state = state();
    let _one = lock(&state.asking);
    *lock(&state.answers) = Answers {
        open: CORE.workers().len(),
        ends: Vec::new(),
        holdings,
        waiter: wait::current(),
    };
    for worker in CORE.workers().iter() {
        worker.survey();
    }
    let deadline = Instant::now() + PATIENCE;
    while lock(&state.answers).open > 0 && Instant::now() < deadline {
        wait::park_until(deadline);
    }
    let mut answers = lock(&state.answers);
    let holdings = answers.holdings.take().unwrap_or_default();
    (std::mem::take(&mut answers.ends), holdings)
}

/// On the worker, between two threads.
fn answer(home: &'static Worker) {
    let _host = CORE.as_host();
    let mut ends = Vec::new();
    let mut holdings = Vec::new();
    let memory = lock(&state().answers).holdings.is_some();
    for owner in CORE.living(home) {
        if memory {
            hold(home, owner, &mut holdings);
        } else {
            EXCHANGE
                .ledger(owner)
                .each_endpoint(|place| ends.push(end_of(owner, place)));
        }
    }
    let mut answers = lock(&state().answers);
    answers.ends.append(&mut ends);
    if let Some(all) = &mut answers.holdings {
        all.append(&mut holdings);
    }
    answers.open = answers.open.saturating_sub(1);
    if answers.open == 0 {
        wait::unpark(answers.waiter);
    }
}

/// Everything that a process of this worker holds beside its heap.
fn hold(home: &Worker, owner: Owner, all: &mut Vec<Holding>) {
    let mut add = |kind, start, bytes| {
        let owner = match kind {
            Kind::Queues | Kind::Waiting => Owner::HOST,
            Kind::Heap | Kind::Stack | Kind::Exchange => owner,
        };
        all.push(Holding {
            owner,
            start,
            bytes,
            kind,
        });
    };
    CORE.each_stack(home, owner, |start, bytes| {
        add(Kind::Stack, start, bytes);
    });
    let ledger = EXCHANGE.ledger(owner);
    ledger.each_block(|start, bytes| add(Kind::Exchange, start, bytes));
    ledger.each_endpoint(|place| {
        let (start, bytes) = place.queues();
        add(Kind::Queues, start, bytes);
        place.each_waiting(|start, bytes| add(Kind::Waiting, start, bytes));
    });
}

fn end_of(owner: Owner, place: &EndpointPlace) -> End {
    let (channel, side) = (place.channel_address(), place.side());
    let (sent, received) = place.counts();
    End {
        owner,
        channel,
        contract: place.contract().name,
        side,
        sent,
        received,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
