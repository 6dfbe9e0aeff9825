//! Virtual tables of modules.
//!
//! ```text
//!   SQLite's                                   the module's
//!
//!   sqlite3_module ──► callbacks here          sqlite3_module, read once, each pointer looked at
//!   Table   (sqlite3_vtab first)        ───►   sqlite3_vtab         on its heap
//!   Cursor  (sqlite3_vtab_cursor first) ───►   sqlite3_vtab_cursor  on its heap
//!   sqlite3_index_info                  ◄──►   a copy, whose answers are copied back
//! ```
//!
//! SQLite follows pointers in its objects. So a module has twins of its own.

use crate::api::host;
use crate::functions::{self, Function, lend_values};
use crate::memory::{allocated, hand_over};
use crate::walled::{Answer, Frame, Handle, Walled, gate, mediate, refused};
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};

const OK: c_int = 0;
const ERROR: c_int = 1;
const NOMEM: c_int = functions::no_memory();
/// Methods that are known: up to the third version of the structure. `xShadowName` has no table as its argument, and so no
/// way to the module.
const METHODS: usize = 22;

/// `sqlite3_module`: a version, and methods.
#[repr(C)]
#[derive(Clone, Copy)]
struct Methods {
    version: c_int,
    methods: [u64; 23],
}

#[derive(Clone, Copy)]
enum Method {
    Create,
    Connect,
    BestIndex,
    Disconnect,
    Destroy,
    Open,
    Close,
    Filter,
    Next,
    Eof,
    Column,
    Rowid,
    Update,
    Begin,
    Sync,
    Commit,
    Rollback,
    FindFunction,
    Rename,
    Savepoint,
    Release,
    RollbackTo,
}

/// A module's kind of table.
struct Kind {
    walled: &'static Walled,
    /// What SQLite calls.
    ours: Box<Methods>,
    theirs: [u64; METHODS],
    /// Where the module has its structure.
    at: u64,
    user: u64,
    destroy: u64,
    life: u64,
}

/// `sqlite3_vtab` as SQLite has it. A module's method may run SQL that uses the same table, and SQLite writes the first
/// three meanwhile: so nobody has a table for himself, and all that changes is in cells.
#[repr(C)]
struct Table {
    module: Cell<*const c_void>,
    references: Cell<c_int>,
    message: Cell<*mut c_char>,
    kind: *const Kind,
    inner: u64,
    life: u64,
    /// What `xFindFunction` has found.
    functions: RefCell<Vec<*mut Function>>,
}

/// `sqlite3_vtab_cursor` as SQLite has it.
#[repr(C)]
struct Cursor {
    table: *mut Table,
    inner: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct IndexInfo {
    constraints: c_int,
    constraint: u64,
    orders: c_int,
    order: u64,
    usage: u64,
    number: c_int,
    text: u64,
    is_text_freed: c_int,
    is_ordered: c_int,
    cost: f64,
    rows: i64,
    flags: c_int,
    columns: u64,
}

/// Bytes of an element of the structure's arrays; of the last, `usage`, as of `order`.
const CONSTRAINT: u64 = 12;
const ORDER: u64 = 8;

impl Table {
    fn kind(&self) -> &'static Kind {
        // SAFETY: SQLite keeps a module's data as long as there are tables of it.
        unsafe { &*self.kind }
    }

    fn method(&self, method: Method) -> u64 {
        self.kind().theirs[method as usize]
    }

    /// Makes a call of the module; with its error, if it has one.
    fn enter(
        &self,
        context: Handle,
        values: &[Handle],
        act: impl FnOnce(&Frame) -> Option<c_int>,
    ) -> c_int {
        let walled = self.kind().walled;
        if self.life != walled.life.get() {
            self.say(&format!(
                "{} was restarted since this table was opened",
                walled.name
            ));
            return ERROR;
        }
        match walled.enter(context, values, act) {
            Some(OK) => OK,
            Some(code) => {
                self.take_message();
                code
            }
            None if walled.domain.is_ended() => {
                self.say(&walled.fault());
                ERROR
            }
            None => NOMEM,
        }
    }

