//! Commands: Redis calls a function that has no data of its own, so each command has a function of its own here.

use crate::api::{host, mediators};
use crate::frame::{Frame, Given, Walled, mediate};
use crate::memory::{ERR, OK};
use mullion_bridge::{Answer, gate, refused};
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

mediators! { ALL;
    CreateCommand = create;
    CreateSubcommand = create_subcommand;
    GetCommand = get;
    SetModuleAttribs = attributes;
    IsModuleNameBusy = is_busy;
}

/// All commands of all modules.
const MOST: usize = 512;

/// A command.
pub(crate) struct Command {
    pub(crate) walled: &'static Walled,
    /// The module's function; none for the command that is about the module.
    function: Cell<u64>,
    /// Redis's `RedisModuleCommand`, once the module has asked for it.
    handle: Cell<usize>,
}

static COMMANDS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static NEXT: AtomicUsize = AtomicUsize::new(0);

type Function = extern "C" fn(usize, usize, c_int) -> c_int;

extern "C" fn command<const N: usize>(context: usize, argv: usize, argc: c_int) -> c_int {
    let at = COMMANDS[N].load(Ordering::Acquire);
    if at == 0 {
        return ERR;
    }
    // SAFETY: `reserve` puts a command there, which stays.
    let command = unsafe { &*(at as *const Command) };
    run(command, context, argv, argc as usize)
}

macro_rules! sixteen {
    ($base:expr) => {
        [
            command::<{ $base * 16 }>,
            command::<{ $base * 16 + 1 }>,
            command::<{ $base * 16 + 2 }>,
            command::<{ $base * 16 + 3 }>,
            command::<{ $base * 16 + 4 }>,
            command::<{ $base * 16 + 5 }>,
            command::<{ $base * 16 + 6 }>,
            command::<{ $base * 16 + 7 }>,
            command::<{ $base * 16 + 8 }>,
            command::<{ $base * 16 + 9 }>,
            command::<{ $base * 16 + 10 }>,
            command::<{ $base * 16 + 11 }>,
            command::<{ $base * 16 + 12 }>,
            command::<{ $base * 16 + 13 }>,
            command::<{ $base * 16 + 14 }>,
            command::<{ $base * 16 + 15 }>,
        ]
    };
}
macro_rules! rows {
    ($($row:literal)*) => { [$(sixteen!($row)),*] };
}
const FUNCTIONS: [[Function; 16]; MOST / 16] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// A function of Redis's for a command.
pub(crate) fn reserve(walled: &'static Walled, function: u64) -> Option<(Function, usize)> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let slot = COMMANDS.get(number)?;
    let command = Box::into_raw(Box::new(Command {
        walled,
        function: Cell::new(function),
        handle: Cell::new(0),
    }));
    slot.store(command as usize, Ordering::Release);
    Some((FUNCTIONS[number / 16][number % 16], command as usize))
}

fn run(command: &Command, context: usize, argv: usize, argc: usize) -> c_int {
    let walled = command.walled;
    match command.function.get() {
        ABOUT => return crate::load::about(walled, context, argv, argc),
        NOBODY => {
            let what = c"ERR the module has no function for this command now";
            return host!(ReplyWithError: fn(usize, *const c_char) -> c_int)(
                context,
                what.as_ptr(),
            );
        }
        _ => {}
    }
    let asks_for_keys = host!(IsKeysPositionRequest: fn(usize) -> c_int)(context) != 0;
    let given = Given {
        context,
        argv,
        argc,
        answers: !asks_for_keys,
        ..Given::default()
    };
    let was_running = walled.module.runs();
    let code = walled.enter(given, |frame| {
        // SAFETY: Redis passes so many strings.
        let arguments = unsafe { std::slice::from_raw_parts(argv as *const u64, argc) };
        let lent = frame.lend_words(arguments)?;
        let function = gate!(command.function.get(), fn(u64, u64, c_int) -> c_int);
        Some(function(frame.token(), lent, argc as c_int))
    });
    match code {
        Some(code) => code,
        None if asks_for_keys => OK,
        None => {
            if !was_running || walled.module.runs() {
                // It was stopped before, or there was no memory for the call.
                let mut none = crate::replies::Account::default();
                let why = match walled.module.runs() {
                    true => format!("no memory for a call of {}", walled.module.name),
                    false => walled.module.fault(),
                };
                none.complete(context, &why);
            }
            OK
        }
    }
}

/// What a module says of a command.
struct Described {
    name: CString,
    function: u64,
    flags: CString,
    keys: [c_int; 3],
}

impl Described {
    fn read(frame: &Frame, name: u64, function: u64, flags: u64, keys: [c_int; 3]) -> Answer<Self> {
        let module = frame.walled.module;
        let flags = match flags {
            0 => CString::default(),
            flags => module.c_string(flags)?,
        };
        Ok(Described {
            name: module.c_string(name)?,
            function: module.function(function)?,
            flags,
            keys,
        })
    }

