//! A module, what it holds of Redis's, and the calls that are in it.
//!
//! ```text
//!   Redis ──► callback (commands.rs, types.rs, timers.rs) ──► enter: a frame ──► gate ──► the module
//!                                                             │                           │
//!                                                   what was lent goes back      a function by its name
//!                                                                                         │
//!   Redis ◄── the function itself ◄── handles and memory are looked at ◄── mediator (keys.rs, strings.rs ...)
//! ```
//!
//! Handles are Redis's own pointers. A module sees them, follows none, and can pass only those that it was given and that
//! are still good. Redis runs modules on one thread; on any other a mediator does nothing.

use crate::api::host;
use crate::replies::Account;
use mullion_bridge::{Answer, Module, Refused, refused};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A string that a module holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Owned {
    /// References that it must give back itself.
    count: u32,
    /// The frame whose end gives it back, if automatic memory is on.
    automatic: Option<u64>,
}

/// A module of Redis's behind its wall.
pub(crate) struct Walled {
    pub(crate) module: &'static Module,
    pub(crate) file: PathBuf,
    pub(crate) is_gone: Cell<bool>,
    /// Where its `errno` is, once it has asked.
    errno: Cell<u64>,
    /// Cursors for going through the database.
    pub(crate) cursors: RefCell<HashSet<usize>>,
    /// Where its `RedisModule_OnLoad` is, and the arguments of that.
    pub(crate) entry: Cell<u64>,
    pub(crate) arguments: RefCell<Vec<usize>>,
    /// Commands that `RedisModule_Call` may run, in capitals.
    pub(crate) commands: HashSet<String>,
    /// What it has registered with Redis, by kind and name: a life that registers the same takes that over.
    pub(crate) registered: RefCell<HashMap<String, usize>>,
    pub(crate) types: RefCell<HashSet<usize>>,
    pub(crate) timers: RefCell<HashMap<u64, usize>>,
    strings: RefCell<HashMap<usize, Owned>>,
    /// With the frame that opened it, and whether automatic memory was on.
    keys: RefCell<HashMap<usize, (u64, bool)>>,
    /// With the reply that they are part of.
    replies: RefCell<HashMap<usize, usize>>,
    pub(crate) dicts: RefCell<HashSet<usize>>,
    /// With the dictionary that they go through.
    pub(crate) iterators: RefCell<HashMap<usize, usize>>,
    depth: Cell<u32>,
}

/// Text of a key that a module changes in a copy.
pub(crate) struct Direct {
    pub(crate) key: usize,
    pub(crate) block: u64,
    pub(crate) bytes: u64,
}

/// What a callback of Redis's has for a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given {
    pub(crate) context: usize,
    pub(crate) io: usize,
    pub(crate) digest: usize,
    pub(crate) argv: usize,
    pub(crate) argc: usize,
    /// Whether a client waits for one reply.
    pub(crate) answers: bool,
    /// Whether Redis is in the middle of a database or a key, which must not change.
    pub(crate) scans: bool,
}

/// A call that is in a module.
pub(crate) struct Frame {
    pub(crate) walled: &'static Walled,
    pub(crate) given: Cell<Given>,
    number: u64,
    token: u64,
    automatic: Cell<bool>,
    lent: RefCell<Vec<u64>>,
    /// Strings of Redis's that are good until the call returns.
    passing: RefCell<Vec<usize>>,
    /// Replies of this call, and whether automatic memory was on.
    replies: RefCell<Vec<(usize, bool)>>,
    pub(crate) direct: RefCell<Vec<Direct>>,
    account: RefCell<Account>,
    before: *const Frame,
}

thread_local! {
    static NOW: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static DEPTH: Cell<u64> = const { Cell::new(0) };
}

/// What modules get as contexts: words that lead to `get_api`, and that nobody can write.
const TOKENS: u64 = 512;

fn tokens() -> u64 {
    static AT: OnceLock<u64> = OnceLock::new();
    *AT.get_or_init(|| {
        let bytes = TOKENS as usize * 8;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: fresh addresses, which are written before anybody else knows them.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED, "a page for contexts");
            for token in 0..TOKENS as usize {
                let get_api = crate::api::get_api as *const () as usize;
                at.cast::<usize>().add(token).write(get_api);
            }
            assert_eq!(libc::mprotect(at, bytes, libc::PROT_READ), 0);
            at as u64
        }
    })
}