    fn say(&self, what: &str) {
        self.set_message(allocated(what.as_bytes()));
    }

    fn set_message(&self, message: *mut c_char) {
        host!(free: fn(*mut c_char))(self.message.replace(message));
    }

    /// The module's error message becomes SQLite's.
    fn take_message(&self) {
        let walled = self.kind().walled;
        let place = self.inner + 16;
        if let Ok(at @ 1..) = walled.read(place) {
            self.set_message(hand_over(walled, at));
            let _unread = walled.write(place, &[0; 8]);
        }
    }
}

/// A table of SQLite's argument.
fn table<'a>(table: *mut c_void) -> &'a Table {
    // SAFETY: `make` has made it, and SQLite passes no other to these methods. Others may have it, too: see `Table`.
    unsafe { &*table.cast::<Table>() }
}

fn cursor<'a>(cursor: *mut c_void) -> (&'a Cursor, &'a Table) {
    // SAFETY: `open` has made it, with its table, which lives longer. Nobody changes a cursor.
    unsafe {
        let cursor = &*cursor.cast::<Cursor>();
        (cursor, &*cursor.table)
    }
}

fn values<'a>(count: c_int, values: *const Handle) -> &'a [Handle] {
    match count {
        // SAFETY: SQLite passes so many.
        1.. => unsafe { std::slice::from_raw_parts(values, count as usize) },
        _ => &[],
    }
}

/// `xCreate` and `xConnect`.
fn make(
    method: Method,
    db: Handle,
    kind: *mut c_void,
    count: c_int,
    words: *const *const c_char,
    to: *mut *mut Table,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: `create_module_v2` has made it.
    let kind = unsafe { &*kind.cast::<Kind>() };
    let walled = kind.walled;
    let mut inner = 0;
    let code = walled.enter(std::ptr::null_mut(), &[], |frame| {
        let mut lent = Vec::new();
        for at in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: SQLite passes so many strings.
            lent.push(frame.walled.lend_text(unsafe { *words.add(at) }));
        }
        let lent = walled.lend_words(&lent)?;
        let answer = walled.lend_words(&[0, 0])?;
        let at = kind.theirs[method as usize];
        let code = gate!(at, fn(Handle, u64, c_int, u64, u64, u64) -> c_int)(
            db,
            kind.user,
            count,
            lent,
            answer,
            answer + 8,
        );
        inner = walled.read(answer).ok()?;
        let said = walled.read(answer + 8).ok()?;
        if said != 0 {
            // SAFETY: SQLite has room for it.
            unsafe { *message = hand_over(walled, said) };
        }
        if code == OK {
            // As SQLite does with its own.
            walled.write(inner, &kind.at.to_ne_bytes()).ok()?;
            walled.write(inner + 8, &1u64.to_ne_bytes()).ok()?;
            walled.write(inner + 16, &[0; 8]).ok()?;
        }
        Some(code)
    });
    let Some(code) = code else {
        let what = match walled.domain.is_ended() {
            true => walled.fault(),
            false => format!("{} made no table that it may write", walled.name),
        };
        // SAFETY: SQLite has room for the message.
        unsafe { *message = allocated(what.as_bytes()) };
        return ERROR;
    };
    if code == OK {
        let made = Box::new(Table {
            module: Cell::new(std::ptr::null()),
            references: Cell::new(0),
            message: Cell::new(std::ptr::null_mut()),
            kind,
            inner,
            life: walled.life.get(),
            functions: RefCell::default(),
        });
        // SAFETY: SQLite has room for it.
        unsafe { *to = Box::into_raw(made) };
    }
    code
}

macro_rules! makes {
    ($name:ident, $method:ident) => {
        extern "C" fn $name(
            db: Handle,
            kind: *mut c_void,
            count: c_int,
            words: *const *const c_char,
            to: *mut *mut Table,
            message: *mut *mut c_char,
        ) -> c_int {
            make(Method::$method, db, kind, count, words, to, message)
        }
    };
}

