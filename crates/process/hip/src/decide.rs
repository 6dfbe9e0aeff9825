//! Who is asked before a domain comes to have anything of the host's.
//!
//! ```text
//!   launch               begin(domain)        refused: LaunchError::Refused; no OS process is started
//!   memory in common     share(domain)        the same
//!   first channel        link(two)            refused: NameError::NotPermitted, or the end that was sent is closed
//!   each channel         channel(two, bytes)  the same; no memory is made
//!   end                  unlink(two), end(domain)
//! ```
//! A channel's memory goes when both its sides have let go of it, of which the host hears nothing. So a channel is a
//! question alone. Only the link is recorded: what two domains have for all their channels, from the first one until
//! one of the two ends. Messages ask nobody, and pass the host by.
//!
//! A domain's own kernel decides about the heaps, stacks and ends of its processes. If the host has a decider, each
//! domain's kernel has a supervisor of its own that is asked.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mullion_sip_hosting::common_memory::Sharing;
use mullion_sip_hosting::{DecideError, Refused};
use mullion_supervisor::{
    DomainId, Error, GroupId, Level, Mechanism, Order, Permission, Range, Snapshot, Supervisor,
};

/// Two domains by their numbers, the smaller first; the host's is 0.
pub type Pair = (u64, u64);

/// Is asked before anything changes. It is called with the host's records of its domains locked: it calls nothing of
/// this crate.
pub trait Decider: Send + Sync + fmt::Debug {
    /// A domain is to be. No number comes twice.
    ///
    /// # Errors
    /// There is none then.
    fn begin(&self, domain: u64, name: &str) -> Result<(), Refused>;

    /// A domain that has begun is to have the memory that domains have in common, with all rights.
    ///
    /// # Errors
    /// There is no domain then.
    fn share(&self, domain: u64, sharing: Sharing) -> Result<(), Refused>;

    /// Two domains, or the host and one, are to have memory for the channels between them.
    ///
    /// # Errors
    /// There is no channel then.
    fn link(&self, two: Pair) -> Result<(), Refused>;

    /// A channel between the two is to have memory of so many bytes. They may be linked only afterwards.
    ///
    /// # Errors
    /// There is no channel then.
    fn channel(&self, two: Pair, bytes: u64) -> Result<(), Refused>;

    /// The two have no channels from now on, since one of them has ended.
    fn unlink(&self, two: Pair);

    /// A domain has ended.
    fn end(&self, domain: u64);
}

static DECIDER: OnceLock<Box<dyn Decider>> = OnceLock::new();

/// Has `decider` asked from now on. There has been no domain.
pub(crate) fn set(decider: Box<dyn Decider>) -> Result<(), DecideError> {
    DECIDER.set(decider).map_err(|_| DecideError::Decided)
}

/// Whether somebody is asked.
pub(crate) fn is_decided() -> bool {
    DECIDER.get().is_some()
}

/// Asks; without a decider the answer is yes.
pub(crate) fn ask(question: impl FnOnce(&dyn Decider) -> Result<(), Refused>) -> io::Result<()> {
    let Some(decider) = DECIDER.get() else {
        return Ok(());
    };
    question(&**decider).map_err(|refused| io::Error::new(io::ErrorKind::PermissionDenied, refused))
}

/// Whether an error is the decider's no.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<Refused>())
}

/// Says what has happened.
pub(crate) fn tell(news: impl FnOnce(&dyn Decider)) {
    if let Some(decider) = DECIDER.get() {
        news(&**decider);
    }
}

/// A decider that asks a supervisor.
///
/// OS processes have no addresses in common. So the supervisor's space has a place for each thing that they can share.
/// There is a word for each domain, which stands for it, a word for each link, and a word for each way to share memory.
/// The root is the host, which owns all. A link is exported to its two domains; a way to share is a group's.
pub struct Supervised(Mutex<Inner>);

struct Inner {
    supervisor: Supervisor<Files>,
    domains: HashMap<u64, DomainId>,
    links: HashMap<Pair, Range>,
    /// Links ever.
    last: u64,
    groups: HashMap<Sharing, GroupId>,
}

/// What a file is given to is told by the registry, after the answer.
#[derive(Clone, Copy, Debug)]
struct Files;

impl Mechanism for Files {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

const HOST: DomainId = DomainId::SUPERVISOR;
const WORD: u64 = 4;
/// Where the words of domains, of links and of ways to share begin.
const DOMAINS: u64 = 0;
const LINKS: u64 = 1 << 40;
const SHARED: u64 = 1 << 41;

impl fmt::Debug for Supervised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Supervised")
    }
}

