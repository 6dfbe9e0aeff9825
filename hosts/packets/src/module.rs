//! A module: a user's code behind its wall, and what it may do to frames.

use crate::alone::{Library, memory};
use crate::batch::{BATCH, Batch, Item, Lent, Place};
use crate::config::{ConfigError, Description, Kind, Wall};
use crate::filter::Filter;
use crate::frame::{self, Layout};
use crate::process::Link;
use crate::room::{ADDED, Contents, Header, Home, ROOM, Room, Slot};
use crate::share::{self, Writer};
use crate::ticks;
use crate::view::View;
use mullion::trust::PublicKey;
use mullion::{Caller, Domain, Error, Function, Host, Image, Imports, Limits, Ptr};
use mullion_loader::Native;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Frames that a module may add to one (`PACKETS_ADDED_EACH`).
const ADDED_EACH: usize = 16;
/// Bytes of a report, and reports that wait to be read.
const REPORT: usize = share::REPORT as usize;
const REPORTS: usize = 256;

/// The form of the agreement with `packets.h` (`PACKETS_FORM`).
pub(crate) const FORM: u32 = 4;

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
    /// Its process could not be had.
    #[error("a process for it: {0}")]
    System(#[from] io::Error),
    /// The operator's own, behind the language alone.
    #[error(
        "behind the language alone is a user's module: a policy decides about it, and nobody asks one about the operator's"
    )]
    Alone,
    /// It may take more stack than this host has for it.
    #[error(
        "its record bounds no stack, or more than {STACK} bytes of the forwarder's own, or than was granted"
    )]
    Stack,
    /// Its code and its variables are larger than its memory may be.
    #[error("its code and its variables take {0} bytes, and its description allows {1} of memory")]
    Memory(u64, u64),
    /// Its process refuses it.
    #[error("{0}")]
    Process(String),
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
    /// Ticks of the processor that it took for all of them.
    ticks: AtomicU64,
}

/// A module that is loaded.
#[derive(Debug)]
pub struct Module {
    description: Description,
    filter: Filter,
    view: View,
    /// It sees whole frames, and nothing in them is locked.
    sees_all: bool,
    running: Mutex<Option<Running>>,
    rooms: Home,
    shared: Arc<Shared>,
    /// Why it was taken out, if it was.
    stopped: Mutex<Option<String>>,
    /// Whose it is; `None`: the operator's.
    pub owner: Option<PublicKey>,
    /// What it has done.
    pub counters: Counters,
}

struct Running {
    wall: Behind,
    /// One at hand: the others are at home, which others may ask too.
    spare: Option<Room>,
}

/// Behind which wall it is.
enum Behind {
    Window {
        host: Host,
        domain: Domain,
        steps: Function<fn(Ptr<u8>, u32)>,
    },
    Process(Link),
    /// Nothing but its language.
    Language(Library),
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// Reports that nobody has read yet: here, or in memory that the user's process has too.
#[derive(Debug, Default)]
struct Reports {
    waiting: VecDeque<Vec<u8>>,
    memory: Option<Writer>,
}

impl Reports {
    fn put(&mut self, report: Vec<u8>) -> bool {
        if let Some(memory) = &mut self.memory {
            return memory.put(&report);
        }
        let is_room = self.waiting.len() < REPORTS;
        if is_room {
            self.waiting.push_back(report);
        }
        is_room
    }
}

/// What the function that a module calls leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    reports: Mutex<Reports>,
    refused: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn refuse(&self) -> Result<i32, Error> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Ok(-1)
    }

    /// A report as it is: 0 if it was taken.
    pub(crate) fn told(&self, text: &[u8]) -> i32 {
        if text.len() <= REPORT && lock(&self.reports).put(text.to_vec()) {
            return 0;
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        -1
    }

    fn report(&self, caller: &Caller<'_>, text: Ptr<u8>, length: u32) -> Result<i32, Error> {
        if length as usize > REPORT {
            return self.refuse();
        }
        let bytes = text.slice(caller, u64::from(length))?.to_vec()?;
        match lock(&self.reports).put(bytes) {
            true => Ok(0),
            false => self.refuse(),
        }
    }
}

