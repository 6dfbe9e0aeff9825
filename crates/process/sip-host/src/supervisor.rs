//! Starts what a configuration names, restarts it by its policies, and ends it.
//!
//! ```text
//!   configuration -> every library judged, contracts compared, domains made   (nothing runs yet)
//!                 -> run: lives begin; an end -> the policy -> later another life, or over
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use mullion_sip::Digest;
use mullion_sip::process::{Cause, Exit, Policy};
use mullion_sip::wait::{self, Waiter};
use mullion_sip_hosting::{Deputy, Host, HostError, Start, StartError};
use thiserror::Error;

use crate::configuration::Configuration;
use crate::domain::{self, DomainError, DomainStartError, Process, RunningDomain, SipDomain};
use crate::image::{ImageError, SipImage};
use crate::map;
use crate::services::{self, ServiceError};
use crate::view::{self, RunView, Standing};

/// Why nothing was started.
#[derive(Debug, Error)]
pub enum RunSetupError {
    /// A library was refused.
    #[error("processes.{process}: {error}")]
    Image {
        /// The process that it is for.
        process: String,
        /// Why.
        error: ImageError,
    },
    /// Two libraries were built with contracts of the same name that differ.
    #[error(transparent)]
    Contracts(Box<Disagreement>),
    /// There is no such domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The workers do not run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A service of the host cannot be offered.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Two libraries mean different things by a contract's name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{first} and {second} were built with different contracts {contract} ({ours} and {theirs}): \
     build both against the same one",
    first = first.display(), second = second.display()
)]
pub struct Disagreement {
    /// The contract's name.
    pub contract: String,
    /// One library.
    pub first: PathBuf,
    /// Its digest of the contract.
    pub ours: Digest,
    /// The other.
    pub second: PathBuf,
    /// Its digest.
    pub theirs: Digest,
}

/// Processes with their domains, ready to run.
#[allow(missing_debug_implementations)]
pub struct SipSupervisor {
    domains: BTreeMap<String, Box<dyn SipDomain>>,
    processes: Vec<Supervised>,
    stop: Stop,
    watch: Watch,
    deputy: Arc<Deputy>,
}

/// Looks at a supervisor's processes, from any thread.
#[derive(Clone, Debug)]
pub struct Watch {
    deputy: Arc<Deputy>,
    began: Instant,
    standings: Arc<Mutex<Vec<Standing>>>,
}

impl Watch {
    /// What there is now. Workers are asked, so it may take a moment.
    pub fn view(&self) -> RunView {
        let standings = self.lock().clone();
        match self.deputy.enter() {
            Ok(host) => view::look(&host, self.began, &standings),
            // A worker would wait for itself.
            Err(HostError::Worker | HostError::Begun) => RunView::default(),
        }
    }

    /// Who may touch which memory now. As for a view.
    ///
    /// # Errors
    /// See [`PictureError`].
    pub fn map(&self) -> Result<mullion_picture::SupervisorState, PictureError> {
        let standings = self.lock().clone();
        Ok(map::state(&self.deputy.enter()?, &standings)?)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Why there is no map.
#[derive(Debug, Error)]
pub enum PictureError {
    /// A process was made or ended while it was looked at, so that its memory seemed to be two processes'.
    #[error(transparent)]
    Moved(#[from] mullion_supervisor::Error),
    /// A worker would wait for itself.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Ends a supervisor's processes, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    waiter: AtomicU64,
}

impl Stop {
    /// All processes are killed, and none is restarted.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        wait::unpark(Waiter::from_bits(self.0.waiter.load(Ordering::SeqCst)));
    }

    fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }
}

struct Supervised {
    process: Arc<Process>,
    policy: Policy,
    state: State,
    began: Instant,
    /// Short lives that ended just before.
    failures: u32,
    restarts: u64,
    last: Option<Exit>,
}

enum State {
    /// It lives.
    Running(Box<dyn RunningDomain>),
    /// It is to live again at that time.
    Until(Instant),
    /// It does not live again.
    Over,
}

/// How a process stood at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunOutcome {
    /// Its name.
    pub name: String,
    /// How its last life ended; nothing if none began.
    pub exit: Option<Exit>,
    /// How often it was started again.
    pub restarts: u64,
}

