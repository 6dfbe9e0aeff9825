//! Blocks in memory that processes share. APR's own functions keep their lists in that memory and follow them, so a module could
//! have them write elsewhere. Here the lists are beside it, in memory that no module has.

use crate::call::mediate;
use crate::frame::Frame;
use crate::walled::{Answer, Walled, lock};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A block is a number of these.
const UNIT: u64 = 64;

/// Shared by all processes: a byte for each unit.
struct Map {
    owner: &'static Walled,
    base: u64,
    busy: &'static AtomicBool,
    units: &'static [AtomicU8],
}

const FREE: u8 = 0;
const FIRST: u8 = 1;
const MORE: u8 = 2;

/// By the address of the memory, which is the object's, too.
static MAPS: Mutex<Option<HashMap<u64, &'static Map>>> = Mutex::new(None);

/// So many of these a process has. Each stays mapped.
const MANY: usize = 1024;

fn share(owner: &'static Walled, base: u64, bytes: u64) -> Answer<&'static Map> {
    let count = (bytes / UNIT) as usize;
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    // SAFETY: fresh memory of zeros, which stays.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), count + 1, access, kind, -1, 0);
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().to_string());
        }
        let at = at.cast::<u8>();
        Ok(Box::leak(Box::new(Map {
            owner,
            base,
            busy: &*at.cast(),
            units: std::slice::from_raw_parts(at.add(1).cast(), count),
        })))
    }
}

/// Such memory of the module's or of a partner's.
fn find(frame: &Frame, rmm: u64) -> Answer<&'static Map> {
    let maps = lock(&MAPS);
    let found = maps.as_ref().and_then(|maps| maps.get(&rmm)).copied();
    let found = found.filter(|map| is_theirs(frame.walled, map.owner));
    found.ok_or_else(|| format!("{rmm:#x} is no memory of the module with blocks"))
}

fn is_theirs(walled: &Walled, owner: &Walled) -> bool {
    std::ptr::eq(owner, walled) || walled.partners.contains(&owner.name)
}

impl Map {
    fn locked<R>(&self, act: impl FnOnce(&[AtomicU8]) -> R) -> R {
        while self.busy.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        let done = act(self.units);
        self.busy.store(false, Ordering::Release);
        done
    }

    /// Where a block begins; 0 if there is no room. The first unit is never given, as 0 is no block.
    fn take(&self, bytes: u64) -> u64 {
        let wanted = bytes.div_ceil(UNIT).max(1) as usize;
        self.locked(|units| {
            let is_free = |unit: &AtomicU8| unit.load(Ordering::Relaxed) == FREE;
            let room = |at: &usize| {
                units[*at..]
                    .iter()
                    .take(wanted)
                    .filter(|u| is_free(u))
                    .count()
            };
            let last = units.len().saturating_sub(wanted);
            let Some(at) = (1..=last).find(|at| room(at) == wanted) else {
                return 0;
            };
            units[at].store(FIRST, Ordering::Relaxed);
            units[at + 1..at + wanted]
                .iter()
                .for_each(|unit| unit.store(MORE, Ordering::Relaxed));
            at as u64 * UNIT
        })
    }

    fn free(&self, offset: u64) {
        let at = (offset / UNIT) as usize;
        self.locked(|units| {
            let is = |at: usize, kind: u8| {
                let unit = units.get(at);
                unit.is_some_and(|unit| unit.load(Ordering::Relaxed) == kind)
            };
            if !is(at, FIRST) {
                return;
            }
            units[at].store(FREE, Ordering::Relaxed);
            let more = (at + 1..).take_while(|at| is(*at, MORE));
            more.for_each(|at| units[at].store(FREE, Ordering::Relaxed));
        });
    }
}

pub(crate) extern "C" fn apr_rmm_init(to: u64, _: u64, base: u64, bytes: u64, pool: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, 8)?;
        if bytes < UNIT {
            return Err(format!(
                "apr_rmm_init: {bytes} bytes have no room for blocks"
            ));
        }
        walled.must_write(base, bytes & !7)?;
        walled.pool(frame, pool)?;
        let mut maps = lock(&MAPS);
        let maps = maps.get_or_insert_default();
        let known = maps.get(&base);
        if known.is_some_and(|map| !is_theirs(walled, map.owner)) {
            return Err(format!(
                "apr_rmm_init: {base:#x} has another module's blocks"
            ));
        }
        if known.is_none() && maps.len() >= MANY {
            return Err(format!("apr_rmm_init: more than {MANY} lists of blocks"));
        }
        // Lists of before are as good, if there are as many blocks.
        let count = (bytes / UNIT) as usize;
        match known.filter(|map| map.units.len() == count) {
            Some(map) => map.locked(|units| {
                units
                    .iter()
                    .for_each(|unit| unit.store(FREE, Ordering::Relaxed));
            }),
            None => drop(maps.insert(base, share(walled, base, bytes)?)),
        }
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write(base) };
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_rmm_attach(to: u64, _: u64, base: u64, _: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        find(frame, base)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write(base) };
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_rmm_destroy(_: u64) -> u64 {
    0
}

pub(crate) extern "C" fn apr_rmm_malloc(rmm: u64, bytes: u64) -> u64 {
    mediate(|frame| Ok(find(frame, rmm)?.take(bytes)))
}

pub(crate) extern "C" fn apr_rmm_calloc(rmm: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let map = find(frame, rmm)?;
        let offset = map.take(bytes);
        if offset != 0 {
            frame.walled.must_write(map.base + offset, bytes)?;
            // SAFETY: the module may write there.
            unsafe { ((map.base + offset) as *mut u8).write_bytes(0, bytes as usize) };
        }
        Ok(offset)
    })
}

pub(crate) extern "C" fn apr_rmm_free(rmm: u64, offset: u64) -> u64 {
    mediate(|frame| {
        find(frame, rmm)?.free(offset);
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_rmm_addr_get(rmm: u64, offset: u64) -> u64 {
    mediate(|frame| Ok(find(frame, rmm)?.base.wrapping_add(offset)))
}

pub(crate) extern "C" fn apr_rmm_offset_get(rmm: u64, at: u64) -> u64 {
    mediate(|frame| Ok(at.wrapping_sub(find(frame, rmm)?.base)))
}
