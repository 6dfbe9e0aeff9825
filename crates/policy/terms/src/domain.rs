//! The names of domains, groups and threads, and who is calling.

use core::fmt;

/// A protection domain. Numbers are given out in order and never again. So what still names a
/// deleted domain (a gate, a return address) cannot reach one created later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u32);

impl DomainId {
    /// The supervisor, root of the tree of domains and first owner of all memory.
    pub const SUPERVISOR: DomainId = DomainId(0);

    /// The domain with this number; whether it exists is for the supervisor to say.
    pub const fn new(number: u32) -> DomainId {
        DomainId(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domain {}", self.0)
    }
}

impl fmt::Debug for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D{}", self.0)
    }
}

/// A group protection domain (Mondrix, section 3.6). Numbers are never given out twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

impl GroupId {
    /// The group that every domain belongs to and that nobody joins or leaves.
    pub const GLOBAL: GroupId = GroupId(0);

    /// The group with this number; whether it exists is for the supervisor to say.
    pub const fn new(number: u32) -> GroupId {
        GroupId(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            GroupId::GLOBAL => write!(f, "the global group"),
            GroupId(number) => write!(f, "group {number}"),
        }
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "G{}", self.0)
    }
}

/// A thread with a protected stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    /// The thread with this number.
    pub const fn new(number: u32) -> ThreadId {
        ThreadId(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The top of a cross-domain call stack, from which the supervisor reads who is calling it.
///
/// Whoever implements this is trusted: the stack must be written by the mechanism alone (by hardware in
/// Mondrix, section 2.2), never by a domain.
pub trait CallStack {
    /// The domain that is running, and so the caller of the supervisor.
    fn current(&self) -> DomainId;

    /// The domain that made the last cross-domain call into the current one, if there is one. It receives
    /// what `perm_alloc` allocates.
    fn previous(&self) -> Option<DomainId>;
}

/// A domain on its own, called by nobody.
impl CallStack for DomainId {
    fn current(&self) -> DomainId {
        *self
    }

    fn previous(&self) -> Option<DomainId> {
        None
    }
}

impl<T: CallStack> CallStack for &T {
    fn current(&self) -> DomainId {
        (**self).current()
    }

    fn previous(&self) -> Option<DomainId> {
        (**self).previous()
    }
}
