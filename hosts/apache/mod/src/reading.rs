//! Reads of modules whose loads are checked (protection `read-write`). A module has its own memory already. All else is granted when a
//! check refuses it: the wall looks whether the call may read there, and until which pool goes.
//!
//! ```text
//!   check refuses a load ──► what is there?
//!                             ├── handed out of the pool of a request or connection of the call     until that pool goes
//!                             ├── a structure that leads to the call: server, filter record ...     until the configuration goes
//!                             ├── a constant of the server or a library, a variable that the module imports       the same
//!                             ├── what the call was given by another module, out of that one's memory    until the call ends
//!                             └── anything else                                                     refused
//! ```
//!
//! No rule follows a word that a module may write whose loads are checked ([`Set`]). Strings that a module puts into fields of
//! a request are looked at when it calls the host, and when its call ends ([`publish`]). Those in its own memory are copied into the
//! request's pool. One that it may not read itself is refused. Another thread of the module can still change the field behind that.

mod published;
mod structures;

use crate::apr;
use crate::copied;
use crate::frame::{self, Frame};
use crate::layout::{self, read};
use crate::object::Kind;
use crate::slots::WIDE;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

pub(crate) use published::{copies, enter, leave, made, publish, puts};
use structures::{
    COMMAND_PATH, COMMAND_STATE, CORE_DIRECTORY, CORE_SERVER, DIRECTIVE, DIRECTIVE_TEXTS,
    FILTER_RECORD, SERVER_DEFAULTS, TABLES, TEXTS, constant, in_server, in_table, in_texts, shown,
    variable,
};

/// Whether a module was loaded whose loads are checked.
static ANY: AtomicBool = AtomicBool::new(false);

#[inline]
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Words of a structure that a module may set whose loads are checked. Such a word is never followed here: another thread of the
/// module may write it at any time.
struct Set([AtomicU64; 2]);

impl Set {
    const fn none() -> Set {
        Set([AtomicU64::new(0), AtomicU64::new(0)])
    }

    fn add(&self, places: &[(u64, u64)]) {
        for word in places
            .iter()
            .flat_map(|(at, bytes)| at / 8..(at + bytes).div_ceil(8))
        {
            if let Some(bits) = self.0.get((word / 64) as usize) {
                bits.fetch_or(1 << (word % 64), Ordering::Relaxed);
            }
        }
    }

    fn has(&self, at: u64) -> bool {
        let bits = self.0.get((at / 512) as usize);
        bits.is_none_or(|bits| bits.load(Ordering::Relaxed) & (1 << (at / 8 % 64)) != 0)
    }

    /// The word of a structure, or null if a module could have written it.
    ///
    /// # Safety
    /// It is a structure of the core's of this kind, which lives.
    unsafe fn believed(&self, start: u64, at: u64) -> u64 {
        match self.has(at) {
            true => 0,
            // SAFETY: the caller has said that the structure lives, and the field is in it.
            false => unsafe { read(start + at) },
        }
    }
}

static OF_REQUEST: Set = Set::none();
static OF_CONNECTION: Set = Set::none();
static OF_COMMAND: Set = Set::none();

/// What a module may set whose loads are checked: fields of requests, connections and states of directives.
pub(crate) fn may_set(
    requests: &[(u64, u64)],
    connections: &[(u64, u64)],
    commands: &[(u64, u64)],
) {
    OF_REQUEST.add(requests);
    OF_CONNECTION.add(connections);
    OF_COMMAND.add(commands);
}

static MODULES: Mutex<Vec<&'static Walled>> = Mutex::new(Vec::new());

/// A module is loaded, with checked loads or without.
pub(crate) fn add(walled: &'static Walled) {
    lock(&MODULES).push(walled);
}

