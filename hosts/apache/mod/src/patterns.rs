//! Regular expressions that a module keeps in its own memory. The core's is elsewhere, and stands for the module's in each call.

use crate::apr;
use crate::call::mediate;
use crate::object::Kind;
use crate::own::string;
use crate::walled::{Walled, lock};

/// `ap_regex_t`.
const PATTERN: u64 = 24;
/// As `ap_regcomp` answers if the text is no expression.
const INVALID: u64 = 2;

impl Walled {
    /// The core's expression for one in the module's memory.
    pub(crate) fn pattern(&self, at: u64) -> Option<u64> {
        let real = lock(&self.patterns).get(&at).copied();
        real.filter(|real| self.knows(*real, Kind::Regex))
    }
}

/// It lives as long as the pool in which the module has the place for it.
pub(crate) extern "C" fn ap_regcomp(to: u64, text: u64, flags: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, PATTERN)?;
        string(text)?;
        let (pool, ..) = walled
            .block(to)
            .ok_or("ap_regcomp: the place is not a pool's")?;
        let real = apr::symbol("ap_pregcomp").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, and the pool lives, as the module has a block of it.
        let real: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let made = real(pool, text, flags);
        if made == 0 {
            return Ok(INVALID);
        }
        walled.know(frame, Some(pool), made, Kind::Regex)?;
        lock(&walled.patterns).insert(to, made);
        // SAFETY: the module may write there, and sees how many parts the expression has.
        unsafe { (to as *mut [u64; 3]).write((made as *const [u64; 3]).read()) };
        Ok(0)
    })
}
