//! A SIP with machine code of its own, which asks Linux for a file: what the wall of the language lets through, since its
//! author wrote `unsafe`, and the wall of the hardware stops. For tests of domains of kind `process`.

use std::arch::asm;

mullion_sip::sip_main! {
    name: "native",
    main: main,
}

fn main(_: Vec<String>) -> Result<(), String> {
    const OPEN: i64 = 2;
    let path = c"/etc/hostname";
    let result: i64;
    // SAFETY: the path is a C string, and to open it for reading changes no memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") OPEN => result,
            in("rdi") path.as_ptr(),
            in("rsi") 0,
            in("rdx") 0,
            out("rcx") _,
            out("r11") _,
        );
    }
    Err(format!("open gave {result}"))
}
