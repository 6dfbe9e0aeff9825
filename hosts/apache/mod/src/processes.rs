//! Programs that modules start, and the files they wait for. A module has a copy of what APR knows of a program.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied::{self, Names};
use crate::object::Kind;
use crate::slots::{self, WIDE};
use crate::walled::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// `apr_proc_t`: a process's number, and three files.
const PROCESS: u64 = 40;
const WORDS: usize = 5;

/// The core's structures by the modules' own.
static STARTED: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);

/// Starts a program by a function of the server's for six arguments, behind the first if there is a request.
fn start(name: &str, r: Option<u64>, arguments: [u64; 6]) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        let [to, program, words, environment, attributes, pool] = arguments;
        walled.must_write(to, PROCESS - 8)?;
        walled.pool(frame, pool)?;
        if !walled.knows(attributes, Kind::ProcessAttributes) {
            return Err(format!("{name}: no attributes that the module has made"));
        }
        if r.is_some_and(|r| !call::is_request(frame, r)) {
            return Err(format!("{name}: no request of the module"));
        }
        let program = copied::name(frame, program)?;
        // The program's own words there must be; none is the server's environment.
        let named = |what: String| format!("{name}: {what}");
        let words = Names::of(frame, words).map_err(named)?;
        let environment = match environment {
            0 => None,
            list => Some(Names::of(frame, list).map_err(named)?),
        };
        let environment = environment.as_ref().map_or(0, Names::at);
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: the pool lives, and the function gets memory of the pool's for what it writes.
        unsafe {
            let made = apr::apr_palloc(pool, PROCESS) as *mut [u64; WORDS];
            made.write([0; WORDS]);
            let program = program.as_ptr() as u64;
            let own = [
                made as u64,
                program,
                words.at(),
                environment,
                attributes,
                pool,
            ];
            let status = match r {
                Some(r) => {
                    let mut all = [0; WIDE];
                    all[0] = r;
                    all[1..7].copy_from_slice(&own);
                    slots::call_wide(real as u64, &all)
                }
                None => {
                    let real = std::mem::transmute::<usize, slots::Function>(real);
                    let [a, b, c, d, e, f] = own;
                    real(a, b, c, d, e, f)
                }
            };
            let words = made.read();
            for file in &words[1..4] {
                walled.know(frame, Some(pool), *file, Kind::File)?;
            }
            (to as *mut [u64; 4]).copy_from_nonoverlapping(made.cast(), 1);
            lock(&STARTED)
                .get_or_insert_default()
                .insert(to, made as u64);
            Ok(status as u32 as u64)
        }
    })
}

pub(crate) extern "C" fn apr_proc_create(
    to: u64,
    program: u64,
    words: u64,
    environment: u64,
    attributes: u64,
    pool: u64,
) -> u64 {
    let arguments = [to, program, words, environment, attributes, pool];
    start("apr_proc_create", None, arguments)
}

pub(crate) extern "C" fn ap_os_create_privileged_process(
    r: u64,
    to: u64,
    program: u64,
    words: u64,
    environment: u64,
    attributes: u64,
    pool: u64,
) -> u64 {
    let arguments = [to, program, words, environment, attributes, pool];
    start("ap_os_create_privileged_process", Some(r), arguments)
}

/// The program is ended with the pool: the one that was started, whatever the module has written.
pub(crate) extern "C" fn apr_pool_note_subprocess(pool: u64, process: u64, how: u64) -> u64 {
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        let known = lock(&STARTED).get_or_insert_default().remove(&process);
        let made = known.ok_or("apr_pool_note_subprocess: no program of the module")?;
        let real = apr::symbol("apr_pool_note_subprocess").ok_or("the server does not have it")?;
        // SAFETY: APR's function, with what it has made.
        let real: extern "C" fn(u64, u64, u64) = unsafe { std::mem::transmute(real) };
        real(pool, made, how);
        Ok(0)
    })
}

/// It would run between fork and exec, where no module can. The server's own log has what fails there.
pub(crate) extern "C" fn apr_procattr_child_errfn_set(_: u64, _: u64) -> u64 {
    0
}

/// A set of files gets one that the module has.
fn poll(set: u64, entry: u64, name: &str) -> u64 {
    const FILE: u32 = 2;
    const SOCKET: u32 = 1;
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows(set, Kind::Pollset) {
            return Err(format!(
                "{name}: {set:#x} is no set that the module has made"
            ));
        }
        // The entry is a copy: pool, kind and events, object, data.
        let mut copy: [u64; 4] = copied::words(frame, entry)?;
        let is_known = match copy[1] as u32 {
            FILE => walled.knows(copy[2], Kind::File),
            SOCKET => walled.knows_or_shares(copy[2], Kind::Socket),
            _ => false,
        };
        if !is_known {
            return Err(format!("{name}: {:#x} is no file of the module", copy[2]));
        }
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: APR's function, with an entry of ours, which it copies.
        let real: extern "C" fn(u64, *mut [u64; 4]) -> i32 = unsafe { std::mem::transmute(real) };
        Ok(real(set, &mut copy) as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_pollset_add(set: u64, entry: u64) -> u64 {
    poll(set, entry, "apr_pollset_add")
}

pub(crate) extern "C" fn apr_pollset_remove(set: u64, entry: u64) -> u64 {
    poll(set, entry, "apr_pollset_remove")
}
