//! A module behind its wall: what it has from pools, and which objects of the host's it may pass.
//!
//! ```text
//!   pool ── first use by a module ──► ledger: chunks of the module's arena, from which it allocates; large blocks of the pool;
//!    │                                 fields of requests, its places in configurations; objects that it has made
//!    └── cleared or destroyed ──► cleanup: all of the ledger is taken back
//! ```
//!
//! A field is granted when the module first writes it in a request (`demand`), because a module has a right to many and writes
//! few. One that was written of late is granted when the module is first called for a request.

use crate::apr;
use crate::arena::{self, Arena};
use crate::count::Counter;
use crate::deeds::{self, Deeds};
use crate::frame::{Frame, Root};
use crate::layout::{self, read};
use crate::libraries::Stream;
use crate::pieces;
use crate::pooled::Borrowed;
use crate::pools::{GOING, OF_REQUEST, is_global};
use crate::quick::Map;
use crate::rings::{self, Rings};
use crate::swaps::Swaps;
use mullion_symbols::Symbols;
use mullion_word_runtime::{Domain, Granted, Host};
use mullion_word_table::{Access, View};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call is refused, and why.
pub(crate) type Answer<T> = Result<T, String>;

/// Pieces of this size and less come from chunks. Larger ones are the pool's own, and are granted each for itself.
const SMALL: u64 = 2 << 10;

/// A field that was written is granted for so many requests without being asked for.
const WARM: u32 = 1024;

/// What a module has of one pool.
#[derive(Default)]
struct Ledger {
    granted: Vec<Granted>,
    /// Where the chunk goes on, and where it ends.
    next: u64,
    end: u64,
    chunks: Vec<(u64, u64)>,
    /// Large blocks.
    blocks: Vec<(u64, u64)>,
    bytes: u64,
    objects: Vec<u64>,
    /// Requests in which a filter of the module was stopped.
    stopped: Vec<u64>,
    /// Requests, connections and filters whose warm fields were granted.
    touched: Vec<u64>,
}

/// Which modules have something of a pool that was granted. All of it is taken back at once when `collect` runs, because that
/// waits for threads. Modules that came to the pool behind the first grant have their own cleanup run before it: what they had
/// is here then.
static LENT: Mutex<Option<Map<Lent>>> = Mutex::new(None);

#[derive(Default)]
struct Lent {
    modules: Vec<&'static Walled>,
    granted: Vec<Granted>,
}

extern "C" fn collect(pool: u64) -> i32 {
    let lent = lock(&LENT).as_mut().and_then(|lent| lent.remove(&pool));
    let lent = lent.unwrap_or_default();
    let mut all = lent.granted;
    for walled in lent.modules {
        if let Some(ledger) = lock(&walled.state).ledgers.get_mut(&pool) {
            all.append(&mut ledger.granted);
        }
    }
    Granted::end_all(all);
    0
}

impl Ledger {
    /// What is granted until the pool goes.
    fn lend(&mut self, walled: &'static Walled, pool: u64, granted: Granted) {
        if self.granted.is_empty() {
            let mut lent = lock(&LENT);
            let modules = lent
                .get_or_insert_with(Map::default)
                .entry(pool)
                .or_default();
            let modules = &mut modules.modules;
            if modules.is_empty() {
                let (plain, child) = (collect as *const () as usize, nothing as *const () as usize);
                // SAFETY: the pool lives, as it has a ledger. It runs this before its memory goes.
                unsafe { apr::apr_pool_cleanup_register(pool, pool, plain, child) };
            }
            modules.push(walled);
        }
        self.granted.push(granted);
    }

    /// Forgets all but its lists' room.
    fn clear(&mut self) {
        (self.next, self.end, self.bytes) = (0, 0, 0);
        self.chunks.clear();
        self.blocks.clear();
        self.objects.clear();
        self.touched.clear();
        self.stopped.clear();
    }
}

/// So many empty ledgers are kept.
const SPARE: usize = 64;

#[derive(Default)]
struct State {
    ledgers: Map<Ledger>,
    objects: Map<u8>,
    arena: Arena,
    /// Emptied ones, whose lists have room already.
    spare: Vec<Ledger>,
    /// In all ledgers.
    bytes: u64,
}

