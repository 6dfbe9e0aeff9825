//! SQL that a module runs: `sqlite3_prepare_v2`, `sqlite3_step`, `sqlite3_exec` and what goes with them.
//!
//! A policy that allows these lets the module do with the connection what SQL can. `[group] statements` in it bounds that: it lists
//! the statements that the module may run, by their first words.

use crate::api::host;
use crate::memory::dispose;
use crate::values::{TRANSIENT, counted};
use crate::walled::{Answer, Frame, Handle, Lent, Walled, gate, mediate, refused};
use std::ffi::{CStr, c_char, c_int, c_void};

/// A statement of a module's.
#[derive(Default)]
pub(crate) struct Statement {
    /// Texts of the current row that the module may read.
    lent: Vec<Lent>,
    /// Values of the current row.
    values: Vec<usize>,
}

impl Statement {
    /// Whether a value is of the row that it is at.
    pub(crate) fn has(&self, value: Handle) -> bool {
        self.values.contains(&(value as usize))
    }

    /// Ends a statement that its module has no use for any more.
    pub(crate) fn finalize(self, handle: Handle) {
        host!(finalize: fn(Handle) -> c_int)(handle);
    }
}

/// It must be one that the module has prepared.
fn known(frame: &Frame, statement: Handle) -> Answer<Handle> {
    let known = frame
        .walled
        .statements
        .borrow()
        .contains_key(&(statement as usize));
    match known {
        true => Ok(statement),
        false => refused(format!("{statement:p} is no statement of the module's")),
    }
}

/// What was lent of the current row goes back.
fn next_row(frame: &Frame, statement: Handle) {
    let walled = frame.walled;
    let mut statements = walled.statements.borrow_mut();
    let Some(statement) = statements.get_mut(&(statement as usize)) else {
        return;
    };
    statement.values.clear();
    let lent: Vec<Lent> = statement.lent.drain(..).collect();
    drop(statements);
    lent.into_iter().for_each(|lent| walled.take_back(lent));
}

/// The first word of a statement, in capitals: behind blanks, comments and empty statements.
fn first_word(sql: &[u8]) -> String {
    let mut rest = sql;
    let after = |rest: &[u8], end: &[u8]| {
        let at = rest.windows(end.len()).position(|piece| piece == end);
        at.map_or(rest.len(), |at| at + end.len())
    };
    loop {
        rest = match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b';', more @ ..] => more,
            [b'-', b'-', ..] => &rest[after(rest, b"\n")..],
            [b'/', b'*', more @ ..] => &more[after(more, b"*/")..],
            _ => break,
        };
    }
    let letters = rest
        .iter()
        .take_while(|letter| letter.is_ascii_alphabetic());
    letters
        .map(|letter| char::from(letter.to_ascii_uppercase()))
        .collect()
}

/// Whether the policy lets the module run a statement. A query may begin with `WITH`, and `WITH` may begin something else.
fn may_run(walled: &Walled, sql: &[u8], statement: Handle) -> Answer<()> {
    let Some(allowed) = &walled.sql else {
        return Ok(());
    };
    let mut word = first_word(sql);
    let only_reads = host!(stmt_readonly: fn(Handle) -> c_int)(statement) != 0;
    if only_reads && matches!(word.as_str(), "WITH" | "VALUES") {
        word = "SELECT".to_owned();
    }
    match allowed.contains(&word) && (only_reads || word != "SELECT") {
        true => Ok(()),
        false => refused(format!(
            "the statement {word}, which `statements = [\"{word}\"]` in [group] of its policy would allow"
        )),
    }
}

