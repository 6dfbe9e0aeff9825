//! What enforces the supervisor's decisions.

use crate::holdings::HoldingNumber;
use crate::region::Holding;
use crate::state::State;
use alloc::vec::Vec;
use mullion_terms::domain::{DomainId, ThreadId};
use mullion_terms::permission::Permission;
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// The bottom half: writes the permissions that the supervisor has decided on (Mondrix, section 3).
///
/// The supervisor decides a call completely before it writes the first permission, so a call that is
/// refused reaches no mechanism. Nothing here can fail. A mechanism that could not take a permission away
/// must stop the machine, because what the supervisor believes would no longer be true.
///
/// A domain starts with no permission on anything. A mechanism is told what changes in one of two ways, or in
/// both:
///
/// - *By domain* ([`write`](Self::write), [`flush`](Self::flush)): for tables that each domain has for itself. Within
///   one call each word of a domain is written at most once, only where its permission changes. Neighbouring words
///   with the same permission come in one range. All writes come before the first flush.
/// - *By holding* ([`hold`](Self::hold), [`rehold`](Self::rehold), [`succeed`](Self::succeed)): for one table of
///   all domains, whose entries are numbers for *who may do what here*. Within one call each word comes at most
///   once, and only where its holding changes. At first all words have a holding that gives nobody anything.
pub trait Mechanism {
    /// Whether it is to be told by domain.
    const BY_DOMAIN: bool = true;

    /// Whether it is to be told by holding.
    const BY_HOLDING: bool = false;

    /// Asked before a call changes anything: whether there is room for `words` that change, in `pieces` pieces, each
    /// of which may get a holding that is new. `taking` says that the call can only take something away. After
    /// `false` the call is refused as [`Error::NoRoom`](mullion_refusal::error::Error::NoRoom), and nothing changes. Not asked
    /// before a domain's end and a change of a group's members.
    fn room(&mut self, words: u64, pieces: u64, taking: bool) -> bool {
        let _ = (words, pieces, taking);
        true
    }

    /// Whether permissions on all of `range` can be enforced. After `false` the call is refused as
    /// [`Error::NotEnforced`](mullion_refusal::error::Error::NotEnforced).
    fn enforces(&self, range: Range) -> bool {
        let _ = range;
        true
    }

    /// Asked before a domain is made: whether there is room for one more. After `false` the call is refused as
    /// [`Error::NoRoom`](mullion_refusal::error::Error::NoRoom).
    fn room_for_domain(&mut self) -> bool {
        true
    }

    /// By holding: the words of `range` had `before` and have `after` now, which means `holders`. Where only the
    /// edition differs, these are all words that had `before`.
    fn hold(
        &mut self,
        range: Range,
        before: HoldingNumber,
        after: HoldingNumber,
        holders: Holders<'_>,
    ) {
        let _ = (range, before, after, holders);
    }

    /// By holding: the words of `from` had `on` and have `off` now, and behind that those of `to` had `off` and have
    /// `on`. In the place of two [`hold`](Self::hold) and [`settle`](Self::settle). `holders` is asked what the
    /// two mean.
    fn shift<'a>(
        &mut self,
        (from, to): (Range, Range),
        (off, on): (HoldingNumber, HoldingNumber),
        holders: impl FnOnce() -> (Holders<'a>, Holders<'a>),
    ) {
        let holders = holders();
        self.hold(from, on, off, holders.0);
        self.hold(to, off, on, holders.1);
        self.settle();
    }

    /// By holding: from now on `domain`, which has joined or left a group or was just made, has `permission` on
    /// every word with this holding. Only holdings that grant something to groups change like this.
    fn rehold(&mut self, holding: HoldingNumber, domain: DomainId, permission: Permission) {
        let _ = (holding, domain, permission);
    }

    /// By holding: a domain ends. All words that had `before` have `after` now, and for no domain that lives
    /// does `after` give more. Comes once for each `before`; first where only the edition differs.
    fn succeed(&mut self, before: HoldingNumber, after: HoldingNumber, holders: Holders<'_>) {
        let _ = (before, after, holders);
    }

    /// By holding: the call has told all that it changes. Where checked code acts on what it has read before, the
    /// mechanism waits here until it no longer does. Rights that the call has taken away are gone when it returns.
    fn settle(&mut self) {}

    /// `domain` exists from now on and holds nothing.
    fn create(&mut self, domain: DomainId) {
        let _ = domain;
    }

    /// `domain` is gone. By domain, all it held has been written to [`Permission::None`] before; by holding, it is
    /// in no holding that a word has. Its number does not come back.
    fn remove(&mut self, domain: DomainId) {
        let _ = domain;
    }

    /// From now on `domain` holds `permission` on every word of `range`.
    fn write(&mut self, domain: DomainId, range: Range, permission: Permission);

    /// What caches say of `domain` and `range` may be stale. Comes once for each connected piece that the
    /// call wrote.
    fn flush(&mut self, domain: DomainId, range: Range);

    /// A hint, behind the writes of the same call. After it all of `members` hold `permission` on all of `range`
    /// through one group, so aligned pieces of their tables can be shared (Mondrix, section 3.6).
    fn alike(&mut self, members: &[DomainId], range: Range, permission: Permission) {
        let _ = (members, range, permission);
    }

    /// The stack write table of `thread`: one bit for each word of `range`.
    fn write_stack(&mut self, thread: ThreadId, range: Range, writable: bool) {
        let _ = (thread, range, writable);
    }

    /// `thread` is about to run: its stack registers and its stack write table take effect.
    fn load_stack(&mut self, thread: ThreadId, registers: StackRegisters) {
        let _ = (thread, registers);
    }

    /// `thread` is not running any more: what caches say of its stack is stale.
    fn flush_stack(&mut self, thread: ThreadId) {
        let _ = thread;
    }
}