makes!(create, Create);
makes!(connect, Connect);

fn leave(at: *mut c_void, method: Method) -> c_int {
    let left = table(at);
    let (method, inner) = (left.method(method), left.inner);
    if left.life == left.kind().walled.life.get() {
        left.enter(std::ptr::null_mut(), &[], |_| {
            Some(gate!(method, fn(u64) -> c_int)(inner))
        });
    }
    // SAFETY: `make` has made it, and SQLite does not use it any more: it is told that all is well, so that it goes on.
    let gone = unsafe { Box::from_raw(at.cast::<Table>()) };
    host!(free: fn(*mut c_char))(gone.message.get());
    for function in gone.functions.borrow().iter() {
        functions::destroy(function.cast());
    }
    OK
}

extern "C" fn disconnect(at: *mut c_void) -> c_int {
    leave(at, Method::Disconnect)
}

extern "C" fn destroy(at: *mut c_void) -> c_int {
    leave(at, Method::Destroy)
}

/// A method whose arguments are a table and numbers.
macro_rules! tables {
    ($($name:ident, $method:ident ($($more:ident: $kind:ty)?);)*) => { $(
        extern "C" fn $name(at: *mut c_void $(, $more: $kind)?) -> c_int {
            let table = table(at);
            let (method, inner) = (table.method(Method::$method), table.inner);
            table.enter(std::ptr::null_mut(), &[], |_| {
                Some(gate!(method, fn(u64 $(, $kind)?) -> c_int)(inner $(, $more)?))
            })
        }
    )* };
}

tables! {
    begin, Begin();
    sync, Sync();
    commit, Commit();
    rollback, Rollback();
    savepoint, Savepoint(number: c_int);
    release, Release(number: c_int);
    rollback_to, RollbackTo(number: c_int);
}

extern "C" fn rename(at: *mut c_void, name: *const c_char) -> c_int {
    let table = table(at);
    let (method, inner) = (table.method(Method::Rename), table.inner);
    table.enter(std::ptr::null_mut(), &[], |frame| {
        let name = frame.walled.lend_text(name);
        Some(gate!(method, fn(u64, u64) -> c_int)(inner, name))
    })
}

extern "C" fn open(at: *mut c_void, to: *mut *mut Cursor) -> c_int {
    let opened = table(at);
    let (method, inner) = (opened.method(Method::Open), opened.inner);
    let mut made = 0;
    let code = opened.enter(std::ptr::null_mut(), &[], |frame| {
        let walled = frame.walled;
        let answer = walled.lend_words(&[0])?;
        let code = gate!(method, fn(u64, u64) -> c_int)(inner, answer);
        made = walled.read(answer).ok()?;
        if code == OK {
            walled.write(made, &inner.to_ne_bytes()).ok()?;
        }
        Some(code)
    });
    if code == OK {
        let cursor = Box::new(Cursor {
            table: at.cast(),
            inner: made,
        });
        // SAFETY: SQLite has room for it.
        unsafe { *to = Box::into_raw(cursor) };
    }
    code
}

extern "C" fn close(at: *mut c_void) -> c_int {
    let (closed, table) = cursor(at);
    let (method, inner) = (table.method(Method::Close), closed.inner);
    if table.life == table.kind().walled.life.get() {
        table.enter(std::ptr::null_mut(), &[], |_| {
            Some(gate!(method, fn(u64) -> c_int)(inner))
        });
    }
    // SAFETY: `open` has made it, and SQLite does not use it any more.
    drop(unsafe { Box::from_raw(at.cast::<Cursor>()) });
    OK
}

