//! The host, as a domain's kernel sees it: it has the names.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use mullion_sip::channel::{AnyEndpoint, Info};
use mullion_sip::process::names::{NameError, PATH};
use mullion_sip::wait::{self, Waiter};
use mullion_sip_hosting::Parcel;
use mullion_sip_hosting::remote::{
    Carrier, LINK_BYTES, Link, Memory, Offer, Path, Peer, Upstream, accept, begin_hand_over, carry,
    given, join, line_bytes, refuse,
};
use mullion_sip_hosting::{Deputy, enter_kernel_as_host};

use crate::control::Control;
use crate::message::{
    End, Linked, Text, ToDomain, ToHost, error_number, error_of, side_number, side_of,
};

/// The host's control socket, and who waits for its answers.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) control: Control,
    last: AtomicU64,
    requests: Mutex<HashMap<u64, Request>>,
    links: Mutex<HashMap<End, Arc<Link>>>,
    orders: Mutex<Vec<Order>>,
    /// Who carries out orders.
    keeper: Waiter,
}

/// What the host has its domain's first thread do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// A member begins a life.
    Start { member: u32, life: u64 },
    /// A life ends.
    End { life: u64 },
    /// What there is.
    Look { request: u64 },
    /// Who has which memory.
    Map { request: u64 },
}

#[derive(Debug)]
struct Request {
    waiter: Waiter,
    /// What is to be joined, if the answer is a line.
    end: Option<Parcel<AnyEndpoint>>,
    answer: Option<Result<(), NameError>>,
}

static HOST: OnceLock<&'static Host> = OnceLock::new();

pub(crate) fn host() -> Option<&'static Host> {
    HOST.get().copied()
}

/// Listens to the host from now on, in a thread, and has another one tell it of endpoints that are sent. Both run when this
/// returns: what a thread asks of Linux as it starts is not asked later.
pub(crate) fn serve(host: &'static Host, deputy: Deputy) -> io::Result<()> {
    let _ = HOST.set(host);
    let (runs, run) = channel::<Infallible>();
    let carries = runs.clone();
    thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            // It gives ends to services. No worker runs it, so it is given the power.
            let _power = deputy.enter();
            drop(runs);
            // Those of a link and of a line.
            while let Ok(Some((message, descriptors))) = host.control.receive(2) {
                host.act(message, &descriptors);
            }
            crate::system::end_now(1)
        })?;
    begin_hand_over();
    thread::Builder::new()
        .name("endpoints".into())
        .spawn(move || {
            drop(carries);
            carry(host)
        })?;
    // Nobody says anything: each lets go of its end.
    let _ = run.recv();
    Ok(())
}

impl Host {
    /// For the thread that is to carry out orders.
    pub(crate) fn new(control: Control) -> Host {
        Host {
            control,
            last: AtomicU64::new(0),
            requests: Mutex::default(),
            links: Mutex::default(),
            orders: Mutex::default(),
            keeper: wait::current(),
        }
    }

    /// What it is to do, as the host has said it; who asks is woken when there is more.
    pub(crate) fn orders(&self) -> Vec<Order> {
        std::mem::take(&mut *self.order_list())
    }

    fn order(&self, order: Order) {
        self.order_list().push(order);
        wait::unpark(self.keeper);
    }