/// What a mediator answers when it refuses: nobody sees it.
pub(crate) trait Nothing {
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($kind:ty = $value:expr),*) => { $(impl Nothing for $kind { const NOTHING: Self = $value; })* };
}
nothing!(
    () = (),
    i32 = 0,
    u32 = 0,
    i64 = 0,
    u64 = 0,
    f64 = 0.0,
    f32 = 0.0
);

/// Does what a module asks for. If that is refused, the module's call ends when this returns.
pub(crate) fn mediate<R: Nothing>(act: impl FnOnce(&Frame) -> Answer<R>) -> R {
    let frame = NOW.get();
    if frame.is_null() {
        return R::NOTHING;
    }
    // SAFETY: `enter` sets it to a frame on this thread's stack, and takes it back before that goes.
    let frame = unsafe { &*frame };
    let errno = frame.walled.errno.get();
    if errno != 0 {
        frame.exchange_errno(errno, true);
    }
    let answer = act(frame);
    if errno != 0 {
        frame.exchange_errno(errno, false);
    }
    match answer {
        Ok(answer) => answer,
        Err(Refused(what)) => {
            mullion_word_runtime::refuse(what);
            R::NOTHING
        }
    }
}

impl Walled {
    pub(crate) fn new(
        module: &'static Module,
        commands: HashSet<String>,
        file: PathBuf,
    ) -> &'static Walled {
        Box::leak(Box::new(Walled {
            module,
            file,
            is_gone: Cell::new(false),
            errno: Cell::new(0),
            cursors: RefCell::default(),
            entry: Cell::new(0),
            arguments: RefCell::default(),
            commands,
            registered: RefCell::default(),
            types: RefCell::default(),
            timers: RefCell::default(),
            strings: RefCell::default(),
            keys: RefCell::default(),
            replies: RefCell::default(),
            dicts: RefCell::default(),
            iterators: RefCell::default(),
            depth: Cell::new(0),
        }))
    }

    /// Lets the module read what it gets as contexts.
    pub(crate) fn grant_tokens(&self) -> Result<(), mullion_word_runtime::GrantError> {
        let (host, domain) = (&self.module.host, &self.module.domain);
        // SAFETY: it is only read, and stays.
        unsafe { host.grant(domain, tokens() as usize, TOKENS as usize * 8, false) }
    }

    /// Makes a call into the module. Nothing, if it has ended, or ends in this call.
    pub(crate) fn enter<R>(
        &'static self,
        given: Given,
        call: impl FnOnce(&Frame) -> Option<R>,
    ) -> Option<R> {
        let depth = DEPTH.get();
        if !self.module.runs() || depth >= TOKENS {
            return None;
        }
        let number = COUNT.get() + 1;
        COUNT.set(number);
        let frame = Frame {
            walled: self,
            given: Cell::new(given),
            number,
            token: tokens() + 8 * depth,
            automatic: Cell::new(false),
            lent: RefCell::default(),
            passing: RefCell::default(),
            replies: RefCell::default(),
            direct: RefCell::default(),
            account: RefCell::default(),
            before: NOW.get(),
        };
        NOW.set(&raw const frame);
        DEPTH.set(depth + 1);
        self.depth.set(self.depth.get() + 1);
        let result = call(&frame);
        self.depth.set(self.depth.get() - 1);
        DEPTH.set(depth);
        NOW.set(frame.before);
        let runs = self.module.runs();
        frame.leave(runs);
        match runs {
            true => result,
            false => {
                if given.answers {
                    let why = self.module.fault();
                    frame.account.borrow_mut().complete(given.context, &why);
                }
                if self.depth.get() == 0 {
                    self.release();
                }
                None
            }
        }
    }

    /// The module was stopped, and no call of it is left: what it held goes back to Redis.
    pub(crate) fn release(&self) {
        self.errno.set(0);
        for cursor in self.cursors.take() {
            host!(ScanCursorDestroy: fn(usize))(cursor);
        }
        let iterators = self.iterators.take();
        for iterator in iterators.into_keys() {
            host!(DictIteratorStop: fn(usize))(iterator);
        }
        for dict in self.dicts.take() {
            host!(FreeDict: fn(usize, usize))(0, dict);
        }
        for (text, owned) in self.strings.take() {
            for _ in 0..owned.count {
                host!(FreeString: fn(usize, usize))(0, text);
            }
        }
    }

    /// Whether a key is open.
    pub(crate) fn has_key(&self, key: usize) -> bool {
        self.keys.borrow().contains_key(&key)
    }

    /// Whether calls of it have not returned.
    pub(crate) fn is_running(&self) -> bool {
        self.depth.get() != 0
    }
}

