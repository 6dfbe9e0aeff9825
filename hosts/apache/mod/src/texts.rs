//! Strings of a request that a policy lets the module change in their place, as `request_rec.filename.characters`.

use crate::apr;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::walled::Walled;

impl Walled {
    /// Grants a string of a request whose characters the policy lets the module change.
    pub(crate) fn demand_text(&'static self, frame: &Frame, at: u64) -> bool {
        for r in frame.requests() {
            for field in &self.texts {
                // SAFETY: the core's request. A string of another module is that one's, and is not granted.
                let (text, pool) = unsafe { (read(r + field), read(r + layout::R_POOL)) };
                if text == 0 || text > at || crate::load::owner(self, text).is_some() {
                    continue;
                }
                // SAFETY: the core's strings end with a zero.
                let bytes = unsafe { apr::text(text) }.len() as u64 + 1;
                if at - text < bytes {
                    return self.lend(frame, pool, text, bytes).is_ok();
                }
            }
        }
        false
    }
}
