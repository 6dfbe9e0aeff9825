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
use clap::Parser;
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
    match Cli::parse_from(arguments()).command.run() {
        Ok(code) => code,
        Err(error) => {
            sayln!("mullion: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// The command line; started under the name `as` or `ld`, as gcc does, that is the subcommand.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments
        .first()
        .and_then(|name| Path::new(name).file_name())
        .map(OsStr::to_owned);
    if let Some(name) = name.filter(|name| name == "as" || name == "ld") {
        arguments.insert(1, name);
    }
    arguments
}
