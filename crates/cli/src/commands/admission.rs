//! The loader's question as options of the commands that load.

use super::keys::KeyringArgs;
use anyhow::Context as _;
use mullion_loader::{Admitted, Asked, Authoriser, NotAdmitted};
use mullion_trust::challenge::Proven;
use mullion_trust::credentials::files;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The policy of this machine, where no other is named.
const SYSTEM_POLICY: &str = "/etc/mullion/policy.toml";

/// Who may load what, and who asks.
#[derive(clap::Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArgs {
    /// The policy that says who may load what [default: /etc/mullion/policy.toml if there is
    /// one; without any, everyone is trusted]
    #[arg(long, value_name = "FILE", env = "MULLION_POLICY")]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bearer: BearerArgs,
    #[command(flatten)]
    pub(crate) keyring: KeyringArgs,
}

/// What comes with an image.
#[derive(clap::Args)]
pub(crate) struct BearerArgs {
    /// A key to ask with; its secret part is needed. Repeat for more.
    #[arg(
        long = "as",
        value_name = "NAME",
        env = "MULLION_AS",
        value_delimiter = ','
    )]
    requesters: Vec<String>,
    /// The compilation record [default: IMAGE.record].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// A file or directory of credentials, beside the policy's. Repeat for more.
    #[arg(long, value_name = "PATH")]
    credentials: Vec<PathBuf>,
}

/// The record beside an image.
pub(crate) fn record_of(image: &Path) -> PathBuf {
    let mut path = image.to_owned().into_os_string();
    path.push(".record");
    path.into()
}

impl BearerArgs {
    /// The keys to ask with, opened.
    pub(crate) fn keys(
        &self,
        keyring: &KeyringArgs,
    ) -> anyhow::Result<Vec<mullion_trust::SecretKey>> {
        self.requesters
            .iter()
            .map(|name| keyring.secret(name))
            .collect()
    }

    /// The text of the record; one that is named must be there.
    pub(crate) fn record(&self, image: &Path) -> anyhow::Result<Option<String>> {
        let path = self.record.clone().unwrap_or_else(|| record_of(image));
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if self.record.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => {
                Err(error).with_context(|| format!("compilation record {}", path.display()))
            }
        }
    }

    /// The texts of the credentials.
    pub(crate) fn credentials(&self) -> anyhow::Result<Vec<String>> {
        let mut texts = Vec::new();
        for path in &self.credentials {
            let files = files(path).with_context(|| path.display().to_string())?;
            for file in files {
                let text = std::fs::read_to_string(&file);
                texts.push(text.with_context(|| file.display().to_string())?);
            }
        }
        Ok(texts)
    }
}

impl AdmissionArgs {
    /// The authoriser of the policy that is configured.
    pub(crate) fn authoriser(&self) -> anyhow::Result<Authoriser> {
        let system = Path::new(SYSTEM_POLICY);
        let path = match &self.policy {
            Some(path) => path.as_path(),
            None if system.exists() => system,
            None => return Ok(Authoriser::trusting_everyone()),
        };
        let warn = |left_out| eprintln!("mullion: warning: {left_out}");
        Ok(Authoriser::read(path, warn)?)
    }

    /// Asks whether the image may be loaded. Without a policy, nothing of what
    /// else is given is looked at.
    pub(crate) fn admit(
        &self,
        authoriser: &Authoriser,
        image: &Path,
        bytes: Vec<u8>,
    ) -> anyhow::Result<Result<Admitted, NotAdmitted>> {
        if authoriser.policy().is_none() {
            return Ok(authoriser.admit(bytes, &Asked::default()));
        }
        let keys = self.bearer.keys(&self.keyring)?;
        let requesters: Vec<_> = keys.iter().map(Proven::by_holding).collect();
        drop(keys);
        let record = self.bearer.record(image)?;
        let credentials = self.bearer.credentials()?;
        let asked = Asked {
            requesters: &requesters,
            record: record.as_deref(),
            credentials: &credentials,
            names: self.keyring.names(),
            ..Asked::default()
        };
        Ok(authoriser.admit(bytes, &asked))
    }
}

/// Why not, line by line, with a way out.
pub(crate) fn explain(image: &Path, reason: &NotAdmitted, say: impl Fn(&dyn Display)) {
    let name = image.display();
    match reason {
        NotAdmitted::Rejected(rejected) => {
            for violation in rejected.violations.iter().take(5) {
                say(&format_args!("mullion: {name}: {violation}"));
            }
            say(&format_args!(
                "mullion: {name}: refused: it breaks rules of the window (see mullion verify {name})"
            ));
        }
        other => say(&format_args!("mullion: {name}: refused: {other}")),
    }
    match reason {
        NotAdmitted::Refused(refusal) => {
            for line in &refusal.obstacles {
                say(&format_args!("  {line}"));
            }
            say(&format_args!("  way out: {}", refusal.way_out));
        }
        NotAdmitted::Nobody => say(&"  way out: name the key to ask with, as in --as alice"),
        NotAdmitted::NoRecord => say(&format_args!(
            "  way out: mullion sign makes {}, as does mullion cc with --mullion-type",
            record_of(image).display()
        )),
        NotAdmitted::Import(_) => say(
            &"  way out: a module type whose `imports` has it, and credentials that do not leave it out",
        ),
        _ => {}
    }
}
