//! Brigades and buckets. Modules change the rings of buckets themselves, by macros, and call the functions of buckets'
//! types by their addresses. So a module has rings of its own. Each bucket and brigade of the core's that it may use is
//! shown as a copy in the module's memory. What it does with the copies is carried out when they come back.
//!
//! ```text
//!   core's brigade ──(show)──► copies in the module's memory ──(take back)──► core's brigade
//!        buckets: in rings of one, which no module reaches, as long as the module has the copies
//! ```
//!
//! Nothing that a module writes is followed: each link is looked up among the copies that the module has. While code of a module
//! runs, the core's brigades that it knows are empty.

mod ends;

pub(crate) use ends::{destroy_all, unmapped};

use crate::few::Few;
use crate::frame::Frame;
use crate::kinds;
use crate::layout::{self, read};
use crate::near::Near;
use crate::places::Places;
use crate::pools;
use crate::walled::{Answer, Walled, lock};
use ends::{destroy, not_mapped};

/// Distances in a bucket; a brigade has its ring at `RING`.
const PREVIOUS: u64 = 8;
pub(crate) const TYPE: u64 = 16;
pub(crate) const LENGTH: u64 = 24;
pub(crate) const START: u64 = 32;
pub(crate) const DATA: u64 = 40;
pub(crate) const FREE: u64 = 48;
pub(crate) const LIST: u64 = 56;
pub(crate) const BUCKET: u64 = 64;
pub(crate) const RING: u64 = 8;

/// A bucket that the module has, or has passed to the core in a call that has not returned.
struct Bucket {
    real: u64,
    /// The pool with which it goes.
    home: u64,
    /// Type, length, start and data, as they were shown.
    shown: [u64; 4],
    /// In the core's hands.
    is_out: bool,
    /// Its allocator, file or pool may go before the request does. So the core does not get it to keep.
    stays: bool,
    /// No two buckets of a module have the same.
    number: u64,
    /// The brigade that it was given in by the call that runs ([`Brigade::given`]), or 0.
    given: u64,
}

struct Brigade {
    real: u64,
    home: u64,
    /// A number of the call that was given it last.
    given: u64,
}

/// What a copy is of.
enum Shown {
    Bucket(Bucket),
    Brigade(Brigade),
}

/// The rings of one module.
#[derive(Default)]
pub(crate) struct Rings {
    /// By addresses of copies.
    shown: Places<Shown, BUCKET>,
    /// By the core's buckets and brigades.
    copies: Near<u64>,
    /// Allocators that the module has made. Nearly all modules use those of connections alone.
    allocators: Vec<u64>,
    free: Vec<u64>,
    numbers: u64,
}

/// A call of the core with brigades and buckets of the module's.
pub(crate) struct Passing<'f> {
    frame: &'f Frame,
    brigades: Few<u64, 2>,
    /// Copies with their numbers.
    out: Few<(u64, u64), 4>,
    /// Buckets outside of brigades.
    alone: Few<u64, 1>,
    /// Whether the function may keep buckets: it is none of APR's, which only work with them.
    keeps: bool,
    /// What goes back with a brigade that the call was given may be what came with it. 0: nothing goes back.
    back: u64,
}

/// # Safety
/// It is memory of the core's, or a copy.
pub(crate) unsafe fn write(at: u64, value: u64) {
    // SAFETY: the caller has looked the address up among the copies, or has it of the core.
    unsafe { (at as *mut u64).write(value) };
}

/// # Safety
/// Both are elements of rings of the core's, or copies.
pub(crate) unsafe fn link(first: u64, second: u64) {
    // SAFETY: the caller has looked the address up among the copies, or has it of the core.
    unsafe {
        write(first, second);
        write(second + PREVIOUS, first);
    }
}

/// Puts a bucket of the core's behind all others of a brigade's ring.
///
/// # Safety
/// Both are the core's, and the bucket is in no ring.
pub(crate) unsafe fn append(end: u64, bucket: u64) {
    // SAFETY: the ring is a brigade's of the core's, so its links are good; the bucket is whole, and nothing else links to it.
    unsafe {
        link(read(end + PREVIOUS), bucket);
        link(bucket, end);
    }
}

/// The first of a ring's elements, which becomes a ring of its own.
///
/// # Safety
/// It is a ring of the core's.
unsafe fn take_first(end: u64) -> Option<u64> {
    // SAFETY: links of the core's rings are good.
    unsafe {
        let first = read(end);
        if first == end {
            return None;
        }
        link(end, read(first));
        link(first, first);
        Some(first)
    }
}

