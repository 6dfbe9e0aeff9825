//! Keys in files: a directory with `NAME.key`, secret, and `NAME.pub`, public.
//!
//! A secret file looks so, and nobody but its owner can read it:
//!
//! ```text
//! mullion-key 1                          mullion-key 1
//! public: x-mullion-ed25519-hex:...      public: x-mullion-ed25519-hex:...
//! secret: <64 hexadecimal digits>        kdf: argon2id 65536 3 1
//!                                        salt: <32 digits>
//!                                        nonce: <48 digits>
//!                                        sealed: <96 digits>
//! ```
//!
//! On the right with a passphrase: Argon2id (memory in KiB, passes, lanes)
//! makes the key that XChaCha20-Poly1305 seals the seed with. The lines above
//! `sealed` are authenticated with it.

use crate::key::{KeyError, PublicKey, SecretKey};
use data_encoding::HEXLOWER;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

mod seal;

/// Memory in KiB, passes and lanes of Argon2id for new files.
const KDF: (u32, u32, u32) = (64 * 1024, 3, 1);
/// A secret file is never longer.
const LARGEST: u64 = 4096;

/// Why a key cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The name cannot be that of a file.
    #[error(
        "`{0}` is no name for a key: letters, digits, `-`, `_` and `.` make one, and it does not begin with `.`"
    )]
    Name(String),
    /// There is one already.
    #[error("there is a key `{0}` already; keys are never overwritten")]
    Exists(String),
    /// There is none.
    #[error("there is no key `{name}` in {directory}; `mullion key list` shows what there is")]
    Missing {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Others could read or replace a secret.
    #[error("{path}: {problem}; {hint}")]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
        /// The way out.
        hint: &'static str,
    },
    /// The file has another form.
    #[error("{0}: this is no key file, or a damaged one")]
    Malformed(PathBuf),
    /// A passphrase is needed.
    #[error("the key is kept under a passphrase, and none was given")]
    PassphraseNeeded,
    /// This build has no passphrases.
    #[error(
        "this program is built without the feature `passphrases`, so it neither seals keys nor opens sealed ones"
    )]
    NoPassphrases,
    /// The passphrase does not open it.
    #[error("the passphrase is wrong, or the key file was changed")]
    Passphrase,
    /// The key itself.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A directory of keys.
#[derive(Clone, Debug)]
pub struct Keyring {
    directory: PathBuf,
}

