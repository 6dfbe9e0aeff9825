//! Modules that learn (`mullion word learn`): nothing is refused, and what would have been becomes a policy when the process ends.
//! Writes of fields become names of fields.

use crate::interface::interface;
use crate::layout;
use crate::walled::lock;
use mullion_symbols::Symbols;
use mullion_word_policy::{File, Learned};
use mullion_word_runtime::{Note, Want};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};

/// The folder that learnt policies are written to. Modules are not confined then.
const LEARN: &str = "MULLION_WORD_LEARN";

/// A module that learns.
pub(crate) struct Learning {
    to: PathBuf,
    /// What it has already.
    base: File,
    symbols: Mutex<Symbols>,
    learned: Mutex<Learned>,
}

static ALL: Mutex<Vec<Arc<Learning>>> = Mutex::new(Vec::new());

/// Whether modules are to learn, and into which folder.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os(LEARN)?;
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

impl Learning {
    /// A module's, as httpd calls it: `headers_module` writes `headers.toml`.
    pub(crate) fn new(folder: PathBuf, name: &str, base: File, symbols: Symbols) -> Arc<Learning> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: the function stays, as this library does.
            unsafe { libc::atexit(write_all) };
        });
        let stem = name.strip_suffix("_module").unwrap_or(name);
        let learning = Arc::new(Learning {
            to: folder.join(format!("{stem}.toml")),
            base,
            symbols: Mutex::new(symbols),
            learned: Mutex::default(),
        });
        lock(&ALL).push(Arc::clone(&learning));
        learning
    }

    /// Takes a note of the run time.
    pub(crate) fn note(&self, note: &Note<'_>) {
        let field = match note.want {
            Want::Access {
                address,
                write: true,
                ..
            } => field(address).map(|name| (name, address)),
            _ => None,
        };
        let mut learned = lock(&self.learned);
        match field {
            Some((function, address)) => {
                let want = Want::Call {
                    function,
                    address,
                    arguments: [0; 6],
                };
                learned.note(&Note { want, ..*note }, None);
            }
            None => learned.note(note, None),
        }
    }

    fn write(&self) -> std::io::Result<()> {
        let mut symbols = lock(&self.symbols);
        let mut place = |at: u64| {
            let place = symbols.find(at).into_iter().next()?;
            place.line.is_some().then(|| place.to_string())
        };
        let text = lock(&self.learned).policy(&self.base, interface(), &mut place);
        std::fs::write(&self.to, text)
    }
}

/// The field of a request, or of its connection, that an address is in, of those that the call was given.
fn field(at: u64) -> Option<&'static str> {
    let frame = crate::frame::now()?;
    let requests = frame
        .requests()
        .map(|r| ("request_rec", r, layout::REQUEST));
    let connections = frame.connections();
    let connections = connections.map(|c| ("conn_rec", c, layout::CONNECTION));
    for (structure, start, bytes) in requests.chain(connections) {
        if at.wrapping_sub(start) < bytes {
            return layout::field_at(structure, at - start);
        }
    }
    frame.requests().find_map(|r| {
        let walled = frame.walled;
        // SAFETY: the core's request, and its own list.
        let place = unsafe { layout::read(r + layout::R_REQUEST_CONFIG) } + 8 * walled.index();
        (at.wrapping_sub(place) < 8).then_some("request_rec.request_config")
    })
}

extern "C" fn write_all() {
    for learning in lock(&ALL).iter() {
        if let Err(error) = learning.write() {
            eprintln!("mullion: {}: {error}", learning.to.display());
        }
    }
}
