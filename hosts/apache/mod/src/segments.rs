//! Memory that processes share, by `apr_shm_create`. It is unmapped when its pool goes, or before by the module. Rights to
//! it are taken back in front of that: the next mapping at these addresses may be the core's.

use crate::apr;
use crate::call::mediate;
use crate::copied;
use crate::deeds;
use crate::frame::{self, Frame};
use crate::layout::read;
use crate::object::Kind;
use crate::pools;
use crate::quick::Map;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::ffi::c_int;
use std::sync::Mutex;

struct Segment {
    owner: &'static Walled,
    /// The pool that it goes with.
    home: u64,
    base: u64,
    bytes: u64,
    /// Of the owner and its partners.
    granted: Vec<Granted>,
}

/// Names of segments that modules have made, with the modules. A process has those of its parent, too.
static NAMES: Mutex<Vec<(Vec<u8>, &'static Walled)>> = Mutex::new(Vec::new());

/// Whether a name is that of a segment of the module's, or of a partner's.
fn is_own(walled: &'static Walled, name: &[u8]) -> bool {
    let names = lock(&NAMES);
    let is_theirs =
        |owner: &Walled| std::ptr::eq(owner, walled) || walled.partners.contains(&owner.name);
    names
        .iter()
        .any(|(known, owner)| known == name && is_theirs(owner))
}

static SEGMENTS: Mutex<Option<Map<Segment>>> = Mutex::new(None);

/// A segment is about to be unmapped.
extern "C" fn end(segment: u64) -> c_int {
    let found = lock(&SEGMENTS)
        .as_mut()
        .and_then(|all| all.remove(&segment));
    if let Some(found) = found {
        Granted::end_all(found.granted);
    }
    0
}

impl Walled {
    /// Lets the module write a partner's segment, as long as that is there.
    pub(crate) fn demand_segment(&self, at: u64, is_partner: impl Fn(&Walled) -> bool) -> bool {
        let mut segments = lock(&SEGMENTS);
        let mut all = segments.iter_mut().flat_map(|all| all.values_mut());
        let is_it =
            |one: &&mut Segment| at.wrapping_sub(one.base) < one.bytes && is_partner(one.owner);
        let Some(segment) = all.find(is_it) else {
            return false;
        };
        match self.grant(segment.base, segment.bytes) {
            Ok(granted) => segment.granted.push(granted),
            Err(_) => return false,
        }
        self.deeds.add(deeds::SEGMENTS);
        true
    }

    /// Lets the module write these words of such a segment, and no others.
    pub(crate) fn demand_words_of_segment(
        &self,
        at: u64,
        bytes: u64,
        is_partner: impl Fn(&Walled) -> bool,
    ) -> bool {
        let mut segments = lock(&SEGMENTS);
        let mut all = segments.iter_mut().flat_map(|all| all.values_mut());
        let is_it = |one: &&mut Segment| {
            let inside = at.wrapping_sub(one.base);
            inside < one.bytes && bytes <= one.bytes - inside && is_partner(one.owner)
        };
        let Some(segment) = all.find(is_it) else {
            return false;
        };
        match self.grant(at, bytes) {
            Ok(granted) => segment.granted.push(granted),
            Err(_) => return false,
        }
        self.deeds.add(deeds::SEGMENTS);
        true
    }

    /// The host is about to work with memory that the module may use. If it is of a segment, that stays until the call returns:
    /// its addresses would be the core's behind that.
    #[inline]
    pub(crate) fn hold_segment(&self, at: u64, bytes: u64) -> Answer<()> {
        match self.deeds.has(deeds::SEGMENTS) {
            true => hold(at, bytes),
            false => Ok(()),
        }
    }
}

/// Whether memory is of a segment, which may go.
pub(crate) fn is_shared(at: u64, bytes: u64) -> bool {
    let end = at.saturating_add(bytes);
    let segments = lock(&SEGMENTS);
    let mut all = segments.iter().flat_map(|all| all.values());
    all.any(|one| at < one.base.saturating_add(one.bytes) && one.base < end)
}

/// Holds all segments that lie in a range.
#[cold]
fn hold(at: u64, bytes: u64) -> Answer<()> {
    let Some(frame) = frame::now() else {
        return Ok(());
    };
    let end = at.saturating_add(bytes);
    let found: Vec<(u64, u64)> = {
        let segments = lock(&SEGMENTS);
        let all = segments.iter().flatten();
        let is_it = |one: &Segment| at < one.base.saturating_add(one.bytes) && one.base < end;
        all.filter(|(_, one)| is_it(one))
            .map(|(segment, one)| (*segment, one.home))
            .collect()
    };
    for (segment, home) in found {
        let is_held = pools::hold(frame, home, pools::is_bound(home));
        if !is_held || frame.share_turn(segment).is_err() {
            return Err(format!("{at:#x} is in a segment that another call ends"));
        }
    }
    Ok(())
}

/// Bytes of all segments that a module has.
fn used(walled: &Walled) -> u64 {
    let segments = lock(&SEGMENTS);
    let all = segments.iter().flat_map(|all| all.values());
    let own = all.filter(|one| std::ptr::eq(one.owner, walled));
    own.map(|one| one.bytes).sum()
}

/// No segment is longer.
const MOST: u64 = 1 << 40;

/// The memory is the module's until it is unmapped. The host's function gets a place of ours, and the name.
fn shared(
    frame: &Frame,
    name: &str,
    to: u64,
    pool: u64,
    make: impl FnOnce(usize, *mut u64) -> i32,
) -> Answer<u64> {
    let walled = frame.walled;
    walled.must_write(to, 8)?;
    walled.pool(frame, pool)?;
    let real = apr::symbol(name).ok_or("the server does not have it")?;
    let mut made = 0u64;
    let status = make(real, &mut made);
    if status == 0 {
        let get = |name: &str| -> Answer<u64> {
            let get = apr::symbol(name).ok_or("the server does not have it")?;
            // SAFETY: it is APR's function for what it has just made.
            let get: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(get) };
            Ok(get(made))
        };
        let (base, bytes) = (get("apr_shm_baseaddr_get")?, get("apr_shm_size_get")?);
        // The file says how long it is, and may be the module's.
        if bytes > MOST {
            return Err(format!("{name}: a segment of {bytes} bytes"));
        }
        walled.know(frame, Some(pool), made, Kind::Segment)?;
        walled.deeds.add(deeds::SEGMENTS);
        // It is mapped in pages, so the last word is whole.
        let bytes = bytes.next_multiple_of(8);
        let segment = Segment {
            owner: walled,
            home: pool,
            base,
            bytes,
            granted: vec![walled.grant(base, bytes)?],
        };
        lock(&SEGMENTS)
            .get_or_insert_default()
            .insert(made, segment);
        // SAFETY: the pool lives, and runs this before it unmaps the segment. The module may write there.
        unsafe {
            apr::apr_pool_pre_cleanup_register(pool, made, end as *const () as usize);
            (to as *mut u64).write(made);
        }
    }
    Ok(status as u32 as u64)
}

