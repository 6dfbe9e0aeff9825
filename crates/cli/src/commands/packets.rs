//! `mullion packets`: a forwarder with users' modules, and what it is asked while it runs.

use crate::output::{self, outln, sayln};
use anyhow::{Context, bail};
use mullion_host::Host;
use mullion_packets::config::{Config, Description};
use mullion_packets::control::{self, Answer, ModuleStatus, Question, Status};
use mullion_packets::forward::Forwarder;
use mullion_packets::ring::Port;
use mullion_packets::run;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Forward packets between two interfaces through users' modules, each behind its wall.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Forward until SIGINT or SIGTERM. Needs the right to raw sockets (CAP_NET_RAW), and nothing else.
    Run(RunArgs),
    /// Take the frames of a capture through the modules, into another capture.
    File(FileArgs),
    /// Show what runs: ports, modules, time for each frame, refusals.
    Status(StatusArgs),
    /// Load the modules of a file into a running forwarder, behind those that are there.
    Load(LoadArgs),
    /// Take a module out.
    Unload(NameArgs),
    /// Print what a module has reported since the last time.
    Reports(NameArgs),
}

#[derive(clap::Args)]
struct RunArgs {
    /// Two ports, and modules (docs/packets.md).
    config: PathBuf,
    /// Where to listen for questions.
    #[arg(long, value_name = "SOCKET", env = "MULLION_PACKETS")]
    control: Option<PathBuf>,
}

#[derive(clap::Args)]
struct FileArgs {
    /// Modules; ports are not needed.
    config: PathBuf,
    /// A capture of Ethernet, as tcpdump -w writes.
    from: PathBuf,
    /// What comes out.
    to: PathBuf,
}

#[derive(clap::Args)]
struct ControlArgs {
    /// Where the forwarder listens.
    #[arg(long = "to", value_name = "SOCKET", env = "MULLION_PACKETS")]
    control: PathBuf,
}

#[derive(clap::Args)]
struct StatusArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Show it again each second, until interrupted.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

#[derive(clap::Args)]
struct LoadArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// A file with modules.
    config: PathBuf,
    /// In the place of modules of the same names.
    #[arg(long)]
    replace: bool,
}

#[derive(clap::Args)]
struct NameArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// The module's name.
    name: String,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => args.run()?,
            Command::File(args) => args.run()?,
            Command::Status(args) => args.run()?,
            Command::Load(args) => args.run()?,
            Command::Unload(args) => {
                done(args.control.ask(&Question::Unload { name: args.name })?)?
            }
            Command::Reports(args) => {
                match args.control.ask(&Question::Reports { name: args.name })? {
                    Answer::Reports(reports) => output::print(&printable(&reports.concat()))?,
                    other => done(other)?,
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ControlArgs {
    fn ask(&self, question: &Question) -> anyhow::Result<Answer> {
        control::ask(&self.control, question).with_context(|| {
            let path = self.control.display();
            format!("{path}: no forwarder answers there (mullion packets run --control {path})")
        })
    }
}

fn done(answer: Answer) -> anyhow::Result<()> {
    match answer {
        Answer::Refused(why) => bail!("{}", printable(&why)),
        _ => Ok(()),
    }
}

/// Without control characters but for the ends of lines: modules wrote it.
fn printable(text: &str) -> String {
    let show = |c: char| match c.is_control() && c != '\n' {
        true => '\u{fffd}',
        false => c,
    };
    text.chars().map(show).collect()
}

fn forwarder(config: &Path) -> anyhow::Result<(Config, Forwarder)> {
    let config = Config::read(config)?;
    let forwarder = Forwarder::new(Host::new(), &config.modules)?;
    Ok((config, forwarder))
}

impl RunArgs {
    fn run(self) -> anyhow::Result<()> {
        let (config, forwarder) = forwarder(&self.config)?;
        let [left, right] = config.ports.as_slice() else {
            bail!(
                "{}: `ports` names two interfaces, as ports = [\"veth0\", \"veth1\"]",
                self.config.display()
            );
        };
        let open = |name: &String| {
            Port::open(name).with_context(|| {
                format!("interface {name} (raw sockets need root, or setcap cap_net_raw+ep)")
            })
        };
        let ports = [open(left)?, open(right)?];
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        let listener = match &self.control {
            Some(path) => Some(control::listen(path).with_context(|| path.display().to_string())?),
            None => None,
        };
        sayln!(
            "mullion packets: forwarding between {left} and {right}, {} modules",
            config.modules.len()
        );
        let result = std::thread::scope(|scope| {
            if let Some(listener) = &listener {
                scope.spawn(|| control::serve(listener, &forwarder, &stop));
            }
            run::live(&forwarder, ports, &stop)
        });
        if let Some(path) = &self.control {
            let _ = std::fs::remove_file(path);
        }
        print(&control::status(&forwarder))?;
        Ok(result?)
    }
}

impl FileArgs {
    fn run(self) -> anyhow::Result<()> {
        let (_, forwarder) = forwarder(&self.config)?;
        let from = File::open(&self.from).with_context(|| self.from.display().to_string())?;
        let to = File::create(&self.to).with_context(|| self.to.display().to_string())?;
        run::file(&forwarder, BufReader::new(from), BufWriter::new(to))
            .with_context(|| self.from.display().to_string())?;
        for module in forwarder.modules().iter() {
            for report in module.take_reports() {
                output::print(&printable(&String::from_utf8_lossy(&report)))?;
            }
        }
        print(&control::status(&forwarder))?;
        Ok(())
    }
}

impl StatusArgs {
    fn run(self) -> anyhow::Result<()> {
        loop {
            let Answer::Status(status) = self.control.ask(&Question::Status)? else {
                bail!("the forwarder answers something else");
            };
            if self.json {
                outln!("{}", serde_json::to_string_pretty(&status)?)?;
                return Ok(());
            }
            if self.watch {
                output::print("\x1b[H\x1b[J")?;
            }
            print(&status)?;
            if !self.watch {
                return Ok(());
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

impl LoadArgs {
    fn run(self) -> anyhow::Result<()> {
        let config = Config::read(&self.config)?;
        for module in config.modules {
            // The forwarder may run elsewhere in the file system.
            let image = std::path::absolute(&module.image)?;
            let module = Description { image, ..module };
            let name = module.name.clone();
            let replace = self.replace;
            done(self.control.ask(&Question::Load { module, replace })?).with_context(|| name)?;
        }
        Ok(())
    }
}

fn print(status: &Status) -> anyhow::Result<()> {
    outln!("port  received      bytes       sent    dropped     unsent       lost")?;
    for (number, port) in status.ports.iter().enumerate() {
        outln!(
            "{number:<4} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
            port.received,
            port.received_bytes,
            port.sent,
            port.dropped,
            port.unsent,
            port.lost
        )?;
    }
    if status.modules.is_empty() {
        return Ok(());
    }
    outln!("\nmodule              frames    changed    dropped      added    refused   ns each")?;
    for module in &status.modules {
        print_module(module)?;
    }
    Ok(())
}

fn print_module(module: &ModuleStatus) -> anyhow::Result<()> {
    outln!(
        "{:<16} {:>9} {:>10} {:>10} {:>10} {:>10} {:>9}",
        module.module.name,
        module.frames,
        module.changed,
        module.dropped,
        module.added,
        module.refused,
        module.nanoseconds
    )?;
    if let Some(why) = &module.stopped {
        outln!(
            "    taken out: {}",
            printable(why).trim_end().replace('\n', "\n    ")
        )?;
    }
    Ok(())
}
