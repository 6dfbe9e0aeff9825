//! An extension behind its wall, and the calls that are in it.
//!
//! ```text
//!   SQLite ──► callback (functions.rs, tables.rs) ──► enter: a frame ──► gate ──► the module
//!                                                      │                           │
//!                                            what was lent goes back      a function of the table
//!                                                                                  │
//!   SQLite ◄── the function itself ◄── handles and memory are looked at ◄── mediator (values.rs ...)
//! ```
//!
//! A module never sees memory of SQLite's. What it is to read is lent: copied to its heap until its call returns, or,
//! where that is much, granted in its place. What it hands over is read with its own rights.

use crate::api::host;
use crate::statements::Statement;
use crate::table::Offered;
use mullion_bridge::{Heap, HeapError};
use mullion_symbols::Symbols;
use mullion_word_runtime::{Domain, FaultKind, Granted, Host, Report};
use mullion_word_table::Access;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_void};

/// A pointer of SQLite's that a module is handed and that it never follows.
pub(crate) type Handle = *mut c_void;

/// Larger pieces are granted in their place instead of copied.
const COPIED: u64 = 64 << 10;

/// Why a call of a module's is refused. It ends the module's call.
pub(crate) struct Refused(pub(crate) String);

pub(crate) type Answer<T> = Result<T, Refused>;

pub(crate) fn refused<T>(what: impl Into<String>) -> Answer<T> {
    Err(Refused(what.into()))
}

/// Memory that a module may read until its call returns.
pub(crate) enum Lent {
    /// A copy on its heap.
    Block(u64),
    /// A copy of a value that SQLite has made, granted where it is. Its own could move when the module asks for another form
    /// of it.
    InPlace { granted: Granted, value: Handle },
}

/// An extension.
pub(crate) struct Walled {
    pub(crate) name: String,
    pub(crate) domain: Domain,
    pub(crate) host: Host,
    pub(crate) heap: RefCell<Heap>,
    /// The connection that it was loaded for.
    pub(crate) db: Handle,
    /// Statements that it may run, by their first words; all, if the policy has no such list.
    pub(crate) sql: Option<HashSet<String>>,
    pub(crate) statements: RefCell<HashMap<usize, Statement>>,
    /// `sqlite3_str` objects that it has.
    pub(crate) strings: RefCell<HashSet<usize>>,
    /// Copies of values that it has.
    pub(crate) kept: RefCell<HashSet<usize>>,
    lent: RefCell<Vec<Lent>>,
    /// Values that are good until the call returns.
    values: RefCell<Vec<usize>>,
    /// What it has registered with SQLite, by kind and name: the data of the callbacks. A life that registers the same again
    /// takes that over, because SQLite replaces nothing while a statement runs.
    pub(crate) registered: RefCell<HashMap<String, usize>>,
    /// Counts restarts.
    pub(crate) life: Cell<u64>,
    fault: RefCell<Option<String>>,
    symbols: RefCell<Symbols>,
}

/// A call that is in a module.
pub(crate) struct Frame {
    pub(crate) walled: &'static Walled,
    context: Handle,
    values: *const Handle,
    count: usize,
    /// The `sqlite3_index_info` of SQLite's, and the module's copy.
    pub(crate) index: Cell<(Handle, u64)>,
    before: *const Frame,
}

thread_local! {
    static NOW: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// What a mediator answers when it refuses: nobody sees it.
pub(crate) trait Nothing {
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($kind:ty = $value:expr),*) => { $(impl Nothing for $kind { const NOTHING: Self = $value; })* };
}

nothing!(() = (), i32 = 0, u32 = 0, i64 = 0, u64 = 0, f64 = 0.0, *mut c_void = std::ptr::null_mut());

