//! `mod_mullion`: a module of Apache httpd that loads other modules, each behind the word wall (hosts/apache/README.md).
//!
//! ```text
//!   LoadModule mullion_module /path/libmod_mullion.so
//!   MullionLoadModule expires_module /path/mod_expires.so        mod_expires.toml beside it is its policy
//! ```
//!
//! ```text
//!   core ──► a function of ours (back.rs): a frame ──► gate ──► the module
//!                                                                 │
//!   core ◄── httpd's or APR's function ◄── arguments are looked at (call.rs, own.rs)
//! ```
//!
//! The server is Debian's stock binary. It knows of each module by a structure of ours, whose functions lead to the module's.

mod addresses;
mod again;
mod apr;
mod arena;
mod arrays;
mod back;
mod backends;
mod call;
mod caught;
mod cleanups;
mod configs;
mod conversions;
mod copied;
mod count;
mod dav;
mod deeds;
mod descriptors;
mod errors;
mod few;
mod filters;
mod folders;
mod format;
mod frame;
mod hashes;
mod heap;
mod held;
mod homes;
mod interface;
mod kinds;
mod layout;
mod ldap;
mod learn;
mod leaving;
mod libraries;
mod listed;
mod load;
mod locks;
mod map;
mod matching;
mod names;
mod near;
mod object;
mod opened;
mod out;
mod outs;
mod own;
mod owners;
mod pages;
mod partners;
mod patterns;
mod pieces;
mod places;
mod pooled;
mod pools;
mod processes;
mod queries;
mod quick;
mod reading;
mod relocatable;
mod report;
mod rings;
mod score;
mod sections;
mod segments;
mod shadows;
mod slots;
mod sources;
mod statements;
mod states;
mod stopped;
mod streams;
mod swaps;
mod tables;
mod texts;
mod timed;
mod turns;
mod uris;
mod varbuf;
mod vectors;
mod walled;
mod warm;
mod written;
mod xml;

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[repr(C)]
struct Command {
    name: *const c_char,
    function: *const c_void,
    data: *const c_void,
    overrides: c_int,
    arguments: c_int,
    usage: *const c_char,
}

/// `module_struct`, which fields.txt has too.
#[repr(C)]
pub struct ModuleStructure {
    version: c_int,
    minor_version: c_int,
    module_index: c_int,
    name: *const c_char,
    handle: *const c_void,
    next: *const c_void,
    magic: u64,
    rewrite_args: *const c_void,
    create_dir_config: *const c_void,
    merge_dir_config: *const c_void,
    create_server_config: *const c_void,
    merge_server_config: *const c_void,
    commands: *const c_void,
    register_hooks: *const c_void,
    flags: c_int,
}

struct Commands([Command; 2]);

// SAFETY: nothing in it changes.
unsafe impl Sync for Commands {}
// SAFETY: the core writes its own fields of it, from one thread, before it serves.
unsafe impl Sync for ModuleStructure {}

const TAKE23: c_int = 9;
/// Outside of sections; when it is read, so that the lines that follow may use the module's directives.
const WHERE: c_int = 128 | 256;

static COMMANDS: Commands = Commands([
    Command {
        name: c"MullionLoadModule".as_ptr(),
        function: load_module as *const c_void,
        data: std::ptr::null(),
        overrides: WHERE,
        arguments: TAKE23,
        usage: c"a module's name, its file, and a file with its policy".as_ptr(),
    },
    Command {
        name: std::ptr::null(),
        function: std::ptr::null(),
        data: std::ptr::null(),
        overrides: 0,
        arguments: 0,
        usage: std::ptr::null(),
    },
]);

/// What httpd looks for.
// SAFETY: httpd looks for this name in the file that it loads, and nothing else has it.
#[unsafe(no_mangle)]
pub static mut mullion_module: ModuleStructure = ModuleStructure {
    version: 20_120_211,
    minor_version: 0,
    module_index: -1,
    name: c"mod_mullion.c".as_ptr(),
    handle: std::ptr::null(),
    next: std::ptr::null(),
    magic: 0x4150_3234,
    rewrite_args: std::ptr::null(),
    create_dir_config: std::ptr::null(),
    merge_dir_config: std::ptr::null(),
    create_server_config: std::ptr::null(),
    merge_server_config: std::ptr::null(),
    commands: COMMANDS.0.as_ptr().cast(),
    register_hooks: register_hooks as *const c_void,
    flags: 0,
};

const REALLY_FIRST: c_int = -10;
const MIDDLE: c_int = 10;
const REALLY_LAST: c_int = 30;

