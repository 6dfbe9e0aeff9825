//! Words that the core follows, and that a module may set to another thing of the same kind. A request that becomes a tunnel gets
//! other filters, a connection another socket, and directives come from another file. Each word is looked at before the core runs.
//!
//! ```text
//!   the module writes ──► the word is granted, and noted with what it was
//!   a call of the host, or the return ──► a thing of its kind stays; anything else is taken back, and the call ends
//!   the module's code goes on ──► what the core has set meanwhile is noted
//! ```

use crate::deeds;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::Mutex;

/// Bytes of a request's four filters, which lie side by side.
const FILTERS: u64 = 32;

/// What a policy calls the right to have a request use its connection's filters.
pub(crate) const TUNNEL: &str = "request_rec.filters.connection";
/// What it calls the right to give a connection another socket.
pub(crate) const SOCKET: &str = "conn_rec.socket";
/// The right to have a request use a configuration that the module has merged, as a policy calls it.
pub(crate) const MERGED: &str = "request_rec.per_dir_config.merged";
/// What it calls the right to have directives read from elsewhere.
pub(crate) const SOURCE: &str = "cmd_parms.config_file";

/// Fields of a request that a module may set so.
pub(crate) fn fields(may: impl Fn(&str) -> bool) -> impl Iterator<Item = (u64, u64)> {
    let all = [
        (TUNNEL, layout::R_OUTPUT_FILTERS, FILTERS),
        (MERGED, layout::R_PER_DIR_CONFIG, 8),
    ];
    let all = all.into_iter().filter(move |(name, ..)| may(name));
    all.map(|(_, at, bytes)| (at, bytes))
}

/// What may be in a word, besides what was there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// The first output filter of this connection.
    Output(u64),
    /// Its first input filter.
    Input(u64),
    /// A socket of the module's.
    Socket,
    /// A file of configuration that the module was given or has made.
    Source,
    /// A configuration that the module has merged, or the one that was there when the word was granted.
    Vector(u64),
}

/// A word that is granted.
pub(crate) struct Word {
    at: u64,
    was: u64,
    rule: Rule,
    pool: u64,
    thread: u64,
}

/// What a module may set, and the words of it that it has.
#[derive(Default)]
pub(crate) struct Swaps {
    filters: bool,
    sockets: bool,
    vectors: bool,
    pub(crate) sources: bool,
    words: Mutex<Vec<Word>>,
    /// Files of configuration, with the pools that they live as long as.
    pub(crate) files: Mutex<HashMap<u64, u64>>,
}

impl Swaps {
    pub(crate) fn new(may: impl Fn(&str) -> bool) -> Swaps {
        Swaps {
            filters: may(TUNNEL),
            sockets: may(SOCKET),
            vectors: may(MERGED),
            sources: may(SOURCE),
            ..Swaps::default()
        }
    }

    fn begin_all(&self) {
        let here = crate::backends::here();
        for word in lock(&self.words).iter_mut() {
            if word.thread == here {
                // SAFETY: the word's pool lives, or the call that was given the word runs.
                word.was = unsafe { read(word.at) };
            }
        }
    }

    /// The newest note of a word is over.
    pub(crate) fn end(&self, at: u64) {
        let mut words = lock(&self.words);
        if let Some(place) = words.iter().rposition(|word| word.at == at) {
            words.remove(place);
        }
    }
}

impl Walled {
    /// Notes a word, which is granted.
    ///
    /// # Safety
    /// There is a word of the core's.
    pub(crate) unsafe fn note_word(&self, at: u64, rule: Rule, pool: u64) {
        let word = Word {
            at,
            // SAFETY: there is a word of the core's, as this function's own condition has it.
            was: unsafe { read(at) },
            rule,
            pool,
            thread: crate::backends::here(),
        };
        lock(&self.swaps.words).push(word);
        self.deeds.add(deeds::SWAPPED);
    }

    /// What a word of the core's has, as it was looked at last: another thread of the module may have written it since.
    ///
    /// # Safety
    /// There is a word of the core's.
    pub(crate) unsafe fn word(&self, at: u64) -> u64 {
        let words = lock(&self.swaps.words);
        let noted = words.iter().rfind(|word| word.at == at);
        // SAFETY: there is a word of the core's, as this function's own condition has it; no module writes one that is not noted.
        noted.map_or_else(|| unsafe { read(at) }, |word| word.was)
    }

    /// The pool's words are gone.
    pub(crate) fn forget_words(&self, pool: u64) {
        if self.deeds.has(deeds::SWAPPED) {
            lock(&self.swaps.words).retain(|word| word.pool != pool);
            lock(&self.swaps.files).retain(|_, known| *known != pool);
        }
    }

    /// The module's code goes on: what the core has set meanwhile is what was there.
    #[inline(always)]
    pub(crate) fn go_on_with_words(&self) {
        if self.deeds.has(deeds::SWAPPED) {
            self.swaps.begin_all();
        }
    }

