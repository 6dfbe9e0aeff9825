//! Threads come and go: each gets a control block at its first call, and gives it back at its end.

use crate::alternate::{AlternateStack, Retired};
use crate::control_stack::{self, ALTERNATE};
use crate::tcb::{self, Tcb};
use crate::{deadline, runtime, thread_end};
use mullion_report::error::Error;
use std::ptr::{self, NonNull};

thread_local! {
    static OWNER: Owner = const { Owner };
}

/// Gives the thread's region back when the thread ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() {
    // A thread like any other, until that is done.
    if let Some(tcb) = tcb::current() {
        thread_end::run(tcb);
    }
    let tcb = tcb::set_current(ptr::null());
    if let Some(tcb) = NonNull::new(tcb.cast_mut()) {
        release(tcb);
    }
}

/// Gives back what the calling thread has of domains, and calls those that want to know, as the thread's end does.
/// This is for a thread that is about to end, before it says that it has done its work. A call that comes
/// nevertheless is the thread's first again. Nothing happens within a call.
pub fn leave_thread() {
    if tcb::current().is_some_and(Tcb::is_outside) {
        leave();
    }
}

/// The current thread's control block, made if it has none.
#[inline]
pub(crate) fn current_or_new() -> Result<&'static Tcb, Error> {
    match tcb::current() {
        Some(tcb) => Ok(tcb),
        None => register(),
    }
}

/// Makes the calling thread ready to enter domains, as its first call does. Its alternate signal stack is in force.
/// The signals that the run time needs are open (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the one of time
/// limits). SIGSEGV is opened in the process's handlers without SA_ONSTACK too, as when the first domain is made.
///
/// For a host that changes either after the thread's first call, before the next one.
///
/// # Errors
/// [`Error::InHandler`], or one of the kernel's.
pub fn prepare_thread() -> Result<(), Error> {
    current_or_new()?.prepare()?;
    mullion_signals::open_in_handlers(libc::SIGSEGV);
    Ok(())
}

/// Whether the host functions that run on this thread are still there: for who keeps something of
/// theirs on its stack.
///
/// # Errors
/// [`Error::Abandoned`]: one was left by `longjmp` or the like, and not by its return.
#[inline]
pub fn check_thread() -> Result<(), Error> {
    tcb::current().map_or(Ok(()), Tcb::check_nesting)
}

/// Has no domain entered on this thread any more ([`Error::Abandoned`]), if it is in a gate call. It is for who sees that
/// the host function is being left by `longjmp` or the like.
pub fn abandon_thread() {
    if let Some(tcb) = tcb::current() {
        tcb.abandon();
    }
}

#[cold]
fn register() -> Result<&'static Tcb, Error> {
    let kind = runtime::get()?;
    let foot = control_stack::take()?;
    let place: *mut Tcb = ptr::with_exposed_provenance_mut(foot as usize);
    // SAFETY: the part of the region that is for this; only the thread that has the
    // region uses it, and it goes to another one only when it is free (`release`).
    let alternate = unsafe { AlternateStack::new(foot + ALTERNATE.start..foot + ALTERNATE.end) };
    // SAFETY: the first page of the region is readable, writable, large enough
    // and aligned, and belongs to this thread alone.
    let tcb: &'static Tcb = unsafe {
        place.write(Tcb::new(foot, kind, alternate));
        &*place
    };
    if let Err(error) = tcb.prepare() {
        // Nobody has seen the block, and nothing of it owns anything.
        control_stack::put_back(foot);
        return Err(error);
    }
    deadline::add(tcb);
    tcb::set_current(tcb);
    // Not there any more if the thread is ending: then its region is not used again.
    let _ = OWNER.try_with(|_| ());
    Ok(tcb)
}

/// The thread ends: gives back what it had.
fn release(tcb: NonNull<Tcb>) {
    // SAFETY: the block is this thread's, which runs nothing in a domain any
    // more, as its local variables are being dropped.
    let block = unsafe { tcb.as_ref() };
    deadline::remove(block);
    let retired = block.alternate.retire();
    let foot = block.foot();
    block.close_reserve();
    // SAFETY: nobody refers to the block any more: no block is the thread's, and the
    // watchdog has forgotten it.
    unsafe { ptr::drop_in_place(tcb.as_ptr()) };
    control_stack::clear(foot);
    if retired == Retired::Free {
        control_stack::put_back(foot);
    }
}
