//! How a bridge comes to its way, and from one to another.
//!
//! ```text
//!   D -- bridge == line 1 == bridge -- channel -- endpoint     the endpoint is sent from A to B
//!        D                          A
//!   D -- bridge == line 2 == bridge -- channel -- endpoint     A is out of the way
//!        D                          B
//! ```
//! An endpoint is sent only in a state in which it is to send. So nothing is on its way to it, and what it has sent
//! before is in line 1 when A gives that up. D reads line 1 to its end, and then goes on with line 2.

use std::sync::Arc;

use mullion_sip_core::order::fence;

use super::bridge::{Bridge, Ends, Way};
use super::fault::{Fault, report};
use super::hand_over::Handed;
use super::link::{Path, refuse};
use super::{Link, Memory, Passage, worker_lines};

/// What has become of a channel that was to be handed over.
pub(super) enum Handover {
    /// It is over this link and this line that its peer is; this OS process has nothing to do with it any more.
    Behind(Arc<Link>, u64),
    /// It is not known yet where its peer is. Later.
    Waits,
    /// Its peer has gone, or somebody else has to do with it: here is the endpoint again.
    Stays(Handed),
}

impl Bridge {
    /// Goes on over this link and memory. False if the memory is too small: then the channel has ended.
    pub(super) fn begin(self: &Arc<Self>, link: &Arc<Link>, memory: Memory) -> bool {
        let mut ends = self.ends();
        let begun = self.go(&mut ends, link, memory);
        let heir = ends.heir.take();
        drop(ends);
        self.pump();
        heir.into_iter().for_each(super::hand_over::put);
        begun
    }

    /// As [`Bridge::begin`], if the sender of the endpoint has said of it what it is.
    pub(super) fn arrive(self: &Arc<Self>, passage: &Passage, way: Option<Path>) {
        let ends = self.ends();
        let fits = passage.fits(&ends, ends.side);
        let contract = ends.contract;
        drop(ends);
        match way {
            Some((link, memory)) if fits => {
                self.begin(&link, memory);
            }
            Some((link, memory)) => {
                report(contract, link.peer(), Fault::Endpoint);
                refuse(&memory, &link);
                self.give_up();
            }
            None => self.give_up(),
        }
    }

    /// There is no way, nor will be.
    pub(super) fn give_up(&self) {
        self.end(&mut self.ends());
    }

    /// For an end whose peer has been handed on by whoever had it: reads what it has sent before, and goes on elsewhere.
    pub(super) fn move_to(self: &Arc<Self>, passage: &Passage, way: Option<Path>) {
        let mut ends = self.ends();
        self.move_all(&mut ends);
        let fits = passage.fits(&ends, ends.side.peer());
        match way {
            Some((link, memory)) if fits && ends.local.is_some() => {
                self.go(&mut ends, &link, memory);
            }
            way => {
                if let Some((link, memory)) = way {
                    if !fits && ends.local.is_some() {
                        report(ends.contract, link.peer(), Fault::Endpoint);
                    }
                    refuse(&memory, &link);
                }
                self.end(&mut ends);
            }
        }
        drop(ends);
        self.pump();
    }

    fn go(self: &Arc<Self>, ends: &mut Ends, link: &Arc<Link>, memory: Memory) -> bool {
        let known = memory.clone();
        let way = Way::new(self, ends, link, memory);
        if ends.local.is_none() || way.is_none() {
            drop(way);
            refuse(&known, link);
            self.end(ends);
            return false;
        }
        let joint = way.as_ref().map(|way| way.joint.clone());
        ends.way = way;
        // Whoever has closed in between is seen when this is pumped.
        fence();
        if let Some(joint) = joint {
            worker_lines::add(self.worker(), self.clone(), joint);
        }
        true
    }

    /// The endpoint of this bridge's channel has been sent on: gives up the way, for whoever gets the endpoint.
    pub(super) fn hand_over(&self, endpoint: Handed) -> Handover {
        let mut ends = self.ends();
        if ends.local.is_some() && ends.way.is_none() {
            ends.heir = Some(endpoint);
            return Handover::Waits;
        }
        // What it has sent before; and maybe the peer has closed.
        self.move_all(&mut ends);
        if ends.local.is_none() {
            return Handover::Stays(endpoint);
        }
        let (local, way) = (ends.local.take(), ends.way.take());
        drop(ends);
        endpoint.end.close();
        local.into_iter().for_each(|local| local.close());
        worker_lines::change(self.worker());
        match way {
            Some(mut way) => {
                let lent = way.line.take_lent();
                way.joint.link.remember(lent);
                Handover::Behind(way.joint.link.clone(), way.joint.number)
            }
            None => unreachable!("looked at above"),
        }
    }
}

impl Passage {
    /// Whether a channel is what was said.
    fn fits(&self, ends: &Ends, side: mullion_sip_exchange::channel::Side) -> bool {
        self.digest == ends.contract.digest.0 && self.side == side && self.state == ends.state
    }
}
