//! What a domain may use.

use crate::{MAX_CONTROL_STACK, MAX_STACK_SIZE, MAX_STACKS};
use std::time::Duration;

/// What a domain may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Accessible bytes of image and heap together.
    pub memory: u64,
    /// Bytes of each data stack, at most [`MAX_STACK_SIZE`].
    pub stack: u64,
    /// Bytes of the control stack for each invocation, 8 for each return address, at
    /// most [`MAX_CONTROL_STACK`]; what is nested in the invocation has what that
    /// leaves, or less by its own limit.
    pub control_stack: u64,
    /// Threads that may have a data stack at the same time, at most [`MAX_STACKS`].
    pub threads: u32,
    /// Pieces of memory with protections of their own: each is a mapping, of
    /// which the whole process has 65,530 unless vm.max_map_count says otherwise.
    pub regions: usize,
    /// Invocations nested on one thread, of this and other domains.
    pub depth: u32,
    /// Time by the clock for each call from the host.
    pub time: Option<Duration>,
    /// Time by the clock for all calls together, until the domain is restarted.
    /// What is nested in a call of the same domain on the same thread counts once;
    /// calls that run at the same time on several threads count each. When nothing
    /// is left, all of them are stopped: each at most two [`TICK`](crate::TICK)s late, and by what
    /// the kernel takes to wake threads.
    pub total_time: Option<Duration>,
    /// Gate calls of each invocation; those of nested invocations are their own.
    pub gate_calls: Option<u64>,
    /// Bytes that it may hand to its host as output, until it is restarted: what is
    /// charged by [`Caller::charge_output`](crate::Caller::charge_output).
    pub output: Option<u64>,
}

/// Limits of one call, beside the domain's: of each the stricter holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Time by the clock.
    pub time: Option<Duration>,
    /// Gate calls; those of invocations of the same domain that are nested in this one
    /// count as well, unless these have limits of their own.
    pub gate_calls: Option<u64>,
    /// Invocations nested on the thread from here on, of all domains, this one included.
    pub depth: Option<u32>,
}

/// The stricter of two limits.
pub(crate) fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Default for Limits {
    /// 1 GiB of memory, stacks of nearly 8 MiB, control stacks of nearly 4 MiB, 95 threads, 1000 regions,
    /// 100 nested invocations, any time, any number of gate calls, any output.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            stack: MAX_STACK_SIZE,
            control_stack: MAX_CONTROL_STACK,
            threads: MAX_STACKS,
            regions: 1000,
            depth: 100,
            time: None,
            total_time: None,
            gate_calls: None,
            output: None,
        }
    }
}
