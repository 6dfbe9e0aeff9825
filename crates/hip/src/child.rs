//! A domain from within: what its OS process does before, and while, its processes run.

use std::io::Write;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::process::exit;

use mullion_sip::channel::Info;
use mullion_sip::process::{Child, SpawnError};
use mullion_sip::remote::{self, Fault};
use mullion_sip::{ExString, Start, wait};
use rustix::thread::CpuSet;

use crate::control::Control;
use crate::message::{Text, ToDomain, ToHost, cause_number};
use crate::sandbox;
use crate::system::{close_from, hear_signals};
use crate::upstream::{self, Host};

/// The argument by which a program knows that it is to be a domain.
pub(crate) const ARGUMENT: &str = "--mullion-domain";

/// A process of a domain, loaded and ready to begin.
#[allow(missing_debug_implementations)]
pub struct Member {
    /// Its name, for people.
    pub name: String,
    /// Begins it, with the sandbox closed.
    pub begin: Box<dyn FnOnce() -> Result<Child, SpawnError>>,
}

/// If [`launch`](crate::launch) has started this program to be a domain: is it, and does not return. To be
/// called first thing in `main`, before anything has opened a file or started a thread.
///
/// `load` gets the configuration of the launch, and may open files: the sandbox is closed after it. The domain
/// ends when all its members have ended.
pub fn enter(load: impl FnOnce(&str) -> Result<Vec<Member>, String>) {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == ARGUMENT)
    {
        exit(live(load));
    }
}

/// Gives the status of the OS process.
fn live(load: impl FnOnce(&str) -> Result<Vec<Member>, String>) -> i32 {
    let host: &'static Host = match prepare() {
        Ok(control) => Box::leak(Box::new(Host::new(control))),
        // There is nobody to tell.
        Err(_) => return 1,
    };
    let begun = match host.control.receive() {
        Ok(Some((
            ToDomain::Begin {
                configuration,
                workers,
                first,
                ..
            },
            _,
        ))) => {
            choose_processors(first, workers);
            begin(host, load, &configuration, workers)
        }
        _ => return 1,
    };
    match begun {
        Ok(members) => {
            watch(host, members);
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

/// Loads, closes the sandbox, and begins the members.
fn begin(
    host: &'static Host,
    load: impl FnOnce(&str) -> Result<Vec<Member>, String>,
    configuration: &str,
    workers: u32,
) -> Result<Vec<(String, Child)>, String> {
    let said = |what: &'static str| move |error: &dyn std::error::Error| format!("{what}: {error}");
    let members = load(configuration)?;
    let landlock = sandbox::close_files().map_err(|error| said("Landlock")(&error))?;
    let start = Start {
        workers: NonZeroUsize::new(workers.max(1) as usize),
    };
    mullion_sip::start(start).map_err(|error| said("workers")(&error))?;
    remote::set_upstream(host);
    remote::on_fault(report);
    upstream::serve(host).map_err(|error| said("a thread")(&error))?;
    std::io::stdout()
        .flush()
        .map_err(|error| said("output")(&error))?;
    // The handles that threads and their destructors want are made now, while they can be.
    let _ = (wait::current(), mullion_sip::exchange::census());
    sandbox::close_calls(host.control.descriptor())
        .map_err(|error| said("system call filter")(&error))?;
    host.control
        .send(&ToHost::Ready { landlock }, &[])
        .map_err(|error| said("the host")(&error))?;
    let begin = |member: Member| match (member.begin)() {
        Ok(child) => Ok((member.name, child)),
        Err(error) => Err(format!("{}: {error}", member.name)),
    };
    members.into_iter().map(begin).collect()
}

/// Until all have ended.
fn watch(host: &Host, mut members: Vec<(String, Child)>) {
    while !members.is_empty() {
        members.retain(|(name, child)| {
            let Some(exit) = child.look(Some(wait::current())) else {
                return true;
            };
            let (cause, status) = cause_number(exit.cause);
            let ended = ToHost::Ended {
                name: Text::new(name),
                cause,
                status,
                message: Text::new(exit.message.as_str()),
            };
            // Without the host there is no domain: its control thread ends it.
            let _ = host.control.send(&ended, &[]);
            false
        });
        if !members.is_empty() {
            wait::park();
        }
    }
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
