//! A module: a user's code behind its wall, and what it may do to frames.

use crate::config::{ConfigError, Description, Kind};
use crate::filter::Filter;
use crate::frame::{self, Layout};
use crate::view::View;
use mullion::zerocopy::{FromBytes, Immutable, IntoBytes};
use mullion::{Caller, Domain, Error, Function, Host, Imports, Limits, Ptr};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Longest frame that a module gets or makes (`PACKETS_ROOM`).
pub const ROOM: usize = 16384;
/// Frames that a module may add to one.
const EMITTED: usize = 16;
/// Bytes of a report, and reports that wait to be read.
const REPORT: usize = 4096;
const REPORTS: usize = 256;

const NONE: u32 = u32::MAX;
const HEADER: u64 = size_of::<Header>() as u64;

/// `struct packets_frame`, without its bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "mullion::zerocopy")]
#[repr(C)]
struct Header {
    length: u32,
    original: u32,
    packet: u32,
    payload: u32,
    end: u32,
    port: u32,
    nanoseconds: u64,
}

/// Why a module is not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its description.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The loader, or what its constructors did.
    #[error("{0}")]
    Mullion(#[from] Error),
}

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It goes on as this.
    Changed(Vec<u8>),
    /// It goes nowhere.
    Drop,
}

/// What a module has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Frames that it got.
    pub frames: AtomicU64,
    /// Those that it changed, dropped and added.
    pub changed: AtomicU64,
    /// See there.
    pub dropped: AtomicU64,
    /// See there.
    pub added: AtomicU64,
    /// Answers, added frames and reports that were not taken.
    pub refused: AtomicU64,
    /// Nanoseconds that it took for all of them.
    pub nanoseconds: AtomicU64,
}

/// A module that is loaded.
#[derive(Debug)]
pub struct Module {
    description: Description,
    filter: Filter,
    view: View,
    running: Mutex<Option<Running>>,
    shared: Arc<Shared>,
    /// Why it was taken out, if it was.
    stopped: Mutex<Option<String>>,
    /// What it has done.
    pub counters: Counters,
}

struct Running {
    domain: Domain,
    step: Function<fn() -> i32>,
    header: Ptr<Header>,
    bytes: Ptr<u8>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("domain", &self.domain.name())
            .finish_non_exhaustive()
    }
}

/// What the functions that a module calls leave behind.
#[derive(Debug, Default)]
struct Shared {
    emitted: Mutex<Vec<Emitted>>,
    reports: Mutex<VecDeque<Vec<u8>>>,
    refused: AtomicU64,
}

#[derive(Debug)]
struct Emitted {
    bytes: Vec<u8>,
    end: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn emit(
        &self,
        caller: &Caller<'_>,
        frame: Ptr<u8>,
        length: u32,
        end: u32,
    ) -> Result<i32, Error> {
        let mut emitted = lock(&self.emitted);
        if emitted.len() >= EMITTED || length as usize > ROOM || (length as usize) < frame::ETHERNET
        {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(-1);
        }
        let bytes = frame.slice(caller, u64::from(length))?.to_vec()?;
        let end = (end as usize).min(bytes.len());
        emitted.push(Emitted { bytes, end });
        Ok(0)
    }

    fn report(&self, caller: &Caller<'_>, text: Ptr<u8>, length: u32) -> Result<i32, Error> {
        if length as usize > REPORT || lock(&self.reports).len() >= REPORTS {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(-1);
        }
        let bytes = text.slice(caller, u64::from(length))?.to_vec()?;
        lock(&self.reports).push_back(bytes);
        Ok(0)
    }
}

