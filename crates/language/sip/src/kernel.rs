//! The kernel's interface: a versioned table of plain calls.
//!
//! Code that is linked with this crate calls its functions. The table is the same set for code that was built on its
//! own and shares nothing with the host but memory. It only ever grows at its end: who knows version `n` finds its
//! entries unchanged in every later one of the same major number. In C it is `include/mullion_kernel.h`; what each call
//! does, takes, answers and costs is in `docs/sip-kernel.md`.
//!
//! ```text
//!   read       what callers point to              refusal    what calls answer
//!   offered    contracts, programs by number      ends       ends of channels by number
//!   channels   messages as bytes                  names, processes, time
//! ```
//! Code without types names things by numbers, and each number is held against a table before it is used: any number
//! is harmless. Pointers are the caller's memory; null and misaligned ones are refused, others are believed, as the
//! language that the caller was compiled from promises. Messages are bytes, in the form of
//! [`exchange::wire`](mullion_sip_exchange::exchange::wire), and held against the contract as those of other OS processes are.

mod channels;
pub(crate) mod ends;
mod names;
pub(crate) mod offered;
mod processes;
mod read;
mod refusal;
pub(crate) mod time;

use std::fmt;

use crate::inner::CORE;
use crate::state;
use mullion_sip_core::owner;
use mullion_sip_core::thread::{self, ThreadError};
use mullion_sip_core::wait::{self, Waiter};

pub use channels::{Channel, WAITS};
pub use ends::{ENDS, number_of};
pub use offered::Argument;
pub use processes::{ProcessEnd, ProcessStatistics, Wish};
pub use refusal::Refusal;

pub(crate) use ends::{HOOKS, reserve};

/// Major and minor number, 16 bits each. A major number changes when an entry changes.
pub const VERSION: u32 = 1 << 16 | 2;

/// The table. Times are in nanoseconds since the kernel's first use, and a deadline of `u64::MAX` never comes; numbers of
/// processes are [`Owner::to_bits`](mullion_sip_core::owner::Owner::to_bits), waiters [`Waiter::to_bits`]. Calls that give a `u32`
/// give 0, or the number of a [`Refusal`] and have done nothing then.
///
/// # Safety of calls
/// A pointer is null, or points to as much memory as the call says, which nobody else uses meanwhile.
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
    /// Waits to be woken, at most until a time.
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

    // From version 1.2 on.
    /// The number of a contract that the host has offered, by its digest of 32 bytes.
    // SAFETY: asked of the caller: 32 bytes can be read at `digest`, and a number written at `number`; nulls are refused.
    pub contract: unsafe extern "C" fn(digest: *const u8, number: *mut u32) -> u32,
    /// A new channel: the numbers of its client's and its server's end.
    // SAFETY: asked of the caller: numbers can be written at `client` and `server`, or they are null, which is refused.
    pub create_channel:
        unsafe extern "C" fn(contract: u32, client: *mut u64, server: *mut u64) -> u32,
    /// What is known of an end.
    // SAFETY: asked of the caller: a `Channel` can be written at `about`, or it is null, which is refused.
    pub channel: unsafe extern "C" fn(channel: u64, about: *mut Channel) -> u32,
    /// Sends a message, by its number in the contract, with these bytes as its payload. Never waits. After the contract's
    /// last message the end is closed.
    // SAFETY: asked of the caller: `length` bytes can be read at `bytes`, or it is null, which is refused.
    pub send:
        unsafe extern "C" fn(channel: u64, message: u32, bytes: *const u8, length: usize) -> u32,
    /// Waits for a message: its number, and its payload as bytes. One for which `room` is too small stays.
    // SAFETY: asked of the caller: `room` bytes can be written at `bytes`, and a number at each of the others; nulls are refused.
    pub receive: unsafe extern "C" fn(
        channel: u64,
        deadline: u64,
        message: *mut u32,
        bytes: *mut u8,
        room: usize,
        length: *mut usize,
    ) -> u32,
    /// Waits until one of at most [`WAITS`] ends has a message or has lost its peer: its index.
    // SAFETY: asked of the caller: `count` numbers can be read at `channels`, and one written at `index`; nulls are refused.
    pub wait_any: unsafe extern "C" fn(
        channels: *const u64,
        count: usize,
        deadline: u64,
        index: *mut usize,
    ) -> u32,
    /// Closes an end.
    pub close: extern "C" fn(channel: u64) -> u32,
    /// Gives the process a name, at which it takes channels of a contract.
    // SAFETY: asked of the caller: `length` bytes can be read at `path`, or it is null, which is refused.
    pub bind: unsafe extern "C" fn(path: *const u8, length: usize, contract: u32) -> u32,
    /// Takes a name of the process away.
    // SAFETY: asked of the caller: `length` bytes can be read at `path`, or it is null, which is refused.
    pub unbind: unsafe extern "C" fn(path: *const u8, length: usize) -> u32,
    /// Waits for the next channel at a name of the process.
    // SAFETY: asked of the caller: `length` bytes can be read at `path`, and a number written at `channel`; nulls are refused.
    pub accept: unsafe extern "C" fn(
        path: *const u8,
        length: usize,
        deadline: u64,
        channel: *mut u64,
    ) -> u32,
    /// Gives the service of a name one end of a channel. If it is refused, the caller keeps it.
    // SAFETY: asked of the caller: `length` bytes can be read at `path`, or it is null, which is refused.
    pub look_up: unsafe extern "C" fn(path: *const u8, length: usize, channel: u64) -> u32,
    /// The number of a program that the host has offered, by its name.
    // SAFETY: asked of the caller: `length` bytes can be read at `name`, and a number written at `number`; nulls are refused.
    pub program: unsafe extern "C" fn(name: *const u8, length: usize, number: *mut u32) -> u32,
    /// A new process, with an argument and, unless `channel` is 0, an end. If no process can be made, the end is closed.
    // SAFETY: asked of the caller: a `Wish` can be read at `wish` unless it is null, and a number written at `child`.
    pub create_process: unsafe extern "C" fn(
        program: u32,
        wish: *const Wish,
        argument: u64,
        channel: u64,
        child: *mut u64,
    ) -> u32,
    /// Ends a child.
    pub kill: extern "C" fn(child: u64) -> u32,
    /// Waits for the end of a child, whose number is nobody's then.
    // SAFETY: asked of the caller: a `ProcessEnd` can be written at `end`, or it is null, which is refused.
    pub wait: unsafe extern "C" fn(child: u64, deadline: u64, end: *mut ProcessEnd) -> u32,
    /// What the calling process (0), or a child of it, uses.
    // SAFETY: asked of the caller: `ProcessStatistics` can be written at `statistics`, or it is null, which is refused.
    pub statistics: unsafe extern "C" fn(process: u64, statistics: *mut ProcessStatistics) -> u32,
}

