//! `mullion run`: a program extension in a domain of its own.

pub(crate) mod closed;
mod debugger;
mod report;
mod trace;

use super::admission::{AdmissionArgs, explain};
use crate::image_file::ImageLimit;
use crate::output::{self, say};
use crate::units;
use anyhow::bail;
use mullion_host::{
    Cause, Clock, Error, Host, Limits, MAX_PROGRAM_THREADS, Mount, MountError, Program, ProgramEnd,
    ProgramRun,
};
use mullion_loader::{LoadError, NotAdmitted};
use mullion_metrics::prometheus;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Run a program extension in a domain.
///
/// The image is verified, loaded into a window of its own, and started: if a policy is configured,
/// only when it lets the keys that ask, and with no more than it grants. It has standard input,
/// output and error, memory, and its own end; every other power is granted by an option. What it
/// does wrong ends it alone, with a report on standard error.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  the program's own when it ends by itself; 124 when its time or its steps were up; 125 when it faulted
  (an abort is a fault); 141 when nobody read its output any more (SIGPIPE); 126 when the image was refused or could not be started;
  2 for bad usage.

Example:\n  mullion run --dir data::/data:ro --max-time 2s tool.mx /data/input.txt")]
pub(crate) struct Args {
    /// Grant a directory: HOST::GUEST, or HOST::GUEST:ro for reading only. Repeat for more.
    ///
    /// Links that lead out of it, devices, pipes and sockets are not granted with it, nor is what
    /// the host has mounted inside it (/proc and /sys in /): grant that on its own.
    #[arg(long, value_name = "HOST::GUEST[:ro]", value_parser = granted)]
    dir: Vec<Arc<Mount>>,
    /// Set a variable of the program's environment (NAME=VALUE), or hand one over (NAME), or all ("*"). Repeat for more.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// The directory that the program begins in: its own path, in a granted directory, or "." for the path of the
    /// directory that this command is in, which must be granted by the same name [default: /].
    #[arg(long, value_name = "GUEST", requires = "dir")]
    cwd: Option<String>,
    /// Grant the clocks: reading them, and sleeping.
    #[arg(long)]
    clock: bool,
    /// Let it have so many threads at a time beside its first one (at most 94). They end with it.
    ///
    /// Limits of time hold for all of them together, but for --max-time, which the first thread has. A thread that
    /// counts is a clock, so this grants the measuring of time too.
    #[arg(long, value_name = "COUNT", default_value_t = 0, conflicts_with_all = ["process", "process_inside", "max_steps"],
        value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_PROGRAM_THREADS)))]
    threads: u32,
    /// Memory for code, data and heap together, like 64M or 1G (at most 3G). A file is refused, before it
    /// is read, if to verify it takes more: 11/8 of its size.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::size)]
    max_memory: u64,
    /// Mappings of the kernel that code, data and heap may take: pieces with protections of their
    /// own, and the gaps between them. A process has 65,530 unless vm.max_map_count says otherwise.
    #[arg(long, value_name = "COUNT", default_value_t = 2000)]
    max_mappings: usize,
    /// Time by the clock, like 500ms, 1s or 2m [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    max_time: Option<Duration>,
    /// Time on a processor that the program may use, like 50ms, 10s or 2m: what it waits, for a
    /// processor too, does not count [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    max_processor_time: Option<Duration>,
    /// Steps that the program may make, if it was built with --mullion-count: the same input ends
    /// at the same instruction. For replaying: a hostile program can change its count; against that,
    /// limit its time.
    #[arg(long, value_name = "COUNT")]
    max_steps: Option<u64>,
    /// Size of the data stack, like 256K or 4M (at most 8128K).
    #[arg(long, value_name = "SIZE", default_value = "8128K", value_parser = units::stack)]
    max_stack: u64,
    /// Say by whose leave the program runs, and with which limits. (That nobody was asked is
    /// also said where standard error is a terminal.)
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    image_limit: ImageLimit,
    #[command(flatten)]
    admission: AdmissionArgs,
    /// Write "window BASE" to standard error before the program starts, for debuggers.
    #[arg(long)]
    show_base: bool,
    /// Write what the program did to this file when it has ended, however it ended, as text for
    /// Prometheus: calls of the host, faults by kind, memory, limits that it hit, time.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Write what the supervisor decided to this file when the program has ended, for `mullion model run`: domains
    /// made and deleted, permissions granted and taken back. Calls and accesses are not in it.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Read no debug information for the report of a fault: names of functions alone, from the table
    /// of symbols.
    #[arg(long)]
    no_debug_information: bool,
    /// Run it in a process of its own, which keeps memory, the three streams, clocks and nothing else, and is ended if it
    /// asks the system for more. Types with `wall = "language-and-process"` are run so alone.
    #[arg(long, conflicts_with_all = ["dir", "metrics", "trace", "gdb"])]
    process: bool,
    /// This is that process.
    #[arg(long, hide = true, conflicts_with_all = ["dir", "metrics", "trace", "gdb", "process", "debugger_script"])]
    process_inside: bool,
    /// Run under gdb, stopped before the program's first instruction (see docs/debugging.md).
    #[arg(long, conflicts_with = "max_time")]
    gdb: bool,
    /// Write a gdb script with the program's place to this file, then stop. What --gdb starts.
    #[arg(long, hide = true, value_name = "FILE")]
    debugger_script: Option<PathBuf>,
    /// The name by which the program was called: its first word [default: the image's path].
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    argv0: Option<OsString>,
    /// The image, and the program's arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    program: Vec<OsString>,
}

