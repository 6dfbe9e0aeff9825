//! The functions of the C library that a SIP does not get, although every Rust library refers to them.
//!
//! ```text
//!   std::fs::File::open -> open64 -> the hidden function below: -1, EACCES      (no import, so no way to libc's)
//!   std::thread::spawn  -> pthread_create -> an import                          (the host refuses the library)
//! ```
//! The standard library refers to these functions in every library, if only to print a backtrace. Here each has a
//! definition that is hidden in the library and that refuses. The linker binds the references to it, so the name is no
//! import, and safe code that opens a file gets an error. Every other function of the C library that a library
//! refers to is an import, and the host holds imports against a list (`mullion-sip-host`, `image/imports.rs`).

use std::arch::global_asm;

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
}

unsafe extern "C" {
    fn mullion_sip_world();
}

/// Has the linker take the functions above.
pub(super) fn link() {
    // SAFETY: it returns at once.
    unsafe { mullion_sip_world() };
}
