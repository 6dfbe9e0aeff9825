//! Arguments and files that the trust subcommands share: the directory of keys,
//! passphrases, directories of credentials.

use crate::output::sayln;
use anyhow::{Context as _, bail};
use mullion_trust::SecretKey;
use mullion_trust::credentials;
use mullion_trust::explain::Names;
use mullion_trust::keynote::Store;
use mullion_trust::keyring::Keyring;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Where the keys are.
#[derive(clap::Args)]
pub(crate) struct KeyringArgs {
    /// The directory of keys [default: mullion/keys in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "DIR", env = "MULLION_KEYS", global = true)]
    keys: Option<PathBuf>,
    /// Read the passphrase of a secret key from this file instead of the
    /// terminal; /dev/fd/3 is file descriptor 3. A newline at the end is not
    /// part of it.
    #[arg(
        long,
        value_name = "FILE",
        env = "MULLION_PASSPHRASE_FILE",
        global = true
    )]
    passphrase_file: Option<PathBuf>,
}

impl KeyringArgs {
    /// As the environment says, for commands whose options are another's.
    pub(crate) fn from_environment() -> Self {
        let path = |name| std::env::var_os(name).filter(|path| !path.is_empty());
        KeyringArgs {
            keys: path("MULLION_KEYS").map(PathBuf::from),
            passphrase_file: path("MULLION_PASSPHRASE_FILE").map(PathBuf::from),
        }
    }

    pub(crate) fn open(&self) -> anyhow::Result<Keyring> {
        if let Some(directory) = &self.keys {
            return Ok(Keyring::new(directory));
        }
        let config = match std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => match std::env::var_os("HOME") {
                Some(home) => PathBuf::from(home).join(".config"),
                None => bail!("there is no home directory; say where the keys are with --keys DIR"),
            },
        };
        Ok(Keyring::new(config.join("mullion").join("keys")))
    }

    /// A secret key, asking for its passphrase if it has one.
    pub(crate) fn secret(&self, name: &str) -> anyhow::Result<SecretKey> {
        let keyring = self.open()?;
        if !keyring.needs_passphrase(name)? {
            return Ok(keyring.secret(name, None)?);
        }
        let passphrase = self.passphrase(&format!("passphrase of {name}: "))?;
        Ok(keyring.secret(name, Some(passphrase.as_bytes()))?)
    }

    /// A new passphrase, asked for twice on a terminal.
    pub(crate) fn new_passphrase(&self, name: &str) -> anyhow::Result<zeroize::Zeroizing<String>> {
        let passphrase = self.passphrase(&format!("new passphrase of {name}: "))?;
        if passphrase.is_empty() {
            bail!("an empty passphrase protects nothing; leave out --passphrase instead");
        }
        if self.passphrase_file.is_none() {
            let again = self.passphrase("the same again: ")?;
            if *again != *passphrase {
                bail!("the two passphrases differ; nothing was written");
            }
        }
        Ok(passphrase)
    }

    fn passphrase(&self, prompt: &str) -> anyhow::Result<zeroize::Zeroizing<String>> {
        if let Some(path) = &self.passphrase_file {
            let text = mullion_trust::text::read(path)
                .with_context(|| format!("passphrase file {}", path.display()))?;
            let mut text = zeroize::Zeroizing::new(text);
            if text.ends_with('\n') {
                text.pop();
            }
            return Ok(text);
        }
        if !std::io::stderr().is_terminal() {
            bail!("a passphrase is needed and there is no terminal; use --passphrase-file");
        }
        let text = rpassword::prompt_password(prompt).context("reading the passphrase")?;
        Ok(zeroize::Zeroizing::new(text))
    }

    /// The names of all keys, for explanations.
    pub(crate) fn names(&self) -> Names {
        let mut names = Names::default();
        if let Ok(keyring) = self.open() {
            for (name, _) in keyring.names().unwrap_or_default() {
                if let Ok(key) = keyring.public(&name) {
                    names.add(key.principal(), &name);
                }
            }
        }
        names
    }
}

/// Adds credentials to a store, with a warning for each file that holds none.
pub(crate) fn add_credentials(store: &mut Store, path: &Path) -> anyhow::Result<()> {
    for left_out in credentials::read_into(store, path)? {
        sayln!("mullion: warning: {left_out}");
    }
    Ok(())
}

/// `NAME=VALUE` of the command line.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
