//! Processes in an OS process of their own: `kind = "process"`. Its exchange heap is its own, or shares large vectors
//! of plain values with others (`heap = "shared"`, or `"remapped"`: only with who has them).
//!
//! ```text
//!   supervisor -- OsProcess ---- orders, ends ----> first thread ---- Launch ----> process
//!      judged images as sealed files            judges the same bytes, loads them, closes the sandbox
//! ```
//! The OS process is started with the first of its processes, and again if it has ended. A process of it that
//! ends and is started again does so within it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use mullion_hip::{
    Idle, Launch, Life, Member, Notice, Output, Sharing, contents, launch_idle, sealed,
};
use mullion_sip::Digest;
use mullion_sip::process::{Exit, Home, Limits, Options, Rights};
use mullion_sip::wait::Waiter;
use serde::{Deserialize, Serialize};

use crate::domain::{DomainStartError, Process, ProcessPlace, RunningDomain, SipDomain};
use crate::image::SipImage;
use crate::in_host;
use crate::instance::Instance;

/// If this program has been started to be a domain: is it, and does not return. To be called first thing in
/// `main` by whoever makes a [`SipSupervisor`](crate::SipSupervisor), before anything has opened a file or started a thread.
pub fn enter() {
    mullion_hip::enter(load);
}

/// What an OS process is told of one of its processes. The image comes as a file.
#[derive(Serialize, Deserialize)]
struct Part {
    name: String,
    digest: [u8; 32],
    arguments: Vec<String>,
    /// What its limits are, whatever its manifest says.
    memory: usize,
    exchange: u64,
    threads: u32,
    children: u32,
    slice: Duration,
    worker: Option<usize>,
    bind: Vec<String>,
    look_up: Vec<String>,
}

impl Part {
    fn of(process: &Process) -> Part {
        let config = &process.config;
        let limits = config.limits.over(process.image.limits());
        let texts = |prefixes: &[crate::quantity::Prefix]| {
            let texts = prefixes.iter().map(|prefix| prefix.as_str().to_owned());
            texts.collect()
        };
        Part {
            name: process.name.to_owned(),
            digest: process.image.digest().0,
            arguments: config.arguments.clone(),
            memory: limits.memory,
            exchange: limits.exchange,
            threads: limits.threads,
            children: limits.children,
            slice: limits.slice,
            worker: config.worker,
            bind: texts(&config.bind),
            look_up: texts(&config.look_up),
        }
    }

    /// Within the domain.
    fn options(&self) -> Options {
        let bind = self.bind.iter();
        let rights = bind.fold(Rights::none(), |rights, prefix| rights.bind(prefix));
        let look_up = self.look_up.iter();
        Options {
            limits: Limits {
                memory: self.memory,
                exchange: self.exchange,
                threads: self.threads,
                children: self.children,
                slice: self.slice,
            },
            home: self.worker.map_or(Home::Next, Home::Worker),
            rights: look_up.fold(rights, |rights, prefix| rights.look_up(prefix)),
        }
    }
}

/// In the domain's OS process, before its sandbox is closed.
fn load(configuration: &str, files: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let parts: Vec<Part> =
        serde_json::from_str(configuration).map_err(|error| error.to_string())?;
    if parts.len() != files.len() {
        return Err("there is not one file for each process".into());
    }
    let members = parts.into_iter().zip(files);
    members.map(|(part, file)| member(part, file)).collect()
}

fn member(part: Part, file: OwnedFd) -> Result<Member, String> {
    let of = |error: &dyn std::fmt::Display| format!("processes.{}: {error}", part.name);
    let bytes = contents(file).map_err(|error| of(&error))?;
    let image = SipImage::judge(bytes, Some(Digest(part.digest))).map_err(|error| of(&error))?;
    let instance = Instance::load(&image).map_err(|error| of(&error))?;
    let name: &'static str = part.name.clone().leak();
    let options = part.options();
    // For all lives, of which there is one at a time.
    let launch = Box::leak(Box::new(in_host::Launch {
        instance,
        arguments: part.arguments,
    }));
    let launch: &'static in_host::Launch = launch;
    Ok(Member {
        name: part.name,
        begin: Box::new(move || in_host::begin(name, launch, &options)),
    })
}

