//! What there is at a moment: processes, and the channels between them.
//!
//! A view is made when somebody asks, from the kernel's tables and the workers' answers; nothing is counted for it
//! while processes run. It is also what goes over the status socket, as JSON.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use mullion_hip::{DomainView, Seen};
use mullion_sip::channel::Side;
use mullion_sip::owner::Owner;
use mullion_sip::process::{End, Limits, Statistics};
use mullion_sip_hosting::{Host, remote};
use serde::{Deserialize, Serialize};

use crate::domain::ProcessPlace;

/// Everything at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunView {
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
    /// The number of its OS process, if that is not the supervisor's own.
    pub os_process: Option<u32>,
    /// `running`, `waiting` (for its next life) or `over`.
    pub state: String,
    /// How often it was started again.
    pub restarts: u64,
    /// How its last life ended, and what it said.
    pub last_end: Option<String>,
    /// The worker that it lives on.
    pub worker: Option<u16>,
    /// Whether its OS process has not answered in time: what is counted there is then unknown, and 0 here.
    pub silent: bool,
    /// Its threads.
    pub threads: u32,
    /// The most that it may have.
    pub thread_limit: u32,
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
    /// The same per second, between two views: who compares them fills it in ([`RunView::compare`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_per_second: Option<f64>,
}

/// One channel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelView {
    /// Tells it from the others of this view.
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

impl RunView {
    /// Fills in what has happened since an earlier view: of processes that live the same life, as far as counts tell.
    pub fn compare(&mut self, before: &RunView) {
        let seconds = self.seconds - before.seconds;
        let earlier: HashMap<&str, &ProcessView> = before
            .processes
            .iter()
            .map(|process| (&*process.name, process))
            .collect();
        for process in &mut self.processes {
            let earlier = earlier.get(&*process.name);
            let sent = earlier
                .filter(|earlier| !earlier.silent && earlier.restarts == process.restarts)
                .and_then(|earlier| process.messages.checked_sub(earlier.messages));
            let sent = sent.filter(|_| seconds > 0.0 && !process.silent);
            process.messages_per_second = sent.map(|sent| sent as f64 / seconds);
        }
    }
}

/// The state of a process that has a life.
pub(crate) const RUNNING: &str = "running";

/// What the supervisor knows of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) name: &'static str,
    pub(crate) domain: String,
    pub(crate) state: &'static str,
    pub(crate) restarts: u64,
    pub(crate) limits: Limits,
    pub(crate) place: Option<ProcessPlace>,
    pub(crate) last_end: Option<String>,
}

/// Looks.
pub(crate) fn look(host: &Host, began: Instant, standings: &[Standing]) -> RunView {
    let here = Here::look(host);
    let others = others(standings);
    let mut channels = Channels::default();
    here.add_to(&mut channels);
    others.iter().for_each(|other| other.add_to(&mut channels));
    let processes = standings.iter().map(|standing| {
        let view = named(standing);
        let other = |place: &ProcessPlace| others.iter().find(|other| other.glass.is(&place.glass));
        match &standing.place {
            Some(place) => {
                other(place).map_or_else(|| view.clone(), |other| other.fill(&view, place))
            }
            None => here.fill(view),
        }
    });
    RunView {
        seconds: began.elapsed().as_secs_f64(),
        processes: processes.collect(),
        channels: channels.finish(),
    }
}

fn named(standing: &Standing) -> ProcessView {
    ProcessView {
        name: standing.name.to_owned(),
        domain: standing.domain.clone(),
        state: standing.state.to_owned(),
        restarts: standing.restarts,
        last_end: standing.last_end.clone(),
        thread_limit: standing.limits.threads,
        heap_limit: standing.limits.memory,
        exchange_limit: standing.limits.exchange,
        ..ProcessView::default()
    }
}

/// The processes of this OS process, and the ends that they hold.
struct Here {
    living: Vec<Statistics>,
    ends: Vec<End>,
    lines: HashMap<usize, u64>,
}

impl Here {
    fn look(host: &Host) -> Here {
        Here {
            living: host.statistics(),
            ends: host.survey(),
            lines: remote::lines().into_iter().collect(),
        }
    }

