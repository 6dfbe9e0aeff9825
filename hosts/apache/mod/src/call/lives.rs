//! How long what a call makes is good, and what it is made of.

use super::{lacks, pool_of, with_place};
use crate::apr;
use crate::copied;
use crate::frame::Frame;
use crate::interface::{Param, Text};
use crate::object::{Kind, Life};
use crate::pools;
use crate::slots::WIDE;
use crate::walled::Answer;

/// Looks at an object that another one has a pointer to from then on.
pub(super) fn is_kept(frame: &Frame, kind: Kind, object: u64, keeper: u64) -> Answer<()> {
    let walled = frame.walled;
    if !walled.knows(object, kind) {
        return Err(format!(
            "{object:#x} is no {} that the module has made",
            kind.name()
        ));
    }
    let homes = [object, keeper].map(|at| walled.home_of(at));
    let [Some(home), Some(pool)] = homes else {
        return Err(format!("{keeper:#x} is none that the module has made"));
    };
    match pools::outlives(home, pool) {
        true => Ok(()),
        false => Err(format!("{object:#x} goes before {keeper:#x} does")),
    }
}

/// The pool with which goes what a call makes: the call's own, or that of an object which it works with, if this one goes first. What
/// is made of a table (`tables.rs`), a hash or a file is a copy, or leads to the module's own memory.
/// None: it stays.
///
/// # Errors
/// Neither of two pools is below the other.
pub(super) fn home_of_made(
    frame: &Frame,
    params: &[Param],
    arguments: &[u64; WIDE],
) -> Answer<Option<u64>> {
    let mut home = pool_of(params, arguments).unwrap_or(0);
    for (param, at) in params.iter().zip(arguments) {
        if let Param::Object { kind, .. } = param
            && kind.life() == Life::Ends
            && *at != 0
            && let Some(from) = frame.walled.home_of(*at)
        {
            let first = pools::first_to_go(home, from);
            home = first.ok_or_else(|| {
                format!("{at:#x} goes with another pool than what would be made of it")
            })?;
        }
    }
    Ok(Some(home).filter(|home| *home != 0))
}

/// Whose buckets need no pool: APR copies the bytes when the pool goes.
const COPIES_BYTES: &str = "apr_bucket_pool_create";

/// The pool with which goes what a fresh bucket works with: its file, or what is in its pool.
pub(super) fn with_bucket(
    frame: &Frame,
    name: &str,
    params: &[Param],
    arguments: &[u64; WIDE],
) -> Answer<u64> {
    let mut home = 0;
    for (param, at) in params.iter().zip(arguments) {
        let from = match param {
            Param::Pool if name == COPIES_BYTES => 0,
            Param::Pool => *at,
            Param::Object {
                kind: Kind::File, ..
            } => frame.walled.home_of(*at).unwrap_or(0),
            _ => 0,
        };
        let first = pools::first_to_go(home, from);
        home = first
            .ok_or_else(|| format!("{at:#x} goes with another pool than the other arguments"))?;
    }
    Ok(home)
}

/// The connection to a database that a result is part of.
pub(super) fn whole_of(frame: &Frame, params: &[Param], arguments: &[u64; WIDE]) -> Option<u64> {
    let mut all = params.iter().zip(arguments);
    all.find_map(|(param, at)| match param {
        Param::Object {
            kind: Kind::DbHandle,
            ..
        } => Some(*at),
        Param::Object {
            kind: Kind::Results,
            ..
        } => frame.walled.whole_of(*at),
        _ => None,
    })
}

/// Puts copies of strings that a function keeps into the pool that the call is for. All arguments were looked at.
pub(super) fn keep(
    frame: &Frame,
    name: &str,
    params: &[Param],
    arguments: &mut [u64; WIDE],
) -> Answer<()> {
    for (at, param) in params.iter().enumerate().take(WIDE) {
        let Param::Text {
            what: Text::Kept,
            null,
        } = *param
        else {
            continue;
        };
        match arguments[at] {
            0 if null => {}
            0 => return lacks(name, at, 0, "string"),
            from => {
                let pool = pool_of(params, arguments).ok_or("no pool for a string")?;
                // SAFETY: it is a pool that the module may use, or that of a request or a connection which it may use.
                let copy = unsafe { copied::keep_text(frame, pool, from) };
                arguments[at] = copy.map_err(|what| with_place(name, at, &what))?;
            }
        }
    }
    Ok(())
}

/// The module's copy of a string that the host has left, or null.
pub(super) fn text_of_made(frame: &Frame, pool: Option<u64>, made: u64) -> Answer<u64> {
    let pool = pool.ok_or("no pool for a string")?;
    match made {
        0 => Ok(0),
        // SAFETY: the host's strings end with a zero.
        made => frame.walled.copy(frame, pool, unsafe { apr::text(made) }),
    }
}
