//! Endpoints that processes send to other OS processes: the host makes a line for each, and tells both sides.
//!
//! ```text
//!   from -- over ----> to       the endpoint has gone this way, in a message, with a number
//!     \                :
//!      peer  = new line :       its peer is in `from`, or behind another line of `from`'s
//! ```
//! Each side hears of a line from the host before anybody can send anything over it: first the peer, then the receiver.
//! Each side holds the endpoint against what it knows itself; what a domain claims it can claim of its own
//! ends of links only. Who offers more than [`WINDOW`] at a time over one end of a link is ended. Who cannot map its side of
//! a line says so, and the other side finds it closed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use mullion_sip_hosting::remote::{
    self, Carrier, LINK_BYTES, Link, Memory, Offer, Path, WINDOW, begin_hand_over, carry,
};

use crate::message::{End, Linked, Passing, ToDomain};
use crate::registry::{HOST, LINES, LineFile, Registry, registry};

/// Where the peer of an endpoint is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// With who sends it, who is to be answered with this number.
    Here(u64),
    /// Behind a line over another end of a link.
    Behind(End, u64),
}

/// An endpoint that has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed {
    pub(crate) over: End,
    pub(crate) line: u64,
    pub(crate) ticket: u32,
    pub(crate) passage: Passing,
    pub(crate) bytes: u64,
    pub(crate) peer: Peer,
}

/// The host's own endpoints.
struct HandOver;

impl Carrier for HandOver {
    fn offer(&self, offer: &Offer) {
        let handed = Handed {
            over: End::of(offer.link),
            line: offer.line,
            ticket: offer.ticket,
            passage: offer.passage.into(),
            bytes: offer.bytes as u64,
            peer: match offer.peer {
                remote::Peer::Here(number) => Peer::Here(number),
                remote::Peer::Behind(link, line) => Peer::Behind(End::of(link), line),
            },
        };
        let _opening = opening();
        // The host keeps to its own rules.
        let _ = self::offer(HOST, &handed);
    }

    fn claimed(&self, link: (u64, u8)) {
        claimed(HOST, End::of(link));
    }
}

/// While somebody opens a name of the host for a domain, the host's endpoints wait: a service may send one over the line
/// of a client who has not been told of it.
pub(crate) fn opening() -> MutexGuard<'static, ()> {
    static OPENING: Mutex<()> = Mutex::new(());
    OPENING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Has the host's own endpoints carried, from now on.
pub(crate) fn serve() -> io::Result<()> {
    static SERVED: OnceLock<()> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock();
    if SERVED.get().is_none() {
        let thread = thread::Builder::new().name("endpoints".into());
        thread.spawn(|| carry(&HandOver))?;
        begin_hand_over();
        let _ = SERVED.set(());
    }
    Ok(())
}

/// A domain, or the host, has sent an endpoint.
///
/// # Errors
/// It has offered more than it may.
pub(crate) fn offer(from: u64, handed: &Handed) -> io::Result<()> {
    let mut all = registry();
    let to = all.across(from, handed.over);
    if let Some(to) = to {
        if let Some(offered) = all.offered(handed.over.other()) {
            if *offered >= WINDOW {
                return Err(io::Error::other("more endpoints than can be offered"));
            }
            *offered += 1;
        }
        let peer = match handed.peer {
            Peer::Here(_) => Some(from),
            Peer::Behind(end, _) => all.across(from, end),
        };
        let made = peer.and_then(|peer| all.make(peer, to, handed.bytes).ok());
        let (peers, its) = made.unzip();
        all.tell_peer(from, handed, peers);
        all.tell_receiver(to, handed, its);
    } else {
        all.tell_peer(from, handed, None);
    }
    Ok(())
}

/// An endpoint that was offered to a domain, or the host, over this end of a link has been taken or refused.
pub(crate) fn claimed(by: u64, over: End) {
    let mut all = registry();
    let Some(from) = all.across(by, over) else {
        return;
    };
    match all.offered(over) {
        Some(offered) if *offered > 0 => *offered -= 1,
        _ => return,
    }
    let over = over.other();
    match all.host_link(over) {
        Some(link) if from == HOST => link.claimed(),
        _ => all.tell(from, &ToDomain::Claimed { over }, None),
    }
}

