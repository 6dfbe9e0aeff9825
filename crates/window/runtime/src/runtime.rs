//! What is set up once per process.

use crate::assembly::Kind;
use crate::{deadline, other_wall, signals, watchdog, x87};
use mullion_report::error::Error;
use std::sync::{Mutex, PoisonError};

/// Bit of `AT_HWCAP2`: user code may use `wrgsbase`.
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// The trampolines, in a process that is set up now if it was not.
pub(crate) fn get() -> Result<&'static Kind, Error> {
    match Kind::if_known() {
        Some(kind) => Ok(kind),
        None => set_up(),
    }
}

#[cold]
fn set_up() -> Result<&'static Kind, Error> {
    static ONCE: Mutex<()> = Mutex::new(());
    let _once = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kind) = Kind::if_known() {
        return Ok(kind);
    }
    // SAFETY: getauxval reads a table that the kernel made.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err(Error::NoFsgsbase);
    }
    other_wall::exclude()?;
    let kind = Kind::get();
    x87::set_up();
    deadline::watched_by(watchdog::start);
    signals::install()?;
    Ok(kind)
}