impl Module {
    /// Loads a module: verified, in a domain of its own, with its limits.
    ///
    /// # Errors
    /// As [`LoadError`] lists.
    pub fn load(host: &Host, description: &Description) -> Result<Module, LoadError> {
        if description.wall == Wall::Process {
            let image = std::fs::read(&description.image)?;
            return Module::apart(description, &image, &Limits::default());
        }
        if description.wall == Wall::Language {
            return Err(LoadError::Alone);
        }
        let image = host.open(&description.image)?;
        Module::of(host, description, &image, Limits::default())
    }

    /// As [`Module::load`], in a process of its own, which verifies the image. With limits as [`Module::of`].
    ///
    /// # Errors
    /// As [`LoadError`] lists.
    pub(crate) fn apart(
        description: &Description,
        image: &[u8],
        granted: &Limits,
    ) -> Result<Module, LoadError> {
        description.check()?;
        let limits = limits(description, granted)?;
        let link = Link::start(description, image, &limits)?;
        let running = Running {
            wall: Behind::Process(link),
            spare: Some(Room::own()),
        };
        Module::new(description, running, Home::default(), Arc::default())
    }

    /// Of machine code that was admitted behind the language alone. `stack` is what its record says of a call.
    ///
    /// # Errors
    /// As [`LoadError`] lists.
    pub(crate) fn alone(
        description: &Description,
        native: &Native,
        stack: Option<u64>,
    ) -> Result<Module, LoadError> {
        description.check()?;
        let granted = native.decision().limits.stack.unwrap_or(STACK);
        if stack.is_none_or(|stack| stack > STACK.min(granted)) {
            return Err(LoadError::Stack);
        }
        let (bytes, most) = (memory(native.bytes()), description.memory());
        if let Some(bytes) = bytes.filter(|bytes| *bytes > most) {
            return Err(LoadError::Memory(bytes, most));
        }
        let shared = Arc::new(Shared::default());
        let running = Running {
            wall: Behind::Language(Library::open(native, shared.clone())?),
            spare: Some(Room::own()),
        };
        Module::new(description, running, Home::default(), shared)
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
        let reporter = shared.clone();
        let imports = Imports::new().function(
            "packets_report",
            move |caller: &Caller<'_>, text: Ptr<u8>, length: u32| {
                reporter.report(caller, text, length)
            },
        );
        let limits = limits(description, &granted)?;
        let domain = image
            .domain()
            .name(&description.name)
            .imports(imports)
            .limits(limits)
            .load()?;
        // One for each direction.
        let rooms = Home::default();
        rooms.give_back(Some(Room::new(host, &domain)?));
        let spare = Some(Room::new(host, &domain)?);
        let place = domain.function::<fn(u32) -> i32>("packets_place")?;
        if place.call(FORM)? != 1 {
            return Err(LoadError::Form);
        }
        let steps = domain.function::<fn(Ptr<u8>, u32)>("packets_steps")?;
        let host = host.clone();
        let wall = Behind::Window {
            host,
            domain,
            steps,
        };
        Module::new(description, Running { wall, spare }, rooms, shared)
    }

    fn new(
        description: &Description,
        running: Running,
        rooms: Home,
        shared: Arc<Shared>,
    ) -> Result<Module, LoadError> {
        ticks::begin();
        let view = description.view();
        Ok(Module {
            filter: description.parsed_filter()?,
            sees_all: view.bytes.is_none() && view.locked.is_empty(),
            view,
            description: description.clone(),
            running: Mutex::new(Some(running)),
            rooms,
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

    /// Nanoseconds that it took for all its frames, with what the forwarder did for it.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        ticks::nanoseconds(self.counters.ticks.load(Ordering::Relaxed))
    }

    /// Reports that nobody has read yet.
    pub fn take_reports(&self) -> Vec<Vec<u8>> {
        lock(&self.shared.reports).waiting.drain(..).collect()
    }

    /// Memory by which reports come from now on, to be mapped by the user's process ([`Reader`](crate::share::Reader)).
    /// What waits is there already. Who had such memory before gets no more.
    ///
    /// # Errors
    /// The system's: no memory, or no descriptor.
    pub fn share_reports(&self) -> io::Result<OwnedFd> {
        let (mut writer, file) = Writer::new()?;
        let mut reports = lock(&self.shared.reports);
        // The ring has room for as many as may wait.
        reports.waiting.drain(..).for_each(|report| {
            writer.put(&report);
        });
        reports.memory = Some(writer);
        Ok(file)
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
    pub fn run(&self, port: u32, batch: &mut Batch<'_>) {
        let mut chosen = [0; BATCH];
        let mut next = 0;
        while next < batch.len() {
            let mut count = 0;
            while next < batch.len() && count < BATCH {
                let item = &batch.items[next];
                if !item.is_dropped && self.wants(port, &item.layout) && self.fits(batch, item) {
                    chosen[count] = next;
                    count += 1;
                }
                next += 1;
            }
            if count > 0 {
                self.call(port, batch, &chosen[..count]);
            }
        }
    }

    /// Whether what it would see of a frame is short enough for it.
    fn fits(&self, batch: &Batch<'_>, item: &Item<'_>) -> bool {
        let length = batch.bytes(&item.place).len();
        if length <= ROOM {
            return true;
        }
        self.fits_in_part(item, length)
    }

    #[cold]
    fn fits_in_part(&self, item: &Item<'_>, length: usize) -> bool {
        let fits = self.view.shown(&item.layout, length).len() <= ROOM;
        if !fits {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn call(&self, port: u32, batch: &mut Batch<'_>, chosen: &[usize]) {
        let mut running = lock(&self.running);
        let Some(inside) = running.as_mut() else {
            return;
        };
        let counters = &self.counters;
        // Who holds the lock writes these, and nobody else.
        let count = |counter: &AtomicU64, by: u64| {
            let sum = counter.load(Ordering::Relaxed).wrapping_add(by);
            counter.store(sum, Ordering::Relaxed);
        };
        count(&counters.frames, chosen.len() as u64);
        let start = ticks::now();
        let result = self.step(inside, port, batch, chosen);
        count(&counters.ticks, ticks::now().saturating_sub(start));
        if let Err(error) = result {
            tracing::warn!(module = self.description.name, %error, "a module was stopped");
            *lock(&self.stopped) = Some(error);
            *running = None;
            // Who follows its reports learns that none comes any more.
            lock(&self.shared.reports).memory = None;
        }
    }

    fn step(
        &self,
        inside: &mut Running,
        port: u32,
        batch: &mut Batch<'_>,
        chosen: &[usize],
    ) -> Result<(), String> {
        let mut room = inside.room(&self.rooms)?;
        let contents = room.contents();
        (contents.added, contents.refused) = (0, 0);
        for (&item, slot) in chosen.iter().zip(&mut contents.of) {
            let item = &batch.items[item];
            self.show(slot, port, item, batch.bytes(&item.place));
        }
        self.answer(inside, &mut room, chosen.len())?;
        let is_used = self.take_answers(&mut room, batch, chosen);
        match is_used {
            true => batch.rooms.push(Lent {
                room: Some(room),
                home: self.rooms.clone(),
            }),
            false => inside.spare = Some(room),
        }
        Ok(())
    }

    /// Has it answer the frames in its room.
    fn answer(&self, inside: &mut Running, room: &mut Room, count: usize) -> Result<(), String> {
        match (&mut inside.wall, room.place()) {
            (Behind::Window { steps, .. }, Some(place)) => {
                let answered = steps.call(place, count as u32);
                answered.map_err(|error| error.to_string())
            }
            (Behind::Window { .. }, None) => Err("its room is elsewhere".to_owned()),
            (Behind::Language(library), _) => {
                library.call(room.contents(), count as u32);
                Ok(())
            }
            (Behind::Process(link), _) => {
                let report = &mut |report| {
                    if !lock(&self.shared.reports).put(report) {
                        let _ = self.shared.refuse();
                    }
                };
                let refused = link.call(room.contents(), count, report)?;
                self.shared.refused.fetch_add(refused, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Has it answer frames that somebody else has put there, who looks at the answers too: in a module's process.
    pub(crate) fn call_plainly(
        &self,
        fill: &mut dyn FnMut(&mut Contents) -> Option<usize>,
        look: &mut dyn FnMut(&Contents, usize),
    ) -> Result<(), String> {
        let mut running = lock(&self.running);
        let inside = running.as_mut().ok_or("it was stopped")?;
        let mut room = inside.room(&self.rooms)?;
        let contents = room.contents();
        (contents.added, contents.refused) = (0, 0);
        let count = fill(contents).ok_or("no frames came")?;
        self.answer(inside, &mut room, count)?;
        look(room.contents(), count);
        inside.spare = Some(room);
        Ok(())
    }

    /// Does as it has answered: whether frames are now in its room, which is the batch's next one then.
    fn take_answers(&self, room: &mut Room, batch: &mut Batch<'_>, chosen: &[usize]) -> bool {
        let number = batch.rooms.len();
        let contents = room.contents();
        let all = contents.added as usize;
        let mut refused = u64::from(contents.refused);
        if self.description.kind == Kind::Monitor {
            refused += all as u64;
            if refused > 0 {
                self.counters.refused.fetch_add(refused, Ordering::Relaxed);
            }
            return false;
        }
        // Counted together: to add to what others read takes longer than a small frame does.
        let (mut changed, mut dropped, mut added) = (0, 0, 0);
        refused += all.saturating_sub(ADDED) as u64;
        let mut each = [0; BATCH];
        let more = contents.of.iter_mut().enumerate().skip(BATCH).take(all);
        for ((slot, frame), behind) in more.zip(contents.behind) {
            let at = behind as usize;
            let item = chosen.get(at).filter(|_| each[at] < ADDED_EACH);
            let place = item.and_then(|&item| {
                let place = self.take_added(frame, batch, item, (number, slot))?;
                batch.add(item, place);
                Some(())
            });
            match place {
                Some(()) => {
                    each[at] += 1;
                    added += 1;
                }
                None => refused += 1,
            }
        }
        let slots = contents.of.iter_mut().enumerate();
        for ((&item, (slot, frame)), answer) in chosen.iter().zip(slots).zip(contents.answers) {
            match answer {
                0 => {}
                1 => match self.change(frame, batch, item, number, slot) {
                    true => changed += 1,
                    false => refused += 1,
                },
                2 => {
                    dropped += 1;
                    batch.items[item].is_dropped = true;
                    batch.dropped += 1;
                }
                _ => refused += 1,
            }
        }
        let counters = &self.counters;
        for (counter, by) in [
            (&counters.changed, changed),
            (&counters.dropped, dropped),
            (&counters.added, added),
            (&counters.refused, refused),
        ] {
            if by > 0 {
                counter.fetch_add(by, Ordering::Relaxed);
            }
        }
        changed + added > 0
    }

    /// Copies what it may see of a frame to its place.
    #[inline]
    fn show(&self, slot: &mut Slot, port: u32, item: &Item<'_>, frame: &[u8]) {
        match self.sees_all {
            true => show_all(slot, port, item, frame),
            false => self.show_part(slot, port, item, frame),
        }
    }

    fn show_part(&self, slot: &mut Slot, port: u32, item: &Item<'_>, frame: &[u8]) {
        let layout = &item.layout;
        let shown = self.view.shown(layout, frame.len());
        let at = |at: Option<usize>| {
            at.filter(|at| shown.contains(at))
                .map_or(NONE, |at| (at - shown.start) as u32)
        };
        let packet = layout.packet.as_ref();
        let end = packet.map_or(frame.len(), |packet| packet.bytes.end);
        slot.header = Header {
            length: shown.len() as u32,
            original: frame.len() as u32,
            packet: at(packet.map(|packet| packet.bytes.start)),
            payload: at(packet.and_then(|packet| Some(packet.payload.as_ref()?.start))),
            end: end
                .clamp(shown.start, shown.end)
                .saturating_sub(shown.start) as u32,
            port,
            nanoseconds: item.time,
        };
        let copy = &mut slot.bytes[..shown.len()];
        copy.copy_from_slice(&frame[shown.clone()]);
        self.view.hide(layout, &shown, frame.len(), copy);
    }

    /// The frame as the module has left it. What it did not see is as it was, and what is locked is put back.
    /// Whether it can be so.
    fn change(
        &self,
        slot: &mut Slot,
        batch: &mut Batch<'_>,
        item: usize,
        room: usize,
        number: usize,
    ) -> bool {
        let length = slot.header.length as usize;
        let end = (slot.header.end as usize).min(length);
        if self.sees_all {
            if !(frame::ETHERNET..=ROOM).contains(&length) {
                return false;
            }
            let (item, slot, new) = (&mut batch.items[item], number, &mut slot.bytes[..length]);
            item.place = Place::Room { room, slot, length };
            frame::repair_into(new, end, &mut item.layout);
            return true;
        }
        let Item { place, layout, .. } = &batch.items[item];
        let old = batch.bytes(place);
        let shown = self.view.shown(layout, old.len());
        let is_whole = shown == (0..old.len());
        // A part can be changed, and not made longer or shorter.
        if !(frame::ETHERNET..=ROOM).contains(&length) || !is_whole && length != shown.len() {
            return false;
        }
        let new = &mut slot.bytes[..length];
        if is_whole && self.view.locked.is_empty() {
            let layout = frame::repair(new, end);
            let (item, slot) = (&mut batch.items[item], number);
            (item.place, item.layout) = (Place::Room { room, slot, length }, layout);
            return true;
        }
        // The module has its room again, and must not find there what is put back.
        let (mut own, end) = match is_whole {
            true => (new.to_vec(), end),
            false => {
                let mut own = old.to_vec();
                own[shown].copy_from_slice(new);
                let packet = layout.packet.as_ref();
                let end = packet.map_or(own.len(), |packet| packet.bytes.end);
                (own, end)
            }
        };
        self.view.put_back(layout, old, &mut own);
        let repaired = frame::repair(&mut own, end);
        if !self.view.keeps(layout, &repaired) {
            return false;
        }
        let (place, layout) = (batch.keep(own), repaired);
        let item = &mut batch.items[item];
        (item.place, item.layout) = (place, layout);
        true
    }

    /// A frame that it adds behind another: where it lies, if it can go. What is locked is as in that other one.
    fn take_added(
        &self,
        frame: &mut Slot,
        batch: &mut Batch<'_>,
        item: usize,
        (room, slot): (usize, usize),
    ) -> Option<Place<'static>> {
        let length = frame.header.length as usize;
        if !(frame::ETHERNET..=ROOM).contains(&length) {
            return None;
        }
        let end = (frame.header.end as usize).min(length);
        let new = &mut frame.bytes[..length];
        if self.view.locked.is_empty() {
            frame::repair(new, end);
            return Some(Place::Room { room, slot, length });
        }
        // As in a frame that was changed.
        let mut own = new.to_vec();
        let Item { place, layout, .. } = &batch.items[item];
        self.view.put_back(layout, batch.bytes(place), &mut own);
        let repaired = frame::repair(&mut own, end);
        let keeps = self.view.keeps(layout, &repaired);
        keeps.then(|| batch.keep(own))
    }
}

impl Running {
    fn room(&mut self, home: &Home) -> Result<Room, String> {
        if let Some(room) = self.spare.take().or_else(|| home.take()) {
            return Ok(room);
        }
        match &self.wall {
            Behind::Window { host, domain, .. } => {
                Room::new(host, domain).map_err(|error| error.to_string())
            }
            Behind::Process(_) | Behind::Language(_) => Ok(Room::own()),
        }
    }
}

/// What bounds its calls: a call is for a batch.
fn limits(description: &Description, granted: &Limits) -> Result<Limits, ConfigError> {
    let time = description.time()? * BATCH as u32;
    Ok(Limits {
        memory: description.memory().min(granted.memory),
        time: Some(granted.time.map_or(time, |granted| granted.min(time))),
        stack: STACK.min(granted.stack),
        ..granted.clone()
    })
}

/// Copies a whole frame to its place.
#[inline]
fn show_all(slot: &mut Slot, port: u32, item: &Item<'_>, frame: &[u8]) {
    slot.bytes[..frame.len()].copy_from_slice(frame);
    let length = frame.len() as u32;
    let (mut start, mut payload, mut end) = (NONE, NONE, length);
    if let Some(packet) = &item.layout.packet {
        (start, end) = (packet.bytes.start as u32, packet.bytes.end as u32);
        if let Some(place) = &packet.payload {
            payload = if place.start < frame.len() {
                place.start as u32
            } else {
                NONE
            };
        }
    }
    slot.header = Header {
        length,
        original: length,
        packet: start,
        payload,
        end,
        port,
        nanoseconds: item.time,
    };
}
