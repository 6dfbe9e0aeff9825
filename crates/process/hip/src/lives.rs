//! Domains whose members begin and end one by one, as the host says.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use mullion_sip::channel::Side;
use mullion_sip::process::{Child, Exit};
use mullion_sip::wait::{self, Waiter};
use mullion_sip_hosting::common_memory::Sharing;

use crate::memory::MemorySeen;
use crate::message::{EndRow, LifeSeen, ToDomain, side_of};
use crate::registry::Domain;

/// How long a domain is waited for that is asked what there is.
const PATIENCE: Duration = Duration::from_millis(400);
/// How long a domain is waited for that is killed.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A domain whose members begin when they are told to: see [`launch_idle`](crate::launch_idle). It is ended when this
/// is dropped, and its lives with it; that waits until Linux has ended it, 5 s at most.
#[derive(Debug)]
pub struct Idle {
    pub(crate) stand: Child,
    pub(crate) domain: Arc<Domain>,
}

impl Idle {
    /// Begins a life of a member, by its place in what `load` gave. One life of a member at a time: another one
    /// ends at once. If the domain is no more, the life has ended as the domain has.
    pub fn start(&self, member: u32) -> Life {
        let (number, end) = self.domain.lives.begin();
        let life = Life {
            number,
            end,
            domain: self.domain.clone(),
        };
        let told = ToDomain::Start {
            member,
            life: number,
        };
        // A domain that cannot be told is ended, and this life with it.
        let _ = self.domain.control.send(&told, &[]);
        life
    }

    /// How the domain has ended, if it has.
    pub fn ended(&self) -> Option<Exit> {
        self.domain.lives.lock().over
    }

    /// Ends the domain, and every life in it.
    pub fn kill(&self) {
        self.stand.kill();
    }

    /// What looks at the domain from elsewhere.
    pub fn glass(&self) -> DomainView {
        DomainView(self.domain.clone())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.kill();
        let lives = &self.domain.lives;
        let lives_on = |lived: &mut Lived| lived.over.is_none();
        // Linux ends it at once, or it hangs in the kernel, and nobody can do anything about it.
        let _ = lives
            .looked
            .wait_timeout_while(lives.lock(), LAST_PATIENCE, lives_on);
    }
}

/// A life of a member of a domain. Dropping it lets the life go on.
#[derive(Debug)]
pub struct Life {
    number: u64,
    end: Arc<End>,
    domain: Arc<Domain>,
}

impl Life {
    /// Its number within the domain.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How it ended, if it has; else `waiter` is woken when it does, in the place of who was to be before.
    pub fn look(&self, waiter: Waiter) -> Option<Exit> {
        let mut end = self.end.lock();
        end.1 = waiter;
        end.0
    }

    /// Ends it. It may run on for a moment.
    pub fn kill(&self) {
        let life = self.number;
        // A domain that cannot be told is ended.
        let _ = self.domain.control.send(&ToDomain::End { life }, &[]);
    }
}

/// Looks at a domain, from any thread of the host.
#[derive(Clone, Debug)]
pub struct DomainView(pub(crate) Arc<Domain>);

/// What a domain says of its processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Those that live.
    pub processes: Vec<LifeSeen>,
    /// Ends of channels that they hold; of both, the first 400.
    pub ends: Vec<EndSeen>,
}

/// An end of a channel that a process of a domain holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndSeen {
    /// Who holds it.
    pub life: u64,
    /// Which channel of the domain's kernel.
    pub channel: u64,
    /// The number of its memory, if the other end is in another OS process; else 0.
    pub line: u64,
    /// The contract's name.
    pub contract: String,
    /// Which side's end.
    pub side: Side,
    /// Messages sent from here, modulo 2^32.
    pub sent: u32,
    /// Messages received here, modulo 2^32.
    pub received: u32,
}

impl From<&EndRow> for EndSeen {
    fn from(row: &EndRow) -> EndSeen {
        EndSeen {
            life: row.life,
            channel: row.channel,
            line: row.line,
            contract: row.contract.to_string(),
            side: side_of(row.side),
            sent: row.sent,
            received: row.received,
        }
    }
}

