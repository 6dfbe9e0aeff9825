//! The line of the scoreboard that is a connection's own, for modules that serve connections themselves.

use crate::apr;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::walled::Walled;

/// What a policy calls it.
pub(crate) const LINE: &str = "worker_score.own";
/// Bytes of `worker_score`.
const BYTES: u64 = 736;

impl Walled {
    /// Grants the line of a connection that the module was given, if its policy names it.
    pub(crate) fn demand_score(&'static self, frame: &Frame, at: u64) -> bool {
        if !self.keeps_score {
            return false;
        }
        let Some(get) = apr::symbol("ap_get_scoreboard_worker") else {
            return false;
        };
        // SAFETY: it is httpd's function, which finds a line by what the core has put into a connection.
        let get: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(get) };
        let mut lines = frame.connections().filter_map(|c| {
            // SAFETY: it is a connection of the core's.
            let (handle, pool) = unsafe { (read(c + layout::C_SBH), read(c + layout::C_POOL)) };
            (handle != 0).then(|| (get(handle), pool))
        });
        let found = lines.find(|(line, _)| *line != 0 && at.wrapping_sub(*line) < BYTES);
        found.is_some_and(|(line, pool)| self.lend(frame, pool, line, BYTES).is_ok())
    }
}
