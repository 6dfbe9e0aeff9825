//! Frames on their way through modules, several at a time.

use crate::frame::{self, Layout};
use std::time::Duration;

/// Frames that a module gets in one call (`PACKETS_BATCH`).
pub const BATCH: usize = 32;

/// A frame on its way.
#[derive(Debug, Default)]
pub struct Item {
    /// When it came in, since 1970.
    pub time: Duration,
    /// As it is now.
    pub bytes: Vec<u8>,
    /// Where its headers are.
    pub layout: Layout,
    /// A module has dropped it.
    pub is_dropped: bool,
    /// What modules have added: it goes behind this one, and meets no other module.
    pub added: Vec<Vec<u8>>,
    /// Memory of frames that have gone, for those that are added next.
    pub spare: Vec<Vec<u8>>,
}

impl Item {
    /// A frame that comes in: its bytes are there already.
    pub fn begin(&mut self) {
        self.layout = frame::layout(&self.bytes);
        self.is_dropped = false;
        if !self.added.is_empty() {
            self.spare.append(&mut self.added);
        }
    }

    /// What goes out in its place, in this order.
    pub fn out(&self) -> impl Iterator<Item = &[u8]> {
        let own = (!self.is_dropped).then_some(self.bytes.as_slice());
        own.into_iter().chain(self.added.iter().map(Vec::as_slice))
    }
}
