//! `SetHandler mullion-map`: who may touch which memory of the process that answers, for `mullion map`.

use crate::apr;
use crate::layout;
use crate::load;
use mullion_picture::SupervisorState;
use std::ffi::c_int;

/// The core's hook for handlers.
pub(crate) extern "C" fn answer(r: u64) -> c_int {
    const DECLINED: c_int = -1;
    // SAFETY: the core passes a request.
    let handler = unsafe { layout::read(r + layout::R_HANDLER) };
    // SAFETY: the core's strings end with a zero.
    if handler == 0 || unsafe { apr::text(handler) } != b"mullion-map" {
        return DECLINED;
    }
    let all = load::all();
    let Some(host) = all.first().map(|walled| walled.host) else {
        return DECLINED;
    };
    let mut state = SupervisorState::from(&host.snapshot()).title("httpd, and its modules");
    for walled in all {
        let name = walled.name.strip_suffix("_module").unwrap_or(&walled.name);
        state = state.name(walled.domain.id(), name);
    }
    let text = state.to_json();
    // SAFETY: it is a request; the text stays as long as the call.
    unsafe {
        apr::ap_set_content_type(r, c"application/json".as_ptr() as u64);
        for piece in text.as_bytes().chunks(1 << 16) {
            apr::ap_rwrite(piece.as_ptr() as u64, piece.len() as c_int, r);
        }
    }
    0
}
