//! Arguments and files that the trust subcommands share: the directory of keys,
//! passphrases, directories of credentials.

use anyhow::{Context as _, bail};
use mullion_trust::SecretKey;
use mullion_trust::explain::Names;
use mullion_trust::keynote::{self, Store};
use mullion_trust::keyring::Keyring;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Where the keys are.
#[derive(clap::Args)]
pub(crate) struct KeyringArgs {
    /// The directory of keys [default: mullion/keys in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "DIR", env = "MULLION_KEYS")]
    keys: Option<PathBuf>,
    /// Read the passphrase of a secret key from this file instead of the
    /// terminal; /dev/fd/3 is file descriptor 3. A newline at the end is not
    /// part of it.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeyringArgs {
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
            let text = std::fs::read_to_string(path)
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

/// Adds the credentials in a file, or in all files of a directory that end in
/// `.kn`. A file that is no credential is told of and left out: credentials
/// only ever add.
pub(crate) fn add_credentials(store: &mut Store, path: &Path) -> anyhow::Result<()> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        files = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "kn"));
        files.sort();
    }
    for file in files {
        let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match keynote::parse_all(&text) {
            Ok(found) => {
                for assertion in found {
                    store.add_credential(assertion, &name);
                }
            }
            Err(error) => eprintln!("mullion: warning: {}: {error}; left out", file.display()),
        }
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
