//! Who has rights: a module.

use crate::memory::lock;
use crate::rights::{Raised, Rights};
use mullion_supervisor::{DomainId, Range, Subject};
use mullion_word_table::View;
use std::collections::HashMap;
use std::sync::Mutex;

/// One that rights are granted to. It is never freed: grants refer to it.
pub(crate) struct Holder {
    pub(crate) id: DomainId,
    /// To whom the supervisor grants.
    pub(crate) subject: Subject,
    pub(crate) view: View,
    pub(crate) rights: Mutex<Rights>,
    /// What allocators have given it.
    pub(crate) blocks: Mutex<Blocks>,
    /// What was handed over to it and is no block. It goes when the holder begins anew.
    pub(crate) taken: Mutex<Vec<(Range, Raised)>>,
}

/// A block that an allocator has given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    /// Which one ([`FunctionPolicy::allocator`](crate::FunctionPolicy::allocator)).
    pub(crate) allocator: &'static str,
}

/// Blocks by address, and what they come to.
#[derive(Default)]
pub(crate) struct Blocks {
    all: HashMap<u64, Held>,
    used: u64,
}

/// A block costs so many bytes besides its own: the allocator's, and our record of it. Without them blocks of no
/// bytes would have no limit.
const BLOCK: u64 = 64;

impl Blocks {
    pub(crate) fn add(&mut self, address: u64, held: Held) {
        let old = self.all.insert(address, held);
        self.used -= old.map_or(0, cost);
        self.used = self.used.saturating_add(cost(held));
    }

    pub(crate) fn remove(&mut self, address: u64) -> Option<Held> {
        let held = self.all.remove(&address)?;
        self.used = self.used.saturating_sub(cost(held));
        Some(held)
    }

    pub(crate) fn get(&self, address: u64) -> Option<Held> {
        self.all.get(&address).copied()
    }

    pub(crate) fn take_all(&mut self) -> Vec<(u64, Held)> {
        self.used = 0;
        self.all.drain().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Held)> {
        self.all.iter().map(|(at, held)| (*at, *held))
    }

    /// Whether there may be a block of so many bytes besides.
    pub(crate) fn has_room(&self, bytes: u64, limit: u64) -> bool {
        bytes.saturating_add(BLOCK) <= limit.saturating_sub(self.used)
    }
}

fn cost(held: Held) -> u64 {
    held.bytes.saturating_add(BLOCK)
}

impl Holder {
    pub(crate) fn new(id: DomainId, subject: Subject, view: View) -> Holder {
        Holder {
            id,
            subject,
            view,
            rights: Mutex::default(),
            blocks: Mutex::default(),
            taken: Mutex::default(),
        }
    }

    /// The block that an address is in.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u64, Held)> {
        let blocks = lock(&self.blocks);
        let mut all = blocks.iter();
        all.find(|(at, held)| (*at..at.saturating_add(held.bytes)).contains(&address))
    }
}