    fn order_list(&self) -> MutexGuard<'_, Vec<Order>> {
        self.orders
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u64, Request>> {
        self.requests
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn links(&self) -> MutexGuard<'_, HashMap<End, Arc<Link>>> {
        self.links
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn act(&self, message: ToDomain, descriptors: &[OwnedFd]) {
        match message {
            ToDomain::Begin { .. } => {}
            ToDomain::Start { member, life } => self.order(Order::Start { member, life }),
            ToDomain::End { life } => self.order(Order::End { life }),
            ToDomain::Look { request } => self.order(Order::Look { request }),
            ToDomain::Map { request } => self.order(Order::Map { request }),
            ToDomain::Answer {
                request,
                error,
                link,
            } => {
                let path = self.way(link, descriptors);
                self.answered(request, error_of(error), path);
            }
            ToDomain::Accept {
                request,
                path,
                digest,
                side,
                link,
            } => {
                // Refused, nobody else hears of the line.
                let accepted = match self.path(&link, descriptors) {
                    Some((link, memory)) => accept(&path, digest, side_of(side), &link, memory),
                    None => Err(NameError::Busy),
                };
                let error = error_number(accepted);
                // Without the host there is no domain.
                let _ = self.control.send(&ToHost::Accepted { request, error }, &[]);
            }
            ToDomain::Down { link } => {
                let mut links = self.links();
                let down: Vec<_> = links.extract_if(|end, _| end.link == link).collect();
                drop(links);
                down.iter().for_each(|(_, link)| link.take_down());
            }
            ToDomain::Given { number, path } => given(number, self.way(path, descriptors)),
            ToDomain::Offer {
                over,
                line,
                ticket,
                passage,
                path,
            } => {
                let way = self.way(path, descriptors);
                match (self.link(over), way) {
                    (Some(link), way) => link.arrive(line, ticket, passage.into(), way),
                    (None, way) => {
                        way.inspect(|(link, memory)| refuse(memory, link));
                        // As above.
                        let _ = self.control.send(&ToHost::Claimed { over }, &[]);
                    }
                }
            }
            ToDomain::Moved {
                over,
                line,
                passage,
                path,
            } => match (self.link(over), self.way(path, descriptors)) {
                (Some(link), way) => link.moved(line, passage.into(), way),
                (None, way) => drop(way.inspect(|(link, memory)| refuse(memory, link))),
            },
            ToDomain::Claimed { over } => {
                if let Some(link) = self.link(over) {
                    link.claimed();
                }
            }
        }
    }

    /// The link and the line that come with a message.
    fn path(&self, linked: &Linked, descriptors: &[OwnedFd]) -> Option<Path> {
        let [bells, line] = descriptors else {
            return None;
        };
        let line = Memory::map(line.as_fd(), 1).ok()?.numbered(linked.line);
        let end = linked.over();
        let mut links = self.links();
        if let Some(link) = links.get(&end) {
            return Some((link.clone(), line));
        }
        let bells = Memory::map(bells.as_fd(), LINK_BYTES).ok()?;
        let bells = bells.numbered(linked.link);
        let link = Link::new(bells, linked.end.into(), &linked.peer, linked.sharer)?;
        links.insert(end, link.clone());
        Some((link, line))
    }

    /// As [`Host::path`]; what cannot be mapped (no memory, too many mappings) is refused, of which the host tells
    /// whoever has the other half.
    fn way(&self, linked: Option<Linked>, descriptors: &[OwnedFd]) -> Option<Path> {
        let linked = linked?;
        self.path(&linked, descriptors).or_else(|| {
            let refused = ToHost::Refused {
                over: linked.over(),
            };
            let line = descriptors.get(1).map(|line| line.as_fd());
            // Without the line, or if it cannot be told, the host ends this domain, which is told to everybody.
            let _ = self.control.send(&refused, line.as_slice());
            None
        })
    }

    fn link(&self, end: End) -> Option<Arc<Link>> {
        self.links().get(&end).cloned()
    }

    /// An end is joined here, and not by who waits for the answer: what the host says next may be about its line.
    fn answered(&self, request: u64, result: Result<(), NameError>, path: Option<Path>) {
        let mut requests = self.requests();
        let waits = requests.get_mut(&request);
        let end = waits.and_then(|waits| waits.end.take_if(|_| result.is_ok()));
        drop(requests);
        if let (Some(end), Some((link, memory))) = (end, path) {
            // Refused, the end is closed, and its client hears of it.
            let _ = join(end.open(), &link, memory);
        }
        if let Some(waits) = self.requests().get_mut(&request) {
            waits.answer = Some(result);
            wait::unpark(waits.waiter);
        }
    }

    /// Asks, and waits for the answer. An end comes back if nobody wants it. It is packed and opened within the kernel's
    /// pieces, so that it is the caller's or the request's at any time.
    fn ask(
        &self,
        end: Option<AnyEndpoint>,
        message: impl FnOnce(u64) -> ToHost,
    ) -> (Result<(), NameError>, Option<AnyEndpoint>) {
        let waiter = wait::current();
        let request = {
            // SAFETY: the piece takes a lock and sends a message; it does not park, panic or run code of others. What it
            // allocates is in the list of requests, where the answer, or the host's end, finds it.
            let _host = unsafe { enter_kernel_as_host() };
            let request = self.last.fetch_add(1, Ordering::Relaxed);
            let waits = Request {
                waiter,
                end: end.map(Parcel::pack),
                answer: None,
            };
            self.requests().insert(request, waits);
            if self.control.send(&message(request), &[]).is_err() {
                let unsent = self.requests().remove(&request);
                let end = unsent.and_then(|unsent| unsent.end);
                return (Err(NameError::Busy), end.map(Parcel::open));
            }
            request
        };
        loop {
            let found = {
                // SAFETY: the piece takes a lock and sends a message; it does not park, panic or run code of others. What it
                // allocates is in the list of requests, where the answer, or the host's end, finds it.
                let _host = unsafe { enter_kernel_as_host() };
                let mut requests = self.requests();
                let answered = requests
                    .get(&request)
                    .is_none_or(|waits| waits.answer.is_some());
                let waits = answered.then(|| requests.remove(&request));
                drop(requests);
                waits.map(|waits| match waits {
                    None => (Err(NameError::Busy), None),
                    Some(Request { answer, end, .. }) => (
                        answer.unwrap_or(Err(NameError::Busy)),
                        end.map(Parcel::open),
                    ),
                })
            };
            match found {
                None => wait::park(),
                Some(answered) => return answered,
            }
        }
    }
}

impl Upstream for Host {
    fn bind(&self, path: &str, contract: &'static Info) -> Result<(), NameError> {
        let digest = contract.digest.0;
        let message = |request| ToHost::Bind {
            request,
            path: Text::new(path),
            digest,
        };
        self.ask(None, message).0
    }

