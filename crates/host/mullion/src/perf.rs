//! `/tmp/perf-PID.map`: names for `perf`, of code that is in no file it knows.

use crate::symbols::ImageSymbols;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError};

/// The process's map, to which every domain adds its functions.
pub(crate) struct PerfMap {
    file: Mutex<File>,
}

/// `O_NOFOLLOW`: a link of somebody else's in `/tmp` leads nowhere.
const NO_FOLLOW: i32 = 0o400_000;

impl PerfMap {
    /// Opens it; without it, profiles lack names, and the log says why.
    pub(crate) fn open() -> Option<Self> {
        let path = format!("/tmp/perf-{}.map", std::process::id());
        let mut options = OpenOptions::new();
        options
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(NO_FOLLOW);
        match options.open(&path) {
            Ok(file) => Some(Self {
                file: Mutex::new(file),
            }),
            Err(error) => {
                tracing::warn!("{path}: {error}: profiles will lack names");
                None
            }
        }
    }

    /// Adds the functions of a domain whose window begins at `base`.
    pub(crate) fn add(&self, domain: &str, symbols: &ImageSymbols, base: u64) {
        let mut text = String::new();
        symbols.with(|symbols| {
            for function in symbols.functions().filter(|function| function.size > 0) {
                // Writing to a string does not fail.
                let _written = writeln!(
                    text,
                    "{:x} {:x} {} [{domain}]",
                    base.wrapping_add(function.offset),
                    function.size,
                    function.name
                );
            }
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = mullion_runtime::quietly(|| file.write_all(text.as_bytes()));
        // What logs may load a domain.
        drop(file);
        if let Err(error) = written {
            tracing::warn!("the map of functions for perf: {error}");
        }
    }
}
