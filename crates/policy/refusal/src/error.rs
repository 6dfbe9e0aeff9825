//! Refusals: which rule, about what, and the way out.

use crate::table::TABLE_1;
use core::fmt;
use mullion_terms::domain::{DomainId, GroupId, ThreadId};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::{Range, RangeError};
use mullion_terms::subject::Subject;

/// The rule that a refusal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The row of [`TABLE_1`] with this number.
    Row(u8),
    /// Ranges are aligned, not empty, and inside the supervisor's space.
    Ranges,
    /// What a call names exists.
    Existence,
    /// Ownership passes only by its owner's will, and only unshared.
    Ownership,
    /// A domain is deleted by itself or by an ancestor.
    Tree,
    /// A domain is entered only through gates that it, or an ancestor, has placed (Mondrix, section 2.2).
    Gates,
    /// Groups and their members (Mondrix, section 3.6).
    Groups,
    /// Stacks belong to threads (Mondrix, sections 2.3 and 3.3).
    Stacks,
    /// The mechanism has room for what is decided.
    Room,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Row(number) => {
                write!(f, "Table 1, row {number}")?;
                match TABLE_1.get(usize::from(*number).wrapping_sub(1)) {
                    Some(row) => write!(f, " ({}: {})", row.call, row.rule),
                    None => Ok(()),
                }
            }
            Rule::Ranges => f.write_str("ranges"),
            Rule::Existence => f.write_str("existence"),
            Rule::Ownership => f.write_str("ownership"),
            Rule::Tree => f.write_str("tree of domains"),
            Rule::Gates => f.write_str("gates"),
            Rule::Groups => f.write_str("groups"),
            Rule::Stacks => f.write_str("stacks"),
            Rule::Room => f.write_str("room of the mechanism"),
        }
    }
}

/// Why a call was refused. Nothing has changed. Where a range is given as `at`, it is the first part of
/// the asked range that the rule forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are named after what they hold, and the message says it"
)]
pub enum Error {
    /// Not a range.
    Range(RangeError),
    /// The range leaves the space that the supervisor was made for.
    OutsideSpace { range: Range, space: Range },
    /// The mechanism cannot enforce anything there (`Mechanism::enforces`).
    NotEnforced { range: Range },
    /// No such domain.
    UnknownDomain { domain: DomainId },
    /// The domain has been deleted.
    DeletedDomain { domain: DomainId },
    /// No such group, or no longer.
    UnknownGroup { group: GroupId },
    /// No such prepared grant, or no longer: it was released, or its target has ended.
    UnknownPrepared,
    /// All numbers for domains, groups or threads are used up.
    Exhausted,
    /// The caller does not own the memory.
    NotOwner {
        rule: Rule,
        caller: DomainId,
        owner: DomainId,
        at: Range,
    },
    /// More than the caller has itself.
    AboveOwn {
        rule: Rule,
        caller: DomainId,
        asked: Permission,
        held: Permission,
        at: Range,
    },
    /// More than the caller may pass on.
    AboveExport {
        rule: Rule,
        caller: DomainId,
        asked: Permission,
        export: Level,
        at: Range,
    },
    /// The target owns the memory.
    TargetOwns {
        rule: Rule,
        target: DomainId,
        at: Range,
    },
    /// Less than the target has.
    WouldLower {
        rule: Rule,
        target: Subject,
        asked: Permission,
        held: Permission,
        at: Range,
    },
    /// Somebody else has access.
    Shared {
        rule: Rule,
        holder: Subject,
        at: Range,
    },
    /// What was asked would have no effect, because a group gives more, or the same in another kind.
    HeldThroughGroup {
        domain: DomainId,
        group: GroupId,
        asked: Permission,
        held: Permission,
        at: Range,
    },
    /// `mprot_export` or `chown` to oneself.
    TargetIsCaller { caller: DomainId },
    /// `perm_alloc` by a domain that nobody has called.
    NoCaller { domain: DomainId },
    /// A switch gate into a domain that the caller has no say over.
    ForeignGate {
        caller: DomainId,
        to: DomainId,
        at: Range,
    },
    /// The root cannot be deleted.
    Root,
    /// Only the domain itself and its ancestors delete it.
    NotAncestor { caller: DomainId, target: DomainId },
    /// Everybody is in the global group, always, and it stays.
    GlobalGroup,
    /// The policy does not let this domain in.
    JoinRefused { domain: DomainId, group: GroupId },
    /// It is a member already.
    AlreadyMember { domain: DomainId, group: GroupId },
    /// It is no member.
    NotMember { domain: DomainId, group: GroupId },
    /// Only who made a group deletes it.
    NotCreator {
        caller: DomainId,
        creator: DomainId,
        group: GroupId,
    },
    /// A stack needs memory that its maker may write.
    StackMemory {
        caller: DomainId,
        held: Permission,
        at: Range,
    },
    /// Another thread's stack is there.
    StackInUse { range: Range, at: Range },
    /// The range is not within the thread's stack.
    OutsideStack {
        thread: ThreadId,
        range: Range,
        stack: Range,
    },
    /// The range reaches into the frames of an earlier domain.
    EarlierFrame {
        thread: ThreadId,
        range: Range,
        frame: u64,
    },
    /// The stack pointer of a cross-domain call is not between the frame base and the stack limit.
    StackPointer {
        thread: ThreadId,
        pointer: u64,
        limit: u64,
        frame: u64,
    },
    /// The current domain cannot execute there.
    NotExecutable {
        domain: DomainId,
        word: u64,
        held: Permission,
    },
    /// No return gate there for the current domain.
    NotReturnGate {
        domain: DomainId,
        word: u64,
        held: Permission,
    },
    /// There is no cross-domain call to return from.
    NothingToReturn { thread: ThreadId },
    /// The mechanism has no room for the change (`Mechanism::room`).
    NoRoom { words: u64 },
    /// A return to another place than behind the call.
    WrongReturn {
        thread: ThreadId,
        asked: u64,
        expected: u64,
    },
}