/// A ring's core elements from `first` on, up to `end`; each becomes a ring of its own.
///
/// # Safety
/// It is a ring of the core's.
unsafe fn take_apart(end: u64) -> Vec<u64> {
    let mut all = Vec::new();
    // SAFETY: the caller has looked the address up among the copies, or has it of the core.
    unsafe {
        let mut at = read(end);
        while at != end {
            let next = read(at);
            all.push(at);
            link(at, at);
            at = next;
        }
        link(end, end);
    }
    all
}

impl Rings {
    /// Whether the module has made the allocator of a bucket.
    ///
    /// # Safety
    /// It is a bucket of the core's.
    unsafe fn is_of_own(&self, real: u64) -> bool {
        // SAFETY: the caller has a bucket of the core's, which has this word.
        !self.allocators.is_empty() && self.allocators.contains(&unsafe { read(real + LIST) })
    }

    #[inline]
    fn bucket(&self, copy: u64) -> Option<&Bucket> {
        match self.shown.get(copy)? {
            Shown::Bucket(bucket) => Some(bucket),
            Shown::Brigade(_) => None,
        }
    }

    #[inline]
    fn bucket_mut(&mut self, copy: u64) -> Option<&mut Bucket> {
        match self.shown.get_mut(copy)? {
            Shown::Bucket(bucket) => Some(bucket),
            Shown::Brigade(_) => None,
        }
    }

    #[inline]
    fn brigade(&self, copy: u64) -> Option<&Brigade> {
        match self.shown.get(copy)? {
            Shown::Brigade(brigade) => Some(brigade),
            Shown::Bucket(_) => None,
        }
    }

    /// Forgets a bucket: which one of the core's it was.
    fn remove(&mut self, copy: u64) -> Option<u64> {
        let real = self.bucket(copy)?.real;
        self.shown.clear(copy);
        self.copies.remove(real);
        self.free.push(copy);
        Some(real)
    }

    /// A brigade of the core's goes out of the module's sight.
    fn hide(&mut self, copy: u64) {
        if let Some(real) = self.brigade(copy).map(|brigade| brigade.real) {
            self.shown.clear(copy);
            self.copies.remove(real);
            self.free.push(copy);
        }
    }

    /// Whether it is an element of a ring of the module's.
    fn is_element(&self, at: u64) -> bool {
        self.bucket(at).is_some() || self.brigade(at.wrapping_sub(RING)).is_some()
    }

    /// What goes with a pool, to be destroyed by the caller.
    pub(crate) fn forget(&mut self, pool: u64) -> Vec<u64> {
        self.forget_all(|shown| match shown {
            Shown::Brigade(brigade) => brigade.home == pool,
            Shown::Bucket(bucket) => bucket.home == pool,
        })
    }

    /// All that a rule picks out, to be destroyed by the caller. A module that has no copies, as nearly always, has nothing to go
    /// through.
    fn forget_all(&mut self, is_its: impl Fn(&Shown) -> bool) -> Vec<u64> {
        let mut left = Vec::new();
        if self.shown.is_empty() {
            return left;
        }
        let (copies, free) = (&mut self.copies, &mut self.free);
        self.shown.remove_all(is_its, |copy, shown| {
            let real = match shown {
                Shown::Brigade(brigade) => brigade.real,
                Shown::Bucket(bucket) => {
                    if !bucket.is_out {
                        left.push(bucket.real);
                    }
                    bucket.real
                }
            };
            copies.remove(real);
            free.push(copy);
        });
        left
    }
}

impl Walled {
    /// Memory for a copy.
    fn slot(&'static self, rings: &mut Rings) -> Answer<u64> {
        if rings.free.is_empty() {
            let (at, bytes) = self.chunk()?;
            let count = bytes / BUCKET;
            rings.shown.add(at, count);
            rings.free.extend((0..count).map(|n| at + BUCKET * n));
        }
        rings.free.pop().ok_or_else(|| "no memory".to_owned())
    }

