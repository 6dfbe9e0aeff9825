//! Tables that are made of other tables. APR copies no strings then: both lead to the same ones. A table's strings lie in its own pool,
//! as it got copies. If that goes first, the other table gets strings of its own.

use crate::call::{has, mediate};
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::layout::read;
use crate::object::Kind;
use crate::pools;
use crate::states::{by_row, real};
use crate::walled::Answer;

/// The pool of a table, which is the first word of its array.
fn pool_of(frame: &Frame, name: &str, at: usize, table: u64) -> Answer<u64> {
    match has(frame, Kind::Table, table) {
        // SAFETY: it is a table of APR's, whose words no module writes.
        true => Ok(unsafe { read(table) }),
        false => Err(format!(
            "{name}: argument {at}, {table:#x}, is no table that the module was given or has made"
        )),
    }
}

/// A table whose strings are there as long as a pool: the one that an argument is, or a copy of it with its strings.
fn lasting(frame: &Frame, name: &str, (at, table): (usize, u64), pool: u64) -> Answer<u64> {
    let own = pool_of(frame, name, at, table)?;
    if pools::outlives(own, pool) {
        return Ok(table);
    }
    // SAFETY: it is APR's function, with a pool that the call may use and a table that it has looked at.
    unsafe {
        let clone: extern "C" fn(u64, u64) -> u64 = std::mem::transmute(real("apr_table_clone")?);
        Ok(clone(pool, table))
    }
}

pub(crate) extern "C" fn apr_table_copy(pool: u64, table: u64) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        let own = pool_of(frame, "apr_table_copy", 1, table)?;
        let name = match pools::outlives(own, pool) {
            true => "apr_table_copy",
            false => "apr_table_clone",
        };
        by_row(
            frame,
            name,
            "p t",
            Result_::Object(Kind::Table),
            &[pool, table],
        )
    })
}

pub(crate) extern "C" fn apr_table_overlay(pool: u64, first: u64, second: u64) -> u64 {
    const NAME: &str = "apr_table_overlay";
    mediate(|frame| {
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        let first = lasting(frame, NAME, (1, first), pool)?;
        let second = lasting(frame, NAME, (2, second), pool)?;
        by_row(
            frame,
            NAME,
            "p . .",
            Result_::Object(Kind::Table),
            &[pool, first, second],
        )
    })
}

/// The first table gets what the second one has.
pub(crate) extern "C" fn apr_table_overlap(first: u64, second: u64, flags: u64) -> u64 {
    const NAME: &str = "apr_table_overlap";
    mediate(|frame| {
        frame.only_computes();
        let pool = pool_of(frame, NAME, 0, first)?;
        let second = lasting(frame, NAME, (1, second), pool)?;
        by_row(
            frame,
            NAME,
            "t . .",
            Result_::Plain,
            &[first, second, flags],
        )
    })
}
