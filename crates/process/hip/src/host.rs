//! Domains from the host's side: started, listened to, and buried.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use mullion_sip::process::{Cause, Child, Exit, Options, Program, Rights, SpawnError, spawn};
use mullion_sip::wait;
use mullion_sip_hosting::common_memory::Sharing;
use mullion_sip_hosting::end_as;
use mullion_sip_hosting::{Host, enter_kernel};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use thiserror::Error;

use crate::child::ARGUMENT;
use crate::control::{Control, DESCRIPTORS};
use crate::decide;
use crate::endpoints::{self, Handed, Peer};
use crate::files;
use crate::lives::{Idle, Seen};
use crate::memory::MemorySeen;
use crate::message::{Sharer, ToDomain, ToHost, exit, exit_of};
use crate::output::Pipes;
use crate::registry::{self, Domain};
use crate::reports::Reports;

/// A domain to be.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name, for people.
    pub name: String,
    /// What it is to run: whatever the program that [`enter`](crate::enter)s makes of it.
    pub configuration: String,
    /// Files that it gets, at most [`FILES`].
    pub files: Vec<Arc<OwnedFd>>,
    /// Workers of its kernel.
    pub workers: u32,
    /// On which of the processors that the host may use the first of them is, and the others on those that follow. By
    /// default domains are spread over all.
    pub processor: Option<u32>,
    /// Whether it shares memory with all other domains that do so in the same way. The host is one of them, if the
    /// first domain that shared did so with it. Large vectors of plain values then go between them without a copy.
    pub share: Option<Sharing>,
    /// Which names its processes together may bind and look up.
    pub rights: Rights,
    /// Where its standard output and error output go.
    pub output: Output,
    /// The program, if it is not this one.
    pub program: Option<PathBuf>,
}

/// Files that a domain can be given.
pub const FILES: usize = DESCRIPTORS - 2;

/// Where the output of a domain goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Output {
    /// Where the host's goes: the host reads it from pipes and passes it on, [`OUTPUT_RATE`](crate::OUTPUT_RATE) bytes a
    /// second at most. The domain has no file of the host's.
    #[default]
    Inherited,
    /// Nowhere.
    Nowhere,
}

/// Why there is no new domain.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The system refused a process, a socket or a thread.
    #[error("the system refused what a domain needs")]
    System(#[from] io::Error),
    /// It was to be given more than [`FILES`].
    #[error("a domain is given {FILES} files at most, not {0}")]
    Files(usize),
    /// The calling thread has no [`Host`].
    #[error("the calling thread has not the power of the host: have a Deputy enter it")]
    NoHost,
    /// No process of the host stands for it.
    #[error("no process can stand for the domain")]
    Stand(#[from] SpawnError),
    /// Whoever decides about domains refuses ([`decided_by`](crate::decided_by)).
    #[error("whoever decides about this host's domains refuses")]
    Refused,
    /// It could not begin, and says why.
    #[error("the domain could not begin: {0}")]
    Failed(String),
    /// It ended before it began.
    #[error("the domain ended before it began: {0:?}")]
    Ended(Exit),
}

/// What happens in domains.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A process has ended, by its name.
    Ended(String, Exit),
    /// A channel was ended by its bridge: its contract, the peer, and why.
    Fault(String, String, String),
    /// So many faults of a domain were not told, beyond [`REPORTS`](crate::REPORTS) in a second. They are counted when the next
    /// one is told, or the domain has ended.
    LeftOut(u64),
    /// A domain has sent what is no message, and is ended.
    Malformed(String),
    /// Its sandbox is closed, and its processes begin. Without Landlock, the system call filter alone refuses files.
    Ready {
        /// Whether this kernel has Landlock.
        landlock: bool,
    },
}

