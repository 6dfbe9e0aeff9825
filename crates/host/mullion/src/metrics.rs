//! The figures of domains: of one, of all, as text, as events.

use crate::domain::Domain;
use crate::identity::{self, Identity};
pub use mullion_metrics::Metrics;

impl Domain {
    /// What it has done so far, over all its lives: calls, faults by kind, restarts, memory, limits
    /// that it has hit. There is also their time, where [`Limits::measured`](crate::Limits::measured) asks for
    /// that. It may be read while the domain is in use, being restarted, or unloaded.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.identity().metrics().unwrap_or_default()
    }
}

impl Identity {
    /// `None` as long as the domain is being made.
    fn metrics(&self) -> Option<Metrics> {
        Some(Metrics {
            domain: self.name().to_owned(),
            image: self.image().name().to_owned(),
            number: self.place()?.number().0,
            counts: self.meter()?.read(),
        })
    }
}

/// The figures of every domain of this process that the host still has, in the order in which they
/// were made. One that is unloaded counts as long as somebody holds it.
///
/// Calls are not held back meanwhile. It costs as much as there are domains and threads that have
/// called them.
#[must_use]
pub fn metrics() -> Vec<Metrics> {
    let all = identity::alive();
    all.iter().filter_map(|one| one.metrics()).collect()
}

/// What [`metrics()`] gives, as Prometheus and its like read it: exposition format 0.0.4, to be served
/// as [`PROMETHEUS_TYPE`](crate::PROMETHEUS_TYPE), by whatever server the host has.
///
/// A domain's name is the label `domain`, its image's `image`; `number` tells domains of one name
/// apart. A host that makes and drops many domains makes as many series.
#[must_use]
pub fn prometheus() -> String {
    mullion_metrics::prometheus(&metrics())
}

/// One event at `INFO` for each domain, of target `mullion::metrics`, with its figures as fields. For
/// hosts that gather figures from their log, to be called as often as they want them.
pub fn log_metrics() {
    for metrics in metrics() {
        let counts = &metrics.counts;
        tracing::info!(
            target: "mullion::metrics",
            domain = metrics.domain,
            image = metrics.image,
            number = metrics.number,
            calls = counts.calls,
            host_calls = counts.host_calls,
            seconds = counts.time.map(|time| time.as_secs_f64()),
            faults = counts.faults(),
            exits = counts.exits,
            refused = counts.refused,
            not_made = counts.not_made,
            restarts = counts.restarts,
            limit_hits = counts.limit_hits(),
            memory = counts.memory,
            memory_highest = counts.memory_highest,
        );
    }
}