/// A request's table. If a module may set the field, it is one that a module has had made of the request's pool, or null. The
/// head of such a table is APR's, and this thread's.
///
/// # Safety
/// It is a request of the core's of this thread.
unsafe fn table_of(r: u64, field: u64) -> u64 {
    // SAFETY: by the caller; no module writes the pool's field.
    let (pool, table) = unsafe { (read(r + layout::R_POOL), read(r + field)) };
    let is_made = || {
        let all = lock(&MODULES);
        // SAFETY: the pool is that of a request of this thread, which lives.
        unsafe { node(pool, table) }.is_some()
            && all.iter().any(|one| one.has_made(table, Kind::Table))
    };
    match !OF_REQUEST.has(field) || is_made() {
        true => table,
        false => 0,
    }
}

/// Where APR keeps the blocks of a pool: a ring, and its first one, in which the pool itself lies up to here.
const POOL_CHILD: u64 = 8;
const POOL_SIBLING: u64 = 16;
const POOL_FIRST: u64 = 96;
const POOL_BEHIND: u64 = 104;
const NODE_USED: u64 = 24;
const NODE_END: u64 = 32;
const NODE: u64 = 40;

/// A module is loaded whose loads are checked. No header says where APR keeps the blocks of a pool, so it is tried.
///
/// # Errors
/// APR keeps them elsewhere.
pub(crate) fn begin() -> Answer<()> {
    static TRIED: OnceLock<bool> = OnceLock::new();
    let is_right = *TRIED.get_or_init(|| {
        let mut pool = 0;
        // SAFETY: a pool of our own. A small and a large block are taken of it.
        unsafe {
            if apr::apr_pool_create_ex(&mut pool, 0, 0, 0) != 0 {
                return false;
            }
            let blocks = [64, 20_000, 64].map(|bytes| (apr::apr_palloc(pool, bytes), bytes));
            let is_in = |(at, bytes): (u64, u64)| {
                let mut nodes = nodes(pool);
                nodes.any(|(start, end)| start <= at && at + bytes <= end)
            };
            let mut made = [0; 2];
            let is_made = |to: &mut u64| apr::apr_pool_create_ex(to, pool, 0, 0) == 0;
            let is_right = looks_right(pool)
                && blocks.into_iter().all(is_in)
                && made.iter_mut().all(is_made)
                && below(pool) == [pool, made[1], made[0]];
            apr::apr_pool_destroy(pool);
            is_right
        }
    });
    if !is_right {
        return Err("loads cannot be checked: APR's pools are not as expected".to_owned());
    }
    ANY.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether the words of a pool are addresses in the block that it lies in.
///
/// # Safety
/// It is a pool of APR's.
unsafe fn looks_right(pool: u64) -> bool {
    // SAFETY: a pool of any version of APR has so many words. The first block is followed if it is just in front of the pool.
    unsafe {
        let first = read(pool + POOL_FIRST);
        first + NODE == pool
            && (pool..read(first + NODE_END)).contains(&read(pool + POOL_BEHIND))
            && read(first + NODE_USED) <= read(first + NODE_END)
    }
}

/// What was handed out of a pool: from where to where, in each of its blocks. What is behind may still have what others wrote.
///
/// # Safety
/// The pool lives. If another thread takes memory of it, this may end early, or have a block that was another pool's before.
unsafe fn nodes(pool: u64) -> impl Iterator<Item = (u64, u64)> {
    let [first, behind] = fetched(pool + POOL_FIRST).unwrap_or_default();
    let mut at = first;
    let all = std::iter::from_fn(move || {
        let node = Some(at).filter(|at| *at != 0)?;
        let words: [u64; 5] = fetched(node)?;
        let [next, _, _, used, end] = words;
        let start = match node == first {
            true => behind,
            false => node + NODE,
        };
        at = if next == first { 0 } else { next };
        (node < start && start <= used && used <= end).then_some((start, used))
    });
    all.take(1 << 20)
}

/// Words of APR's, which another thread may change meanwhile.
fn fetched<const N: usize>(from: u64) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: they are words of APR's or, if it has changed them, of nobody; there is room.
    let done =
        unsafe { mullion_word_runtime::copy_at(from as usize, words.as_mut_ptr().cast(), 8 * N) };
    (done == 8 * N).then_some(words)
}

