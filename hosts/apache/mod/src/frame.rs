//! Calls that are in a module, and what each of them gave it. That is pools, requests, tables and the like that the
//! module may pass to the core. They are found by walking the core's own structures from what the core has passed.

use crate::copied;
use crate::few::Few;
use crate::homes::Hold;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::pools;
use crate::turns;
use crate::walled::Walled;
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::ops::Deref;

/// An object that the core has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Root {
    Pool(u64),
    Request(u64),
    Connection(u64),
    Server(u64),
    Filter(u64),
    Brigade(u64),
    Table(u64),
    Command(u64),
    /// Something of another module's, whose address alone is known.
    Thing(u64),
    /// A backend.
    Worker(u64),
    /// A group of backends.
    Balancer(u64),
    None,
}

impl Root {
    /// Whether it lives in a pool, or its connection does. Nearly all pools that modules pass are found by it.
    fn is_of(&self, pool: u64) -> bool {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |at: u64, offset: u64| at != 0 && unsafe { read(at + offset) } == pool;
        // SAFETY: it is a field of a request or a filter of the core's.
        let word = |at: u64| unsafe { read(at) };
        match *self {
            Root::Pool(known) => known == pool,
            Root::Request(r) => {
                of(r, layout::R_POOL) || of(word(r + layout::R_CONNECTION), layout::C_POOL)
            }
            Root::Filter(f) => {
                of(word(f + layout::F_R), layout::R_POOL)
                    || of(word(f + layout::F_C), layout::C_POOL)
            }
            Root::Connection(c) => of(c, layout::C_POOL),
            Root::Brigade(b) => of(b, layout::B_POOL),
            _ => false,
        }
    }
}

/// So many roots a call has at most.
const ROOTS: usize = 6;

/// What a call was given. Only the first `count` places are written: most calls have one.
pub(crate) struct Roots {
    count: usize,
    all: [MaybeUninit<Root>; ROOTS],
}

impl Roots {
    /// One more; behind the last place there is none.
    #[inline(always)]
    pub(crate) fn push(&mut self, root: Root) {
        if let Some(place) = self.all.get_mut(self.count) {
            place.write(root);
            self.count += 1;
        }
    }
}

impl Deref for Roots {
    type Target = [Root];

    #[inline(always)]
    fn deref(&self) -> &[Root] {
        // SAFETY: `push` writes each place before it counts it, and one that may be unwritten lies as one that is not.
        unsafe { std::slice::from_raw_parts(self.all.as_ptr().cast::<Root>(), self.count) }
    }
}

/// What a call of the host works with until it returns.
#[derive(Clone, Copy, Default)]
pub(crate) enum Held {
    #[default]
    Nothing,
    /// A pool that a module has made.
    Pool(Hold),
    /// A list of resources.
    List(u64),
    /// The turn with something that belongs to no request (`turns.rs`).
    Turn(u64),
}

/// A call that is in a module.
pub(crate) struct Frame {
    pub(crate) walled: &'static Walled,
    pub(crate) roots: Roots,
    pub(crate) before: *const Frame,
    /// What the module's call of the host works with now, and how much that is.
    held: RefCell<Few<Held, 2>>,
    kept: Cell<usize>,
    /// Whether the function of the host that the module calls now only computes.
    computes: Cell<bool>,
    /// Whether the call that it was made in keeps something.
    is_inside: bool,
}

