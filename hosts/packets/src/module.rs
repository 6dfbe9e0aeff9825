//! A module: a user's code behind its wall, and what it may do to frames.

use crate::batch::{BATCH, Item};
use crate::config::{ConfigError, Description, Kind};
use crate::filter::Filter;
use crate::frame::{self, Layout};
use crate::room::{Header, ROOM, Room, Slot};
use crate::view::View;
use mullion::trust::PublicKey;
use mullion::{Caller, Domain, Error, Function, Host, Image, Imports, Limits, Ptr};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use thiserror::Error;

/// Frames that a module may add to one.
const EMITTED: usize = 16;
/// Frames' memory that is kept for those that it adds next.
const SPARE: usize = 2 * BATCH;
/// Bytes of a report, and reports that wait to be read.
const REPORT: usize = 4096;
const REPORTS: usize = 256;

/// The form of the agreement with `packets.h` (`PACKETS_FORM`).
const FORM: u32 = 3;

const NONE: u32 = u32::MAX;

/// Bytes of its stack.
const STACK: u64 = 64 << 10;

/// Why a module is not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its description.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Built with another `packets.h`.
    #[error(
        "it was built with a packets.h of another form; build it again with this one's (form {FORM})"
    )]
    Form,
    /// The loader, or what its constructors did.
    #[error("{0}")]
    Mullion(#[from] Error),
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
    /// Whose it is; `None`: the operator's.
    pub owner: Option<PublicKey>,
    /// What it has done.
    pub counters: Counters,
}

struct Running {
    domain: Domain,
    steps: Function<fn(u32)>,
    room: Room,
    /// A frame that is put together.
    stage: Vec<u8>,
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
    spare: Mutex<Vec<Vec<u8>>>,
    reports: Mutex<VecDeque<Vec<u8>>>,
    refused: AtomicU64,
}