/// A reference to what copies of this crate share.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct State(pub(crate) &'static state::State);

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "State({:p})", self.0)
    }
}

mullion_sip_core::__state!(
    Kernel = Kernel {
        version: VERSION,
        size: size_of::<Kernel>() as u32,
        process,
        now: time::now,
        yield_now,
        waiter,
        park: time::park,
        unpark,
        allocate_pages,
        release_pages,
        create_thread,
        exit,
        state: State(&state::OWN),
        contract: channels::contract,
        create_channel: channels::create_channel,
        channel: channels::channel,
        send: channels::send,
        receive: channels::receive,
        wait_any: channels::wait_any,
        close: channels::close,
        bind: names::bind,
        unbind: names::unbind,
        accept: names::accept,
        look_up: names::look_up,
        program: processes::program,
        create_process: processes::create_process,
        kill: processes::kill,
        wait: processes::wait,
        statistics: processes::statistics,
    }
);

/// The table of this program.
pub fn kernel() -> &'static Kernel {
    state()
}

extern "C" fn process() -> u64 {
    owner::current().to_bits()
}

extern "C" fn yield_now() {
    thread::yield_now();
}

extern "C" fn waiter() -> u64 {
    wait::current().to_bits()
}

extern "C" fn unpark(waiter: u64) {
    wait::unpark(Waiter::from_bits(waiter));
}

extern "C" fn allocate_pages(bytes: usize) -> *mut u8 {
    CORE.allocate_pages(bytes).unwrap_or(std::ptr::null_mut())
}

extern "C" fn release_pages(pages: *mut u8) {
    CORE.release_pages(pages);
}

extern "C" fn create_thread(body: extern "C" fn(usize), argument: usize) -> u32 {
    match thread::spawn(move || body(argument)) {
        Ok(()) => 0,
        Err(ThreadError::NoProcess) => Refusal::NoProcess as u32,
        Err(ThreadError::TooMany) => Refusal::TooMany as u32,
        Err(ThreadError::NoStack) => Refusal::NoMemory as u32,
        Err(ThreadError::Refused(_)) => Refusal::NotPermitted as u32,
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
        assert_eq!(
            (offset_of!(Kernel, state), offset_of!(Kernel, contract)),
            (88, 96)
        );
        assert_eq!((kernel().version, kernel().size), (0x1_0002, 224));
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
