//! Redis's functions, which it hands out by name, and those that modules get in their place.
//!
//! A module finds Redis by the first word of the context of its `RedisModule_OnLoad`: a function that answers a name with
//! an address. A module behind the wall gets a context and such a function of ours.

use crate::frame::{Frame, mediate};
use mullion_bridge::{Answer, refused};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Redis's `RedisModule_GetApi`.
static GET: AtomicUsize = AtomicUsize::new(0);

/// The oldest server with all functions that are used here, as `RedisModule_GetServerVersion` says it.
pub(crate) const OLDEST: c_int = 0x0007_0000;

/// Remembers where Redis's functions are found.
///
/// # Safety
/// `context` is what Redis passes to `RedisModule_OnLoad`.
pub(crate) unsafe fn open(context: *const usize) {
    // SAFETY: by the caller; the first word is what `RedisModule_Init` reads.
    GET.store(unsafe { *context }, Ordering::Release);
}

/// A function of Redis's by its whole name; 0 if the server has none.
pub(crate) fn find(name: &CStr) -> usize {
    type Get = extern "C" fn(*const c_char, *mut usize) -> c_int;
    // SAFETY: `open` has it from Redis.
    let get = unsafe { std::mem::transmute::<usize, Get>(GET.load(Ordering::Acquire)) };
    let mut found = 0;
    match get(name.as_ptr(), &raw mut found) {
        0 => found,
        _ => 0,
    }
}

/// As [`find`], for functions that [`OLDEST`] has.
pub(crate) fn known(name: &str) -> usize {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
    match find(name) {
        // Without it there is no way on: the version was looked at when this library was loaded.
        0 => std::process::abort(),
        at => at,
    }
}

/// A function of Redis's with its type: `host!(ReplyWithNull: fn(usize) -> c_int)(context)`.
macro_rules! host {
    ($name:ident: fn($($parameter:ty),* $(,)?) $(-> $result:ty)?) => {{
        static AT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let mut at = AT.load(std::sync::atomic::Ordering::Relaxed);
        if at == 0 {
            at = $crate::api::known(concat!("RedisModule_", stringify!($name), "\0"));
            AT.store(at, std::sync::atomic::Ordering::Relaxed);
        }
        // SAFETY: this is the type that redismodule.h declares. What is passed is Redis's own, made here, or a module's
        // that was looked at: `Frame` and `Module` give handles, texts and bytes in no other way.
        unsafe { std::mem::transmute::<usize, extern "C" fn($($parameter),*) $(-> $result)?>(at) }
    }};
}
pub(crate) use host;

/// A parameter of a function that is passed on: what a module passes, what is kept meanwhile, and what Redis gets.
pub(crate) trait Parameter {
    type Raw;
    type Held;
    type Host;
    fn look(frame: &Frame, raw: Self::Raw) -> Answer<Self::Held>;
    fn pass(held: &mut Self::Held) -> Self::Host;
    /// Behind the call.
    fn settle(_: &Frame, _: Self::Held) -> Answer<()> {
        Ok(())
    }
}

/// Numbers are passed on as they are.
macro_rules! numbers {
    ($($kind:ty),*) => { $(impl Parameter for $kind {
        type Raw = $kind;
        type Held = $kind;
        type Host = $kind;
        fn look(_: &Frame, raw: $kind) -> Answer<$kind> {
            Ok(raw)
        }
        fn pass(held: &mut $kind) -> $kind {
            *held
        }
    })* };
}
numbers!(i32, u32, i64, u64, f64, f32);

/// Handles that a module was given.
macro_rules! handles {
    ($($name:ident: $look:ident;)*) => { $(
        pub(crate) struct $name;
        impl Parameter for $name {
            type Raw = u64;
            type Held = usize;
            type Host = usize;
            fn look(frame: &Frame, raw: u64) -> Answer<usize> {
                frame.$look(raw)
            }
            fn pass(held: &mut usize) -> usize {
                *held
            }
        }
    )* };
}
handles! {
    Context: context;
    OptionalContext: optional_context;
    Text: string;
    OptionalText: optional_string;
    Key: key;
    OptionalKey: optional_key;
    Reply: reply;
    Dict: dict;
    Iterator: iterator;
    Cursor: cursor;
    Io: io;
    Digest: digest;
}