extern "C" fn filter(
    at: *mut c_void,
    number: c_int,
    text: *const c_char,
    count: c_int,
    arguments: *const Handle,
) -> c_int {
    let (at, table) = cursor(at);
    let method = table.method(Method::Filter);
    let arguments = values(count, arguments);
    table.enter(std::ptr::null_mut(), arguments, |frame| {
        let text = frame.walled.lend_text(text);
        let lent = lend_values(frame, arguments)?;
        let method = gate!(method, fn(u64, c_int, u64, c_int, u64) -> c_int);
        Some(method(at.inner, number, text, count, lent))
    })
}

extern "C" fn next(at: *mut c_void) -> c_int {
    let (at, table) = cursor(at);
    let method = table.method(Method::Next);
    table.enter(std::ptr::null_mut(), &[], |_| {
        Some(gate!(method, fn(u64) -> c_int)(at.inner))
    })
}

extern "C" fn eof(at: *mut c_void) -> c_int {
    let (at, table) = cursor(at);
    let method = table.method(Method::Eof);
    let walled = table.kind().walled;
    // With a module that has ended there are no more rows; SQLite hears of the error by the next method that has one.
    let is_same = table.life == walled.life.get();
    let answer = is_same.then(|| {
        walled.enter(std::ptr::null_mut(), &[], |_| {
            Some(gate!(method, fn(u64) -> c_int)(at.inner))
        })
    });
    answer.flatten().unwrap_or(1)
}

extern "C" fn column(at: *mut c_void, context: Handle, number: c_int) -> c_int {
    let (at, table) = cursor(at);
    let method = table.method(Method::Column);
    table.enter(context, &[], |_| {
        Some(gate!(method, fn(u64, Handle, c_int) -> c_int)(
            at.inner, context, number,
        ))
    })
}

extern "C" fn rowid(at: *mut c_void, to: *mut i64) -> c_int {
    let (at, table) = cursor(at);
    let method = table.method(Method::Rowid);
    table.enter(std::ptr::null_mut(), &[], |frame| {
        let answer = frame.walled.lend_words(&[0])?;
        let code = gate!(method, fn(u64, u64) -> c_int)(at.inner, answer);
        // SAFETY: SQLite has room for it.
        unsafe { *to = frame.walled.read(answer).ok()? as i64 };
        Some(code)
    })
}

extern "C" fn update(at: *mut c_void, count: c_int, row: *const Handle, to: *mut i64) -> c_int {
    let table = table(at);
    let (method, inner) = (table.method(Method::Update), table.inner);
    let row = values(count, row);
    table.enter(std::ptr::null_mut(), row, |frame| {
        let lent = lend_values(frame, row)?;
        // SAFETY: SQLite has it there.
        let answer = frame.walled.lend_words(&[unsafe { *to } as u64])?;
        let code = gate!(method, fn(u64, c_int, u64, u64) -> c_int)(inner, count, lent, answer);
        // SAFETY: SQLite has room for the row's number, where it was just read.
        unsafe { *to = frame.walled.read(answer).ok()? as i64 };
        Some(code)
    })
}

type Found = extern "C" fn(Handle, c_int, *const Handle);

extern "C" fn find_function(
    at: *mut c_void,
    arity: c_int,
    name: *const c_char,
    to: *mut Option<Found>,
    user: *mut *mut Function,
) -> c_int {
    let table = table(at);
    let (method, inner) = (table.method(Method::FindFunction), table.inner);
    let walled = table.kind().walled;
    let found = walled.enter(std::ptr::null_mut(), &[], |frame| {
        let name = frame.walled.lend_text(name);
        let answer = walled.lend_words(&[0, 0])?;
        let method = gate!(method, fn(u64, c_int, u64, u64, u64) -> c_int);
        let code = method(inner, arity, name, answer, answer + 8);
        let function = walled.read(answer).ok()?;
        let user = walled.read(answer + 8).ok()?;
        let function = walled.function(function).ok().filter(|at| *at != 0)?;
        (code != 0).then(|| (code, Function::plain(walled, function, user)))
    });
    let Some((code, function)) = found else {
        return 0;
    };
    let function = Box::into_raw(Box::new(function));
    table.functions.borrow_mut().push(function);
    // SAFETY: SQLite has room for both.
    unsafe {
        *to = Some(functions::call);
        *user = function;
    }
    code
}

