//! What a decision grants, as limits of the run time: of each pair the stricter.

use crate::Admitted;
use mullion_decide::Decision;
use mullion_runtime::{Limits, PAGE};
use std::time::Duration;

/// `host`, lowered to what `decision` grants to a domain of the image. The run time counts the
/// image's own memory together with the heap.
pub(crate) fn limits(host: Limits, decision: &Decision, admitted: &Admitted) -> Limits {
    let granted = &decision.limits;
    let memory = granted
        .heap
        .map(|heap| heap.saturating_add(admitted.occupied()));
    // The run time rounds up, and a grant is never exceeded. No smaller than a
    // stack can be: see `admission`.
    let stack = granted.stack.map(|stack| stack / PAGE * PAGE);
    let time = granted.time.map(Duration::from_millis);
    Limits {
        memory: memory.map_or(host.memory, |memory| memory.min(host.memory)),
        stack: stack.map_or(host.stack, |stack| stack.min(host.stack)),
        time: match (time, host.time) {
            (Some(granted), Some(host)) => Some(granted.min(host)),
            (one, other) => one.or(other),
        },
        gate_calls: match (granted.calls, host.gate_calls) {
            (Some(granted), Some(host)) => Some(granted.min(host)),
            (one, other) => one.or(other),
        },
        ..host
    }
}