/// Does what a module asks for. If that is refused, the module's call ends when this returns.
pub(crate) fn mediate<R: Nothing>(act: impl FnOnce(&Frame) -> Answer<R>) -> R {
    let frame = NOW.get();
    if frame.is_null() {
        return R::NOTHING;
    }
    // SAFETY: `enter` sets it to a frame on this thread's stack, and takes it back before that goes.
    match act(unsafe { &*frame }) {
        Ok(answer) => answer,
        Err(Refused(what)) => {
            mullion_word_runtime::refuse(what);
            R::NOTHING
        }
    }
}

impl Frame {
    /// A context must be the one of this call.
    pub(crate) fn context(&self, context: Handle) -> Answer<Handle> {
        match context == self.context && !context.is_null() {
            true => Ok(context),
            false => refused(format!("{context:p} is not the context of this call")),
        }
    }

    /// A value must be one that the module was given.
    pub(crate) fn value(&self, value: Handle) -> Answer<Handle> {
        // SAFETY: `enter`'s caller has so many values there while the frame lives.
        let is_argument = (0..self.count).any(|at| unsafe { *self.values.add(at) } == value);
        let known = is_argument
            || self.walled.values.borrow().contains(&(value as usize))
            || self.walled.kept.borrow().contains(&(value as usize));
        let known = known
            || self
                .walled
                .statements
                .borrow()
                .values()
                .any(|statement| statement.has(value));
        match known && !value.is_null() {
            true => Ok(value),
            false => refused(format!("{value:p} is no value that the module was given")),
        }
    }

    /// A connection must be the module's.
    pub(crate) fn db(&self, db: Handle) -> Answer<Handle> {
        match db == self.walled.db {
            true => Ok(db),
            false => refused(format!("{db:p} is no connection that the module was given")),
        }
    }
}