impl Error {
    /// The rule that refused.
    pub fn rule(&self) -> Rule {
        match *self {
            Error::NotOwner { rule, .. }
            | Error::AboveOwn { rule, .. }
            | Error::AboveExport { rule, .. }
            | Error::TargetOwns { rule, .. }
            | Error::WouldLower { rule, .. }
            | Error::Shared { rule, .. } => rule,
            Error::Range(_) | Error::OutsideSpace { .. } | Error::NotEnforced { .. } => {
                Rule::Ranges
            }
            Error::UnknownDomain { .. }
            | Error::DeletedDomain { .. }
            | Error::UnknownGroup { .. }
            | Error::UnknownPrepared
            | Error::TargetIsCaller { .. }
            | Error::NoCaller { .. }
            | Error::Exhausted => Rule::Existence,
            Error::ForeignGate { .. }
            | Error::NotExecutable { .. }
            | Error::NotReturnGate { .. }
            | Error::NothingToReturn { .. }
            | Error::WrongReturn { .. } => Rule::Gates,
            Error::NoRoom { .. } => Rule::Room,
            Error::Root | Error::NotAncestor { .. } => Rule::Tree,
            Error::HeldThroughGroup { .. }
            | Error::GlobalGroup
            | Error::JoinRefused { .. }
            | Error::AlreadyMember { .. }
            | Error::NotMember { .. }
            | Error::NotCreator { .. } => Rule::Groups,
            Error::StackMemory { .. }
            | Error::StackInUse { .. }
            | Error::OutsideStack { .. }
            | Error::EarlierFrame { .. }
            | Error::StackPointer { .. } => Rule::Stacks,
        }
    }

