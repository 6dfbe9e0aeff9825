//! `mullion map`.

use crate::output::{file, print};
use anyhow::Context;
use clap::ValueEnum;
use mullion_picture::{FORMAT, Options, State, Theme, paint};
use mullion_trust::text::within;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of a state.
const LARGEST: u64 = 1 << 30;

/// Paint who may touch which memory.
///
/// Reads the state of a supervisor as JSON and writes a picture of it as one SVG file that needs nothing
/// else: domains are columns, addresses are rows, permissions are colours, a thick edge marks the owner,
/// and groups are lines through their members. A row stands for all words on which everything is the
/// same; what repeats is shown once. In a browser every block says what it is when the mouse rests on it.
///
/// A supervisor gives its state by `Supervisor::snapshot`, and `mullion_picture::State` turns that into
/// JSON; docs/supervisor.md shows how.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mullion map docs/pictures/figure-5-after.json -o figure-5.svg
  mullion map state.json --theme dark --title 'My server' > map.svg
  mullion map --explain

Exit status: 0 if the picture was written, 1 if the state cannot be read or does
not hold together, 2 if the command line was wrong.")]
pub(crate) struct Args {
    /// The state; `-` is the standard input.
    #[arg(required_unless_present = "explain")]
    state: Option<PathBuf>,

    /// Where to write the picture; the standard output if absent or `-`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What to write above the picture, instead of the state's own title.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// On which ground the picture stands.
    #[arg(long, value_enum, default_value_t = Ground::Auto)]
    theme: Ground,

    /// Describe the format of the state, and do nothing else.
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ground {
    /// As the reader's system says.
    Auto,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.state {
            Some(ref state) if !self.explain => {
                let text = read(state).with_context(|| format!("{}", state.display()))?;
                let picture = self
                    .paint(&text)
                    .with_context(|| format!("{}", state.display()))?;
                write(self.output.as_deref(), &picture)?;
            }
            _ => write(self.output.as_deref(), FORMAT)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn paint(&self, text: &str) -> anyhow::Result<String> {
        let theme = match self.theme {
            Ground::Auto => Theme::Auto,
            Ground::Light => Theme::Light,
            Ground::Dark => Theme::Dark,
        };
        let options = Options {
            title: self.title.clone(),
            theme,
        };
        Ok(paint(&State::from_json(text)?.validate()?, &options))
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    match path.as_os_str() == "-" {
        true => within(std::io::stdin(), LARGEST),
        false => within(std::fs::File::open(path)?, LARGEST),
    }
}

fn write(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) if path.as_os_str() != "-" => file(path, text),
        _ => print(text),
    }
}
