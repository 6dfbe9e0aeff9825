//! Makes one module: the driver compiles and links it in a process of its own, and the verifier reads it.
//!
//! A folder keeps each module with what it was made from. So a run that was interrupted goes on, and the next one
//! makes only what has changed.

use crate::row::{Outcome, Row};
use crate::tree::Module;
use mullion_fetch::{FetchError, digest};
use mullion_word_verifier::verify;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// The first argument with which [`Maker`] starts its own program as a compiler.
pub(crate) const COMPILE: &str = "--as-compiler";

/// Debian's packages with the headers that all modules need, and a header of each.
const HEADERS: [(&str, &str); 3] = [
    ("/usr/include/apache2/httpd.h", "apache2-dev"),
    ("/usr/include/apr-1.0/apr.h", "libapr1-dev"),
    ("/usr/include/apr-1.0/apu.h", "libaprutil1-dev"),
];

/// Folders of headers; the last one is for single modules, which are not made without it.
const FOLDERS: [&str; 3] = [
    "/usr/include/apache2",
    "/usr/include/apr-1.0",
    "/usr/include/libxml2",
];

/// As Debian's packages and httpd's `configure` have them.
const OPTIONS: [&str; 9] = [
    "-O2",
    "-g1",
    "-w",
    "-D_GNU_SOURCE",
    "-DLINUX",
    "-D_REENTRANT",
    "-DH2_OPENSSL",
    "-DLUA_COMPAT_5_2",
    "-DLUA_USE_POSIX",
];

/// Why nothing can be made.
#[derive(Debug, Error)]
pub enum Setup {
    /// Headers are missing.
    #[error("Debian's packages {0} are needed")]
    Headers(String),
    /// The source cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file or a program fails.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// httpd's own generator of a header fails.
    #[error("{0}")]
    Generate(String),
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Stores alone.
    Write,
    /// Loads and stores.
    ReadWrite,
}

impl Protection {
    /// As the driver's option has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protection::Write => "write",
            Protection::ReadWrite => "read-write",
        }
    }
}

/// Makes modules of one tree into one folder.
pub struct Maker {
    folder: PathBuf,
    includes: Vec<String>,
    /// Of this program, which is the compiler too, and of the headers' version.
    base: String,
}

impl Maker {
    /// For the modules of the tree, which are made in the folder.
    ///
    /// # Errors
    /// Headers are missing, files cannot be written.
    pub fn new(tree: &Path, modules: &[Module], folder: &Path) -> Result<Maker, Setup> {
        let missing: Vec<&str> = HEADERS
            .iter()
            .filter(|(header, _)| !Path::new(header).is_file())
            .map(|(_, package)| *package)
            .collect();
        if !missing.is_empty() {
            return Err(Setup::Headers(missing.join(", ")));
        }
        fs::create_dir_all(folder).map_err(|cause| Setup::Io(folder.into(), cause))?;
        let program = std::env::current_exe().map_err(|cause| Setup::Io("/proc".into(), cause))?;
        let release = Path::new("/usr/include/apache2/ap_release.h");
        let mut maker = Maker {
            folder: folder.to_path_buf(),
            includes: Vec::new(),
            base: format!("{}\n{}\n", digest(&program)?, digest(release)?),
        };
        maker.generate(tree)?;
        let stock = FOLDERS
            .iter()
            .flat_map(|place| ["-I".into(), (*place).into()]);
        maker.includes.extend(stock);
        // A module's private headers, and those of modules that it belongs to, which Debian does not install.
        let folders: BTreeSet<&Path> = modules
            .iter()
            .flat_map(|module| module.files.iter().filter_map(|file| file.parent()))
            .collect();
        for place in folders.into_iter().chain([folder]) {
            let place = place.display().to_string();
            maker.includes.extend(["-idirafter".into(), place]);
        }
        Ok(maker)
    }

