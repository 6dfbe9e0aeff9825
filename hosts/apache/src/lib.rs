//! Apache httpd's own modules behind the word wall: so far, all of them are made and verified (hosts/apache/README.md).
//!
//! ```text
//!   apt-get source apache2 ──► config.m4: modules and their files (tree.rs)
//!                                    │
//!   apache2-dev's headers ──► mullion cc --wall=word (make.rs) ──► verifier ──► a row of the table (row.rs)
//! ```
#![forbid(unsafe_code)]

mod inside;
mod make;
mod page;
mod row;
mod set;
mod tree;

pub use inside::{add_own, complete, reads};
pub use make::{Maker, Protection, Setup};
pub use page::{page, policies};
pub use row::{Outcome, Row, print};
pub use set::{ALONE, DEFAULT, STOCK, Set, WORKING, library, sort};
pub use tree::{Module, modules};

use mullion_driver::{Arguments, Language, assemble, compile, link};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What gcc and [`Maker`] start this very program for, by its name or its first argument. None: the program's own task.
#[must_use]
pub fn tool() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let done = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ if arguments.next()? == make::COMPILE => {
            let line: Vec<OsString> = arguments.collect();
            let parsed = Arguments::parse(&line);
            let compiled = parsed.and_then(|line| compile(Language::C, &line));
            compiled.map(|compiled| ExitCode::from(compiled.code))
        }
        _ => return None,
    };
    Some(done.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    }))
}
