//! Types of modules. Redis keeps a value of ours for each of the module's, and calls methods here.
//!
//! ```text
//!   Redis's key ──► Value { module, type, life } ──► the module's value, on its heap
//! ```
//!
//! A value of an earlier life has nothing behind it any more. Its key is there, is of no type to the module, and can be
//! deleted.

use crate::api::{Context, Digest, Io, NewText, OthersText, Text, forward, host, mediators};
use crate::calls::{Arguments, Words};
use crate::frame::{Frame, Given, Walled, c_string, mediate};
use crate::memory::{ERR, OK, is_child};
use mullion_bridge::{Answer, gate, refused};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

forward! { FORWARDED;
    SaveUnsigned(io: Io, number: u64);
    LoadUnsigned(io: Io) -> u64;
    SaveSigned(io: Io, number: i64);
    LoadSigned(io: Io) -> i64;
    SaveDouble(io: Io, number: f64);
    LoadDouble(io: Io) -> f64;
    SaveFloat(io: Io, number: f32);
    LoadFloat(io: Io) -> f32;
    SaveString(io: Io, text: Text);
    LoadString(io: Io) -> NewText;
    IsIOError(io: Io) -> i32;
    GetKeyNameFromIO(io: Io) -> OthersText;
    GetDbIdFromIO(io: Io) -> i32;
    DigestAddLongLong(digest: Digest, number: i64);
    DigestEndSequence(digest: Digest);
    GetKeyNameFromDigest(digest: Digest) -> OthersText;
    GetDbIdFromDigest(digest: Digest) -> i32;
    ResetDataset(restart: i32, later: i32);
    SignalKeyAsReady(context: Context, key: Text);
}

mediators! { ALL;
    CreateDataType = create;
    ModuleTypeSetValue = set;
    ModuleTypeGetType = type_of;
    ModuleTypeGetValue = get;
    SaveStringBuffer = save_buffer;
    LoadStringBuffer = load_buffer;
    DigestAddStringBuffer = digest_buffer;
    GetContextFromIO = context_from_io;
    EmitAOF = emit;
}

/// Methods of a type, in the order of `RedisModuleTypeMethods`.
#[derive(Clone, Copy)]
enum Method {
    Load,
    Save,
    Rewrite,
    MemoryUsage,
    Digest,
    Free,
    FreeEffort,
    Unlink,
    Copy,
}

const METHODS: usize = 9;
/// Where they are in the structure, in words.
const PLACES: [(Method, u64, u64); METHODS] = [
    (Method::Load, 1, 1),
    (Method::Save, 2, 1),
    (Method::Rewrite, 3, 1),
    (Method::MemoryUsage, 4, 1),
    (Method::Digest, 5, 1),
    (Method::Free, 6, 1),
    (Method::FreeEffort, 10, 3),
    (Method::Unlink, 11, 3),
    (Method::Copy, 12, 3),
];

/// A type.
struct Type {
    walled: &'static Walled,
    handle: Cell<usize>,
    theirs: Cell<[u64; METHODS]>,
    life: Cell<u64>,
}

/// A value, as Redis has it.
struct Value {
    of: &'static Type,
    inner: u64,
    life: u64,
}

/// All types of all modules.
const MOST: usize = 32;
static TYPES: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static NEXT: AtomicUsize = AtomicUsize::new(0);

type Load = extern "C" fn(usize, c_int) -> *mut Value;

extern "C" fn load<const N: usize>(io: usize, version: c_int) -> *mut Value {
    let at = TYPES[N].load(Ordering::Acquire) as *const Type;
    // SAFETY: `create` puts it there before Redis knows of this function, and it stays.
    let of = unsafe { &*at };
    let given = Given {
        io,
        ..Given::default()
    };
    let inner = of.enter(given, Method::Load, |function| {
        gate!(function, fn(u64, c_int) -> u64)(io as u64, version)
    });
    match inner {
        Some(inner) if inner != 0 => of.value(inner),
        _ => std::ptr::null_mut(),
    }
}

macro_rules! loads {
    ($($number:literal)*) => { [$(load::<$number>),*] };
}
const LOADS: [Load; MOST] = loads!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

impl Type {
    fn method(&self, method: Method) -> u64 {
        self.theirs.get()[method as usize]
    }