/// The module's `errno`: a word of its heap, which follows Redis's.
pub(crate) extern "C" fn errno_location() -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if walled.errno.get() == 0 {
            let Some(at) = walled.module.take(4) else {
                return refused("no memory for errno");
            };
            walled.errno.set(at);
            frame.exchange_errno(at, false);
        }
        Ok(walled.errno.get())
    })
}

impl Frame {
    /// The module's `errno` becomes Redis's, or the other way round.
    fn exchange_errno(&self, at: u64, to_redis: bool) {
        let module = self.walled.module;
        // SAFETY: each thread has one.
        let real = unsafe { &mut *libc::__errno_location() };
        match (to_redis, module.bytes(at, 4)) {
            (true, Ok(bytes)) => *real = i32::from_ne_bytes(bytes.try_into().unwrap_or_default()),
            (false, Ok(_)) => drop(module.write(at, &real.to_ne_bytes())),
            (_, Err(_)) => {}
        }
    }

    /// What the module gets as this call's context.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The call that Redis goes through keys for.
    fn outer(&self) -> Option<&Frame> {
        // SAFETY: it is on this thread's stack, below this one.
        let before = unsafe { self.before.as_ref() };
        before.filter(|_| self.given.get().scans)
    }

    /// What was replied to the client of this call.
    pub(crate) fn account(&self) -> &RefCell<Account> {
        self.outer().map_or(&self.account, Frame::account)
    }

    /// Whether a client waits for one reply.
    pub(crate) fn answers(&self) -> bool {
        let own = self.given.get().answers;
        self.outer().map_or(own, Frame::answers)
    }

    /// A context must be the one of this call.
    pub(crate) fn context(&self, token: u64) -> Answer<usize> {
        match token == self.token && self.given.get().context != 0 {
            true => Ok(self.given.get().context),
            false => match self.outer() {
                Some(outer) => outer.context(token),
                None => refused(format!("{token:#x} is not the context of this call")),
            },
        }
    }

    /// As [`context`](Self::context), or null.
    pub(crate) fn optional_context(&self, token: u64) -> Answer<usize> {
        match token {
            0 => Ok(0),
            token => self.context(token),
        }
    }

    pub(crate) fn io(&self, io: u64) -> Answer<usize> {
        self.same(io, self.given.get().io, "RedisModuleIO")
    }

    pub(crate) fn digest(&self, digest: u64) -> Answer<usize> {
        self.same(digest, self.given.get().digest, "RedisModuleDigest")
    }

    fn same(&self, passed: u64, given: usize, what: &str) -> Answer<usize> {
        match passed as usize == given && given != 0 {
            true => Ok(given),
            false => refused(format!("{passed:#x} is not the {what} of this call")),
        }
    }

    /// Switches automatic memory on.
    pub(crate) fn automatic(&self) {
        self.automatic.set(true);
    }

    /// A string must be an argument of this call, or one that the module holds.
    pub(crate) fn string(&self, text: u64) -> Answer<usize> {
        let text = text as usize;
        let known = self.is_argument(text)
            || self.walled.strings.borrow().contains_key(&text)
            || self.passing.borrow().contains(&text);
        match known && text != 0 {
            true => Ok(text),
            false => refused(format!("{text:#x} is no string that the module was given")),
        }
    }

    /// As [`string`](Self::string), or null.
    pub(crate) fn optional_string(&self, text: u64) -> Answer<usize> {
        match text {
            0 => Ok(0),
            text => self.string(text),
        }
    }

    fn is_argument(&self, text: usize) -> bool {
        let given = self.given.get();
        // SAFETY: Redis passes so many, which stay until the callback returns.
        (0..given.argc).any(|at| unsafe { *(given.argv as *const usize).add(at) } == text)
    }

