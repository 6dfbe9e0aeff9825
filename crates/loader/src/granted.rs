//! What a decision grants, as limits of the run time: of each pair the stricter.

use mullion_runtime::{Limits, PAGE};
use mullion_trust::Decision;
use mullion_verifier::Image;
use std::time::Duration;

/// `host`, lowered to what `decision` grants to a domain of `image`.
pub(crate) fn limits(host: Limits, decision: &Decision, image: &Image) -> Limits {
    let granted = &decision.limits;
    let memory = granted
        .heap
        .map(|heap| heap.saturating_add(occupied(image)));
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

/// Bytes that the image itself takes up in memory, which the run time counts
/// together with the heap.
fn occupied(image: &Image) -> u64 {
    let sizes = image
        .segments()
        .iter()
        .map(|segment| segment.size().next_multiple_of(PAGE));
    sizes.sum()
}
