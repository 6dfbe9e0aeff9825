//! A module of Redis that loads other modules, each behind the word wall (hosts/redis/README.md).
//!
//! ```text
//!   loadmodule /usr/lib/redis/libmullion_redis.so /etc/redis/hellotype.so     hellotype.toml beside it is its policy
//! ```
//!
//! Redis knows nothing of it: it is an ordinary module, which Redis loads once for each module that it hosts. It
//! registers commands and types in the name of that one. `frame.rs` has the picture.

mod api;
mod calls;
mod commands;
mod dicts;
mod format;
mod frame;
mod keys;
mod load;
mod memory;
mod replies;
mod scan;
mod strings;
mod timers;
mod types;

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What Redis calls when it loads the library: the first argument is the file of a module.
///
/// # Safety
/// The arguments are what Redis passes to `RedisModule_OnLoad`.
// SAFETY: Redis looks for this name in the library that it loads, and nothing else has it.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut c_void,
    argv: *const usize,
    argc: c_int,
) -> c_int {
    // SAFETY: the caller passes on what Redis has passed, for which `open` and `arguments` ask.
    unsafe {
        open(context);
        load::load(context as usize, arguments(argv, argc))
    }
}

/// What Redis calls before it unloads the library. It is the same for all modules that were loaded by their files, and Redis
/// does not say which one it means. So none is unloaded.
// SAFETY: Redis looks for this name in the library that it loads, and nothing else has it.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn RedisModule_OnUnload(_: *mut c_void) -> c_int {
    memory::ERR
}

/// As [`RedisModule_OnLoad`], for a module by the name of another (`stub.c`).
///
/// # Safety
/// As there; `file` is a string that ends with a zero.
// SAFETY: the name is this library's alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_redis_load(
    context: *mut c_void,
    file: *const c_char,
    argv: *const usize,
    argc: c_int,
) -> c_int {
    // SAFETY: the caller passes Redis's context and arguments, and a file's name that ends with a zero.
    unsafe {
        open(context);
        load::load_file(context as usize, path(file), arguments(argv, argc))
    }
}

/// Ends a module that was loaded so.
///
/// # Safety
/// As there.
// SAFETY: the name is this library's alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_redis_unload(context: *mut c_void, file: *const c_char) -> c_int {
    // SAFETY: the caller's `file` is a string that ends with a zero.
    load::unload(context as usize, unsafe { path(file) })
}

/// # Safety
/// `file` is a string that ends with a zero.
unsafe fn path<'a>(file: *const c_char) -> &'a Path {
    // SAFETY: the caller's `file` is a string that ends with a zero.
    let name = unsafe { CStr::from_ptr(file) };
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

/// # Safety
/// `argv` has `argc` words.
unsafe fn arguments<'a>(argv: *const usize, argc: c_int) -> &'a [usize] {
    match argc {
        // SAFETY: the caller's `argv` has `argc` words, and they are more than none.
        1.. => unsafe { std::slice::from_raw_parts(argv, argc as usize) },
        _ => &[],
    }
}

/// # Safety
/// `context` is what Redis passes to `RedisModule_OnLoad`.
unsafe fn open(context: *mut c_void) {
    // SAFETY: the caller's `context` is Redis's, for which `api::open` asks.
    unsafe { api::open(context.cast()) };
    stay();
    memory::survive_forks();
}

/// Gates and handlers of signals are in this library: it must stay where it is, also when Redis closes it.
fn stay() {
    // SAFETY: zeros are such a structure.
    let mut found = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    let here = stay as *const c_void;
    // SAFETY: it fills the structure in, and the name that it finds stays.
    unsafe {
        if libc::dladdr(here, &raw mut found) != 0 {
            libc::dlopen(found.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}