    /// A string is the module's; null stays null.
    pub(crate) fn give_string(&self, text: usize) -> u64 {
        if text != 0 {
            let mut strings = self.walled.strings.borrow_mut();
            let owned = strings.entry(text).or_default();
            match self.automatic.get() && owned.count == 0 {
                true => owned.automatic = Some(self.number),
                false => owned.count += 1,
            }
        }
        text as u64
    }

    /// A string is good until the call returns.
    pub(crate) fn lend_string(&self, text: usize) -> u64 {
        if text != 0 {
            self.passing.borrow_mut().push(text);
        }
        text as u64
    }

    /// The module keeps a string beyond the call.
    pub(crate) fn keep_string(&self, text: usize) {
        let mut strings = self.walled.strings.borrow_mut();
        let owned = strings.entry(text).or_default();
        owned.count += 1;
        owned.automatic = None;
    }

    /// The module gives a reference back; whether it has one.
    pub(crate) fn drop_string(&self, text: usize) -> bool {
        let mut strings = self.walled.strings.borrow_mut();
        let Some(owned) = strings.get_mut(&text) else {
            return false;
        };
        match owned.automatic.take() {
            Some(_) => {}
            None => owned.count -= 1,
        }
        if owned.count == 0 {
            strings.remove(&text);
        }
        true
    }

    /// A key must be open.
    pub(crate) fn key(&self, key: u64) -> Answer<usize> {
        let opened = self.walled.keys.borrow().get(&(key as usize)).copied();
        if opened.is_some() && self.given.get().scans && opened != Some((self.number, true)) {
            return refused("a key cannot be used while Redis goes through keys");
        }
        match opened.is_some() {
            true => Ok(key as usize),
            false => refused(format!("{key:#x} is no key that the module has opened")),
        }
    }

    /// As [`key`](Self::key), or null: for functions that take that as a key that is not there.
    pub(crate) fn optional_key(&self, key: u64) -> Answer<usize> {
        match key {
            0 => Ok(0),
            key => self.key(key),
        }
    }

    pub(crate) fn give_key(&self, key: usize) -> u64 {
        if key != 0 {
            let opened = (self.number, self.automatic.get());
            self.walled.keys.borrow_mut().insert(key, opened);
        }
        key as u64
    }

    /// A key that somebody else closes.
    pub(crate) fn lend_key(&self, key: usize) {
        let lent = (self.number, true);
        self.walled.keys.borrow_mut().insert(key, lent);
    }

    /// Whether Redis, or an outer call, closes a key.
    pub(crate) fn is_lent_key(&self, key: usize) -> bool {
        self.given.get().scans && self.walled.keys.borrow().contains_key(&key)
    }

    /// What changes something is refused while Redis goes through keys.
    pub(crate) fn changes(&self) -> Answer<()> {
        match self.given.get().scans {
            true => refused("nothing can be changed while Redis goes through keys"),
            false => Ok(()),
        }
    }

    pub(crate) fn drop_key(&self, key: usize) {
        self.walled.keys.borrow_mut().remove(&key);
    }

    /// A reply must be one that the module has, or a part of one.
    pub(crate) fn reply(&self, reply: u64) -> Answer<usize> {
        match self.walled.replies.borrow().contains_key(&(reply as usize)) {
            true => Ok(reply as usize),
            false => refused(format!("{reply:#x} is no reply that the module was given")),
        }
    }

    pub(crate) fn give_reply(&self, reply: usize) -> u64 {
        if reply != 0 {
            self.walled.replies.borrow_mut().insert(reply, reply);
            let given = (reply, self.automatic.get());
            self.replies.borrow_mut().push(given);
        }
        reply as u64
    }

    /// A part of a reply.
    pub(crate) fn give_part(&self, of: usize, part: usize) -> u64 {
        if part != 0 {
            let mut replies = self.walled.replies.borrow_mut();
            let root = replies.get(&of).copied().unwrap_or(of);
            replies.entry(part).or_insert(root);
        }
        part as u64
    }

    /// A reply goes, with its parts; whether it was a whole one.
    pub(crate) fn drop_reply(&self, reply: usize) -> bool {
        let mut replies = self.walled.replies.borrow_mut();
        if replies.get(&reply) != Some(&reply) {
            return false;
        }
        replies.retain(|_, root| *root != reply);
        true
    }

