//! Who may load, of a loader that serves.

use mullion_loader::Authoriser;
use std::sync::{Arc, PoisonError, RwLock};

/// The authoriser that a loader asks about each load. It may be replaced while the
/// loader runs. Requests that are being decided keep the one that they began with, and what is
/// loaded stays loaded.
#[derive(Clone)]
pub struct Rules(Arc<RwLock<Arc<Authoriser>>>);

impl Rules {
    /// Asks this one.
    #[must_use]
    pub fn new(authoriser: Authoriser) -> Self {
        Rules(Arc::new(RwLock::new(Arc::new(authoriser))))
    }

    /// Asks another one from now on.
    pub fn replace(&self, authoriser: Authoriser) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(authoriser);
    }

    pub(crate) fn now(&self) -> Arc<Authoriser> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
