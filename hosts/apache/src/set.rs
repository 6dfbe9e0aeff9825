//! Which of httpd's modules stand behind the wall in the suite and in measurements, and how a line of a configuration loads them.

use crate::{Protection, Setup};
use mullion_fetch::cache_directory;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's own modules.
pub const STOCK: &str = "/usr/lib/apache2/modules";

/// Modules that answer as the stock ones do (hosts/apache/README.md).
pub const WORKING: [&str; 45] = [
    "access_compat",
    "actions",
    "alias",
    "allowmethods",
    "asis",
    "auth_basic",
    "authn_anon",
    "authn_core",
    "authn_file",
    "authz_groupfile",
    "authz_host",
    "authz_owner",
    "authz_user",
    "autoindex",
    "brotli",
    "buffer",
    "cern_meta",
    "charset_lite",
    "data",
    "deflate",
    "dir",
    "dumpio",
    "env",
    "expires",
    "headers",
    "imagemap",
    "include",
    "log_debug",
    "log_forensic",
    "mime",
    "negotiation",
    "ratelimit",
    "reflector",
    "remoteip",
    "reqtimeout",
    "rewrite",
    "sed",
    "setenvif",
    "speling",
    "status",
    "substitute",
    "unique_id",
    "userdir",
    "usertrack",
    "vhost_alias",
];

/// Those of them that Debian loads by default.
pub const DEFAULT: [&str; 13] = [
    "access_compat",
    "alias",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_host",
    "authz_user",
    "autoindex",
    "deflate",
    "dir",
    "env",
    "mime",
    "negotiation",
];

/// Modules made for the wall, with their policies.
pub struct Set {
    folder: PathBuf,
    protection: Protection,
    policies: PathBuf,
}

fn beside(name: &str, how: &str) -> Result<PathBuf, Setup> {
    let program = std::env::current_exe().map_err(|cause| Setup::Io("/proc".into(), cause))?;
    let file = program.with_file_name(name);
    match file.is_file() {
        true => Ok(file),
        false => Err(Setup::Generate(format!(
            "{} is not there: {how}",
            file.display()
        ))),
    }
}

impl Set {
    /// Modules of httpd's source, which `apache-modules` makes into the cache if they are not there.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn new(protection: Protection, names: &[&str]) -> Result<Set, Setup> {
        let maker = beside(
            "apache-modules",
            "build it by `cargo build --release -p mullion-apache`",
        )?;
        let mut make = Command::new(&maker);
        make.args(["--protection", protection.name()]).args(names);
        let output = make.output().map_err(|cause| Setup::Io(maker, cause))?;
        if !output.status.success() {
            let said = [&output.stdout[..], &output.stderr[..]].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            return Err(Setup::Generate(said));
        }
        Ok(Set {
            folder: cache_directory()?.join("apache"),
            protection,
            policies: Path::new(env!("CARGO_MANIFEST_DIR")).join("mod/policies"),
        })
    }

    /// The module's file and its policy's.
    #[must_use]
    pub fn files(&self, name: &str) -> (PathBuf, PathBuf) {
        let own = self.policies.join(format!("{name}.toml"));
        let policy = match own.is_file() {
            true => own,
            false => self.policies.join("default.toml"),
        };
        let file = format!("mod_{name}.{}.so", self.protection.name());
        (self.folder.join(file), policy)
    }

    /// Lines that load modules: `LoadModule` for Debian's own, or `MullionLoadModule`.
    #[must_use]
    pub fn lines(&self, names: &[&str], walled: bool) -> String {
        let mut lines = String::new();
        for name in names {
            let _always = match walled {
                false => writeln!(lines, "LoadModule {name}_module {STOCK}/mod_{name}.so"),
                true => {
                    let (file, policy) = self.files(name);
                    let (file, policy) = (file.display(), policy.display());
                    writeln!(lines, "MullionLoadModule {name}_module {file} {policy}")
                }
            };
        }
        lines
    }
}

/// `libmod_mullion.so` as Cargo's profile `server` makes it, or beside the program that runs.
///
/// # Errors
/// It is not there.
pub fn library() -> Result<PathBuf, Setup> {
    const FILE: &str = "libmod_mullion.so";
    let how =
        "build it by `cargo rustc --profile server -p mullion-httpd --lib --crate-type cdylib`";
    beside(&format!("../server/{FILE}"), how).or_else(|_| beside(FILE, how))
}