    fn value(&'static self, inner: u64) -> *mut Value {
        Box::into_raw(Box::new(Value {
            of: self,
            inner,
            life: self.walled.module.life(),
        }))
    }

    fn enter<R>(&self, given: Given, method: Method, call: impl FnOnce(u64) -> R) -> Option<R> {
        let function = self.method(method);
        if function == 0 {
            return None;
        }
        self.walled.enter(given, |_| Some(call(function)))
    }
}

impl Value {
    fn is_alive(&self) -> bool {
        self.life == self.of.walled.module.life() && self.of.walled.module.runs()
    }

    /// Calls a method for this value; nothing, if its life is over.
    fn enter<R>(
        &self,
        given: Given,
        method: Method,
        call: impl FnOnce(u64, u64) -> R,
    ) -> Option<R> {
        match self.is_alive() {
            true => self.of.enter(given, method, |at| call(at, self.inner)),
            false => None,
        }
    }

    /// Nothing can be written for it. A copy of the server that saves ends then, and its file is not taken.
    fn is_lost(&self) {
        let module = self.of.walled.module;
        let text = c_string(&format!("{}: a value cannot be saved", module.fault()));
        type Log = unsafe extern "C" fn(usize, *const c_char, *const c_char, ...);
        let log = crate::api::known("RedisModule_Log\0");
        // SAFETY: this is the function's type, and the format has one string.
        unsafe {
            std::mem::transmute::<usize, Log>(log)(
                0,
                c"warning".as_ptr(),
                c"%s".as_ptr(),
                text.as_ptr(),
            );
        }
        if is_child() {
            // SAFETY: the copy has nothing to tidy up but its file, which its parent removes.
            unsafe { libc::_exit(1) };
        }
    }
}

/// A value of Redis's argument.
fn value<'a>(at: *const c_void) -> &'a Value {
    // SAFETY: `Type::value` has made it, and Redis passes no other to these methods.
    unsafe { &*at.cast::<Value>() }
}

extern "C" fn save(io: usize, at: *const c_void) {
    let given = Given {
        io,
        ..Given::default()
    };
    let saved = value(at).enter(given, Method::Save, |function, inner| {
        gate!(function, fn(u64, u64))(io as u64, inner);
    });
    if saved.is_none() {
        value(at).is_lost();
    }
}

extern "C" fn rewrite(io: usize, key: usize, at: *const c_void) {
    let given = Given {
        io,
        argv: (&raw const key) as usize,
        argc: 1,
        ..Given::default()
    };
    let written = value(at).enter(given, Method::Rewrite, |function, inner| {
        gate!(function, fn(u64, u64, u64))(io as u64, key as u64, inner);
    });
    if written.is_none() {
        value(at).is_lost();
    }
}

extern "C" fn memory_usage(at: *const c_void) -> usize {
    let usage = value(at).enter(Given::default(), Method::MemoryUsage, |function, inner| {
        gate!(function, fn(u64) -> usize)(inner)
    });
    usage.unwrap_or(size_of::<Value>())
}

extern "C" fn digest(digest: usize, at: *const c_void) {
    let given = Given {
        digest,
        ..Given::default()
    };
    value(at).enter(given, Method::Digest, |function, inner| {
        gate!(function, fn(u64, u64))(digest as u64, inner);
    });
}

extern "C" fn free(at: *mut c_void) {
    value(at).enter(Given::default(), Method::Free, |function, inner| {
        gate!(function, fn(u64))(inner);
    });
    // SAFETY: `Type::value` has made it, and Redis does not use it any more.
    drop(unsafe { Box::from_raw(at.cast::<Value>()) });
}

fn with_key(key: &usize) -> Given {
    Given {
        argv: std::ptr::from_ref(key) as usize,
        argc: 1,
        ..Given::default()
    }
}

/// One: so Redis frees values on its main thread, where alone the module runs.
extern "C" fn free_effort(_: usize, _: *const c_void) -> usize {
    1
}

extern "C" fn unlink(key: usize, at: *const c_void) {
    value(at).enter(with_key(&key), Method::Unlink, |function, inner| {
        gate!(function, fn(u64, u64))(key as u64, inner);
    });
}

