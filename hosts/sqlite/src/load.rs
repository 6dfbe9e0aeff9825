//! From a module's file and its policy to an extension that SQLite has.

use crate::table::Offered;
use crate::walled::{Handle, Walled, gate};
use mullion_bridge::{LoadError, Request};
use mullion_word_policy::File;
use mullion_word_runtime::Domain;
use std::ffi::c_int;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// SQLite's functions as policies speak of them.
pub(crate) const INTERFACE: &str = include_str!("../sqlite3.toml");

const BUSY: c_int = 5;

/// Files that are loaded with this library, separated by colons.
pub(crate) const LOAD: &str = "MULLION_SQLITE_LOAD";

/// What a module's heap may grow to, if its policy does not say.
const MEMORY: u64 = 64 << 20;

/// Why an extension was not loaded.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Heap(#[from] mullion_bridge::HeapError),
    #[error("{0}")]
    Grant(#[from] mullion_word_runtime::GrantError),
    #[error("no memory for SQLite's table: {0}")]
    Table(std::io::Error),
    #[error(
        "{0} has no entry: a function `sqlite3_NAME_init`, or the one that its policy names by `entry`"
    )]
    Entry(String),
    #[error("{0}")]
    Started(String),
    #[error(
        "{0} replaces a function or a collation, and SQLite replaces none while a statement runs: \
        name its file in {LOAD} before `.load`"
    )]
    Busy(String),
}

/// An extension, with what loads it again.
pub(crate) struct Extension {
    pub(crate) walled: &'static Walled,
    entry: u64,
    table: usize,
}

/// All that were loaded.
static ALL: Mutex<Vec<Extension>> = Mutex::new(Vec::new());

// SAFETY: SQLite lets one thread at a time into a connection, and an extension is used by the callbacks of one alone.
unsafe impl Send for Extension {}

pub(crate) fn all() -> MutexGuard<'static, Vec<Extension>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads an extension for a connection. Its policy lies beside it, if none is named.
pub(crate) fn load(db: Handle, path: &Path, policy: Option<&Path>) -> Result<(), Error> {
    let offered = Offered::get().map_err(Error::Table)?;
    let request = Request {
        path,
        policy,
        interface: INTERFACE,
        resolve: &mut resolve,
        name_of: |address| Offered::get().ok()?.name(address as usize),
        always: &[],
        time: None,
    };
    let (loaded, ()) = mullion_bridge::wall(request, &[INTERFACE], |_| Ok(()))?;
    let (name, file, domain) = (loaded.name, loaded.file, loaded.domain);
    let entry = entry_of(&file, &loaded.stem, &loaded.verified);
    let entry = entry.and_then(|entry| domain.function(&entry));
    let entry = entry.ok_or_else(|| Error::Entry(name.clone()))? as u64;
    let (table, bytes_of_table) = (offered.table(), Offered::bytes());
    // SAFETY: it is only read, and stays.
    unsafe { loaded.host.grant(&domain, table, bytes_of_table, false)? };
    let memory = file.limits.memory.unwrap_or(MEMORY);
    let sql = file.groups.get("statements");
    let sql = sql.map(|words| words.iter().map(|word| word.to_uppercase()).collect());
    let (host, symbols) = (loaded.host, loaded.symbols);
    let walled = Walled::new(&name, domain, host, memory, db, sql, symbols)?;
    let extension = Extension {
        walled,
        entry,
        table,
    };
    let started = extension.start();
    all().push(extension);
    started
}

/// SQLite's functions, and the C library's.
fn resolve(name: &str) -> Option<usize> {
    let offered = Offered::get().ok()?.find(name);
    offered.or_else(|| {
        let name = std::ffi::CString::new(name).ok()?;
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found as usize)
    })
}

/// The entry that the policy names, the one that SQLite would look for by the file's name, or the only one.
fn entry_of(file: &File, stem: &str, verified: &mullion_word_verifier::Verified) -> Option<String> {
    if let Some(entry) = &file.entry {
        return Some(entry.clone());
    }
    let is_entry = |name: &str| name.starts_with("sqlite3_") && name.ends_with("_init");
    let defined = verified
        .symbols()
        .filter(|(_, symbol)| symbol.address.is_some());
    let names = defined.map(|(_, symbol)| symbol.name.to_owned());
    let entries: Vec<String> = names.filter(|name| is_entry(name)).collect();
    let letters = stem.chars().filter(char::is_ascii_alphabetic);
    let usual: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let usual = format!("sqlite3_{usual}_init");
    match entries.contains(&usual) || entries.len() != 1 {
        true => Some(usual),
        false => entries.into_iter().next(),
    }
}

impl Extension {
    /// Calls its entry.
    fn start(&self) -> Result<(), Error> {
        let walled = self.walled;
        let mut said = None;
        let code = walled.enter(std::ptr::null_mut(), &[], |frame| {
            let message = frame.walled.lend_words(&[0])?;
            let entry = gate!(self.entry, fn(Handle, u64, u64) -> c_int);
            let code = entry(walled.db, message, self.table as u64);
            let at = walled.read(message).ok()?;
            if at != 0 {
                said = walled.c_string(at).ok();
            }
            Some(code)
        });
        match code {
            // SQLITE_OK, and SQLITE_OK_LOAD_PERMANENTLY, which says that the file must stay: it does.
            Some(0 | 256) => Ok(()),
            Some(BUSY) => Err(Error::Busy(walled.name.clone())),
            Some(code) => {
                let said = said.map(|said| format!(": {}", said.to_string_lossy()));
                let said = said.unwrap_or_default();
                let name = &walled.name;
                Err(Error::Started(format!(
                    "{name}'s entry answers with error {code}{said}"
                )))
            }
            None => Err(Error::Started(walled.fault())),
        }
    }

    /// Begins anew.
    pub(crate) fn restart(&self) -> Result<(), Error> {
        self.walled.restart().map_err(Error::Started)?;
        self.start()
    }
}

impl From<&Extension> for Domain {
    fn from(extension: &Extension) -> Domain {
        extension.walled.domain
    }
}