impl Default for Supervised {
    fn default() -> Supervised {
        Supervised::new()
    }
}

impl Supervised {
    /// Of a supervisor of its own, with [`Order::Strict`].
    pub fn new() -> Supervised {
        let supervisor = Supervisor::with(
            Range::everything(),
            Files,
            mullion_supervisor::Family,
            Order::Strict,
        );
        Supervised(Mutex::new(Inner {
            supervisor,
            domains: HashMap::new(),
            links: HashMap::new(),
            last: 0,
            groups: HashMap::new(),
        }))
    }

    /// What the supervisor knows, and which of its domains is which, by the host's numbers.
    pub fn snapshot(&self) -> (Snapshot, Vec<(DomainId, u64)>) {
        let inner = self.inner();
        let domains = inner.domains.iter().map(|(number, id)| (*id, *number));
        (inner.supervisor.snapshot(), domains.collect())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The supervisor's domain of a number; of the host none, which has all rights already.
    fn domain(&self, number: u64) -> Result<Option<DomainId>, Error> {
        if number == 0 {
            return Ok(None);
        }
        let domain = self.domains.get(&number).copied();
        domain.map(Some).ok_or(Error::Exhausted)
    }

    fn begin(&mut self, number: u64) -> Result<(), Error> {
        let word = word(DOMAINS, number)?;
        let domain = self
            .supervisor
            .pd_subdivide(&HOST, word, Permission::None)?;
        self.domains.insert(number, domain);
        Ok(())
    }

    fn share(&mut self, number: u64, sharing: Sharing) -> Result<(), Error> {
        let domain = self.domain(number)?.ok_or(Error::Exhausted)?;
        let group = self.group(sharing)?;
        self.supervisor.group_join(&domain, group)
    }

    fn group(&mut self, sharing: Sharing) -> Result<GroupId, Error> {
        if let Some(group) = self.groups.get(&sharing) {
            return Ok(*group);
        }
        let place = match sharing {
            Sharing::Open => 0,
            Sharing::Remapped => 1,
        };
        let group = self.supervisor.group_create(&HOST)?;
        self.export(group.into(), word(SHARED, place)?)?;
        self.groups.insert(sharing, group);
        Ok(group)
    }

    fn export(&mut self, to: mullion_supervisor::Subject, range: Range) -> Result<(), Error> {
        let all = Permission::ReadWrite;
        self.supervisor
            .mprot_export_up_to(&HOST, to, range, all, Level::None)
    }

    fn link(&mut self, two: Pair) -> Result<(), Error> {
        let domains = [self.domain(two.0)?, self.domain(two.1)?];
        let range = word(LINKS, self.last)?;
        for domain in domains.into_iter().flatten() {
            if let Err(refused) = self.export(domain.into(), range) {
                self.supervisor.perm_free(&HOST, range)?;
                return Err(refused);
            }
        }
        self.last += 1;
        self.links.insert(two, range);
        Ok(())
    }
}

/// A word that stands for something.
fn word(begin: u64, place: u64) -> Result<Range, Error> {
    Ok(Range::bytes(begin + place * WORD, WORD)?)
}

impl Decider for Supervised {
    fn begin(&self, domain: u64, _: &str) -> Result<(), Refused> {
        self.inner().begin(domain).map_err(|_| Refused)
    }

    fn share(&self, domain: u64, sharing: Sharing) -> Result<(), Refused> {
        self.inner().share(domain, sharing).map_err(|_| Refused)
    }

    fn link(&self, two: Pair) -> Result<(), Refused> {
        self.inner().link(two).map_err(|_| Refused)
    }

    fn channel(&self, two: Pair, _: u64) -> Result<(), Refused> {
        let inner = self.inner();
        let known = [inner.domain(two.0), inner.domain(two.1)];
        known
            .into_iter()
            .try_for_each(|one| one.map(drop))
            .map_err(|_| Refused)
    }

    fn unlink(&self, two: Pair) {
        let mut inner = self.inner();
        if let Some(range) = inner.links.remove(&two) {
            let freed = inner.supervisor.perm_free(&HOST, range);
            debug_assert_eq!(freed, Ok(()), "the host owns it");
        }
    }

    fn end(&self, domain: u64) {
        let mut inner = self.inner();
        if let Some(domain) = inner.domains.remove(&domain) {
            let ended = inner.supervisor.pd_free(&HOST, domain);
            debug_assert_eq!(ended, Ok(()), "it lives, and the host is its parent");
        }
    }
}
