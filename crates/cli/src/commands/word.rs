//! `mullion word`: policies of modules behind the word wall, and hosts that run with them.

use crate::output::{outln, sayln};
use anyhow::Context;
use mullion_word_policy::{File, Interface};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Check policies of the word wall, and run hosts that learn or enforce them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Check(CheckArgs),
    Learn(LearnArgs),
    Enforce(EnforceArgs),
}

/// Read a policy, and hold it against a host's interface and a module.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mullion word check rot13.toml --interface hosts/sqlite/sqlite3.toml --module rot13.so"
)]
struct CheckArgs {
    /// The policy.
    policy: PathBuf,
    /// A description of the host's functions. Repeat for more.
    #[arg(long, value_name = "FILE")]
    interface: Vec<PathBuf>,
    /// The module that it is for.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// Run a host whose modules are refused nothing, and write the policies that they would have needed.
///
/// The modules are NOT confined meanwhile. The host writes a policy for each module to DIR when it ends. Read it, and cut it
/// down. Only hosts that know of this do it: hosts/sqlite does.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mullion word learn --to learnt -- sqlite3 -init queries.sql\n\n\
    Exit status: that of COMMAND; 126 if it cannot be started."
)]
struct LearnArgs {
    /// Where policies are written.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The host, with its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Run a host with the policies of a folder in the place of those beside its modules.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mullion word enforce --policies learnt -- sqlite3 -init queries.sql\n\n\
    Exit status: that of COMMAND; 126 if it cannot be started."
)]
struct EnforceArgs {
    /// Where policies are.
    #[arg(long, value_name = "DIR")]
    policies: PathBuf,
    /// The host, with its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Check(args) => args.run(),
            What::Learn(args) => {
                std::fs::create_dir_all(&args.to).with_context(|| args.to.display().to_string())?;
                host(&args.command, "MULLION_WORD_LEARN", &args.to)
            }
            What::Enforce(args) => {
                anyhow::ensure!(
                    args.policies.is_dir(),
                    "{} is no folder",
                    args.policies.display()
                );
                host(&args.command, "MULLION_WORD_POLICIES", &args.policies)
            }
        }
    }
}

/// Runs a host that finds the folder by a variable.
fn host(command: &[OsString], variable: &str, folder: &Path) -> anyhow::Result<ExitCode> {
    let folder = folder
        .canonicalize()
        .with_context(|| folder.display().to_string())?;
    let [program, arguments @ ..] = command else {
        anyhow::bail!("no command");
    };
    let mut host = Command::new(program);
    host.args(arguments);
    for other in ["MULLION_WORD_LEARN", "MULLION_WORD_POLICIES"] {
        host.env_remove(other);
    }
    match host.env(variable, folder).status() {
        Ok(status) => {
            use std::os::unix::process::ExitStatusExt;
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            Ok(ExitCode::from(
                code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            ))
        }
        Err(error) => {
            sayln!("mullion: {}: {error}", program.display());
            Ok(ExitCode::from(126))
        }
    }
}

fn read(path: &Path) -> anyhow::Result<File> {
    let shown = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(shown)?;
    File::parse(&text).with_context(shown)
}

impl CheckArgs {
    fn run(self) -> anyhow::Result<ExitCode> {
        let policy = read(&self.policy)?;
        let files = self.interface.iter().map(|path| read(path));
        let interface = Interface::new(&files.collect::<Result<Vec<_>, _>>()?);
        let allowed = interface.allowed(&policy);
        let allowed = allowed.with_context(|| self.policy.display().to_string())?;
        for (name, call) in &allowed {
            let effects = call.described();
            match effects.is_empty() {
                true => outln!("allows {name}")?,
                false => outln!("allows {name}: {}", effects.join(", "))?,
            }
            for (parameter, callback) in &call.callbacks {
                let effects = callback.described().join(", ");
                outln!("  lends {parameter}, which it calls back: {effects}")?;
            }
        }
        let Some(module) = &self.module else {
            return Ok(ExitCode::SUCCESS);
        };
        let shown = || module.display().to_string();
        let bytes = std::fs::read(module).with_context(shown)?;
        let verified = mullion_word_verifier::verify(bytes).with_context(shown)?;
        let mut fits = true;
        for name in verified
            .imports()
            .iter()
            .filter(|name| !allowed.contains_key(*name))
        {
            outln!("refuses {name}, which the module imports")?;
        }
        for name in policy.exports.keys().chain(&policy.entry) {
            let defined = |symbol: &str| {
                let mut all = verified.symbols();
                all.any(|(_, known)| known.name == symbol && known.address.is_some())
            };
            if !defined(name) {
                outln!("the module has no {name}, of which the policy speaks")?;
                fits = false;
            }
        }
        Ok(ExitCode::from(u8::from(!fits)))
    }
}
