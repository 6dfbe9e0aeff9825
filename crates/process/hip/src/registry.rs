//! What the host knows: its domains, what they share, and who waits for an answer.

use std::collections::HashMap;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

use mullion_sip::channel::AnyEndpoint;
use mullion_sip::owner::Owner;
use mullion_sip::process::names::{self, NameError};
use mullion_sip::process::{Exit, Rights};
use mullion_sip::wait::{self, Waiter};
use mullion_sip_hosting::common_memory::Sharing;
use mullion_sip_hosting::remote::{
    ARENA, Elsewhere, LINK_BYTES, Link, Memory, Place, accept, bind_elsewhere, join, line_bytes,
    place_of,
};
use mullion_sip_hosting::{DecideError, Parcel};
use rustix::process::{Signal, pidfd_send_signal};

use crate::control::Control;
use crate::decide::{self, Decider};
use crate::endpoints;
use crate::files;
use crate::lives::{DomainView, Lives};
use crate::members::{self, Members};
use crate::message::{End, Linked, Text, ToDomain, error_number, error_of, side_number, side_of};

/// Names that a domain may have bound at a time.
const NAMES: usize = 1024;
/// Bytes of a channel's memory: two arenas, and rings as large as a contract's may be.
pub(crate) const LINES: RangeInclusive<u64> = 2 * ARENA as u64..=2 * ARENA as u64 + (64 << 20);
/// The host, among domains.
pub(crate) const HOST: u64 = 0;

/// A domain, as the host has it.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) rights: Rights,
    pub(crate) control: Control,
    pub(crate) lives: Lives,
    /// Who it is among those that share memory.
    pub(crate) member: Option<members::Place>,
    /// The number of its OS process, once that has been started.
    pub(crate) process: OnceLock<u32>,
    /// Whether it has said that it is ready. Before, it is told how to begin, and nothing else.
    pub(crate) ready: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Registry {
    last: u64,
    /// Of all domains ever.
    workers: u32,
    pub(crate) domains: HashMap<u64, Arc<Domain>>,
    stands: HashMap<u64, Stand>,
    /// Who has bound a name.
    names: HashMap<String, u64>,
    /// By the two domains, the smaller first.
    links: HashMap<(u64, u64), Shared>,
    pending: HashMap<u64, Pending>,
    members: Members,
}

/// What stands for a domain, and where the domain runs.
#[derive(Default)]
struct Stand {
    owner: Option<Owner>,
    process: Option<OwnedFd>,
    waiter: Option<Waiter>,
    exit: Option<Exit>,
}

/// What two domains share.
struct Shared {
    number: u64,
    bells: Arc<OwnedFd>,
    /// The host's own ends, if it is one of the two, or both.
    host: [Option<Arc<Link>>; 2],
    /// Endpoints that were offered to each of the two, and that it has not taken.
    offered: [u32; 2],
}

/// A domain was asked to accept an end, and has not answered.
struct Pending {
    asked: u64,
    line: LineFile,
    asker: Asker,
}

/// The memory of a channel, and its number: of no other channel ever.
pub(crate) struct LineFile {
    pub(crate) file: OwnedFd,
    pub(crate) number: u64,
}

impl LineFile {
    /// For an end in this OS process.
    pub(crate) fn map(&self) -> io::Result<Memory> {
        Ok(Memory::map(self.file.as_fd(), 1)?.numbered(self.number))
    }
}

