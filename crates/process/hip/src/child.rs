//! A domain from within: what its OS process does before, and while, its processes run.

use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use mullion_sip::channel::Info;
use mullion_sip::owner::Owner;
use mullion_sip::process::{Cause, Child, End, Exit, SpawnError};
use mullion_sip::{ExString, ExVec, wait};
use mullion_sip_hosting::common_memory;
use mullion_sip_hosting::remote::{self, Fault};
use mullion_sip_hosting::{Host as Power, Start, Supervised};
use rustix::thread::CpuSet;

use crate::control::{Control, DESCRIPTORS};
use crate::files::contents;
use crate::members::Place;
use crate::memory::{self, Holder};
use crate::message::{
    EndRow, LifeSeen, Text, ToDomain, ToHost, cause_number, exit as exit_with, side_number,
};
use crate::sandbox;
use crate::system::{close_from, hear_signals, run_in_short_slices};
use crate::upstream::{self, Host, Order};

/// The argument by which a program knows that it is to be a domain.
pub(crate) const ARGUMENT: &str = "--mullion-domain";

/// A process of a domain, loaded and ready to begin.
#[allow(missing_debug_implementations)]
pub struct Member {
    /// Its name, for people.
    pub name: String,
    /// Begins a life of it, with the sandbox closed. It is not called while one lives.
    pub begin: Box<dyn FnMut() -> Result<Child, SpawnError>>,
}

/// If [`launch`](crate::launch) has started this program to be a domain: is it, and does not return. To be
/// called first thing in `main`, before anything has opened a file or started a thread.
///
/// `load` gets the configuration and the files of the launch, and may open others: the sandbox is closed after it.
/// The domain of a [`launch`](crate::launch) ends when all its members have ended.
pub fn enter(load: impl FnOnce(&str, Vec<OwnedFd>) -> Result<Vec<Member>, String>) {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == ARGUMENT)
    {
        exit(live(load));
    }
}

/// Gives the status of the OS process.
fn live(load: impl FnOnce(&str, Vec<OwnedFd>) -> Result<Vec<Member>, String>) -> i32 {
    let host: &'static Host = match prepare() {
        Ok(control) => Box::leak(Box::new(Host::new(control))),
        // There is nobody to tell.
        Err(_) => return 1,
    };
    // Nobody else in this program has it.
    let Ok(power) = Power::begin() else { return 1 };
    let begun = match host.control.receive(DESCRIPTORS) {
        Ok(Some((
            ToDomain::Begin {
                workers,
                first,
                together,
                decided,
                member,
            },
            files,
        ))) => {
            choose_processors(first, workers);
            run_in_short_slices();
            if decided && power.decided_by(Box::new(Supervised::new())).is_err() {
                return 1;
            }
            begin(host, &power, load, files, member.map(Place::from), workers).and_then(|members| {
                let mut keeper = Keeper {
                    host,
                    power,
                    members,
                    lives: Vec::new(),
                };
                if together {
                    keeper.start_all()?;
                }
                Ok((keeper, together))
            })
        }
        _ => return 1,
    };
    match begun {
        Ok((keeper, together)) => {
            keeper.keep(together);
            0
        }
        Err(reason) => {
            // The host sees the end in any case.
            let reason = ExString::from(reason.as_str());
            let _ = host.control.send(&ToHost::Failed { reason }, &[]);
            1
        }
    }
}

/// The control socket came as the standard input; nothing else is open but the outputs.
fn prepare() -> std::io::Result<Control> {
    hear_signals();
    close_from(3)?;
    sandbox::prepare()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(Control::new(socket))
}

/// Leaves the domain the processors that its workers are to be on. If Linux does not want to, it has all.
fn choose_processors(first: u32, workers: u32) {
    let Ok(all) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let all: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| all.is_set(*cpu))
        .collect();
    let mut mine = CpuSet::new();
    for worker in 0..(workers.max(1) as usize).min(all.len()) {
        mine.set(all[(first as usize + worker) % all.len()]);
    }
    let _ = rustix::thread::sched_setaffinity(None, &mine);
}

/// Loads, and closes the sandbox.
fn begin(
    host: &'static Host,
    power: &Power,
    load: impl FnOnce(&str, Vec<OwnedFd>) -> Result<Vec<Member>, String>,
    mut files: Vec<OwnedFd>,
    member: Option<Place>,
    workers: u32,
) -> Result<Vec<Member>, String> {
    let said = |what: &'static str| move |error: &dyn std::error::Error| format!("{what}: {error}");
    if files.is_empty() {
        return Err("no configuration came".into());
    }
    let configuration = contents(files.remove(0)).map_err(|error| said("files")(&error))?;
    let configuration = String::from_utf8(configuration).map_err(|error| said("files")(&error))?;
    if let Some(Place { member, sharing }) = member {
        let memory = files.drain(..1.min(files.len())).next();
        let memory = memory.ok_or("no memory to share came")?;
        let shared = common_memory::share(memory.as_fd(), member, sharing);
        shared.map_err(|error| said("memory to share")(&error))?;
    }
    let members = load(&configuration, files)?;
    mullion_closed::drop_capabilities().map_err(|error| said("capabilities")(&error))?;
    let landlock = mullion_closed::drop_files().map_err(|error| said("Landlock")(&error))?;
    let start = Start {
        workers: NonZeroUsize::new(workers.max(1) as usize),
    };
    power
        .start(start)
        .map_err(|error| said("workers")(&error))?;
    power.end_sleepers();
    power.set_upstream(host);
    power.on_fault(report);
    upstream::serve(host, power.deputy()).map_err(|error| said("a thread")(&error))?;
    std::io::stdout()
        .flush()
        .map_err(|error| said("output")(&error))?;
    // The handles that threads and their destructors want are made now, while they can be.
    let _ = (wait::current(), mullion_sip::exchange::census());
    mullion_closed::close_domain(host.control.descriptor())
        .map_err(|error| said("system call filter")(&error))?;
    host.control
        .send(&ToHost::Ready { landlock }, &[])
        .map_err(|error| said("the host")(&error))?;
    Ok(members)
}