impl SipSupervisor {
    /// Judges everything that the configuration names, and starts nothing. What runs later runs by the power of `host`.
    ///
    /// # Errors
    /// See [`RunSetupError`].
    pub fn new(host: &Host, configuration: &Configuration) -> Result<SipSupervisor, RunSetupError> {
        let mut groups = BTreeMap::<&str, Vec<Arc<Process>>>::new();
        let mut processes = Vec::new();
        let mut images = HashMap::<_, Arc<SipImage>>::new();
        for (name, config) in &configuration.processes {
            let pinned = config.sha256.map(|pinned| pinned.0);
            // Processes of one library share what was read of it.
            let image = match images.entry((&config.library, pinned)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => {
                    let read = SipImage::read(&config.library, pinned);
                    let image = read.map_err(|error| RunSetupError::Image {
                        process: name.clone(),
                        error,
                    })?;
                    new.insert(Arc::new(image)).clone()
                }
            };
            let process = Arc::new(Process {
                name: name.clone().leak(),
                config: config.clone(),
                image,
            });
            let group = groups.entry(config.domain()).or_default();
            group.push(process.clone());
            processes.push(Supervised {
                policy: config.policy(),
                process,
                state: State::Over,
                began: Instant::now(),
                failures: 0,
                restarts: 0,
                last: None,
            });
        }
        compare_contracts(&processes)?;
        let mut domains = BTreeMap::new();
        for (name, group) in groups {
            let config = configuration.domains.get(name).copied().unwrap_or_default();
            let domain = domain::launch(name, &config, &group, configuration.workers)?;
            domains.insert(name.to_owned(), domain);
        }
        host.start(Start {
            workers: configuration.workers,
        })?;
        for (name, config) in &configuration.services {
            services::offer(name, config)?;
        }
        let deputy = Arc::new(host.deputy());
        Ok(SipSupervisor {
            domains,
            processes,
            stop: Stop::default(),
            deputy: deputy.clone(),
            watch: Watch {
                deputy,
                began: Instant::now(),
                standings: Arc::default(),
            },
        })
    }

    /// What ends it from elsewhere.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// What looks at it from elsewhere.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Runs everything until nothing lives or is to live again.
    pub fn run(mut self) -> Vec<RunOutcome> {
        // Without it, which is so on a worker alone, no life begins: each says so.
        let _host = self.deputy.enter();
        let waiter = wait::current();
        self.stop.0.waiter.store(waiter.to_bits(), Ordering::SeqCst);
        for one in &mut self.processes {
            one.begin(&mut self.domains);
        }
        let mut stopping = false;
        loop {
            let mut acted = false;
            if self.stop.is_asked() && !stopping {
                (stopping, acted) = (true, true);
                tracing::info!("ending every process");
                self.processes.iter_mut().for_each(Supervised::give_up);
                self.domains.values_mut().for_each(|domain| domain.stop());
            }
            for one in &mut self.processes {
                acted |= one.turn(&mut self.domains, waiter, stopping);
            }
            *self.watch.lock() = self.processes.iter().map(Supervised::standing).collect();
            if self
                .processes
                .iter()
                .all(|one| matches!(one.state, State::Over))
            {
                break;
            }
            // To begin a life waits within, and may have been woken in our place: what we wait for is looked at again.
            if acted {
                continue;
            }
            match self.next_restart() {
                Some(time) => wait::park_until(time),
                None => wait::park(),
            }
        }
        let outcome = |one: Supervised| RunOutcome {
            name: one.process.name.to_owned(),
            exit: one.last,
            restarts: one.restarts,
        };
        self.processes.into_iter().map(outcome).collect()
    }

    fn next_restart(&self) -> Option<Instant> {
        let times = self.processes.iter().filter_map(|one| match one.state {
            State::Until(time) => Some(time),
            _ => None,
        });
        times.min()
    }
}

impl Supervised {
    fn begin(&mut self, domains: &mut BTreeMap<String, Box<dyn SipDomain>>) {
        let (process, domain) = (self.process.name, self.process.config.domain().to_owned());
        self.began = Instant::now();
        let started = match domains.get_mut(&domain) {
            Some(domain) => domain.start(&self.process),
            None => Err(DomainStartError::Unknown),
        };
        match started {
            Ok(running) => {
                tracing::info!(process, domain, "started");
                self.state = State::Running(running);
            }
            Err(error) => {
                tracing::error!(process, domain, %error, "could not be started");
                self.after(Cause::Abort.into());
            }
        }
    }

