//! An extension of SQLite that loads other extensions, each behind the word wall (hosts/sqlite/README.md).
//!
//! ```text
//!   sqlite> .load ./libmullion_sqlite
//!   sqlite> SELECT mullion_load('./rot13.so');         rot13.toml beside it is its policy
//! ```
//!
//! SQLite knows nothing of it: it is an ordinary loadable extension, which registers functions and tables in the name of
//! those that it hosts. `walled.rs` has the picture.

mod api;
mod format;
mod functions;
mod load;
mod memory;
mod statements;
mod strings;
mod table;
mod tables;
mod values;
mod walled;

use api::host;
use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walled::Handle;

const ERROR: c_int = 1;
/// SQLite must not unload this library: gates and handlers of signals are in it.
const OK_LOAD_PERMANENTLY: c_int = 256;
const UTF8: c_int = 1;
/// Not from triggers, views and the like.
const DIRECT_ONLY: c_int = 0x0008_0000;

type Function = extern "C" fn(Handle, c_int, *const Handle);

/// What SQLite calls when it loads the library.
///
/// # Safety
/// `db`, `message` and `table` are what SQLite passes to the entry of a loadable extension.
// SAFETY: SQLite looks for this name in the library that it loads, and nothing else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut c_void,
    message: *mut *mut c_char,
    table: *const c_void,
) -> c_int {
    api::open(table);
    let version = host!(libversion_number: fn() -> c_int)();
    if version < api::OLDEST {
        if !message.is_null() {
            let what = "mullion needs SQLite 3.40 or newer";
            // SAFETY: SQLite has room for it.
            unsafe { *message = memory::allocated(what.as_bytes()) };
        }
        return ERROR;
    }
    let commands: [(&std::ffi::CStr, c_int, Function); 4] = [
        (c"mullion_load", 1, load_extension),
        (c"mullion_load", 2, load_extension),
        (c"mullion_restart", 1, restart),
        (c"mullion_status", 0, status),
    ];
    for (name, arity, function) in commands {
        let create = host!(create_function_v2: fn(Handle, *const c_char, c_int, c_int, Handle, Function,
            Option<Function>, Option<Function>, Option<Function>) -> c_int);
        let code = create(
            db,
            name.as_ptr(),
            arity,
            UTF8 | DIRECT_ONLY,
            db,
            function,
            None,
            None,
            None,
        );
        if code != 0 {
            return code;
        }
    }
    let listed = std::env::var_os(load::LOAD).unwrap_or_default();
    for file in std::env::split_paths(&listed).filter(|file| !file.as_os_str().is_empty()) {
        if let Err(error) = load::load(db, &file, None) {
            if !message.is_null() {
                // SAFETY: SQLite has room for the message where it is not null.
                unsafe { *message = memory::allocated(format!("mullion: {error}").as_bytes()) };
            }
            return ERROR;
        }
    }
    OK_LOAD_PERMANENTLY
}

/// A text that SQLite passes, if it is one.
fn text(value: Handle) -> Option<Vec<u8>> {
    let at = host!(value_text: fn(Handle) -> *const c_char)(value);
    // SAFETY: SQLite's strings end with a zero.
    (!at.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(at) }.to_bytes().to_vec())
}

fn answer(context: Handle, what: &str) {
    let set = host!(result_text: fn(Handle, *const u8, c_int, isize));
    let length = c_int::try_from(what.len()).unwrap_or(c_int::MAX);
    set(context, what.as_ptr(), length, values::TRANSIENT);
}

/// `mullion_load(FILE)` and `mullion_load(FILE, POLICY)`.
extern "C" fn load_extension(context: Handle, count: c_int, values: *const Handle) {
    // SAFETY: SQLite passes so many.
    let values = unsafe { std::slice::from_raw_parts(values, count as usize) };
    let paths: Vec<_> = values.iter().map(|value| text(*value)).collect();
    let path = |at: usize| {
        let path = paths.get(at).and_then(Option::as_deref);
        path.map(|path| Path::new(std::ffi::OsStr::from_bytes(path)))
    };
    let Some(file) = path(0) else {
        return values::fail(context, "mullion_load needs the name of a file");
    };
    let db = host!(user_data: fn(Handle) -> Handle)(context);
    match load::load(db, file, path(1)) {
        Ok(()) => {}
        Err(error) => values::fail(context, &format!("mullion: {error}")),
    }
}

/// `mullion_restart(NAME)`: fresh data, for all extensions of this name.
extern "C" fn restart(context: Handle, _: c_int, values: *const Handle) {
    // SAFETY: SQLite passes one.
    let name = text(unsafe { *values }).unwrap_or_default();
    let db = host!(user_data: fn(Handle) -> Handle)(context);
    let all = load::all();
    let mut named = all
        .iter()
        .filter(|known| known.walled.name.as_bytes() == name && known.walled.db == db)
        .peekable();
    if named.peek().is_none() {
        let name = String::from_utf8_lossy(&name);
        return values::fail(context, &format!("mullion: no extension is called {name}"));
    }
    for extension in named {
        if let Err(error) = extension.restart() {
            return values::fail(context, &format!("mullion: {error}"));
        }
    }
}

/// `mullion_status()`: a line for each extension.
extern "C" fn status(context: Handle, _: c_int, _: *const Handle) {
    let mut lines = String::new();
    for extension in load::all().iter() {
        let walled = extension.walled;
        let state = match walled.domain.is_ended() {
            true => walled.fault(),
            false => "runs".to_owned(),
        };
        let bytes = walled.heap.borrow().total;
        lines.push_str(&format!(
            "{}: {bytes} bytes of heap, {state}\n",
            walled.name
        ));
    }
    answer(context, lines.trim_end());
}