/// A pool and those below it, which end with it.
///
/// # Safety
/// The pool lives, and is this thread's.
unsafe fn below(pool: u64) -> Vec<u64> {
    const MOST: usize = 4096;
    let (mut all, mut at) = (vec![pool], 0);
    while at < all.len() && all.len() < MOST {
        let of = |at: u64| fetched::<1>(at).map_or(0, |[word]| word);
        let mut child = of(all[at] + POOL_CHILD);
        while child != 0 && all.len() < MOST {
            all.push(child);
            child = of(child + POOL_SIBLING);
        }
        at += 1;
    }
    all
}

/// The block of a pool that has an address.
///
/// # Safety
/// As [`nodes`].
unsafe fn node(pool: u64, at: u64) -> Option<(u64, u64)> {
    // SAFETY: the caller has said that the pool lives, and that no other thread takes memory of it.
    unsafe { nodes(pool) }.find(|(start, end)| (*start..*end).contains(&at))
}

/// The pool of the configuration, and that of the process.
fn lasting() -> [u64; 2] {
    let at = apr::symbol("apr_hook_global_pool");
    // SAFETY: it is APR's variable.
    let global = at.map_or(0, |at| unsafe { read(at as u64) });
    // SAFETY: the server is the core's.
    let process = frame::main_server().map_or(0, |s| unsafe {
        read(read(s + layout::S_PROCESS) + layout::P_POOL)
    });
    [global, process]
}

/// The pool of the configuration.
pub(crate) fn configuration() -> u64 {
    lasting()[0]
}

/// Whether the configuration or the process has handed an address out.
fn is_lasting(at: u64) -> bool {
    let pools = lasting().into_iter().filter(|pool| *pool != 0);
    // SAFETY: these pools live. The answer lets nobody read: it says of a string that the core leads to whether it stays.
    pools
        .into_iter()
        .any(|pool| unsafe { node(pool, at) }.is_some())
}

/// A string with its zero, if it has an address.
fn within(text: u64, at: u64) -> Option<(u64, u64)> {
    const LONGEST: u64 = 1 << 16;
    if text == 0 || at.checked_sub(text)? > LONGEST {
        return None;
    }
    let length = copied::bare_length(text)? as u64;
    (at - text <= length).then_some((text, length + 1))
}

/// A structure, if it has an address.
fn inside(start: u64, bytes: u64, at: u64) -> Option<(u64, u64)> {
    (start != 0 && at.wrapping_sub(start) < bytes).then_some((start, bytes))
}

/// Filters of a call, of its requests and connections.
///
/// # Safety
/// The call runs in this thread.
unsafe fn filters(frame: &Frame) -> impl Iterator<Item = u64> {
    const OF_A_REQUEST: [u64; 4] = [
        layout::R_OUTPUT_FILTERS,
        layout::R_INPUT_FILTERS,
        layout::R_PROTO_OUTPUT_FILTERS,
        layout::R_PROTO_INPUT_FILTERS,
    ];
    const OF_A_CONNECTION: [u64; 2] = [layout::C_OUTPUT_FILTERS, layout::C_INPUT_FILTERS];
    let next = |f: &u64| {
        // SAFETY: it is a filter of the core's, and modules may write nothing of it but its `ctx`.
        Some(unsafe { read(f + layout::F_NEXT) }).filter(|next| *next != 0)
    };
    let requests = frame.requests();
    // SAFETY: the requests are those of the call, and so live.
    let requests =
        requests.flat_map(|r| OF_A_REQUEST.map(|at| unsafe { OF_REQUEST.believed(r, at) }));
    let connections = frame.connections();
    // SAFETY: the connections are those of the call, and so live.
    let connections = connections
        .flat_map(|c| OF_A_CONNECTION.map(|at| unsafe { OF_CONNECTION.believed(c, at) }));
    let firsts = frame.filters().chain(requests).chain(connections);
    let firsts = firsts.filter(|first| *first != 0);
    firsts.flat_map(move |first| std::iter::successors(Some(first), next).take(256))
}