extern "C" fn best_index(at: *mut c_void, info: *mut c_void) -> c_int {
    let table = table(at);
    let (method, inner) = (table.method(Method::BestIndex), table.inner);
    table.enter(std::ptr::null_mut(), &[], |frame| {
        let walled = frame.walled;
        // SAFETY: SQLite passes its structure, with the arrays that it speaks of.
        let mut real = unsafe { info.cast::<IndexInfo>().read() };
        let arrays = [
            (real.constraint, real.constraints as u64 * CONSTRAINT),
            (real.order, real.orders as u64 * ORDER),
            (real.usage, real.constraints as u64 * ORDER),
        ];
        let [constraint, order, usage] =
            arrays.map(|(at, bytes)| walled.lend(at as *const c_void, bytes));
        let given = IndexInfo {
            constraint,
            order,
            usage,
            text: 0,
            ..real
        };
        let copy = walled.lend((&raw const given).cast(), size_of::<IndexInfo>() as u64);
        if copy == 0 {
            return None;
        }
        frame.index.set((info, copy));
        let code = gate!(method, fn(u64, u64) -> c_int)(inner, copy);
        if walled.domain.is_ended() {
            return None;
        }
        let bytes = walled.bytes(copy, size_of::<IndexInfo>() as u64).ok()?;
        // SAFETY: any bytes are this structure of numbers.
        let answer = unsafe { bytes.as_ptr().cast::<IndexInfo>().read_unaligned() };
        let used = walled.bytes(usage, real.constraints as u64 * ORDER).ok()?;
        // SAFETY: SQLite's array has so many elements.
        unsafe { std::ptr::copy_nonoverlapping(used.as_ptr(), real.usage as *mut u8, used.len()) };
        real.number = answer.number;
        real.is_ordered = answer.is_ordered;
        real.cost = answer.cost;
        real.rows = answer.rows;
        real.flags = answer.flags;
        if answer.text != 0 {
            // SQLite gets a copy, whosever the text is.
            real.text = allocated(walled.text(answer.text).ok()?) as u64;
            real.is_text_freed = 1;
            if answer.is_text_freed != 0 {
                walled.free(answer.text).ok()?;
            }
        }
        // SAFETY: `info` is SQLite's structure, which is this call's to fill in.
        unsafe { info.cast::<IndexInfo>().write(real) };
        Some(code)
    })
}

/// SQLite's structure, for the module's copy of it.
fn index(frame: &Frame, info: u64) -> Answer<Handle> {
    let (real, copy) = frame.index.get();
    match info == copy && copy != 0 {
        true => Ok(real),
        false => refused(format!(
            "{info:#x} is not the sqlite3_index_info of this call"
        )),
    }
}

pub(crate) extern "C" fn vtab_collation(info: u64, number: c_int) -> u64 {
    mediate(|frame| {
        let collation = host!(vtab_collation: fn(Handle, c_int) -> *const c_char);
        Ok(frame
            .walled
            .lend_text(collation(index(frame, info)?, number)))
    })
}

pub(crate) extern "C" fn vtab_distinct(info: u64) -> c_int {
    mediate(|frame| {
        Ok(host!(vtab_distinct: fn(Handle) -> c_int)(index(
            frame, info,
        )?))
    })
}

pub(crate) extern "C" fn vtab_in(info: u64, number: c_int, how: c_int) -> c_int {
    mediate(|frame| {
        let vtab_in = host!(vtab_in: fn(Handle, c_int, c_int) -> c_int);
        Ok(vtab_in(index(frame, info)?, number, how))
    })
}