/// Told of what happens, with the domain's name.
pub type Listener = fn(domain: &str, notice: &Notice);

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` told of what happens in domains; the first one stays. Without one, faults go to the
/// standard error output.
pub fn on_notice(listener: Listener) {
    let _ = LISTENER.set(listener);
}

fn notice(domain: &Domain, notice: &Notice) {
    match (LISTENER.get(), notice) {
        (Some(listener), notice) => listener(&domain.name, notice),
        (None, Notice::Ended(..) | Notice::Ready { .. }) => {}
        (None, notice) => {
            let _ = writeln!(
                std::io::stderr(),
                "mullion: domain {}: {notice:?}",
                domain.name
            );
        }
    }
}

fn left_out(domain: &Domain, reports: u64) {
    if reports > 0 {
        notice(domain, &Notice::LeftOut(reports));
    }
}

/// Starts a domain, waits until its programs are loaded and its sandbox is closed, and gives what stands for
/// it. The calling thread has a [`Host`], and [`Host::start`] has been called.
///
/// # Errors
/// The system refused something, or the domain could not begin.
pub fn launch(how: &Launch) -> Result<Child, LaunchError> {
    launch_as(how, true).map(|(child, _)| child)
}

/// As [`launch`], but no member begins before it is told to, and the domain does not end with the last of them.
///
/// # Errors
/// As [`launch`].
pub fn launch_idle(how: &Launch) -> Result<Idle, LaunchError> {
    launch_as(how, false).map(|(stand, domain)| Idle { stand, domain })
}

fn launch_as(how: &Launch, together: bool) -> Result<(Child, Arc<Domain>), LaunchError> {
    if how.files.len() > FILES {
        return Err(LaunchError::Files(how.files.len()));
    }
    let host = Host::here().ok_or(LaunchError::NoHost)?;
    host.on_end(registry::fell);
    let deputy = host.deputy();
    endpoints::serve()?;
    let (control, theirs) = Control::pair()?;
    let added = registry::add(&how.name, &how.rights, how.share, control);
    let (domain, common_memory) = added.map_err(|error| match decide::is_refusal(&error) {
        true => LaunchError::Refused,
        false => error.into(),
    })?;
    let (began, begins) = channel();
    let (how, id) = (how.clone(), domain.id);
    let lives = domain.clone();
    thread::Builder::new()
        .name(format!("domain {}", how.name))
        .spawn(move || {
            // It binds names for the domain. No worker runs it, so it is given the power.
            let _power = deputy.enter();
            live(&lives, &how, together, common_memory, theirs, &began);
        })?;
    let begun = begins
        .recv()
        .unwrap_or_else(|_| Err(LaunchError::Failed("its thread has ended".into())));
    let stood = begun.and_then(|()| Ok(spawn(PROGRAM, id, &Options::default())?));
    match &stood {
        Ok(child) => registry::stand(id, child.owner()),
        Err(_) => registry::forget(id),
    }
    stood.map(|child| (child, domain))
}

/// The process of the host that stands for a domain.
// SAFETY: it keeps nothing of its heap anywhere.
const PROGRAM: Program<u64> = unsafe { Program::new("domain", stand_for) };

fn stand_for(id: u64) {
    loop {
        let found = {
            // SAFETY: to look takes a lock for a moment; nothing in it parks, panics or runs code of others.
            let _whole = unsafe { enter_kernel() };
            registry::exit_of(id, wait::current())
        };
        match found {
            Some(exit) => end_as(exit),
            None => wait::park(),
        }
    }
}

/// What `launch` is told, once.
pub(crate) type Began = Sender<Result<(), LaunchError>>;

/// The thread of a domain. Linux ends the domain should it end.
fn live(
    domain: &Arc<Domain>,
    how: &Launch,
    together: bool,
    common_memory: Option<Arc<OwnedFd>>,
    theirs: OwnedFd,
    began: &Began,
) {
    let (mut process, output) = match start(domain, how, together, common_memory, theirs) {
        Ok(started) => started,
        Err(error) => {
            domain.gone(Cause::Abort.into());
            let _ = began.send(Err(error.into()));
            return;
        }
    };
    let mut heard = Heard::default();
    heard.listen(domain, began);
    // It has ended, or shut its socket: then it is ended.
    let _ = process.kill();
    let exit = match process.wait() {
        Ok(status) => heard.exit(status),
        Err(_) => Cause::Killed.into(),
    };
    // Whoever hears of the end has what was said before.
    let _ = output.map(JoinHandle::join);
    domain.gone(exit);
    // Nobody hears of it, if the domain has begun.
    let _ = began.send(Err(match heard.refusal {
        Some(reason) => LaunchError::Failed(reason),
        None => LaunchError::Ended(exit),
    }));
}

fn start(
    domain: &Domain,
    how: &Launch,
    together: bool,
    common_memory: Option<Arc<OwnedFd>>,
    theirs: OwnedFd,
) -> io::Result<(std::process::Child, Option<JoinHandle<()>>)> {
    let configuration = files::sealed("mullion-domain", how.configuration.as_bytes())?;
    let program = how.program.clone().unwrap_or("/proc/self/exe".into());
    let mut command = Command::new(program);
    command
        .arg0(format!("mullion-domain-{}", how.name))
        .arg(ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(theirs);
    let output = match how.output {
        Output::Inherited => Some(Pipes::of(&mut command)?),
        Output::Nowhere => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
            None
        }
    };
    let mut process = command.spawn()?;
    drop(command);
    // It is set once.
    let _ = domain.process.set(process.id());
    let begin = ToDomain::Begin {
        workers: how.workers,
        first: how
            .processor
            .unwrap_or_else(|| registry::next_processors(how.workers)),
        together,
        decided: decide::is_decided(),
        member: domain.member.map(Sharer::from),
    };
    let files = common_memory
        .iter()
        .chain(&how.files)
        .map(|file| file.as_fd());
    let files: Vec<_> = [configuration.as_fd()].into_iter().chain(files).collect();
    let output = match know(domain, &process, output) {
        Ok(output) => output,
        Err(error) => {
            process.kill()?;
            process.wait()?;
            return Err(error);
        }
    };
    // A program that has ended already hears nothing; its end is seen by who listens to it.
    let _ = domain.control.send(&begin, &files);
    Ok((process, output))
}

/// From now on its end is known, and what it says until then is passed on.
fn know(
    domain: &Domain,
    process: &std::process::Child,
    output: Option<Pipes>,
) -> io::Result<Option<JoinHandle<()>>> {
    let handle = pidfd_open(Pid::from_child(process), PidfdFlags::empty())?;
    let ends = handle.try_clone()?;
    let output = output.map(|pipes| pipes.pass_on(&domain.name, ends));
    registry::started(domain.id, handle);
    output.transpose()
}

/// What a domain has said that matters at its end.
#[derive(Default)]
pub(crate) struct Heard {
    /// The first failure of one of its processes.
    failure: Option<Exit>,
    /// Why it could not begin.
    refusal: Option<String>,
    reports: Reports,
}

impl Heard {
    /// Until there is nobody to listen to.
    pub(crate) fn listen(&mut self, domain: &Arc<Domain>, began: &Began) {
        self.listen_to(domain, began);
        left_out(domain, self.reports.rest());
    }

    fn listen_to(&mut self, domain: &Arc<Domain>, began: &Began) {
        loop {
            match domain.control.receive::<ToHost>(1) {
                Ok(None) => return,
                Ok(Some((message, files))) => {
                    // Who does not read answers is gone as far as the host is concerned.
                    if self.act(domain, message, &files, began).is_err() {
                        return;
                    }
                }
                Err(error) => return notice(domain, &Notice::Malformed(error.to_string())),
            }
        }
    }

    fn act(
        &mut self,
        domain: &Arc<Domain>,
        message: ToHost,
        files: &[OwnedFd],
        began: &Began,
    ) -> io::Result<()> {
        match message {
            ToHost::Ready { landlock } => {
                // Said twice, nobody hears it.
                if !domain.ready.swap(true, Ordering::AcqRel) {
                    notice(domain, &Notice::Ready { landlock });
                    let _ = began.send(Ok(()));
                }
            }
            ToHost::Bind {
                request,
                path,
                digest,
            } => domain.bind(request, &path, digest)?,
            ToHost::Unbind { path } => domain.unbind(&path),
            ToHost::Open {
                request,
                path,
                digest,
                side,
                bytes,
            } => domain.open(request, &path, digest, side, bytes)?,
            ToHost::Accepted { request, error } => domain.accepted(request, error),
            ToHost::Offer {
                over,
                line,
                ticket,
                passage,
                bytes,
                number,
                behind,
            } => {
                let peer = match behind {
                    Some((behind, line)) => Peer::Behind(behind, line),
                    None => Peer::Here(number),
                };
                let handed = Handed {
                    over,
                    line,
                    ticket,
                    passage,
                    bytes,
                    peer,
                };
                endpoints::offer(domain.id, &handed)?;
            }
            ToHost::Claimed { over } => endpoints::claimed(domain.id, over),
            ToHost::Refused { over } => endpoints::refused(domain.id, over, files)?,
            ToHost::Ended {
                life,
                name,
                cause,
                status,
                message,
            } => {
                let exit = exit_of(cause, status, &message);
                if life == 0 && !exit.cause.is_success() {
                    self.failure.get_or_insert(exit);
                }
                // Nobody has heard of other lives.
                if life == 0 || domain.lives.ended(life, exit) {
                    notice(domain, &Notice::Ended(name.to_string(), exit));
                }
            }
            ToHost::Fault {
                contract,
                peer,
                fault,
            } => {
                let told = self.reports.next(Instant::now());
                left_out(domain, told.left_out);
                if told.this {
                    let [contract, peer, fault] =
                        [contract, peer, fault].map(|text| text.to_string());
                    notice(domain, &Notice::Fault(contract, peer, fault));
                }
            }
            ToHost::Failed { reason } => self.refusal = Some(reason.to_string()),
            ToHost::Seen {
                request,
                processes,
                ends,
            } => {
                let seen = Seen {
                    processes: processes.to_vec(),
                    ends: ends.iter().map(Into::into).collect(),
                };
                domain.lives.seen(request, seen);
            }
            ToHost::Mapped {
                request,
                holders,
                pieces,
                lines,
                left_out,
            } => {
                let memory = MemorySeen::new(&holders, &pieces, &lines, left_out);
                domain.lives.mapped(request, memory);
            }
        }
        Ok(())
    }

    /// How a domain ended: by a signal, or as its processes did.
    fn exit(&self, status: ExitStatus) -> Exit {
        if let Some(signal) = status.signal() {
            return exit(cause_of(signal), &words_for(signal));
        }
        match (self.failure, status.code()) {
            (Some(failure), _) => failure,
            (None, Some(0)) => Cause::Returned.into(),
            (None, code) => Cause::Exited(code.unwrap_or(1) as u8).into(),
        }
    }
}

fn words_for(signal: i32) -> String {
    let refused = match signal == Signal::SYS.as_raw() {
        true => ": a system call that a domain may not make",
        false => "",
    };
    format!("signal {signal}{refused}")
}

fn cause_of(signal: i32) -> Cause {
    const FAULTS: [Signal; 6] = [
        Signal::SEGV,
        Signal::BUS,
        Signal::ILL,
        Signal::FPE,
        Signal::TRAP,
        // A system call that the sandbox refuses.
        Signal::SYS,
    ];
    match signal {
        _ if signal == Signal::ABORT.as_raw() => Cause::Abort,
        _ if FAULTS.iter().any(|fault| fault.as_raw() == signal) => Cause::Fault,
        _ => Cause::Killed,
    }
}