    /// The module's copy of a bucket that is in a ring of its own.
    fn show(&'static self, rings: &mut Rings, home: u64, real: u64) -> Answer<u64> {
        let known = rings.copies.get(real).copied();
        let copy = match known {
            Some(copy) => copy,
            None => {
                let copy = self.slot(rings)?;
                rings.copies.insert(real, copy);
                copy
            }
        };
        rings.numbers += 1;
        // SAFETY: it is a bucket of the core's, which has so many words.
        let words = unsafe { (real as *const [u64; BUCKET as usize / 8]).read() };
        let [_, _, kind, length, start, data, ..] = words;
        let shown = [kind, length, start, data];
        match rings.bucket_mut(copy) {
            Some(bucket) => (bucket.shown, bucket.is_out) = (shown, false),
            None => {
                // SAFETY: it is a bucket of the core's.
                let stays = unsafe { rings.is_of_own(real) };
                let fresh = Bucket {
                    real,
                    home,
                    shown,
                    is_out: false,
                    stays,
                    number: rings.numbers,
                    given: 0,
                };
                let put = rings.shown.put(copy, Shown::Bucket(fresh));
                put.ok_or("no place for a bucket")?;
            }
        }
        // SAFETY: a copy is the module's memory, and as large as a bucket.
        unsafe {
            (copy as *mut [u64; BUCKET as usize / 8]).write(words);
            link(copy, copy);
        }
        Ok(copy)
    }

    /// What the module has changed of a bucket: it may make it shorter.
    ///
    /// # Safety
    /// `copy` is the copy of `bucket`.
    unsafe fn changed(copy: u64, bucket: &mut Bucket) -> Answer<()> {
        // SAFETY: the caller has looked the address up among the copies, or has it of the core.
        unsafe {
            let now = [TYPE, LENGTH, START, DATA].map(|at| read(copy + at));
            if now == bucket.shown {
                return Ok(());
            }
            let ([kind, length, start, data], [was, all, first, same]) = (now, bucket.shown);
            let inside = start >= first
                && start
                    .checked_add(length)
                    .is_some_and(|end| end <= first.saturating_add(all));
            // Metadata has no length.
            if kind != was || data != same || !inside || all == u64::MAX {
                return Err("a bucket was changed into something else".to_owned());
            }
            write(bucket.real + LENGTH, length);
            write(bucket.real + START, start);
            bucket.shown = now;
        }
        Ok(())
    }

    /// The module's copy of a brigade of the core's, with what is in that. And whether the module had it already: the core may pass the
    /// module's own one on to its filter.
    pub(crate) fn show_brigade(
        &'static self,
        frame: &Frame,
        home: u64,
        real: u64,
    ) -> Answer<(u64, bool)> {
        self.pool(frame, home)?;
        let mut rings = lock(&self.rings);
        let known = rings.copies.get(real).copied();
        let copy = match known {
            Some(copy) => copy,
            None => {
                let copy = self.slot(&mut rings)?;
                // SAFETY: a brigade has four words, and a copy room for eight.
                unsafe {
                    (copy as *mut [u64; 4]).write((real as *const [u64; 4]).read());
                    link(copy + RING, copy + RING);
                }
                let fresh = Shown::Brigade(Brigade {
                    real,
                    home,
                    given: 0,
                });
                rings
                    .shown
                    .put(copy, fresh)
                    .ok_or("no place for a brigade")?;
                rings.copies.insert(real, copy);
                copy
            }
        };
        rings.numbers += 1;
        let given = rings.numbers;
        if let Some(Shown::Brigade(brigade)) = rings.shown.get_mut(copy) {
            brigade.given = given;
        }
        self.show_ring_of(&mut rings, copy, given)?;
        Ok((copy, known.is_some()))
    }

    /// Moves what is in the core's brigade to the module's copy.
    fn show_ring(&'static self, rings: &mut Rings, copy: u64) -> Answer<()> {
        self.show_ring_of(rings, copy, 0)
    }

    /// The same of a brigade that the call was given by this number.
    fn show_ring_of(&'static self, rings: &mut Rings, copy: u64, given: u64) -> Answer<()> {
        let Some(Brigade { real, home, .. }) = rings.brigade(copy) else {
            return Ok(());
        };
        let (real, home) = (*real, *home);
        let sentinel = copy + RING;
        // SAFETY: the core's ring, and copies of the module's.
        unsafe {
            let end = real + RING;
            // One that the module has seen already keeps what it has.
            if read(end) == end {
                return Ok(());
            }
            let mut last = sentinel;
            while let Some(bucket) = take_first(end) {
                let shown = self.show(rings, home, bucket)?;
                if let Some(bucket) = rings.bucket_mut(shown) {
                    bucket.given = given;
                }
                link(last, shown);
                last = shown;
            }
            link(last, sentinel);
        }
        Ok(())
    }

