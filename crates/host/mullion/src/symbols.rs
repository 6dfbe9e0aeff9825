//! What an image says of its names, lines and types, read when somebody first asks.

use mullion_symbols::{DebugSignature, Symbols, Unknown};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the debug information says of an export's type.
pub(crate) type Known = Result<Arc<DebugSignature>, Unknown>;

/// Of one image.
pub(crate) struct ImageSymbols {
    bytes: Arc<[u8]>,
    /// Whether debug information may be read.
    reads_debug_information: bool,
    symbols: Mutex<Option<Symbols>>,
    /// The types of exports that somebody has asked for, by the exports' offsets.
    signatures: Mutex<HashMap<u64, Known>>,
}

impl ImageSymbols {
    pub(crate) fn new(bytes: Arc<[u8]>, reads_debug_information: bool) -> Self {
        Self {
            bytes,
            reads_debug_information,
            symbols: Mutex::default(),
            signatures: Mutex::default(),
        }
    }

    pub(crate) fn with<R>(&self, use_them: impl FnOnce(&mut Symbols) -> R) -> R {
        let symbols = self.symbols.lock();
        let mut symbols = symbols.unwrap_or_else(PoisonError::into_inner);
        use_them(symbols.get_or_insert_with(|| {
            let bytes = self.bytes.clone();
            match self.reads_debug_information {
                true => Symbols::new(bytes),
                false => Symbols::without_debug_information(bytes),
            }
        }))
    }

    /// The type of the export at an offset.
    pub(crate) fn signature(&self, offset: u64) -> Known {
        let known = self.signatures.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let signature = self.with(|symbols| symbols.signature(offset));
            signature.map(Arc::new)
        };
        known.entry(offset).or_insert_with(read).clone()
    }
}
