//! Which of httpd's modules stand behind the wall in the suite and in measurements, and how a line of a configuration loads them.

use crate::{Protection, Setup};
use mullion_fetch::cache_directory;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's own modules.
pub const STOCK: &str = "/usr/lib/apache2/modules";

/// Modules that Debian has, and that answer as the stock ones do (hosts/apache/README.md).
pub const WORKING: [&str; 110] = [
    "access_compat",
    "actions",
    "alias",
    "allowmethods",
    "asis",
    "auth_basic",
    "auth_digest",
    "auth_form",
    "authn_anon",
    "authn_core",
    "authn_dbd",
    "authn_dbm",
    "authn_file",
    "authn_socache",
    "authnz_fcgi",
    "authnz_ldap",
    "authz_core",
    "authz_dbd",
    "authz_dbm",
    "authz_groupfile",
    "authz_host",
    "authz_owner",
    "authz_user",
    "autoindex",
    "brotli",
    "bucketeer",
    "buffer",
    "cache",
    "cache_disk",
    "cache_socache",
    "case_filter",
    "case_filter_in",
    "cern_meta",
    "cgi",
    "charset_lite",
    "data",
    "dav",
    "dav_fs",
    "dav_lock",
    "dbd",
    "deflate",
    "dialup",
    "dir",
    "dumpio",
    "echo",
    "env",
    "expires",
    "ext_filter",
    "file_cache",
    "filter",
    "headers",
    "heartbeat",
    "heartmonitor",
    "ident",
    "imagemap",
    "include",
    "info",
    "lbmethod_bybusyness",
    "lbmethod_byrequests",
    "lbmethod_bytraffic",
    "lbmethod_heartbeat",
    "ldap",
    "log_debug",
    "log_forensic",
    "lua",
    "macro",
    "mime",
    "mime_magic",
    "negotiation",
    "proxy",
    "proxy_ajp",
    "proxy_balancer",
    "proxy_connect",
    "proxy_express",
    "proxy_fcgi",
    "proxy_fdpass",
    "proxy_ftp",
    "proxy_hcheck",
    "proxy_html",
    "proxy_http",
    "proxy_scgi",
    "proxy_uwsgi",
    "proxy_wstunnel",
    "ratelimit",
    "reflector",
    "remoteip",
    "reqtimeout",
    "request",
    "rewrite",
    "sed",
    "session",
    "session_cookie",
    "session_crypto",
    "session_dbd",
    "setenvif",
    "slotmem_plain",
    "slotmem_shm",
    "socache_dbm",
    "socache_memcache",
    "socache_redis",
    "socache_shmcb",
    "speling",
    "status",
    "substitute",
    "suexec",
    "unique_id",
    "userdir",
    "usertrack",
    "vhost_alias",
    "xml2enc",
];

/// Modules that cannot be in a server with all others. One needs a program with root's rights. The others answer in the place of
/// others, or for all requests.
pub const ALONE: [&str; 10] = [
    "authn_socache",
    "cern_meta",
    "cgi",
    "dialup",
    "heartbeat",
    "heartmonitor",
    "ident",
    "lbmethod_heartbeat",
    "slotmem_plain",
    "suexec",
];

/// Those that others need when they are loaded.
const FIRST: [&str; 11] = [
    "authz_core",
    "authn_core",
    "proxy",
    "cache",
    "dav",
    "dbd",
    "ldap",
    "session",
    "watchdog",
    "slotmem_shm",
    "socache_shmcb",
];

/// In an order in which modules can be loaded.
pub fn sort<S: AsRef<str>>(names: &mut [S]) {
    names.sort_by(|a, b| {
        let first = |name: &S| {
            let place = FIRST.iter().position(|first| *first == name.as_ref());
            place.unwrap_or(FIRST.len())
        };
        let order = first(a).cmp(&first(b));
        order.then_with(|| a.as_ref().cmp(b.as_ref()))
    });
}

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
