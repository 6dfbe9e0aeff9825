//! Memory that processes share, by `apr_shm_create`. It is unmapped when its pool goes, or before by the module. Rights to
//! it are taken back in front of that: the next mapping at these addresses may be the core's.

use crate::apr;
use crate::call::mediate;
use crate::layout::read;
use crate::object::Kind;
use crate::own::string;
use crate::quick::Map;
use crate::walled::{Answer, Walled, lock};
use mullion_word_runtime::Granted;
use std::ffi::c_int;
use std::sync::Mutex;

struct Segment {
    owner: &'static Walled,
    base: u64,
    bytes: u64,
    /// Of the owner and its partners.
    granted: Vec<Granted>,
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
        true
    }
}

/// No segment is longer.
const MOST: u64 = 1 << 40;

/// The memory is the module's until it is unmapped.
fn shared(
    name: &str,
    to: u64,
    (file, may_be_null): (u64, bool),
    pool: u64,
    make: impl FnOnce(usize, *mut u64) -> i32,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if file != 0 || !may_be_null {
            string(file)?;
        }
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
            // It is mapped in pages, so the last word is whole.
            let bytes = bytes.next_multiple_of(8);
            let segment = Segment {
                owner: walled,
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
    })
}

pub(crate) extern "C" fn apr_shm_create(to: u64, bytes: u64, file: u64, pool: u64) -> u64 {
    // APR adds to it, and does not look whether it wraps.
    let bytes = bytes.min(MOST);
    shared("apr_shm_create", to, (file, true), pool, |real, made| {
        // SAFETY: it is APR's function, with a word of ours.
        let real: extern "C" fn(*mut u64, u64, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        real(made, bytes, file, pool)
    })
}

pub(crate) extern "C" fn apr_shm_attach(to: u64, file: u64, pool: u64) -> u64 {
    shared("apr_shm_attach", to, (file, false), pool, |real, made| {
        // SAFETY: it is APR's function, with a word of ours.
        let real: extern "C" fn(*mut u64, u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        real(made, file, pool)
    })
}

/// Nobody destroys a segment twice.
pub(crate) extern "C" fn apr_shm_destroy(segment: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows(segment, Kind::Segment) {
            return Err(format!(
                "apr_shm_destroy: {segment:#x} is no segment that the module has made"
            ));
        }
        let real = apr::symbol("apr_shm_destroy").ok_or("the server does not have it")?;
        if !walled.forget_object(segment) {
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
