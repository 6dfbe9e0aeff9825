//! The last x87 instruction before a domain's own.
//!
//! The x87 unit keeps the lower halves of two addresses: of the last instruction, and of its operand. A
//! domain can read them (`fnstenv`). They must not be the host's. `fninit` clears them, and takes longer
//! than all the rest of a call. So the trampolines run two instructions in a page of their own
//! instead. Its address is a multiple of 4 GiB plus [`OFFSET`]: the lower half is the same in every process, and
//! says nothing.
//!
//! Intel's newer processors keep an operand's address only when its instruction raised an exception. There
//! another instruction does not take the place of one that the host let fail, and `fninit` stays.

use crate::access::PAGE;
use crate::assembly::{mullion_x87_begin, mullion_x87_end, mullion_x87_init};
use crate::sealed;
use mullion_report::error::Error;
use std::arch::x86_64::__cpuid_count;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the trampolines call: `fninit`, until there is something better.
pub(crate) static LAST: AtomicPtr<()> = AtomicPtr::new(mullion_x87_init as *mut ());

const ALIGNMENT: u64 = 1 << 32;
/// In the middle, far from the ends of windows, whose neighbourhood must stay empty.
const OFFSET: u64 = 1 << 31;
/// `FDP_EXCPTN_ONLY`, in %ebx of leaf 7.
const OPERAND_OF_EXCEPTIONS_ONLY: u32 = 1 << 6;

/// Puts the page in its place. Without it, calls of images with x87 instructions take longer, no more.
pub(crate) fn set_up() {
    if __cpuid_count(7, 0).ebx & OPERAND_OF_EXCEPTIONS_ONLY == 0
        && let Ok(page) = map()
    {
        LAST.store(page, Ordering::Release);
    }
}

/// The two instructions in a page of their own. It stays.
#[expect(
    clippy::disallowed_methods,
    reason = "the host's own, outside of every window; constant code"
)]
fn map() -> Result<*mut (), Error> {
    let begin = &raw const mullion_x87_begin;
    let length = (&raw const mullion_x87_end).addr() - begin.addr();
    // SAFETY: both are symbols of `trampoline.s`, in this order, with constant data in between.
    let code = unsafe { std::slice::from_raw_parts(begin, length) };
    let file = sealed::file(c"mullion-x87", &[(0, code)], PAGE)?;
    let whole = ALIGNMENT + OFFSET + PAGE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new reservation, where the kernel wants it.
    let reserved = unsafe {
        libc::mmap(
            ptr::null_mut(),
            whole as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if reserved == libc::MAP_FAILED {
        return Err(Error::last("reserving a place for x87 instructions"));
    }
    let start = reserved.expose_provenance() as u64;
    let page = start.next_multiple_of(ALIGNMENT) + OFFSET;
    let at = |address: u64| ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: all three pieces lie in the new reservation, which nobody else knows of: `page` begins less than
    // ALIGNMENT + OFFSET behind its start. The first two are given back whole.
    let mapped = unsafe {
        libc::munmap(reserved, (page - start) as usize);
        let behind = page + PAGE;
        let left = start + whole - behind;
        if left != 0 {
            libc::munmap(at(behind), left as usize);
        }
        libc::mmap(
            at(page),
            PAGE as usize,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_FIXED,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(Error::last("mapping x87 instructions"));
    }
    Ok(mapped.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_s_address_says_nothing() {
        set_up();
        let last = LAST.load(Ordering::Acquire);
        if last == mullion_x87_init as *mut () {
            println!("this processor, or this system, has `fninit` instead");
            return;
        }
        assert_eq!(last.addr() as u64 % ALIGNMENT, OFFSET);
    }
}