thread_local! {
    static NOW: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// The newest call of this thread.
pub(crate) fn now<'a>() -> Option<&'a Frame> {
    // SAFETY: `Frame::begin` sets it to a frame on this thread's stack, and takes it back before that goes.
    unsafe { NOW.get().as_ref() }
}

/// Where this thread has its newest call. It is looked up once for a call: that is a call itself, in a library.
#[inline(always)]
pub(crate) fn place<'a>() -> &'a Cell<*const Frame> {
    let now = NOW.with(std::ptr::from_ref);
    // SAFETY: it is there until the thread ends, and a reference to it goes to no other thread.
    unsafe { &*now }
}

/// So many requests of a chain are looked at: subrequests and redirects nest ten deep by default.
const CHAIN: usize = 32;

impl Frame {
    pub(crate) fn enter<R>(
        walled: &'static Walled,
        fill: impl FnOnce(&mut Roots),
        call: impl FnOnce(&Frame) -> R,
    ) -> R {
        let now = place();
        let mut frame = Frame::new(walled, now);
        fill(&mut frame.roots);
        // SAFETY: the frame stays where it is, and the call is over before it goes.
        unsafe {
            frame.begin(now);
            let result = call(&frame);
            frame.end(now);
            result
        }
    }

    /// A call that has not begun, and was given nothing yet.
    #[inline(always)]
    pub(crate) fn new(walled: &'static Walled, now: &Cell<*const Frame>) -> Frame {
        let before = now.get();
        // SAFETY: a frame's caller lives longer.
        let outer = unsafe { before.as_ref() };
        Frame {
            walled,
            roots: Roots {
                count: 0,
                all: [const { MaybeUninit::uninit() }; ROOTS],
            },
            before,
            held: RefCell::new(Few::new()),
            kept: Cell::new(0),
            computes: Cell::new(false),
            is_inside: outer.is_some_and(|outer| outer.kept() != 0),
        }
    }

    /// It is this thread's newest call from now on.
    ///
    /// # Safety
    /// The place is this thread's, the frame was made for it, is not moved, and [`Frame::end`] follows before it goes.
    #[inline(always)]
    pub(crate) unsafe fn begin(&self, now: &Cell<*const Frame>) {
        now.set(std::ptr::from_ref(self));
        if self.is_inside {
            turns::enter();
        }
    }

    /// It is over.
    ///
    /// # Safety
    /// The place is this thread's, and this frame is in it.
    #[inline(always)]
    pub(crate) unsafe fn end(&self, now: &Cell<*const Frame>) {
        if self.is_inside {
            turns::leave();
        }
        self.let_go(0);
        now.set(self.before);
    }

    /// What this very call was given.
    #[inline]
    pub(crate) fn given(&self) -> impl Iterator<Item = Root> {
        self.roots.iter().copied()
    }

    /// This call, and those that it was made in.
    fn frames(&self) -> impl Iterator<Item = &Frame> {
        // SAFETY: a frame's caller lives longer.
        let before = |frame: &&Frame| unsafe { frame.before.as_ref() };
        std::iter::successors(Some(self), before)
    }

    /// The call that this one was made in.
    pub(crate) fn outer(&self) -> Option<&Frame> {
        // SAFETY: a frame's caller lives longer.
        unsafe { self.before.as_ref() }
    }

    /// The newest of these that is of a module.
    pub(crate) fn of(&self, walled: &Walled) -> Option<&Frame> {
        self.frames()
            .find(|frame| std::ptr::eq(frame.walled, walled))
    }

    /// Whether this call, or one that it was made in, is of a module.
    pub(crate) fn is_in(&self, walled: &Walled) -> bool {
        self.frames()
            .any(|frame| std::ptr::eq(frame.walled, walled))
    }

    /// Keeps something until the call of the host returns that asks for it.
    pub(crate) fn keep(&self, held: Held) {
        self.held.borrow_mut().push(held);
        self.kept.set(self.kept.get() + 1);
    }

    /// The call of the host begins, of which it is not known that it only computes.
    #[inline]
    pub(crate) fn may_wait(&self) {
        self.computes.set(false);
    }

    /// The function of the host waits for nobody: others may wait for their turn.
    #[inline]
    pub(crate) fn only_computes(&self) {
        self.computes.set(true);
    }

    /// Takes the turn with a lasting thing until the call of the host returns.
    pub(crate) fn take_turn(&self, at: u64) -> Result<(), String> {
        turns::begin(at, self.computes.get())?;
        self.keep(Held::Turn(at));
        Ok(())
    }

    /// Works with a lasting thing beside other threads, until the call of the host returns. No thread ends it meanwhile.
    pub(crate) fn share_turn(&self, at: u64) -> Result<(), String> {
        turns::share(at)?;
        self.keep(Held::Turn(at));
        Ok(())
    }

    /// The call has taken what it needs of lasting things. What it has looked at stays until it returns.
    pub(crate) fn end_turns(&self) {
        let all = self.held.borrow_mut().take();
        self.kept.set(0);
        for held in all {
            match held {
                Held::Turn(at) => turns::end(at),
                other => self.keep(other),
            }
        }
    }

    /// How much is kept.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// Gives back what is kept beyond so many.
    #[inline(always)]
    pub(crate) fn let_go(&self, beyond: usize) {
        if self.kept() > beyond {
            self.let_all_go(beyond);
        }
    }

    #[inline(never)]
    fn let_all_go(&self, beyond: usize) {
        while self.kept() > beyond {
            let held = self.held.borrow_mut().pop();
            self.kept.set(self.kept() - 1);
            held.into_iter().for_each(pools::let_go);
        }
    }

    /// Whether a call of this thread has its turn with something: it goes on behind what that call has called.
    pub(crate) fn has_turn(&self, at: u64) -> bool {
        let is_it = |held: &Held| matches!(held, Held::Turn(one) if *one == at);
        self.frames()
            .any(|frame| frame.held.borrow().iter().any(is_it))
    }

    /// Whether a call of this thread works with a list of resources.
    pub(crate) fn works_with(&self, list: u64) -> bool {
        let is_it = |held: &Held| matches!(held, Held::List(one) if *one == list);
        self.frames()
            .any(|frame| frame.held.borrow().iter().any(is_it))
    }

    /// Whether a pool was given to this very call, with what it was given.
    #[inline]
    pub(crate) fn is_given(&self, pool: u64) -> bool {
        pool != 0 && self.given().any(|root| root.is_of(pool))
    }

    /// Whether this thread works for what a pool goes with: a request, a connection, or a pool that ends now.
    pub(crate) fn is_here(&self, pool: u64) -> bool {
        let is_above = |root: &Root| match *root {
            Root::Pool(below) => pools::upwards(below).any(|above| above == pool),
            _ => false,
        };
        let of_backend = || {
            let backends = self.walled.backends();
            backends.iter().any(|backend| backend.pools.contains(&pool))
        };
        let mut frames = self.frames();
        frames.any(|frame| frame.has_pool(pool) || frame.roots.iter().any(is_above)) || of_backend()
    }

    /// What this thread's calls of the same module were given.
    fn all_roots(&self) -> impl Iterator<Item = Root> {
        let mut next: Option<&Frame> = Some(self);
        let frames = std::iter::from_fn(move || {
            let frame = next?;
            // SAFETY: a frame's caller lives longer.
            next = unsafe { frame.before.as_ref() };
            Some(frame)
        });
        let module = self.walled;
        let same = frames.filter(move |frame| std::ptr::eq(frame.walled, module));
        same.flat_map(Frame::given)
    }

    /// Requests: those that were given, what they are parts of, and what led to them.
    pub(crate) fn requests(&self) -> impl Iterator<Item = u64> {
        // SAFETY: roots are the core's own structures.
        let first = self.all_roots().filter_map(|root| unsafe {
            match root {
                Root::Request(r) => Some(r),
                Root::Filter(f) => Some(read(f + layout::F_R)),
                _ => None,
            }
        });
        first.filter(|r| *r != 0).flat_map(|r| {
            let walk = |from: u64, along: u64| {
                // SAFETY: as above; no module may write these fields.
                let next =
                    move |at: &u64| Some(unsafe { read(at + along) }).filter(|next| *next != 0);
                std::iter::successors(Some(from), next).take(CHAIN)
            };
            let whole = walk(r, layout::R_MAIN);
            let chains = whole.flat_map(move |r| walk(r, layout::R_PREV));
            chains.chain(walk(r, layout::R_NEXT).skip(1))
        })
    }

    /// Connections.
    pub(crate) fn connections(&self) -> impl Iterator<Item = u64> {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let given = self.all_roots().filter_map(|root| unsafe {
            match root {
                Root::Connection(c) => Some(c),
                Root::Filter(f) => Some(read(f + layout::F_C)),
                _ => None,
            }
        });
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let theirs = self
            .requests()
            .map(|r| unsafe { read(r + layout::R_CONNECTION) });
        // Not before all others: to look at them keeps their pools.
        let backends = std::iter::once(self.walled).flat_map(Walled::backends);
        let backends = backends.map(|backend| backend.connection);
        given.chain(theirs).chain(backends).filter(|c| *c != 0)
    }

    /// Backends that the module's calls were given.
    pub(crate) fn workers(&self) -> impl Iterator<Item = u64> {
        self.all_roots().filter_map(|root| match root {
            Root::Worker(at) => Some(at),
            _ => None,
        })
    }

    /// The pool of this call's request, or of an earlier call's of the module.
    pub(crate) fn any_home(&self) -> Option<u64> {
        // SAFETY: roots are the core's own structures.
        let of = |r: u64| unsafe { read(r + layout::R_POOL) };
        self.home().or_else(|| self.requests().next().map(of))
    }

    /// Whether the call was given something of another module's, or it is a backend's worker.
    pub(crate) fn has_thing(&self, at: u64) -> bool {
        let of_backend = || {
            self.walled
                .backends()
                .iter()
                .any(|backend| backend.worker == at)
        };
        let is_it = |root| match root {
            Root::Thing(thing) | Root::Worker(thing) => thing == at,
            Root::Balancer(balancer) => balancer == at || backends(balancer).contains(&at),
            _ => false,
        };
        self.all_roots().any(is_it) || of_backend()
    }

    /// A server, by which the others can be found.
    pub(crate) fn any_server(&self) -> Option<u64> {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let given = self.all_roots().find_map(|root| unsafe {
            match root {
                Root::Server(s) => Some(s),
                Root::Command(cmd) => Some(read(cmd + layout::CMD_SERVER)),
                _ => None,
            }
        });
        let theirs = || {
            let c = self.connections().next()?;
            // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
            Some(unsafe { read(c + layout::C_SERVER) })
        };
        given
            .or_else(theirs)
            .or_else(main_server)
            .filter(|s| *s != 0)
    }

    pub(crate) fn has_server(&self, server: u64) -> bool {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let next = |s: &u64| Some(unsafe { read(s + layout::S_NEXT) }).filter(|next| *next != 0);
        let all = |first: Option<u64>| std::iter::successors(first, next).take(100_000);
        let mut both = all(main_server()).chain(all(self.any_server()));
        both.any(|known| known == server)
    }

    pub(crate) fn has_pool(&self, pool: u64) -> bool {
        if self.is_given(pool) {
            return true;
        }
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let mut given = self.all_roots().map(|root| unsafe {
            match root {
                Root::Pool(pool) => [pool, 0],
                Root::Command(cmd) => [read(cmd + layout::CMD_POOL), read(cmd + layout::CMD_TEMP)],
                Root::Brigade(b) => [read(b + layout::B_POOL), 0],
                _ => [0, 0],
            }
        });
        if given.any(|known| known.contains(&pool)) {
            return true;
        }
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let mut requests = self.requests().map(|r| unsafe { read(r + layout::R_POOL) });
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let mut connections = self
            .connections()
            .map(|c| unsafe { read(c + layout::C_POOL) });
        if requests.any(|known| known == pool) || connections.any(|known| known == pool) {
            return true;
        }
        self.any_server().is_some_and(|s| {
            // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
            let process = unsafe { read(s + layout::S_PROCESS) };
            // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
            process != 0
                && unsafe {
                    [
                        read(process + layout::P_POOL),
                        read(process + layout::P_PCONF),
                    ]
                }
                .contains(&pool)
        })
    }

    /// The request of this very call, or 0: nearly all that modules pass is of it, so it is looked at first.
    #[inline(always)]
    pub(crate) fn first_request(&self) -> u64 {
        let given = self.roots.iter().find_map(|root| match *root {
            Root::Request(r) => Some(r),
            // SAFETY: roots are the core's own structures.
            Root::Filter(f) => Some(unsafe { read(f + layout::F_R) }),
            _ => None,
        });
        given.unwrap_or(0)
    }

    pub(crate) fn has_request(&self, r: u64) -> bool {
        if r != 0 && r == self.first_request() {
            return true;
        }
        self.requests().any(|known| known == r)
    }

    pub(crate) fn has_connection(&self, c: u64) -> bool {
        let r = self.first_request();
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        if r != 0 && c == unsafe { read(r + layout::R_CONNECTION) } {
            return true;
        }
        self.connections().any(|known| known == c)
    }

    /// Whether it is a table of the request of this very call, as nearly all are.
    #[inline(always)]
    pub(crate) fn has_near_table(&self, table: u64) -> bool {
        let first = self.first_request();
        first != 0 && is_table_of(first, table)
    }

    pub(crate) fn has_table(&self, table: u64) -> bool {
        if self.has_near_table(table) {
            return true;
        }
        let in_roots = self.all_roots().any(|root| root == Root::Table(table));
        in_roots
            || self.requests().any(|r| is_table_of(r, table))
            // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
            || self.connections().any(|c| unsafe { read(c + layout::C_NOTES) } == table)
    }

    /// The pool that what the call makes goes with: the request's, or the connection's, or else that of a brigade.
    pub(crate) fn home(&self) -> Option<u64> {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |at: u64| unsafe { read(at) };
        // What comes below finds the same for a filter.
        if let Some(Root::Filter(f)) = self.roots.first() {
            match (of(f + layout::F_R), of(f + layout::F_C)) {
                (0, 0) => {}
                (0, c) => return Some(of(c + layout::C_POOL)),
                (r, _) => return Some(of(r + layout::R_POOL)),
            }
        }
        let brigade = || {
            let mut brigades = self.brigades();
            brigades.next().map(|b| of(b + layout::B_POOL))
        };
        match self.first_request() {
            0 => {
                let connection = self.connections().next();
                connection.map(|c| of(c + layout::C_POOL)).or_else(brigade)
            }
            r => Some(of(r + layout::R_POOL)),
        }
    }

    /// Brigades that this very call was given.
    fn brigades(&self) -> impl Iterator<Item = u64> {
        self.roots.iter().filter_map(|root| match *root {
            Root::Brigade(b) => Some(b),
            _ => None,
        })
    }

    /// Whether it is the lock of a request, which is held while the request is worked on.
    pub(crate) fn has_lock(&self, at: u64) -> bool {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |r: u64| unsafe { read(r + layout::R_INVOKE_MTX) };
        at != 0 && self.requests().any(|r| of(r) == at)
    }

    /// Whether it is a connection's place in the scoreboard.
    pub(crate) fn has_score(&self, at: u64) -> bool {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |c: u64| unsafe { read(c + layout::C_SBH) };
        self.connections().any(|c| of(c) == at)
    }

    /// Whether it is the allocator of buckets of a connection, or of a brigade that was given.
    pub(crate) fn has_allocator(&self, at: u64) -> bool {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |c: u64| unsafe { read(c + layout::C_BUCKET_ALLOC) };
        // SAFETY: roots are the core's own structures.
        let of_brigade = |b: u64| unsafe { read(b + layout::B_ALLOCATOR) };
        self.connections().any(|c| of(c) == at) || self.brigades().any(|b| of_brigade(b) == at)
    }

    /// The pool of the connection that an allocator is of.
    pub(crate) fn home_of_allocator(&self, at: u64) -> Option<u64> {
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of = |c: &u64| unsafe { read(c + layout::C_BUCKET_ALLOC) } == at;
        let c = self.connections().find(of)?;
        // SAFETY: it is a connection of this call, and modules may not write this field.
        Some(unsafe { read(c + layout::C_POOL) })
    }

    /// Filters that this thread's calls of the module were given.
    pub(crate) fn filters(&self) -> impl Iterator<Item = u64> {
        self.all_roots().filter_map(|root| match root {
            Root::Filter(f) => Some(f),
            _ => None,
        })
    }

    pub(crate) fn has_filter(&self, filter: u64) -> bool {
        self.all_roots().any(|root| root == Root::Filter(filter))
    }

    /// Whether it is a filter behind one that was given, or of a request or connection that was.
    pub(crate) fn leads_to(&self, filter: u64) -> bool {
        if filter == 0 {
            return true;
        }
        // The filter that this very call was given passes to the next one, nearly always.
        // SAFETY: roots are the core's own structures; modules may write nothing of filters but their `ctx`.
        let next = |f: u64| unsafe { read(f + layout::F_NEXT) };
        let is_near = |root| matches!(root, Root::Filter(f) if f == filter || next(f) == filter);
        if self.given().any(is_near) {
            return true;
        }
        // SAFETY: as above; modules may write nothing of filters but their `ctx`.
        let along = |first: u64| {
            let next =
                // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
                |f: &u64| Some(unsafe { read(f + layout::F_NEXT) }).filter(|next| *next != 0);
            let first = Some(first).filter(|first| *first != 0);
            std::iter::successors(first, next).take(256)
        };
        let given = self.filters();
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of_requests = self.requests().flat_map(|r| unsafe {
            [
                read(r + layout::R_OUTPUT_FILTERS),
                read(r + layout::R_INPUT_FILTERS),
            ]
        });
        // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
        let of_connections = self.connections().flat_map(|c| unsafe {
            [
                read(c + layout::C_OUTPUT_FILTERS),
                read(c + layout::C_INPUT_FILTERS),
            ]
        });
        let mut firsts = given.chain(of_requests).chain(of_connections);
        let is_it = |first| along(first).any(|known| known == filter);
        if firsts.any(is_it) {
            return true;
        }
        let made = self.walled.made(Kind::Request).into_iter();
        // SAFETY: these requests are the core's or ours.
        let mut made = made.flat_map(|r| unsafe {
            [
                read(r + layout::R_OUTPUT_FILTERS),
                read(r + layout::R_INPUT_FILTERS),
            ]
        });
        if made.any(is_it) {
            return true;
        }
        // Other threads may work with other connections of the module's, so only the one is looked at that the filter names.
        let [c] = copied::words(self, filter.wrapping_add(layout::F_C)).unwrap_or([0]);
        let walled = self.walled;
        let is_own = walled.has_made(c, Kind::Connection) && walled.knows(c, Kind::Connection);
        // SAFETY: it is a connection of the core's, which stays until the call of the host returns.
        let firsts = || unsafe {
            [
                read(c + layout::C_OUTPUT_FILTERS),
                read(c + layout::C_INPUT_FILTERS),
            ]
        };
        is_own && firsts().into_iter().any(is_it)
    }
}

/// Whether a request has a table.
#[inline(always)]
fn is_table_of(r: u64, table: u64) -> bool {
    const OF_REQUEST: [u64; 7] = [
        layout::R_HEADERS_IN,
        layout::R_HEADERS_OUT,
        layout::R_ERR_HEADERS_OUT,
        layout::R_SUBPROCESS_ENV,
        layout::R_NOTES,
        layout::R_TRAILERS_IN,
        layout::R_TRAILERS_OUT,
    ];
    // SAFETY: roots are the core's own structures, and modules may not write what is followed here.
    OF_REQUEST.iter().any(|at| unsafe { read(r + at) } == table)
}

/// The workers of a group of backends: its first word is mod_proxy's array of them. The array may be in memory of a module.
fn backends(balancer: u64) -> Vec<u64> {
    const MOST: u64 = 4096;
    let word = |at: u64| {
        let mut word = [0; 8];
        let read = copied::bytes(at, &mut word);
        read.ok().map(|()| u64::from_ne_bytes(word))
    };
    let all = || {
        let array = word(balancer)?;
        let (count, elements) = (word(array + 8)? >> 32, word(array + 24)?);
        let workers = (0..count.min(MOST)).map_while(|at| word(elements.wrapping_add(8 * at)));
        Some(workers.collect())
    };
    all().unwrap_or_default()
}

/// `ap_server_conf`.
pub(crate) fn main_server() -> Option<u64> {
    static AT: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let at = (*AT.get_or_init(|| crate::apr::symbol("ap_server_conf")))?;
    // SAFETY: it is the core's variable.
    Some(unsafe { read(at as u64) }).filter(|s| *s != 0)
}