/// Part of a structure that the module may write.
pub(crate) struct Piece {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// For how many more requests it is granted without being asked for.
    warm: AtomicU32,
}

impl Piece {
    pub(crate) fn new((at, bytes): (u64, u64)) -> Piece {
        Piece {
            at,
            bytes,
            warm: AtomicU32::new(0),
        }
    }

    /// Whether it is granted now; counts down, roughly if several threads do.
    pub(crate) fn is_warm(&self) -> bool {
        let warm = self.warm.load(Ordering::Relaxed);
        if warm != 0 {
            self.warm.store(warm - 1, Ordering::Relaxed);
        }
        warm != 0
    }
}

/// A module.
pub(crate) struct Walled {
    pub(crate) name: String,
    pub(crate) domain: Domain,
    pub(crate) host: Host,
    /// What httpd knows as the module: a copy of its structure with functions of ours.
    pub(crate) stand_in: u64,
    /// The module's own structure.
    pub(crate) own: u64,
    pub(crate) memory: u64,
    /// Parts of `request_rec` and of `conn_rec` that it may write.
    request: Vec<Piece>,
    connection: Vec<Piece>,
    /// Its places in their configurations, and the word of a filter that is the module's.
    request_place: Piece,
    connection_place: Piece,
    filter_place: Piece,
    pub(crate) deeds: Deeds,
    /// Parts of `cmd_parms`, for the length of a directive's call.
    pub(crate) command: Vec<(u64, u64)>,
    pub(crate) places: (bool, bool, bool),
    /// Its data that changes: where, and as it was when the server began to serve.
    pub(crate) data: Vec<(u64, u64)>,
    pub(crate) kept: Mutex<Vec<Vec<u8>>>,
    pub(crate) faults: AtomicU64,
    pub(crate) calls: Counter,
    pub(crate) asked: Counter,
    /// Nanoseconds in its calls, with what the host did for them.
    pub(crate) time: Counter,
    state: Mutex<State>,
    /// Never locked while `state` is.
    pub(crate) rings: Mutex<Rings>,
    /// Buckets of its own types that are being read.
    pub(crate) readings: Mutex<Vec<crate::kinds::Reading>>,
    /// Streams of zlib's, by the module's own.
    pub(crate) streams: Mutex<Map<Stream>>,
    /// Strings of a request that it may change in their place: where the request has them.
    pub(crate) texts: Vec<u64>,
    pub(crate) symbols: Mutex<Symbols>,
    /// Whether its loads are checked.
    reads: bool,
    /// Whether it may take filters of others out of its requests.
    pub(crate) removes_filters: bool,
    /// Whether it may write its connections' lines of the scoreboard.
    pub(crate) keeps_score: bool,
    /// Whether its gates pass on arguments behind the sixth.
    pub(crate) is_wide: bool,
    /// Connections to backends with the threads that have them, and what it may write of one.
    pub(crate) acquired: Mutex<Vec<(u64, u64)>>,
    pub(crate) backend_fields: Vec<&'static str>,
    /// Words that the core follows.
    pub(crate) swaps: Swaps,
    /// What calls that run now have taken out of lists.
    pub(crate) borrowed: Mutex<Vec<Borrowed>>,
    /// Of a heap that the module has in itself.
    pub(crate) pieces: Mutex<HashMap<u64, pieces::Piece>>,
    /// Our requests for those in the module's memory.
    pub(crate) shadows: Mutex<HashMap<u64, u64>>,
    /// The core's regular expressions, by the places that the module has for them.
    pub(crate) patterns: Mutex<Map<u64>>,
    /// Modules whose memory from pools it may write, too.
    pub(crate) partners: Vec<String>,
    /// Functions of the host that it may call by address.
    offered: Mutex<HashSet<usize>>,
    /// Optional functions that it has registered, which it may get itself.
    pub(crate) optional: Mutex<HashMap<Vec<u8>, u64>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a cleanup of a pool has: of which module.
#[repr(C)]
struct Cleanup {
    walled: &'static Walled,
    pool: u64,
}

extern "C" fn clean(data: u64) -> i32 {
    // SAFETY: `Walled::ledger` has put it into the pool's own memory.
    let cleanup = unsafe { &*(data as *const Cleanup) };
    cleanup.walled.forget(cleanup.pool);
    0
}

extern "C" fn nothing(_: u64) -> i32 {
    0
}

impl Walled {
    #[expect(clippy::too_many_arguments, reason = "made in one place")]
    pub(crate) fn new(
        name: &str,
        (domain, host): (Domain, Host),
        own: u64,
        memory: u64,
        request: Vec<(u64, u64)>,
        connection: Vec<(u64, u64)>,
        command: Vec<(u64, u64)>,
        places: (bool, bool, bool),
        texts: Vec<u64>,
        data: Vec<(u64, u64)>,
        symbols: Symbols,
        partners: Vec<String>,
        reads: bool,
        (removes_filters, keeps_score, is_wide): (bool, bool, bool),
        backend_fields: Vec<&'static str>,
        swaps: Swaps,
    ) -> &'static Walled {
        let stand_in = Box::leak(Box::new([0u64; layout::MODULE / 8]));
        Box::leak(Box::new(Walled {
            name: name.to_owned(),
            domain,
            host,
            stand_in: stand_in.as_mut_ptr() as u64,
            own,
            memory,
            request: request.into_iter().map(Piece::new).collect(),
            connection: connection.into_iter().map(Piece::new).collect(),
            request_place: Piece::new((0, 8)),
            connection_place: Piece::new((0, 8)),
            filter_place: Piece::new((layout::F_CTX, 8)),
            deeds: Deeds::default(),
            command,
            places,
            data,
            kept: Mutex::default(),
            faults: AtomicU64::new(0),
            calls: Counter::default(),
            asked: Counter::default(),
            time: Counter::default(),
            state: Mutex::default(),
            rings: Mutex::default(),
            readings: Mutex::default(),
            streams: Mutex::default(),
            texts,
            symbols: Mutex::new(symbols),
            partners,
            reads,
            removes_filters,
            keeps_score,
            is_wide,
            acquired: Mutex::default(),
            backend_fields,
            swaps,
            borrowed: Mutex::default(),
            shadows: Mutex::default(),
            patterns: Mutex::default(),
            pieces: Mutex::default(),
            offered: Mutex::default(),
            optional: Mutex::default(),
        }))
    }

