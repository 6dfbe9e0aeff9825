//! The figures of domains, as a structure and as text.

use crate::domain::Domain;
use crate::pointers::{place, string, text};
use crate::policy::file_of;
use crate::status::{CANNOT_WRITE, Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use mullion_host::{Counts, FaultKind, LimitKind};
use std::ffi::c_char;
use std::sync::Arc;

/// `mullion_metrics`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Metrics {
    pub(crate) size: usize,
    pub(crate) number: u64,
    pub(crate) calls: u64,
    pub(crate) host_calls: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) faults: u64,
    pub(crate) exits: u64,
    pub(crate) refused: u64,
    pub(crate) not_made: u64,
    pub(crate) restarts: u64,
    pub(crate) limit_hits: u64,
    pub(crate) memory: u64,
    pub(crate) memory_highest: u64,
    pub(crate) memory_limit: u64,
}

/// `MULLION_NOT_MEASURED`.
pub(crate) const NOT_MEASURED: u64 = u64::MAX;

/// What `sizeof(mullion_metrics)` was at first.
const FIRST: usize = size_of::<Metrics>();

impl Metrics {
    fn of(size: usize, metrics: &mullion_host::Metrics) -> Self {
        let counts = &metrics.counts;
        let time = counts.time.map(|time| time.as_nanos());
        Self {
            size,
            number: metrics.number,
            calls: counts.calls,
            host_calls: counts.host_calls,
            nanoseconds: time.map_or(NOT_MEASURED, |time| u64::try_from(time).unwrap_or(u64::MAX)),
            faults: counts.faults(),
            exits: counts.exits,
            refused: counts.refused,
            not_made: counts.not_made,
            restarts: counts.restarts,
            limit_hits: counts.limit_hits(),
            memory: counts.memory,
            memory_highest: counts.memory_highest,
            memory_limit: counts.memory_limit,
        }
    }
}

fn metrics(domain: Handle) -> Result<mullion_host::Metrics, Failure> {
    let domain: Arc<Domain> = table::find(domain, Object::domain)?;
    Ok(domain.loaded()?.metrics())
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_metrics(domain: Handle, given: *mut Metrics) -> Status {
    guarded(|| {
        // SAFETY: the first member is there in every version of the structure.
        let size = unsafe { given.cast::<usize>().as_ref() }.copied();
        let size = size.ok_or_else(Failure::null)?;
        if !(FIRST..=size_of::<Metrics>()).contains(&size) || !size.is_multiple_of(8) {
            return Err(Failure::argument("`size` is not sizeof(mullion_metrics)"));
        }
        let filled = Metrics::of(size, &metrics(domain)?);
        // SAFETY: by mullion.h it has as many bytes as it says, which are no more
        // than ours.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const filled).cast::<u8>(), given.cast(), size);
        }
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_faults_of(
    domain: Handle,
    kind: *const c_char,
    count: *mut u64,
) -> Status {
    let known = |name: &str| FaultKind::ALL.iter().find(|kind| kind.name() == name);
    let find = |name: &str, counts: &Counts| known(name).map(|kind| counts.faults_of(*kind));
    // SAFETY: `kind` is null or a string, and `count` null or a place, by mullion.h: what `count_of` asks for.
    unsafe { count_of(domain, kind, count, find) }
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_limit_hits_of(
    domain: Handle,
    limit: *const c_char,
    count: *mut u64,
) -> Status {
    let known = |name: &str| LimitKind::ALL.iter().find(|limit| limit.name() == name);
    let find = |name: &str, counts: &Counts| known(name).map(|limit| counts.limit_hits_of(*limit));
    // SAFETY: `limit` is null or a string, and `count` null or a place, by mullion.h: what `count_of` asks for.
    unsafe { count_of(domain, limit, count, find) }
}

/// # Safety
/// The pointers are null, or a string and a place.
unsafe fn count_of(
    domain: Handle,
    name: *const c_char,
    count: *mut u64,
    find: impl FnOnce(&str, &Counts) -> Option<u64>,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, `count` a place for the result.
        let (name, place) = unsafe { (text(name)?, place(count)?) };
        let found = find(name, &metrics(domain)?.counts);
        place.write(found.ok_or_else(|| Failure::argument("there is nothing of that name"))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_domain_steps_left(domain: Handle, steps: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: `steps` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(steps) }?;
        let domain: Arc<Domain> = table::find(domain, Object::domain)?;
        let left = domain.loaded()?.steps_left()?;
        place.write(left.ok_or_else(|| Failure::argument("its steps are not limited"))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_prometheus(path: *const c_char) -> Status {
    guarded(|| {
        // SAFETY: `path` is null or a string that stays as it is for the call, by mullion.h.
        let path = file_of(unsafe { string(path) }?);
        let written = std::fs::write(&path, mullion_host::prometheus());
        written
            .map_err(|error| Failure::with(CANNOT_WRITE, &format!("{}: {error}", path.display())))
    })
}

/// `mullion_text_function`.
type Text = unsafe extern "C" fn(*mut std::ffi::c_void, *const c_char, usize);

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_prometheus_text(
    take: Option<Text>,
    user: *mut std::ffi::c_void,
) -> Status {
    guarded(|| {
        let take = take.ok_or_else(Failure::null)?;
        let text = mullion_host::prometheus();
        let length = text.len();
        // What reads it as a string finds an end.
        let text = text + "\0";
        // SAFETY: `take` may be called with `user` for this call, by mullion.h; the text stays until it returns.
        unsafe { take(user, text.as_ptr().cast(), length) };
        Ok(())
    })
}
