//! Where things lie in the 32-bit address space of a synthetic program.
//!
//! ```text
//!  0100_0000  kernel text          module m, at 1000_0000 + m * 0042_3000:
//!  0201_7000  kernel data            text at +0, data at +0021_1000, stack of its start at +0030_0000
//!  0400_0000  heap                 f000_0000  the threads' stacks
//!  0803_9000  the group's memory
//! ```
//!
//! The odd distances keep domains from lying in the same sets of the level-two cache.

use crate::event::TraceSpan;

/// The kernel's domain number.
pub(super) const KERNEL: u32 = 1;

/// The group that all modules join.
pub(super) const GROUP: u32 = 1;

/// The heap's first address.
pub(super) const HEAP: u64 = 0x0400_0000;

/// Bytes of heap: what objects and loans come from.
pub(super) const HEAP_BYTES: u64 = 0x0400_0000;

/// The group's memory: one object in each of so many bytes.
pub(super) const SHARED: u64 = 0x0803_9000;

/// Distance of the group's objects.
pub(super) const SHARED_STEP: u64 = 512;

/// Bytes of a group's object (a kernel inode of the paper's time has about so many).
pub(super) const SHARED_BYTES: u64 = 480;

/// Bytes of a thread's stack: Linux 2.4 has 8 KiB.
pub(super) const STACK_BYTES: u64 = 8 << 10;

/// Bytes of an exported function, gates at both ends.
pub(super) const FUNCTION_BYTES: u64 = 256;

/// Exported functions of a domain.
pub(super) const EXPORTS: u64 = 8;

/// The first of the kernel's exports allocates, the second frees.
pub(super) const ALLOCATE: u64 = 0;

/// See [`ALLOCATE`].
pub(super) const FREE: u64 = 1;

const STACKS: u64 = 0xf000_0000;

/// Where a domain's text begins.
pub(super) fn text(domain: u32) -> u64 {
    match domain {
        KERNEL => 0x0100_0000,
        _ => module(domain),
    }
}

/// Where a domain's static data begins.
pub(super) fn data(domain: u32) -> u64 {
    match domain {
        KERNEL => 0x0201_7000,
        _ => module(domain) + 0x0021_1000,
    }
}

/// The stack on which a module starts.
pub(super) fn start_stack(domain: u32) -> TraceSpan {
    TraceSpan {
        address: module(domain) + 0x0030_0000,
        bytes: STACK_BYTES,
    }
}

fn module(domain: u32) -> u64 {
    0x1000_0000 + u64::from(domain) * 0x0042_3000
}

/// A thread's stack.
pub(super) fn stack(thread: u32) -> TraceSpan {
    TraceSpan {
        address: STACKS + u64::from(thread) * STACK_BYTES,
        bytes: STACK_BYTES,
    }
}

/// An exported function of a domain, spread over its text so that entry points do not share lines.
pub(super) fn export(domain: u32, number: u64, text_bytes: u64) -> u64 {
    let step = (text_bytes / EXPORTS).max(FUNCTION_BYTES);
    text(domain) + number % (text_bytes / step).max(1) * step
}

/// The word of a function's return instruction.
pub(super) fn return_of(function: u64) -> u64 {
    function + FUNCTION_BYTES - 4
}

/// The group's object of this number.
pub(super) fn shared(number: u64) -> TraceSpan {
    TraceSpan {
        address: SHARED + number * SHARED_STEP,
        bytes: SHARED_BYTES,
    }
}