    /// Looks how it is, and does what is due: whether anything was.
    fn turn(
        &mut self,
        domains: &mut BTreeMap<String, Box<dyn SipDomain>>,
        waiter: Waiter,
        stopping: bool,
    ) -> bool {
        let mut acted = false;
        if matches!(self.state, State::Until(time) if time <= Instant::now()) {
            acted = true;
            self.restarts += 1;
            self.begin(domains);
        }
        // A life that has just begun is looked at too, so that somebody is woken by its end.
        let State::Running(running) = &self.state else {
            return acted;
        };
        let Some(exit) = running.look(waiter) else {
            return acted;
        };
        self.report(&exit);
        self.after(exit);
        if stopping {
            self.state = State::Over;
        }
        true
    }

    fn standing(&self) -> Standing {
        Standing {
            name: self.process.name,
            domain: self.process.config.domain().to_owned(),
            state: match self.state {
                State::Running(_) => view::RUNNING,
                State::Until(_) => "waiting",
                State::Over => "over",
            },
            restarts: self.restarts,
            limits: self.process.config.limits.over(self.process.image.limits()),
            place: match &self.state {
                State::Running(running) => running.place(),
                _ => None,
            },
            last_end: self.last.map(|exit| match self.words(&exit) {
                None => format!("{:?}", exit.cause),
                Some(words) => format!("{:?}: {words}", exit.cause),
            }),
        }
    }

    fn report(&self, exit: &Exit) {
        let (process, cause) = (self.process.name, exit.cause);
        let lived = self.began.elapsed();
        if exit.cause.is_success() {
            tracing::info!(process, ?cause, ?lived, "ended");
        } else {
            let why = self.words(exit);
            tracing::warn!(process, ?cause, why, ?lived, "ended");
        }
    }

    /// Why a life ended: what the process said, which may be anything that it likes, or the limit that it met.
    fn words(&self, exit: &Exit) -> Option<String> {
        let limits = self.process.config.limits.over(self.process.image.limits());
        let said = exit.message.as_str();
        match exit.cause {
            _ if !said.is_empty() => Some(shown(said)),
            Cause::Memory => Some(format!(
                "its heap wanted more than {} KiB (limits.memory)",
                limits.memory >> 10
            )),
            Cause::Slice => Some(format!(
                "ran for {:?} without letting others run (limits.slice)",
                limits.slice
            )),
            Cause::Stack => Some("the end of a stack".to_owned()),
            _ => None,
        }
    }

    /// A life has ended: the policy says whether there is another.
    fn after(&mut self, exit: Exit) {
        self.last = Some(exit);
        self.failures = if self.policy.is_long(self.began.elapsed()) {
            1
        } else {
            self.failures.saturating_add(1)
        };
        self.state = match self.policy.pause(&exit, self.failures) {
            Some(pause) => State::Until(Instant::now() + pause.max(LEAST)),
            None => State::Over,
        };
    }

    /// It is to end, and not to live again.
    fn give_up(&mut self) {
        match &self.state {
            State::Running(running) => running.kill(),
            State::Until(_) => self.state = State::Over,
            State::Over => {}
        }
    }
}

/// Between two lives at least, so that a process that ends at once does not keep the supervisor from all others.
const LEAST: Duration = Duration::from_micros(10);

/// A text in one line that does nothing to a terminal.
fn shown(text: &str) -> String {
    let one = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.into(),
    };
    text.chars().map(one).collect()
}

/// Every two libraries that speak a contract of the same name mean the same.
fn compare_contracts(processes: &[Supervised]) -> Result<(), RunSetupError> {
    let mut known = BTreeMap::<&str, (&Process, Digest)>::new();
    for one in processes {
        for contract in one.process.image.contracts() {
            let entry = known.entry(&contract.name);
            let (first, ours) = *entry.or_insert((&one.process, contract.digest));
            if ours != contract.digest {
                return Err(RunSetupError::Contracts(Box::new(Disagreement {
                    contract: contract.name.clone(),
                    first: first.config.library.clone(),
                    ours,
                    second: one.process.config.library.clone(),
                    theirs: contract.digest,
                })));
            }
        }
    }
    Ok(())
}

/// Whether all went well: each process's last life ended as it wanted to.
pub fn succeeded(outcomes: &[RunOutcome]) -> bool {
    let well = |exit: Exit| exit.cause.is_success();
    outcomes
        .iter()
        .all(|outcome| outcome.exit.is_some_and(well))
}
