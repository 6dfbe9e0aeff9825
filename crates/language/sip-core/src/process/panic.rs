//! A panic ends its process, without unwinding.
//!
//! ```text
//!   panic! -> hook: notes what was said, puts the standard library's count of panics right, and returns,
//!             since the library holds a lock around it
//!          -> the library allocates the exception: from here the process leaves for good
//! ```
//! The count is per OS thread, so if it stayed, the worker's other processes would be taken to be panicking. A
//! process may be ended otherwise while it panics, for example in the `Display` of its message. Then [`settle`] has
//! to put the count right, and the hook's lock stays held by a reader. The hook can still be read, but setting
//! another hook would wait for ever. So hosts set theirs before they start workers.

use std::fmt::Write;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::exit::{Cause, Message};
use crate::thread::here;

/// Sets the hook, once. Panics outside of processes go to the hook that was set before.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| said(info, &before)));
    });
}

/// To standard error, if anybody listens: `eprintln!` would panic in the middle of a panic, which ends the host.
fn say(words: std::fmt::Arguments<'_>) {
    let _unheard = std::io::Write::write_fmt(&mut std::io::stderr(), words);
}

/// The hook of a separately built SIP, whose standard library is its own. It owns no memory, so that a SIP that
/// takes it away does no harm to its next life.
#[cfg(feature = "separate")]
pub(crate) fn install_alone() {
    panic::set_hook(Box::new(|info| {
        said(info, &|info| {
            say(format_args!("mullion: outside of any process: {info}\n"));
        });
    }));
}

fn said(info: &PanicHookInfo, outside: &dyn Fn(&PanicHookInfo)) {
    match here::running() {
        // A critical piece is the kernel's: its panic is the host's end, not the process's.
        Some(_) if here::in_critical_piece() => {
            say(format_args!(
                "mullion: the kernel of processes failed: {info}\n"
            ));
            std::process::abort();
        }
        Some((worker, _)) => {
            here::leave_at_next_allocation(worker);
            worker.set_message(message(info));
            // SAFETY: the thread that runs panics. The scheduler's stack has room, whatever is left here.
            unsafe { worker.on_scheduler_stack(count_one_less) };
        }
        None => outside(info),
    }
}

fn message(info: &PanicHookInfo) -> Message {
    let mut message = Message::EMPTY;
    let said = info.payload_as_str().unwrap_or("a value that is not text");
    // Writing to a message does not fail; it cuts.
    let _ = match info.location() {
        Some(at) => write!(message, "{}:{}: {said}", short(at.file()), at.line()),
        None => message.write_str(said),
    };
    message
}

/// The end of a path: its last 40 bytes at most.
fn short(path: &str) -> &str {
    &path[path.ceil_char_boundary(path.len().saturating_sub(40))..]
}

/// Runs the body of a thread. A panic gets here only if the process has replaced the hook; it ends all the same.
pub(crate) fn contain(body: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
        // Dropping it would run the process's code.
        std::mem::forget(payload);
        here::die(Cause::Panic);
    }
}

/// On the scheduler's stack, after a process has been ended wherever it was: no panic is in progress any more.
pub(crate) fn settle() {
    if std::thread::panicking() {
        count_one_less();
    }
}

/// The standard library (1.95, `panic_count`) lets `resume_unwind` in a panic hook add nothing to the OS
/// thread's count, while catching it takes one away and marks the hook as left. The tests panic in many ways
/// and then look at `thread::panicking`.
extern "sysv64" fn count_one_less() {
    let heap = here::replace_heap(None);
    let _ = panic::catch_unwind(|| panic::resume_unwind(Box::new(())));
    here::replace_heap(heap);
}
