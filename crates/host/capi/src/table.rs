//! Handles: what C holds of an object is a number that is looked up at each use.
//!
//! ```text
//! 63        32 31        0
//! | generation | place + 1 |     0: none
//! ```
//! Each place counts how often it was given out, so that a freed handle finds
//! another generation and not another object. After 2^32 times a place is not
//! used again.
//!
//! Calls look handles up all the time. A lock for readers and a count of references would be
//! four locked instructions for each, a third of a call. So a place never moves, and what is in it
//! is [`Used`]: to look takes none. A handle is void as soon as its generation is over. A call that
//! is just using the object still has it. Whoever changes the table next finds that it can go.

use crate::domain::{Domain, Function};
use crate::live::Live;
use crate::pool::Pool;
use crate::status::Failure;
use mullion_host as host;
use mullion_host::{Image, Imports, Returned, Shared};
use mullion_runtime::Used;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What a handle of a started call stands for.
pub(crate) type Call = Arc<host::Call<Returned>>;

/// A handle as C has it: of whichever type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) number: u64,
}

impl Handle {
    pub(crate) fn is_none(self) -> bool {
        self.number == 0
    }

    fn new(place: usize, generation: u32) -> Self {
        Self {
            number: u64::from(generation) << 32 | (place as u64 + 1),
        }
    }

    /// None of a handle that was never given out: generations begin at 1.
    #[inline]
    fn place(self) -> Option<usize> {
        let place = (self.number as u32 as usize).checked_sub(1)?;
        (self.generation() != 0).then_some(place)
    }

    #[inline]
    fn generation(self) -> u32 {
        (self.number >> 32) as u32
    }
}

/// What a handle may stand for. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Object {
    Image(Image),
    Imports(Arc<Mutex<Imports>>),
    Domain(Arc<Domain>),
    Function(Arc<Function>),
    Shared(Shared),
    Call(Call),
    Pool(Pool),
    Live(Arc<Live>),
}

