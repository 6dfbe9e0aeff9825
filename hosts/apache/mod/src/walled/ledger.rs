//! What a module has of each pool: memory, grants, objects. It ends with the pool.

use super::{Answer, Walled, lock};
use crate::apr;
use crate::arena::{self, Arena};
use crate::deeds;
use crate::frame::Frame;
use crate::near::Near;
use crate::object::Kind;
use crate::pools::{self, is_global};
use crate::quick::Map;
use crate::rings;
use crate::turns;
use mullion_word_runtime::Granted;
use std::sync::Mutex;

/// Pieces of this size and less come from chunks with others. A larger one has a chunk of its own, and is granted for itself.
const SMALL: u64 = 2 << 10;

/// So many bytes behind a large block are never granted: a module that writes behind its block does not reach the next one.
const GAP: u64 = 64;

/// So many cleanups a module registers in a pool. One that registers itself again, as it runs, would never end the pool.
const CLEANUPS: u32 = 1 << 18;

/// What a module has of one pool.
#[derive(Default)]
pub(super) struct Ledger {
    granted: Vec<Granted>,
    /// Where the chunk goes on, and where it ends.
    next: u64,
    end: u64,
    chunks: Vec<(u64, u64)>,
    /// Large blocks.
    blocks: Vec<(u64, u64)>,
    bytes: u64,
    /// Whether the pool goes with a request or a connection, on which one thread works.
    pub(super) is_bound: bool,
    /// Pools have their addresses again and again: no two have the same number.
    number: u64,
    /// Functions of the module's that the pool runs when it goes: their data, they, and our node.
    pub(crate) cleanups: Vec<(u64, u64, u64)>,
    /// How many of these there were.
    registered: u32,
    pub(super) objects: Vec<u64>,
    /// Requests in which a filter of the module was stopped.
    stopped: Vec<u64>,
    /// Requests, connections and filters whose warm fields were granted.
    pub(super) touched: Vec<u64>,
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
        if let Some(ledger) = lock(&walled.state).ledgers.get_mut(pool) {
            all.append(&mut ledger.granted);
        }
    }
    Granted::end_all(all);
    0
}

impl Ledger {
    /// What is granted until the pool goes.
    pub(super) fn lend(&mut self, walled: &'static Walled, pool: u64, granted: Granted) {
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
        self.registered = 0;
        self.chunks.clear();
        self.blocks.clear();
        self.objects.clear();
        self.touched.clear();
        self.stopped.clear();
        self.cleanups.clear();
    }
}

/// So many empty ledgers are kept.
const SPARE: usize = 64;

#[derive(Default)]
pub(super) struct State {
    /// In boxes: they come and go with each request, and are large to move.
    pub(super) ledgers: Near<Box<Ledger>>,
    /// Kinds of objects, and the pool that each lives as long as, or 0.
    pub(super) objects: Map<(Kind, u64)>,
    /// Statements and results, with the connection to a database that each is part of; and things of providers, with the functions that
    /// have made them.
    pub(super) parts: Map<u64>,
    arena: Arena,
    /// Large blocks, each granted for itself.
    blocks: Arena,
    /// Emptied ones, whose lists have room already.
    #[expect(
        clippy::vec_box,
        reason = "they go to the map and come back in their boxes"
    )]
    spare: Vec<Box<Ledger>>,
    /// In all ledgers.
    bytes: u64,
    /// So many ledgers there were.
    numbers: u64,
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
/// The pool, if it goes with no request or connection.
fn lasting(pool: u64, is_bound: bool) -> Option<u64> {
    (!is_bound).then_some(pool)
}

impl Walled {
    /// What the module has of a pool, if it may use it.
    pub(super) fn with<R>(
        &'static self,
        frame: &Frame,
        pool: u64,
        act: impl FnOnce(&mut State) -> Answer<R>,
    ) -> Answer<R> {
        let mut state = lock(&self.state);
        let known = state.ledgers.get(pool).map(|ledger| ledger.is_bound);
        if known == Some(true) && frame.is_given(pool) {
            return act(&mut state);
        }
        // Nearly every first use. What follows comes to the same: the call was given the pool, and no module has made it. So
        // `pools::hold` has nothing to hold, and finds the pool to be of this thread's.
        if known.is_none() && frame.is_given(pool) && pools::is_bound_of_core(pool) {
            self.open_first(&mut state, pool, true);
            return act(&mut state);
        }
        let own = state.objects.get(&pool).map(|(kind, _)| *kind);
        drop(state);
        let is_bound = known.unwrap_or_else(|| pools::is_bound(pool));
        if known.is_none() || !frame.is_given(pool) {
            self.may_use(frame, pool, own, (known.is_some(), is_bound))?;
        }
        // The turn comes before the lock: a thread that has the turn may wait for the lock.
        turns::short(lasting(pool, is_bound), || {
            let mut state = lock(&self.state);
            self.open(&mut state, pool, is_bound);
            act(&mut state)
        })
    }

