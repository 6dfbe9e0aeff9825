//! Objects of libraries that modules have by their addresses. Such a library does not lock what it is given. So while a call works
//! with an object, no other thread can use or free it.
//!
//! ```text
//!   keep ──► free ──hold──► held by a thread ──drop──► free ──take──► the library frees it
//! ```

use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::Mutex;

/// What an object is to its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A connection to a directory.
    Directory,
    /// What a directory has answered.
    Found,
    /// An entry of that, which goes with it.
    Entry,
    /// A list of values.
    Values,
    /// A name of an entry.
    Name,
    /// A parser of pages.
    Parser,
}

struct Object {
    module: usize,
    kind: Kind,
    /// The object that it is part of, or 0.
    of: u64,
    /// The thread that works with it, and in how many calls.
    holder: (u64, u32),
}

static OBJECTS: Mutex<Option<HashMap<u64, Object>>> = Mutex::new(None);

fn number(walled: &Walled) -> usize {
    std::ptr::from_ref(walled) as usize
}

/// The library has made an object for the module.
pub(crate) fn keep(walled: &Walled, at: u64, kind: Kind, of: u64) {
    if at != 0 {
        let object = Object {
            module: number(walled),
            kind,
            of,
            holder: (0, 0),
        };
        lock(&OBJECTS).get_or_insert_default().insert(at, object);
    }
}

/// This thread's use of an object, and of what it is part of.
pub(crate) struct Held(Vec<u64>);

impl Drop for Held {
    fn drop(&mut self) {
        let mut objects = lock(&OBJECTS);
        let objects = objects.get_or_insert_default();
        for at in &self.0 {
            if let Some(object) = objects.get_mut(at) {
                object.holder.1 -= 1;
            }
        }
    }
}

/// Holds an object of the module's until the answer is dropped.
///
/// # Errors
/// The module has no such object, or a call works with it: one of another thread or, unless it may nest, any.
pub(crate) fn hold(walled: &Walled, at: u64, kind: Kind, nests: bool) -> Answer<Held> {
    let here = crate::backends::here();
    let mut objects = lock(&OBJECTS);
    let objects = objects.get_or_insert_default();
    let mut all = Vec::new();
    let mut next = (at, kind);
    loop {
        let (at, kind) = next;
        let object = objects.get(&at);
        let object = object.filter(|object| object.module == number(walled) && object.kind == kind);
        let object = object.ok_or_else(|| format!("{at:#x} is no {kind:?} of the module"))?;
        if object.holder.1 != 0 && !(nests && object.holder.0 == here) {
            return Err(format!("{at:#x} is in use by another call"));
        }
        all.push(at);
        let of = object.of;
        match objects.get(&of) {
            Some(whole) => next = (of, whole.kind),
            None => break,
        }
    }
    for at in &all {
        if let Some(object) = objects.get_mut(at) {
            object.holder = (here, object.holder.1 + 1);
        }
    }
    Ok(Held(all))
}

/// Takes an object from the module, with all that is part of it; the caller has the library free it.
///
/// # Errors
/// The module has no such object, or a call works with it.
pub(crate) fn take(walled: &Walled, at: u64, kind: Kind) -> Answer<()> {
    // Nobody works with it now, nor with a part of it: that would hold the whole.
    drop(hold(walled, at, kind, false)?);
    let mut objects = lock(&OBJECTS);
    let objects = objects.get_or_insert_default();
    match objects.get(&at) {
        Some(object) if object.holder.1 == 0 => {}
        _ => return Err(format!("{at:#x} is in use by another call")),
    }
    objects.remove(&at);
    objects.retain(|_, object| object.of != at);
    Ok(())
}