extern "C" fn copy(from: usize, to: usize, at: *const c_void) -> *mut c_void {
    let keys = [from, to];
    let given = Given {
        argv: keys.as_ptr() as usize,
        argc: 2,
        ..Given::default()
    };
    let made = value(at).enter(given, Method::Copy, |function, inner| {
        gate!(function, fn(u64, u64, u64) -> u64)(from as u64, to as u64, inner)
    });
    match made {
        Some(made) if made != 0 => value(at).of.value(made).cast(),
        _ => std::ptr::null_mut(),
    }
}

/// `RedisModuleTypeMethods`, up to the third version.
#[repr(C)]
struct Methods {
    version: u64,
    load: Option<Load>,
    save: Option<extern "C" fn(usize, *const c_void)>,
    rewrite: Option<extern "C" fn(usize, usize, *const c_void)>,
    memory_usage: Option<extern "C" fn(*const c_void) -> usize>,
    digest: Option<extern "C" fn(usize, *const c_void)>,
    free: Option<extern "C" fn(*mut c_void)>,
    aux_load: usize,
    aux_save: usize,
    aux_triggers: c_int,
    free_effort: Option<extern "C" fn(usize, *const c_void) -> usize>,
    unlink: Option<extern "C" fn(usize, *const c_void)>,
    copy: Option<extern "C" fn(usize, usize, *const c_void) -> *mut c_void>,
    defrag: usize,
}

extern "C" fn create(context: u64, name: u64, version: c_int, at: u64) -> u64 {
    mediate(|frame| {
        let (context, walled) = (frame.context(context)?, frame.walled);
        let module = walled.module;
        let name = module.c_string(name)?;
        let form = module.read(at)?;
        if form >= 2 && (module.read(at + 56)? != 0 || module.read(at + 64)? != 0) {
            return refused(
                "a type with data beside its keys (aux_save) is not for modules behind the wall",
            );
        }
        let mut theirs = [0; METHODS];
        for (method, place, since) in PLACES {
            if form >= since {
                theirs[method as usize] = module.function(module.read(at + 8 * place)?)?;
            }
        }
        let needed = [Method::Load, Method::Save, Method::Free];
        if needed.iter().any(|method| theirs[*method as usize] == 0) {
            return refused("a type lacks rdb_load, rdb_save or free");
        }
        let key = format!("type {}", name.to_string_lossy());
        if let Some(at) = walled.registered.borrow().get(&key) {
            // SAFETY: types stay, and keys of different kinds begin with different words.
            let of = unsafe { &*(*at as *const Type) };
            of.theirs.set(theirs);
            of.life.set(module.life());
            return Ok(of.handle.get() as u64);
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = TYPES.get(number) else {
            return Ok(0);
        };
        let of: &'static Type = Box::leak(Box::new(Type {
            walled,
            handle: Cell::new(0),
            theirs: Cell::new(theirs),
            life: Cell::new(module.life()),
        }));
        slot.store(std::ptr::from_ref(of) as usize, Ordering::Release);
        let has = |method: Method| theirs[method as usize] != 0;
        let methods = Methods {
            version: 3,
            load: Some(LOADS[number]),
            save: Some(save),
            rewrite: has(Method::Rewrite).then_some(rewrite),
            memory_usage: has(Method::MemoryUsage).then_some(memory_usage),
            digest: has(Method::Digest).then_some(digest),
            free: Some(free),
            aux_load: 0,
            aux_save: 0,
            aux_triggers: 0,
            free_effort: Some(free_effort),
            unlink: has(Method::Unlink).then_some(unlink),
            copy: has(Method::Copy).then_some(copy),
            defrag: 0,
        };
        let create =
            host!(CreateDataType: fn(usize, *const c_char, c_int, *const Methods) -> usize);
        let handle = create(context, name.as_ptr(), version, &raw const methods);
        if handle != 0 {
            of.handle.set(handle);
            walled.types.borrow_mut().insert(handle);
            let mut registered = walled.registered.borrow_mut();
            registered.insert(key, std::ptr::from_ref(of) as usize);
        }
        Ok(handle as u64)
    })
}

/// A type of the module's.
fn known(frame: &Frame, handle: u64) -> Answer<&'static Type> {
    let registered = frame.walled.registered.borrow();
    let mut types = registered
        .iter()
        .filter(|(key, _)| key.starts_with("type "));
    let found = types.find_map(|(_, at)| {
        // SAFETY: types are leaked, so this one lives; keys that begin with `type` have no others.
        let of = unsafe { &*(*at as *const Type) };
        (of.handle.get() as u64 == handle).then_some(of)
    });
    match found {
        Some(of) => Ok(of),
        None => refused(format!("{handle:#x} is no type of the module's")),
    }
}

