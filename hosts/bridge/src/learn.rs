//! Modules that learn: nothing is refused, and what would have been becomes a policy when the process ends.

use mullion_symbols::Symbols;
use mullion_word_policy::{File, Interface, Learned};
use mullion_word_runtime::{Note, Want};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// The folder that learnt policies are written to. Modules are not confined then.
const LEARN: &str = "MULLION_WORD_LEARN";

type Names = (Vec<File>, fn(u64) -> Option<&'static str>);

/// A module that learns.
pub(crate) struct Learning {
    /// Where its policy is written.
    to: PathBuf,
    base: File,
    /// The host's functions as policies speak of them, and their names by address.
    names: Names,
    symbols: Mutex<Symbols>,
    learned: Mutex<Learned>,
}

static ALL: Mutex<Vec<Arc<Learning>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether modules are to learn, and into which folder.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(LEARN)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
}

impl Learning {
    /// A module's, by the name of its file.
    pub(crate) fn new(
        folder: PathBuf,
        stem: &str,
        base: File,
        symbols: Symbols,
        names: Names,
    ) -> Arc<Learning> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: the function stays, as this library does.
            unsafe { libc::atexit(write_all) };
        });
        let learning = Arc::new(Learning {
            to: folder.join(format!("{stem}.toml")),
            base,
            names,
            symbols: Mutex::new(symbols),
            learned: Mutex::default(),
        });
        lock(&ALL).push(Arc::clone(&learning));
        learning
    }

    /// Takes a note of the run time.
    pub(crate) fn note(&self, note: &Note<'_>) {
        let name = match note.want {
            Want::Call { address, .. } => (self.names.1)(address),
            _ => None,
        };
        lock(&self.learned).note(note, name);
    }

    fn write(&self) -> std::io::Result<()> {
        let mut symbols = lock(&self.symbols);
        let mut place = |at: u64| {
            let place = symbols.find(at).into_iter().next()?;
            place.line.is_some().then(|| place.to_string())
        };
        let text =
            lock(&self.learned).policy(&self.base, &Interface::new(&self.names.0), &mut place);
        std::fs::write(&self.to, text)
    }
}

extern "C" fn write_all() {
    for learning in lock(&ALL).iter() {
        if let Err(error) = learning.write() {
            eprintln!("mullion: {}: {error}", learning.to.display());
        }
    }
}