    /// A call begins. A request that was suspended may go on in another thread: its words are this thread's from now on.
    #[inline(always)]
    pub(crate) fn begin_words(&self, frame: &Frame) {
        if self.deeds.has(deeds::SWAPPED) {
            self.take_words_over(frame);
            self.swaps.begin_all();
        }
    }

    fn take_words_over(&self, frame: &Frame) {
        let here = crate::backends::here();
        for word in lock(&self.swaps.words).iter_mut() {
            if word.thread != here && word.pool != 0 && frame.has_pool(word.pool) {
                word.thread = here;
            }
        }
    }

    /// Whether a word may have a value.
    fn may_have(&self, rule: Rule, value: u64) -> bool {
        // SAFETY: rules have connections of the core's, which live as long as the word's pool.
        let of = |c: u64, at: u64| unsafe { read(c + at) };
        match rule {
            Rule::Output(c) => value == of(c, layout::C_OUTPUT_FILTERS),
            Rule::Input(c) => value == of(c, layout::C_INPUT_FILTERS),
            Rule::Socket => self.knows(value, Kind::Socket),
            Rule::Source => self.knows(value, Kind::ConfigFile),
            Rule::Vector(first) => value == first || self.knows(value, Kind::Vector),
        }
    }

    /// Whether a value is there as long as the pool that its word goes with. A word without a pool is read by the core behind the
    /// call: then no module may end what is there.
    fn is_lasting(&self, value: u64, pool: u64) -> bool {
        match self.home_of(value) {
            None => true,
            Some(home) if pool == 0 => !crate::pools::is_made(home),
            Some(home) => crate::pools::outlives(home, pool),
        }
    }

    /// Looks at this thread's words.
    ///
    /// # Errors
    /// One has something else, which is taken back.
    pub(crate) fn look_at_words(&self) -> Answer<()> {
        let here = crate::backends::here();
        let mut wrong = None;
        for word in lock(&self.swaps.words).iter_mut() {
            if word.thread != here {
                continue;
            }
            // SAFETY: the word's pool lives, or the call that was given the word runs.
            let now = unsafe { read(word.at) };
            if now == word.was {
                continue;
            }
            match self.may_have(word.rule, now) && self.is_lasting(now, word.pool) {
                true => word.was = now,
                false => {
                    // SAFETY: the word was just read, and the core has made it to be written.
                    unsafe { (word.at as *mut u64).write(word.was) };
                    wrong = Some((now, word.rule));
                }
            }
        }
        match wrong {
            None => Ok(()),
            Some((value, rule)) => Err(format!("{value:#x} is put where a {rule:?} is")),
        }
    }

    /// Grants the words that the policy lets the module set.
    pub(crate) fn demand_words(&'static self, frame: &Frame, at: u64) -> bool {
        const SOURCE_LINE: u64 = 40;
        let swaps = &self.swaps;
        // SAFETY: frames have the core's structures.
        let of = |at: u64| unsafe { read(at) };
        if swaps.filters {
            for r in frame.requests() {
                let start = r + layout::R_OUTPUT_FILTERS;
                if at.wrapping_sub(start) < FILTERS {
                    let (pool, c) = (of(r + layout::R_POOL), of(r + layout::R_CONNECTION));
                    let rules = [Rule::Output(c), Rule::Input(c)].into_iter().cycle();
                    for (place, rule) in (0..FILTERS).step_by(8).zip(rules) {
                        // SAFETY: they are four fields of the request.
                        unsafe { self.note_word(start + place, rule, pool) };
                    }
                    return self.lend(frame, pool, start, FILTERS).is_ok();
                }
            }
        }
        if swaps.vectors {
            for r in frame.requests() {
                let place = r + layout::R_PER_DIR_CONFIG;
                if at.wrapping_sub(place) < 8 {
                    let pool = of(r + layout::R_POOL);
                    // SAFETY: it is a field of the request.
                    unsafe { self.note_word(place, Rule::Vector(of(place)), pool) };
                    return self.lend(frame, pool, place, 8).is_ok();
                }
            }
        }
        if swaps.sockets {
            for c in frame.connections() {
                // The core's own place is the first one.
                let place = of(c + layout::C_CONN_CONFIG);
                if at.wrapping_sub(place) < 8 {
                    let pool = of(c + layout::C_POOL);
                    // SAFETY: the core has made the list, which has places for all modules.
                    unsafe { self.note_word(place, Rule::Socket, pool) };
                    return self.lend(frame, pool, place, 8).is_ok();
                }
            }
        }
        if swaps.sources {
            let file = (at & !7).wrapping_sub(SOURCE_LINE);
            let pool = lock(&swaps.files).get(&file).copied();
            return pool.is_some_and(|pool| self.lend(frame, pool, file + SOURCE_LINE, 4).is_ok());
        }
        false
    }
}