/// A string that ends with a zero: copied.
pub(crate) struct Words;
impl Parameter for Words {
    type Raw = u64;
    type Held = CString;
    type Host = *const c_char;
    fn look(frame: &Frame, raw: u64) -> Answer<CString> {
        frame.walled.module.c_string(raw)
    }
    fn pass(held: &mut CString) -> *const c_char {
        held.as_ptr()
    }
}

/// A number that Redis writes: to a place of ours first.
pub(crate) struct Out<T>(std::marker::PhantomData<T>);
/// One that Redis reads and writes.
pub(crate) struct InOut<T>(std::marker::PhantomData<T>);

macro_rules! outs {
    ($($kind:ty),*) => { $(
        impl Parameter for Out<$kind> {
            type Raw = u64;
            type Held = (u64, $kind);
            type Host = *mut $kind;
            fn look(_: &Frame, raw: u64) -> Answer<(u64, $kind)> {
                Ok((raw, <$kind>::default()))
            }
            fn pass(held: &mut (u64, $kind)) -> *mut $kind {
                &raw mut held.1
            }
            fn settle(frame: &Frame, (at, value): (u64, $kind)) -> Answer<()> {
                match at {
                    0 => Ok(()),
                    at => frame.walled.module.write(at, &value.to_ne_bytes()),
                }
            }
        }
        impl Parameter for InOut<$kind> {
            type Raw = u64;
            type Held = (u64, $kind);
            type Host = *mut $kind;
            fn look(frame: &Frame, at: u64) -> Answer<(u64, $kind)> {
                if at == 0 {
                    return Ok((0, 0 as $kind));
                }
                let bytes = frame.walled.module.bytes(at, size_of::<$kind>() as u64)?;
                Ok((at, <$kind>::from_ne_bytes(bytes.try_into().unwrap_or_default())))
            }
            fn pass(held: &mut (u64, $kind)) -> *mut $kind {
                match held.0 {
                    0 => std::ptr::null_mut(),
                    _ => &raw mut held.1,
                }
            }
            fn settle(frame: &Frame, held: (u64, $kind)) -> Answer<()> {
                <Out<$kind> as Parameter>::settle(frame, held)
            }
        }
    )* };
}
outs!(i32, i64, u64, f64);

/// A result: what Redis answers, and what the module gets.
pub(crate) trait Back {
    type Host;
    type Raw;
    fn back(frame: &Frame, host: Self::Host) -> Answer<Self::Raw>;
}

macro_rules! plain {
    ($($kind:ty),*) => { $(impl Back for $kind {
        type Host = $kind;
        type Raw = $kind;
        fn back(_: &Frame, host: $kind) -> Answer<$kind> {
            Ok(host)
        }
    })* };
}
plain!((), i32, u32, i64, u64, f64, f32);

/// Handles that are the module's from now on.
macro_rules! given {
    ($($name:ident: $give:ident;)*) => { $(
        pub(crate) struct $name;
        impl Back for $name {
            type Host = usize;
            type Raw = u64;
            fn back(frame: &Frame, host: usize) -> Answer<u64> {
                Ok(frame.$give(host))
            }
        }
    )* };
}
given! {
    NewText: give_string;
    OthersText: lend_string;
}