    /// A brigade of the module's, as the core has it: with all that is in the module's ring.
    fn take_back(
        &'static self,
        rings: &mut Rings,
        passing: &mut Passing<'_>,
        copy: u64,
    ) -> Answer<u64> {
        let Some(Brigade { real, home, .. }) = rings.brigade(copy) else {
            return Err(format!(
                "{copy:#x} is no brigade that the module was given or has made"
            ));
        };
        let (real, home, sentinel) = (*real, *home, copy + RING);
        // Another thread serves another request.
        if !self.holds(passing.frame, home) {
            return Err(format!("{copy:#x} is a brigade of another request"));
        }
        if passing.has(copy) {
            return Ok(real);
        }
        // SAFETY: the copies are the module's memory, and each was looked up; the ring is the core's.
        unsafe {
            let mut at = read(sentinel);
            let mut last = read(real + RING + PREVIOUS);
            let mut adopted = 0;
            while at != sentinel {
                let Some(bucket) = rings.bucket_mut(at) else {
                    if adopted == kinds::MOST {
                        return Err(format!("{at:#x} in a brigade is no bucket"));
                    }
                    // One of a type of the module's, in its own memory.
                    let own = kinds::adopt(self, passing.frame, at)?;
                    link(last, own);
                    link(own, real + RING);
                    (last, adopted) = (own, adopted + 1);
                    at = read(at);
                    continue;
                };
                if bucket.is_out {
                    return Err(format!("{at:#x} is in a brigade twice"));
                }
                passing.may_pass(at, bucket)?;
                let next = read(at);
                Walled::changed(at, bucket)?;
                bucket.is_out = true;
                passing.out.push((at, bucket.number));
                link(last, bucket.real);
                last = bucket.real;
                link(last, real + RING);
                at = next;
            }
            link(sentinel, sentinel);
        }
        passing.brigades.push(copy);
        Ok(real)
    }

    /// Puts back into the core's brigade what the module has left in its copy. If the module did not have the brigade before, it goes
    /// out of the module's sight, whatever comes of that.
    pub(crate) fn end_brigade(
        &'static self,
        frame: &Frame,
        copy: u64,
        is_known: bool,
    ) -> Answer<()> {
        let mut passing = Passing::new(frame);
        let mut rings = lock(&self.rings);
        passing.back = rings.brigade(copy).map_or(0, |brigade| brigade.given);
        let taken = self.take_back(&mut rings, &mut passing, copy);
        let mut place = 0;
        while taken.is_ok()
            && let Some((copy, _)) = passing.out.at(place)
        {
            rings.remove(copy);
            place += 1;
        }
        if !is_known {
            rings.hide(copy);
        }
        taken.map(drop)
    }
}

