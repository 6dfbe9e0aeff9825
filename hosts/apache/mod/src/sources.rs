//! Files of configuration. A module may make one of its own, as `mod_macro` does, and have the core read its directives there.
//!
//! ```text
//!   core ── reads a line ──► ours ──► a buffer of the module's ──► its function ──► the line is copied for the core
//!                                          its function may put the file back that comes next, and read on in that one
//! ```

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::copied;
use crate::frame::{Frame, Root};
use crate::interface::back as kind;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::slots::Function;
use crate::swaps::Rule;
use crate::walled::{Answer, Walled, lock};
use std::ffi::c_int;
use std::sync::OnceLock;

/// `cmd_parms.config_file`.
pub(crate) const FILE: u64 = 48;
/// `ap_configfile_t`: functions for a character and a line, and what they are called with.
const CHARACTER: u64 = 0;
const LINE: u64 = 8;
const DATA: u64 = 24;
/// As long is a line that is asked for at once.
const ROOM: u64 = 8192;
/// As APR says that there is no more.
const END: c_int = 70_014;

/// A file that a module has made. It lies in the pool that the module has named, where no module writes.
struct Source {
    walled: &'static Walled,
    /// What stands for the module's functions, and what they are called with.
    functions: [u64; 3],
    data: u64,
    buffer: u64,
    /// The state of the directive that has made it, and the file as the core knows it.
    state: u64,
    file: u64,
}

impl Source {
    /// Calls one of the module's functions. If the core reads its directives here, the function may put another file there.
    fn call(&self, which: usize, arguments: [u64; 3]) -> c_int {
        let function = self.functions[which];
        if function == 0 {
            return END;
        }
        let place = self.state + FILE;
        // SAFETY: the state lies on the stack of the thread that reads; only its value is compared.
        let is_read = self.state != 0 && unsafe { read(place) } == self.file;
        let granted = is_read.then(|| self.walled.grant(place, 8));
        if is_read {
            // SAFETY: the core reads by this state now, so it is alive.
            unsafe { self.walled.note_word(place, Rule::Source, 0) };
        }
        // SAFETY: what stands for a module's function takes six integers.
        let function = unsafe { std::mem::transmute::<u64, Function>(function) };
        let [a, b, c] = arguments;
        let status = function(a, b, c, 0, 0, 0);
        if is_read {
            self.walled.swaps.end(place);
        }
        drop(granted);
        status as c_int
    }
}

/// A character of the module's file.
extern "C" fn character(to: *mut u8, source: &Source) -> c_int {
    let status = source.call(0, [source.buffer, source.data, 0]);
    if status == 0 {
        // SAFETY: the core has a byte there, and the buffer is the module's.
        unsafe { to.write((source.buffer as *const u8).read()) };
    }
    status
}

/// A line of it, or the first part of one.
extern "C" fn line(to: *mut u8, bytes: u64, source: &Source) -> c_int {
    let bytes = bytes.min(ROOM);
    let status = source.call(1, [source.buffer, bytes, source.data]);
    if status == 0 && bytes != 0 {
        // SAFETY: the core has so much room, and the buffer is the module's and larger.
        unsafe {
            let length = libc::strnlen(source.buffer as *const _, bytes as usize - 1);
            to.copy_from_nonoverlapping(source.buffer as *const u8, length);
            to.add(length).write(0);
        }
    }
    status
}

extern "C" fn close(source: &Source) -> c_int {
    match source.functions[2] {
        0 => 0,
        _ => source.call(2, [source.data, 0, 0]),
    }
}

impl Walled {
    /// The file that directives are read from becomes one that the module may read on in.
    pub(crate) fn know_source(&'static self, frame: &Frame, cmd: u64) -> Answer<()> {
        // SAFETY: the core has passed the state of a directive.
        let (file, pool) = unsafe { (read(cmd + FILE), read(cmd + layout::CMD_TEMP)) };
        match file {
            0 => Ok(()),
            file => self.know_file(frame, file, pool),
        }
    }

    fn know_file(&'static self, frame: &Frame, file: u64, pool: u64) -> Answer<()> {
        static CORE: OnceLock<[u64; 2]> = OnceLock::new();
        if lock(&self.swaps.files).insert(file, pool).is_some() {
            return Ok(());
        }
        self.know(frame, Some(pool), file, Kind::ConfigFile)?;
        // SAFETY: the core has made the file.
        let (functions, data) = unsafe {
            let functions = [read(file + CHARACTER), read(file + LINE)];
            (functions, read(file + DATA))
        };
        // Functions of the one kind of file are not called with the data of the other.
        let ours = [character as *const () as u64, line as *const () as u64];
        let (kind, words) = match functions {
            functions if functions == ours => (Kind::OwnLines, ["w1 (", "w*1 . ("]),
            functions if functions == *CORE.get_or_init(|| functions) => {
                (Kind::CoreLines, ["w1 0", "w*1 . 0"])
            }
            _ => return Ok(()),
        };
        self.know(frame, Some(pool), data, kind)?;
        let names = ["a character of a file", "a line of a file"];
        let all = [0, 1].map(|at| (functions[at] as usize, names[at].to_owned(), words[at]));
        crate::out::offer(self, &all)
    }
}

pub(crate) extern "C" fn ap_pcfg_open_custom(
    pool: u64,
    name: u64,
    data: u64,
    getc: u64,
    gets: u64,
    end: u64,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.pool(frame, pool)?;
        let name = copied::text(frame, name)?;
        let functions = [
            back::stand_in(frame, kind("source_character"), getc)?,
            back::stand_in(frame, kind("source_line"), gets)?,
            back::stand_in(frame, kind("cleanup"), end)?,
        ];
        let buffer = walled.take(frame, pool, ROOM)?;
        let state = frame.roots.iter().find_map(|root| match *root {
            Root::Command(cmd) => Some(cmd),
            _ => None,
        });
        let real = apr::symbol("ap_pcfg_open_custom").ok_or("the server does not have it")?;
        // SAFETY: the pool lives, and gives that much. It is httpd's function, with functions of ours for that memory.
        unsafe {
            let at = apr::apr_palloc(pool, size_of::<Source>() as u64) as *mut Source;
            let real: extern "C" fn(u64, u64, *mut Source, usize, usize, usize) -> u64 =
                std::mem::transmute(real);
            let [c, l, e] = [
                character as *const () as usize,
                line as *const () as usize,
                close as *const () as usize,
            ];
            at.write(Source {
                walled,
                functions,
                data,
                buffer,
                state: state.unwrap_or(0),
                file: 0,
            });
            // httpd keeps the name's address.
            let file = real(pool, copied::keep(pool, &name), at, c, l, e);
            (*at).file = file;
            walled.know_file(frame, file, pool)?;
            Ok(file)
        }
    })
}

/// A pointer of the module's own is cleared when a pool goes; runs as its cleanup.
pub(crate) extern "C" fn set_null(at: u64) -> u64 {
    if let Some(frame) = crate::frame::now() {
        let mut own = frame.walled.data.iter();
        if own.any(|(start, bytes)| at >= *start && at.saturating_add(8) <= start + bytes) {
            // SAFETY: it is the module's own variable, which stays mapped.
            unsafe { (at as *mut u64).write_unaligned(0) };
        }
    }
    0
}