impl Keyring {
    /// The keyring in `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Keyring {
            directory: directory.into(),
        }
    }

    /// Where the keys are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps a secret key, and its public part beside it.
    ///
    /// # Errors
    /// If the name is taken, or others could get at the file.
    pub fn add(
        &self,
        name: &str,
        key: &SecretKey,
        passphrase: Option<&[u8]>,
    ) -> Result<(), KeyringError> {
        check_name(name)?;
        self.create_directory()?;
        let text = match passphrase {
            None => plain(key),
            Some(passphrase) => sealed(key, passphrase)?,
        };
        self.create(name, "key", 0o600, text.as_bytes())?;
        self.add_public(name, &key.public()).inspect_err(|_| {
            // A key has both parts or none.
            let _absent = fs::remove_file(self.path(name, "key"));
        })
    }

    /// Keeps the public key of somebody else.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn add_public(&self, name: &str, key: &PublicKey) -> Result<(), KeyringError> {
        check_name(name)?;
        self.create_directory()?;
        self.create(name, "pub", 0o644, format!("{key}\n").as_bytes())
    }

    /// The public key of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn public(&self, name: &str) -> Result<PublicKey, KeyringError> {
        check_name(name)?;
        let path = self.path(name, "pub");
        match crate::text::read(&path) {
            Ok(text) => Ok(text.parse()?),
            Err(error) => Err(self.missing(name, path, error)),
        }
    }

    /// The public key that `text` is, or that has it as its name.
    ///
    /// # Errors
    /// If it is neither.
    pub fn resolve(&self, text: &str) -> Result<PublicKey, KeyringError> {
        if text.contains(':') {
            return Ok(text.parse()?);
        }
        self.public(text)
    }

    /// Whether the secret key of that name is under a passphrase.
    ///
    /// # Errors
    /// As [`Keyring::secret`].
    pub fn needs_passphrase(&self, name: &str) -> Result<bool, KeyringError> {
        Ok(self.read_secret(name)?.contains("\nsealed: "))
    }

    /// The secret key of that name.
    ///
    /// # Errors
    /// If there is none, if others could have read it, or if the passphrase
    /// does not open it.
    pub fn secret(&self, name: &str, passphrase: Option<&[u8]>) -> Result<SecretKey, KeyringError> {
        let text = self.read_secret(name)?;
        let malformed = || KeyringError::Malformed(self.path(name, "key"));
        let (public, key) = parse(&text, passphrase)?.ok_or_else(malformed)?;
        let same = key.public().as_bytes().ct_eq(public.as_bytes());
        bool::from(same).then_some(key).ok_or_else(malformed)
    }

    /// The names of all keys, in order, and whether the secret part is there.
    ///
    /// # Errors
    /// If the directory cannot be read; one that does not exist is empty.
    pub fn names(&self) -> Result<Vec<(String, bool)>, KeyringError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error(&self.directory, error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| io_error(&self.directory, error))?;
            let file = entry.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".pub"));
            if let Some(name) = name.filter(|name| check_name(name).is_ok()) {
                names.push((name.to_owned(), self.path(name, "key").exists()));
            }
        }
        names.sort();
        Ok(names)
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    fn missing(&self, name: &str, path: PathBuf, error: io::Error) -> KeyringError {
        if error.kind() == io::ErrorKind::NotFound {
            return KeyringError::Missing {
                name: name.to_owned(),
                directory: self.directory.clone(),
            };
        }
        io_error(&path, error)
    }

    fn create_directory(&self) -> Result<(), KeyringError> {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|error| io_error(&self.directory, error))?;
        self.check_directory()
    }

    /// Whoever can write the directory can exchange the keys in it.
    fn check_directory(&self) -> Result<(), KeyringError> {
        let data =
            fs::metadata(&self.directory).map_err(|error| io_error(&self.directory, error))?;
        let exposed = |problem, hint| {
            Err(KeyringError::Exposed {
                path: self.directory.clone(),
                problem,
                hint,
            })
        };
        if data.uid() != rustix::process::geteuid().as_raw() {
            return exposed(
                "the directory of keys belongs to somebody else",
                "use one of your own",
            );
        }
        if data.mode() & 0o022 != 0 {
            return exposed("others can write to the directory of keys", "chmod 700 it");
        }
        Ok(())
    }

    /// Writes a new file whole, or not at all, and never over another.
    fn create(
        &self,
        name: &str,
        extension: &str,
        mode: u32,
        content: &[u8],
    ) -> Result<(), KeyringError> {
        let path = self.path(name, extension);
        let temporary = self.path(&format!(".{name}.{}", std::process::id()), extension);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&temporary)?;
            file.write_all(content)?;
            file.sync_all()?;
            // A link, unlike a renaming, does not replace what is there.
            fs::hard_link(&temporary, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        let written = write();
        let _ = fs::remove_file(&temporary);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyringError::Exists(name.to_owned()),
            _ => io_error(&path, error),
        })
    }

    fn read_secret(&self, name: &str) -> Result<Zeroizing<String>, KeyringError> {
        check_name(name)?;
        let path = self.path(name, "key");
        let file = File::open(&path).map_err(|error| self.missing(name, path.clone(), error))?;
        self.check_directory()?;
        let data = file.metadata().map_err(|error| io_error(&path, error))?;
        let exposed = |problem, hint| {
            Err(KeyringError::Exposed {
                path: path.clone(),
                problem,
                hint,
            })
        };
        if data.uid() != rustix::process::geteuid().as_raw() {
            return exposed("the key belongs to somebody else", "use a key of your own");
        }
        if data.mode() & 0o077 != 0 {
            return exposed(
                "others can read this secret key",
                "if nobody has, chmod 600 it; if somebody may have, make a new key",
            );
        }
        let mut text = Zeroizing::new(String::with_capacity(LARGEST as usize + 1));
        let read = file.take(LARGEST).read_to_string(&mut text);
        read.map_err(|error| io_error(&path, error))?;
        Ok(text)
    }
}