/// A domain in an OS process of its own, from the supervisor's side.
pub(crate) struct OsProcess {
    name: String,
    /// Its processes, by their places.
    members: Vec<Arc<Process>>,
    workers: u32,
    share: Option<Sharing>,
    files: Vec<Arc<OwnedFd>>,
    lives: Option<Idle>,
}

impl OsProcess {
    pub(crate) fn new(
        name: &str,
        members: Vec<Arc<Process>>,
        share: Option<Sharing>,
        workers: Option<usize>,
    ) -> OsProcess {
        let most = workers.unwrap_or_else(|| {
            let cores = std::thread::available_parallelism();
            members.len().min(cores.map_or(1, usize::from))
        });
        mullion_hip::on_notice(report);
        OsProcess {
            name: name.to_owned(),
            workers: u32::try_from(most).unwrap_or(u32::MAX),
            share,
            files: Vec::new(),
            members,
            lives: None,
        }
    }

    /// The OS process, which is started if there is none.
    fn domain(&mut self) -> Result<&Idle, DomainStartError> {
        if self
            .lives
            .as_ref()
            .is_none_or(|idle| idle.ended().is_some())
        {
            self.lives = None;
            if self.files.is_empty() {
                let file = |process: &Arc<Process>| {
                    sealed(process.name, process.image.bytes()).map(Arc::new)
                };
                self.files = self.members.iter().map(file).collect::<Result<_, _>>()?;
            }
            let launched = launch_idle(&self.launch());
            self.lives = Some(launched.map_err(|error| DomainStartError::Domain(error.into()))?);
        }
        self.lives.as_ref().ok_or(DomainStartError::Unknown)
    }

    fn launch(&self) -> Launch {
        let parts: Vec<Part> = self.members.iter().map(|one| Part::of(one)).collect();
        let (mut bind, mut look_up) = (HashSet::new(), HashSet::new());
        for part in &parts {
            bind.extend(part.bind.iter().map(String::as_str));
            look_up.extend(part.look_up.iter().map(String::as_str));
        }
        let rights = bind.into_iter().fold(Rights::none(), Rights::bind);
        Launch {
            name: self.name.clone(),
            configuration: serde_json::to_string(&parts)
                .unwrap_or_else(|_| unreachable!("texts and numbers")),
            files: self.files.clone(),
            workers: self.workers,
            processor: None,
            share: self.share,
            rights: look_up.into_iter().fold(rights, Rights::look_up),
            output: Output::Inherited,
            program: None,
        }
    }
}

impl SipDomain for OsProcess {
    fn start(&mut self, process: &Process) -> Result<Box<dyn RunningDomain>, DomainStartError> {
        let place = self.members.iter().position(|one| one.name == process.name);
        let place = place.ok_or(DomainStartError::Unknown)?;
        let domain = self.domain()?;
        let life = domain.start(place as u32);
        let place = ProcessPlace {
            glass: domain.glass(),
            life: life.number(),
        };
        Ok(Box::new(Lives { life, place }))
    }

    fn stop(&mut self) {
        self.lives.iter().for_each(Idle::kill);
    }
}

struct Lives {
    life: Life,
    place: ProcessPlace,
}

impl RunningDomain for Lives {
    fn look(&self, waiter: Waiter) -> Option<Exit> {
        self.life.look(waiter)
    }

    fn kill(&self) {
        self.life.kill();
    }

    fn place(&self) -> Option<ProcessPlace> {
        Some(self.place.clone())
    }
}

/// What happens in domains that is not the end of a life, which its supervisor reports.
fn report(domain: &str, notice: &Notice) {
    match notice {
        Notice::Ended(..) | Notice::Ready { landlock: true } => {}
        Notice::Ready { landlock: false } => {
            tracing::debug!(
                domain,
                "no Landlock here: the system call filter alone refuses files"
            );
        }
        Notice::Fault(contract, peer, fault) => {
            tracing::warn!(domain, contract, peer, fault, "a channel was closed");
        }
        Notice::LeftOut(faults) => {
            tracing::warn!(
                domain,
                faults,
                "channels were closed, of which nothing more is said"
            );
        }
        Notice::Malformed(what) => tracing::error!(domain, what, "said what is no message"),
    }
}
