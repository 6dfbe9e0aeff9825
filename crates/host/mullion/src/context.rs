//! What host functions find of the domain that has called.

use crate::heap::Heap;
use crate::identity::Identity;
use std::sync::Arc;

/// What every call from a domain needs to know of it, for as long as it has this
/// window.
pub(crate) struct Context {
    pub(crate) identity: Arc<Identity>,
    pub(crate) heap: Arc<Heap>,
}
