//! From `loadmodule` to a module behind its wall, and what an administrator can ask of one.

use crate::api::{self, host};
use crate::commands;
use crate::frame::{Given, Walled, c_string};
use crate::memory::{ERR, OK};
use mullion_bridge::{Request, gate};
use std::collections::HashSet;
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Redis's functions as policies speak of them.
pub(crate) const INTERFACE: &str = include_str!("../redis.toml");

/// A pointer that all threads may have.
struct Shared(&'static Walled);
// SAFETY: what is in it is used on Redis's main thread alone: callbacks come there, and mediators look for a frame of their
// own thread.
unsafe impl Send for Shared {}

static ALL: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

/// All modules.
pub(crate) fn all() -> Vec<&'static Walled> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|shared| shared.0).collect()
}

fn log(context: usize, text: &str) {
    type Log = unsafe extern "C" fn(usize, *const c_char, *const c_char, ...);
    let text = c_string(text);
    // SAFETY: this is the function's type, and the format has one string.
    unsafe {
        let log = std::mem::transmute::<usize, Log>(api::known("RedisModule_Log\0"));
        log(context, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr());
    }
}

/// The bytes of a string of Redis's.
fn text(handle: usize) -> String {
    let mut bytes = 0usize;
    let at = host!(StringPtrLen: fn(usize, *mut usize) -> *const u8)(handle, &raw mut bytes);
    // SAFETY: Redis says that so many bytes are there.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(at, bytes) }).into_owned()
}

/// `loadmodule libmullion_redis.so FILE [policy=FILE] ARGUMENTS...`
pub(crate) fn load(context: usize, arguments: &[usize]) -> c_int {
    let Some((file, rest)) = arguments.split_first() else {
        log(
            context,
            "mullion: which module? `loadmodule libmullion_redis.so /path/to/module.so`",
        );
        return ERR;
    };
    load_file(context, Path::new(&text(*file)), rest)
}

/// Loads a module by its file.
pub(crate) fn load_file(context: usize, file: &Path, rest: &[usize]) -> c_int {
    let version = api::find(c"RedisModule_GetServerVersion");
    if version == 0 || host!(GetServerVersion: fn() -> c_int)() < api::OLDEST {
        log(context, "mullion needs Redis 7.0 or newer");
        return ERR;
    }
    let policy = rest.first().map(|first| text(*first));
    let policy = policy
        .as_deref()
        .and_then(|first| first.strip_prefix("policy="));
    let rest = &rest[usize::from(policy.is_some())..];
    match wall(file, policy.map(Path::new)) {
        Ok(walled) => {
            ALL.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Shared(walled));
            begin(walled, context, rest)
        }
        Err(why) => {
            log(context, &format!("mullion: {why}"));
            ERR
        }
    }
}

fn wall(file: &Path, policy: Option<&Path>) -> Result<&'static Walled, String> {
    let loaded = mullion_bridge::load(Request {
        path: file,
        policy,
        interface: INTERFACE,
        resolve: &mut api::resolve,
        name_of: api::name_of,
        always: api::ALWAYS,
        time: None,
    });
    let (module, policy) = loaded.map_err(|error| error.to_string())?;
    let commands = policy.groups.get("commands").into_iter().flatten();
    let commands: HashSet<String> = commands.map(|name| name.to_uppercase()).collect();
    let walled = Walled::new(module, commands, file.to_path_buf());
    walled.grant_tokens().map_err(|error| error.to_string())?;
    let entry = policy.entry.as_deref().unwrap_or("RedisModule_OnLoad");
    let Some(entry) = module.domain.function(entry) else {
        return Err(format!("{} has no function {entry}", module.name));
    };
    walled.entry.set(entry as u64);
    Ok(walled)
}