    /// What the caller can do instead.
    pub fn way_out(&self) -> &'static str {
        match self {
            Error::Range(_) => "use whole words inside the address space",
            Error::OutsideSpace { .. } => {
                "stay inside the space, or make the supervisor for a larger one"
            }
            Error::NotEnforced { .. } => "use other memory: the mechanism needs this for itself",
            Error::UnknownDomain { .. } => "use a number that pd_subdivide returned",
            Error::DeletedDomain { .. } => "numbers are not used twice: drop this one",
            Error::UnknownGroup { .. } => {
                "use a number that group_create returned, before group_free"
            }
            Error::UnknownPrepared => "prepare it again, for a domain that lives",
            Error::Exhausted => "numbers are never reused: start a new supervisor",
            Error::NotOwner { .. } => "let the owner call, or get the memory from it by chown",
            Error::AboveOwn { .. } => "ask for less, or have the owner export more to you first",
            Error::AboveExport { .. } => "have the owner export again with a higher export level",
            Error::TargetOwns { .. } => "an owner sets its own permission with mprot",
            Error::WouldLower { .. } => "let the owner lower it, or the target itself",
            Error::Shared { .. } => "revoke it first, with perm_free",
            Error::HeldThroughGroup { .. } => {
                "leave the group, or change what the group is granted"
            }
            Error::TargetIsCaller { .. } => {
                "use mprot for your own permissions; your memory is yours already"
            }
            Error::NoCaller { .. } => "call the allocator through its gate, or use mprot_export",
            Error::ForeignGate { .. } => "let that domain place its gate and export it to you",
            Error::Root => "delete the domains below it",
            Error::NotAncestor { .. } => "let the domain itself or an ancestor delete it",
            Error::GlobalGroup => "make a group of your own with group_create",
            Error::JoinRefused { .. } => {
                "ask who made the policy; by default only descendants of the group's creator join"
            }
            Error::AlreadyMember { .. } => "join once",
            Error::NotMember { .. } => "join before leaving, and leave once",
            Error::NotCreator { .. } => "let the creator delete it, or leave it",
            Error::StackMemory { .. } => "get read-write permission on the whole stack first",
            Error::StackInUse { .. } => "end the other thread, or place the stack elsewhere",
            Error::OutsideStack { .. } => "name words of the thread's own stack",
            Error::EarlierFrame { .. } => {
                "only the domain that a frame belongs to grants on it, before it calls on"
            }
            Error::StackPointer { .. } => {
                "keep the stack pointer in the current frame when calling"
            }
            Error::NotExecutable { .. } => {
                "have the owner export execute-read or a switch gate there"
            }
            Error::NotReturnGate { .. } => {
                "place a return gate on the return instruction of the exported function"
            }
            Error::NothingToReturn { .. } => {
                "return only from what was entered through a switch gate"
            }
            Error::WrongReturn { .. } => "return to the instruction behind the call",
            Error::NoRoom { .. } => "change less at once, or have the mechanism tidy up first",
        }
    }
}

