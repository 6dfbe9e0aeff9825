//! What a trace is made of.
//!
//! Addresses are byte addresses. Domains, groups and threads carry the numbers that the trace gave them
//! when they were created; domain 0 is the supervisor.

use mullion_supervisor::{Level, Permission};

/// The most bytes of one straight line of code.
pub const MAX_FETCH_BYTES: u32 = 4096;

/// The most bytes of one data access.
pub const MAX_ACCESS_BYTES: u32 = 64;

/// The most bytes of a thread's stack.
pub const MAX_STACK_BYTES: u64 = 64 << 20;

/// The most words that one call may turn into gates.
pub const MAX_GATE_WORDS: u64 = 4096;

/// A range of bytes in a call to the supervisor: as claimed, not yet aligned or known to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSpan {
    /// The first address.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// One thing that the processor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// Instructions in a straight line.
    Fetch {
        /// Address of the first one.
        address: u64,
        /// Bytes of all of them, from 1 to [`MAX_FETCH_BYTES`].
        bytes: u32,
        /// How many, from 1 to `bytes`.
        instructions: u32,
    },
    /// Bytes read.
    Load {
        /// The first address.
        address: u64,
        /// How many, from 1 to [`MAX_ACCESS_BYTES`].
        bytes: u32,
    },
    /// Bytes written.
    Store {
        /// The first address.
        address: u64,
        /// How many, from 1 to [`MAX_ACCESS_BYTES`].
        bytes: u32,
    },
    /// A call instruction has been executed; its target is fetched next.
    Call {
        /// Where it goes.
        target: u64,
        /// The address behind it.
        return_address: u64,
        /// The stack pointer.
        stack: u64,
    },
    /// A return instruction has been executed.
    Return {
        /// Its own address.
        at: u64,
        /// Where it goes.
        target: u64,
    },
    /// Another thread runs from here on.
    Switch {
        /// Its number.
        thread: u32,
    },
    /// Nothing runs.
    Idle {
        /// For so many cycles.
        cycles: u64,
    },
    /// The current domain calls the supervisor.
    Supervisor(TraceRequest),
}

/// Who is given a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTarget {
    /// One domain.
    Domain(u32),
    /// All members of a group.
    Group(u32),
}

/// A call to the supervisor (Mondrix, Table 1 and sections 3.3 to 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceRequest {
    /// Set permissions for the caller.
    Mprot {
        /// Where.
        span: TraceSpan,
        /// What it wants to hold.
        permission: Permission,
    },
    /// Set permissions for another domain, or for all members of a group.
    MprotExport {
        /// For whom.
        to: TraceTarget,
        /// Where.
        span: TraceSpan,
        /// What it is to hold.
        permission: Permission,
        /// Up to which level it may pass that on.
        export: Level,
    },
    /// Create a domain that owns some of the caller's memory.
    Subdivide {
        /// The number by which the trace will call it.
        child: u32,
        /// The memory.
        span: TraceSpan,
        /// What it is to hold on it.
        permission: Permission,
    },
    /// Delete a domain.
    FreeDomain {
        /// Which.
        domain: u32,
    },
    /// The caller is an allocator and gives memory to the domain that called it.
    PermAlloc {
        /// Where.
        span: TraceSpan,
    },
    /// The caller takes memory back from everybody.
    PermFree {
        /// Where.
        span: TraceSpan,
    },
    /// Give memory that the caller owns to another domain.
    Chown {
        /// The new owner.
        to: u32,
        /// Where.
        span: TraceSpan,
    },
    /// Create a group.
    CreateGroup {
        /// The number by which the trace will call it; not 0, which is the global group's.
        group: u32,
    },
    /// Delete a group.
    FreeGroup {
        /// Which.
        group: u32,
    },
    /// The caller joins a group.
    JoinGroup {
        /// Which.
        group: u32,
    },
    /// The caller leaves a group.
    LeaveGroup {
        /// Which.
        group: u32,
    },
    /// A thread with a stack comes into being, in the caller's domain or one below it.
    CreateThread {
        /// The number by which the trace will call it.
        thread: u32,
        /// The domain in which it begins.
        domain: u32,
        /// Its stack, at most [`MAX_STACK_BYTES`].
        stack: TraceSpan,
    },
    /// A thread that does not run ends.
    EndThread {
        /// Which.
        thread: u32,
    },
    /// The running thread makes words of its current frame writable for the domains that it calls, or
    /// takes that back.
    StackGrant {
        /// Where.
        span: TraceSpan,
        /// Writable from now on, or not.
        writable: bool,
    },
}

impl TraceRequest {
    /// The name of the call, as the paper has it where it does.
    pub const fn name(&self) -> &'static str {
        match self {
            TraceRequest::Mprot { .. } => "mprot",
            TraceRequest::MprotExport { .. } => "mprot_export",
            TraceRequest::Subdivide { .. } => "pd_subdivide",
            TraceRequest::FreeDomain { .. } => "pd_free",
            TraceRequest::PermAlloc { .. } => "perm_alloc",
            TraceRequest::PermFree { .. } => "perm_free",
            TraceRequest::Chown { .. } => "chown",
            TraceRequest::CreateGroup { .. } => "group_create",
            TraceRequest::FreeGroup { .. } => "group_free",
            TraceRequest::JoinGroup { .. } => "group_join",
            TraceRequest::LeaveGroup { .. } => "group_leave",
            TraceRequest::CreateThread { .. } => "thread_create",
            TraceRequest::EndThread { .. } => "thread_end",
            TraceRequest::StackGrant { .. } => "stack_grant",
        }
    }
}
