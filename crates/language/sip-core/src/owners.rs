//! Who owns something: a process by its number and generation, or the host.

use std::sync::RwLock;

/// One life of a process. A number is used again by later processes; the pair never is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(C)]
pub struct Owner {
    index: u32,
    generation: u32,
}

impl Owner {
    /// All threads that are in no process: the host, and the kernel's own.
    pub const HOST: Owner = Owner {
        index: 0,
        generation: 0,
    };

    pub(crate) const fn new(index: u32, generation: u32) -> Owner {
        Owner { index, generation }
    }

    /// The process's place in the table: small, dense, 0 for the host. Fit to index a side table with.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Which life of that place; 0 for the host only.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Both in one number, for an atomic word; 0 for the host.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Owner::to_bits`]; an allegation, as good as where the bits come from.
    pub const fn from_bits(bits: u64) -> Owner {
        Owner {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// What is called when a process has ended, with its owner, once and in the order of registration.
///
/// It runs on the process's worker, in no process, after the last of its threads has stopped for good. That
/// is before its heap goes back and its number is given to another. It must not park and must not panic; it
/// may unpark. What it does costs the worker's other processes time, so it should cost what the process
/// owned.
pub type Teardown = fn(Owner);

__state!(RwLock<Vec<Teardown>> = RwLock::new(Vec::new()));

/// Has `hook` called at the end of every process from now on. The same function is registered once.
pub(crate) fn register(hook: Teardown) {
    let mut hooks = state()
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if !hooks.iter().any(|known| std::ptr::fn_addr_eq(*known, hook)) {
        hooks.push(hook);
    }
}

/// Calls them all.
pub(crate) fn tear_down(owner: Owner) {
    let hooks = state()
        .read()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for hook in hooks.iter() {
        hook(owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_back() {
        let owner = Owner {
            index: 7,
            generation: u32::MAX,
        };
        assert_eq!(Owner::from_bits(owner.to_bits()), owner);
        assert_eq!(Owner::from_bits(0), Owner::HOST);
    }
}
