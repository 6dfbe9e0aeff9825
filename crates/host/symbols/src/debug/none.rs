//! No debug information: this is compiled without what reads it.

use crate::elf::Elf;
use crate::{CodeState, DebugField, DebugSignature, Location, Symbols, Unknown};

/// There is none of it.
pub(crate) enum Debug {}

impl Debug {
    pub(crate) fn new(_: &Elf) -> Option<Self> {
        None
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        match *self {}
    }

    pub(crate) fn steps(&self) -> u64 {
        match *self {}
    }
}

impl Symbols {
    pub(crate) fn locations_of(&mut self, _: u64) -> Vec<Location> {
        Vec::new()
    }

    pub(crate) fn field_at(&mut self, _: u64, _: &CodeState<'_>, _: u64) -> Option<DebugField> {
        None
    }

    pub(crate) fn global_at(&mut self, _: u64, _: &str, _: u64) -> Option<DebugField> {
        None
    }

    pub(crate) fn signature_of(&mut self, _: u64) -> Result<DebugSignature, Unknown> {
        Err(Unknown::NotRead)
    }
}
