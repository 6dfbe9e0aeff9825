//! What there is at a moment: processes, and the channels between them.
//!
//! A view is made when somebody asks, from the kernel's tables and the workers' answers; nothing is counted for it
//! while processes run. It is also what goes over the status socket, as JSON.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use mullion_sip::channel::Side;
use mullion_sip::owner::Owner;
use mullion_sip::process::{self, End, Statistics};
use serde::{Deserialize, Serialize};

/// Everything at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// Seconds since the supervisor began.
    pub seconds: f64,
    /// The processes, in the order of their names.
    pub processes: Vec<ProcessView>,
    /// The channels of which a process holds an end.
    pub channels: Vec<ChannelView>,
}

/// One process.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessView {
    /// Its name in the configuration.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// `running`, `waiting` (for its next life) or `over`.
    pub state: String,
    /// How often it was started again.
    pub restarts: u64,
    /// How its last life ended, and what it said.
    pub last_end: Option<String>,
    /// The worker that it lives on.
    pub worker: Option<u16>,
    /// Its threads.
    pub threads: u32,
    /// Bytes of its heap, and the most that it may have.
    pub heap: usize,
    /// The most that it may have.
    pub heap_limit: usize,
    /// Bytes of the exchange heap.
    pub exchange: u64,
    /// The most that it may have.
    pub exchange_limit: u64,
    /// Messages that this life has sent.
    pub messages: u64,
}

/// One channel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelView {
    /// Tells it from others that there are at the time.
    pub id: usize,
    /// Its contract.
    pub contract: String,
    /// Who has the client's end; nothing if it is the host's, in another domain, or on its way.
    pub client: Option<String>,
    /// Who has the server's end.
    pub server: Option<String>,
    /// Messages from the client to the server, modulo 2^32.
    pub to_server: u32,
    /// Messages from the server to the client, modulo 2^32.
    pub to_client: u32,
}

/// What the supervisor knows of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) name: &'static str,
    pub(crate) domain: String,
    pub(crate) state: &'static str,
    pub(crate) restarts: u64,
    pub(crate) last_end: Option<String>,
}

/// Looks.
pub(crate) fn look(began: Instant, standings: &[Standing]) -> View {
    let living = process::statistics();
    let ends = process::survey();
    let names: HashMap<Owner, &str> = living.iter().map(|one| (one.owner, one.name)).collect();
    let processes = standings.iter().map(|standing| {
        let alive = |one: &&Statistics| one.name == standing.name && one.exit.is_none();
        one_process(standing, living.iter().find(alive), &ends)
    });
    View {
        seconds: began.elapsed().as_secs_f64(),
        processes: processes.collect(),
        channels: channels(&ends, &names),
    }
}

fn one_process(standing: &Standing, found: Option<&Statistics>, ends: &[End]) -> ProcessView {
    let view = ProcessView {
        name: standing.name.to_owned(),
        domain: standing.domain.clone(),
        state: standing.state.to_owned(),
        restarts: standing.restarts,
        last_end: standing.last_end.clone(),
        ..ProcessView::default()
    };
    let Some(found) = found else { return view };
    let own = ends.iter().filter(|end| end.owner == found.owner);
    ProcessView {
        worker: Some(found.worker),
        threads: found.threads,
        heap: found.memory.0,
        heap_limit: found.memory.1,
        exchange: found.exchange.held,
        exchange_limit: found.exchange.limit,
        messages: found.sent + own.map(|end| u64::from(end.sent)).sum::<u64>(),
        ..view
    }
}

fn channels(ends: &[End], names: &HashMap<Owner, &str>) -> Vec<ChannelView> {
    let mut all = BTreeMap::<usize, ChannelView>::new();
    for end in ends {
        let channel = all.entry(end.channel).or_insert_with(|| ChannelView {
            id: end.channel,
            contract: end.contract.to_owned(),
            ..ChannelView::default()
        });
        let holder = names.get(&end.owner).map(|name| (*name).to_owned());
        // The two ends are seen at different moments: the larger count is the later one.
        let (holds, out, back) = match end.side {
            Side::Client => (
                &mut channel.client,
                &mut channel.to_server,
                &mut channel.to_client,
            ),
            Side::Server => (
                &mut channel.server,
                &mut channel.to_client,
                &mut channel.to_server,
            ),
        };
        *holds = holder;
        *out = (*out).max(end.sent);
        *back = (*back).max(end.received);
    }
    all.into_values().collect()
}