fn io_error(path: &Path, error: io::Error) -> KeyringError {
    KeyringError::Io {
        path: path.to_owned(),
        error,
    }
}

fn check_name(name: &str) -> Result<(), KeyringError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fine = !name.is_empty() && name.len() <= 64 && !name.starts_with('.');
    if fine && name.bytes().all(legal) {
        return Ok(());
    }
    Err(KeyringError::Name(name.to_owned()))
}

fn head(key: &SecretKey) -> String {
    format!("mullion-key 1\npublic: {}\n", key.public())
}

fn plain(key: &SecretKey) -> Zeroizing<String> {
    let mut digits = [0; 64];
    HEXLOWER.encode_mut(key.seed().as_ref(), &mut digits);
    // Room for all of it from the start, so that no copy is left behind.
    let mut text = Zeroizing::new(String::with_capacity(256));
    text.push_str(&head(key));
    text.push_str("secret: ");
    text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    text.push('\n');
    digits.zeroize();
    text
}

fn sealed(key: &SecretKey, passphrase: &[u8]) -> Result<Zeroizing<String>, KeyringError> {
    let mut random = [0; 40];
    getrandom::fill(&mut random).map_err(KeyError::Randomness)?;
    let (salt, nonce) = random.split_at(16);
    let (memory, passes, lanes) = KDF;
    let head = format!(
        "{}kdf: argon2id {memory} {passes} {lanes}\nsalt: {}\nnonce: {}\n",
        head(key),
        HEXLOWER.encode(salt),
        HEXLOWER.encode(nonce)
    );
    let sealing = seal::Box {
        kdf: KDF,
        salt,
        nonce,
        head: head.as_bytes(),
    };
    let box_ = sealing.seal(passphrase, key.seed().as_ref())?;
    Ok(Zeroizing::new(format!(
        "{head}sealed: {}\n",
        HEXLOWER.encode(&box_)
    )))
}

/// `None` if the file has another form.
fn parse(
    text: &str,
    passphrase: Option<&[u8]>,
) -> Result<Option<(PublicKey, SecretKey)>, KeyringError> {
    let mut lines = text.lines();
    let mut field = |label: &str| lines.next().and_then(|line| line.strip_prefix(label));
    if field("mullion-key 1") != Some("") {
        return Ok(None);
    }
    let Some(Ok(public)) = field("public: ").map(str::parse) else {
        return Ok(None);
    };
    if !text.contains("\nsealed: ") {
        return Ok(field("secret: ").and_then(seed_of).map(|key| (public, key)));
    }
    let (Some(kdf), Some(salt), Some(nonce), Some(sealed)) = (
        field("kdf: argon2id ").and_then(kdf_of),
        field("salt: ").and_then(bytes_of),
        field("nonce: ").and_then(bytes_of),
        field("sealed: ").and_then(bytes_of),
    ) else {
        return Ok(None);
    };
    if nonce.len() != 24 || kdf.0 > 1 << 20 || kdf.1 > 64 || kdf.2 > 16 {
        return Ok(None);
    }
    let passphrase = passphrase.ok_or(KeyringError::PassphraseNeeded)?;
    let head = &text[..text.find("sealed: ").unwrap_or(0)];
    let sealing = seal::Box {
        kdf,
        salt: &salt,
        nonce: &nonce,
        head: head.as_bytes(),
    };
    let opened = sealing.open(passphrase, &sealed)?;
    let seed: Option<&[u8; 32]> = opened.as_slice().try_into().ok();
    Ok(seed.map(|seed| (public, SecretKey::from_seed(seed))))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    HEXLOWER.decode(digits.as_bytes()).ok()
}

fn seed_of(digits: &str) -> Option<SecretKey> {
    let mut seed = Zeroizing::new([0; 32]);
    let length = HEXLOWER.decode_len(digits.len()).ok()?;
    if length != seed.len() {
        return None;
    }
    HEXLOWER.decode_mut(digits.as_bytes(), seed.as_mut()).ok()?;
    Some(SecretKey::from_seed(&seed))
}

fn kdf_of(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = text.split(' ').map(|number| number.parse().ok());
    let kdf = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(kdf)
}
