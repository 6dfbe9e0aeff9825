//! Answers of requests in which a filter was stopped. Many handlers ignore what filters return, and the page that
//! tells of the error passes the same filter. So an error alone would leave the client without an answer.
//!
//! ```text
//!   stopped filter ──► out of the chain ──► an error bucket to the next filters
//!        nothing was sent yet: the core answers 500      something was: the connection is closed behind it
//! ```

use crate::apr;
use crate::deeds;
use crate::interface::{Back, Ends};
use crate::layout::{self, read};
use crate::rings::{RING, append};
use crate::walled::Walled;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// `AP_FILTER_ERROR`: the filter has seen to the answer.
const FILTER_ERROR: u64 = -3i64 as u64;
const INTERNAL_ERROR: c_int = 500;
/// With it the core ends neither a body of a known length nor one of chunks.
const BAD_GATEWAY: c_int = 502;
const OK: u32 = 200;
/// `AP_FTYPE_RESOURCE`.
const RESOURCE: c_int = 10;

/// So many filters and requests of a chain are looked at.
const CHAIN: usize = 256;

/// Our filter's record.
static REFUSING: AtomicU64 = AtomicU64::new(0);

/// The core forgets filters when it reads its configuration again.
pub(crate) fn register() {
    let filter = refuse as *const () as usize;
    // SAFETY: the filter stays, and the name ends with a zero.
    let record =
        unsafe { apr::ap_register_output_filter(c"mullion-stopped".as_ptr(), filter, 0, RESOURCE) };
    REFUSING.store(record, Ordering::Relaxed);
}

/// A request in which an `insert_filter` or a `create_request` was stopped is not answered without what the module would do.
extern "C" fn refuse(filter: u64, brigade: u64) -> u64 {
    end(filter, brigade)
}

/// The answer of a call that is not made: the module was stopped in this request before.
#[inline(always)]
pub(crate) fn before(walled: &Walled, kind: &Back, arguments: &[u64]) -> Option<u64> {
    match walled.deeds.has(deeds::STOPPED) && kind.ends == Ends::OutputFilter {
        true => passed_by(walled, arguments),
        false => None,
    }
}

/// The same for an output filter of a module of which one was stopped, in this request or another.
fn passed_by(walled: &Walled, arguments: &[u64]) -> Option<u64> {
    let (filter, brigade) = (arguments[0], arguments[1]);
    // SAFETY: the core passes a filter, with its request or none.
    let r = unsafe { read(filter + layout::F_R) };
    // SAFETY: it is the core's request.
    if r == 0 || !walled.was_stopped(r, unsafe { read(r + layout::R_POOL) }) {
        return None;
    }
    // The page that tells of the error, which the core begins anew.
    // SAFETY: the core passes a filter of a chain and a brigade.
    unsafe {
        let next = read(filter + layout::F_NEXT);
        apr::ap_remove_output_filter(filter);
        Some(apr::ap_pass_brigade(next, brigade) as u64)
    }
}

/// A call was stopped: what it answers, if it is not the kind's own error.
pub(crate) fn behind(walled: &'static Walled, kind: &Back, arguments: &[u64]) -> Option<u64> {
    match kind.ends {
        Ends::OutputFilter => {
            let (filter, brigade) = (arguments[0], arguments[1]);
            // SAFETY: the core passes a filter; requests and what they are parts of are the core's, and no module writes these fields.
            unsafe {
                let whole = |r: &u64| Some(read(r + layout::R_MAIN)).filter(|r| *r != 0);
                let r = Some(read(filter + layout::F_R)).filter(|r| *r != 0);
                for r in std::iter::successors(r, whole).take(CHAIN) {
                    walled.note_stopped(r, read(r + layout::R_POOL));
                }
            }
            Some(end(filter, brigade))
        }
        Ends::Insert | Ends::Create => {
            let (r, record) = (arguments[0], REFUSING.load(Ordering::Relaxed));
            // SAFETY: the core passes a request, and has made the record.
            unsafe {
                let status = read(r + layout::R_STATUS) as u32;
                if (status == OK || kind.ends == Ends::Create) && record != 0 {
                    apr::ap_add_output_filter_handle(record, 0, r, read(r + layout::R_CONNECTION));
                }
            }
            None
        }
        Ends::Plain => None,
    }
}

/// `ap_http_header_filter_handle`, which the core exports.
fn header_record() -> u64 {
    static AT: OnceLock<Option<usize>> = OnceLock::new();
    let at = *AT.get_or_init(|| apr::symbol("ap_http_header_filter_handle"));
    // SAFETY: it is the core's variable.
    at.map_or(0, |at| unsafe { read(at as u64) })
}

/// Whether the header of an answer is still to be sent, behind this filter.
///
/// # Safety
/// It is a filter of a chain of the core's, or null.
unsafe fn is_unsent(filter: u64) -> bool {
    let record = header_record();
    // SAFETY: by the caller; modules write nothing of filters but their `ctx`.
    let next = |f: &u64| Some(unsafe { read(f + layout::F_NEXT) }).filter(|f| *f != 0);
    let all = std::iter::successors(Some(filter).filter(|f| *f != 0), next).take(CHAIN);
    // SAFETY: as before: the first word of a filter is its record.
    record != 0 && all.into_iter().any(|f| unsafe { read(f) } == record)
}

/// Ends an answer at a filter that is in its chain.
fn end(filter: u64, brigade: u64) -> u64 {
    const CLOSE: u32 = 0;
    // SAFETY: the core passes a filter of a chain and a brigade. What is made here goes with the connection or the request.
    unsafe {
        let (next, c) = (read(filter + layout::F_NEXT), read(filter + layout::F_C));
        let first = read(filter + layout::F_R);
        if brigade != 0 {
            apr::apr_brigade_cleanup(brigade);
        }
        apr::ap_remove_output_filter(filter);
        ((c + layout::C_KEEPALIVE) as *mut u32).write(CLOSE);
        if first == 0 {
            // A filter of the connection: there is nothing that could be answered.
            ((c + layout::C_ABORTED) as *mut u32).write(read(c + layout::C_ABORTED) as u32 | 1);
            return FILTER_ERROR;
        }
        let whole = |r: &u64| Some(read(r + layout::R_MAIN)).filter(|r| *r != 0);
        let r = std::iter::successors(Some(first), whole).take(CHAIN);
        let r = r.last().unwrap_or(first);
        let (pool, allocator) = (read(r + layout::R_POOL), read(c + layout::C_BUCKET_ALLOC));
        let pass = |to: u64, buckets: &[u64]| {
            let brigade = apr::apr_brigade_create(pool, allocator);
            buckets
                .iter()
                .for_each(|bucket| append(brigade + RING, *bucket));
            apr::ap_pass_brigade(to, brigade);
            apr::apr_brigade_cleanup(brigade);
        };
        let status = match is_unsent(next) {
            true => INTERNAL_ERROR,
            false => BAD_GATEWAY,
        };
        let error = apr::ap_bucket_error_create(status, 0, pool, allocator);
        pass(next, &[error, apr::apr_bucket_eos_create(allocator)]);
        // A handler that goes on sends nothing more. If no filter has taken the error, what it returns makes the answer.
        let rest = read(r + layout::R_PROTO_OUTPUT_FILTERS);
        if !is_unsent(rest) {
            pass(rest, &[apr::ap_bucket_eoc_create(allocator)]);
        }
        FILTER_ERROR
    }
}