    /// Registers with Redis, or has this life take over what an earlier one has registered under this name.
    fn register(
        &self,
        frame: &Frame,
        key: &str,
        register: impl FnOnce(Option<Function>) -> c_int,
    ) -> c_int {
        let walled = frame.walled;
        if let Some(at) = walled.registered.borrow().get(key) {
            // SAFETY: commands stay, and keys of different kinds begin with different words.
            let command = unsafe { &*(*at as *const Command) };
            let is_new = command.function.get() == NOBODY;
            if is_new {
                command.function.set(self.function.max(NOBODY));
            }
            return if is_new { OK } else { ERR };
        }
        let Some((function, at)) = reserve(walled, self.function.max(NOBODY)) else {
            return ERR;
        };
        // A command with subcommands has no function.
        let code = register((self.function != 0).then_some(function));
        if code == OK {
            let mut registered = walled.registered.borrow_mut();
            registered.insert(key.to_owned(), at);
        }
        code
    }
}

/// The command that is about a module.
pub(crate) const ABOUT: u64 = 0;
/// No module has a function there: a command of an earlier life, or one that has subcommands alone.
const NOBODY: u64 = 1;

/// The life of these commands is over.
pub(crate) fn forget(walled: &Walled) {
    for (key, at) in walled.registered.borrow().iter() {
        if key.starts_with("command ") {
            // SAFETY: commands are leaked, so this one lives; keys that begin with `command` have no others.
            unsafe { &*(*at as *const Command) }.function.set(NOBODY);
        }
    }
}

fn key_of(name: &CString) -> String {
    format!("command {}", name.to_string_lossy().to_lowercase())
}

#[allow(clippy::too_many_arguments)]
extern "C" fn create(
    context: u64,
    name: u64,
    function: u64,
    flags: u64,
    first: c_int,
    last: c_int,
    step: c_int,
) -> c_int {
    mediate(|frame| {
        let context = frame.context(context)?;
        let described = Described::read(frame, name, function, flags, [first, last, step])?;
        let key = key_of(&described.name);
        Ok(described.register(frame, &key, |function| {
            let create = host!(CreateCommand: fn(usize, *const c_char, Option<Function>, *const c_char,
                c_int, c_int, c_int) -> c_int);
            let (name, flags) = (described.name.as_ptr(), described.flags.as_ptr());
            let [first, last, step] = described.keys;
            create(context, name, function, flags, first, last, step)
        }))
    })
}

/// A command of the module's, by the handle that it was given.
fn known(frame: &Frame, handle: u64) -> Answer<String> {
    let registered = frame.walled.registered.borrow();
    let mut commands = registered
        .iter()
        .filter(|(key, _)| key.starts_with("command "));
    let found = commands.find(|(_, at)| {
        // SAFETY: commands are leaked, so this one lives; keys that begin with `command` have no others.
        let command = unsafe { &*(**at as *const Command) };
        command.handle.get() as u64 == handle && handle != 0
    });
    match found {
        Some((key, _)) => Ok(key.clone()),
        None => refused(format!("{handle:#x} is no command of the module's")),
    }
}

#[allow(clippy::too_many_arguments)]
extern "C" fn create_subcommand(
    parent: u64,
    name: u64,
    function: u64,
    flags: u64,
    first: c_int,
    last: c_int,
    step: c_int,
) -> c_int {
    mediate(|frame| {
        let key = known(frame, parent)?;
        let described = Described::read(frame, name, function, flags, [first, last, step])?;
        let name = described.name.to_string_lossy().to_lowercase();
        Ok(described.register(frame, &format!("{key}|{name}"), |function| {
            let create = host!(CreateSubcommand: fn(usize, *const c_char, Option<Function>, *const c_char,
                c_int, c_int, c_int) -> c_int);
            let (name, flags) = (described.name.as_ptr(), described.flags.as_ptr());
            let [first, last, step] = described.keys;
            create(parent as usize, name, function, flags, first, last, step)
        }))
    })
}

extern "C" fn get(context: u64, name: u64) -> u64 {
    mediate(|frame| {
        let context = frame.context(context)?;
        let name = frame.walled.module.c_string(name)?;
        let find = host!(GetCommand: fn(usize, *const c_char) -> usize);
        let handle = find(context, name.as_ptr());
        match frame.walled.registered.borrow().get(&key_of(&name)) {
            Some(at) if handle != 0 => {
                // SAFETY: commands are leaked, so this one lives; `key_of` gives keys of commands alone.
                unsafe { &*(*at as *const Command) }.handle.set(handle);
                Ok(handle as u64)
            }
            _ => Ok(0),
        }
    })
}

extern "C" fn attributes(context: u64, name: u64, version: c_int, api: c_int) {
    mediate(|frame| {
        let context = frame.context(context)?;
        let name = frame.walled.module.c_string(name)?;
        let mut registered = frame.walled.registered.borrow_mut();
        registered.insert(format!("name {}", name.to_string_lossy()), 0);
        let set = host!(SetModuleAttribs: fn(usize, *const c_char, c_int, c_int));
        set(context, name.as_ptr(), version, api);
        Ok(())
    });
}

/// A module that begins anew has its name already.
extern "C" fn is_busy(name: u64) -> c_int {
    mediate(|frame| {
        let name = frame.walled.module.c_string(name)?;
        let own = format!("name {}", name.to_string_lossy());
        if frame.walled.registered.borrow().contains_key(&own) {
            return Ok(0);
        }
        Ok(host!(IsModuleNameBusy: fn(*const c_char) -> c_int)(
            name.as_ptr(),
        ))
    })
}
