//! The host, as a domain's kernel sees it: it has the names.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use mullion_sip::channel::{AnyEndpoint, Info};
use mullion_sip::critical::as_host;
use mullion_sip::process::names::{NameError, PATH};
use mullion_sip::remote::{LINK_BYTES, Link, Memory, Upstream, accept, join, line_bytes};
use mullion_sip::wait::{self, Waiter};

use crate::control::Control;
use crate::message::{
    Linked, Text, ToDomain, ToHost, error_number, error_of, side_number, side_of,
};

/// The host's control socket, and who waits for its answers.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) control: Control,
    last: AtomicU64,
    requests: Mutex<HashMap<u64, Request>>,
    links: Mutex<HashMap<u64, Arc<Link>>>,
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
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Answer {
    result: Result<(), NameError>,
    line: Option<(Arc<Link>, Memory)>,
}

static HOST: OnceLock<&'static Host> = OnceLock::new();

pub(crate) fn host() -> Option<&'static Host> {
    HOST.get().copied()
}

/// Listens to the host from now on, in a thread.
pub(crate) fn serve(host: &'static Host) -> io::Result<()> {
    let _ = HOST.set(host);
    thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            while let Ok(Some((message, descriptors))) = host.control.receive() {
                host.act(message, &descriptors);
            }
            crate::system::end_now(1)
        })?;
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

    fn links(&self) -> MutexGuard<'_, HashMap<u64, Arc<Link>>> {
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
                let line = link.and_then(|link| self.line(&link, descriptors));
                let result = error_of(error);
                self.answered(request, Answer { result, line });
            }
            ToDomain::Accept {
                request,
                path,
                digest,
                side,
                link,
            } => {
                let accepted = match self.line(&link, descriptors) {
                    Some((link, memory)) => accept(&path, digest, side_of(side), &link, memory),
                    None => Err(NameError::Busy),
                };
                let error = error_number(accepted);
                // Without the host there is no domain.
                let _ = self.control.send(&ToHost::Accepted { request, error }, &[]);
            }
            ToDomain::Down { link } => {
                if let Some(link) = self.links().remove(&link) {
                    link.take_down();
                }
            }
        }
    }

    /// The link and the line that come with a message.
    fn line(&self, linked: &Linked, descriptors: &[OwnedFd]) -> Option<(Arc<Link>, Memory)> {
        let [bells, line] = descriptors else {
            return None;
        };
        let line = Memory::map(line.as_fd(), 1).ok()?.numbered(linked.line);
        let mut links = self.links();
        if let Some(link) = links.get(&linked.link) {
            return Some((link.clone(), line));
        }
        let bells = Memory::map(bells.as_fd(), LINK_BYTES).ok()?;
        let link = Link::new(bells, linked.end.into(), &linked.peer, linked.sharer)?;
        links.insert(linked.link, link.clone());
        Some((link, line))
    }

    fn answered(&self, request: u64, answer: Answer) {
        let mut requests = self.requests();
        if let Some(waiting) = requests.get_mut(&request) {
            waiting.answer = Some(answer);
            wait::unpark(waiting.waiter);
        }
    }

    /// Asks, and waits for the answer.
    fn ask(&self, message: impl FnOnce(u64) -> ToHost) -> Answer {
        let refused = Answer {
            result: Err(NameError::Busy),
            line: None,
        };
        let waiter = wait::current();
        let request = {
            let _host = as_host();
            let request = self.last.fetch_add(1, Ordering::Relaxed);
            let answer = None;
            self.requests().insert(request, Request { waiter, answer });
            if self.control.send(&message(request), &[]).is_err() {
                self.requests().remove(&request);
                return refused;
            }
            request
        };
        loop {
            let found = {
                let _host = as_host();
                let mut requests = self.requests();
                match requests.get_mut(&request) {
                    Some(Request { answer: None, .. }) => None,
                    _ => Some(requests.remove(&request)),
                }
            };
            match found {
                None => wait::park(),
                Some(request) => {
                    return request
                        .and_then(|request| request.answer)
                        .unwrap_or(refused);
                }
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
        self.ask(message).result
    }

    fn unbind(&self, path: &str) {
        let _host = as_host();
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
        let Answer { result, line } = self.ask(message);
        let _host = as_host();
        match (result, line) {
            (Err(error), _) => Err((error, end)),
            (Ok(()), None) => Err((NameError::Busy, end)),
            // Refused, the end is closed, and its client hears of it.
            (Ok(()), Some((link, memory))) => {
                let _ = join(end, &link, memory);
                Ok(())
            }
        }
    }
}