/// Calls the module's own beginning. Its arguments are kept for later lives.
fn begin(walled: &'static Walled, context: usize, arguments: &[usize]) -> c_int {
    for argument in arguments {
        host!(RetainString: fn(usize, usize))(0, *argument);
    }
    walled.arguments.replace(arguments.to_vec());
    let code = start(walled, context);
    let module = walled.module;
    if code != Some(OK) {
        let why = match module.runs() {
            true => format!("{} refuses to be loaded", module.name),
            false => module.fault(),
        };
        log(context, &format!("mullion: {why}"));
        return ERR;
    }
    let Some((function, _)) = commands::reserve(walled, commands::ABOUT) else {
        log(context, "mullion: too many commands");
        return ERR;
    };
    type Function = extern "C" fn(usize, usize, c_int) -> c_int;
    let create = host!(CreateCommand: fn(usize, *const c_char, Function, *const c_char, c_int, c_int, c_int) -> c_int);
    let name = c_string(&format!("mullion.{}", module.name.to_lowercase()));
    if create(
        context,
        name.as_ptr(),
        function,
        c"admin fast".as_ptr(),
        0,
        0,
        0,
    ) != OK
    {
        log(
            context,
            "mullion: the command for administrators cannot be made",
        );
        return ERR;
    }
    OK
}

/// Ends a module, as it wants to be ended.
pub(crate) fn unload(context: usize, file: &Path) -> c_int {
    let meant = |walled: &&&Walled| walled.file == file && !walled.is_gone.get();
    let all = all();
    let Some(walled) = all.iter().find(meant).copied() else {
        return ERR;
    };
    let module = walled.module;
    if walled.is_running() {
        return ERR;
    }
    if let Some(end) = module.domain.function("RedisModule_OnUnload") {
        let given = Given {
            context,
            ..Given::default()
        };
        let code = walled.enter(given, |frame| {
            Some(gate!(end as u64, fn(u64) -> c_int)(frame.token()))
        });
        if matches!(code, Some(code) if code != OK) {
            return ERR;
        }
    }
    if let Err(why) = module.domain.unload() {
        log(context, &format!("mullion: {why}"));
        return ERR;
    }
    walled.is_gone.set(true);
    walled.release();
    commands::forget(walled);
    OK
}

fn start(walled: &'static Walled, context: usize) -> Option<c_int> {
    let arguments = walled.arguments.borrow().clone();
    let given = Given {
        context,
        argv: arguments.as_ptr() as usize,
        argc: arguments.len(),
        ..Given::default()
    };
    walled.enter(given, |frame| {
        let words: Vec<u64> = arguments.iter().map(|at| *at as u64).collect();
        let lent = frame.lend_words(&words)?;
        let start = gate!(walled.entry.get(), fn(u64, u64, c_int) -> c_int);
        Some(start(frame.token(), lent, words.len() as c_int))
    })
}

/// `mullion.NAME` and `mullion.NAME restart`.
pub(crate) fn about(walled: &'static Walled, context: usize, argv: usize, argc: usize) -> c_int {
    // SAFETY: Redis passes so many strings.
    let arguments = unsafe { std::slice::from_raw_parts(argv as *const usize, argc) };
    let answer = match arguments
        .get(1)
        .map(|at| text(*at).to_lowercase())
        .as_deref()
    {
        None => Ok(state(walled)),
        Some("restart") => restart(walled, context),
        Some(_) => Err("the arguments are none, or `restart`".to_owned()),
    };
    match answer {
        Ok(text) => {
            let text = c_string(&text.replace(['\r', '\n'], " "));
            host!(ReplyWithSimpleString: fn(usize, *const c_char) -> c_int)(context, text.as_ptr())
        }
        Err(why) => {
            let why = c_string(&format!("ERR mullion: {}", why.replace(['\r', '\n'], " ")));
            host!(ReplyWithError: fn(usize, *const c_char) -> c_int)(context, why.as_ptr())
        }
    }
}

fn state(walled: &Walled) -> String {
    let module = walled.module;
    let bytes = module.heap().total;
    match module.runs() {
        true => format!(
            "{}: {bytes} bytes of heap, life {}, runs",
            module.name,
            module.life() + 1
        ),
        false => module.fault(),
    }
}

fn restart(walled: &'static Walled, context: usize) -> Result<String, String> {
    if walled.is_running() {
        return Err("the module is running".to_owned());
    }
    walled.module.restart()?;
    walled.release();
    commands::forget(walled);
    match start(walled, context) {
        Some(OK) => Ok("OK".to_owned()),
        _ if walled.module.runs() => Err("the module refuses to be loaded".to_owned()),
        _ => Err(walled.module.fault()),
    }
}