    fn view(&self) -> &View {
        self.domain.view()
    }

    /// Whether the module may write there itself.
    pub(crate) fn writes(&self, at: u64, bytes: u64) -> bool {
        bytes == 0 || self.view().allows(at, bytes, Access::WRITE)
    }

    pub(crate) fn must_write(&'static self, at: u64, bytes: u64) -> Answer<()> {
        match self.writes(at, bytes) || self.demand(at) && self.writes(at, bytes) {
            true => Ok(()),
            false => Err(format!(
                "{bytes} bytes are to be written at {at:#x}, {}, which the module may not write",
                self.object(at)
            )),
        }
    }

    /// What the module could not read itself is not copied for it. One whose loads are not checked reads anything.
    pub(crate) fn must_read(&self, at: u64, bytes: u64) -> Answer<()> {
        match !self.reads || bytes == 0 || self.view().allows(at, bytes, Access::READ) {
            true => Ok(()),
            false => Err(format!(
                "{bytes} bytes at {at:#x}, {}, are to be read, which the module may not read",
                self.object(at)
            )),
        }
    }

    /// The length of a string of at most so many characters: each word is looked at before it is read.
    pub(crate) fn length(&self, at: u64, most: u64) -> Answer<usize> {
        if at < 4096 && most != 0 {
            return Err(format!("{at:#x} is no string"));
        }
        if !self.reads {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            // SAFETY: it reads no further than `most` or the end.
            return Ok(unsafe { libc::strnlen(at as *const _, most) });
        }
        let mut length = 0;
        while length < most {
            let next = at + length;
            if length == 0 || next.is_multiple_of(4) {
                self.must_read(next, 1)?;
            }
            // SAFETY: the module may read the word.
            if unsafe { (next as *const u8).read() } == 0 {
                break;
            }
            length += 1;
        }
        Ok(length as usize)
    }