extern "C" fn set(key: u64, handle: u64, inner: u64) -> c_int {
    mediate(|frame| {
        let (key, of) = (frame.key(key)?, known(frame, handle)?);
        if inner == 0 {
            return Ok(ERR);
        }
        let made = of.value(inner);
        let set = host!(ModuleTypeSetValue: fn(usize, usize, *mut Value) -> c_int);
        let code = set(key, handle as usize, made);
        if code != OK {
            // SAFETY: Redis has not taken it.
            drop(unsafe { Box::from_raw(made) });
        }
        Ok(code)
    })
}

/// The value of a key, if it is of a type of this module, and of this life.
fn found(frame: &Frame, key: usize) -> Option<&'static Value> {
    let handle = host!(ModuleTypeGetType: fn(usize) -> usize)(key);
    if !frame.walled.types.borrow().contains(&handle) {
        return None;
    }
    let at = host!(ModuleTypeGetValue: fn(usize) -> *const c_void)(key);
    (!at.is_null())
        .then(|| value(at))
        .filter(|value| value.is_alive())
}

/// Types of other modules, and of earlier lives, are none to this one.
extern "C" fn type_of(key: u64) -> u64 {
    mediate(|frame| {
        let key = frame.optional_key(key)?;
        let found = (key != 0).then(|| found(frame, key)).flatten();
        Ok(found.map_or(0, |value| value.of.handle.get() as u64))
    })
}

extern "C" fn get(key: u64) -> u64 {
    mediate(|frame| {
        let key = frame.optional_key(key)?;
        let found = (key != 0).then(|| found(frame, key)).flatten();
        Ok(found.map_or(0, |value| value.inner))
    })
}

extern "C" fn save_buffer(io: u64, at: u64, bytes: u64) {
    mediate(|frame| {
        let (io, text) = (frame.io(io)?, frame.walled.module.bytes(at, bytes)?);
        host!(SaveStringBuffer: fn(usize, *const u8, usize))(io, text.as_ptr(), text.len());
        Ok(())
    });
}

extern "C" fn load_buffer(io: u64, length: u64) -> u64 {
    mediate(|frame| {
        let (io, module) = (frame.io(io)?, frame.walled.module);
        let mut bytes = 0usize;
        let at = host!(LoadStringBuffer: fn(usize, *mut usize) -> *mut u8)(io, &raw mut bytes);
        if at.is_null() {
            return Ok(0);
        }
        // SAFETY: Redis has allocated and filled so many bytes, which are ours to free.
        let copy = module.give(unsafe { std::slice::from_raw_parts(at, bytes) });
        host!(Free: fn(*mut u8))(at);
        if length != 0 {
            module.write(length, &bytes.to_ne_bytes())?;
        }
        Ok(copy.unwrap_or(0))
    })
}

extern "C" fn digest_buffer(digest: u64, at: u64, bytes: u64) {
    mediate(|frame| {
        let (digest, text) = (frame.digest(digest)?, frame.walled.module.bytes(at, bytes)?);
        let add = host!(DigestAddStringBuffer: fn(usize, *const u8, usize));
        add(digest, text.as_ptr(), text.len());
        Ok(())
    });
}

extern "C" fn context_from_io(io: u64) -> u64 {
    mediate(|frame| {
        let io = frame.io(io)?;
        let context = host!(GetContextFromIO: fn(usize) -> usize)(io);
        frame.given.set(Given {
            context,
            ..frame.given.get()
        });
        Ok(frame.token())
    })
}

crate::calls::variadic!(emit -> (), |frame, io, name, format, words| {
    let (io, name) = (frame.io(io)?, frame.walled.module.c_string(name)?);
    let arguments = Arguments::read(frame, format, Words(words))?;
    type Emit = unsafe extern "C" fn(usize, *const c_char, *const c_char, ...);
    let at = crate::api::known("RedisModule_EmitAOF\0");
    let (all, format) = (&arguments.all, &arguments.format);
    // SAFETY: this is the function's type; the format has one array of strings of Redis's, with its length.
    unsafe {
        std::mem::transmute::<usize, Emit>(at)(io, name.as_ptr(), format.as_ptr(), all.as_ptr(), all.len());
    }
    Ok(())
});
