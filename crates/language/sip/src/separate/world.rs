//! The functions of the C library that a SIP does not get, although every Rust library refers to them.
//!
//! ```text
//!   std::fs::File::open -> open64 -> the hidden function below: -1, EACCES      (no import, so no way to libc's)
//!   std::thread::spawn  -> pthread_create -> an import                          (the host refuses the library)
//! ```
//! The standard library refers to these functions in every library, if only to print a backtrace. Here each has a
//! definition that is hidden in the library and that refuses. The linker binds the references to it, so the name is no
//! import, and safe code that opens a file gets an error. Functions that hold a lock of the C library's while they run are
//! here, too. A process can end at any instruction, and would leave the lock to its host. Every other function of the C library that a library
//! refers to is an import, and the host holds imports against a list (`mullion-sip-host`, `image/imports.rs`).

use std::arch::global_asm;
use std::ffi::{c_int, c_void};

use crate::inner::CORE;

/// Functions that set `errno` and return a value, whatever they are called with.
macro_rules! refuse {
    ($($name:literal => $value:literal, $errno:literal;)*) => {
        global_asm!(
            ".globl mullion_sip_world",
            ".hidden mullion_sip_world",
            ".type mullion_sip_world, @function",
            "mullion_sip_world:",
            "ret",
            $(
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", @function"),
                concat!($name, ":"),
                ".cfi_startproc",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call qword ptr [rip + __errno_location@GOTPCREL]",
                concat!("mov dword ptr [rax], ", $errno),
                concat!("mov rax, ", $value),
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                concat!(".size ", $name, ", . - ", $name),
            )*
        );
    };
}

// 13 is EACCES, 9 is EBADF. A `getenv` that finds nothing gives null.
refuse! {
    "open64" => "-1", "13";
    "read" => "-1", "9";
    "lseek64" => "-1", "9";
    "fstat64" => "-1", "9";
    "stat64" => "-1", "13";
    "statx" => "-1", "13";
    "readlink" => "-1", "13";
    "realpath" => "0", "13";
    "getcwd" => "0", "13";
    "getenv" => "0", "13";
    "mmap64" => "-1", "13";
    "fcntl" => "-1", "13";
    // Both hold locks of the C library's while they run, `dl_iterate_phdr` while it calls back, too. A process that ends
    // there would leave them locked for its host. No library is told of, and an error has no words but its number.
    "dl_iterate_phdr" => "0", "0";
    "__xpg_strerror_r" => "0", "0";
}

// Keys of thread-locals that are the C library's own. Thread-locals of a library are not (`mullion_sip_core::locals`), and end
// with their thread. The standard library makes a key nevertheless, to be called at the end of an OS thread. By then the
// process is gone, so the key is none. The C library's would allocate, and never be given back.
global_asm!(
    ".globl pthread_key_create",
    ".hidden pthread_key_create",
    ".type pthread_key_create, @function",
    "pthread_key_create:",
    "mov dword ptr [rdi], 1",
    "xor eax, eax",
    "ret",
    ".size pthread_key_create, . - pthread_key_create",
    ".globl pthread_key_delete",
    ".hidden pthread_key_delete",
    ".type pthread_key_delete, @function",
    ".globl pthread_setspecific",
    ".hidden pthread_setspecific",
    ".type pthread_setspecific, @function",
    ".globl pthread_getspecific",
    ".hidden pthread_getspecific",
    ".type pthread_getspecific, @function",
    "pthread_key_delete:",
    "pthread_setspecific:",
    "pthread_getspecific:",
    "xor eax, eax",
    "ret",
    ".size pthread_key_delete, . - pthread_key_delete",
    ".size pthread_setspecific, . - pthread_setspecific",
    ".size pthread_getspecific, . - pthread_getspecific",
);

// The C library's allocator holds locks. The standard library calls it by these names for what it does not leave to the
// program's allocator, and a process that ends there would leave a lock for its host. So it is called within a critical piece,
// which the end of a process waits for; by its other names, so that the names that everybody knows are no imports.
macro_rules! whole {
    ($($name:literal = $function:ident;)*) => {
        $(global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "jmp {function}",
            concat!(".size ", $name, ", . - ", $name),
            function = sym $function,
        );)*
    };
}

whole! {
    "malloc" = allocate;
    "calloc" = allocate_zeroed;
    "realloc" = reallocate;
    "free" = release;
    "posix_memalign" = allocate_aligned;
}

unsafe extern "C" {
    fn mullion_sip_world();
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
}

unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    let _whole = CORE.critical();
    // SAFETY: a library calls it in the place of `malloc`, and with what that may get.
    unsafe { __libc_malloc(bytes) }
}

unsafe extern "C" fn allocate_zeroed(count: usize, bytes: usize) -> *mut c_void {
    let _whole = CORE.critical();
    // SAFETY: a library calls it in the place of `calloc`, and with what that may get.
    unsafe { __libc_calloc(count, bytes) }
}

unsafe extern "C" fn reallocate(block: *mut c_void, bytes: usize) -> *mut c_void {
    let _whole = CORE.critical();
    // SAFETY: a library calls it in the place of `realloc`, and with what that may get.
    unsafe { __libc_realloc(block, bytes) }
}

unsafe extern "C" fn release(block: *mut c_void) {
    let _whole = CORE.critical();
    // SAFETY: a library calls it in the place of `free`, and with what that may get.
    unsafe { __libc_free(block) }
}

unsafe extern "C" fn allocate_aligned(to: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    const ENOMEM: c_int = 12;
    let _whole = CORE.critical();
    // SAFETY: as the caller promises of `posix_memalign`: the alignment is a power of two.
    let block = unsafe { __libc_memalign(align, bytes) };
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: as above: a place for a pointer.
    unsafe { *to = block };
    0
}

/// Has the linker take the functions above.
pub(super) fn link() {
    // SAFETY: it returns at once.
    unsafe { mullion_sip_world() };
}
