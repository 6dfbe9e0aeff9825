//! Endpoints that leave for another OS process.
//!
//! ```text
//!   A: forward: the message goes, with a number for each endpoint; the endpoints go to the queue
//!   A: thread:  "host, number 7 over line 3 is a client of that contract in that state; its peer is with me"
//!               or "...; its peer is behind line 1"; the host makes a line, and tells both sides
//!   B: deliver: number 7 has come; its channel waits for the line (see `arrivals`)
//! ```
//! The thread of the hand-over takes from the queue. So nobody who sends waits, and no lock of a bridge is held while
//! another one is taken. Over each link so many endpoints are offered at a time as the other side may leave without an answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::bridge::{Bridge, Way};
use super::fault::{Fault, PENDING};
use super::link::{Link, Path, refuse};
use super::travel::Handover;
use super::worker_lines;
use crate::inner::CORE;
use mullion_sip_exchange::channel::Side;
use mullion_sip_exchange::exchange::wire::EncodeError;
use mullion_sip_exchange::interior::Foreign;

/// Endpoints that are offered over a link in one direction, and not answered. So many messages and descriptors are in
/// the sockets of a host at a time.
pub const WINDOW: u32 = 16;
/// An endpoint as it goes to another OS process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Its contract's.
    pub digest: [u8; 32],
    /// Its side.
    pub side: Side,
    /// The number of its state.
    pub state: u16,
}

/// An endpoint that a peer is to be given.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Number and end of the link over which it has gone.
    pub link: (u64, u8),
    /// The number of the memory by way of which it has gone.
    pub line: u64,
    /// Its own number there.
    pub ticket: u32,
    /// What it is.
    pub passage: Passage,
    /// Bytes of memory that its channel needs.
    pub bytes: usize,
    /// Where its peer is.
    pub peer: Peer,
}

/// Where the peer of an endpoint is that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// In this OS process, for [`given`] with this number.
    Here(u64),
    /// Behind another link, by number and end, and another memory.
    Behind((u64, u8), u64),
}

/// Who makes lines for endpoints: the host, or the way to it.
pub trait Carrier: Sync {
    /// An endpoint is to be given to whoever is at the other end of its link.
    fn offer(&self, offer: &Offer);

    /// An endpoint that came over the link with this number and end has been taken, or was refused.
    fn claimed(&self, link: (u64, u8));
}

/// An endpoint that has been taken out of a message.
pub(crate) struct Handed {
    link: Arc<Link>,
    line: u64,
    ticket: u32,
    pub(super) end: Foreign,
}

/// What a link's end has sent.
#[derive(Default)]
pub(super) struct Leaving {
    queue: Mutex<Queue>,
    /// Sent, and not taken.
    pending: AtomicU32,
}

#[derive(Default)]
struct Queue {
    handed: VecDeque<Handed>,
    /// Offered, and not taken.
    offered: u32,
}

/// What there is to do.
#[derive(Default)]
struct Tasks {
    open: bool,
    list: VecDeque<Task>,
    last: u64,
    /// Who waits for the host's answer.
    asked: BTreeMap<u64, Arc<Bridge>>,
}

enum Task {
    /// Something has come into a link's queue, or may leave it.
    Offer(Arc<Link>),
    Claimed(Arc<Link>),
}

/// Where tasks are left.
struct ToDo {
    tasks: Mutex<Tasks>,
    more: Condvar,
}

/// Endpoints that leave. In the host's copy alone, as bridges are.
static TO_DO: ToDo = ToDo {
    tasks: Mutex::new(Tasks {
        open: false,
        list: VecDeque::new(),
        last: 0,
        asked: BTreeMap::new(),
    }),
    more: Condvar::new(),
};

fn tasks() -> MutexGuard<'static, Tasks> {
    TO_DO
        .tasks
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn put_task(task: Task) {
    tasks().list.push_back(task);
    TO_DO.more.notify_one();
}

/// From now on endpoints can be sent to other OS processes: a thread is about to [`carry`] them.
pub fn begin_hand_over() {
    tasks().open = true;
}

/// Has endpoints carried where they are sent, for ever: for a thread of the host or of a domain's kernel.
pub fn carry(carrier: &dyn Carrier) -> ! {
    loop {
        let mut tasks = tasks();
        let task = loop {
            match tasks.list.pop_front() {
                Some(task) => break task,
                None => {
                    let more = TO_DO.more.wait(tasks);
                    tasks = more.unwrap_or_else(|poisoned| poisoned.into_inner());
                }
            }
        };
        drop(tasks);
        let _host = CORE.as_host();
        match task {
            Task::Offer(link) => link.offer_all(carrier),
            Task::Claimed(link) => carrier.claimed(link.name()),
        }
    }
}

