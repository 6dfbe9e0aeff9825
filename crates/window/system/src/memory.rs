//! Memory of the program's own: brk, mmap, munmap, mremap, mprotect, madvise.
//! All within its window, up to its limit, and never executable.

use crate::answer::{Answer, Stop};
use crate::call::Call;
use mullion_runtime::{Access, Claimed, PAGE};
use rustix::io::Errno;

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MREMAP_MAYMOVE: u64 = 1;
const MADV_DONTNEED: i32 = 4;
/// Bytes copied at a time when a mapping moves.
const PIECE: usize = 1 << 20;

pub(crate) fn brk(call: &Call<'_, '_>) -> Answer {
    Ok(call.mappings().set_heap_end(call.pointer(0)))
}

fn access(protection: u64) -> Result<Access, Stop> {
    if protection & PROT_EXEC != 0 {
        return Err(Errno::ACCESS.into());
    }
    Ok(match protection & (PROT_READ | PROT_WRITE) {
        0 => Access::None,
        PROT_READ => Access::Read,
        _ => Access::ReadWrite,
    })
}

pub(crate) fn mmap(call: &Call<'_, '_>) -> Answer {
    let flags = call.argument(3);
    if flags & MAP_ANONYMOUS == 0 {
        return Err(Errno::NODEV.into());
    }
    if call.argument(1) == 0 {
        return Err(Errno::INVAL.into());
    }
    // An address without MAP_FIXED is a hint, and hints may be ignored.
    let at = (flags & MAP_FIXED != 0).then(|| call.pointer(0));
    Ok(call
        .mappings()
        .map(at, call.argument(1), access(call.argument(2))?)?)
}

pub(crate) fn munmap(call: &Call<'_, '_>) -> Answer {
    call.mappings().unmap(call.pointer(0), call.argument(1))?;
    Ok(0)
}

pub(crate) fn mprotect(call: &Call<'_, '_>) -> Answer {
    if call.argument(1) == 0 {
        return Ok(0);
    }
    let access = access(call.argument(2))?;
    call.mappings()
        .protect(call.pointer(0), call.argument(1), access)?;
    Ok(0)
}

pub(crate) fn madvise(call: &Call<'_, '_>) -> Answer {
    if call.int(2) == MADV_DONTNEED && call.argument(1) != 0 {
        call.mappings().discard(call.pointer(0), call.argument(1))?;
    }
    // All other advice may be ignored.
    Ok(0)
}

pub(crate) fn mremap(call: &Call<'_, '_>) -> Answer {
    let old = call.pointer(0);
    let pages = |length: u64| {
        let rounded = length.checked_next_multiple_of(PAGE);
        rounded.filter(|length| *length > 0).ok_or(Errno::INVAL)
    };
    let (from, to) = (pages(call.argument(1))?, pages(call.argument(2))?);
    if call.argument(3) & !MREMAP_MAYMOVE != 0 {
        return Err(Errno::INVAL.into());
    }
    let memory = call.mappings();
    let access = memory.mapped_as(old, from)?;
    if to <= from {
        if to < from {
            memory.unmap(Claimed(old.0.wrapping_add(to)), from - to)?;
        }
        return Ok(old.0);
    }
    if call.argument(3) & MREMAP_MAYMOVE == 0 {
        return Err(Errno::NOMEM.into());
    }
    let new = memory.map(None, to, Access::ReadWrite)?;
    let moved = || -> Result<(), Stop> {
        copy(call, old, Claimed(new), from)?;
        if access != Access::ReadWrite {
            memory.protect(Claimed(new), to, access)?;
        }
        // The image's pages are refused here.
        Ok(memory.unmap(old, from)?)
    };
    if let Err(stop) = moved() {
        memory.unmap(Claimed(new), to)?;
        return Err(stop);
    }
    Ok(new)
}

fn copy(call: &Call<'_, '_>, from: Claimed, to: Claimed, length: u64) -> Result<(), Stop> {
    let mut bytes = vec![0; PIECE.min(length as usize)];
    let mut done = 0;
    while done < length {
        let step = (PIECE as u64).min(length - done) as usize;
        let Some(bytes) = bytes.get_mut(..step) else {
            return Err(Errno::FAULT.into());
        };
        let source = call.piece(Claimed(from.0 + done), step as u64)?;
        source.read(bytes)?;
        call.write(Claimed(to.0 + done), bytes)?;
        done += step as u64;
    }
    Ok(())
}
