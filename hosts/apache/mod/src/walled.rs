//! A module behind its wall: what it has from pools, and which objects of the host's it may pass.
//!
//! ```text
//!   pool ── first use by a module ──► ledger: chunks of the module's arena, from which it allocates;
//!    │                                 fields of requests, its places in configurations; objects that it has made
//!    └── cleared or destroyed ──► cleanup: all of the ledger is taken back
//! ```

mod fields;
mod ledger;
mod objects;

pub(crate) use fields::Piece;
use ledger::State;

use crate::copied;
use crate::count::Counter;
use crate::deeds::Deeds;
use crate::layout;
use crate::libraries::Stream;
use crate::pieces;
use crate::quick::Map;
use crate::rings::Rings;
use crate::swaps::Swaps;
use crate::written::Folders;
use mullion_symbols::Symbols;
use mullion_word_runtime::{Domain, Host};
use mullion_word_table::{Access, View};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call is refused, and why.
pub(crate) type Answer<T> = Result<T, String>;

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
    pub(crate) reads: bool,
    /// Variables of the host that its file names, if so.
    pub(crate) variables: Vec<String>,
    /// Whether it may take filters of others out of its requests.
    pub(crate) removes_filters: bool,
    /// Whether it may write its connections' lines of the scoreboard.
    pub(crate) keeps_score: bool,
    /// Whether its gates pass on arguments behind the sixth.
    pub(crate) is_wide: bool,
    /// Where it may write files.
    pub(crate) folders: Folders,
    /// Connections to backends with the threads that have them, and what it may write of one.
    pub(crate) acquired: Mutex<Vec<(u64, u64)>>,
    pub(crate) backend_fields: Vec<&'static str>,
    /// Words that the core follows.
    pub(crate) swaps: Swaps,
    /// What its threads have locked.
    pub(crate) locked: Mutex<Vec<crate::locks::Locked>>,
    /// Of a heap that the module has in itself.
    pub(crate) pieces: Mutex<pieces::Pieces>,
    /// Our requests for those in the module's memory.
    pub(crate) shadows: Mutex<HashMap<u64, u64>>,
    /// The core's regular expressions, by the places that the module has for them.
    pub(crate) patterns: Mutex<Map<u64>>,
    /// Modules whose memory from pools it may write, too.
    pub(crate) partners: Vec<String>,
    /// Functions of the host that it may call by address.
    offered: Mutex<HashSet<usize>>,
    /// Whether the configuration has it: one that a restart has left out stays in memory.
    pub(crate) is_in_use: AtomicBool,
    /// Optional functions that it has registered, which it may get itself.
    pub(crate) optional: Mutex<HashMap<Vec<u8>, u64>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pieces by their places (`warm.rs`).
fn in_order(mut all: Vec<(u64, u64)>) -> Vec<Piece> {
    all.sort_unstable();
    all.into_iter().map(Piece::new).collect()
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
        (reads, variables): (bool, Vec<String>),
        (removes_filters, keeps_score, is_wide): (bool, bool, bool),
        folders: Folders,
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
            request: in_order(request),
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
            variables,
            removes_filters,
            keeps_score,
            is_wide,
            folders,
            acquired: Mutex::default(),
            backend_fields,
            swaps,
            locked: Mutex::default(),
            shadows: Mutex::default(),
            patterns: Mutex::default(),
            pieces: Mutex::default(),
            offered: Mutex::default(),
            is_in_use: AtomicBool::default(),
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

    /// How many of so many bytes it may write, up to the first that it may not.
    pub(crate) fn writable(&self, at: u64, most: u64) -> u64 {
        self.view().allowed(at, most, Access::WRITE)
    }

    #[inline]
    pub(crate) fn must_write(&'static self, at: u64, bytes: u64) -> Answer<()> {
        // Rights to a segment end in front of its memory, so they are looked at when it is held.
        self.hold_segment(at, bytes)?;
        match self.writes(at, bytes) || self.demand(at) && self.writes(at, bytes) {
            true => Ok(()),
            false => Err(format!(
                "{bytes} bytes are to be written at {at:#x}, {}, which the module may not write",
                self.object(at)
            )),
        }
    }

    /// Whether the module has the right to read there, or its loads are not checked.
    #[inline]
    pub(crate) fn may_read(&self, at: u64, bytes: u64) -> bool {
        !self.reads || bytes == 0 || self.view().allows(at, bytes, Access::READ)
    }

    /// What the module could not read itself is not copied for it. One whose loads are not checked reads anything.
    #[inline(always)]
    pub(crate) fn must_read(&'static self, at: u64, bytes: u64) -> Answer<()> {
        match self.reads {
            true => self.must_read_closely(at, bytes),
            false => Ok(()),
        }
    }

    fn must_read_closely(&'static self, at: u64, bytes: u64) -> Answer<()> {
        match self.may_read(at, bytes) || self.demand_all(at, bytes) {
            true => Ok(()),
            false => Err(format!(
                "{bytes} bytes at {at:#x}, {}, are to be read, which the module may not read",
                self.object(at)
            )),
        }
    }

    /// So many bytes are there, and the module may read them.
    pub(crate) fn must_find(&'static self, at: u64, bytes: u64) -> Answer<()> {
        self.hold_segment(at, bytes)?;
        self.must_read(at, bytes)?;
        // Functions that take an `int` would see another number.
        match bytes <= i32::MAX as u64 && copied::is_there(at, bytes) {
            true => Ok(()),
            false => Err(format!("{bytes} bytes at {at:#x} are not there")),
        }
    }

    /// The length of a string of at most so many characters: it is there, and the module may read it.
    pub(crate) fn length(&'static self, at: u64, most: u64) -> Answer<usize> {
        self.hold_segment(at, 1)?;
        let length = match most {
            u64::MAX => copied::bare_length(at).ok_or_else(|| copied::no_string(at))?,
            most => copied::length_within(at, most)?,
        };
        // Its end, too, if it was looked at.
        let end = u64::from((length as u64) < most);
        self.must_read(at, length as u64 + end)?;
        Ok(length)
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