    /// Whether it is a function of the module's.
    pub(crate) fn is_gate(&self, at: u64) -> bool {
        at != 0 && at.is_multiple_of(16) && self.view().allows(at, 1, Access::ENTER)
    }

    /// The module's number among all.
    pub(crate) fn index(&self) -> u64 {
        // SAFETY: it is our own structure.
        unsafe { ((self.stand_in + layout::M_INDEX) as *const i32).read() as u64 }
    }

    /// What the module has of a pool, if it may use it.
    fn with<R>(
        &'static self,
        frame: &Frame,
        pool: u64,
        act: impl FnOnce(&mut State) -> Answer<R>,
    ) -> Answer<R> {
        let mut state = lock(&self.state);
        if !state.ledgers.contains_key(&pool) {
            let is_own = matches!(state.objects.get(&pool), Some(b'p' | &OF_REQUEST | &GOING));
            drop(state);
            if pool == 0
                || !(is_own || frame.has_pool(pool) || self.shares(pool, b'p') || is_global(pool))
            {
                return Err(format!("{pool:#x} is no pool that the module was given"));
            }
            state = lock(&self.state);
            self.open(&mut state, pool);
        }
        act(&mut state)
    }

    /// A ledger for a pool that lives.
    fn open(&'static self, state: &mut State, pool: u64) {
        if state.ledgers.contains_key(&pool) {
            return;
        }
        let fresh = state.spare.pop().unwrap_or_default();
        state.ledgers.insert(pool, fresh);
        let cleanup = Cleanup { walled: self, pool };
        // SAFETY: the pool lives: the core has passed it, or a module has made it. It runs the cleanup before its
        // memory goes, and the cleanup's data lies in that.
        unsafe {
            let at = apr::apr_palloc(pool, size_of::<Cleanup>() as u64);
            (at as *mut Cleanup).write(cleanup);
            apr::apr_pool_cleanup_register(
                pool,
                at,
                clean as *const () as usize,
                nothing as *const () as usize,
            );
        }
    }

    /// The block or chunk of a pool that has an address: of which pool, where, and how large.
    pub(crate) fn block(&self, at: u64) -> Option<(u64, u64, u64)> {
        let state = lock(&self.state);
        state.ledgers.iter().find_map(|(pool, ledger)| {
            let all = ledger.chunks.iter().chain(&ledger.blocks);
            let mut all = all.filter(|(start, bytes)| at.wrapping_sub(*start) < *bytes);
            all.next().map(|(start, bytes)| (*pool, *start, *bytes))
        })
    }

    /// A block of another module's, as long as its pool lives.
    pub(crate) fn borrow(&'static self, (pool, at, bytes): (u64, u64, u64)) -> Answer<()> {
        let mut state = lock(&self.state);
        self.open(&mut state, pool);
        let granted = self.grant(at, bytes)?;
        let ledger = state.ledgers.entry(pool).or_default();
        ledger.lend(self, pool, granted);
        Ok(())
    }

    /// A filter of the module was stopped in a request, which has this pool.
    pub(crate) fn note_stopped(&'static self, r: u64, pool: u64) {
        let mut state = lock(&self.state);
        self.open(&mut state, pool);
        let ledger = state.ledgers.entry(pool).or_default();
        ledger.stopped.push(r);
        self.deeds.add(deeds::STOPPED);
    }

    pub(crate) fn was_stopped(&self, r: u64, pool: u64) -> bool {
        let state = lock(&self.state);
        let ledger = state.ledgers.get(&pool);
        ledger.is_some_and(|ledger| ledger.stopped.contains(&r))
    }

    /// A pool that the module may use.
    pub(crate) fn pool(&'static self, frame: &Frame, pool: u64) -> Answer<()> {
        self.with(frame, pool, |_| Ok(()))
    }

