//! What hosts of the word wall are built with: modules from files, whose reports have lines of the source, and the
//! interface in C (`include/mullion_word.h`). Hosts in Rust use [`read`] and the run time itself ([`runtime`]).
//!
//! ```no_run
//! use mullion_word::runtime::{Host, Policy};
//!
//! let host = Host::new()?;
//! let module = mullion_word::read("counter.so".as_ref())?;
//! let domain = host.load(&module, Policy::new().allocators())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! lib.rs      modules, verified, with their lines
//! c.rs        the functions of the header, each guarded: no panic leaves it
//! table.rs    handles: numbers with a generation, checked at each use
//! status.rs   statuses; what went wrong last on this thread
//! effect.rs   rows of policies, as C lays them out
//! report.rs   reports and notes, as C lays them out
//! traces.rs   traces for the hardware model, with the feature `traces`
//! ```

mod c;
mod effect;
mod report;
mod status;
mod table;
#[cfg(feature = "traces")]
mod traces;

pub use mullion_mmp::log::{LogTraceError, RunEvent, write_run, write_trace};
pub use mullion_word_runtime as runtime;
#[cfg(feature = "traces")]
pub use mullion_word_trace as trace;

use mullion_symbols::Symbols;
use mullion_word_verifier::verify;
use runtime::{Module, ModuleError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Why there is no module.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The verifier does not accept it.
    #[error("it is not confined: {0}")]
    Rejected(String),
    /// It cannot be laid out.
    #[error("{0}")]
    Module(#[from] ModuleError),
}

/// A module from a file, under the file's name.
pub fn read(file: &Path) -> Result<Arc<Module>, OpenError> {
    let name = file.file_name().unwrap_or(file.as_os_str());
    module(&name.to_string_lossy(), std::fs::read(file)?)
}

/// A module from the content of its file. Its debug information is read when a report first needs it; it decides
/// nothing, and is read within bounds.
pub fn module(name: &str, bytes: Vec<u8>) -> Result<Arc<Module>, OpenError> {
    let content: Arc<[u8]> = bytes.clone().into();
    let verified = verify(bytes).map_err(|rejected| OpenError::Rejected(rejected.to_string()))?;
    let module = Module::new(name, &verified)?;
    let symbols: Arc<Mutex<Option<Symbols>>> = Arc::default();
    let (of_lines, of_fields) = (Arc::clone(&content), content);
    let fields = Arc::clone(&symbols);
    module.set_lines(move |instruction| {
        let mut symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
        let symbols = symbols.get_or_insert_with(|| Symbols::new(Arc::clone(&of_lines)));
        let places = symbols.find(instruction);
        let place = places.iter().find(|place| place.line.is_some())?;
        Some(format!("{}:{}", place.file.as_deref()?, place.line?).into())
    });
    module.set_fields(move |reach| {
        let mut symbols = fields.lock().unwrap_or_else(PoisonError::into_inner);
        let symbols = symbols.get_or_insert_with(|| Symbols::new(Arc::clone(&of_fields)));
        symbols.reached_field(reach)
    });
    Ok(module)
}
