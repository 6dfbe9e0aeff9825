//! `mullion map`.

use crate::output::{file, print};
use anyhow::Context;
use clap::ValueEnum;
use mullion_picture::{
    ByteAddress, Excerpt, FORMAT, PaintOptions, Space, SupervisorState, Theme, paint,
};
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
/// same for the domains shown; what repeats is shown once, and of many domains those that may do the same
/// share a column. In a browser every block says what it is when the mouse rests on it.
///
/// Of a large state a part is shown: the picture says above its columns what is left out, and by which
/// option it is seen.
///
/// A supervisor gives its state by `Supervisor::snapshot`, and `mullion_picture::SupervisorState` turns that into
/// JSON; docs/supervisor.md shows how.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mullion map docs/pictures/figure-5-after.json -o figure-5.svg
  mullion map state.json --theme dark --title 'My server' > map.svg
  mullion map state.json --domain player --domain decoder -o two.svg
  mullion map state.json --range decoder -o window.svg
  mullion map state.json --range 0x7f6300000000..0x7f6400000000 -o window.svg
  mullion map --explain

Exit status: 0 if the picture was written, 1 if the state cannot be read, does
not hold together or lacks what was chosen, 2 if the command line was wrong.")]
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

    /// Show this domain, by its name or its number, and no others but those chosen alike. Repeat for more.
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,

    /// Show these addresses alone: two numbers, or the name of a label of the state. Domains that have
    /// nothing there are left out.
    #[arg(long, value_name = "START..END")]
    range: Option<String>,

    /// Show at most so many domains that were not chosen by --domain.
    #[arg(long, value_name = "N", default_value_t = Excerpt::default().most_domains)]
    most_domains: usize,

    /// Show at most so many rows.
    #[arg(long, value_name = "N", default_value_t = Excerpt::default().most_rows)]
    most_rows: usize,

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
        let valid = SupervisorState::from_json(text)?.validate()?;
        let state = valid.state();
        let domains = self.domain.iter().map(|name| domain(state, name));
        let options = PaintOptions {
            title: self.title.clone(),
            theme,
            view: Excerpt {
                domains: domains.collect::<anyhow::Result<Vec<_>>>()?.concat(),
                range: self
                    .range
                    .as_deref()
                    .map(|text| range(state, text))
                    .transpose()?,
                most_domains: self.most_domains,
                most_rows: self.most_rows,
            },
        };
        Ok(paint(&valid, &options))
    }
}

/// The domains of this name; if there is none, the one of this number.
fn domain(state: &SupervisorState, name: &str) -> anyhow::Result<Vec<u32>> {
    let all = state.domains.iter();
    let named = all.filter(|domain| domain.name == name);
    let named: Vec<u32> = named.map(|domain| domain.id).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let number = name.parse().ok();
    match state
        .domains
        .iter()
        .find(|domain| Some(domain.id) == number)
    {
        Some(domain) => Ok(vec![domain.id]),
        None => {
            let names = state.domains.iter().map(|domain| domain.name.as_str());
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).take(10).collect();
            let numbers = state.domains.iter().map(|domain| domain.id).max();
            anyhow::bail!(
                "no domain is called {name:?}; the state has {} domains, up to number {}, such as {}",
                state.domains.len(),
                numbers.unwrap_or(0),
                names.join(", ")
            )
        }
    }
}

/// Two addresses, or those of a label.
fn range(state: &SupervisorState, text: &str) -> anyhow::Result<Space> {
    let mut labels = state.labels.iter().filter(|label| label.name == text);
    if let Some(label) = labels.next() {
        let others = labels.count();
        anyhow::ensure!(
            others == 0,
            "{} labels are called {text:?}; give addresses, as START..END",
            others + 1
        );
        return Ok(Space {
            start: label.start,
            end: label.end,
        });
    }
    let number = |text: &str| {
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.ok().map(ByteAddress)
    };
    let ends = text.split_once("..");
    let ends = ends.and_then(|(start, end)| Some((number(start)?, number(end)?)));
    let Some((start, end)) = ends else {
        anyhow::bail!(
            "{text:?} is neither a range of addresses, such as 0x1000..0x5000, nor a label of the state"
        );
    };
    let all = state.space;
    let (first, last) = (start.max(all.start), end.min(all.end));
    anyhow::ensure!(
        first < last,
        "nothing lies at {start}..{end}; the state has {}..{}",
        all.start,
        all.end
    );
    Ok(Space { start, end })
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
