//! `mullion key`.

use super::keys::KeyringArgs;
use crate::output::outln;
use anyhow::Context as _;
use mullion_trust::SecretKey;
use std::process::ExitCode;

/// Make, show, import and list keys.
///
/// Keys are Ed25519. The secret part is in a file that only its owner can
/// read; the public part is a KeyNote identifier that can be given to anyone.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    keyring: KeyringArgs,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make a key pair.
    New {
        /// What to call it.
        name: String,
        /// Keep the secret part under a passphrase (Argon2id, XChaCha20-Poly1305).
        #[arg(long)]
        passphrase: bool,
    },
    /// Print a public key.
    Show {
        /// Which.
        name: String,
    },
    /// Keep somebody else's public key under a name.
    Import {
        /// What to call it.
        name: String,
        /// The key, x-mullion-ed25519-hex:..., or a file that holds it.
        key: String,
    },
    /// List the keys.
    List,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let keyring = self.keyring.open()?;
        match &self.action {
            Action::New { name, passphrase } => {
                let passphrase = match passphrase {
                    true => Some(self.keyring.new_passphrase(name)?),
                    false => None,
                };
                let key = SecretKey::generate()?;
                keyring.add(name, &key, passphrase.as_ref().map(|text| text.as_bytes()))?;
                outln!("{}", key.public())?;
            }
            Action::Show { name } => outln!("{}", keyring.public(name)?)?,
            Action::Import { name, key } => {
                let text = match key.contains(':') {
                    true => key.clone(),
                    false => mullion_trust::text::read(key).with_context(|| key.clone())?,
                };
                keyring.add_public(name, &text.parse()?)?;
            }
            Action::List => {
                for (name, secret) in keyring.names()? {
                    let kind = if secret { "secret" } else { "public" };
                    outln!("{name}\t{kind}\t{}", keyring.public(&name)?)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
