//! Endpoints that come from another OS process: with a message, by number, and the lines for them, from the host.
//! Whichever is first waits for the other.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::bridge::{Bridge, Way};
use super::fault::{Fault, PENDING};
use super::hand_over::{Passage, put_claimed};
use super::link::{Link, Path, refuse};
use crate::inner::CORE;

/// What comes over a link, to one of its ends.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<State>);

#[derive(Default)]
struct State {
    /// The lines that are open, by number: who reads them, and the number of the next endpoint there.
    lines: BTreeMap<u64, (Weak<Bridge>, u32)>,
    /// Lines whose endpoints have not come, by the number of the line they are to come over and their own.
    arrived: BTreeMap<(u64, u32), (Passage, Option<Path>)>,
    /// Endpoints that have come and wait for their lines.
    waiting: BTreeMap<(u64, u32), Arc<Bridge>>,
}

impl Arrivals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn open(&self, line: u64, bridge: &Arc<Bridge>) {
        let known = (Arc::downgrade(bridge), 0);
        self.state().lines.insert(line, known);
    }
}

impl Way {
    /// The endpoints of the message that was read are there: each gets its bridge.
    pub(super) fn take(&mut self, worker: usize) -> Result<(), Fault> {
        let line = self.joint.number;
        let mut taken = Ok(());
        for (ticket, peer) in self.line.arriving.ends.drain(..) {
            let bridge = Bridge::new(peer, worker);
            let claimed = self.joint.link.claim((line, ticket), &bridge);
            taken = taken.and(claimed);
        }
        taken
    }

    /// The message that was read was none.
    pub(super) fn refuse_arriving(&mut self) {
        let ends = self.line.arriving.ends.drain(..);
        ends.for_each(|(_, end)| end.close());
    }
}

impl Link {
    fn claim(self: &Arc<Self>, key: (u64, u32), bridge: &Arc<Bridge>) -> Result<(), Fault> {
        let mut state = self.arrivals.state();
        if let Some((_, next)) = state.lines.get_mut(&key.0) {
            *next = key.1.wrapping_add(1);
        }
        if let Some((passage, way)) = state.arrived.remove(&key) {
            drop(state);
            bridge.arrive(&passage, way);
            put_claimed(self);
            return Ok(());
        }
        // The host says everything of a peer before it says that the peer has gone.
        let hopeless = self.is_down();
        let many = state.waiting.len() >= PENDING as usize;
        if !hopeless && !many {
            state.waiting.insert(key, bridge.clone());
            return Ok(());
        }
        drop(state);
        bridge.give_up();
        match many {
            true => Err(Fault::TooMany),
            false => Ok(()),
        }
    }

    /// The host has made a way for an endpoint that comes, or has come, over this link with that number over that line.
    /// Or it says that there will be none.
    pub fn arrive(self: &Arc<Self>, line: u64, ticket: u32, passage: Passage, way: Option<Path>) {
        let _host = CORE.as_host();
        let mut state = self.arrivals.state();
        if let Some(bridge) = state.waiting.remove(&(line, ticket)) {
            drop(state);
            bridge.arrive(&passage, way);
            return put_claimed(self);
        }
        let known = state.lines.get(&line);
        let comes = known.is_some_and(|(_, next)| ticket >= *next);
        if comes && !state.arrived.contains_key(&(line, ticket)) {
            state.arrived.insert((line, ticket), (passage, way));
            return;
        }
        drop(state);
        // Nobody will ever take it: its channel is over, or the peer has offered it twice.
        if let Some((link, memory)) = way {
            refuse(&memory, &link);
        }
        put_claimed(self);
    }

    /// Whoever had the other end of a line has sent it on, after everything that it has sent itself. The channel goes
    /// on elsewhere, or nowhere.
    pub fn moved(self: &Arc<Self>, line: u64, passage: Passage, way: Option<Path>) {
        let _host = CORE.as_host();
        let known = self
            .arrivals
            .state()
            .lines
            .get(&line)
            .map(|known| known.0.clone());
        match (known.and_then(|bridge| bridge.upgrade()), way) {
            (Some(bridge), way) => bridge.move_to(&passage, way),
            (None, Some((link, memory))) => refuse(&memory, &link),
            (None, None) => {}
        }
    }

    /// Nothing more is read there.
    pub(super) fn close_line(self: &Arc<Self>, line: u64) {
        let mut state = self.arrivals.state();
        state.lines.remove(&line);
        let late = state
            .arrived
            .extract_if((line, 0)..=(line, u32::MAX), |_, _| true);
        let late: Vec<_> = late.collect();
        drop(state);
        for (_, (_, way)) in late {
            if let Some((link, memory)) = way {
                refuse(&memory, &link);
            }
            put_claimed(self);
        }
    }

    /// The peer is no more: what it has sent is still received, and then its channels are closed.
    pub fn take_down(self: &Arc<Self>) {
        let _host = CORE.as_host();
        self.down.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut self.arrivals.state().waiting);
        waiting.values().for_each(|bridge| bridge.give_up());
        self.drop_offers();
        self.recall_all();
        super::worker_lines::change_all();
    }
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Arrivals")
    }
}
