//! `mullion loader`: the code loader as a service, and what clients ask of it besides loading.

use super::admission::AdmissionArgs;
use super::client::{ClientArgs, done};
use crate::output::{file, outln, sayln};
use crate::units;
use anyhow::{Context as _, bail};
use mullion_loader::{Authoriser, Imports};
use mullion_metrics::{Metrics, prometheus};
use mullion_runtime::{CallEnd, Claimed, Clock, GateCall, HostFunction};
use mullion_service::wire::{Call, List, Operation, Restart, Unload};
use mullion_service::{Address, Gauge, Rules, Server, ServiceListener, Settings, Stopper};
use mullion_system::{Grants, Receiver, Streams, System};
use mullion_trust::challenge::FRAME;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Run the code loader as a service; list, call, restart and unload modules in it.
///
/// The code loader as a service: clients prove a key, and load, list, call, restart and unload extensions
/// with what the policy and their credentials give (docs/loader-protocol.md, docs/operating.md).
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Serve until SIGTERM or SIGINT; at SIGHUP read policy and credentials again.
    Serve(Box<Serve>),
    /// List the modules that one has loaded.
    List {
        #[command(flatten)]
        client: ClientArgs,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Unload a module.
    Unload {
        #[command(flatten)]
        client: ClientArgs,
        /// Its number.
        module: u64,
    },
    /// Give a module the state that it had when it was loaded; one that faulted takes calls again.
    Restart {
        #[command(flatten)]
        client: ClientArgs,
        /// Its number.
        module: u64,
    },
    /// Call a function of a module, and print what it returns.
    Call {
        #[command(flatten)]
        client: ClientArgs,
        /// A file whose bytes are handed over: their address and length follow the other
        /// arguments.
        #[arg(long, value_name = "FILE")]
        input: Option<PathBuf>,
        /// Where to write those bytes as they are after the call.
        #[arg(long, value_name = "FILE", requires = "input")]
        output: Option<PathBuf>,
        /// The module's number.
        module: u64,
        /// The export.
        export: String,
        /// Integers, as 7, -7 or 0x7.
        #[arg(value_parser = integer, allow_hyphen_values = true)]
        arguments: Vec<u64>,
    },
}

#[derive(clap::Args)]
#[command(after_help = "Modules may import, as far as the policy lets them:
  __mullion_system        the system interface with no grants: memory, and output as host_log has it
  host_log(text, length)  writes a line to the loader's standard error
  host_now()              milliseconds since 1970")]