    fn unbind(&self, path: &str) {
        // SAFETY: the piece takes a lock and sends a message; it does not park, panic or run code of others. What it
        // allocates is in the list of requests, where the answer, or the host's end, finds it.
        let _host = unsafe { enter_kernel_as_host() };
        let path = Text::new(path);
        // Without the host there is no domain.
        let _ = self.control.send(&ToHost::Unbind { path }, &[]);
    }

    fn open(&self, path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)> {
        if path.len() > PATH {
            return Err((NameError::Malformed, end));
        }
        let (contract, side) = (end.info(), end.side());
        let message = |request| ToHost::Open {
            request,
            path: Text::new(path),
            digest: contract.digest.0,
            side: side_number(side),
            bytes: line_bytes(contract) as u64,
        };
        let (result, back) = self.ask(Some(end), message);
        match (result, back) {
            (Err(error), Some(end)) => Err((error, end)),
            // Its end is closed, if there is no line: its client hears of it.
            _ => Ok(()),
        }
    }
}

impl Carrier for Host {
    fn offer(&self, offer: &Offer) {
        let (number, behind) = match offer.peer {
            Peer::Here(number) => (number, None),
            Peer::Behind(link, line) => (0, Some((End::of(link), line))),
        };
        let message = ToHost::Offer {
            over: End::of(offer.link),
            line: offer.line,
            ticket: offer.ticket,
            passage: offer.passage.into(),
            bytes: offer.bytes as u64,
            number,
            behind,
        };
        // Without the host there is no domain.
        let _ = self.control.send(&message, &[]);
    }

    fn claimed(&self, link: (u64, u8)) {
        let over = End::of(link);
        // As above.
        let _ = self.control.send(&ToHost::Claimed { over }, &[]);
    }
}

#[cfg(test)]
mod tests;