    /// `test_char.h`, which httpd's build makes by a program of its own.
    fn generate(&self, tree: &Path) -> Result<(), Setup> {
        let header = self.folder.join("test_char.h");
        if header.is_file() {
            return Ok(());
        }
        let program = self.folder.join("gen_test_char");
        let mut gcc = Command::new("gcc");
        gcc.args(["-w", "-DCROSS_COMPILE"])
            .arg(tree.join("server/gen_test_char.c"));
        gcc.arg("-o").arg(&program);
        let run = |command: &mut Command| {
            let output = command
                .output()
                .map_err(|cause| Setup::Io(command.get_program().into(), cause))?;
            match output.status.success() {
                true => Ok(output.stdout),
                false => Err(Setup::Generate(first_line(&output.stderr))),
            }
        };
        run(&mut gcc)?;
        let text = run(&mut Command::new(&program))?;
        fs::write(&header, text).map_err(|cause| Setup::Io(header, cause))
    }

    /// Where a module is, once it has been made.
    #[must_use]
    pub fn place(&self, module: &Module, protection: Protection) -> PathBuf {
        let name = format!("mod_{}.{}.so", module.name, protection.name());
        self.folder.join(name)
    }

    /// Makes a module, unless that was done already, and verifies it.
    ///
    /// # Errors
    /// Files or programs fail; a module that cannot be made is an outcome.
    pub fn make(&self, module: &Module, protection: Protection) -> Result<Row, Setup> {
        let row = |outcome| Row {
            name: module.name.clone(),
            protection: protection.name(),
            outcome,
        };
        let place = self.place(module, protection);
        // Another process may be making it.
        let lock = place.with_extension("lock");
        let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _made = lock.map_err(|cause| Setup::Io(place.clone(), cause))?;
        let key = self.key(module)?;
        let key_place = place.with_extension("key");
        let known = place.is_file() && fs::read_to_string(&key_place).is_ok_and(|old| old == key);
        if !known {
            let _absent = fs::remove_file(&key_place);
            if let Some(why) = self.compile(module, protection, &place)? {
                return Ok(row(Outcome::NotMade(why)));
            }
            fs::write(&key_place, key).map_err(|cause| Setup::Io(key_place, cause))?;
        }
        let bytes = fs::read(&place).map_err(|cause| Setup::Io(place, cause))?;
        Ok(row(outcome(bytes)))
    }

    /// All that a module depends on, but for headers of the tree and of other packages.
    fn key(&self, module: &Module) -> Result<String, Setup> {
        let mut key = self.base.clone();
        for file in module.files.iter().filter(|file| file.is_file()) {
            key.push_str(&digest(file)?);
            key.push('\n');
        }
        Ok(key)
    }

    /// Why it cannot be made, or none.
    fn compile(
        &self,
        module: &Module,
        protection: Protection,
        place: &Path,
    ) -> Result<Option<String>, Setup> {
        let program = std::env::current_exe().map_err(|cause| Setup::Io("/proc".into(), cause))?;
        let mut command = Command::new(&program);
        command.args([COMPILE, "--wall=word"]);
        command.arg(format!("--protection={}", protection.name()));
        command.args(OPTIONS).args(&self.includes);
        command.args(&module.files).arg("-o").arg(place);
        let output = command
            .output()
            .map_err(|cause| Setup::Io(program, cause))?;
        Ok((!output.status.success()).then(|| first_line(&output.stderr)))
    }
}

fn outcome(bytes: Vec<u8>) -> Outcome {
    match verify(bytes) {
        Ok(verified) => Outcome::Verified {
            functions: verified.imports().len(),
            addresses: verified
                .symbols()
                .filter(|(_, symbol)| symbol.address.is_none() && !symbol.name.is_empty())
                .count(),
            gates: verified.gates().len(),
            checks: verified.stats().checks,
            code: verified.growth(),
        },
        Err(rejected) => Outcome::Rejected(rejected.to_string()),
    }
}

/// The first line that is about an error, or the first one.
fn first_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said).into_owned();
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let first = lines.clone().next().unwrap_or("it does not say why");
    let telling = lines.find(|line| line.contains("error") || line.starts_with("mullion: "));
    telling.unwrap_or(first).to_owned()
}