    /// The pool is cleared or destroyed.
    fn forget(&self, pool: u64) {
        let left = lock(&self.rings).forget(pool);
        rings::destroy_all(left);
        self.forget_words(pool);
        let mut state = lock(&self.state);
        let Some(mut ledger) = state.ledgers.remove(&pool) else {
            return;
        };
        state.bytes -= ledger.bytes;
        for (at, bytes) in &ledger.chunks {
            state.arena.give(*at, *bytes);
        }
        for object in &ledger.objects {
            state.objects.remove(object);
        }
        state.objects.remove(&pool);
        let granted = std::mem::take(&mut ledger.granted);
        ledger.clear();
        if state.spare.len() < SPARE {
            state.spare.push(ledger);
        }
        drop(state);
        if granted.is_empty() {
            return;
        }
        // `collect` ends all modules' at once, because that waits for threads: it is still to run, or has run and there is nothing.
        let mut lent = lock(&LENT);
        match lent.as_mut().and_then(|lent| lent.get_mut(&pool)) {
            Some(lent) => lent.granted.extend(granted),
            None => {
                drop(lent);
                Granted::end_all(granted);
            }
        }
    }

    /// Memory of a pool, which is the module's as long as the pool lives.
    pub(crate) fn take(&'static self, frame: &Frame, pool: u64, bytes: u64) -> Answer<u64> {
        if let Some(at) = self.take_known(pool, bytes) {
            return Ok(at);
        }
        self.with(frame, pool, |state| {
            let bytes = bytes.max(1).checked_next_multiple_of(8).unwrap_or(u64::MAX);
            let State {
                ledgers,
                arena,
                bytes: used,
                ..
            } = state;
            let ledger = ledgers.entry(pool).or_default();
            if bytes <= ledger.end - ledger.next {
                ledger.next += bytes;
                return Ok(ledger.next - bytes);
            }
            if used.saturating_add(bytes) > self.memory {
                return Err(format!(
                    "the module has used up its {} bytes of pools (`memory` in [limits])",
                    self.memory
                ));
            }
            if bytes > SMALL {
                // SAFETY: the pool lives, as it has a ledger.
                let at = unsafe { apr::apr_palloc(pool, bytes) };
                let granted = self.grant(at, bytes)?;
                ledger.lend(self, pool, granted);
                ledger.blocks.push((at, bytes));
                ledger.bytes += bytes;
                *used += bytes;
                return Ok(at);
            }
            let wanted = (2 * ledger.chunks.last().map_or(0, |chunk| chunk.1)).max(bytes);
            let wanted = wanted.min(arena::LARGEST);
            let (at, size) = arena.take(&self.host, &self.domain, self.memory, wanted)?;
            ledger.chunks.push((at, size));
            ledger.bytes += size;
            *used += size;
            (ledger.next, ledger.end) = (at + bytes, at + size);
            Ok(at)
        })
    }

    /// The same from the chunk of a pool that the module has something of already, as nearly always.
    #[inline]
    fn take_known(&self, pool: u64, bytes: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let ledger = state.ledgers.get_mut(&pool)?;
        let bytes = bytes.max(1).checked_next_multiple_of(8)?;
        let at = ledger.next;
        let has_room = bytes <= ledger.end - at;
        has_room.then(|| {
            ledger.next += bytes;
            at
        })
    }

    /// A chunk for copies of buckets, which stays the module's.
    pub(crate) fn chunk(&self) -> Answer<(u64, u64)> {
        let mut state = lock(&self.state);
        let chunk = state.arena.take(&self.host, &self.domain, self.memory, 1)?;
        state.bytes += chunk.1;
        Ok(chunk)
    }

    /// The module may write there as long as the pool lives.
    pub(crate) fn lend(&'static self, frame: &Frame, pool: u64, at: u64, bytes: u64) -> Answer<()> {
        self.with(frame, pool, |state| {
            let granted = self.grant(at, bytes)?;
            state
                .ledgers
                .entry(pool)
                .or_default()
                .lend(self, pool, granted);
            Ok(())
        })
    }