enum Asker {
    /// A process of the host, whose end waits here, and the line.
    Host(Parcel<AnyEndpoint>, Arc<Link>, Memory),
    /// A request of another domain.
    Domain(u64, u64),
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A new domain; if it is to share memory, with that memory.
pub(crate) fn add(
    name: &str,
    rights: &Rights,
    share: Option<Sharing>,
    control: Control,
) -> io::Result<(Arc<Domain>, Option<Arc<OwnedFd>>)> {
    let mut registry = registry();
    let id = registry.number();
    decide::ask(|decider| decider.begin(id, name))?;
    let joined = share.map(|sharing| {
        decide::ask(|decider| decider.share(id, sharing))?;
        registry.members.join(sharing)
    });
    let joined = joined.transpose();
    let (member, common_memory) = joined
        .inspect_err(|_| decide::tell(|decider| decider.end(id)))?
        .unzip();
    let domain = Arc::new(Domain {
        id,
        name: name.into(),
        rights: rights.clone(),
        control,
        lives: Lives::default(),
        member,
        process: OnceLock::new(),
        ready: AtomicBool::new(false),
    });
    registry.stands.insert(domain.id, Stand::default());
    registry.domains.insert(domain.id, domain.clone());
    Ok((domain, common_memory))
}

/// The host's domains and what they share, of one moment.
#[derive(Debug)]
pub struct Group {
    /// The domains that have begun and not ended.
    pub domains: Vec<DomainView>,
    /// Which two have channels between them, by their numbers; the host's is 0.
    pub links: Vec<(u64, u64)>,
    /// The processes of the host that stand for domains, and the names of these.
    pub stands: Vec<(Owner, String)>,
}

/// The domains of this host.
pub fn groups() -> Group {
    let registry = registry();
    let ready = |domain: &&Arc<Domain>| domain.ready.load(Ordering::Acquire);
    let ready = registry.domains.values().filter(ready);
    let mut domains: Vec<DomainView> = ready.cloned().map(DomainView).collect();
    domains.sort_by_key(DomainView::id);
    let mut links: Vec<(u64, u64)> = registry.links.keys().copied().collect();
    links.sort_unstable();
    let stands = registry.stands.iter().filter_map(|(id, stand)| {
        let domain = registry.domains.get(id)?;
        Some((stand.owner?, domain.name.clone()))
    });
    Group {
        stands: stands.collect(),
        domains,
        links,
    }
}

/// Has `decider` asked from now on; before the first domain is launched.
///
/// # Errors
/// There is a decider, or there has been a domain.
pub fn decided_by(decider: Box<dyn Decider>) -> Result<(), DecideError> {
    let registry = registry();
    match registry.last {
        0 => decide::set(decider),
        _ => Err(DecideError::Started),
    }
}

/// What a process is told of a channel that cannot be.
fn refusal(error: &io::Error) -> NameError {
    match decide::is_refusal(error) {
        true => NameError::NotPermitted,
        false => NameError::Busy,
    }
}

/// Where the next domain's workers begin: domains are spread over the processors.
pub(crate) fn next_processors(workers: u32) -> u32 {
    let mut registry = registry();
    let first = registry.workers;
    registry.workers = first.wrapping_add(workers.max(1));
    first
}

/// Its OS process runs.
pub(crate) fn started(id: u64, process: OwnedFd) {
    if let Some(stand) = registry().stands.get_mut(&id) {
        stand.process = Some(process);
    }
}

/// From now on a process of the host stands for it.
pub(crate) fn stand(id: u64, owner: Owner) {
    if let Some(stand) = registry().stands.get_mut(&id) {
        stand.owner = Some(owner);
    }
}

/// Nothing stands for it, nor will.
pub(crate) fn forget(id: u64) {
    if let Some(stand) = registry().stands.remove(&id) {
        stand.end();
    }
}

/// How a domain has ended; else the waiter is woken when it does.
pub(crate) fn exit_of(id: u64, waiter: Waiter) -> Option<Exit> {
    let mut registry = registry();
    let stand = registry.stands.get_mut(&id)?;
    stand.waiter = Some(waiter);
    stand.exit
}

/// The process that stood for a domain has ended: if that was not the domain's doing, the domain ends. Its
/// names are free, and its peers know, when the process's parent hears of it.
pub(crate) fn fell(owner: Owner) {
    let mut all = registry();
    let stood = |_: &u64, stand: &mut Stand| stand.owner == Some(owner);
    let fallen: Vec<_> = all.stands.extract_if(stood).collect();
    for (id, stand) in fallen {
        stand.end();
        let domain = all.domains.get(&id).cloned();
        drop(all);
        if let Some(domain) = domain {
            domain.retire();
        }
        all = registry();
    }
}

impl Stand {
    fn end(&self) {
        if let (None, Some(process)) = (self.exit, &self.process) {
            // It may have ended just now.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

impl Registry {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Memory for a channel between two.
    pub(crate) fn line(&mut self, one: u64, other: u64, bytes: usize) -> io::Result<LineFile> {
        let two = (one.min(other), one.max(other));
        decide::ask(|decider| decider.channel(two, bytes as u64))?;
        Ok(LineFile {
            file: files::create("mullion-line", bytes)?,
            number: self.number(),
        })
    }

    /// What two domains share that live, made at their first channel.
    fn link(&mut self, one: u64, other: u64, peer: &str) -> io::Result<&Shared> {
        let key = (one.min(other), one.max(other));
        let lives = |id: u64| id == HOST || self.domains.contains_key(&id);
        if !lives(one) || !lives(other) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !self.links.contains_key(&key) {
            decide::ask(|decider| decider.link(key))?;
            let shared = self.new_link(key, peer);
            let shared = shared.inspect_err(|_| decide::tell(|decider| decider.unlink(key)))?;
            self.links.insert(key, shared);
        }
        self.links
            .get(&key)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The memory of a link that may be.
    fn new_link(&mut self, key: (u64, u64), peer: &str) -> io::Result<Shared> {
        let bells = files::create("mullion-bells", LINK_BYTES)?;
        let number = self.number();
        let mut host = [None, None];
        for (end, side) in [key.0, key.1].into_iter().enumerate() {
            if side == HOST {
                let memory = Memory::map(bells.as_fd(), LINK_BYTES)?.numbered(number);
                host[end] = Link::new(memory, end, peer, self.sharer(HOST, key.1));
            }
        }
        Ok(Shared {
            number,
            bells: Arc::new(bells),
            host,
            offered: [0, 0],
        })
    }

    fn name_of(&self, id: u64) -> String {
        let known = self.domains.get(&id).map(|domain| domain.name.clone());
        known.unwrap_or_else(|| "host".into())
    }

    /// Who a domain, or the host, is among those that share memory.
    fn member(&self, id: u64) -> Option<members::Place> {
        match id {
            HOST => self.members.host(),
            id => self.domains.get(&id)?.member,
        }
    }

    /// The life of the other of two that share memory with each other.
    fn sharer(&self, mine: u64, other: u64) -> Option<u16> {
        let (one, two) = (self.member(mine)?, self.member(other)?);
        let both = mine != other && one.sharing == two.sharing;
        both.then_some(two.member.life)
    }

    /// Who is at the other end of a link, if this one is at the end that is meant.
    pub(crate) fn across(&self, mine: u64, end: End) -> Option<u64> {
        let known = |(_, shared): &(_, &Shared)| shared.number == end.link;
        let ((first, second), _) = self.links.iter().find(known)?;
        match (end.end, mine) {
            (0, mine) if mine == *first => Some(*second),
            (1, mine) if mine == *second => Some(*first),
            _ => None,
        }
    }

    /// Endpoints that were offered to who is at that end of a link, which there is, and not taken.
    pub(crate) fn offered(&mut self, to: End) -> Option<&mut u32> {
        let mut links = self.links.values_mut();
        let shared = links.find(|shared| shared.number == to.link)?;
        shared.offered.get_mut(usize::from(to.end))
    }

    /// The memory of a link's bells.
    pub(crate) fn bells(&self, end: End) -> Option<Arc<OwnedFd>> {
        let mut links = self.links.values();
        let shared = links.find(|shared| shared.number == end.link)?;
        Some(shared.bells.clone())
    }

    /// The host's own end of a link.
    pub(crate) fn host_link(&self, end: End) -> Option<Arc<Link>> {
        let mut links = self.links.values();
        let shared = links.find(|shared| shared.number == end.link)?;
        shared.host.get(usize::from(end.end))?.clone()
    }

    /// One end of what they share, as its domain is told.
    pub(crate) fn linked(
        &mut self,
        mine: u64,
        other: u64,
        line: u64,
    ) -> io::Result<(Linked, Arc<OwnedFd>)> {
        let peer = self.name_of(other);
        let host_sees = self.name_of(mine.max(other));
        let sharer = self.sharer(mine, other);
        let shared = self.link(mine, other, &host_sees)?;
        let linked = Linked {
            link: shared.number,
            line,
            end: (mine > other).into(),
            peer: Text::new(&peer),
            sharer,
        };
        Ok((linked, shared.bells.clone()))
    }

    /// Asks a domain to accept an end.
    fn ask(
        &mut self,
        asked: &Domain,
        asker: Asker,
        line: LineFile,
        (path, digest, side): (&str, [u8; 32], u8),
    ) -> io::Result<()> {
        let from = match &asker {
            Asker::Host(..) => HOST,
            Asker::Domain(id, _) => *id,
        };
        let (link, bells) = self.linked(asked.id, from, line.number)?;
        let request = self.number();
        let message = ToDomain::Accept {
            request,
            path: Text::new(path),
            digest,
            side,
            link,
        };
        asked
            .control
            .send(&message, &[bells.as_fd(), line.file.as_fd()])?;
        let pending = Pending {
            asked: asked.id,
            line,
            asker,
        };
        self.pending.insert(request, pending);
        Ok(())
    }
}

/// A name of a domain, for the processes of the host.
struct Name(Arc<Domain>);

impl Elsewhere for Name {
    fn connect(
        &self,
        path: &str,
        end: Parcel<AnyEndpoint>,
    ) -> Result<(), (NameError, Parcel<AnyEndpoint>)> {
        let end = end.open();
        let (contract, side) = (end.info(), end.side());
        let end = Parcel::pack(end);
        let mut registry = registry();
        let made = registry
            .line(HOST, self.0.id, line_bytes(contract))
            // Mapped before anybody hears of it: afterwards nothing can go wrong here.
            .and_then(|line| Ok((line.map()?, line)))
            .and_then(|(memory, line)| {
                let shared = registry.link(HOST, self.0.id, &self.0.name)?;
                let link = shared.host[0].clone();
                Ok((memory, line, link.ok_or(io::ErrorKind::NotFound)?))
            });
        let (memory, line, link) = match made {
            Ok(made) => made,
            Err(error) => return Err((refusal(&error), end)),
        };
        let what = (path, contract.digest.0, side_number(side));
        // If it cannot be asked, the end is closed with the request, as if the service had died just after.
        let _ = registry.ask(&self.0, Asker::Host(end, link, memory), line, what);
        Ok(())
    }
}

impl Domain {
    fn answer(&self, request: u64, result: Result<(), NameError>) -> io::Result<()> {
        let message = ToDomain::Answer {
            request,
            error: error_number(result),
            link: None,
        };
        self.control.send(&message, &[])
    }

    /// A process of the domain wants a name.
    pub(crate) fn bind(
        self: &Arc<Self>,
        request: u64,
        path: &str,
        digest: [u8; 32],
    ) -> io::Result<()> {
        self.answer(request, self.try_bind(path, digest))
    }

    fn try_bind(self: &Arc<Self>, path: &str, digest: [u8; 32]) -> Result<(), NameError> {
        if !self.rights.may_bind(path) {
            return Err(NameError::NotPermitted);
        }
        let mut all = registry();
        if !all.domains.contains_key(&self.id) {
            return Err(NameError::NotPermitted);
        }
        if all.names.values().filter(|id| **id == self.id).count() >= NAMES {
            return Err(NameError::TooMany);
        }
        bind_elsewhere(path, digest, Arc::new(Name(self.clone())))?;
        all.names.insert(path.into(), self.id);
        Ok(())
    }

    /// It wants it no more.
    pub(crate) fn unbind(&self, path: &str) {
        let mut registry = registry();
        if registry.names.get(path) == Some(&self.id) {
            registry.names.remove(path);
            drop(registry);
            // Whoever bound it was this thread's owner, the host.
            let _ = names::unbind(path);
        }
    }

    /// A process of the domain gives an end to a service.
    pub(crate) fn open(
        &self,
        request: u64,
        path: &str,
        digest: [u8; 32],
        side: u8,
        bytes: u64,
    ) -> io::Result<()> {
        let _opening = endpoints::opening();
        match self.try_open(request, path, digest, side, bytes) {
            // A domain will answer.
            Ok(None) => Ok(()),
            Ok(Some(line)) => self.give_line(request, HOST, &line),
            Err(error) => self.answer(request, Err(error)),
        }
    }

    fn try_open(
        &self,
        request: u64,
        path: &str,
        digest: [u8; 32],
        side: u8,
        bytes: u64,
    ) -> Result<Option<LineFile>, NameError> {
        if !self.rights.may_look_up(path) {
            return Err(NameError::NotPermitted);
        }
        if !LINES.contains(&bytes) {
            return Err(NameError::Busy);
        }
        let place = place_of(path).ok_or(NameError::Unbound)?;
        let busy = |error| refusal(&error);
        match place {
            Place::Here(_) => {
                let line = registry().line(HOST, self.id, bytes as usize);
                let line = line.map_err(busy)?;
                let shared = registry()
                    .link(HOST, self.id, &self.name)
                    .map_err(busy)?
                    .host[0]
                    .clone();
                let memory = line.map().map_err(busy)?;
                let link = shared.ok_or(NameError::Busy)?;
                accept(path, digest, side_of(side), &link, memory)?;
                Ok(Some(line))
            }
            Place::There(_) => {
                let mut registry = registry();
                let whose = registry.names.get(path).copied();
                let asked = whose.and_then(|id| registry.domains.get(&id).cloned());
                // A name of its own it finds by itself.
                let asked = asked
                    .filter(|asked| asked.id != self.id)
                    .ok_or(NameError::Unbound)?;
                let asker = Asker::Domain(self.id, request);
                let line = registry.line(self.id, asked.id, bytes as usize);
                let line = line.map_err(busy)?;
                registry
                    .ask(&asked, asker, line, (path, digest, side))
                    .map_err(busy)?;
                Ok(None)
            }
        }
    }

    /// The service has the other end of the line.
    fn give_line(&self, request: u64, peer: u64, line: &LineFile) -> io::Result<()> {
        // Locked until it is told: whoever takes the link down tells it after that.
        let mut all = registry();
        let (link, bells) = match all.linked(self.id, peer, line.number) {
            Ok(linked) => linked,
            Err(error) => {
                drop(all);
                // One of the two has gone meanwhile, unless they may not be linked.
                let refused = decide::is_refusal(&error).then_some(NameError::NotPermitted);
                return self.answer(request, Err(refused.unwrap_or(NameError::Unbound)));
            }
        };
        let message = ToDomain::Answer {
            request,
            error: 0,
            link: Some(link),
        };
        let files = [bells.as_fd(), line.file.as_fd()];
        #[cfg(test)]
        crate::hostile::deaths::before_the_answer();
        self.control.send(&message, &files)
    }

    /// The domain has accepted an end, or not.
    pub(crate) fn accepted(&self, request: u64, error: u8) {
        let mut all = registry();
        // Only who was asked can answer.
        let asked = |pending: &Pending| pending.asked == self.id;
        if !all.pending.get(&request).is_some_and(asked) {
            return;
        }
        let pending = all.pending.remove(&request);
        drop(all);
        if let Some(pending) = pending {
            self.settle(pending, error_of(error));
        }
    }

    fn settle(&self, pending: Pending, result: Result<(), NameError>) {
        match (pending.asker, result) {
            // Its end is dropped, which its client hears of.
            (Asker::Host(..), Err(_)) => {}
            (Asker::Host(end, link, memory), Ok(())) => {
                // Refused, the end is closed.
                let _ = join(end.open(), &link, memory);
            }
            (Asker::Domain(asker, request), result) => {
                let asker = registry().domains.get(&asker).cloned();
                let Some(asker) = asker else { return };
                // Who does not read its answers is ended.
                let _ = match result {
                    Ok(()) => asker.give_line(request, self.id, &pending.line),
                    Err(_) => asker.answer(request, result),
                };
            }
        }
    }

    /// The domain is no more.
    pub(crate) fn gone(&self, exit: Exit) {
        self.retire();
        let mut all = registry();
        // It runs no more, so what it had is nobody's.
        self.member.inspect(|member| all.members.leave(*member));
        decide::tell(|decider| decider.end(self.id));
        drop(all);
        self.lives.all_ended(exit);
        let mut all = registry();
        let waiter = all.stands.get_mut(&self.id).and_then(|stand| {
            stand.exit = Some(exit);
            stand.waiter
        });
        drop(all);
        wait::unpark(waiter.unwrap_or(Waiter::NONE));
    }

    /// From here on it has no names, and its peers know that it says nothing more.
    fn retire(&self) {
        let mut all = registry();
        all.domains.remove(&self.id);
        let names: Vec<String> = all
            .names
            .extract_if(|_, id| *id == self.id)
            .map(|(path, _)| path)
            .collect();
        let pending: Vec<Pending> = all
            .pending
            .extract_if(|_, pending| pending.asked == self.id)
            .map(|(_, pending)| pending)
            .collect();
        let links: Vec<((u64, u64), Shared)> = all
            .links
            .extract_if(|key, _| key.0 == self.id || key.1 == self.id)
            .collect();
        let peers: Vec<_> = links
            .into_iter()
            .map(|(key, shared)| {
                decide::tell(|decider| decider.unlink(key));
                let other = if key.0 == self.id { key.1 } else { key.0 };
                (all.domains.get(&other).cloned(), shared)
            })
            .collect();
        drop(all);
        for name in names {
            let _ = names::unbind(&name);
        }
        for pending in pending {
            self.settle(pending, Err(NameError::Unbound));
        }
        for (peer, shared) in peers {
            let link = shared.number;
            for link in shared.host.into_iter().flatten() {
                link.take_down();
            }
            if let Some(peer) = peer {
                // Who does not read this is ended by it.
                let _ = peer.control.send(&ToDomain::Down { link }, &[]);
            }
        }
    }
}
