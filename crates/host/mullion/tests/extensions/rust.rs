//! An extension in Rust: `alloc`, a host function, a thread-local, a panic.
#![no_std]
#![crate_type = "cdylib"]
extern crate alloc;

use alloc::{format, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_void};

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
}

/// Declares a function of the host's, with the records that name it in the image (`mullion/ext.h`).
macro_rules! import {
    (fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        core::arch::global_asm!(
            concat!(".pushsection .mullion.gates,\"axG\",@nobits,", stringify!($name), ",comdat"),
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ", @function"),
            concat!(stringify!($name), ":"),
            ".skip 32",
            ".popsection",
            concat!(".pushsection .mullion.imports,\"aG\",@progbits,", stringify!($name), ",comdat"),
            concat!(".L", stringify!($name), "_record:"),
            concat!(".asciz \"", stringify!($name), "\""),
            concat!(".skip .L", stringify!($name), "_record + 64 - ."),
            ".popsection",
        );
        unsafe extern "C" {
            fn $name($($argument: $type),*) $(-> $result)?;
        }
    };
}

import!(fn host_log(text: *const c_char));

struct Heap;

// The C library's memory is aligned to 16 bytes, which is more than anything here asks for.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { malloc(layout.size()).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe { abort() }
}

/// The sum of the squares below `end`, by way of a vector; the host hears of it.
#[unsafe(no_mangle)]
pub extern "C" fn squares(end: u64) -> u64 {
    let squares: Vec<u64> = (0..end).map(|n| n * n).collect();
    let sum = squares.iter().sum();
    let text = format!("{} squares\0", squares.len());
    unsafe { host_log(text.as_ptr().cast()) };
    sum
}

/// Beyond the end of `TABLE` it panics.
#[unsafe(no_mangle)]
pub extern "C" fn entry(index: u64) -> u64 {
    TABLE[index as usize]
}

#[unsafe(no_mangle)]
pub static TABLE: [u64; 3] = [2, 3, 5];