/// The answer to an [`Offer`] whose peer is here: where it has gone, if it has.
pub fn given(number: u64, way: Option<Path>) {
    let _host = CORE.as_host();
    let bridge = tasks().asked.remove(&number);
    match (bridge, way) {
        (Some(bridge), Some((link, memory))) => {
            bridge.begin(&link, memory);
        }
        (Some(bridge), None) => bridge.give_up(),
        (None, Some((link, memory))) => refuse(&memory, &link),
        (None, None) => {}
    }
}

/// An endpoint that was put aside is offered now.
pub(super) fn put(handed: Handed) {
    let link = handed.link.clone();
    link.leaving.queue().handed.push_back(handed);
    put_task(Task::Offer(link));
}

/// An endpoint that came over this link has been taken, or was refused.
pub(super) fn put_claimed(link: &Arc<Link>) {
    put_task(Task::Claimed(link.clone()));
}

impl Way {
    /// The endpoints of the message that was written leave, just before it does.
    pub(super) fn leave(&mut self) -> Result<(), Fault> {
        let link = &self.joint.link;
        let ends = std::mem::take(&mut self.line.leaving.ends);
        let pending = &link.leaving.pending;
        let refusal = if !tasks().open {
            Some(Fault::Unsendable(EncodeError::Endpoint))
        } else if pending.load(Ordering::Relaxed) as usize + ends.len() > PENDING as usize {
            Some(Fault::TooMany)
        } else {
            None
        };
        if let Some(fault) = refusal {
            ends.into_iter().for_each(|(_, end)| end.close());
            return Err(fault);
        }
        pending.fetch_add(ends.len() as u32, Ordering::Relaxed);
        let line = self.joint.number;
        let handed = ends.into_iter().map(|(ticket, end)| Handed {
            link: link.clone(),
            line,
            ticket,
            end,
        });
        link.leaving.queue().handed.extend(handed);
        put_task(Task::Offer(link.clone()));
        Ok(())
    }
}

impl Leaving {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Link {
    /// The other side has taken an endpoint that was offered to it, or has refused it.
    pub fn claimed(self: &Arc<Self>) {
        let pending = &self.leaving.pending;
        let less = |pending: u32| pending.checked_sub(1);
        let _ = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let mut queue = self.leaving.queue();
        queue.offered = queue.offered.saturating_sub(1);
        let more = !queue.handed.is_empty();
        drop(queue);
        if more {
            put_task(Task::Offer(self.clone()));
        }
    }

    /// After the link has gone down: nobody gets what waits to be offered.
    pub(super) fn drop_offers(self: &Arc<Self>) {
        put_task(Task::Offer(self.clone()));
    }

    fn next(&self) -> Option<Handed> {
        let mut queue = self.leaving.queue();
        if queue.offered >= WINDOW && !self.is_down() {
            return None;
        }
        let handed = queue.handed.pop_front()?;
        queue.offered += 1;
        Some(handed)
    }

    /// As many as may be.
    fn offer_all(&self, carrier: &dyn Carrier) {
        while let Some(handed) = self.next() {
            if self.is_down() {
                handed.end.close();
                continue;
            }
            match handed.offer() {
                Some(offer) => carrier.offer(&offer),
                // It is put into the queue again.
                None => {
                    let mut queue = self.leaving.queue();
                    queue.offered = queue.offered.saturating_sub(1);
                }
            }
        }
    }
}

impl Handed {
    /// What the host is told; None if that is to be found out later.
    fn offer(self) -> Option<Offer> {
        let contract = self.end.contract();
        let passage = Passage {
            digest: contract.digest.0,
            side: self.end.side(),
            state: self.end.state(),
        };
        let (link, line, ticket) = (self.link.name(), self.line, self.ticket);
        let over = match Bridge::beside(&self.end) {
            Some(bridge) => bridge.hand_over(self),
            None => Handover::Stays(self),
        };
        let peer = match over {
            Handover::Behind(link, line) => Peer::Behind(link.name(), line),
            Handover::Waits => return None,
            Handover::Stays(handed) => Peer::Here(handed.wait()),
        };
        Some(Offer {
            link,
            line,
            ticket,
            passage,
            bytes: super::line_bytes(contract),
            peer,
        })
    }

    /// Its peer is here: from now on a bridge is in its place, which waits for its line by a number.
    fn wait(self) -> u64 {
        let bridge = Bridge::new(self.end, worker_lines::choose().unwrap_or_default());
        let mut tasks = tasks();
        tasks.last += 1;
        let number = tasks.last;
        tasks.asked.insert(number, bridge);
        number
    }
}

impl std::fmt::Debug for Leaving {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Leaving({:?})", self.pending)
    }
}
