//! What every command has that speaks to a loader.

use super::keys::KeyringArgs;
use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use mullion_service::wire::{Answer, Operation, Status};
use mullion_service::{Address, Client};
use serde::Serialize;
use std::time::Duration;

/// Whom to ask, and as whom.
#[derive(clap::Args)]
pub(crate) struct ClientArgs {
    /// The loader's socket, or its address like 127.0.0.1:7000.
    #[arg(long = "to", value_name = "SOCKET", env = "MULLION_LOADER")]
    to: String,
    /// The key to prove; its secret part is needed.
    #[arg(long = "as", value_name = "NAME", env = "MULLION_AS")]
    requester: String,
    #[command(flatten)]
    pub(crate) keyring: KeyringArgs,
    /// How long to wait for the loader, like 30s.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::units::time)]
    patience: Duration,
}

impl ClientArgs {
    /// Connects, proves the key, asks.
    pub(crate) fn ask(
        &self,
        operation: Operation,
        object: &impl Serialize,
        bytes: &[u8],
    ) -> anyhow::Result<Answer> {
        let key = self.keyring.secret(&self.requester)?;
        let mut client = Client::connect(&Address::from(self.to.as_str()), key, self.patience)?;
        let bar = match bytes.len() {
            0 => ProgressBar::hidden(),
            length => ProgressBar::new(length as u64),
        };
        let style = ProgressStyle::with_template("sending {wide_bar} {bytes}/{total_bytes}")?;
        bar.set_style(style);
        let mut progress = |sent: usize, _| bar.set_position(sent as u64);
        let answer = client.ask(operation, object, bytes, &mut progress);
        bar.finish_and_clear();
        Ok(answer?)
    }
}

/// An error, with what the loader says, if it was not done.
pub(crate) fn done(answer: &Answer) -> anyhow::Result<()> {
    if answer.status == Status::Done {
        return Ok(());
    }
    let text = |name: &str| answer.object[name].as_str().map(printable);
    let mut lines = vec![text("error").unwrap_or_else(|| "no reason is given".to_owned())];
    let obstacles = answer.object["obstacles"].as_array();
    let obstacles = obstacles
        .into_iter()
        .flatten()
        .filter_map(|line| line.as_str());
    lines.extend(obstacles.map(|line| format!("  {}", printable(line))));
    lines.extend(text("way_out").map(|way| format!("  way out: {way}")));
    if answer.status == Status::Faulted {
        let way_out = "mullion loader restart gives it the state that it had when it was loaded";
        lines.push(format!(
            "  the module takes no calls now; way out: {way_out}"
        ));
        bail!("fault: {}", lines.join("\n"));
    }
    bail!("refused: {}", lines.join("\n"))
}

/// Text of the loader's, fit for a terminal.
fn printable(text: &str) -> String {
    let clean = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(clean).collect()
}