/// Keeps the members of a domain, in its first thread.
struct Keeper {
    host: &'static Host,
    power: Power,
    members: Vec<Member>,
    lives: Vec<Lives>,
}

/// A member lives.
struct Lives {
    life: u64,
    member: usize,
    child: Child,
}

impl Keeper {
    fn start_all(&mut self) -> Result<(), String> {
        (0..self.members.len()).try_for_each(|member| {
            let begun = self.start(member, 0);
            begun.map_err(|error| format!("{}: {error}", self.members[member].name))
        })
    }

    fn start(&mut self, member: usize, life: u64) -> Result<(), SpawnError> {
        let child = (self.members[member].begin)()?;
        self.lives.push(Lives {
            life,
            member,
            child,
        });
        Ok(())
    }

    /// Until all have ended that began together; else as long as there is a host.
    fn keep(mut self, together: bool) {
        loop {
            let orders = self.host.orders();
            let acted = !orders.is_empty();
            for order in orders {
                self.carry_out(order);
            }
            let (host, members) = (self.host, &self.members);
            self.lives.retain(|one| {
                let end = one.child.look(Some(wait::current()));
                if let Some(exit) = &end {
                    tell_end(host, one.life, &members[one.member].name, exit);
                }
                end.is_none()
            });
            if together && self.lives.is_empty() {
                return;
            }
            // Who carries out an order may wait, and be woken by the next one in our place: it is looked at again.
            if !acted {
                wait::park();
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Start { member, life } => {
                let member = member as usize;
                let name = self.members.get(member).map_or("", |member| &member.name);
                let free = self.lives.iter().all(|one| one.member != member);
                let begun = match name {
                    "" => Err("there is no such member".into()),
                    _ if !free => Err("it lives already".into()),
                    _ => self.start(member, life).map_err(|error| error.to_string()),
                };
                if let Err(error) = begun {
                    let name = self.members.get(member).map_or("", |member| &member.name);
                    tell_end(self.host, life, name, &exit_with(Cause::Abort, &error));
                }
            }
            Order::End { life } => {
                let found = self.lives.iter().find(|one| one.life == life);
                found.inspect(|one| one.child.kill());
            }
            Order::Look { request } => self.look(request),
            Order::Map { request } => {
                let holders = self.lives.iter().map(|one| Holder {
                    owner: one.child.owner(),
                    life: one.life,
                    name: &self.members[one.member].name,
                });
                let mapped = memory::tell(&self.power, request, holders.collect());
                // As below.
                let _ = self.host.control.send(&mapped, &[]);
            }
        }
    }

    /// Says what there is.
    fn look(&self, request: u64) {
        let lives = self
            .lives
            .iter()
            .map(|one| (one.child.owner(), one.life))
            .collect();
        let (processes, ends) = seen(&self.power, &lives);
        let seen = ToHost::Seen {
            request,
            processes,
            ends,
        };
        // Without the host there is no domain: its control thread ends it.
        let _ = self.host.control.send(&seen, &[]);
    }
}

/// Rows of a view at most: they are one message.
const ROWS: usize = 400;

fn seen(power: &Power, lives: &HashMap<Owner, u64>) -> (ExVec<LifeSeen>, ExVec<EndRow>) {
    let lines: HashMap<usize, u64> = remote::lines().into_iter().collect();
    let ends: Vec<End> = power.survey();
    let mut sent = HashMap::<Owner, u64>::new();
    for end in &ends {
        *sent.entry(end.owner).or_default() += u64::from(end.sent);
    }
    let processes = power.statistics().into_iter().filter_map(|one| {
        Some(LifeSeen {
            life: *lives.get(&one.owner)?,
            memory: [one.memory.0 as u64, one.memory.1 as u64],
            exchange: [one.exchange.held, one.exchange.limit],
            messages: one.sent + sent.get(&one.owner).copied().unwrap_or(0),
            threads: one.threads,
            worker: one.worker.into(),
        })
    });
    let ends = ends.iter().filter_map(|end| {
        Some(EndRow {
            life: *lives.get(&end.owner)?,
            channel: end.channel as u64,
            line: lines.get(&end.channel).copied().unwrap_or(0),
            contract: end.contract.into(),
            side: side_number(end.side),
            sent: end.sent,
            received: end.received,
        })
    });
    (processes.take(ROWS).collect(), ends.take(ROWS).collect())
}

fn tell_end(host: &Host, life: u64, name: &str, exit: &Exit) {
    let (cause, status) = cause_number(exit.cause);
    let ended = ToHost::Ended {
        life,
        name: Text::new(name),
        cause,
        status,
        message: Text::new(exit.message.as_str()),
    };
    // As above.
    let _ = host.control.send(&ended, &[]);
}

/// A bridge has ended a channel.
fn report(contract: &'static Info, peer: &str, fault: Fault) {
    if let Some(host) = upstream::host() {
        let fault = ToHost::Fault {
            contract: Text::new(contract.name),
            peer: Text::new(peer),
            fault: Text::new(&fault.to_string()),
        };
        // As above.
        let _ = host.control.send(&fault, &[]);
    }
}
