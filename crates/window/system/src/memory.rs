//! The program's own memory, which the run time checks: all within its window, up to its limit, and never executable.

use crate::caller::Caller;
use crate::stop::{of_address, of_mapping};
use mullion_calls::{Access, CallStop, Memory};
use mullion_runtime::{self as runtime, Claimed};

impl Memory for Caller<'_, '_> {
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), CallStop> {
        let piece = self.memory().piece(Claimed(at), to.len() as u64);
        piece.and_then(|piece| piece.read(to)).map_err(of_address)
    }

    fn read_string(&self, at: u64, most: usize) -> Result<Option<Vec<u8>>, CallStop> {
        let text = self.memory().read_string(Claimed(at), most);
        text.map_err(of_address)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), CallStop> {
        self.memory().write(Claimed(at), bytes).map_err(of_address)
    }

    fn set_heap_end(&self, end: u64) -> u64 {
        self.memory().set_heap_end(Claimed(end))
    }

    fn map(&self, at: Option<u64>, length: u64, access: Access) -> Result<u64, CallStop> {
        let mapped = self.memory().map(at.map(Claimed), length, pages(access));
        mapped.map_err(of_mapping)
    }

    fn unmap(&self, at: u64, length: u64) -> Result<(), CallStop> {
        let unmapped = self.memory().unmap(Claimed(at), length);
        unmapped.map_err(of_mapping)
    }

    fn protect(&self, at: u64, length: u64, access: Access) -> Result<(), CallStop> {
        let changed = self.memory().protect(Claimed(at), length, pages(access));
        changed.map_err(of_mapping)
    }

    fn discard(&self, at: u64, length: u64) -> Result<(), CallStop> {
        let discarded = self.memory().discard(Claimed(at), length);
        discarded.map_err(of_mapping)
    }

    fn mapped_as(&self, at: u64, length: u64) -> Result<Access, CallStop> {
        let access = self.memory().mapped_as(Claimed(at), length);
        Ok(match access.map_err(of_mapping)? {
            runtime::Access::None => Access::None,
            runtime::Access::Read | runtime::Access::ReadExecute => Access::Read,
            runtime::Access::ReadWrite => Access::ReadWrite,
        })
    }
}

impl Caller<'_, '_> {
    pub(crate) fn memory(&self) -> &runtime::Memory {
        self.caller.memory()
    }
}

fn pages(access: Access) -> runtime::Access {
    match access {
        Access::None => runtime::Access::None,
        Access::Read => runtime::Access::Read,
        Access::ReadWrite => runtime::Access::ReadWrite,
    }
}