/// Looks at each statement of a text before the first one runs.
fn may_run_all(walled: &Walled, db: Handle, sql: &CStr) -> Answer<()> {
    let mut rest = sql.as_ptr();
    while walled.sql.is_some() {
        let (mut made, mut tail): (Handle, *const c_char) =
            (std::ptr::null_mut(), std::ptr::null());
        let prepare = host!(prepare_v2: fn(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int);
        if prepare(db, rest, -1, &raw mut made, &raw mut tail) != 0 {
            // The first that is wrong by itself is SQLite's to refuse. Another one may depend on what runs before it.
            return match std::ptr::eq(rest, sql.as_ptr()) {
                true => Ok(()),
                false => refused("statements of one text of which one depends on another"),
            };
        }
        if made.is_null() {
            break;
        }
        // SAFETY: SQLite leaves `rest` at a place of the text, which ends with a zero.
        let answer = may_run(walled, unsafe { CStr::from_ptr(rest) }.to_bytes(), made);
        host!(finalize: fn(Handle) -> c_int)(made);
        answer?;
        rest = tail;
    }
    Ok(())
}

fn prepare_any(
    frame: &Frame,
    db: Handle,
    sql: u64,
    bytes: c_int,
    flags: u32,
    to: u64,
    tail: u64,
) -> Answer<c_int> {
    let (db, walled) = (frame.db(db)?, frame.walled);
    let text = match u64::try_from(bytes) {
        Ok(bytes) => walled.text_up_to(sql, bytes)?,
        Err(_) => walled.text(sql)?,
    };
    let mut copy = text.to_vec();
    copy.push(0);
    let mut made: Handle = std::ptr::null_mut();
    let mut rest: *const u8 = copy.as_ptr();
    let prepare =
        host!(prepare_v3: fn(Handle, *const u8, c_int, u32, *mut Handle, *mut *const u8) -> c_int);
    let code = prepare(db, copy.as_ptr(), -1, flags, &raw mut made, &raw mut rest);
    if !made.is_null()
        && let Err(refused) = may_run(walled, &copy, made)
    {
        host!(finalize: fn(Handle) -> c_int)(made);
        return Err(refused);
    }
    let offset = (rest as u64).wrapping_sub(copy.as_ptr() as u64);
    if !made.is_null() {
        walled
            .statements
            .borrow_mut()
            .insert(made as usize, Statement::default());
    }
    walled.write_pointer(to, made as u64)?;
    walled.write_pointer(tail, sql.wrapping_add(offset))?;
    Ok(code)
}

pub(crate) extern "C" fn prepare_v2(
    db: Handle,
    sql: u64,
    bytes: c_int,
    to: u64,
    tail: u64,
) -> c_int {
    mediate(|frame| prepare_any(frame, db, sql, bytes, 0, to, tail))
}

pub(crate) extern "C" fn prepare_v3(
    db: Handle,
    sql: u64,
    bytes: c_int,
    flags: u32,
    to: u64,
    tail: u64,
) -> c_int {
    mediate(|frame| prepare_any(frame, db, sql, bytes, flags, to, tail))
}

pub(crate) extern "C" fn step(statement: Handle) -> c_int {
    mediate(|frame| {
        let statement = known(frame, statement)?;
        next_row(frame, statement);
        Ok(host!(step: fn(Handle) -> c_int)(statement))
    })
}

pub(crate) extern "C" fn reset(statement: Handle) -> c_int {
    mediate(|frame| {
        if statement.is_null() {
            return Ok(0);
        }
        let statement = known(frame, statement)?;
        next_row(frame, statement);
        Ok(host!(reset: fn(Handle) -> c_int)(statement))
    })
}

pub(crate) extern "C" fn finalize(statement: Handle) -> c_int {
    mediate(|frame| {
        if statement.is_null() {
            return Ok(0);
        }
        let statement = known(frame, statement)?;
        next_row(frame, statement);
        frame
            .walled
            .statements
            .borrow_mut()
            .remove(&(statement as usize));
        Ok(host!(finalize: fn(Handle) -> c_int)(statement))
    })
}

/// Functions of a statement, with a number, that answer with a number.
macro_rules! numbers {
    ($($name:ident($($more:ident: $kind:ty),*) -> $result:ty;)*) => { $(
        pub(crate) extern "C" fn $name(statement: Handle $(, $more: $kind)*) -> $result {
            mediate(|frame| {
                let statement = known(frame, statement)?;
                Ok(host!($name: fn(Handle $(, $kind)*) -> $result)(statement $(, $more)*))
            })
        }
    )* };
}

numbers! {
    column_count() -> c_int;
    data_count() -> c_int;
    column_type(at: c_int) -> c_int;
    column_int(at: c_int) -> c_int;
    column_int64(at: c_int) -> i64;
    column_double(at: c_int) -> f64;
    column_bytes(at: c_int) -> c_int;
    column_bytes16(at: c_int) -> c_int;
    bind_null(at: c_int) -> c_int;
    bind_int(at: c_int, value: c_int) -> c_int;
    bind_int64(at: c_int, value: i64) -> c_int;
    bind_double(at: c_int, value: f64) -> c_int;
    bind_zeroblob(at: c_int, bytes: c_int) -> c_int;
    bind_parameter_count() -> c_int;
    clear_bindings() -> c_int;
    stmt_readonly() -> c_int;
    stmt_busy() -> c_int;
    stmt_isexplain() -> c_int;
}

/// Text and bytes of a row.
macro_rules! memory {
    ($($name:ident, $getter:ident, $length:ident, $zeros:expr;)*) => { $(
        pub(crate) extern "C" fn $name(statement: Handle, number: c_int) -> u64 {
            mediate(|frame| {
                let statement = known(frame, statement)?;
                // What `column_value` gives is not for other forms, so the row is asked itself first.
                host!($name: fn(Handle, c_int) -> *const c_void)(statement, number);
                let value = host!(column_value: fn(Handle, c_int) -> Handle)(statement, number);
                let get = |value| {
                    let at = host!($getter: fn(Handle) -> *const c_void)(value);
                    (at, host!($length: fn(Handle) -> c_int)(value) as u64)
                };
                let Some((lent, piece)) = frame.walled.lend_value(value, get, $zeros) else {
                    return Ok(0);
                };
                match frame.walled.statements.borrow_mut().get_mut(&(statement as usize)) {
                    Some(known) => known.lent.push(piece),
                    None => return refused("the statement is gone"),
                }
                Ok(lent)
            })
        }
    )* };
}

memory! {
    column_text, value_text, value_bytes, 1;
    column_blob, value_blob, value_bytes, 0;
    column_text16, value_text16, value_bytes16, 2;
}

/// Strings that are good until the call returns.
macro_rules! texts {
    ($($name:ident($($more:ident: $kind:ty)?);)*) => { $(
        pub(crate) extern "C" fn $name(statement: Handle $(, $more: $kind)?) -> u64 {
            mediate(|frame| {
                let statement = known(frame, statement)?;
                let text = host!($name: fn(Handle $(, $kind)?) -> *const c_char)(statement $(, $more)?);
                Ok(frame.walled.lend_text(text))
            })
        }
    )* };
}

texts! {
    column_name(at: c_int);
    column_decltype(at: c_int);
    column_table_name(at: c_int);
    bind_parameter_name(at: c_int);
    sql();
}

pub(crate) extern "C" fn bind_parameter_index(statement: Handle, name: u64) -> c_int {
    mediate(|frame| {
        let (statement, name) = (known(frame, statement)?, frame.walled.c_string(name)?);
        let index = host!(bind_parameter_index: fn(Handle, *const c_char) -> c_int);
        Ok(index(statement, name.as_ptr()))
    })
}

pub(crate) extern "C" fn column_value(statement: Handle, number: c_int) -> Handle {
    mediate(|frame| {
        let statement = known(frame, statement)?;
        let value = host!(column_value: fn(Handle, c_int) -> Handle)(statement, number);
        if let Some(known) = frame
            .walled
            .statements
            .borrow_mut()
            .get_mut(&(statement as usize))
        {
            known.values.push(value as usize);
        }
        Ok(value)
    })
}

pub(crate) extern "C" fn bind_text(
    statement: Handle,
    number: c_int,
    at: u64,
    bytes: c_int,
    destructor: u64,
) -> c_int {
    mediate(|frame| {
        let statement = known(frame, statement)?;
        if at == 0 {
            return Ok(host!(bind_null: fn(Handle, c_int) -> c_int)(
                statement, number,
            ));
        }
        let text = counted(frame, at, bytes)?;
        let from = if text.is_empty() {
            c"".as_ptr().cast()
        } else {
            text.as_ptr()
        };
        let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
        let bind = host!(bind_text: fn(Handle, c_int, *const u8, c_int, isize) -> c_int);
        let code = bind(statement, number, from, length, TRANSIENT);
        dispose(frame.walled, destructor, at)?;
        Ok(code)
    })
}

pub(crate) extern "C" fn bind_blob(
    statement: Handle,
    number: c_int,
    at: u64,
    bytes: c_int,
    destructor: u64,
) -> c_int {
    mediate(|frame| {
        let statement = known(frame, statement)?;
        if at == 0 {
            return Ok(host!(bind_null: fn(Handle, c_int) -> c_int)(
                statement, number,
            ));
        }
        let blob = frame.walled.bytes(at, u64::try_from(bytes).unwrap_or(0))?;
        let from = if blob.is_empty() {
            c"".as_ptr().cast()
        } else {
            blob.as_ptr()
        };
        let bind = host!(bind_blob: fn(Handle, c_int, *const u8, c_int, isize) -> c_int);
        let code = bind(statement, number, from, blob.len() as c_int, TRANSIENT);
        dispose(frame.walled, destructor, at)?;
        Ok(code)
    })
}

pub(crate) extern "C" fn bind_value(statement: Handle, number: c_int, value: Handle) -> c_int {
    mediate(|frame| {
        let (statement, value) = (known(frame, statement)?, frame.value(value)?);
        Ok(host!(bind_value: fn(Handle, c_int, Handle) -> c_int)(
            statement, number, value,
        ))
    })
}

/// `sqlite3_exec`'s callback.
struct Row {
    walled: &'static Walled,
    at: u64,
    user: u64,
}

extern "C" fn on_row(
    row: *mut c_void,
    count: c_int,
    texts: *const *const c_char,
    names: *const *const c_char,
) -> c_int {
    // SAFETY: `exec` has it on its stack.
    let row = unsafe { &*row.cast::<Row>() };
    let answer = row.walled.enter(std::ptr::null_mut(), &[], |frame| {
        let lend = |from: *const *const c_char| {
            let texts = (0..count.max(0) as usize).map(|at| {
                // SAFETY: SQLite passes so many strings.
                frame.walled.lend_text(unsafe { *from.add(at) })
            });
            frame.walled.lend_words(&texts.collect::<Vec<_>>())
        };
        let (texts, names) = (lend(texts)?, lend(names)?);
        Some(gate!(row.at, fn(u64, c_int, u64, u64) -> c_int)(
            row.user, count, texts, names,
        ))
    });
    answer.unwrap_or(1)
}

type OnRow = extern "C" fn(*mut c_void, c_int, *const *const c_char, *const *const c_char) -> c_int;

pub(crate) extern "C" fn exec(db: Handle, sql: u64, at: u64, user: u64, message: u64) -> c_int {
    mediate(|frame| {
        let (db, walled) = (frame.db(db)?, frame.walled);
        let sql = walled.c_string(sql)?;
        may_run_all(walled, db, &sql)?;
        let at = walled.function(at)?;
        let mut row = Row { walled, at, user };
        let mut said: *mut c_char = std::ptr::null_mut();
        let run = host!(exec: fn(Handle, *const c_char, Option<OnRow>, *mut Row, *mut *mut c_char) -> c_int);
        let on_row = (at != 0).then_some(on_row as OnRow);
        let code = run(db, sql.as_ptr(), on_row, &raw mut row, &raw mut said);
        match message {
            0 => host!(free: fn(*mut c_char))(said),
            to => walled.write_pointer(to, crate::memory::adopt(walled, said))?,
        }
        Ok(code)
    })
}

pub(crate) extern "C" fn db_handle(statement: Handle) -> Handle {
    mediate(|frame| {
        Ok(host!(db_handle: fn(Handle) -> Handle)(known(
            frame, statement,
        )?))
    })
}

/// Functions of a connection that answer with a number.
macro_rules! connection {
    ($($name:ident($($more:ident: $kind:ty),*) -> $result:ty;)*) => { $(
        pub(crate) extern "C" fn $name(db: Handle $(, $more: $kind)*) -> $result {
            mediate(|frame| {
                let db = frame.db(db)?;
                Ok(host!($name: fn(Handle $(, $kind)*) -> $result)(db $(, $more)*))
            })
        }
    )* };
}

connection! {
    changes() -> c_int;
    total_changes() -> c_int;
    errcode() -> c_int;
    extended_errcode() -> c_int;
    get_autocommit() -> c_int;
    last_insert_rowid() -> i64;
    limit(what: c_int, value: c_int) -> c_int;
    set_last_insert_rowid(to: i64) -> ();
}

pub(crate) extern "C" fn errmsg(db: Handle) -> u64 {
    mediate(|frame| {
        let text = host!(errmsg: fn(Handle) -> *const c_char)(frame.db(db)?);
        Ok(frame.walled.lend_text(text))
    })
}

pub(crate) extern "C" fn errstr(code: c_int) -> u64 {
    mediate(|frame| {
        Ok(frame
            .walled
            .lend_text(host!(errstr: fn(c_int) -> *const c_char)(code)))
    })
}

pub(crate) extern "C" fn libversion() -> u64 {
    mediate(|frame| {
        Ok(frame
            .walled
            .lend_text(host!(libversion: fn() -> *const c_char)()))
    })
}

pub(crate) extern "C" fn complete(sql: u64) -> c_int {
    mediate(|frame| {
        let sql = frame.walled.c_string(sql)?;
        Ok(host!(complete: fn(*const c_char) -> c_int)(sql.as_ptr()))
    })
}