    /// Whether the call may use a pool: it was given it, or the module has made it, and no other thread ends it.
    fn may_use(
        &'static self,
        frame: &Frame,
        pool: u64,
        own: Option<Kind>,
        (has_ledger, is_bound): (bool, bool),
    ) -> Answer<()> {
        let is_own = matches!(own, Some(Kind::Pool | Kind::OfRequest | Kind::Going));
        let is_known = has_ledger || is_own;
        if pool == 0
            || !(is_known
                || frame.has_pool(pool)
                || self.shares(pool, Kind::Pool)
                || is_global(pool))
        {
            return Err(format!("{pool:#x} is no pool that the module was given"));
        }
        match pools::hold(frame, pool, is_bound) {
            true => Ok(()),
            false => Err(format!("{pool:#x} is a pool of another request")),
        }
    }

    /// A ledger for a pool that lives.
    fn open(&'static self, state: &mut State, pool: u64, is_bound: bool) {
        if state.ledgers.get(pool).is_none() {
            self.open_first(state, pool, is_bound);
        }
    }

    /// The same where there is none yet.
    fn open_first(&'static self, state: &mut State, pool: u64, is_bound: bool) {
        let mut fresh = state.spare.pop().unwrap_or_default();
        fresh.is_bound = is_bound;
        state.numbers += 1;
        fresh.number = state.numbers;
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

    /// Which of all pools of this address it is; none if the module has nothing of it.
    pub(crate) fn number_of(&self, pool: u64) -> Option<u64> {
        let state = lock(&self.state);
        state.ledgers.get(pool).map(|ledger| ledger.number)
    }

    /// The block or chunk of a pool that has an address: of which pool, where, and how large.
    pub(crate) fn block(&self, at: u64) -> Option<(u64, u64, u64)> {
        let state = lock(&self.state);
        state.ledgers.iter().find_map(|(pool, ledger)| {
            let chunks = ledger.chunks.iter().copied();
            let large = ledger.blocks.iter().copied();
            let large = large.map(|(start, bytes)| (start, bytes.saturating_sub(GAP)));
            let mut all = chunks.chain(large);
            let found = all.find(|(start, bytes)| at.wrapping_sub(*start) < *bytes);
            found.map(|(start, bytes)| (pool, start, bytes))
        })
    }

    /// Whether memory is the module's own, and stays so: its data, or what it has of a pool.
    pub(crate) fn is_for_good(&self, at: u64, bytes: u64) -> bool {
        let is_within =
            |start: u64, room: u64| at >= start && at.saturating_add(bytes) <= start + room;
        self.data
            .iter()
            .any(|(start, room)| is_within(*start, *room))
            || self
                .block(at)
                .is_some_and(|(_, start, room)| is_within(start, room))
    }

    /// A block of another module's, as long as its pool lives.
    pub(crate) fn borrow(&'static self, (pool, at, bytes): (u64, u64, u64)) -> Answer<()> {
        let is_bound = pools::is_bound(pool);
        turns::short(lasting(pool, is_bound), || {
            let mut state = lock(&self.state);
            self.open(&mut state, pool, is_bound);
            let granted = self.grant(at, bytes)?;
            let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
            ledger.lend(self, pool, granted);
            Ok(())
        })
    }

    /// A function of the module's that a pool runs when it goes.
    pub(crate) fn note_cleanup(
        &'static self,
        frame: &Frame,
        pool: u64,
        of: (u64, u64, u64),
    ) -> Answer<()> {
        self.with(frame, pool, |state| {
            let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
            if ledger.registered == CLEANUPS {
                return Err(format!("{CLEANUPS} cleanups were registered in this pool"));
            }
            ledger.registered += 1;
            ledger.cleanups.push(of);
            Ok(())
        })
    }

    /// The newest function of these that the pool was to run, as our node; the pool has it no more.
    pub(crate) fn take_cleanup(&'static self, pool: u64, data: u64, function: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let all = &mut state.ledgers.get_mut(pool)?.cleanups;
        let is_it = |one: &(u64, u64, u64)| (one.0, one.1) == (data, function);
        let at = all.iter().rposition(is_it)?;
        Some(all.remove(at).2)
    }

    /// A filter of the module was stopped in a request, which has this pool.
    pub(crate) fn note_stopped(&'static self, r: u64, pool: u64) {
        let mut state = lock(&self.state);
        self.open(&mut state, pool, pools::is_bound(pool));
        let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
        ledger.stopped.push(r);
        self.deeds.add(deeds::STOPPED);
    }

    pub(crate) fn was_stopped(&self, r: u64, pool: u64) -> bool {
        let state = lock(&self.state);
        let ledger = state.ledgers.get(pool);
        ledger.is_some_and(|ledger| ledger.stopped.contains(&r))
    }

    /// A pool that the module may use. No other thread uses it until the call of the host returns.
    pub(crate) fn pool(&'static self, frame: &Frame, pool: u64) -> Answer<()> {
        // As in `with`, where there is nothing to do.
        let is_known = {
            let state = lock(&self.state);
            let ledger = state.ledgers.get(pool);
            ledger.is_some_and(|ledger| ledger.is_bound)
        };
        if is_known && frame.is_given(pool) {
            return Ok(());
        }
        let is_bound = self.with(frame, pool, |state| {
            let ledger = state.ledgers.get(pool);
            Ok(ledger.is_some_and(|ledger| ledger.is_bound))
        })?;
        match is_bound {
            true => Ok(()),
            false => frame.take_turn(pool),
        }
    }

    /// The pool is cleared or destroyed.
    fn forget(&self, pool: u64) {
        let left = lock(&self.rings).forget(pool);
        rings::destroy_all(left);
        self.forget_words(pool);
        let mut state = lock(&self.state);
        let Some(mut ledger) = state.ledgers.remove(pool) else {
            return;
        };
        state.bytes -= ledger.bytes;
        for (at, bytes) in &ledger.chunks {
            state.arena.give(*at, *bytes);
        }
        for (at, bytes) in &ledger.blocks {
            state.blocks.give(*at, *bytes);
        }
        for object in &ledger.objects {
            // It may be known anew since, by another pool.
            if state
                .objects
                .get(object)
                .is_some_and(|(_, home)| *home == pool)
            {
                state.remove(*object);
            }
        }
        let is_made = state.remove(pool);
        let granted = std::mem::take(&mut ledger.granted);
        ledger.clear();
        if state.spare.len() < SPARE {
            state.spare.push(ledger);
        }
        drop(state);
        if is_made {
            pools::gone(pool);
        }
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
                blocks,
                bytes: used,
                ..
            } = state;
            let ledger = ledgers.get_or_insert_with(pool, Box::default);
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
                let (at, size) = blocks.place(self.memory, bytes + GAP)?;
                ledger.blocks.push((at, size));
                ledger.bytes += bytes;
                *used += bytes;
                let granted = self.grant(at, bytes)?;
                ledger.lend(self, pool, granted);
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
        let ledger = state.ledgers.get_mut(pool)?;
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
                .get_or_insert_with(pool, Box::default)
                .lend(self, pool, granted);
            Ok(())
        })
    }

    /// The same for a pool of this thread's that the module need not be able to pass.
    pub(crate) fn lend_here(
        &'static self,
        pool: u64,
        grant: impl FnOnce() -> Answer<Granted>,
    ) -> Answer<()> {
        let mut state = lock(&self.state);
        self.open(&mut state, pool, pools::is_bound(pool));
        let granted = grant()?;
        let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
        ledger.lend(self, pool, granted);
        Ok(())
    }

    /// What is granted meanwhile, as long as the pool lives.
    pub(crate) fn lend_for(
        &'static self,
        frame: &Frame,
        pool: u64,
        grant: impl FnOnce() -> Answer<Granted>,
    ) -> Answer<()> {
        self.with(frame, pool, |state| {
            let granted = grant()?;
            let ledger = state.ledgers.get_or_insert_with(pool, Box::default);
            ledger.lend(self, pool, granted);
            Ok(())
        })
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
}