impl Object {
    #[inline]
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            Self::Image(image) => Some(image),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn imports(&self) -> Option<&Arc<Mutex<Imports>>> {
        match self {
            Self::Imports(imports) => Some(imports),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn shared(&self) -> Option<&Shared> {
        match self {
            Self::Shared(shared) => Some(shared),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn pool(&self) -> Option<&Pool> {
        match self {
            Self::Pool(pool) => Some(pool),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn live(&self) -> Option<&Arc<Live>> {
        match self {
            Self::Live(live) => Some(live),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn domain(&self) -> Option<&Arc<Domain>> {
        match self {
            Self::Domain(domain) => Some(domain),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn function(&self) -> Option<&Arc<Function>> {
        match self {
            Self::Function(function) => Some(function),
            _ => None,
        }
    }
}

/// Places of the first chunk; every other one has twice as many as the one before.
const FIRST: usize = 64;

/// Chunks for all places that a handle can name.
const CHUNKS: usize = 27;

static PLACES: [OnceLock<Box<[Place]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

#[derive(Default)]
struct Place {
    /// Of the handle that there is for it; 0: there is none.
    generation: AtomicU32,
    /// Changed while there is none.
    object: Used<Option<Object>>,
}

/// Which places are free.
static FREE: Mutex<Free> = Mutex::new(Free {
    made: 0,
    empty: Vec::new(),
    void: Vec::new(),
});

struct Free {
    /// Places that have ever been given out.
    made: usize,
    empty: Vec<Next>,
    /// Those whose handle has been freed, and whose object may be in use.
    void: Vec<Next>,
}

/// A place without a handle, and the generation of the next one.
struct Next {
    place: usize,
    generation: u32,
}

/// Gives an object a handle.
pub(crate) fn add(object: Object) -> Result<Handle, Failure> {
    let (next, gone) = {
        let mut free = free();
        let gone = free.clear();
        (free.take(), gone)
    };
    drop(gone);
    let next = next.ok_or_else(|| Failure::argument("there are too many handles"))?;
    let place = place_or_new(next.place);
    // Who looks for a freed handle finds that out at once, and leaves.
    let mut slot = loop {
        match place.object.change() {
            Some(slot) => break slot,
            None => std::thread::yield_now(),
        }
    };
    *slot = Some(object);
    drop(slot);
    place.generation.store(next.generation, Ordering::Release);
    Ok(Handle::new(next.place, next.generation))
}

/// Uses what a handle stands for, if it is of the kind that `kind` picks. It stays
/// meanwhile, even if the handle is freed.
#[inline]
pub(crate) fn with<T, R>(
    handle: Handle,
    kind: impl Fn(&Object) -> Option<&T>,
    run: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let place = handle.place().and_then(place);
    let place = place.ok_or_else(Failure::handle)?;
    // Refused is who has a freed handle: nobody changes a place that has one.
    let object = place.object.enter().ok_or_else(Failure::handle)?;
    if place.generation.load(Ordering::Acquire) != handle.generation() {
        return Err(Failure::handle());
    }
    let found = object.as_ref().and_then(kind);
    run(found.ok_or_else(Failure::handle)?)
}

/// What a handle stands for, to be kept.
pub(crate) fn find<T: Clone>(
    handle: Handle,
    kind: impl Fn(&Object) -> Option<&T>,
) -> Result<T, Failure> {
    with(handle, kind, |found| Ok(found.clone()))
}

/// The handle is void from now on, if it is of the kind that `kind` picks.
pub(crate) fn free_handle<T>(
    handle: Handle,
    kind: impl Fn(&Object) -> Option<&T>,
) -> Result<(), Failure> {
    with(handle, kind, |_| Ok(()))?;
    let index = handle.place().ok_or_else(Failure::handle)?;
    let place = place(index).ok_or_else(Failure::handle)?;
    let generation = handle.generation();
    // Of several who free it at the same time, one does.
    let freed =
        place
            .generation
            .compare_exchange(generation, 0, Ordering::SeqCst, Ordering::Relaxed);
    freed.map_err(|_| Failure::handle())?;
    let gone = {
        let mut free = free();
        free.void.push(Next {
            place: index,
            // 0 after 2^32 times: the place is not used again.
            generation: generation.wrapping_add(1),
        });
        free.clear()
    };
    // Behind the lock: what goes may have handles of its own to free.
    drop(gone);
    Ok(())
}

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Free {
    /// A place that holds nothing.
    fn take(&mut self) -> Option<Next> {
        if let Some(next) = self.empty.pop() {
            return Some(next);
        }
        // A handle has 32 bits for the place, of which 0 is none.
        let place = self.made;
        (place < u32::MAX as usize).then(|| {
            self.made += 1;
            Next {
                place,
                generation: 1,
            }
        })
    }

    /// Empties the places whose handle has been freed and that nobody uses any more.
    fn clear(&mut self) -> Vec<Object> {
        let mut gone = Vec::new();
        for next in std::mem::take(&mut self.void) {
            match place(next.place).and_then(|place| place.object.change()) {
                Some(mut slot) => {
                    gone.extend(slot.take());
                    self.empty.extend((next.generation != 0).then_some(next));
                }
                None => self.void.push(next),
            }
        }
        gone
    }
}

/// The chunk of a place, and its number there.
#[inline]
fn chunk_of(place: usize) -> (usize, usize) {
    let chunk = (place / FIRST + 1).ilog2() as usize;
    (chunk, place - ((1 << chunk) - 1) * FIRST)
}

/// The place with this number, if it has ever been given out.
#[inline]
fn place(place: usize) -> Option<&'static Place> {
    let (chunk, number) = chunk_of(place);
    PLACES.get(chunk)?.get()?.get(number)
}

/// As [`place`]; made, with its neighbours, if it was not there.
fn place_or_new(place: usize) -> &'static Place {
    let (chunk, number) = chunk_of(place);
    let new = || (0..FIRST << chunk).map(|_| Place::default()).collect();
    &PLACES[chunk].get_or_init(new)[number]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_host::Imports;
    use std::sync::atomic::AtomicBool;

    fn object() -> Object {
        Object::Imports(Arc::new(Mutex::new(Imports::new())))
    }

    #[test]
    fn places_of_chunks_are_all_places_once() {
        let mut before = (0, FIRST - 1);
        for place in FIRST..100_000 {
            let (chunk, number) = chunk_of(place);
            let next = (before.0, before.1 + 1);
            let follows = if next.1 == FIRST << next.0 {
                (next.0 + 1, 0)
            } else {
                next
            };
            assert_eq!((chunk, number), follows, "{place}");
            before = (chunk, number);
        }
        let (chunk, number) = chunk_of(u32::MAX as usize - 1);
        assert!(chunk < CHUNKS && number < FIRST << chunk);
    }

    #[test]
    fn a_freed_handle_and_a_forged_one_find_nothing() {
        let handle = add(object()).ok().unwrap();
        assert!(find(handle, Object::imports).is_ok());
        assert!(find(handle, Object::domain).is_err(), "of another kind");
        assert!(free_handle(handle, Object::domain).is_err());
        assert!(free_handle(handle, Object::imports).is_ok());
        assert!(find(handle, Object::imports).is_err());
        assert!(free_handle(handle, Object::imports).is_err(), "once");
        for number in [
            0,
            1,
            5,
            u64::from(u32::MAX),
            1 << 32,
            u64::MAX,
            7 << 32 | 0xffff_fff0,
        ] {
            assert!(
                find(Handle { number }, Object::imports).is_err(),
                "{number:#x}"
            );
        }
    }

    /// What is freed while it is used stays until its user has left, and not longer than
    /// to the next change.
    #[test]
    fn an_object_in_use_outlives_its_handle() {
        let list = Arc::new(Mutex::new(Imports::new()));
        let handle = add(Object::Imports(list.clone())).ok().unwrap();
        let used = with(handle, Object::imports, |found| {
            assert!(free_handle(handle, Object::imports).is_ok());
            assert!(find(handle, Object::imports).is_err());
            assert!(Arc::ptr_eq(found, &list));
            assert_eq!(Arc::strong_count(&list), 2);
            Ok(())
        });
        assert!(used.is_ok());
        let other = add(object()).ok().unwrap();
        assert_eq!(Arc::strong_count(&list), 1);
        assert!(free_handle(other, Object::imports).is_ok());
    }

    /// Several threads look at handles that others free and make anew: each finds its
    /// object or nothing, never another one's.
    #[test]
    fn nobody_finds_another_ones_object() {
        let stop = AtomicBool::new(false);
        let current: Mutex<Option<(Handle, usize)>> = Mutex::new(None);
        let (mut found, mut void) = (0u64, 0u64);
        std::thread::scope(|scope| {
            let looks = || {
                let (mut found, mut void) = (0u64, 0u64);
                while !stop.load(Ordering::Relaxed) {
                    let Some((handle, address)) = *current.lock().unwrap() else {
                        continue;
                    };
                    for _ in 0..50 {
                        let looked = with(handle, Object::imports, |list| {
                            assert_eq!(Arc::as_ptr(list).addr(), address);
                            Ok(())
                        });
                        match looked {
                            Ok(()) => found += 1,
                            Err(_) => void += 1,
                        }
                    }
                }
                (found, void)
            };
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(looks)).collect();
            for _ in 0..2000 {
                // Kept until the end, so that no address comes again.
                let list = Arc::new(Mutex::new(Imports::new()));
                let address = Arc::as_ptr(&list).addr();
                std::mem::forget(list.clone());
                let handle = add(Object::Imports(list)).ok().unwrap();
                *current.lock().unwrap() = Some((handle, address));
                std::thread::yield_now();
                assert!(free_handle(handle, Object::imports).is_ok());
            }
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                let (ok, err) = thread.join().unwrap();
                found += ok;
                void += err;
            }
        });
        assert!(found > 0 && void > 0, "{found} found, {void} void");
    }
}