    /// The same for a block that partners may write, too.
    pub(crate) fn lend_block(
        &'static self,
        frame: &Frame,
        pool: u64,
        at: u64,
        bytes: u64,
    ) -> Answer<()> {
        self.lend(frame, pool, at, bytes)?;
        let mut state = lock(&self.state);
        state
            .ledgers
            .entry(pool)
            .or_default()
            .blocks
            .push((at, bytes));
        Ok(())
    }

    /// Until it is dropped.
    pub(crate) fn grant(&self, at: u64, bytes: u64) -> Answer<Granted> {
        // SAFETY: the words are a pool's that the module asked it for, or what the policy lets the module write.
        let granted = unsafe {
            self.host
                .grant_for(&self.domain, at as usize, bytes as usize, true)
        };
        granted.map_err(|error| error.to_string())
    }

    /// A copy of bytes in a pool, with a zero behind them.
    pub(crate) fn copy(&'static self, frame: &Frame, pool: u64, bytes: &[u8]) -> Answer<u64> {
        let to = self.take(frame, pool, bytes.len() as u64 + 1)?;
        // SAFETY: it was just taken.
        unsafe {
            (to as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            (to as *mut u8).add(bytes.len()).write(0);
        }
        Ok(to)
    }

    /// The module may pass an object from now on, as long as the pool lives; for ever if there is none.
    pub(crate) fn know(
        &'static self,
        frame: &Frame,
        pool: Option<u64>,
        object: u64,
        kind: u8,
    ) -> Answer<()> {
        if object == 0 {
            return Ok(());
        }
        let note = |state: &mut State| {
            if kind == b'X' {
                let mut acquired = lock(&self.acquired);
                acquired.retain(|(known, _)| *known != object);
                acquired.push((object, crate::backends::here()));
                self.deeds.add(deeds::BACKENDS);
            }
            if state.objects.insert(object, kind).is_none()
                && let Some(ledger) = pool.and_then(|pool| state.ledgers.get_mut(&pool))
            {
                ledger.objects.push(object);
            }
            Ok(())
        };
        match pool {
            Some(pool) => self.with(frame, pool, note),
            None => note(&mut lock(&self.state)),
        }
    }

    /// It has an object no more; whether it was there.
    pub(crate) fn forget_object(&self, object: u64) -> bool {
        lock(&self.state).objects.remove(&object).is_some()
    }

    /// A pool of the module's is about to go; whether it was there.
    pub(crate) fn going(&self, pool: u64) -> bool {
        lock(&self.state).objects.insert(pool, GOING).is_some()
    }

    /// Whether the module has made or was given an object.
    pub(crate) fn knows(&self, object: u64, kind: u8) -> bool {
        lock(&self.state).objects.get(&object) == Some(&kind)
    }

    /// Parts that the module may write of a structure at an address, each with where it is, and the pool that it lives as long as.
    ///
    /// # Safety
    /// The structure is the core's, of this kind.
    pub(crate) unsafe fn pieces(&self, root: Root) -> (u64, impl Iterator<Item = (u64, &Piece)>) {
        // SAFETY: by the caller; modules write nothing that is followed here.
        let (at, pool, fields, place) = unsafe {
            match root {
                Root::Request(r) => {
                    let place = self.places.0.then(|| {
                        let all = read(r + layout::R_REQUEST_CONFIG);
                        (all + 8 * self.index(), &self.request_place)
                    });
                    (r, read(r + layout::R_POOL), &self.request[..], place)
                }
                Root::Connection(c) => {
                    let place = self.places.1.then(|| {
                        let all = read(c + layout::C_CONN_CONFIG);
                        (all + 8 * self.index(), &self.connection_place)
                    });
                    (c, read(c + layout::C_POOL), &self.connection[..], place)
                }
                Root::Filter(f) => {
                    let pool = match read(f + layout::F_R) {
                        0 => read(read(f + layout::F_C) + layout::C_POOL),
                        r => read(r + layout::R_POOL),
                    };
                    (f, pool, &[][..], Some((f, &self.filter_place)))
                }
                _ => (0, 0, &[][..], None),
            }
        };
        let fields = fields.iter().map(move |piece| (at, piece));
        (pool, fields.chain(place))
    }

    /// Lets the module write what it has of late written of a connection or a filter, once for each. Requests are `warm.rs`.
    #[inline]
    pub(crate) fn touch(&'static self, frame: &Frame, root: Root) -> Answer<()> {
        match root {
            Root::Connection(_) | Root::Filter(_) if self.deeds.has(deeds::WROTE) => {
                self.touch_warm(frame, root)
            }
            _ => Ok(()),
        }
    }

    fn touch_warm(&'static self, frame: &Frame, root: Root) -> Answer<()> {
        let is_warm = |piece: &Piece| piece.warm.load(Ordering::Relaxed) != 0;
        // SAFETY: the core has passed it.
        let (pool, mut pieces) = unsafe { self.pieces(root) };
        if !pieces.any(|(_, piece)| is_warm(piece)) {
            return Ok(());
        }
        // SAFETY: the core has passed it, and it is there until the call returns.
        let (_, pieces) = unsafe { self.pieces(root) };
        let (Root::Request(at) | Root::Connection(at) | Root::Filter(at)) = root else {
            return Ok(());
        };
        self.with(frame, pool, |state| {
            let ledger = state.ledgers.entry(pool).or_default();
            if ledger.touched.contains(&at) {
                return Ok(());
            }
            ledger.touched.push(at);
            for (at, piece) in pieces.filter(|(_, piece)| piece.is_warm()) {
                let granted = self.grant(at + piece.at, piece.bytes)?;
                ledger.lend(self, pool, granted);
            }
            Ok(())
        })
    }

    /// Grants what the policy lets the module write at an address, in what its call was given. Runs in the handler of a signal, too.
    pub(crate) fn demand(&'static self, at: u64) -> bool {
        let Some(frame) = crate::frame::now().filter(|frame| std::ptr::eq(frame.walled, self))
        else {
            return false;
        };
        let filter = (at & !7).wrapping_sub(layout::F_CTX);
        let filters = frame.has_filter(filter) || self.knows(filter, b'f');
        let roots = frame.requests().chain(self.made(b'r'));
        let roots = roots.map(Root::Request);
        let connections = frame.connections().chain(self.made(b'c'));
        let roots = roots.chain(connections.map(Root::Connection));
        let roots = roots.chain(filters.then_some(Root::Filter(filter)));
        for root in roots {
            // SAFETY: frames have the core's structures, and so have the module's known filters.
            let (pool, mut pieces) = unsafe { self.pieces(root) };
            let inside =
                |(start, piece): &(u64, &Piece)| at.wrapping_sub(start + piece.at) < piece.bytes;
            let Some((start, piece)) = pieces.find(inside) else {
                continue;
            };
            let done = self.with(frame, pool, |state| {
                let granted = self.grant(start + piece.at, piece.bytes)?;
                let ledger = state.ledgers.entry(pool).or_default();
                ledger.lend(self, pool, granted);
                Ok(())
            });
            piece.warm.store(WARM, Ordering::Relaxed);
            match root {
                Root::Request(_) => crate::warm::add(self),
                _ => self.deeds.add(deeds::WROTE),
            }
            return done.is_ok();
        }
        self.demand_text(frame, at)
            || self.demand_backend(frame, at)
            || self.demand_score(frame, at)
            || self.demand_words(frame, at)
            || self.demand_shared(at)
    }

    /// Requests or connections that the module has made.
    pub(crate) fn made(&self, kind: u8) -> Vec<u64> {
        let state = lock(&self.state);
        let made = state.objects.iter().filter(|(_, known)| **known == kind);
        made.map(|(r, _)| *r).collect()
    }
}

impl Walled {
    /// Whether it is the first time that it may call an address.
    pub(crate) fn is_new_call(&self, at: usize) -> bool {
        lock(&self.offered).insert(at)
    }

    /// Whether a pool's ledger of this module has an address; only for reports.
    pub(crate) fn has(&self, at: u64) -> bool {
        let range = self
            .data
            .iter()
            .any(|(start, bytes)| (*start..start + bytes).contains(&at));
        range || self.writes(at, 1)
    }
}