pub(crate) extern "C" fn vtab_rhs_value(info: u64, number: c_int, to: u64) -> c_int {
    mediate(|frame| {
        let mut value: Handle = std::ptr::null_mut();
        let find = host!(vtab_rhs_value: fn(Handle, c_int, *mut Handle) -> c_int);
        let code = find(index(frame, info)?, number, &raw mut value);
        if !value.is_null() {
            frame.walled.give_value(value);
        }
        frame.walled.write_pointer(to, value as u64)?;
        Ok(code)
    })
}

/// `sqlite3_vtab_in_first` and its companion.
macro_rules! members {
    ($($name:ident),*) => { $(
        pub(crate) extern "C" fn $name(list: Handle, to: u64) -> c_int {
            mediate(|frame| {
                let mut value: Handle = std::ptr::null_mut();
                let list = frame.value(list)?;
                let code = host!($name: fn(Handle, *mut Handle) -> c_int)(list, &raw mut value);
                if !value.is_null() {
                    frame.walled.give_value(value);
                }
                frame.walled.write_pointer(to, value as u64)?;
                Ok(code)
            })
        }
    )* };
}

members!(vtab_in_first, vtab_in_next);

/// What SQLite calls, where the module has something to call.
fn methods(theirs: &[u64; METHODS], version: c_int) -> Methods {
    let ours: [u64; METHODS] = [
        create as *const () as u64,
        connect as *const () as u64,
        best_index as *const () as u64,
        disconnect as *const () as u64,
        destroy as *const () as u64,
        open as *const () as u64,
        close as *const () as u64,
        filter as *const () as u64,
        next as *const () as u64,
        eof as *const () as u64,
        column as *const () as u64,
        rowid as *const () as u64,
        update as *const () as u64,
        begin as *const () as u64,
        sync as *const () as u64,
        commit as *const () as u64,
        rollback as *const () as u64,
        find_function as *const () as u64,
        rename as *const () as u64,
        savepoint as *const () as u64,
        release as *const () as u64,
        rollback_to as *const () as u64,
    ];
    let mut all = Methods {
        version,
        methods: [0; 23],
    };
    for (at, ours) in ours.into_iter().enumerate() {
        all.methods[at] = if theirs[at] == 0 { 0 } else { ours };
    }
    // A table that is made and found in the same way exists without being made: SQLite compares the pointers.
    if theirs[Method::Create as usize] == theirs[Method::Connect as usize] {
        all.methods[Method::Create as usize] = all.methods[Method::Connect as usize];
    }
    if theirs[Method::Destroy as usize] == theirs[Method::Disconnect as usize] {
        all.methods[Method::Destroy as usize] = all.methods[Method::Disconnect as usize];
    }
    all
}

extern "C" fn drop_kind(kind: *mut c_void) {
    // SAFETY: `create_module_v2` has made it, and SQLite gives it back once, when no table is left.
    let kind = unsafe { Box::from_raw(kind.cast::<Kind>()) };
    kind.walled.forget((&raw const *kind).cast());
    if kind.destroy != 0 && kind.life == kind.walled.life.get() {
        kind.walled.enter(std::ptr::null_mut(), &[], |_| {
            gate!(kind.destroy, fn(u64))(kind.user);
            Some(())
        });
    }
}