struct Serve {
    /// Listen on a Unix socket. Put it into a directory that only the loader's user can write.
    #[arg(long, value_name = "PATH", required_unless_present = "listen")]
    socket: Option<PathBuf>,
    /// Listen on TCP, on a loopback address like 127.0.0.1:7000.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<std::net::SocketAddr>,
    #[command(flatten)]
    admission: AdmissionArgs,
    /// Let everyone load who proves any key, where no policy is configured.
    #[arg(long)]
    trust_everyone: bool,
    /// Connections at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 2048)]
    max_connections: usize,
    /// Size of an image with its record and credentials, at most 64M.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = frame)]
    max_image: u64,
    /// Memory for one module's code, data and heap, like 64M.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::size)]
    max_memory: u64,
    /// Memory for all modules together, like 3G.
    #[arg(long, value_name = "SIZE", default_value = "3G", value_parser = units::size)]
    max_total_memory: u64,
    /// Time of one call, like 1s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    max_time: Duration,
    /// Modules of one key.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    max_modules: usize,
    /// Write what the modules that are loaded have done to this file, now and then and at the end, as
    /// text for Prometheus: calls, faults by kind, memory, limits that they hit, time. The file is
    /// always whole.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// How often it is written.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time, requires = "metrics")]
    metrics_every: Duration,
    /// How long a client may be silent, within a message and between two.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::time)]
    patience: Duration,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Serve(serve) => serve.run(),
            Action::List { client, json } => list(&client, json),
            Action::Unload { client, module } => {
                let unload = Unload { module };
                let answer = client.ask(Operation::Unload, &unload, &[])?;
                done(&answer)?;
                Ok(ExitCode::SUCCESS)
            }
            Action::Restart { client, module } => {
                let answer = client.ask(Operation::Restart, &Restart { module }, &[])?;
                done(&answer)?;
                Ok(ExitCode::SUCCESS)
            }
            Action::Call {
                client,
                input,
                output,
                module,
                export,
                arguments,
            } => {
                let read = |path: PathBuf| {
                    std::fs::read(&path).with_context(|| path.display().to_string())
                };
                let bytes = input.map(read).transpose()?.unwrap_or_default();
                let call = Call {
                    module,
                    export,
                    arguments,
                };
                let answer = client.ask(Operation::Call, &call, &bytes)?;
                done(&answer)?;
                if let Some(path) = output {
                    file(&path, &answer.bytes)?;
                }
                outln!("{}", answer.object["result"])?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn list(client: &ClientArgs, json: bool) -> anyhow::Result<ExitCode> {
    let answer = client.ask(Operation::List, &List {}, &[])?;
    done(&answer)?;
    if json {
        outln!("{}", answer.object)?;
        return Ok(ExitCode::SUCCESS);
    }
    for module in answer.object["modules"].as_array().into_iter().flatten() {
        let text = |name: &str| {
            module[name]
                .as_str()
                .unwrap_or("-")
                .escape_debug()
                .to_string()
        };
        let exports = module["exports"].as_array().into_iter().flatten();
        let exports: Vec<_> = exports.filter_map(|name| name.as_str()).collect();
        let ended = match (&module["ended"], &module["restarting"]) {
            (serde_json::Value::Bool(true), _) => "\tended",
            (_, serde_json::Value::Bool(true)) => "\trestarting",
            _ => "",
        };
        outln!(
            "{}\t{}\t{}\t{}{ended}",
            module["module"],
            text("name"),
            text("type"),
            exports.join(" ")
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Serve {
    fn run(self) -> anyhow::Result<ExitCode> {
        let authoriser = self.authoriser(false)?;
        let strict = authoriser.policy().is_some();
        let mut listeners = Vec::new();
        if let Some(path) = &self.socket {
            listeners.push(ServiceListener::bind(&Address::Unix(path.clone()))?);
        }
        if let Some(address) = self.listen {
            listeners.push(ServiceListener::bind(&Address::Tcp(address))?);
        }
        more_descriptors();
        let defaults = Settings::default();
        let settings = Settings {
            connections: self.max_connections.max(1),
            frame: usize::try_from(self.max_image)?,
            transfer: self.patience,
            idle: self.patience,
            hello: self.patience.min(defaults.hello),
            modules_of_one: self.max_modules,
            memory: self.max_total_memory,
            limits: mullion_runtime::Limits {
                memory: self.max_memory,
                time: Some(self.max_time),
                measured: self.metrics.is_some().then_some(Clock::Wall),
                ..defaults.limits.clone()
            },
            ..defaults
        };
        let addresses: Vec<_> = listeners
            .iter()
            .map(|one| one.address().to_string())
            .collect();
        let server = Server::new(listeners, authoriser, Box::new(imports), settings)?;
        let server = server.observed_by(Box::new(|module, text| {
            sayln!("mullion: module {module}: {}", text.escape_debug());
        }));
        let (stopper, rules) = (server.stopper(), server.rules());
        let gauge = server.gauge();
        let metrics = self.metrics.clone().map(|file| (file, self.metrics_every));
        let metrics = metrics
            .map(|(file, every)| Written::begin(gauge, file, every))
            .transpose()?;
        // A log that may grow no more (`ulimit -f`) is an error that is reported: by default, the signal ends the
        // process.
        let _too_large = signal_hook::flag::register(SIGXFSZ, Arc::default());
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || self.obey(signals, &stopper, &rules, strict))?;
        sayln!("mullion: listening on {}", addresses.join(" and "));
        let served = server.run();
        drop(metrics);
        served?;
        Ok(ExitCode::SUCCESS)
    }

    /// Until the loader is to stop. `strict`: a policy is in force.
    fn obey(&self, mut signals: Signals, stopper: &Stopper, rules: &Rules, mut strict: bool) {
        for signal in signals.forever() {
            if signal != SIGHUP {
                sayln!("mullion: stopping");
                return stopper.stop();
            }
            match self.authoriser(strict) {
                Ok(authoriser) => {
                    strict = authoriser.policy().is_some();
                    rules.replace(authoriser);
                    sayln!("mullion: the policy was read again, and holds from now on");
                }
                Err(error) => {
                    sayln!("mullion: the policy is not taken, and the old one stays: {error:#}");
                }
            }
        }
    }

    /// A loader that had a policy is not left without one because its file has gone.
    fn authoriser(&self, strict: bool) -> anyhow::Result<Authoriser> {
        let authoriser = self.admission.authoriser()?;
        if authoriser.policy().is_none() {
            if strict {
                bail!("there is no policy any more");
            }
            if !self.trust_everyone {
                bail!(
                    "a loader needs a policy (--policy FILE); or --trust-everyone, so that every client may load"
                );
            }
            sayln!("mullion: note: no policy is configured, so everyone is trusted");
        }
        Ok(authoriser)
    }
}

/// A thread that writes the figures of modules to a file; once more when this is dropped.
struct Written {
    /// Tells it to end, by going.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Written {
    fn begin(gauge: Gauge, file: PathBuf, every: Duration) -> anyhow::Result<Self> {
        // A file that cannot be written now is the operator's mistake, so the command says it at once.
        write_figures(&gauge, &file)?;
        let (end, ended) = channel();
        let thread = std::thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || {
            let mut said = false;
            loop {
                let told = ended.recv_timeout(every);
                let written = write_figures(&gauge, &file);
                if let (Err(error), false) = (&written, said) {
                    sayln!("mullion: the figures of modules are not written: {error:#}");
                }
                said = written.is_err();
                if told != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn write_figures(gauge: &Gauge, place: &Path) -> anyhow::Result<()> {
    let all = gauge.read().into_iter().map(|figures| Metrics {
        domain: format!("module {}", figures.module),
        image: figures.name,
        number: figures.domain,
        counts: figures.counts,
    });
    file(place, prometheus(&all.collect::<Vec<_>>()))
}

/// A connection is a descriptor, and the usual limit is 1024.
fn more_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // The loader then has room for fewer clients, and makes it by closing old connections.
    let _refused = setrlimit(Resource::Nofile, raised);
}

/// What a module is offered.
fn imports(module: u64) -> Imports {
    let log: HostFunction = Arc::new(move |caller| log(module, caller));
    let now: HostFunction = Arc::new(|_| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(since.map_or(0, |since| since.as_millis() as u64))
    });
    let taken: Receiver = Arc::new(move |_, bytes| {
        line(module, bytes);
        Ok(())
    });
    let grants = Grants {
        streams: Streams::Taken(taken),
        ..Grants::default()
    };
    Imports::new()
        .with("__mullion_system", System::new(grants).into_import())
        .with("host_log", log)
        .with("host_now", now)
}

/// Bytes of a module's line that are written.
const LINE: u64 = 1024;

fn log(module: u64, caller: &mut GateCall<'_>) -> Result<u64, CallEnd> {
    let [text, length, ..] = caller.integers();
    let piece = caller.memory().piece(Claimed(text), length.min(LINE));
    let mut bytes = vec![0; length.min(LINE) as usize];
    if piece.and_then(|piece| piece.read(&mut bytes)).is_err() {
        return Ok(u64::MAX);
    }
    line(module, &bytes);
    Ok(0)
}

/// What a module says, on standard error, fit for a terminal.
fn line(module: u64, bytes: &[u8]) {
    for text in String::from_utf8_lossy(bytes).lines() {
        let text: String = text.chars().take(LINE as usize).collect();
        let _unseen = writeln!(
            std::io::stderr(),
            "module {module}: {}",
            text.escape_debug()
        );
    }
}

/// A size that a message can have.
fn frame(text: &str) -> Result<u64, String> {
    match units::bytes(text)? {
        size if size <= FRAME as u64 => Ok(size),
        _ => Err(format!("a message has at most {FRAME} bytes (64M)")),
    }
}

fn integer(text: &str) -> Result<u64, String> {
    let parsed = match (text.strip_prefix("0x"), text.strip_prefix('-')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (_, Some(_)) => text.parse::<i64>().ok().map(|number| number as u64),
        _ => text.parse().ok(),
    };
    parsed.ok_or_else(|| "an integer of 64 bits, as 7, -7 or 0x7".to_owned())
}