type Texts = [u64; TEXTS.len() + 1];

/// A call that is in a module, as long as any module's loads are checked.
struct Call {
    frame: *const Frame,
    arguments: [u64; WIDE],
    /// Requests, each with its strings when the call began or had them looked at.
    requests: Vec<(u64, Texts)>,
    granted: Vec<Granted>,
    /// Copies that the module has, with the buckets whose bytes they are.
    copies: Vec<(u64, u64)>,
}

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// A module may read a structure that stays as long as the configuration.
pub(crate) fn show(frame: &Frame, at: u64, bytes: u64) -> Answer<()> {
    match frame.walled.may_read(at, bytes) {
        true => Ok(()),
        false => frame.walled.lend_read(frame, configuration(), at, bytes),
    }
}

/// The call that runs may read bytes of its caller's, until it ends.
fn hand(frame: &Frame, at: u64, bytes: u64) -> Answer<()> {
    let granted = frame.walled.grant_read(at, bytes)?;
    CALLS.with_borrow_mut(|calls| {
        if let Some(call) = calls.last_mut() {
            call.granted.push(granted);
        }
    });
    Ok(())
}

/// A copy of bytes that the host has found for the call that runs, which the module has until that ends, or the bucket that has them.
/// The bytes themselves may go earlier, and something else may be there then.
pub(crate) fn copy(frame: &Frame, bucket: u64, at: u64, bytes: u64) -> Answer<u64> {
    let walled = frame.walled;
    if walled.may_read(at, bytes) {
        return Ok(at);
    }
    let room = walled.piece(bytes)?;
    if room == 0 {
        return Err(format!("the module has no memory for {bytes} bytes"));
    }
    // SAFETY: there is room for so many.
    let done =
        unsafe { mullion_word_runtime::copy_at(at as usize, room as *mut u8, bytes as usize) };
    let is_kept = done as u64 == bytes
        && CALLS.with_borrow_mut(|calls| {
            let call = calls.last_mut();
            let call = call.filter(|call| std::ptr::eq(call.frame, frame));
            call.map(|call| call.copies.push((bucket, room))).is_some()
        });
    match is_kept {
        true => Ok(room),
        false => {
            walled.unpiece(room);
            Err(format!("{at:#x} cannot be read"))
        }
    }
}

/// A bucket is gone, and so are copies of its bytes.
pub(crate) fn gone(frame: &Frame, bucket: u64) {
    let copies = CALLS.with_borrow_mut(|calls| {
        let call = calls.last_mut();
        let call = call.filter(|call| std::ptr::eq(call.frame, frame));
        call.map_or(Vec::new(), |call| {
            let (gone, stay) = call.copies.drain(..).partition(|(of, _)| *of == bucket);
            call.copies = stay;
            gone
        })
    });
    for (_, copy) in copies {
        frame.walled.unpiece(copy);
    }
}

impl Walled {
    /// Grants what the running call may read at an address. Runs in the handler of a signal, too.
    pub(crate) fn demand_read(&'static self, at: u64) -> bool {
        let frame = frame::now().and_then(|frame| frame.of(self));
        let Some(frame) = frame.filter(|_| self.reads) else {
            return false;
        };
        self.read_pools(frame, at)
            || self.read_lasting(frame, at)
            || self.read_made(frame, at)
            || self.read_call(frame, at)
    }

