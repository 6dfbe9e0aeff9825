//! The loader's question as options of the commands that load.

use super::keys::KeyringArgs;
use crate::image_file::way_out;
use crate::output::sayln;
use anyhow::Context as _;
use mullion_loader::{Asked, Authoriser, NotAdmitted};
use mullion_trust::credentials::files;
use mullion_trust::module_type::{ModuleType, is_name};
use mullion_trust::{Policy, Reason, SecretKey};
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

/// The policy that is configured where none is named.
pub(crate) fn configured_policy(named: Option<&Path>) -> Option<PathBuf> {
    let system = Path::new(SYSTEM_POLICY);
    let system = system.exists().then(|| system.to_owned());
    named.map(Path::to_owned).or(system)
}

/// A module type: the file of that name, or else the type of that identifier in
/// the policy that is configured.
pub(crate) fn module_type(name: &Path) -> anyhow::Result<ModuleType> {
    let policy = std::env::var_os("MULLION_POLICY").filter(|path| !path.is_empty());
    let policy = configured_policy(policy.as_ref().map(Path::new));
    let id = name.to_str().filter(|id| !name.exists() && is_name(id));
    if let (Some(id), Some(path)) = (id, policy) {
        let found = Policy::read(&path)?;
        let found = found.module_type(id).cloned();
        return found.with_context(|| {
            format!(
                "{id} is neither a file nor a type of the policy {}",
                path.display()
            )
        });
    }
    Ok(ModuleType::read(name)?)
}

/// The record beside an image.
pub(crate) fn record_of(image: &Path) -> PathBuf {
    let mut path = image.to_owned().into_os_string();
    path.push(".record");
    path.into()
}

impl BearerArgs {
    /// The keys to ask with, opened.
    pub(crate) fn keys(&self, keyring: &KeyringArgs) -> anyhow::Result<Vec<SecretKey>> {
        self.requesters
            .iter()
            .map(|name| keyring.secret(name))
            .collect()
    }

    /// The text of the record; one that is named must be there.
    pub(crate) fn record(&self, image: &Path) -> anyhow::Result<Option<String>> {
        let path = self.record.clone().unwrap_or_else(|| record_of(image));
        match mullion_trust::text::read(&path) {
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
                let text = mullion_trust::text::read(&file);
                texts.push(text.with_context(|| file.display().to_string())?);
            }
        }
        Ok(texts)
    }
}

impl AdmissionArgs {
    /// The authoriser of the policy that is configured.
    pub(crate) fn authoriser(&self) -> anyhow::Result<Authoriser> {
        let Some(path) = configured_policy(self.policy.as_deref()) else {
            return Ok(Authoriser::trusting_everyone());
        };
        let warn = |left_out| sayln!("mullion: warning: {left_out}");
        Ok(Authoriser::read(&path, warn)?)
    }

    /// Asks for an image, by `ask`, with all that comes with it. Without a policy, nothing of what else is given
    /// is looked at. `alone`: this process is for the image alone.
    pub(crate) fn asking<R>(
        &self,
        has_policy: bool,
        image: &Path,
        alone: bool,
        ask: impl FnOnce(&Asked<'_>) -> R,
    ) -> anyhow::Result<R> {
        if !has_policy {
            return Ok(ask(&Asked::default()));
        }
        let keys = self.bearer.keys(&self.keyring)?;
        let requesters: Result<Vec<_>, _> = keys.iter().map(SecretKey::proven).collect();
        let requesters = requesters?;
        drop(keys);
        let record = self.bearer.record(image)?;
        let credentials = self.bearer.credentials()?;
        Ok(ask(&Asked {
            requesters: &requesters,
            record: record.as_deref(),
            credentials: &credentials,
            names: self.keyring.names(),
            alone,
            ..Asked::default()
        }))
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
            if let Some(way_out) = way_out(image) {
                say(&format_args!("  way out: {way_out}"));
            }
        }
        other => say(&format_args!("mullion: {name}: refused: {other}")),
    }
    match reason {
        NotAdmitted::Refused(refusal) => {
            for line in &refusal.obstacles {
                say(&format_args!("  {line}"));
            }
            say(&format_args!("  way out: {}", refusal.way_out));
            if matches!(&refusal.reason, Reason::Mechanism(_)) {
                say(&"  (mullion run --process puts up the mechanism `process`)");
            }
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