/// The program's time was up.
const OUT_OF_TIME: u8 = 124;
/// The program faulted.
const FAULTED: u8 = 125;
/// The signal that ends a program whose output nobody reads any more.
const PIPE: i32 = 13;
/// The image was refused.
const REFUSED: u8 = 126;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let path = PathBuf::from(&self.program[0]);
        if self.program[0].as_bytes().starts_with(b"-") {
            return Ok(misused(&path));
        }
        if self.gdb {
            return debugger::start(&path);
        }
        if self.process {
            return closed::start(&path);
        }
        if self.trace.is_some() {
            trace::start();
        }
        let ended = self.load(&path).and_then(|program| match program {
            Some(program) => {
                let status = self.start(&path, &program)?;
                // The domain has ended too, and that is in the trace.
                self.trace.as_deref().map_or(Ok(()), trace::write)?;
                Ok(status)
            }
            None => Ok(ExitCode::from(REFUSED)),
        });
        Ok(ended.unwrap_or_else(|error| {
            say(format_args!("mullion: {}: {error:#}", path.display()));
            ExitCode::from(REFUSED)
        }))
    }

    /// `None` if it may not be loaded, which has been explained.
    fn load(&self, path: &Path) -> anyhow::Result<Option<Program>> {
        let bytes = self.image_limit.read_within(path, self.max_memory)?;
        let authoriser = self.admission.authoriser()?;
        let has_policy = authoriser.policy().is_some();
        if !has_policy && (self.verbose || std::io::stderr().is_terminal()) {
            let text = "no policy is configured, so everyone is trusted (see --policy)";
            say(format_args!("mullion: note: {text}"));
        }
        let host = Host::builder().authoriser(authoriser);
        let host = host.debug_information(!self.no_debug_information).build();
        let name = path.file_name().unwrap_or(path.as_os_str());
        let alone = self.process_inside;
        let answer = self.admission.asking(has_policy, path, alone, |asked| {
            host.program_asked(&name.to_string_lossy(), bytes, asked)
        });
        let program = match answer? {
            Ok(program) => program,
            Err(Error::Rejected { source, .. }) => {
                explain(path, &NotAdmitted::Rejected(*source), |line| say(line));
                return Ok(None);
            }
            Err(Error::NotPermitted { source, image }) => match source.downcast() {
                Ok(reason) => {
                    explain(path, &reason, |line| say(line));
                    return Ok(None);
                }
                Err(source) => return Err(Error::NotPermitted { source, image }.into()),
            },
            Err(Error::NotAProgram { .. }) => {
                bail!("refused: it is an extension for a host to call, not a program")
            }
            Err(other) => return Err(other.into()),
        };
        if let Some(decision) = program.decision().filter(|_| self.verbose) {
            say(format_args!("mullion: {}", decision.explanation));
        }
        Ok(Some(program))
    }

    fn start(&self, path: &Path, program: &Program) -> anyhow::Result<ExitCode> {
        let run = self.prepare(program).map_err(|error| match error {
            // The name is in front of the message.
            Error::UnknownImports { names, .. } => LoadError::UnknownImports(names).into(),
            other => anyhow::Error::from(other),
        })?;
        if self.show_base {
            say(format_args!("window {:#x}", run.base()));
        }
        if let Some(script) = &self.debugger_script {
            debugger::hand_over(script, path, run.base())?;
        }
        if self.process_inside {
            closed::close()?;
        }
        let begin = Instant::now();
        let ended = run.finish();
        let elapsed = begin.elapsed();
        if let Some(file) = &self.metrics {
            output::file(file, prometheus(&[run.domain().metrics()]))?;
        }
        match ended? {
            ProgramEnd::Exit(status) => Ok(ExitCode::from(status as u8)),
            // As elsewhere nobody is told: whoever reads has gone away.
            ProgramEnd::Fault(fault) if matches!(fault.cause(), Cause::Raised { signal: PIPE }) => {
                Ok(ExitCode::from(128 + PIPE as u8))
            }
            ProgramEnd::Fault(fault) => {
                let read = !self.no_debug_information;
                report::print(path, program.file(), fault.raw(), elapsed, read);
                Ok(ExitCode::from(match fault.cause() {
                    Cause::TimeLimit { .. }
                    | Cause::ProcessorTimeLimit { .. }
                    | Cause::TotalProcessorTimeLimit { .. }
                    | Cause::StepLimit { .. } => OUT_OF_TIME,
                    _ => FAULTED,
                }))
            }
            _ => {
                let text = "its entry returned without ending the program";
                say(format_args!("mullion: {}: {text}", path.display()));
                Ok(ExitCode::from(FAULTED))
            }
        }
    }

    /// The program in its window, in front of its first instruction.
    fn prepare(&self, program: &Program) -> Result<ProgramRun, Error> {
        let mut run = program.run().limits(Limits {
            memory: self.max_memory,
            mappings: self.max_mappings,
            stack: self.max_stack,
            time: self.max_time,
            // One thread's call is the whole program; of several, each is a call.
            processor_time: self.max_processor_time.filter(|_| self.threads == 0),
            total_processor_time: self.max_processor_time.filter(|_| self.threads > 0),
            steps: self.max_steps,
            measured: self.metrics.is_some().then_some(Clock::Wall),
            ..Limits::default()
        });
        for mount in &self.dir {
            run = run.directory(mount.clone());
        }
        if let Some(path) = &self.cwd {
            let here = std::env::current_dir();
            let here = here.map(|path| path.to_string_lossy().into_owned());
            run = run.working_directory(match (path.as_str(), here) {
                (".", Ok(here)) => here,
                (path, _) => path.to_owned(),
            });
        }
        if self.clock {
            run = run.clock();
        }
        run = run.threads(self.threads);
        let name = self.argv0.iter().chain(self.program.first()).take(1);
        let arguments = name.chain(self.program.iter().skip(1));
        run.arguments(arguments.map(|text| text.as_bytes()))
            .environment(self.environment())
            .load()
    }

    fn environment(&self) -> Vec<Vec<u8>> {
        let entry = |name: &OsString, value: OsString| {
            let mut entry = name.as_bytes().to_vec();
            entry.push(b'=');
            entry.extend(value.into_vec());
            entry
        };
        let variables = |given: &OsString| -> Vec<Vec<u8>> {
            if given == "*" {
                let all = std::env::vars_os();
                return all.map(|(name, value)| entry(&name, value)).collect();
            }
            if given.as_bytes().contains(&b'=') {
                return vec![given.as_bytes().to_vec()];
            }
            // A variable that is not set is not handed over.
            let value = std::env::var_os(given);
            value.map(|value| entry(given, value)).into_iter().collect()
        };
        self.env.iter().flat_map(variables).collect()
    }
}

/// What is no option is taken for the program, for whose own options everything behind it is left.
fn misused(option: &Path) -> ExitCode {
    let (name, rest) = (option.display(), "see mullion run --help");
    say(format_args!(
        "mullion: {name} is not an option of run ({rest}; a program of that name is ./{name})"
    ));
    ExitCode::from(2)
}

/// A directory to grant.
fn granted(text: &str) -> Result<Arc<Mount>, MountError> {
    Mount::parse(text).map(Arc::new)
}
