//! For whom the calling thread works.

use crate::owners::Owner;
use crate::process::Process;
use crate::thread::here;

/// Who the calling thread works for.
#[inline]
pub fn current() -> Owner {
    let process = here::thread().and_then(|thread| thread.process.get());
    process.map_or(Owner::HOST, Process::owner)
}

/// For whom the kernel does what the calling thread asks of it: the process whose thread runs, or the host, if the
/// OS thread has its power or is a worker that runs no process. Nobody else asks for anything.
#[inline]
pub(crate) fn caller() -> Option<Owner> {
    match here::thread() {
        Some(thread) => thread.process.get().map(Process::owner),
        None => (here::is_hosts() || here::worker().is_some()).then_some(Owner::HOST),
    }
}