pub(crate) extern "C" fn apr_shm_create(to: u64, bytes: u64, file: u64, pool: u64) -> u64 {
    const NAME: &str = "apr_shm_create";
    mediate(|frame| {
        // APR adds to it, and does not look whether it wraps.
        let bytes = bytes.min(MOST);
        let (used, most) = (used(frame.walled), frame.walled.memory);
        if used.saturating_add(bytes) > most {
            return Err(format!(
                "{NAME}: the module has used up its {most} bytes of shared memory (`memory` in [limits])"
            ));
        }
        let file = match file {
            0 => None,
            file => Some(copied::name(frame, file)?),
        };
        let status = shared(frame, NAME, to, pool, |real, made| {
            let file = file.as_ref().map_or(0, |name| name.as_ptr() as u64);
            // SAFETY: it is APR's function, with a word and a name of ours.
            let real: extern "C" fn(*mut u64, u64, u64, u64) -> i32 =
                unsafe { std::mem::transmute(real) };
            real(made, bytes, file, pool)
        })?;
        if let Some(file) = file.filter(|_| status == 0)
            && !is_own(frame.walled, &file)
        {
            lock(&NAMES).push((file, frame.walled));
        }
        Ok(status)
    })
}

/// Another module's segment is not there for this one.
pub(crate) extern "C" fn apr_shm_attach(to: u64, file: u64, pool: u64) -> u64 {
    const NAME: &str = "apr_shm_attach";
    mediate(|frame| {
        let file = copied::name(frame, file)?;
        if !is_own(frame.walled, &file) {
            return Ok(libc::ENOENT as u64);
        }
        shared(frame, NAME, to, pool, |real, made| {
            // SAFETY: it is APR's function, with a word and a name of ours.
            let real: extern "C" fn(*mut u64, *const u8, u64) -> i32 =
                unsafe { std::mem::transmute(real) };
            real(made, file.as_ptr(), pool)
        })
    })
}

/// A segment may be left from an earlier server: a module that may write its file may remove it.
pub(crate) extern "C" fn apr_shm_remove(file: u64, pool: u64) -> u64 {
    const NAME: &str = "apr_shm_remove";
    mediate(|frame| {
        frame.walled.pool(frame, pool)?;
        let file = copied::name(frame, file)?;
        if !is_own(frame.walled, &file) && frame.walled.spot(&file).is_err() {
            return Ok(libc::ENOENT as u64);
        }
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with a name of ours and a pool that lives.
        let real: extern "C" fn(*const u8, u64) -> i32 = unsafe { std::mem::transmute(real) };
        Ok(real(file.as_ptr(), pool) as u32 as u64)
    })
}

/// Nobody destroys a segment twice.
pub(crate) extern "C" fn apr_shm_destroy(segment: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        let real = apr::symbol("apr_shm_destroy").ok_or("the server does not have it")?;
        let taken = walled.take_object(segment, Kind::Segment);
        // One that a call works with goes with its pool.
        if !taken.map_err(|what| format!("apr_shm_destroy: {what}"))? {
            return Ok(0);
        }
        end(segment);
        // SAFETY: it is APR's function, for a segment whose pool this call holds. It begins with its pool.
        unsafe {
            let pool = read(segment);
            apr::apr_pool_cleanup_kill(pool, segment, end as *const () as usize);
            let real: extern "C" fn(u64) -> i32 = std::mem::transmute(real);
            Ok(real(segment) as u32 as u64)
        }
    })
}
