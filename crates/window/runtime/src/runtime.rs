//! What is set up once per process.

use crate::error::Error;
use crate::signals;
use crate::trampoline::Kind;
use crate::x87;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bit of `AT_HWCAP2`: user code may use `wrgsbase`.
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// The process's run time.
pub(crate) struct Runtime {
    pub(crate) kind: Kind,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The run time, set up if it was not.
pub(crate) fn get() -> Result<&'static Runtime, Error> {
    match RUNTIME.get() {
        Some(runtime) => Ok(runtime),
        None => set_up(),
    }
}

/// The run time, if it has been set up. For signal handlers too.
pub(crate) fn if_set_up() -> Option<&'static Runtime> {
    RUNTIME.get()
}

#[cold]
fn set_up() -> Result<&'static Runtime, Error> {
    static ONCE: Mutex<()> = Mutex::new(());
    let _once = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    // SAFETY: getauxval reads a table that the kernel made.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err(Error::NoFsgsbase);
    }
    let kind = Kind::detect();
    let runtime = RUNTIME.get_or_init(|| Runtime { kind });
    x87::set_up();
    signals::install()?;
    Ok(runtime)
}
