//! User-Mode Linux, and its modules behind the word wall (hosts/linux/README.md).
//!
//! ```text
//!   apt-get download linux-source-6.1 ──► tree, patched ──► ./linux, modules   (kernel.rs)
//!                                                  │
//!   the flags of each module's own compilation ────┴──► mullion cc --wall=word ──► verifier   (modules.rs)
//!                                                                     │
//!   the module with the same name and exports ◄── exports, policy ────┘   (stand.rs)
//!   an initial file system, and a boot   (boot.rs);  work for walled modules   (disk.rs)
//! ```
#![forbid(unsafe_code)]

mod boot;
mod disk;
mod draft;
mod faults;
pub mod images;
mod keeper;
mod kernel;
mod machine;
mod modules;
mod prototypes;
mod report;
mod row;
mod search;
mod series;
mod shares;
mod stand;
mod subject;
mod trial;

pub use boot::{Boot, archive};
pub use disk::{ALGORITHMS, Disk, took};
pub use draft::draft;
pub use faults::{Fault, KINDS, Kind, inject};
pub use kernel::{Built, Setup, missing};
pub use machine::{Instead, Machine, Work};
pub use modules::{Maker, Module, Protection};
pub use prototypes::prototypes;
pub use report::report;
pub use row::{Outcome, Row, print};
pub use search::{Finding, Search};
pub use series::{Next, Series};
pub use stand::stand;
pub use subject::{Form, SUBJECTS, Subject, fresh_disk, is_sound};
pub use trial::{End, Trial, Trials, mondrix, table};

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
        _ if arguments.next()? == modules::COMPILE => {
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
