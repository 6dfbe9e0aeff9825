//! Whether a signal has interrupted a call of the system that waited.
//!
//! ```text
//!   interrupted where         registers that the handler finds
//!   a program's own code      anything
//!   a call that goes on       behind the instruction `syscall`, with the call's result
//!   a call that waited        behind it with EINTR; or before it, to be done again (SA_RESTART)
//! ```
//! So it is read off the interrupted context, and the system is asked for nothing. Only the C library's own code is
//! looked at: it is always there, and a process's calls are in it. The calls of this crate's assembly are the kernel's.

use std::ops::Range;
use std::sync::OnceLock;

/// The interrupted general registers, in the order of `REG_*`.
pub(super) type Registers = [libc::greg_t; 23];

/// What a call of the system waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// A lock, a time, whatever else.
    Any,
    /// That its output is taken.
    Output,
}

/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Addresses of the C library's code that can be read. It is never unmapped.
static LIBRARY: OnceLock<Range<usize>> = OnceLock::new();

/// Finds the C library. Before the first signal.
pub(super) fn find() {
    let mut code = 0..0;
    // SAFETY: `look` gets what it is written for, and the range outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut code).cast()) };
    LIBRARY.get_or_init(|| code);
}

/// Called for each object of the program; stops at the C library.
unsafe extern "C" fn look(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    code: *mut libc::c_void,
) -> i32 {
    // SAFETY: the C library passes a description of an object, with so many headers, that lives for the call.
    let (base, headers) = unsafe {
        let object = &*object;
        let count = usize::from(object.dlpi_phnum);
        (
            object.dlpi_addr as usize,
            std::slice::from_raw_parts(object.dlpi_phdr, count),
        )
    };
    let wanted = libc::syscall as *const () as usize;
    let found = headers.iter().find_map(|header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let range = start..start.wrapping_add(header.p_memsz as usize);
        let readable = libc::PF_R | libc::PF_X;
        let is_code = header.p_type == libc::PT_LOAD && header.p_flags & readable == readable;
        (is_code && range.contains(&wanted)).then_some(range)
    });
    let Some(range) = found else { return 0 };
    // SAFETY: what `find` has passed.
    unsafe { *code.cast::<Range<usize>>() = range };
    1
}

/// Whether what was interrupted is a call that waited, and for what. For the signal handler.
pub(super) fn waited(registers: &Registers) -> Option<Wait> {
    let [at, result] = [libc::REG_RIP, libc::REG_RAX].map(|name| registers[name as usize]);
    let at = at as usize;
    let library = LIBRARY.get()?;
    if instruction(library, at)? == SYSCALL {
        return Some(match result {
            libc::SYS_write | libc::SYS_writev => Wait::Output,
            _ => Wait::Any,
        });
    }
    let interrupted = result == -i64::from(libc::EINTR);
    let behind = interrupted && instruction(library, at.wrapping_sub(SYSCALL.len()))? == SYSCALL;
    behind.then_some(Wait::Any)
}

/// The two bytes there, if they are the library's.
fn instruction(library: &Range<usize>, at: usize) -> Option<[u8; 2]> {
    let both = library.contains(&at) && library.contains(&at.wrapping_add(1));
    // SAFETY: both are in memory that can be read and stays, as `LIBRARY` says.
    both.then(|| unsafe { std::ptr::with_exposed_provenance::<[u8; 2]>(at).read() })
}
