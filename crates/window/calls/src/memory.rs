//! Memory of the program's own: brk, mmap, munmap, mremap, mprotect, madvise.
//! All within its window, up to its limit, and never executable.

use crate::call::Call;
use crate::descriptor::Object;
use crate::errno::{Answer, CallStop, Errno};
use crate::files;
use crate::program::Access;
use alloc::vec;

/// Bytes of a page.
const PAGE: u64 = 4096;

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MREMAP_MAYMOVE: u64 = 1;
const MADV_DONTNEED: i32 = 4;
/// Bytes copied at a time when a mapping moves.
const PIECE: usize = 1 << 20;

pub(crate) fn brk(call: &Call<'_>) -> Answer {
    Ok(call.program().set_heap_end(call.argument(0)))
}

fn access(protection: u64) -> Result<Access, CallStop> {
    if protection & PROT_EXEC != 0 {
        return Err(Errno::ACCESS.into());
    }
    Ok(match protection & (PROT_READ | PROT_WRITE) {
        0 => Access::None,
        PROT_READ => Access::Read,
        _ => Access::ReadWrite,
    })
}

pub(crate) fn mmap(call: &Call<'_>) -> Answer {
    let flags = call.argument(3);
    if flags & MAP_ANONYMOUS == 0 {
        return map_file(call, flags);
    }
    if call.argument(1) == 0 {
        return Err(Errno::INVAL.into());
    }
    // An address without MAP_FIXED is a hint, and hints may be ignored.
    let at = (flags & MAP_FIXED != 0).then(|| call.argument(0));
    let access = access(call.argument(2))?;
    call.program().map(at, call.argument(1), access)
}

/// A file is mapped by a copy, which is the program's alone. A mapping in common with others is one only if neither the
/// mapping nor the descriptor may write: a program that changes a file by what it maps would change the copy.
fn map_file(call: &Call<'_>, flags: u64) -> Answer {
    const MAP_SHARED: u64 = 1;
    const MAP_PRIVATE: u64 = 2;
    const MAP_KIND: u64 = 15;
    const O_ACCMODE: u32 = 3;
    let Object::Host(handle) = files::named(call, call.int(4))?.object else {
        return Err(Errno::NODEV.into());
    };
    let is_copy = match flags & MAP_KIND {
        MAP_PRIVATE => true,
        MAP_SHARED if call.argument(2) & PROT_WRITE == 0 => {
            call.program().flags(&handle)? & O_ACCMODE == 0
        }
        _ => false,
    };
    if !is_copy || call.program().as_stream(&handle).is_some() {
        return Err(Errno::NODEV.into());
    }
    let (length, offset) = (call.argument(1), call.argument(5));
    let first = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
    if length == 0 || offset % PAGE != 0 || first.checked_add_unsigned(length).is_none() {
        return Err(Errno::INVAL.into());
    }
    let access = access(call.argument(2))?;
    let memory = call.program();
    let at = (flags & MAP_FIXED != 0).then(|| call.argument(0));
    let mapped = memory.map(at, length, Access::ReadWrite)?;
    let fill = || -> Result<(), CallStop> {
        let mut done = 0;
        while done < length && !call.is_out_of_time() {
            let place = (mapped + done, length - done);
            let position = Some(first + done as i64);
            match memory.transfer(&handle, place, false, position)? {
                0 => break,
                moved => done += moved,
            }
        }
        match access {
            Access::ReadWrite => Ok(()),
            access => memory.protect(mapped, length, access),
        }
    };
    if let Err(stop) = fill() {
        memory.unmap(mapped, length)?;
        return Err(stop);
    }
    Ok(mapped)
}

pub(crate) fn munmap(call: &Call<'_>) -> Answer {
    call.program().unmap(call.argument(0), call.argument(1))?;
    Ok(0)
}

pub(crate) fn mprotect(call: &Call<'_>) -> Answer {
    if call.argument(1) == 0 {
        return Ok(0);
    }
    let access = access(call.argument(2))?;
    call.program()
        .protect(call.argument(0), call.argument(1), access)?;
    Ok(0)
}

pub(crate) fn madvise(call: &Call<'_>) -> Answer {
    if call.int(2) == MADV_DONTNEED && call.argument(1) != 0 {
        call.program().discard(call.argument(0), call.argument(1))?;
    }
    // All other advice may be ignored.
    Ok(0)
}

pub(crate) fn mremap(call: &Call<'_>) -> Answer {
    let old = call.argument(0);
    let pages = |length: u64| {
        let rounded = length.checked_next_multiple_of(PAGE);
        rounded.filter(|length| *length > 0).ok_or(Errno::INVAL)
    };
    let (from, to) = (pages(call.argument(1))?, pages(call.argument(2))?);
    if call.argument(3) & !MREMAP_MAYMOVE != 0 {
        return Err(Errno::INVAL.into());
    }
    let memory = call.program();
    let access = memory.mapped_as(old, from)?;
    if to <= from {
        if to < from {
            memory.unmap(old.wrapping_add(to), from - to)?;
        }
        return Ok(old);
    }
    if call.argument(3) & MREMAP_MAYMOVE == 0 {
        return Err(Errno::NOMEM.into());
    }
    let new = memory.map(None, to, Access::ReadWrite)?;
    let moved = || -> Result<(), CallStop> {
        copy(call, old, new, from)?;
        if access != Access::ReadWrite {
            memory.protect(new, to, access)?;
        }
        // The image's pages are refused here.
        memory.unmap(old, from)
    };
    if let Err(stop) = moved() {
        memory.unmap(new, to)?;
        return Err(stop);
    }
    Ok(new)
}

fn copy(call: &Call<'_>, from: u64, to: u64, length: u64) -> Result<(), CallStop> {
    let mut bytes = vec![0; PIECE.min(length as usize)];
    let mut done = 0;
    while done < length {
        let step = (PIECE as u64).min(length - done) as usize;
        let Some(bytes) = bytes.get_mut(..step) else {
            return Err(Errno::FAULT.into());
        };
        call.program().read(from + done, bytes)?;
        call.write(to + done, bytes)?;
        done += step as u64;
    }
    Ok(())
}
