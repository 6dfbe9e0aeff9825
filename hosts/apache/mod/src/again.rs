//! A module after a fault: its data is as it was when the server began to serve.

use crate::leaving;
use crate::walled::{Walled, lock};

impl Walled {
    /// Remembers its data as it is now, for [`revive`](Self::revive).
    pub(crate) fn remember(&self) {
        let copy = |(at, bytes): &(u64, u64)| {
            // SAFETY: it is the module's memory that can be read and written, and no code of the module runs.
            unsafe { std::slice::from_raw_parts(*at as *const u8, *bytes as usize) }.to_vec()
        };
        *lock(&self.kept) = self.data.iter().map(copy).collect();
    }

    /// After a fault: its data as it was when the server began to serve. What it has in pools it keeps. Waits a while for
    /// calls of other threads: those end when they next leave the module.
    pub(crate) fn revive(&self) -> bool {
        const ROUNDS: u32 = 100;
        // A child that leaves has waited already.
        let rounds = match leaving::is_wanted() {
            true => 1,
            false => ROUNDS,
        };
        let kept = lock(&self.kept);
        // Another thread may have done it meanwhile. A restart of a domain that runs would end its calls.
        if !self.domain.is_ended() {
            return true;
        }
        if kept.is_empty() {
            return false;
        }
        let is_fresh = (0..rounds).any(|round| {
            if round > 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            self.domain.restart().is_ok()
        });
        if !is_fresh {
            return false;
        }
        for ((at, _), bytes) in self.data.iter().zip(kept.iter()) {
            // SAFETY: as above; `restart` has mapped it anew.
            unsafe { (*at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        self.forget_pieces();
        true
    }
}