impl<'f> Passing<'f> {
    pub(crate) fn new(frame: &'f Frame) -> Passing<'f> {
        Passing {
            frame,
            brigades: Few::new(),
            out: Few::new(),
            alone: Few::new(),
            keeps: true,
            back: 0,
        }
    }

    /// The same for a function of APR's that works with buckets, and passes them to nobody.
    pub(crate) fn within_apr(frame: &'f Frame) -> Passing<'f> {
        let mut passing = Passing::new(frame);
        passing.keeps = false;
        passing
    }

    /// Whether a bucket may be passed.
    fn may_pass(&self, copy: u64, bucket: &Bucket) -> Answer<()> {
        let goes_back = self.back != 0 && self.back == bucket.given;
        match bucket.stays && self.keeps && !goes_back {
            true => Err(format!(
                "{copy:#x} is a bucket whose allocator, file or pool may go before the request does"
            )),
            false => Ok(()),
        }
    }

    /// Whether a brigade is passed already.
    fn has(&self, brigade: u64) -> bool {
        self.brigades.iter().any(|one| *one == brigade)
    }

    /// What the core gets for a brigade.
    pub(crate) fn brigade(&mut self, copy: u64) -> Answer<u64> {
        let walled = self.frame.walled;
        walled.take_back(&mut lock(&walled.rings), self, copy)
    }

    /// What the core gets for a bucket, or for the end of a brigade that is passed, too.
    pub(crate) fn bucket(&mut self, copy: u64) -> Answer<u64> {
        let walled = self.frame.walled;
        let mut rings = lock(&walled.rings);
        if let Some(brigade) = rings.brigade(copy.wrapping_sub(RING))
            && self.has(copy.wrapping_sub(RING))
        {
            return Ok(brigade.real + RING);
        }
        let passed = self.out.iter().any(|(one, _)| *one == copy);
        let found = rings.bucket_mut(copy);
        let Some(bucket) = found.filter(|bucket| passed || !bucket.is_out) else {
            return Err(format!(
                "{copy:#x} is no bucket that the module was given or has made"
            ));
        };
        if !passed {
            self.may_pass(copy, bucket)?;
            if !walled.holds(self.frame, bucket.home) {
                return Err(format!("{copy:#x} is a bucket of another request"));
            }
            // SAFETY: it is the copy of this bucket.
            unsafe { Walled::changed(copy, bucket)? };
            bucket.is_out = true;
            self.out.push((copy, bucket.number));
            self.alone.push(copy);
        }
        Ok(bucket.real)
    }

    /// Whether a bucket of the core's, or the end, is in a ring of the core's that is passed.
    pub(crate) fn is_within(&self, brigade: u64, bucket: u64) -> bool {
        let end = brigade + RING;
        let mut at = end;
        loop {
            if at == bucket {
                return true;
            }
            // SAFETY: the ring is the core's, which `brigade` has filled. No code of the module runs meanwhile that could change it.
            at = unsafe { read(at) };
            if at == end {
                return false;
            }
        }
    }

    /// The core has returned: the module sees its brigades and buckets as they are now. What the core has kept is gone.
    pub(crate) fn end(&mut self) -> Answer<()> {
        let walled = self.frame.walled;
        let mut rings = lock(&walled.rings);
        let rings = &mut *rings;
        let mut place = 0;
        while let Some(copy) = self.brigades.at(place) {
            walled.show_ring(rings, copy)?;
            place += 1;
        }
        place = 0;
        while let Some(copy) = self.alone.at(place) {
            walled.show_alone(rings, copy)?;
            place += 1;
        }
        place = 0;
        while let Some((copy, number)) = self.out.at(place) {
            let found = rings.bucket(copy);
            if found.is_some_and(|bucket| bucket.is_out && bucket.number == number) {
                rings.remove(copy);
            }
            place += 1;
        }
        self.brigades.clear();
        self.alone.clear();
        self.out.clear();
        Ok(())
    }

    /// The module's copy of what the core has made, or of the end of a brigade.
    pub(crate) fn made(&self, real: u64) -> Answer<u64> {
        self.made_of(real, 0)
    }

    /// The same of a bucket that works with what goes with a pool, besides its allocator; 0 is what stays.
    pub(crate) fn made_of(&self, real: u64, with: u64) -> Answer<u64> {
        let walled = self.frame.walled;
        if real == 0 {
            return Ok(0);
        }
        let mut rings = lock(&walled.rings);
        let end = rings.copies.get(real.wrapping_sub(RING)).copied();
        if let Some(copy) = end.filter(|copy| rings.brigade(*copy).is_some()) {
            return Ok(copy + RING);
        }
        if let Some(copy) = rings.copies.get(real).copied() {
            let is_out = |bucket: &Bucket| bucket.is_out;
            // SAFETY: it is a bucket of the core's.
            let is_alone = unsafe { read(real) == real };
            if !(is_alone && rings.bucket(copy).is_some_and(is_out)) {
                return Ok(copy);
            }
            // The core has destroyed one that a call around this one has passed to it, and has made another one in its place.
            rings.remove(copy);
        }
        // SAFETY: it was just made, and is in no ring.
        let list = unsafe {
            link(real, real);
            not_mapped(real);
            match rings.is_of_own(real) {
                true => read(real + LIST),
                false => 0,
            }
        };
        drop(rings);
        let request = self.frame.home().ok_or("a bucket without a request")?;
        let allocator = walled.home_of(list).unwrap_or(0);
        let first = pools::first_to_go(request, allocator);
        let first = first.and_then(|home| pools::first_to_go(home, with));
        let home = first.filter(|home| walled.pool(self.frame, *home).is_ok());
        let Some(home) = home else {
            // SAFETY: it was just made, and nobody else has it.
            unsafe { destroy(real) };
            return Err("a bucket of what goes with another request".to_owned());
        };
        rings = lock(&walled.rings);
        let copy = walled.show(&mut rings, home, real)?;
        if let Some(bucket) = rings.bucket_mut(copy).filter(|_| home != request) {
            bucket.stays = true;
        }
        Ok(copy)
    }

    /// The module's copy of a brigade that the core has made.
    pub(crate) fn made_brigade(&self, real: u64) -> Answer<u64> {
        if real == 0 {
            return Ok(0);
        }
        // SAFETY: it is a brigade of the core's.
        let [home, list] =
            unsafe { [layout::B_POOL, layout::B_ALLOCATOR].map(|at| read(real + at)) };
        let (walled, frame) = (self.frame.walled, self.frame);
        // The pool empties the brigade when it goes, with the allocator.
        let allocator = walled.home_of(list).unwrap_or(0);
        if pools::first_to_go(home, allocator) != Some(home) {
            return Err("an allocator that goes before the brigade's pool".to_owned());
        }
        let shown = walled.show_brigade(frame, home, real);
        shown.map(|(copy, _)| copy)
    }
}

/// Functions of buckets' types, by their place in the type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Of {
    Destroy = 16,
    Read = 24,
    SetAside = 32,
    Split = 40,
    Copy = 48,
    /// Not of the type: of the bucket.
    Free,
}

/// A module calls a function of a bucket by an address.
pub(crate) fn call(frame: &Frame, of: Of, arguments: [u64; 6]) -> Answer<u64> {
    let walled = frame.walled;
    let [copy, b, c, d, ..] = arguments;
    match of {
        // Its argument is the data. All is done when the bucket itself is freed, which comes next.
        Of::Destroy => return Ok(0),
        Of::Free => {
            let mut rings = lock(&walled.rings);
            let known = rings.bucket(copy).filter(|bucket| !bucket.is_out);
            let known = known.is_some_and(|bucket| walled.holds(frame, bucket.home));
            let real = known.then(|| rings.remove(copy)).flatten();
            drop(rings);
            let real = real.ok_or_else(|| format!("{copy:#x} is no bucket of the module"))?;
            // SAFETY: the module had it, so it is in a ring of its own.
            unsafe { destroy(real) };
            if walled.reads {
                crate::reading::gone(frame, copy);
            }
            return Ok(0);
        }
        _ => {}
    }
    let mut passing = Passing::within_apr(frame);
    match of {
        Of::Read => {
            walled.must_write(b, 8)?;
            walled.must_write(c, 8)?;
        }
        Of::SetAside => walled.pool(frame, b)?,
        Of::Copy => walled.must_write(b, 8)?,
        _ => {}
    }
    let real = passing.bucket(copy)?;
    // APR reads as many bytes into its own memory as the count says that it has just written. Another thread of the module could
    // write there meanwhile, so the words are ours.
    let mut found = match of {
        // SAFETY: the module may write there, and so read.
        Of::Read => unsafe { [read(b), read(c)] },
        _ => [0; 2],
    };
    // SAFETY: the bucket's own type has the function, with these parameters; what it writes are words of ours.
    let (status, made) = unsafe {
        let function = read(read(real + TYPE) + of as u64);
        let mut made = 0u64;
        let status = match of {
            Of::Copy => {
                let copy: extern "C" fn(u64, *mut u64) -> i32 = std::mem::transmute(function);
                copy(real, &mut made)
            }
            Of::Read => {
                let read: extern "C" fn(u64, *mut u64, *mut u64, u64) -> i32 =
                    std::mem::transmute(function);
                let [text, bytes] = &mut found;
                read(real, text, bytes, d)
            }
            _ => {
                let any: extern "C" fn(u64, u64) -> i32 = std::mem::transmute(function);
                any(real, b)
            }
        };
        (status, made)
    };
    passing.end()?;
    if of == Of::Read {
        // It may have given the memory back, too.
        walled.must_write(b, 8)?;
        walled.must_write(c, 8)?;
        if walled.reads && status == 0 {
            found[0] = crate::reading::copy(frame, copy, found[0], found[1])?;
        }
        // SAFETY: the module may write there.
        unsafe {
            write(b, found[0]);
            write(c, found[1]);
        }
    }
    if of == Of::Copy && status == 0 {
        let copy = passing.made(made)?;
        // SAFETY: the module may write there.
        unsafe { write(b, copy) };
    }
    if of == Of::SetAside && status == 0 {
        walled.move_home(frame, copy, b)?;
    }
    Ok(status as u32 as u64)
}