    fn fill(&self, view: ProcessView) -> ProcessView {
        let alive = |one: &&Statistics| one.name == view.name && one.exit.is_none();
        let Some(found) = self.living.iter().find(alive) else {
            return view;
        };
        let own = self.ends.iter().filter(|end| end.owner == found.owner);
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

    fn add_to(&self, channels: &mut Channels) {
        let living = self.living.iter();
        let names: HashMap<Owner, &str> = living.map(|one| (one.owner, one.name)).collect();
        for end in &self.ends {
            let holder = names.get(&end.owner);
            channels.add(
                match self.lines.get(&end.channel) {
                    Some(line) => Channel::Between(*line),
                    None => Channel::Within(0, end.channel as u64),
                },
                end.contract,
                (end.side, holder.map(|name| (*name).to_owned())),
                (end.sent, end.received),
            );
        }
    }
}

/// The processes of another OS process, by its own word.
struct Other {
    glass: DomainView,
    /// Counted from 1.
    number: usize,
    /// Nothing, if it has not answered.
    seen: Option<Seen>,
    /// By the numbers of lives.
    names: HashMap<u64, &'static str>,
}

/// Each domain elsewhere is asked once.
fn others(standings: &[Standing]) -> Vec<Other> {
    let mut others = Vec::<Other>::new();
    for standing in standings {
        let Some(place) = &standing.place else {
            continue;
        };
        let known = others.iter().position(|other| other.glass.is(&place.glass));
        let at = known.unwrap_or_else(|| {
            others.push(Other {
                glass: place.glass.clone(),
                number: others.len() + 1,
                seen: place.glass.look(),
                names: HashMap::new(),
            });
            others.len() - 1
        });
        others[at].names.insert(place.life, standing.name);
    }
    others
}

impl Other {
    fn fill(&self, view: &ProcessView, place: &ProcessPlace) -> ProcessView {
        let mut all = self.seen.iter().flat_map(|seen| &seen.processes);
        let Some(seen) = all.find(|seen| seen.life == place.life) else {
            return ProcessView {
                os_process: self.glass.process(),
                silent: self.seen.is_none(),
                ..view.clone()
            };
        };
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        ProcessView {
            os_process: self.glass.process(),
            worker: u16::try_from(seen.worker).ok(),
            threads: seen.threads,
            heap: size(seen.memory[0]),
            heap_limit: size(seen.memory[1]),
            exchange: seen.exchange[0],
            exchange_limit: seen.exchange[1],
            messages: seen.messages,
            ..view.clone()
        }
    }

    fn add_to(&self, channels: &mut Channels) {
        for end in self.seen.iter().flat_map(|seen| &seen.ends) {
            let holder = self.names.get(&end.life).map(|name| (*name).to_owned());
            channels.add(
                match end.line {
                    0 => Channel::Within(self.number, end.channel),
                    line => Channel::Between(line),
                },
                &end.contract,
                (end.side, holder),
                (end.sent, end.received),
            );
        }
    }
}

/// Tells a channel from all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    /// Both ends are in one OS process: which, and the address there.
    Within(usize, u64),
    /// They are in two: the number of the memory between them.
    Between(u64),
}

/// Channels, put together of their ends.
#[derive(Default)]
struct Channels(BTreeMap<Channel, ChannelView>);

impl Channels {
    fn add(
        &mut self,
        channel: Channel,
        contract: &str,
        (side, holder): (Side, Option<String>),
        (sent, received): (u32, u32),
    ) {
        let channel = self.0.entry(channel).or_insert_with(|| ChannelView {
            contract: contract.to_owned(),
            ..ChannelView::default()
        });
        // The two ends are seen at different moments: the larger count is the later one.
        let (holds, out, back) = match side {
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
        *out = (*out).max(sent);
        *back = (*back).max(received);
    }

    fn finish(self) -> Vec<ChannelView> {
        let all = self.0.into_values().enumerate();
        all.map(|(id, channel)| ChannelView { id, ..channel })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_per_second_are_of_one_life_that_was_counted_twice() {
        let process = |name: &str, messages, restarts, silent| ProcessView {
            name: name.into(),
            messages,
            restarts,
            silent,
            ..ProcessView::default()
        };
        let view = |seconds, processes| RunView {
            seconds,
            processes,
            channels: Vec::new(),
        };
        let before = vec![
            process("steady", 10, 1, false),
            process("again", 10, 1, false),
            process("silent", 0, 0, true),
            process("fallen silent", 10, 0, false),
        ];
        let now = vec![
            process("steady", 40, 1, false),
            process("again", 40, 2, false),
            process("silent", 40, 0, false),
            process("fallen silent", 0, 0, true),
            process("new", 40, 0, false),
        ];
        let rates = |view: &RunView| -> Vec<_> {
            let all = view.processes.iter();
            all.map(|process| process.messages_per_second).collect()
        };
        let mut later = view(3.0, now.clone());
        later.compare(&view(1.0, before.clone()));
        assert_eq!(rates(&later), [Some(15.0), None, None, None, None]);
        let mut at_once = view(1.0, now);
        at_once.compare(&view(1.0, before));
        assert_eq!(rates(&at_once), [None; 5]);
    }
}