impl Walled {
    pub(crate) fn new(
        name: &str,
        domain: Domain,
        host: Host,
        memory: u64,
        db: Handle,
        sql: Option<HashSet<String>>,
        symbols: Symbols,
    ) -> Result<&'static Walled, HeapError> {
        let heap = Heap::new(memory)?;
        Ok(Box::leak(Box::new(Walled {
            name: name.to_owned(),
            domain,
            host,
            heap: RefCell::new(heap),
            db,
            sql,
            statements: RefCell::default(),
            strings: RefCell::default(),
            kept: RefCell::default(),
            registered: RefCell::default(),
            lent: RefCell::default(),
            values: RefCell::default(),
            life: Cell::new(0),
            fault: RefCell::default(),
            symbols: RefCell::new(symbols),
        })))
    }

    /// Makes a call into the module. Nothing, if it has ended, or ends in this call: [`fault`](Self::fault) says why.
    pub(crate) fn enter<R>(
        &'static self,
        context: Handle,
        values: &[Handle],
        call: impl FnOnce(&Frame) -> Option<R>,
    ) -> Option<R> {
        if self.domain.is_ended() {
            return None;
        }
        let (lent, given) = (self.lent.borrow().len(), self.values.borrow().len());
        let frame = Frame {
            walled: self,
            context,
            values: values.as_ptr(),
            count: values.len(),
            index: Cell::new((std::ptr::null_mut(), 0)),
            before: NOW.get(),
        };
        NOW.set(&raw const frame);
        let result = call(&frame);
        NOW.set(frame.before);
        let is_lent = self.lent.borrow().len() > lent;
        if is_lent {
            let back: Vec<Lent> = self.lent.borrow_mut().drain(lent..).collect();
            back.into_iter().for_each(|lent| self.take_back(lent));
        }
        self.values.borrow_mut().truncate(given);
        match self.domain.is_ended() {
            false => result,
            true => {
                self.note();
                None
            }
        }
    }

    /// Remembers what ended it.
    fn note(&self) {
        for report in self.domain.take_reports() {
            let text = self.describe(&report);
            self.fault.borrow_mut().get_or_insert(text);
        }
    }

    /// A report with the line of the module's source.
    fn describe(&self, report: &Report) -> String {
        let function = report.address.filter(|_| report.kind == FaultKind::Call);
        let function = function.and_then(|at| Offered::get().ok()?.name(at as usize));
        let mut text = match (function, report.kind) {
            // The module calls it by an address in SQLite's table.
            (Some(name), _) => {
                format!("a call of {name}, which `allow = [\"{name}\"]` in its policy would allow")
            }
            (_, FaultKind::Time) => "its time is over (`time` in [limits])".to_owned(),
            (_, FaultKind::DataStack) => "its stack is full (`stack` in [limits])".to_owned(),
            (_, FaultKind::Policy) => report.object.to_string(),
            (_, kind) => {
                let address = report
                    .address
                    .map(|at| format!(" of {at:#x}"))
                    .unwrap_or_default();
                let object = match report.object.as_str() {
                    "" => String::new(),
                    object => format!(", {object}"),
                };
                format!("{kind:?}{address}{object}")
            }
        };
        let place = match report.instruction {
            0 => None,
            at => self.symbols.borrow_mut().find(at).into_iter().next(),
        };
        if let Some(place) = place.filter(|place| place.line.is_some()) {
            text.push_str(&format!("; at {place}"));
        }
        text.push_str(&mullion_bridge::reached(report, function));
        text
    }

    /// Has this life take over what an earlier one has registered with SQLite under this name; whether it did.
    pub(crate) fn take_over<T>(
        &self,
        name: &str,
        life: impl Fn(&T) -> u64,
        with: impl FnOnce(&mut T) -> bool,
    ) -> bool {
        let Some(at) = self.registered.borrow().get(name).copied() else {
            return false;
        };
        // SAFETY: `forget` takes it away before it goes, nobody else looks at it meanwhile, and names of different kinds
        // of data begin with different letters.
        let found = unsafe { &mut *(at as *mut T) };
        life(found) != self.life.get() && with(found)
    }

    /// SQLite gives data back.
    pub(crate) fn forget(&self, at: *const c_void) {
        self.registered
            .borrow_mut()
            .retain(|_, known| *known != at as usize);
    }

    /// Why it takes no calls.
    pub(crate) fn fault(&self) -> String {
        let fault = self.fault.borrow();
        let why = fault.as_deref().unwrap_or("it was ended");
        format!("the wall stopped {}: {why}", self.name)
    }

    /// Fresh data, an empty heap, no handles. Whoever calls calls its entry then.
    pub(crate) fn restart(&'static self) -> Result<(), String> {
        if !NOW.get().is_null() {
            return Err("a walled extension is running".to_owned());
        }
        self.domain.restart().map_err(|error| error.to_string())?;
        self.note();
        *self.fault.borrow_mut() = None;
        let statements = self.statements.take();
        for (handle, statement) in statements {
            statement.finalize(handle as Handle);
        }
        self.drop_handles();
        self.heap.borrow_mut().clear();
        self.life.set(self.life.get() + 1);
        Ok(())
    }

    fn drop_handles(&self) {
        let kept = self.kept.take();
        for value in kept {
            crate::values::free_value(value as Handle);
        }
        let strings = self.strings.take();
        for text in strings {
            crate::strings::drop_string(text as Handle);
        }
    }

    pub(crate) fn allows(&self, at: u64, bytes: u64, access: Access) -> bool {
        bytes == 0 || self.domain.view().allows(at, bytes, access)
    }

    /// The bytes that a module points to, which it must be able to read itself.
    pub(crate) fn bytes(&self, at: u64, bytes: u64) -> Answer<&[u8]> {
        if bytes == 0 {
            return Ok(&[]);
        }
        let inside = self.heap.borrow().contains(at, bytes);
        match inside || self.allows(at, bytes, Access::READ) {
            // SAFETY: the module may read it, so there is memory, and nothing of the module runs while the host does:
            // SQLite lets one thread at a time into a connection, and a module belongs to one.
            true => Ok(unsafe { std::slice::from_raw_parts(at as *const u8, bytes as usize) }),
            false => refused(format!(
                "{bytes} bytes at {at:#x} are not the module's to read"
            )),
        }
    }

    /// A string of the module's, without its end.
    pub(crate) fn text(&self, at: u64) -> Answer<&[u8]> {
        self.text_up_to(at, u64::MAX)
    }

    /// A string of the module's, or `most` bytes of it, whatever is shorter.
    pub(crate) fn text_up_to(&self, at: u64, most: u64) -> Answer<&[u8]> {
        let mut length = 0;
        while length < most {
            // To the end of the piece of 64 bytes, if that may be read; otherwise to the end of the word.
            let here = at.wrapping_add(length);
            let whole = (64 - here % 64).min(most - length);
            let piece = match self.bytes(here, whole) {
                Ok(piece) => piece,
                Err(_) => self.bytes(here, (4 - here % 4).min(most - length))?,
            };
            match piece.iter().position(|byte| *byte == 0) {
                Some(end) => return self.bytes(at, length + end as u64),
                None => length += piece.len() as u64,
            }
        }
        self.bytes(at, length)
    }

    /// A copy of a string of the module's.
    pub(crate) fn c_string(&self, at: u64) -> Answer<CString> {
        let text = self.text(at)?;
        Ok(CString::new(text).unwrap_or_default())
    }

    /// As [`c_string`](Self::c_string), but for null.
    pub(crate) fn c_string_or_null(&self, at: u64) -> Answer<Option<CString>> {
        (at != 0).then(|| self.c_string(at)).transpose()
    }

    /// A number that the module has written.
    pub(crate) fn read(&self, at: u64) -> Answer<u64> {
        let bytes = self.bytes(at, 8)?;
        Ok(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// Writes where the module might have written itself.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Answer<()> {
        let inside = self.heap.borrow().contains(at, bytes.len() as u64);
        if !inside && !self.allows(at, bytes.len() as u64, Access::WRITE) {
            let count = bytes.len();
            return refused(format!(
                "{count} bytes at {at:#x} are not the module's to write"
            ));
        }
        // SAFETY: the module may write it, so there is memory, and nothing of the host's is there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        Ok(())
    }

    /// Writes a pointer that the module wants filled in, if it wants that.
    pub(crate) fn write_pointer(&self, at: u64, value: u64) -> Answer<()> {
        match at {
            0 => Ok(()),
            at => self.write(at, &value.to_ne_bytes()),
        }
    }

    /// A block of the module's heap.
    pub(crate) fn take(&self, bytes: u64) -> Option<u64> {
        self.heap.borrow_mut().take(&self.host, &self.domain, bytes)
    }

    /// A copy of these bytes on the module's heap, with a zero behind it. The module frees it.
    pub(crate) fn give(&self, bytes: &[u8]) -> Option<u64> {
        let at = self.take(bytes.len() as u64 + 2)?;
        let end = at as usize + bytes.len();
        // SAFETY: the block has room for both, and it is nobody's else.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
            (end as *mut [u8; 2]).write_unaligned([0; 2]);
        }
        Some(at)
    }

    /// Gives a block of the module's heap back.
    pub(crate) fn free(&self, at: u64) -> Answer<()> {
        let known = at == 0 || self.heap.borrow_mut().give(at);
        match known {
            true => Ok(()),
            false => refused(format!("{at:#x} is no block of the module's heap")),
        }
    }

    /// Lends a copy of memory of the host's, with a zero behind it, until the call returns; null stays null.
    pub(crate) fn lend(&self, at: *const c_void, bytes: u64) -> u64 {
        self.until_return(self.lend_piece(at, bytes))
    }

    /// As [`lend`](Self::lend), for whoever takes it back.
    pub(crate) fn lend_piece(&self, at: *const c_void, bytes: u64) -> Option<(u64, Lent)> {
        if at.is_null() {
            return None;
        }
        // SAFETY: SQLite says that so many bytes are there.
        let copied = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), bytes as usize) };
        let copy = self.give(copied)?;
        Some((copy, Lent::Block(copy)))
    }

    /// Lends a text or a blob of a value's, which `get` finds, with `zeros` behind it: large ones in their place.
    pub(crate) fn lend_value(
        &self,
        value: Handle,
        get: impl Fn(Handle) -> (*const c_void, u64),
        zeros: u64,
    ) -> Option<(u64, Lent)> {
        let (at, bytes) = get(value);
        if bytes <= COPIED {
            return self.lend_piece(at, bytes);
        }
        let value = host!(value_dup: fn(Handle) -> Handle)(value);
        let (at, bytes) = get(value);
        let all = (bytes + zeros) as usize;
        let granted = match at.is_null() {
            true => None,
            // SAFETY: the module only reads it, and nobody but this has the copy, which stays until it is taken back.
            false => unsafe { self.host.grant_for(&self.domain, at as usize, all, false) }.ok(),
        };
        match granted {
            Some(granted) => Some((at as u64, Lent::InPlace { granted, value })),
            None => {
                crate::values::free_value(value);
                None
            }
        }
    }

    /// Until the call returns.
    pub(crate) fn until_return(&self, lent: Option<(u64, Lent)>) -> u64 {
        match lent {
            Some((at, lent)) => {
                self.lent.borrow_mut().push(lent);
                at
            }
            None => 0,
        }
    }

    /// Lends words, such as an array of pointers.
    pub(crate) fn lend_words(&self, words: &[u64]) -> Option<u64> {
        let block = self.take(8 * words.len().max(1) as u64)?;
        for (at, word) in words.iter().enumerate() {
            // SAFETY: the block has room for all of them, and begins at a multiple of 16.
            unsafe { (block as *mut u64).add(at).write(*word) };
        }
        self.lent.borrow_mut().push(Lent::Block(block));
        Some(block)
    }

    /// Lends a string of the host's; null stays null.
    pub(crate) fn lend_text(&self, text: *const i8) -> u64 {
        if text.is_null() {
            return 0;
        }
        // SAFETY: SQLite's strings end with a zero.
        let bytes = unsafe { libc::strlen(text) } as u64;
        self.lend(text.cast(), bytes)
    }

    pub(crate) fn take_back(&self, lent: Lent) {
        match lent {
            // A module that has freed it already has done nobody harm but itself.
            Lent::Block(at) => drop(self.heap.borrow_mut().give(at)),
            Lent::InPlace { granted, value } => {
                drop(granted);
                crate::values::free_value(value);
            }
        }
    }

    /// Makes a value good until the call returns.
    pub(crate) fn give_value(&self, value: Handle) {
        self.values.borrow_mut().push(value as usize);
    }

    /// A function of the module: its address, which must be that of a gate it has itself.
    pub(crate) fn function(&self, at: u64) -> Answer<u64> {
        let may = at.is_multiple_of(16) && self.domain.view().allows(at, 1, Access::ENTER);
        match may || at == 0 {
            true => Ok(at),
            false => refused(format!("{at:#x} is no function of the module")),
        }
    }
}

/// A function of a module, by its gate, with a type: `gate!(at: fn(u64) -> c_int)(data)`. A gate takes any arguments:
/// they are numbers to the module, which can do with them what it may.
macro_rules! gate {
    ($at:expr, fn($($parameter:ty),* $(,)?) $(-> $result:ty)?) => {{
        let at: u64 = $at;
        // SAFETY: `Walled::function` has seen that a switch gate is there, and its text stays mapped.
        unsafe { std::mem::transmute::<u64, extern "C" fn($($parameter),*) $(-> $result)?>(at) }
    }};
}
pub(crate) use gate;