impl DomainView {
    /// The number of its OS process; nothing if none was started.
    pub fn process(&self) -> Option<u32> {
        self.0.process.get().copied()
    }

    /// Whether both look at the same domain.
    pub fn is(&self, other: &DomainView) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its number among the domains of this host, which no other one ever has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.0.lives.lock().over.is_some()
    }

    /// How it shares memory with all other domains that do so in the same way.
    pub fn shares(&self) -> Option<Sharing> {
        self.0.member.map(|member| member.sharing)
    }

    /// What there is, by the domain's own word; nothing of a domain that has ended, or does not answer within 400 ms.
    pub fn look(&self) -> Option<Seen> {
        self.ask(
            |request| ToDomain::Look { request },
            |lived| &mut lived.seen,
        )
    }

    /// Which memory its processes and its kernel have, by the domain's own word, as [`DomainView::look`].
    pub fn memory(&self) -> Option<MemorySeen> {
        self.ask(
            |request| ToDomain::Map { request },
            |lived| &mut lived.memory,
        )
    }

    fn ask<T: Clone>(
        &self,
        question: fn(u64) -> ToDomain,
        slot: fn(&mut Lived) -> &mut Answer<T>,
    ) -> Option<T> {
        let lives = &self.0.lives;
        let mut state = lives.lock();
        state.last += 1;
        let request = state.last;
        self.0.control.send(&question(request), &[]).ok()?;
        let waits = |state: &mut Lived| {
            state.over.is_none() && slot(state).as_ref().is_none_or(|answer| answer.0 < request)
        };
        let (mut state, _) = lives
            .looked
            .wait_timeout_while(state, PATIENCE, waits)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // The answer to somebody's later question is as good.
        let answer = slot(&mut state).as_ref();
        let answer = answer.filter(|answer| answer.0 >= request);
        answer.map(|(_, answer)| answer.clone())
    }
}

/// The answer to a request, by its number.
type Answer<T> = Option<(u64, T)>;

/// The lives of a domain.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    lived: Mutex<Lived>,
    looked: Condvar,
}

#[derive(Debug, Default)]
struct Lived {
    /// Numbers of lives and of requests.
    last: u64,
    living: HashMap<u64, Arc<End>>,
    seen: Answer<Seen>,
    memory: Answer<MemorySeen>,
    over: Option<Exit>,
}

/// The end of a life, and who is told of it.
#[derive(Debug)]
struct End(Mutex<(Option<Exit>, Waiter)>);

impl Lives {
    fn lock(&self) -> MutexGuard<'_, Lived> {
        self.lived
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn begin(&self) -> (u64, Arc<End>) {
        let mut lived = self.lock();
        lived.last += 1;
        let (number, over) = (lived.last, lived.over);
        let end = Arc::new(End(Mutex::new((over, Waiter::NONE))));
        if over.is_none() {
            lived.living.insert(number, end.clone());
        }
        (number, end)
    }

    /// The domain says how a life ended: whether there was one of that number.
    pub(crate) fn ended(&self, life: u64, exit: Exit) -> bool {
        let end = self.lock().living.remove(&life);
        end.inspect(|end| end.set(exit)).is_some()
    }

    /// The domain is no more.
    pub(crate) fn all_ended(&self, exit: Exit) {
        let mut lived = self.lock();
        lived.over = Some(exit);
        let ends = std::mem::take(&mut lived.living);
        drop(lived);
        self.looked.notify_all();
        ends.values().for_each(|end| end.set(exit));
    }

    /// The domain has answered.
    pub(crate) fn seen(&self, request: u64, seen: Seen) {
        self.lock().seen = Some((request, seen));
        self.looked.notify_all();
    }

    /// The same of its memory.
    pub(crate) fn mapped(&self, request: u64, memory: MemorySeen) {
        self.lock().memory = Some((request, memory));
        self.looked.notify_all();
    }
}

impl End {
    fn lock(&self) -> MutexGuard<'_, (Option<Exit>, Waiter)> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn set(&self, exit: Exit) {
        let mut end = self.lock();
        end.0 = Some(exit);
        wait::unpark(end.1);
    }
}
