//! The `mullion` command: one file per subcommand under `commands/`.
#![forbid(unsafe_code)]

mod commands;
mod listing;

use clap::Parser;
use std::process::ExitCode;

/// Load third-party native extensions behind a wall.
#[derive(Parser)]
#[command(name = "mullion", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mullion: {error:#}");
            ExitCode::from(1)
        }
    }
}