pub(crate) extern "C" fn create_module_v2(
    db: Handle,
    name: u64,
    at: u64,
    user: u64,
    destroy: u64,
) -> c_int {
    mediate(|frame| {
        let (db, walled) = (frame.db(db)?, frame.walled);
        let name = walled.c_string(name)?;
        let create = host!(create_module_v2: fn(Handle, *const c_char, *const Methods, *mut Kind,
            Option<extern "C" fn(*mut c_void)>) -> c_int);
        if at == 0 {
            let null = std::ptr::null_mut();
            return Ok(create(db, name.as_ptr(), std::ptr::null(), null, None));
        }
        let version = walled.read(at)? as c_int;
        let count = if version >= 2 { METHODS } else { METHODS - 3 };
        let mut theirs = [0; METHODS];
        for (number, method) in theirs.iter_mut().enumerate().take(count) {
            *method = walled.function(walled.read(at + 8 + 8 * number as u64)?)?;
        }
        let needed = [
            Method::Connect,
            Method::BestIndex,
            Method::Disconnect,
            Method::Open,
            Method::Close,
        ];
        let rows = [
            Method::Filter,
            Method::Next,
            Method::Eof,
            Method::Column,
            Method::Rowid,
        ];
        if needed
            .iter()
            .chain(&rows)
            .any(|method| theirs[*method as usize] == 0)
        {
            return refused("a module of tables lacks a method that SQLite always calls");
        }
        let ours = Box::new(methods(&theirs, version.clamp(1, 2)));
        let key = format!("table {}", name.to_string_lossy());
        let destroy = walled.function(destroy)?;
        let replace = |earlier: &mut Kind| {
            let is_same = earlier.ours.methods == ours.methods;
            if is_same {
                (earlier.theirs, earlier.at, earlier.user) = (theirs, at, user);
                (earlier.destroy, earlier.life) = (destroy, walled.life.get());
            }
            is_same
        };
        if walled.take_over(&key, |kind: &Kind| kind.life, replace) {
            return Ok(OK);
        }
        let methods = &raw const *ours;
        let kind = Box::into_raw(Box::new(Kind {
            walled,
            ours,
            theirs,
            at,
            user,
            destroy,
            life: walled.life.get(),
        }));
        let code = create(db, name.as_ptr(), methods, kind, Some(drop_kind));
        // With any other code SQLite has given it back already.
        if code == OK {
            walled.registered.borrow_mut().insert(key, kind as usize);
        }
        Ok(code)
    })
}

pub(crate) extern "C" fn create_module(db: Handle, name: u64, at: u64, user: u64) -> c_int {
    create_module_v2(db, name, at, user, 0)
}

pub(crate) extern "C" fn declare_vtab(db: Handle, sql: u64) -> c_int {
    mediate(|frame| {
        let (db, sql) = (frame.db(db)?, frame.walled.c_string(sql)?);
        Ok(host!(declare_vtab: fn(Handle, *const c_char) -> c_int)(
            db,
            sql.as_ptr(),
        ))
    })
}

pub(crate) extern "C" fn vtab_config(db: Handle, what: c_int, value: c_int) -> c_int {
    const CONFIG: usize = crate::api::place("vtab_config");
    mediate(|frame| {
        let db = frame.db(db)?;
        if !(1..=4).contains(&what) {
            return Ok(21);
        }
        type Config = unsafe extern "C" fn(Handle, c_int, ...) -> c_int;
        // SAFETY: this is the function's type, and these options have at most a number as an argument.
        Ok(unsafe {
            std::mem::transmute::<*const c_void, Config>(crate::api::at(CONFIG))(db, what, value)
        })
    })
}

pub(crate) extern "C" fn vtab_on_conflict(db: Handle) -> c_int {
    mediate(|frame| Ok(host!(vtab_on_conflict: fn(Handle) -> c_int)(frame.db(db)?)))
}

/// A keyword of SQL. Modules keep its address, so it is granted in its place, for good: SQLite's constants, with at most
/// three bytes of their neighbours on each side.
pub(crate) extern "C" fn keyword_name(number: c_int, to: u64, length: u64) -> c_int {
    mediate(|frame| {
        let (mut at, mut bytes) = (std::ptr::null::<c_char>(), 0);
        let find = host!(keyword_name: fn(c_int, *mut *const c_char, *mut c_int) -> c_int);
        let code = find(number, &raw mut at, &raw mut bytes);
        if code == OK {
            let (host, domain) = (&frame.walled.host, &frame.walled.domain);
            // SAFETY: constants, which the module only reads.
            let granted = unsafe { host.grant(domain, at as usize, bytes as usize, false) };
            if let Err(error) = granted {
                return refused(error.to_string());
            }
            frame.walled.write_pointer(to, at as u64)?;
            frame.walled.write(length, &bytes.to_ne_bytes())?;
        }
        Ok(code)
    })
}
