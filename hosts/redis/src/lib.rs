//! A module of Redis that loads other modules, each behind the word wall (hosts/redis/README.md).
//!
//! ```text
//!   loadmodule /usr/lib/redis/libmullion_redis.so /etc/redis/hellotype.so     hellotype.toml beside it is its policy
//! ```
//!
//! Redis knows nothing of it: it is an ordinary module, which Redis loads once for each module that it hosts, and which
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
mod strings;
mod timers;
mod types;

use std::ffi::{c_int, c_void};

/// What Redis calls when it loads the library.
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
    // SAFETY: by the caller.
    unsafe { api::open(context.cast()) };
    stay();
    memory::survive_forks();
    let arguments = match argc {
        // SAFETY: Redis passes so many strings.
        1.. => unsafe { std::slice::from_raw_parts(argv, argc as usize) },
        _ => &[],
    };
    load::load(context as usize, arguments)
}

/// What Redis calls before it unloads the library. It is the same for all modules behind walls, and Redis does not say which
/// one it means: so none is unloaded.
// SAFETY: as above.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn RedisModule_OnUnload(_: *mut c_void) -> c_int {
    memory::ERR
}

/// Gates and handlers of signals are in this library: it must stay where it is, also when Redis closes it.
fn stay() {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = stay as *const c_void;
    // SAFETY: it fills the structure in, and the name that it finds stays.
    unsafe {
        if libc::dladdr(here, &raw mut found) != 0 {
            libc::dlopen(found.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}