/// A domain cannot have a line that it was told of over this end of a link. Whoever has the other half, or will have it,
/// finds it closed. The memory is the domain's word, and may be any that it has: nothing is written there that it could not
/// write itself.
///
/// # Errors
/// It has no such memory, or the host cannot map it either: then the domain is to end, which whoever waits hears of too.
pub(crate) fn refused(by: u64, over: End, files: &[OwnedFd]) -> io::Result<()> {
    let all = registry();
    let bells = all.across(by, over).and_then(|_| all.bells(over));
    drop(all);
    let (Some(bells), [line]) = (bells, files) else {
        // The other one has gone, or it is no answer to anything.
        return match files {
            [_] => Ok(()),
            _ => Err(io::Error::other("a line that is refused comes back")),
        };
    };
    let line = Memory::map(line.as_fd(), 1)?;
    let bells = Memory::map(bells.as_fd(), LINK_BYTES)?;
    let link = Link::new(bells, over.end.into(), "", None).ok_or(io::ErrorKind::InvalidInput)?;
    remote::refuse(&line, &link);
    Ok(())
}

/// One side of a new line: for a domain, or for the host itself.
#[allow(
    clippy::large_enum_variant,
    reason = "two at a time, and texts in place"
)]
enum Side {
    Domain(Linked, Arc<OwnedFd>, Arc<LineFile>),
    Host(Path),
}

impl Side {
    fn of_host(side: Option<Side>) -> Option<Path> {
        match side? {
            Side::Host(path) => Some(path),
            Side::Domain(..) => None,
        }
    }
}

type Files = Option<(Arc<OwnedFd>, Arc<LineFile>)>;

fn of_domain(side: Option<Side>) -> (Option<Linked>, Files) {
    match side {
        Some(Side::Domain(linked, bells, line)) => (Some(linked), Some((bells, line))),
        _ => (None, None),
    }
}

impl Registry {
    /// A line between the peer of an endpoint and who gets it.
    fn make(&mut self, peer: u64, to: u64, bytes: u64) -> io::Result<(Side, Side)> {
        if !LINES.contains(&bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let line = Arc::new(self.line(peer, to, bytes as usize)?);
        Ok((
            self.side(peer, to, 0, &line)?,
            self.side(to, peer, 1, &line)?,
        ))
    }

    /// One's side of it; which end, if both are the same domain.
    fn side(&mut self, mine: u64, other: u64, end: u8, line: &Arc<LineFile>) -> io::Result<Side> {
        let (mut linked, bells) = self.linked(mine, other, line.number)?;
        if mine == other {
            linked.end = end;
        }
        if mine != HOST {
            return Ok(Side::Domain(linked, bells, line.clone()));
        }
        let link = self.host_link(End {
            link: linked.link,
            end: linked.end,
        });
        let link = link.ok_or(io::ErrorKind::NotFound)?;
        Ok(Side::Host((link, line.map()?)))
    }

    fn tell_peer(&self, from: u64, handed: &Handed, side: Option<Side>) {
        let passage = handed.passage;
        match handed.peer {
            Peer::Here(number) if from == HOST => remote::given(number, Side::of_host(side)),
            Peer::Here(number) => {
                let (path, files) = of_domain(side);
                self.tell(from, &ToDomain::Given { number, path }, files);
            }
            Peer::Behind(end, line) => {
                let over = end.other();
                match self.across(from, end) {
                    None => {}
                    Some(HOST) => {
                        if let Some(link) = self.host_link(over) {
                            link.moved(line, passage.into(), Side::of_host(side));
                        }
                    }
                    Some(peer) => {
                        let (path, files) = of_domain(side);
                        let moved = ToDomain::Moved {
                            over,
                            line,
                            passage,
                            path,
                        };
                        self.tell(peer, &moved, files);
                    }
                }
            }
        }
    }

    fn tell_receiver(&self, to: u64, handed: &Handed, side: Option<Side>) {
        let (over, line, ticket) = (handed.over.other(), handed.line, handed.ticket);
        let passage = handed.passage;
        if to == HOST {
            if let Some(link) = self.host_link(over) {
                link.arrive(line, ticket, passage.into(), Side::of_host(side));
            }
            return;
        }
        let (path, files) = of_domain(side);
        let offer = ToDomain::Offer {
            over,
            line,
            ticket,
            passage,
            path,
        };
        self.tell(to, &offer, files);
    }

    /// Who does not read what it is told is ended by it.
    fn tell(&self, whom: u64, message: &ToDomain, files: Files) {
        let Some(domain) = self.domains.get(&whom) else {
            return;
        };
        let _ = match &files {
            Some((bells, line)) => {
                let files = [bells.as_fd(), line.file.as_fd()];
                domain.control.send(message, &files)
            }
            None => domain.control.send(message, &[]),
        };
    }
}
