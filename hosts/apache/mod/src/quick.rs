//! Maps by addresses of the host's. No stranger chooses them in a way that would matter, so one multiplication is hash enough.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

pub(crate) type Map<V> = HashMap<u64, V, Quick>;

#[derive(Clone, Copy, Default)]
pub(crate) struct Quick(u64);

impl BuildHasher for Quick {
    type Hasher = Quick;

    fn build_hasher(&self) -> Quick {
        Quick(0)
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        let sum = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = sum ^ sum >> 32;
    }
}