    /// The same for so many bytes, which a function of the host is to read for the module.
    pub(crate) fn demand_all(&'static self, from: u64, bytes: u64) -> bool {
        let Some(end) = from.checked_add(bytes) else {
            return false;
        };
        let mut words = std::iter::once(from).chain(((from & !3) + 4..end).step_by(4));
        words.all(|at| self.may_read(at, 1) || self.demand_read(at) && self.may_read(at, 1))
    }

    /// Pools of the call's requests and connections.
    fn read_pools(&'static self, frame: &Frame, at: u64) -> bool {
        // SAFETY: they are the core's structures.
        let of = |at: u64| unsafe { read(at) };
        let find = |pool: u64| {
            // SAFETY: the pool lives as long as what it is of, and its thread is this one.
            let found = unsafe { node(pool, at) };
            found.map(|found| (pool, found))
        };
        let requests = frame.requests().map(|r| of(r + layout::R_POOL));
        // SAFETY: the pool is that of a request of this call, and so is the thread.
        let mut requests = requests.flat_map(|pool| unsafe { below(pool) });
        let mut connections = frame.connections().map(|c| of(c + layout::C_POOL));
        let found = requests
            .find_map(find)
            .or_else(|| connections.find_map(find));
        found.is_some_and(|(pool, found)| self.read_node(pool, found, at))
    }

    /// What was handed out of a block since it was looked at, or all of it.
    fn read_node(&'static self, pool: u64, (start, end): (u64, u64), at: u64) -> bool {
        let at = at & !7;
        let from = match at > start && self.may_read(start, at - start) {
            true => at,
            false => start,
        };
        self.lend_here(pool, || self.grant_read(from, end - from))
            .is_ok()
    }

    /// What lives as long as the configuration.
    fn read_lasting(&'static self, frame: &Frame, at: u64) -> bool {
        let found = self
            .structure(frame, at)
            .or_else(|| constant(at))
            .or_else(|| {
                let mut names = self.variables.iter();
                names.find_map(|name| {
                    variable(name).and_then(|(start, bytes)| inside(start, bytes, at))
                })
            });
        let Some((start, bytes)) = found else {
            return false;
        };
        self.lend_read(frame, configuration(), start, bytes).is_ok()
    }

    /// Part of a structure of the core's that leads to the call, or one of its strings.
    fn structure(&self, frame: &Frame, at: u64) -> Option<(u64, u64)> {
        let index = self.index();
        // SAFETY: all of these are the core's structures; what modules may write is said with each.
        unsafe {
            let next = |s: &u64| Some(read(s + layout::S_NEXT)).filter(|next| *next != 0);
            let given = frame.any_server().into_iter().chain(frame::main_server());
            let servers = || {
                given
                    .clone()
                    .flat_map(|s| std::iter::successors(Some(s), next).take(1 << 16))
            };
            if let Some(found) = servers().find_map(|s| in_server(s, at)) {
                return Some(found);
            }
            // A module's own place among the configurations, and the core's. No module writes the core's.
            let vectors = servers().flat_map(|s| {
                [
                    (read(s + layout::S_MODULE_CONFIG), CORE_SERVER),
                    (read(s + SERVER_DEFAULTS), CORE_DIRECTORY),
                ]
            });
            let of_requests = frame.requests().map(|r| {
                let vector = OF_REQUEST.believed(r, layout::R_PER_DIR_CONFIG);
                (vector, CORE_DIRECTORY)
            });
            for (vector, bytes) in vectors
                .chain(of_requests)
                .filter(|(vector, _)| *vector != 0)
            {
                let places = [vector, vector + 8 * index];
                if let Some(found) = places.into_iter().find_map(|place| inside(place, 8, at)) {
                    return Some(found);
                }
                let core = read(vector);
                if let Some(found) = inside(core, bytes, at) {
                    return Some(found);
                }
                let words = (0..bytes / 8).map(|n| if core == 0 { 0 } else { read(core + 8 * n) });
                let mut texts = words.filter(|word| *word <= at && at - word < 1 << 16);
                if let Some(found) =
                    texts.find_map(|text| within(text, at).filter(|_| is_lasting(text)))
                {
                    return Some(found);
                }
            }
            for filter in filters(frame) {
                let record = read(filter);
                let found =
                    inside(record, FILTER_RECORD, at).or_else(|| in_texts(record, &[0], at));
                if found.is_some() {
                    return found;
                }
            }
            // What requests have of the configuration. Only what a pool has that no module takes its own memory of.
            if !is_lasting(at) {
                return None;
            }
            let of_request = |r: u64| {
                let mut tables = TABLES.iter();
                let mut fields = TEXTS.iter();
                tables
                    .find_map(|table| in_table(table_of(r, *table), at))
                    .or_else(|| fields.find_map(|text| within(OF_REQUEST.believed(r, *text), at)))
            };
            let of_connection = |c: u64| in_table(OF_CONNECTION.believed(c, layout::C_NOTES), at);
            let found = frame.requests().find_map(of_request);
            found.or_else(|| frame.connections().find_map(of_connection))
        }
    }