    pub(crate) fn cursor(&self, at: u64) -> Answer<usize> {
        match self.walled.cursors.borrow().contains(&(at as usize)) {
            true => Ok(at as usize),
            false => refused(format!("{at:#x} is no cursor of the module's")),
        }
    }

    pub(crate) fn dict(&self, dict: u64) -> Answer<usize> {
        match self.walled.dicts.borrow().contains(&(dict as usize)) {
            true => Ok(dict as usize),
            false => refused(format!("{dict:#x} is no dictionary of the module's")),
        }
    }

    pub(crate) fn iterator(&self, at: u64) -> Answer<usize> {
        match self.walled.iterators.borrow().contains_key(&(at as usize)) {
            true => Ok(at as usize),
            false => refused(format!("{at:#x} is no iterator of the module's")),
        }
    }

    /// Lends a copy of memory of Redis's until the call returns; null stays null.
    pub(crate) fn lend(&self, at: *const u8, bytes: usize) -> u64 {
        if at.is_null() {
            return 0;
        }
        // SAFETY: Redis says that so many bytes are there.
        let copied = unsafe { std::slice::from_raw_parts(at, bytes) };
        self.until_return(self.walled.module.give(copied))
    }

    /// Lends words, such as an array of handles.
    pub(crate) fn lend_words(&self, words: &[u64]) -> Option<u64> {
        let block = self.walled.module.take(8 * words.len().max(1) as u64)?;
        for (at, word) in words.iter().enumerate() {
            // SAFETY: the block has room for all of them, and begins at a multiple of 16.
            unsafe { (block as *mut u64).add(at).write(*word) };
        }
        Some(self.until_return(Some(block)))
    }

    /// A block of the heap goes back when the call returns.
    pub(crate) fn until_return(&self, block: Option<u64>) -> u64 {
        if let Some(block) = block {
            self.lent.borrow_mut().push(block);
        }
        block.unwrap_or(0)
    }

    /// What the module has written into copies of a key's text goes to Redis; of all keys, if none is named.
    pub(crate) fn write_back(&self, key: Option<usize>) {
        let mut direct = self.direct.borrow_mut();
        direct.retain(|copy| {
            let is_meant = key.is_none_or(|key| key == copy.key);
            if is_meant && self.walled.keys.borrow().contains_key(&copy.key) {
                let mut length = 0usize;
                let find = host!(StringDMA: fn(usize, *mut usize, c_int) -> *mut u8);
                let at = find(copy.key, &raw mut length, crate::keys::WRITE);
                let bytes = copy.bytes.min(length as u64);
                if let (false, Ok(from)) =
                    (at.is_null(), self.walled.module.bytes(copy.block, bytes))
                {
                    // SAFETY: Redis has so many bytes there for whoever opened the key for writing.
                    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at, bytes as usize) };
                }
            }
            !is_meant
        });
    }

    /// The call is over: what was lent goes back, and Redis frees what automatic memory is on for.
    fn leave(&self, runs: bool) {
        if runs {
            self.write_back(None);
        }
        let mut heap = self.walled.module.heap();
        for block in self.lent.take() {
            // A module that has freed it already has done nobody harm but itself.
            heap.give(block);
        }
        drop(heap);
        // A key cannot outlive its context, and neither can a reply. Automatic memory does that itself.
        let mut left = Vec::new();
        self.walled.keys.borrow_mut().retain(|key, opened| {
            if *opened == (self.number, false) {
                left.push(*key);
            }
            opened.0 != self.number
        });
        for key in left {
            host!(CloseKey: fn(usize))(key);
        }
        for (reply, is_automatic) in self.replies.take() {
            if self.drop_reply(reply) && !is_automatic {
                host!(FreeCallReply: fn(usize))(reply);
            }
        }
        if self.automatic.get() {
            let ends = |owned: &Owned| owned.automatic == Some(self.number);
            self.walled.strings.borrow_mut().retain(|_, owned| {
                if ends(owned) {
                    owned.automatic = None;
                }
                owned.count > 0 || owned.automatic.is_some()
            });
        }
    }
}

/// A text as one that ends with a zero, without those inside.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