#[derive(Debug)]
struct Emitted {
    /// Behind which frame of the batch.
    at: usize,
    bytes: Vec<u8>,
    end: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn refuse(&self) -> Result<i32, Error> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Ok(-1)
    }

    fn emit(
        &self,
        caller: &Caller<'_>,
        at: u32,
        frame: Ptr<u8>,
        length: u32,
        end: u32,
    ) -> Result<i32, Error> {
        let mut emitted = lock(&self.emitted);
        let at = at as usize;
        let is_full = || emitted.iter().filter(|one| one.at == at).count() >= EMITTED;
        if at >= BATCH || length as usize > ROOM || (length as usize) < frame::ETHERNET || is_full()
        {
            return self.refuse();
        }
        let mut bytes = lock(&self.spare).pop().unwrap_or_default();
        bytes.resize(length as usize, 0);
        frame
            .slice(caller, u64::from(length))?
            .copy_to(&mut bytes)?;
        let end = (end as usize).min(bytes.len());
        emitted.push(Emitted { at, bytes, end });
        Ok(0)
    }

    fn report(&self, caller: &Caller<'_>, text: Ptr<u8>, length: u32) -> Result<i32, Error> {
        if length as usize > REPORT || lock(&self.reports).len() >= REPORTS {
            return self.refuse();
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
        let image = host.open(&description.image)?;
        Module::of(host, description, &image, Limits::default())
    }

    /// As [`Module::load`], of an image that is open, with limits that hold beside those of the description.
    ///
    /// # Errors
    /// As [`LoadError`] lists.
    pub fn of(
        host: &Host,
        description: &Description,
        image: &Image,
        granted: Limits,
    ) -> Result<Module, LoadError> {
        description.check()?;
        let shared = Arc::new(Shared::default());
        let (emitter, reporter) = (shared.clone(), shared.clone());
        let may_emit = description.kind == Kind::Transcoder;
        let imports = Imports::new()
            .function(
                "packets_send",
                move |caller: &Caller<'_>, at: u32, frame: Ptr<u8>, length: u32, end: u32| {
                    match may_emit {
                        true => emitter.emit(caller, at, frame, length, end),
                        false => emitter.refuse(),
                    }
                },
            )
            .function(
                "packets_report",
                move |caller: &Caller<'_>, text: Ptr<u8>, length: u32| {
                    reporter.report(caller, text, length)
                },
            );
        // A call is for a batch.
        let time = description.time()? * BATCH as u32;
        let limits = Limits {
            memory: description.memory().min(granted.memory),
            time: Some(granted.time.map_or(time, |granted| granted.min(time))),
            stack: STACK.min(granted.stack),
            ..granted
        };
        let domain = image
            .domain()
            .name(&description.name)
            .imports(imports)
            .limits(limits)
            .load()?;
        let room = Room::new(host, &domain)?;
        let place = domain.function::<fn(u32, Ptr<u8>) -> i32>("packets_place")?;
        if place.call(FORM, room.place(&domain)?)? != 1 {
            return Err(LoadError::Form);
        }
        let steps = domain.function::<fn(u32)>("packets_steps")?;
        Ok(Module {
            filter: description.parsed_filter()?,
            view: description.view(),
            description: description.clone(),
            running: Mutex::new(Some(Running {
                domain,
                steps,
                room,
                stage: Vec::new(),
            })),
            shared,
            stopped: Mutex::new(None),
            owner: None,
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

    /// Shows it those of the frames that it wants, and does with them as it answers.
    ///
    /// If it faults or takes too long, it is taken out, and the frames of that call go on.
    pub fn run(&self, port: u32, items: &mut [Item]) {
        let mut chosen = [0; BATCH];
        let mut next = 0;
        while next < items.len() {
            let mut count = 0;
            while next < items.len() && count < BATCH {
                let item = &items[next];
                if !item.is_dropped && self.wants(port, &item.layout) && self.fits(item) {
                    chosen[count] = next;
                    count += 1;
                }
                next += 1;
            }
            if count > 0 {
                self.call(port, items, &chosen[..count]);
            }
        }
    }

    /// Whether what it would see of a frame is short enough for it.
    fn fits(&self, item: &Item) -> bool {
        if item.bytes.len() <= ROOM {
            return true;
        }
        let fits = self.view.shown(&item.layout, item.bytes.len()).len() <= ROOM;
        if !fits {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn call(&self, port: u32, items: &mut [Item], chosen: &[usize]) {
        let mut running = lock(&self.running);
        let Some(inside) = running.as_mut() else {
            return;
        };
        let counters = &self.counters;
        let count = |counter: &AtomicU64, by: u64| counter.fetch_add(by, Ordering::Relaxed);
        count(&counters.frames, chosen.len() as u64);
        let start = Instant::now();
        if counters.added.load(Ordering::Relaxed) > 0 {
            let mut spare = lock(&self.shared.spare);
            for &item in chosen {
                spare.append(&mut items[item].spare);
            }
        }
        let result = self.step(inside, port, items, chosen);
        count(&counters.nanoseconds, start.elapsed().as_nanos() as u64);
        let mut emitted = lock(&self.shared.emitted);
        let Err(error) = result else {
            if !emitted.is_empty() {
                lock(&self.shared.spare).truncate(SPARE);
            }
            for Emitted { at, mut bytes, end } in emitted.drain(..) {
                let Some(&place) = chosen.get(at) else {
                    count(&counters.refused, 1);
                    continue;
                };
                count(&counters.added, 1);
                frame::repair(&mut bytes, end);
                items[place].added.push(bytes);
            }
            return;
        };
        emitted.clear();
        tracing::warn!(module = self.description.name, %error, "a module was stopped");
        *lock(&self.stopped) = Some(error.to_string());
        *running = None;
    }

    fn step(
        &self,
        inside: &mut Running,
        port: u32,
        items: &mut [Item],
        chosen: &[usize],
    ) -> Result<(), Error> {
        let contents = inside.room.contents();
        for (&item, slot) in chosen.iter().zip(&mut contents.of) {
            self.show(slot, port, &items[item], &mut inside.stage);
        }
        inside.steps.call(chosen.len() as u32)?;
        if self.description.kind == Kind::Monitor {
            return Ok(());
        }
        let contents = inside.room.contents();
        // Counted together: to add to what others read takes longer than a small frame does.
        let (mut changed, mut dropped, mut refused) = (0, 0, 0);
        for ((&item, slot), answer) in chosen.iter().zip(&contents.of).zip(contents.answers) {
            let item = &mut items[item];
            match answer {
                0 => {}
                1 if self.change(slot, item, &mut inside.stage) => changed += 1,
                2 => {
                    dropped += 1;
                    item.is_dropped = true;
                }
                _ => refused += 1,
            }
        }
        let counters = &self.counters;
        for (counter, by) in [
            (&counters.changed, changed),
            (&counters.dropped, dropped),
            (&counters.refused, refused),
        ] {
            if by > 0 {
                counter.fetch_add(by, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Copies what it may see of a frame to its place.
    fn show(&self, slot: &mut Slot, port: u32, item: &Item, stage: &mut Vec<u8>) {
        let (layout, frame) = (&item.layout, item.bytes.as_slice());
        let shown = self.view.shown(layout, frame.len());
        let seen = match self.view.locked.is_empty() {
            true => &frame[shown.clone()],
            false => {
                self.view.show(layout, frame, stage);
                stage.as_slice()
            }
        };
        let at = |at: Option<usize>| {
            at.filter(|at| shown.contains(at))
                .map_or(NONE, |at| (at - shown.start) as u32)
        };
        let packet = layout.packet.as_ref();
        let end = packet.map_or(frame.len(), |packet| packet.bytes.end);
        slot.header = Header {
            length: seen.len() as u32,
            original: frame.len() as u32,
            packet: at(packet.map(|packet| packet.bytes.start)),
            payload: at(packet.and_then(|packet| Some(packet.payload.as_ref()?.start))),
            end: end
                .clamp(shown.start, shown.end)
                .saturating_sub(shown.start) as u32,
            port,
            nanoseconds: item.time.as_nanos() as u64,
        };
        slot.bytes[..seen.len()].copy_from_slice(seen);
    }

    /// The frame as the module has left it. What it did not see is as it was, and what is locked is put back.
    /// Whether it can be so.
    fn change(&self, slot: &Slot, item: &mut Item, stage: &mut Vec<u8>) -> bool {
        let length = slot.header.length as usize;
        let shown = self.view.shown(&item.layout, item.bytes.len());
        let is_whole = shown == (0..item.bytes.len());
        // A part can be changed, and not made longer or shorter.
        if !(frame::ETHERNET..=ROOM).contains(&length) || !is_whole && length != shown.len() {
            return false;
        }
        let bytes = &slot.bytes[..length];
        // As it was, for what is locked.
        if !self.view.locked.is_empty() {
            stage.clone_from(&item.bytes);
        }
        let end = match is_whole {
            true => {
                item.bytes.clear();
                item.bytes.extend_from_slice(bytes);
                (slot.header.end as usize).min(length)
            }
            false => {
                item.bytes[shown].copy_from_slice(bytes);
                let packet = item.layout.packet.as_ref();
                packet.map_or(item.bytes.len(), |packet| packet.bytes.end)
            }
        };
        if !self.view.locked.is_empty() {
            self.view.put_back(&item.layout, stage, &mut item.bytes);
        }
        item.layout = frame::repair(&mut item.bytes, end);
        true
    }
}