impl From<RangeError> for Error {
    fn from(error: RangeError) -> Error {
        Error::Range(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Range(error) => write!(f, "{error}"),
            Error::OutsideSpace { range, space } => write!(f, "{range} is not inside {space}"),
            Error::UnknownDomain { domain } => write!(f, "{domain} does not exist"),
            Error::DeletedDomain { domain } => write!(f, "{domain} has been deleted"),
            Error::UnknownGroup { group } => write!(f, "{group} does not exist"),
            Error::UnknownPrepared => write!(f, "the prepared grant does not exist"),
            Error::Exhausted => write!(f, "no number is left"),
            Error::NotOwner {
                caller, owner, at, ..
            } => write!(f, "{caller} does not own {at}, {owner} does"),
            Error::AboveOwn {
                caller,
                asked,
                held,
                at,
                ..
            } => {
                write!(f, "{caller} asks for {asked} on {at} and has {held}")
            }
            Error::AboveExport {
                caller,
                asked,
                export,
                at,
                ..
            } => {
                write!(
                    f,
                    "{caller} gives {asked} on {at} and may give at most level {export}"
                )
            }
            Error::TargetOwns { target, at, .. } => write!(f, "{target} owns {at}"),
            Error::WouldLower {
                target,
                asked,
                held,
                at,
                ..
            } => {
                write!(f, "{target} has {held} on {at}, which {asked} would lower")
            }
            Error::Shared { holder, at, .. } => write!(f, "{holder} has access to {at}"),
            Error::HeldThroughGroup {
                domain,
                group,
                asked,
                held,
                at,
            } => {
                write!(
                    f,
                    "{domain} cannot be set to {asked} on {at}, where {group} gives it {held}"
                )
            }
            Error::TargetIsCaller { caller } => write!(f, "{caller} names itself as the target"),
            Error::NoCaller { domain } => write!(f, "no domain has called {domain}"),
            Error::ForeignGate { caller, to, at } => {
                write!(f, "{caller} may not place a gate into {to} at {at}")
            }
            Error::Root => write!(f, "the supervisor's own domain cannot be deleted"),
            Error::NotAncestor { caller, target } => write!(f, "{caller} is not above {target}"),
            Error::GlobalGroup => write!(f, "the global group always has every domain as a member"),
            Error::JoinRefused { domain, group } => write!(f, "{domain} may not join {group}"),
            Error::AlreadyMember { domain, group } => write!(f, "{domain} is in {group} already"),
            Error::NotMember { domain, group } => write!(f, "{domain} is not in {group}"),
            Error::NotCreator {
                caller,
                creator,
                group,
            } => {
                write!(f, "{caller} did not make {group}, {creator} did")
            }
            Error::StackMemory { caller, held, at } => {
                write!(f, "{caller} has {held} on {at}, a stack needs read-write")
            }
            Error::StackInUse { range, at } => write!(f, "{range} meets the stack at {at}"),
            Error::OutsideStack {
                thread,
                range,
                stack,
            } => {
                write!(
                    f,
                    "{range} is not inside the stack {stack} of thread {}",
                    thread.get()
                )
            }
            Error::EarlierFrame {
                thread,
                range,
                frame,
            } => write!(
                f,
                "{range} reaches into earlier frames of thread {}, which begin at {:#x}",
                thread.get(),
                u128::from(*frame) * 4
            ),
            Error::StackPointer {
                thread,
                pointer,
                limit,
                frame,
            } => write!(
                f,
                "stack pointer {:#x} of thread {} is not between {:#x} and {:#x}",
                u128::from(*pointer) * 4,
                thread.get(),
                u128::from(*limit) * 4,
                u128::from(*frame) * 4
            ),
            Error::NotExecutable { domain, word, held } => {
                write!(
                    f,
                    "{domain} calls {:#x}, where it has {held}",
                    u128::from(*word) * 4
                )
            }
            Error::NotReturnGate { domain, word, held } => {
                write!(
                    f,
                    "{domain} returns at {:#x}, where it has {held}",
                    u128::from(*word) * 4
                )
            }
            Error::NothingToReturn { thread } => {
                write!(
                    f,
                    "thread {} has no cross-domain call to return from",
                    thread.get()
                )
            }
            Error::NotEnforced { range } => {
                write!(f, "the mechanism can enforce nothing on {range}")
            }
            Error::NoRoom { words } => {
                write!(f, "the mechanism has no room to change {words} words")
            }
            Error::WrongReturn {
                thread,
                asked,
                expected,
            } => write!(
                f,
                "thread {} returns to {asked:#x}, the call was before {expected:#x}",
                thread.get()
            ),
        }?;
        write!(f, " [{}]; {}", self.rule(), self.way_out())
    }
}

impl core::error::Error for Error {}

/// Why a batch was refused: its first change that was, and why. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// Counts from 0.
    pub index: usize,
    /// The refusal.
    pub error: Error,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "change {} of the batch: {}", self.index, self.error)
    }
}

impl core::error::Error for BatchError {}
