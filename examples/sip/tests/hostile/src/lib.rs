//! A SIP that is in order but for a constructor, which would run when it is loaded. The tests show that it does not.

use std::arch::asm;

mullion_sip::sip_main! {
    name: "hostile",
    main: main,
}

fn main(_: Vec<String>) {}

/// Leaves a mark in the directory of the program, by a system call of its own: the library's standard library opens no
/// file.
extern "C" fn constructor() {
    const OPEN: i64 = 2;
    const CREATE: i64 = 0o100;
    let mark = c"sip-hostile-mark";
    // SAFETY: the path is a C string, and a file that is made changes no memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") OPEN => _,
            in("rdi") mark.as_ptr(),
            in("rsi") CREATE,
            in("rdx") 0o600,
            out("rcx") _,
            out("r11") _,
        );
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
