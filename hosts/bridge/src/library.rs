//! Functions of the C library in the way of a bridge. Memory is of the module's own heap, and what they read or write is looked
//! at. They know the module by the call that they are in, so constructors can call them, too.

use crate::heap::Heap;
use crate::module::{Answer, Module, Reach, Refused, refused};
use crate::print::{Arguments, print};
use mullion_word_runtime::{Domain, Host, caller, refuse};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{LazyLock, PoisonError, RwLock};

/// Modules by where they are.
static KNOWN: LazyLock<RwLock<HashMap<u64, &'static Module>>> = LazyLock::new(RwLock::default);

thread_local! {
    /// The heap of a module that is being loaded by this thread.
    static LOADING: RefCell<Option<Heap>> = const { RefCell::new(None) };
}

/// While it lives, a module is being loaded by this thread.
pub(crate) struct Loading(());

impl Loading {
    pub(crate) fn begin(heap: Heap) -> Loading {
        LOADING.set(Some(heap));
        Loading(())
    }

    /// It is loaded: its heap, with what its constructors have allocated.
    pub(crate) fn end(self) -> Heap {
        LOADING.take().expect("`begin` has put it there")
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        LOADING.set(None);
    }
}

/// Where a module is: no two are at one place.
fn number(domain: &Domain) -> u64 {
    domain.base() as u64
}

pub(crate) fn known(module: &'static Module) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    known.insert(number(&module.domain), module);
}

/// Does something for the module that calls. If that is refused, its call ends when this returns.
fn mediate<R: Default>(act: impl FnOnce(&Domain) -> Answer<R>) -> R {
    let Some(domain) = caller() else {
        return R::default();
    };
    act(&domain).unwrap_or_else(|Refused(what)| {
        refuse(what);
        R::default()
    })
}

/// Does something with the heap of the module that calls.
fn with_heap<R>(domain: &Domain, act: impl FnOnce(&mut Heap) -> R) -> Answer<R> {
    let module = {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&number(domain)).copied()
    };
    match module {
        Some(module) => Ok(act(&mut module.heap())),
        None => LOADING.with_borrow_mut(|heap| match heap {
            Some(heap) => Ok(act(heap)),
            None => refused("memory for a module that is not loaded"),
        }),
    }
}

/// The C library's blocks have at least so many bytes more than was asked for, and modules that rely on it, by mistake.
const SLACK: u64 = 8;

/// A block of zeros: a module that reads what it has not written reads the same in each run.
fn take(domain: &Domain, bytes: u64) -> Answer<u64> {
    let (Ok(host), Some(all)) = (Host::new(), bytes.checked_add(SLACK)) else {
        return Ok(0);
    };
    let taken = with_heap(domain, |heap| heap.take(&host, domain, all))?;
    if let Some(at) = taken {
        // SAFETY: the block is that large, and nobody has seen it yet.
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, all as usize) };
    }
    Ok(taken.unwrap_or(0))
}

extern "C" fn malloc(bytes: u64) -> u64 {
    mediate(|domain| take(domain, bytes))
}

extern "C" fn calloc(count: u64, bytes: u64) -> u64 {
    mediate(|domain| take(domain, count.saturating_mul(bytes)))
}

fn give(domain: &Domain, at: u64) -> Answer<()> {
    match at == 0 || with_heap(domain, |heap| heap.give(at))? {
        true => Ok(()),
        false => refused(format!("{at:#x} is no block of the module's heap")),
    }
}

extern "C" fn free(at: u64) {
    mediate(|domain| give(domain, at));
}

extern "C" fn realloc(at: u64, bytes: u64) -> u64 {
    mediate(|domain| {
        let old = match at {
            0 => 0,
            at => match with_heap(domain, |heap| heap.size(at))? {
                Some(old) => old,
                None => return give(domain, at).map(|()| 0),
            },
        };
        let to = take(domain, bytes)?;
        if to != 0 && at != 0 {
            // SAFETY: both are blocks of the module's heap, of at least that size, and not the same one.
            unsafe {
                let kept = old.min(bytes) as usize;
                std::ptr::copy_nonoverlapping(at as *const u8, to as *mut u8, kept);
            }
            give(domain, at)?;
        }
        Ok(to)
    })
}