/// What a holding means for those who live now.
#[derive(Clone, Copy, Debug)]
pub struct Holders<'a> {
    state: &'a State,
    holding: &'a Holding,
    changed: Option<Subject>,
}

impl<'a> Holders<'a> {
    pub(crate) fn new(
        state: &'a State,
        holding: &'a Holding,
        changed: Option<Subject>,
    ) -> Holders<'a> {
        Holders {
            state,
            holding,
            changed,
        }
    }

    /// The only one whose grant differs from the holding before, if it is only one and known. For all others, but the
    /// members of this group, nothing changes.
    pub fn changed(&self) -> Option<Subject> {
        self.changed
    }

    /// The owner, and what was granted to domains and groups.
    pub fn holding(&self) -> &'a Holding {
        self.holding
    }

    /// What `domain`, if it lives, may do, itself and through groups.
    pub fn permission(&self, domain: DomainId) -> Permission {
        match self.state.domain(domain) {
            Ok(_) => self.state.effective(self.holding, domain).access,
            Err(_) => Permission::None,
        }
    }

    /// Whether `domain` lives.
    pub fn lives(&self, domain: DomainId) -> bool {
        self.state.domain(domain).is_ok()
    }

    /// All living domains that may do something, in order.
    pub fn each(&self, mut with: impl FnMut(DomainId, Permission)) {
        let mut tell = |domain| match self.permission(domain) {
            Permission::None => {}
            permission => with(domain, permission),
        };
        let grants = &self.holding.grants;
        if self.holding.of_groups().next().is_none() {
            // In order already.
            return grants.iter().for_each(|(subject, _)| match subject {
                Subject::Domain(domain) => tell(*domain),
                Subject::Group(_) => {}
            });
        }
        let mut all: Vec<DomainId> = Vec::new();
        for (subject, _) in grants {
            match subject {
                Subject::Domain(domain) => all.push(*domain),
                Subject::Group(group) => all.extend(self.state.members(*group)),
            }
        }
        all.sort_unstable();
        all.dedup();
        all.into_iter().for_each(tell);
    }
}

/// The registers that give a thread access to its stack (Mondrix, section 2.3), as word numbers. Stacks
/// grow down: `limit <= frame <= base`.
///
/// ```text
///   base  sb ->  +----------------------+  first word above the stack
///                | frames of callers    |  read; write where the table says so
///   frame fb ->  +----------------------+
///                | frames of the        |  read and write
///                | current domain       |
///   limit sl ->  +----------------------+  lowest word of the stack
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackRegisters {
    /// `sb`: the word behind the highest word of the stack.
    pub base: u64,
    /// `fb`: frames at or above this word belong to earlier domains.
    pub frame: u64,
    /// `sl`: the lowest word of the stack.
    pub limit: u64,
}

impl StackRegisters {
    /// Whether the registers alone allow a load from `word`.
    pub fn reads(&self, word: u64) -> bool {
        self.limit <= word && word < self.base
    }

    /// Whether the registers alone, without the stack write table, allow a store to `word`.
    pub fn writes(&self, word: u64) -> bool {
        self.limit <= word && word < self.frame
    }
}
