//! Going through the database, and through one key.

use crate::api::{Cursor, forward, host, mediators};
use crate::frame::{Frame, Given, mediate};
use mullion_bridge::{Answer, gate};
use std::ffi::{c_int, c_void};

forward! { FORWARDED;
    ScanCursorRestart(cursor: Cursor);
}

mediators! { ALL;
    ScanCursorCreate = create;
    ScanCursorDestroy = destroy;
    Scan = scan;
    ScanKey = scan_key;
}

extern "C" fn create() -> u64 {
    mediate(|frame| {
        let cursor = host!(ScanCursorCreate: fn() -> usize)();
        frame.walled.cursors.borrow_mut().insert(cursor);
        Ok(cursor as u64)
    })
}

extern "C" fn destroy(cursor: u64) {
    mediate(|frame| {
        frame.changes()?;
        let cursor = frame.cursor(cursor)?;
        frame.walled.cursors.borrow_mut().remove(&cursor);
        host!(ScanCursorDestroy: fn(usize))(cursor);
        Ok(())
    });
}

/// A call of the module that asks for callbacks.
struct Asked<'a> {
    frame: &'a Frame,
    function: u64,
    data: u64,
}

/// Calls the module back, with a key that is open for that long.
fn back(asked: *mut c_void, key: usize, words: [usize; 2], has_token: bool) {
    // SAFETY: `scan` and `scan_key` have it on their stacks while Redis calls.
    let asked = unsafe { &*asked.cast::<Asked<'_>>() };
    let walled = asked.frame.walled;
    let given = Given {
        context: asked.frame.given.get().context,
        argv: words.as_ptr() as usize,
        argc: 2,
        scans: true,
        ..Given::default()
    };
    walled.enter(given, |frame| {
        // Redis closes it: the module has it for this call only.
        let is_new = key != 0 && !walled.has_key(key);
        if is_new {
            frame.lend_key(key);
        }
        let [first, second] = words.map(|word| word as u64);
        match has_token {
            true => gate!(asked.function, fn(u64, u64, u64, u64))(
                frame.token(),
                first,
                key as u64,
                asked.data,
            ),
            false => {
                gate!(asked.function, fn(u64, u64, u64, u64))(key as u64, first, second, asked.data)
            }
        }
        if is_new {
            frame.write_back(Some(key));
            frame.drop_key(key);
        }
        Some(())
    });
}

extern "C" fn on_key(_: usize, name: usize, key: usize, asked: *mut c_void) {
    back(asked, key, [name, 0], true);
}

extern "C" fn on_field(key: usize, field: usize, value: usize, asked: *mut c_void) {
    back(asked, key, [field, value], false);
}

fn ask<'a>(frame: &'a Frame, function: u64, data: u64) -> Answer<Asked<'a>> {
    frame.changes()?;
    Ok(Asked {
        frame,
        function: frame.walled.module.function(function)?,
        data,
    })
}

type OnKey = extern "C" fn(usize, usize, usize, *mut c_void);

extern "C" fn scan(context: u64, cursor: u64, function: u64, data: u64) -> c_int {
    mediate(|frame| {
        let (context, cursor) = (frame.context(context)?, frame.cursor(cursor)?);
        let mut asked = ask(frame, function, data)?;
        let scan = host!(Scan: fn(usize, usize, OnKey, *mut c_void) -> c_int);
        Ok(scan(context, cursor, on_key, (&raw mut asked).cast()))
    })
}

extern "C" fn scan_key(key: u64, cursor: u64, function: u64, data: u64) -> c_int {
    mediate(|frame| {
        let (key, cursor) = (frame.key(key)?, frame.cursor(cursor)?);
        let mut asked = ask(frame, function, data)?;
        let scan = host!(ScanKey: fn(usize, usize, OnKey, *mut c_void) -> c_int);
        Ok(scan(key, cursor, on_field, (&raw mut asked).cast()))
    })
}
