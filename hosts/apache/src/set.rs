//! Which of httpd's modules stand behind the wall in the suite and in measurements, and how a line of a configuration loads them.

use crate::{Maker, Module, Outcome, Protection, Setup, modules};
use mullion_fetch::{Lock, cache_directory, fetch};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

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
    maker: Maker,
    modules: Vec<Module>,
    protection: Protection,
    policies: PathBuf,
}

impl Set {
    /// Modules of httpd's source, made into the cache.
    ///
    /// # Errors
    /// The source or headers cannot be had.
    pub fn new(protection: Protection) -> Result<Set, Setup> {
        let lock = Lock::parse(include_str!("../../../sysroot/sources.toml"))?;
        let tree = fetch(lock.source("apache")?)?;
        let all = modules(&tree).map_err(|cause| Setup::Io(tree.clone(), cause))?;
        let maker = Maker::new(&tree, &all, &cache_directory()?.join("apache"))?;
        Ok(Set {
            maker,
            modules: all,
            protection,
            policies: Path::new(env!("CARGO_MANIFEST_DIR")).join("mod/policies"),
        })
    }

    /// The module's file and its policy's. The module is made if it is not there.
    ///
    /// # Errors
    /// There is no such module, or it cannot be made.
    pub fn files(&self, name: &str) -> Result<(PathBuf, PathBuf), Setup> {
        let none = || Setup::Generate(format!("there is no module {name}"));
        let mut all = self.modules.iter();
        let module = all.find(|module| module.name == name).ok_or_else(none)?;
        let row = self.maker.make(module, self.protection)?;
        if !matches!(row.outcome, Outcome::Verified { .. }) {
            return Err(Setup::Generate(format!("mod_{name} was not made")));
        }
        let own = self.policies.join(format!("{name}.toml"));
        let policy = match own.is_file() {
            true => own,
            false => self.policies.join("default.toml"),
        };
        Ok((self.maker.place(module, self.protection), policy))
    }

    /// Lines that load modules: `LoadModule` for Debian's own, or `MullionLoadModule`.
    ///
    /// # Errors
    /// As [`files`](Self::files).
    pub fn lines(&self, names: &[&str], walled: bool) -> Result<String, Setup> {
        let mut lines = String::new();
        for name in names {
            let _always = match walled {
                false => writeln!(lines, "LoadModule {name}_module {STOCK}/mod_{name}.so"),
                true => {
                    let (file, policy) = self.files(name)?;
                    let (file, policy) = (file.display(), policy.display());
                    writeln!(lines, "MullionLoadModule {name}_module {file} {policy}")
                }
            };
        }
        Ok(lines)
    }
}

/// `libmod_mullion.so` beside the program that runs, as Cargo builds it.
///
/// # Errors
/// It is not there.
pub fn library() -> Result<PathBuf, Setup> {
    let program = std::env::current_exe().map_err(|cause| Setup::Io("/proc".into(), cause))?;
    let library = program.with_file_name("libmod_mullion.so");
    match library.is_file() {
        true => Ok(library),
        false => Err(Setup::Generate(format!(
            "{} is not there: build it by `cargo build --release -p mullion-httpd`",
            library.display()
        ))),
    }
}
