//! The `mullion` command: one file per subcommand under `commands/`.
#![forbid(unsafe_code)]
// They panic when nobody reads, or the disk is full: crate::output does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod image_file;
mod listing;
mod output;
mod units;

use crate::output::sayln;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// Load third-party native extensions behind a wall.
#[derive(Parser)]
#[command(name = "mullion", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // `mullion sip run` starts this program again for each domain of a configuration that is an OS process.
    mullion_sip_host::enter();
    let matches = command_line().get_matches_from(arguments());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            sayln!("mullion: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// What can be said on the command line, with its help.
fn command_line() -> clap::Command {
    with_statuses(Cli::command())
}

const STATUSES: &str = "Exit status: 0 if it was done, 1 if not (the reason is on standard error), \
                        2 if the command is misused.";

/// Every help ends with the exit statuses: where it does not tell its own, with these.
fn with_statuses(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(with_statuses);
    let about = command.get_long_about().or(command.get_about());
    let told = [about, command.get_after_help()].into_iter().flatten();
    if told
        .map(ToString::to_string)
        .any(|text| text.contains("xit status"))
    {
        return command;
    }
    let behind = command.get_after_help().map(|text| format!("{text}\n\n"));
    command.after_help(behind.unwrap_or_default() + STATUSES)
}

/// Names under which other programs start this one, and the subcommand that each of them is.
const NAMES: &[(&str, &str)] = &[
    ("as", "as"),
    ("ld", "ld"),
    ("mullion-cc", "cc"),
    ("mullion-c++", "c++"),
    ("mullion-rustc", "rustc-wrapped"),
    ("mullion-rustc-ld", "rustc-ld"),
];

/// The command line; started under another name, as gcc and Cargo do, that is the subcommand.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments
        .first()
        .and_then(|name| Path::new(name).file_name())
        .and_then(OsStr::to_str);
    let subcommand = NAMES.iter().find(|(known, _)| Some(*known) == name);
    if let Some((_, subcommand)) = subcommand {
        arguments.insert(1, (*subcommand).into());
    }
    arguments
}