impl Module {
    /// Loads a module: verified, in a domain of its own, with its limits.
    ///
    /// # Errors
    /// As [`LoadError`] lists.
    pub fn load(host: &Host, description: &Description) -> Result<Module, LoadError> {
        description.check()?;
        let shared = Arc::new(Shared::default());
        let (emitter, reporter) = (shared.clone(), shared.clone());
        let may_emit = description.kind == Kind::Transcoder;
        let imports = Imports::new()
            .function(
                "packets_emit",
                move |caller: &Caller<'_>, frame: Ptr<u8>, length: u32, end: u32| match may_emit {
                    true => emitter.emit(caller, frame, length, end),
                    false => Ok(-1),
                },
            )
            .function(
                "packets_report",
                move |caller: &Caller<'_>, text: Ptr<u8>, length: u32| {
                    reporter.report(caller, text, length)
                },
            );
        let limits = Limits {
            memory: description.memory(),
            time: Some(description.time()?),
            stack: 64 << 10,
            ..Limits::default()
        };
        let image = host.open(&description.image)?;
        let domain = image
            .domain()
            .name(&description.name)
            .imports(imports)
            .limits(limits)
            .load()?;
        let place = domain
            .function::<fn() -> Ptr<Header>>("packets_place")?
            .call()?;
        place.check(&domain)?;
        let bytes = Ptr::<u8>::from_address(place.address() + HEADER);
        bytes.slice(&domain, ROOM as u64)?;
        let step = domain.function::<fn() -> i32>("packets_step")?;
        Ok(Module {
            filter: description.parsed_filter()?,
            view: description.view(),
            description: description.clone(),
            running: Mutex::new(Some(Running {
                domain,
                step,
                header: place,
                bytes,
            })),
            shared,
            stopped: Mutex::new(None),
            counters: Counters::default(),
        })
    }

    /// As it was described.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Why it was taken out, if it was.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        lock(&self.stopped).clone()
    }

    /// Reports that nobody has read yet.
    pub fn take_reports(&self) -> Vec<Vec<u8>> {
        lock(&self.shared.reports).drain(..).collect()
    }

    /// What was not taken from it.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.counters.refused.load(Ordering::Relaxed) + self.shared.refused.load(Ordering::Relaxed)
    }

    /// Whether it gets a frame that came in at `port`.
    #[must_use]
    pub fn wants(&self, port: u32, layout: &Layout) -> bool {
        self.description.from.is_none_or(|from| from == port) && self.filter.holds(layout)
    }

    /// Shows it a frame. Frames that it adds are handed to `add`, with lengths and checksums right.
    ///
    /// If it faults or takes too long, it is taken out, and the frame goes on.
    pub fn run(
        &self,
        port: u32,
        time: Duration,
        layout: &Layout,
        frame: &[u8],
        add: &mut dyn FnMut(Vec<u8>),
    ) -> Verdict {
        let mut running = lock(&self.running);
        let Some(inside) = running.as_ref() else {
            return Verdict::Pass;
        };
        let count = |counter: &AtomicU64, by: u64| counter.fetch_add(by, Ordering::Relaxed);
        count(&self.counters.frames, 1);
        let start = Instant::now();
        let result = self.step(inside, port, time, layout, frame);
        count(
            &self.counters.nanoseconds,
            start.elapsed().as_nanos() as u64,
        );
        let added = std::mem::take(&mut *lock(&self.shared.emitted));
        match result {
            Ok(verdict) => {
                match &verdict {
                    Verdict::Pass => {}
                    Verdict::Changed(_) => _ = count(&self.counters.changed, 1),
                    Verdict::Drop => _ = count(&self.counters.dropped, 1),
                }
                count(&self.counters.added, added.len() as u64);
                for Emitted { mut bytes, end } in added {
                    frame::repair(&mut bytes, end);
                    add(bytes);
                }
                verdict
            }
            Err(error) => {
                tracing::warn!(module = self.description.name, %error, "a module was stopped");
                *lock(&self.stopped) = Some(error.to_string());
                *running = None;
                Verdict::Pass
            }
        }
    }

    fn step(
        &self,
        inside: &Running,
        port: u32,
        time: Duration,
        layout: &Layout,
        frame: &[u8],
    ) -> Result<Verdict, Error> {
        let shown = self.view.shown(layout, frame.len());
        if shown.len() > ROOM {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(Verdict::Pass);
        }
        let seen = match self.view.locked.is_empty() {
            true => std::borrow::Cow::Borrowed(&frame[shown.clone()]),
            false => std::borrow::Cow::Owned(self.view.show(layout, frame)),
        };
        let place = |at: Option<usize>| {
            at.filter(|at| shown.contains(at))
                .map_or(NONE, |at| (at - shown.start) as u32)
        };
        let packet = layout.packet.as_ref();
        let end = packet.map_or(frame.len(), |packet| packet.bytes.end);
        let header = Header {
            length: seen.len() as u32,
            original: frame.len() as u32,
            packet: place(packet.map(|packet| packet.bytes.start)),
            payload: place(packet.and_then(|packet| Some(packet.payload.as_ref()?.start))),
            end: end
                .clamp(shown.start, shown.end)
                .saturating_sub(shown.start) as u32,
            port,
            nanoseconds: time.as_nanos() as u64,
        };
        inside.header.write(&inside.domain, &header)?;
        let room = inside.bytes.slice(&inside.domain, seen.len() as u64)?;
        room.copy_from(&seen)?;
        let answer = inside.step.call()?;
        match (self.description.kind, answer) {
            (_, 0) | (Kind::Monitor, _) => Ok(Verdict::Pass),
            (Kind::Transcoder, 2) => Ok(Verdict::Drop),
            (Kind::Transcoder, 1) => self.changed(inside, layout, frame, &shown),
            (Kind::Transcoder, _) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                Ok(Verdict::Pass)
            }
        }
    }

    /// The frame as the module has left it. What it did not see is as it was, and what is locked is put back.
    fn changed(
        &self,
        inside: &Running,
        layout: &Layout,
        frame: &[u8],
        shown: &std::ops::Range<usize>,
    ) -> Result<Verdict, Error> {
        let header = inside.header.read(&inside.domain)?;
        let length = header.length as usize;
        let is_whole = *shown == (0..frame.len());
        // A part can be changed, and not made longer or shorter.
        if !(frame::ETHERNET..=ROOM).contains(&length) || !is_whole && length != shown.len() {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(Verdict::Pass);
        }
        let bytes = inside
            .bytes
            .slice(&inside.domain, u64::from(header.length))?
            .to_vec()?;
        let (mut new, end) = match is_whole {
            true => (bytes, (header.end as usize).min(length)),
            false => {
                let mut new = frame.to_vec();
                new[shown.clone()].copy_from_slice(&bytes);
                (
                    new,
                    layout
                        .packet
                        .as_ref()
                        .map_or(frame.len(), |packet| packet.bytes.end),
                )
            }
        };
        self.view.put_back(layout, frame, &mut new);
        frame::repair(&mut new, end);
        Ok(Verdict::Changed(new))
    }
}