extern "C" fn strdup(text: u64) -> u64 {
    mediate(|domain| {
        let text = Reach(domain).c_string(text)?;
        let bytes = text.as_bytes_with_nul();
        let at = take(domain, bytes.len() as u64)?;
        if at != 0 {
            // SAFETY: the block is that large, and nobody has seen it yet.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        }
        Ok(at)
    })
}

/// Destructors of static objects never run: a module's memory goes as a whole.
extern "C" fn cxa_atexit(_: u64, _: u64, _: u64) -> i32 {
    0
}

/// Defines a function with the registers and the stack of a variadic call.
macro_rules! variadic {
    ($name:ident($($fixed:ident),*)($($i:ident),*), |$domain:ident, $arguments:ident| $act:expr) => {
        #[allow(clippy::too_many_arguments)]
        extern "C" fn $name(
            $($fixed: u64,)* $($i: u64,)*
            f0: f64, f1: f64, f2: f64, f3: f64, f4: f64, f5: f64, f6: f64, f7: f64,
            s0: u64, s1: u64, s2: u64, s3: u64, s4: u64, s5: u64,
            s6: u64, s7: u64, s8: u64, s9: u64, s10: u64, s11: u64,
        ) -> i32 {
            let $arguments = Arguments {
                integers: &[$($i),*],
                floats: &[f0, f1, f2, f3, f4, f5, f6, f7],
                stacked: &[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11],
            };
            mediate(|$domain| $act)
        }
    };
}

/// To a buffer of the module's, of which `room` bytes are written at most.
fn to_buffer(domain: &Domain, buffer: u64, room: u64, mut text: Vec<u8>) -> Answer<i32> {
    let all = i32::try_from(text.len()).unwrap_or(i32::MAX);
    if room > 0 {
        text.truncate(usize::try_from(room - 1).unwrap_or(usize::MAX));
        text.push(0);
        Reach(domain).write(buffer, &text)?;
    }
    Ok(all)
}

variadic!(
    snprintf(buffer, room, format)(a, b, c),
    |domain, arguments| {
        let text = print(&Reach(domain), format, arguments)?;
        to_buffer(domain, buffer, room, text)
    }
);

variadic!(sprintf(buffer, format)(a, b, c, d), |domain, arguments| {
    let text = print(&Reach(domain), format, arguments)?;
    to_buffer(domain, buffer, u64::MAX, text)
});

/// As the C library says it: how many bytes, or a number below zero.
fn put(text: &[u8]) -> i32 {
    let mut output = std::io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Ok(()) => i32::try_from(text.len()).unwrap_or(i32::MAX),
        Err(_) => -1,
    }
}

variadic!(printf(format)(a, b, c, d, e), |domain, arguments| {
    Ok(put(&print(&Reach(domain), format, arguments)?))
});

extern "C" fn puts(text: u64) -> i32 {
    mediate(|domain| {
        let mut text = Reach(domain).text(text)?.to_vec();
        text.push(b'\n');
        Ok(put(&text))
    })
}

/// Where a function of the C library is that has an own way here.
#[must_use]
pub fn c_library(name: &str) -> Option<usize> {
    let at = match name {
        "malloc" => malloc as *const (),
        "calloc" => calloc as *const (),
        "realloc" => realloc as *const (),
        "free" => free as *const (),
        "strdup" => strdup as *const (),
        "snprintf" => snprintf as *const (),
        "sprintf" => sprintf as *const (),
        "printf" => printf as *const (),
        "puts" => puts as *const (),
        "__cxa_atexit" => cxa_atexit as *const (),
        _ => return None,
    };
    Some(at as usize)
}

/// These functions as policies speak of them: without effects, because they look at memory themselves.
pub const C_LIBRARY: &str = include_str!("../c.toml");