/// `SetHandler mullion-status`: a line for each module, of the process that answers.
extern "C" fn status(r: u64) -> c_int {
    const DECLINED: c_int = -1;
    // SAFETY: the core passes a request.
    let handler = unsafe { layout::read(r + layout::R_HANDLER) };
    // SAFETY: the core's strings end with a zero.
    if handler == 0 || unsafe { apr::text(handler) } != b"mullion-status" {
        return DECLINED;
    }
    let mut lines = String::from("module calls asked faults microseconds state\n");
    for walled in load::all() {
        let state = match walled.domain.is_ended() {
            true => "stopped",
            false => "runs",
        };
        let faults = walled.faults.load(std::sync::atomic::Ordering::Relaxed);
        let (calls, asked) = (walled.calls.sum(), walled.asked.sum());
        lines.push_str(&format!(
            "{} {calls} {asked} {faults} {} {state}\n",
            walled.name,
            walled.time.sum() / 1000
        ));
    }
    // SAFETY: it is a request; the strings stay as long as it does.
    unsafe {
        // `mullion top` tells processes by it.
        let pool = layout::read(r + layout::R_POOL);
        let process = apr::string(pool, &std::process::id().to_string());
        let name = c"X-Mullion-Process".as_ptr();
        apr::apr_table_setn(layout::read(r + layout::R_HEADERS_OUT), name, process);
        apr::ap_set_content_type(r, c"text/plain".as_ptr() as u64);
        apr::ap_rwrite(lines.as_ptr() as u64, lines.len() as c_int, r);
    }
    0
}

extern "C" fn register_hooks(pool: u64) {
    apr::forget();
    configs::forget();
    filters::forget_records();
    partners::forget();
    // SAFETY: the functions stay: `stay` keeps this library. httpd passes the pool of its configuration.
    unsafe {
        stay();
        // A module that asks for a driver first would have APR follow a null pointer. Later calls of these do nothing, and what
        // they make lives as long as the process. An error comes again, to the module that asks.
        let _drivers = (apr::apr_dbd_init(pool), apr::apr_crypto_init(pool));
        stopped::register();
        apr::ap_hook_child_init(begin as *const () as usize, 0, 0, REALLY_FIRST);
        apr::ap_hook_check_config(sort_hooks as *const () as usize, 0, 0, REALLY_FIRST);
        apr::ap_hook_post_config(watch as *const () as usize, 0, 0, REALLY_FIRST);
        apr::ap_hook_post_config(ready as *const () as usize, 0, 0, REALLY_LAST);
        // In front of modules, which write their fields there.
        apr::ap_hook_create_request(warm::begin as *const () as usize, 0, 0, REALLY_FIRST);
        apr::ap_hook_handler(map::answer as *const () as usize, 0, 0, MIDDLE);
        apr::ap_hook_handler(status as *const () as usize, 0, 0, MIDDLE);
        apr::ap_hook_child_init(serve as *const () as usize, 0, 0, REALLY_LAST);
    }
}

/// httpd unloads modules when it reads its configuration again. Gates and handlers of signals are in this one.
///
/// # Safety
/// None is needed; it looks itself up.
unsafe fn stay() {
    // SAFETY: the description is filled in by the call, and its strings stay.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(stay as *const c_void, &mut info) != 0 {
            libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}

/// A child begins, before any module does something in it.
extern "C" fn begin(pool: u64, server: u64) {
    pools::begin(pool);
    if let Err(error) = load::host() {
        apr::log(server, &error);
    }
}

/// A child is about to serve: what modules have in their data now they get back after a fault.
extern "C" fn serve(_: u64, _: u64) {
    load::all().iter().for_each(|walled| walled.remember());
    configs::serve();
    pools::serve();
}

/// The configuration has been read: modules have said which hooks of other modules they want. Their lists may lead nowhere, and httpd
/// has installed its own handlers of faults since, if it has several processes.
extern "C" fn sort_hooks(_: u64, _: u64, _: u64, server: u64) -> c_int {
    if let Err(error) = load::host() {
        apr::log(server, &error);
    }
    partners::sort();
    0
}

/// httpd has just installed its own handlers of faults, and modules are about to be called.
extern "C" fn watch(_: u64, _: u64, _: u64, server: u64) -> c_int {
    begin(0, server);
    0
}

extern "C" fn ready(_: u64, _: u64, _: u64, _: u64) -> c_int {
    load::all().iter().for_each(|walled| walled.remember());
    0
}

/// # Safety
/// httpd passes strings that end with zeros, or null.
unsafe fn path(pool: u64, at: u64) -> Option<PathBuf> {
    // SAFETY: by the caller; the pool lives.
    unsafe {
        let whole = (at != 0).then(|| apr::ap_server_root_relative(pool, at))?;
        let whole = if whole == 0 { at } else { whole };
        Some(PathBuf::from(OsStr::from_bytes(apr::text(whole))))
    }
}

/// `MullionLoadModule NAME FILE [POLICY]`.
extern "C" fn load_module(
    cmd: u64,
    to: *mut u64,
    name: u64,
    file: u64,
    policy: u64,
) -> *const c_char {
    // A directive that is executed when it is read leaves nothing in the tree.
    // SAFETY: httpd passes a place for that.
    unsafe { to.write(0) };
    if let Some(name) = layout::wrong() {
        // SAFETY: the pool lives.
        return unsafe {
            apr::string(
                layout::read(cmd + 64),
                &format!("mullion: {name} is elsewhere"),
            )
        };
    }
    // SAFETY: httpd passes the state of the directive and strings.
    unsafe {
        let pool = layout::read(cmd + layout::CMD_POOL);
        let name = String::from_utf8_lossy(apr::text(name)).into_owned();
        let Some(file) = path(pool, file) else {
            return apr::string(pool, "mullion: no file");
        };
        match load::load(cmd, &name, &file, path(pool, policy).as_deref()) {
            Ok(()) => std::ptr::null(),
            Err(error) => apr::string(pool, &format!("mullion: {error}")),
        }
    }
}
