//! Who has rights: a module, or an instance of it.

use crate::memory::lock;
use crate::rights::Raised;
use mullion_supervisor::{DomainId, Range, Subject};
use mullion_word_table::View;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One that rights are granted to. It is never freed: grants refer to it.
pub(crate) struct Holder {
    pub(crate) id: DomainId,
    /// Whether it is an instance: what its module has is not its own.
    pub(crate) is_instance: bool,
    /// To whom the supervisor grants.
    pub(crate) subject: Subject,
    pub(crate) view: View,
    /// What allocators have given it.
    pub(crate) blocks: Mutex<Blocks>,
    /// Regions for data stacks that threads have left.
    pub(crate) stacks: Mutex<Vec<u64>>,
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

/// Blocks by address. What they come to is counted for a module and its instances together.
#[derive(Default)]
pub(crate) struct Blocks {
    all: HashMap<u64, Held>,
    used: Arc<AtomicU64>,
}

/// A block costs so many bytes besides its own: the allocator's, and our record of it. Without them blocks of no
/// bytes would have no limit.
const BLOCK: u64 = 64;

impl Blocks {
    pub(crate) fn add(&mut self, address: u64, held: Held) {
        let old = self.all.insert(address, held);
        self.used.fetch_sub(old.map_or(0, cost), Ordering::Relaxed);
        self.used.fetch_add(cost(held), Ordering::Relaxed);
    }

    pub(crate) fn remove(&mut self, address: u64) -> Option<Held> {
        let held = self.all.remove(&address)?;
        self.used.fetch_sub(cost(held), Ordering::Relaxed);
        Some(held)
    }

    pub(crate) fn get(&self, address: u64) -> Option<Held> {
        self.all.get(&address).copied()
    }

    pub(crate) fn take_all(&mut self) -> Vec<(u64, Held)> {
        let all: Vec<(u64, Held)> = self.all.drain().collect();
        let cost = all.iter().map(|(_, held)| cost(*held)).sum();
        self.used.fetch_sub(cost, Ordering::Relaxed);
        all
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Held)> {
        self.all.iter().map(|(at, held)| (*at, *held))
    }

    /// Whether there may be a block of so many bytes besides.
    pub(crate) fn has_room(&self, bytes: u64, limit: u64) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        bytes.saturating_add(BLOCK) <= limit.saturating_sub(used)
    }
}

fn cost(held: Held) -> u64 {
    held.bytes.saturating_add(BLOCK)
}

impl Holder {
    pub(crate) fn new(id: DomainId, subject: Subject, view: View) -> Holder {
        Holder {
            id,
            is_instance: false,
            subject,
            view,
            blocks: Mutex::default(),
            stacks: Mutex::default(),
            taken: Mutex::default(),
        }
    }

    /// An instance of the module `other`. Their blocks are counted together.
    pub(crate) fn instance_of(mut self, other: &Holder) -> Holder {
        let used = Arc::clone(&lock(&other.blocks).used);
        lock(&self.blocks).used = used;
        self.is_instance = true;
        self
    }

    /// The block that an address is in.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u64, Held)> {
        let blocks = lock(&self.blocks);
        let mut all = blocks.iter();
        all.find(|(at, held)| (*at..at.saturating_add(held.bytes)).contains(&address))
    }
}
