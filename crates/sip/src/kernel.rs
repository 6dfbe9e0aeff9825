//! The kernel's interface: a versioned table of plain calls.
//!
//! Code that is linked with this crate calls its functions; the table is the same set for code that was built
//! on its own and shares nothing with the host but memory. It only ever grows at its end: who knows version
//! `n` finds its entries unchanged in every later one of the same major number.

use std::fmt;
use std::time::{Duration, Instant};

use crate::heap;
use crate::owner;
use crate::shared::{OWN, Shared, shared};
use crate::thread::{self, ThreadError};
use crate::wait::{self, Waiter};

/// Major and minor number, 16 bits each. A major number changes when an entry changes.
pub const VERSION: u32 = 1 << 16 | 1;

/// The table. Times are in nanoseconds since the kernel's first use; numbers of processes are
/// [`Owner::to_bits`](crate::owner::Owner::to_bits), waiters [`Waiter::to_bits`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// [`VERSION`] of who made the table.
    pub version: u32,
    /// Bytes of the table that there are.
    pub size: u32,
    /// The calling process.
    pub process: extern "C" fn() -> u64,
    /// The time.
    pub now: extern "C" fn() -> u64,
    /// Lets other threads run.
    pub yield_now: extern "C" fn(),
    /// The calling thread, to be woken by.
    pub waiter: extern "C" fn() -> u64,
    /// Waits to be woken, at most until a time; `u64::MAX` for no limit.
    pub park: extern "C" fn(deadline: u64),
    /// Wakes a thread.
    pub unpark: extern "C" fn(waiter: u64),
    /// Pages of the process's heap, holding anything; null if its limit does not allow them, or in no process.
    pub allocate_pages: extern "C" fn(bytes: usize) -> *mut u8,
    /// Gives pages back, named by their first byte.
    /// Calling it with anything but what `allocate_pages` gave to this process does nothing.
    pub release_pages: extern "C" fn(pages: *mut u8),
    /// A new thread of the process that calls `body` with `argument`: 0, or the number of the refusal.
    pub create_thread: extern "C" fn(body: extern "C" fn(usize), argument: usize) -> u32,
    /// Ends the process with a status.
    pub exit: extern "C" fn(status: u8) -> !,
    /// What copies of this crate share, for those of the same build ([`crate::manifest::Build`]).
    pub state: State,
}

/// A reference to what copies of this crate share.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct State(pub(crate) &'static Shared);

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "State({:p})", self.0)
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    version: VERSION,
    size: size_of::<Kernel>() as u32,
    process,
    now,
    yield_now,
    waiter,
    park,
    unpark,
    allocate_pages,
    release_pages,
    create_thread,
    exit,
    state: State(&OWN),
};

/// The table of this program.
pub fn kernel() -> &'static Kernel {
    shared().kernel
}

extern "C" fn process() -> u64 {
    owner::current().to_bits()
}

/// When the kernel was first used.
fn beginning() -> Instant {
    *shared().beginning.get_or_init(Instant::now)
}

extern "C" fn now() -> u64 {
    beginning().elapsed().as_nanos() as u64
}

extern "C" fn yield_now() {
    thread::yield_now();
}

extern "C" fn waiter() -> u64 {
    wait::current().to_bits()
}

extern "C" fn park(deadline: u64) {
    match beginning().checked_add(Duration::from_nanos(deadline)) {
        Some(time) if deadline != u64::MAX => wait::park_until(time),
        _ => wait::park(),
    }
}

extern "C" fn unpark(waiter: u64) {
    wait::unpark(Waiter::from_bits(waiter));
}

extern "C" fn allocate_pages(bytes: usize) -> *mut u8 {
    heap::allocate_pages(bytes).unwrap_or(std::ptr::null_mut())
}

extern "C" fn release_pages(pages: *mut u8) {
    heap::release_pages(pages);
}

extern "C" fn create_thread(body: extern "C" fn(usize), argument: usize) -> u32 {
    match thread::spawn(move || body(argument)) {
        Ok(()) => 0,
        Err(ThreadError::NoProcess) => 1,
        Err(ThreadError::TooMany) => 2,
        Err(ThreadError::NoStack) => 3,
    }
}

extern "C" fn exit(status: u8) -> ! {
    crate::process::exit(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_table_is_what_version_1_says() {
        assert_eq!(
            (offset_of!(Kernel, process), offset_of!(Kernel, exit)),
            (8, 80)
        );
        assert_eq!((kernel().version, kernel().size), (0x1_0001, 96));
    }

    #[test]
    fn the_host_has_threads_and_pages_of_its_own() {
        extern "C" fn body(_: usize) {}
        assert_eq!((kernel().process)(), 0);
        assert!((kernel().allocate_pages)(1).is_null());
        assert_eq!((kernel().create_thread)(body, 0), 1);
        (kernel().release_pages)(std::ptr::null_mut());
        (kernel().unpark)((kernel().waiter)());
        (kernel().park)(u64::MAX);
        (kernel().park)((kernel().now)());
    }
}