    /// What is in tables that the module has made, and addresses.
    fn read_made(&'static self, frame: &Frame, at: u64) -> bool {
        let kept = frame.kept();
        let found = self
            .all_made()
            .into_iter()
            .find_map(|(object, home, kind)| {
                let home = if home == 0 { configuration() } else { home };
                let is_shown = kind == Kind::Table || shown(kind) != 0;
                // It stays until it was looked at, and no other thread takes memory of its pool.
                if !is_shown || !self.keeps(frame, object, home) {
                    return None;
                }
                // SAFETY: its pool was just kept.
                let is_kept = |at: u64| is_lasting(at) || unsafe { node(home, at) }.is_some();
                let found = match kind {
                    _ if !is_kept(object) => None,
                    // SAFETY: it is a table that the host has made, in a pool that stays.
                    Kind::Table if is_kept(at) => unsafe { in_table(object, at) },
                    Kind::Table => None,
                    _ => inside(object, shown(kind), at),
                };
                found.map(|found| (home, found))
            });
        let is_lent = found.is_some_and(|(home, (start, bytes))| {
            let lent = self.lend_read(frame, home, start, bytes);
            lent.is_ok()
        });
        frame.let_go(kept);
        is_lent
    }

    /// What this very call was given: the state of a directive with its row and texts, and strings of the module that calls.
    fn read_call(&'static self, frame: &Frame, at: u64) -> bool {
        let of_command = |cmd: u64| {
            // SAFETY: the core has passed it; its row is ours, and its directive is the core's.
            unsafe {
                let word = |at: u64| OF_COMMAND.believed(cmd, at);
                let directive = word(layout::CMD_DIRECTIVE);
                inside(cmd, COMMAND_STATE, at)
                    .or_else(|| inside(word(layout::CMD_COMMAND), layout::COMMAND, at))
                    .or_else(|| within(word(COMMAND_PATH), at))
                    .or_else(|| inside(directive, DIRECTIVE, at))
                    .or_else(|| match directive {
                        0 => None,
                        directive => in_texts(directive, &DIRECTIVE_TEXTS, at),
                    })
            }
        };
        let mut commands = frame.roots.iter().filter_map(|root| match *root {
            frame::Root::Command(cmd) => Some(cmd),
            _ => None,
        });
        let found = commands.find_map(of_command).or_else(|| {
            let caller = frame.outer()?.walled;
            let arguments = CALLS.with_borrow(|calls| {
                let call = calls.last().filter(|call| std::ptr::eq(call.frame, frame));
                call.map(|call| call.arguments)
            })?;
            let mut own = arguments
                .into_iter()
                .filter(|text| *text <= at && caller.writes(*text, 1));
            // A string may have its end in what is not the caller's.
            own.find_map(|text| {
                let found = within(text, at);
                found.filter(|(start, bytes)| caller.writes(*start, *bytes))
            })
        });
        found.is_some_and(|(start, bytes)| hand(frame, start, bytes).is_ok())
    }