/// Functions that are passed on once their arguments were looked at, with a line for each; and the list of them.
macro_rules! forward {
    ($list:ident; $($name:ident($($p:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        /// By name.
        pub(crate) const $list: &[(&str, *const ())] = &[$(
            (concat!("RedisModule_", stringify!($name)), forwarded::$name as *const ())
        ),*];
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod forwarded {
            #[allow(unused_imports)]
            use super::*;
            use $crate::api::{Back, Parameter};
            $(
                pub(super) extern "C" fn $name($($p: <$kind as Parameter>::Raw),*) -> $crate::api::raw!($($result)?) {
                    $crate::frame::mediate(|_frame| {
                        $(let mut $p = <$kind as Parameter>::look(_frame, $p)?;)*
                        let result = $crate::api::host!($name:
                            fn($(<$kind as Parameter>::Host),*) -> $crate::api::hosted!($($result)?)
                        )($(<$kind as Parameter>::pass(&mut $p)),*);
                        $(<$kind as Parameter>::settle(_frame, $p)?;)*
                        <$crate::api::or_nothing!($($result)?) as Back>::back(_frame, result)
                    })
                }
            )*
        }
    };
}
pub(crate) use forward;

macro_rules! or_nothing {
    () => {
        ()
    };
    ($result:ty) => {
        $result
    };
}
pub(crate) use or_nothing;
macro_rules! raw {
    () => {
        ()
    };
    ($result:ty) => {
        <$result as $crate::api::Back>::Raw
    };
}
pub(crate) use raw;
macro_rules! hosted {
    () => {
        ()
    };
    ($result:ty) => {
        <$result as $crate::api::Back>::Host
    };
}
pub(crate) use hosted;

/// A list of functions that are mediated one by one.
macro_rules! mediators {
    ($list:ident; $($name:ident = $function:path;)*) => {
        /// By name.
        pub(crate) const $list: &[(&str, *const ())] = &[$(
            (concat!("RedisModule_", stringify!($name)), $function as *const ())
        ),*];
    };
}
pub(crate) use mediators;

fn lists() -> impl std::iter::Iterator<Item = (&'static str, usize)> {
    let lists: [&[(&str, *const ())]; 13] = [
        crate::calls::ALL,
        crate::calls::FORWARDED,
        crate::commands::ALL,
        crate::dicts::ALL,
        crate::dicts::FORWARDED,
        crate::format::ALL,
        crate::keys::ALL,
        crate::keys::FORWARDED,
        crate::replies::ALL,
        crate::strings::ALL,
        crate::strings::FORWARDED,
        crate::timers::ALL,
        crate::types::ALL,
    ];
    let more = [
        crate::types::FORWARDED,
        crate::memory::ALL,
        crate::scan::ALL,
        crate::scan::FORWARDED,
    ];
    let all = lists.into_iter().chain(more).flatten();
    all.map(|(name, at)| (*name, *at as usize))
}

/// What modules are offered, by name.
pub(crate) fn offered() -> &'static HashMap<&'static str, usize> {
    static OFFERED: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    OFFERED.get_or_init(|| lists().collect())
}

/// Names by addresses that a module may have seen.
fn names() -> MutexGuard<'static, HashMap<u64, &'static str>> {
    static NAMES: OnceLock<Mutex<HashMap<u64, &'static str>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let known = lists().map(|(name, at)| (at as u64, name));
        Mutex::new(known.collect())
    });
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of a function that a module was given.
pub(crate) fn name_of(address: u64) -> Option<&'static str> {
    names().get(&address).copied()
}

/// Where a function is, for a module's imports.
pub(crate) fn resolve(name: &str) -> Option<usize> {
    if name == GET_API {
        return Some(get_api as *const () as usize);
    }
    if name == "__errno_location" {
        return Some(crate::frame::errno_location as *const () as usize);
    }
    let ours = mullion_bridge::c_library(name);
    ours.or(offered().get(name).copied()).or_else(|| {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found as usize)
    })
}

/// Where a module begins.
pub(crate) const GET_API: &str = "RedisModule_GetApi";
/// What every module may call.
pub(crate) const ALWAYS: &[&str] = &[GET_API, "__errno_location"];

/// Answers a name with an address. What is not offered has Redis's own: a call is refused, and told by name.
pub(crate) extern "C" fn get_api(name: u64, to: u64) -> c_int {
    mediate(|frame| {
        let module = frame.walled.module;
        let name = module.c_string(name)?;
        let Ok(text) = name.to_str() else {
            return refused("a function's name is no text");
        };
        let at = match offered().get(text) {
            Some(at) => *at,
            None => match find(&name) {
                0 => return Ok(1),
                at => {
                    let known = text.to_owned();
                    names().entry(at as u64).or_insert_with(|| known.leak());
                    at
                }
            },
        };
        module.write(to, &(at as u64).to_ne_bytes())?;
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::offered;
    use mullion_word_policy::File;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_offered_is_described() {
        let file = File::parse(crate::load::INTERFACE).expect("it is a policy");
        let described: BTreeSet<&str> = file.calls.keys().map(String::as_str).collect();
        let offered: BTreeSet<&str> = offered().keys().copied().collect();
        assert_eq!(described, offered);
        let mut grouped = file.groups.values().flatten();
        assert!(grouped.all(|name| name.starts_with('@') || offered.contains(name.as_str())));
        assert_eq!(offered.len(), OFFERED);
    }

    /// As the README says.
    const OFFERED: usize = 197;
}
