//! Waiting for several endpoints at once.

use std::time::{Duration, Instant};

use mullion_sip_core::wait;

use super::contract::Ring;
use super::place::EndpointPlace;

/// An endpoint in a state in which it receives.
pub trait Incoming {
    /// What [`select`] looks at.
    fn port(&self) -> Port<'_>;
}

/// Where an endpoint's next message arrives.
pub struct Port<'a> {
    place: &'a EndpointPlace,
    ring: Ring,
}

impl<'a> Port<'a> {
    pub(super) fn of(place: &'a EndpointPlace, ring: Ring) -> Port<'a> {
        Port { place, ring }
    }

    /// Whether a receive would return at once: there is a message, or the peer has gone.
    fn ready(&self) -> bool {
        self.place.next(self.ring).is_some() || self.place.peer_gone()
    }
}

impl std::fmt::Debug for Port<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.place.fmt(formatter)
    }
}

/// Waits until one of the endpoints has a message or has lost its peer. It returns the index of the first that has;
/// earlier ones go before later ones. A receive on it returns at once.
///
/// With no endpoints it waits for ever.
pub fn select(endpoints: &[&dyn Incoming]) -> usize {
    loop {
        if let Some(index) = wait_until(endpoints, None) {
            return index;
        }
    }
}

/// [`select`], but not longer than `timeout`.
pub fn select_for(endpoints: &[&dyn Incoming], timeout: Duration) -> Option<usize> {
    wait_until(endpoints, super::deadline(timeout))
}

fn wait_until(endpoints: &[&dyn Incoming], deadline: Option<Instant>) -> Option<usize> {
    let ready = || {
        endpoints
            .iter()
            .position(|endpoint| endpoint.port().ready())
    };
    loop {
        if let Some(index) = ready() {
            return Some(index);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let me = wait::current();
        for endpoint in endpoints {
            endpoint.port().place.register(me);
        }
        if ready().is_none() {
            match deadline {
                None => wait::park(),
                Some(deadline) => wait::park_until(deadline),
            }
        }
        for endpoint in endpoints {
            endpoint.port().place.unregister();
        }
    }
}