    fn lend_read(&'static self, frame: &Frame, pool: u64, at: u64, bytes: u64) -> Answer<()> {
        self.lend_for(frame, pool, || self.grant_read(at, bytes))
    }

    /// The right to read, until it is dropped.
    pub(crate) fn grant_read(&self, at: u64, bytes: u64) -> Answer<Granted> {
        // SAFETY: one of the rules above lets the module read there, and it is taken back before the memory goes.
        let granted = unsafe {
            self.host
                .grant_for(&self.domain, at as usize, bytes as usize, false)
        };
        granted.map_err(|error| error.to_string())
    }
}

/// Names of the host's variables that a module's file names.
pub(crate) fn variables(verified: &mullion_word_verifier::Verified) -> Vec<String> {
    let imported = verified
        .symbols()
        .filter(|(_, symbol)| symbol.address.is_none());
    let names = imported.map(|(_, symbol)| symbol.name.to_owned());
    names
        .filter(|name| !verified.imports().contains(name))
        .collect()
}

/// The pool that a call's own strings go with: that of its request, of its directive, or the first that it was given.
pub(crate) fn home(frame: &Frame) -> u64 {
    let given = || {
        frame.roots.iter().find_map(|root| match *root {
            frame::Root::Pool(pool) => Some(pool),
            // SAFETY: the core has passed it.
            frame::Root::Command(cmd) => Some(unsafe { read(cmd + layout::CMD_POOL) }),
            _ => None,
        })
    };
    frame.home().or_else(given).unwrap_or_else(configuration)
}

/// Arguments of a directive that are strings: the module gets copies, which it may keep as long as its configuration.
///
/// # Safety
/// The core has passed the state of a directive and its arguments.
pub(crate) unsafe fn directive(frame: &Frame, arguments: &mut [u64; WIDE]) -> Answer<()> {
    const RAW: u32 = 0;
    const FLAG: u32 = 5;
    const LIST: u32 = 12;
    let cmd = arguments[0];
    // SAFETY: by the caller; strings end with zeros.
    unsafe {
        let how = read(read(cmd + layout::CMD_COMMAND) + layout::COMMAND_HOW) as u32;
        let pool = read(cmd + layout::CMD_POOL);
        let copy = |text: u64| match text {
            0 => Ok(0),
            text => frame.walled.copy(frame, pool, apr::text(text)),
        };
        match how {
            RAW | FLAG => {}
            LIST => {
                let (count, list) = (arguments[2] & 0xffff_ffff, arguments[3]);
                let room = frame.walled.take(frame, pool, 8 * (count + 1))?;
                for n in 0..count {
                    let text = copy(read(list + 8 * n))?;
                    ((room + 8 * n) as *mut u64).write(text);
                }
                ((room + 8 * count) as *mut u64).write(0);
                arguments[3] = room;
            }
            _ => {
                for text in &mut arguments[2..5] {
                    *text = copy(*text)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_its_zero_and_nothing_behind() {
        let text = b"ab\0cd\0";
        let at = text.as_ptr() as u64;
        assert_eq!(within(at, at + 2), Some((at, 3)));
        assert_eq!(within(at, at + 3), None);
        assert_eq!(within(at + 3, at), None);
        assert_eq!(within(0, at), None);
    }

    #[test]
    fn constants_are_and_variables_are_not() {
        static CONSTANT: [u8; 4] = *b"abcd";
        static VARIABLE: AtomicBool = AtomicBool::new(true);
        let local = 7u64;
        assert!(constant(CONSTANT.as_ptr() as u64).is_some());
        assert!(constant(VARIABLE.as_ptr() as u64).is_none());
        assert!(constant(&raw const local as u64).is_none());
        assert!(constant(Box::into_raw(Box::new(0u64)) as u64).is_none());
    }
}
