//! What the calls are answered with: a program, as the trusted half shows it.
//!
//! Each function is checked behind these traits, whatever is said here: nothing of what it does depends on this crate
//! having looked at anything before.

use crate::errno::CallStop;
use crate::handle::{Handle, STAT};
use crate::locked::{FileLock, LockKind};
use crate::state::ProgramState;
use alloc::vec::Vec;

/// Seconds, and nanoseconds of the next one.
pub type Moment = (i64, i64);

/// One of the three streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

/// What may be done with pages. There are none to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// They are read.
    Read,
    /// They are read and written.
    ReadWrite,
}

/// A name in one of the granted directories, by its number in [`ProgramState::new`].
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Which directory.
    pub directory: usize,
    /// The path beneath it; empty: the directory itself.
    pub name: &'a str,
}

/// An entry of a directory.
#[derive(Debug)]
pub struct DirectoryEntry<'a> {
    /// Its file's number.
    pub inode: u64,
    /// Where the next one is.
    pub next: u64,
    /// As Linux has it: 4 a directory, 8 a file, 10 a link, 0 something else.
    pub kind: u8,
    /// Its name, and a zero byte.
    pub name: &'a [u8],
}

/// A program that has made a call.
pub trait Program: Memory + Files + Locks + Directories + Clocks + Threads {
    /// Linux' number of the call.
    fn number(&self) -> u64;

    /// The arguments.
    fn arguments(&self) -> [u64; 6];

    /// Bytes of the data stack.
    fn stack_size(&self) -> u64;

    /// How many data stacks a program has at most.
    fn most_stacks(&self) -> u64;

    /// Has `change` change the program's state, while nobody else does.
    fn with_state(&self, change: &mut dyn FnMut(&mut ProgramState));

    /// Fills `bytes` with random ones.
    fn random(&self, bytes: &mut [u8]) -> Result<(), CallStop>;

    /// Lets other threads run; an error, if another call has ended the program.
    fn wait_a_moment(&self) -> Result<(), CallStop>;

    /// Whether the program's time is up: what goes on for long ends early then.
    fn is_out_of_time(&self) -> bool;
}

/// The program's own memory, by its addresses.
pub trait Memory {
    /// Copies out of it.
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), CallStop>;

    /// Copies a text out of it that ends with a zero byte; `None`: it is longer than `most`.
    fn read_string(&self, at: u64, most: usize) -> Result<Option<Vec<u8>>, CallStop>;

    /// Copies into it.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), CallStop>;

    /// Moves the heap's end if that can be; where it is then.
    fn set_heap_end(&self, end: u64) -> u64;

    /// Maps fresh pages, here or anywhere.
    fn map(&self, at: Option<u64>, length: u64, access: Access) -> Result<u64, CallStop>;

    /// Unmaps pages.
    fn unmap(&self, at: u64, length: u64) -> Result<(), CallStop>;

    /// Changes what may be done with pages.
    fn protect(&self, at: u64, length: u64, access: Access) -> Result<(), CallStop>;

    /// Makes pages zero.
    fn discard(&self, at: u64, length: u64) -> Result<(), CallStop>;

    /// What may be done with all of these pages.
    fn mapped_as(&self, at: u64, length: u64) -> Result<Access, CallStop>;
}

/// What the program has open.
pub trait Files {
    /// The stream that it is, if it is one: to read from it may be to wait.
    fn as_stream(&self, handle: &Handle) -> Option<Stream>;

    /// Moves bytes between it and the program's memory, from or to a position or where it is.
    fn transfer(
        &self,
        handle: &Handle,
        memory: (u64, u64),
        write: bool,
        position: Option<i64>,
    ) -> Result<u64, CallStop>;

    /// Goes to a place: from the beginning (0), from where it is (1), from the end (2).
    fn seek(&self, handle: &Handle, offset: i64, whence: i32) -> Result<u64, CallStop>;

    /// `fstat`.
    fn stat_open(&self, handle: &Handle) -> Result<[u8; STAT], CallStop>;

    /// Whether a read of a stream would not wait; waits so many milliseconds for that, and 100 at most.
    fn wait_ready(&self, handle: &Handle, milliseconds: u32) -> Result<bool, CallStop>;

    /// Rows, columns and their dots, if it is a terminal.
    fn window_size(&self, handle: &Handle) -> Result<[u16; 4], CallStop>;

    /// How it is open.
    fn flags(&self, handle: &Handle) -> Result<u32, CallStop>;

    /// Says whether what is written to a file goes to its end. A stream, which others have open too, stays as it is.
    fn set_appends(&self, handle: &Handle, appends: bool) -> Result<(), CallStop>;

    /// Gives a file this length.
    fn set_open_length(&self, handle: &Handle, length: u64) -> Result<(), CallStop>;

    /// Gives a file these times: of the last access, and of the last change.
    fn set_open_times(&self, handle: &Handle, times: [Moment; 2]) -> Result<(), CallStop>;

    /// fchmod.
    fn set_open_mode(&self, handle: &Handle, mode: u32) -> Result<(), CallStop>;

    /// Waits until it is on the disk.
    fn sync(&self, handle: &Handle) -> Result<(), CallStop>;

    /// Entries of a directory, as many as fit into `room` bytes.
    fn entries(
        &self,
        handle: &Handle,
        room: usize,
        each: &mut dyn FnMut(DirectoryEntry<'_>),
    ) -> Result<(), CallStop>;
}

/// Locks of files. Nothing here waits.
pub trait Locks {
    /// Locks a piece of a file for its open file, or unlocks it. `AGAIN`: another open file's lock hinders it.
    /// `NOLCK`: the file lies in a directory for reading only.
    fn lock(&self, handle: &Handle, lock: FileLock) -> Result<(), CallStop>;

    /// A lock of another open file that hinders this one.
    fn hindrance(&self, handle: &Handle, lock: FileLock) -> Result<Option<FileLock>, CallStop>;

    /// Locks all of a file for its open file (`flock`). Errors as those of [`Locks::lock`].
    fn lock_open(&self, handle: &Handle, kind: LockKind) -> Result<(), CallStop>;

    /// Lets a moment pass; an error, if another call has ended the program.
    fn wait_for_lock(&self) -> Result<(), CallStop>;
}

/// The directories that were granted.
pub trait Directories {
    /// Whether there are any.
    fn has_directories(&self) -> bool;

    /// open, with Linux' flags; whether it is a directory.
    fn open(&self, place: Place<'_>, flags: u32, mode: u32) -> Result<(Handle, bool), CallStop>;

    /// That a directory has this name.
    fn is_directory(&self, place: Place<'_>) -> Result<(), CallStop>;

    /// stat, or lstat.
    fn stat(&self, place: Place<'_>, follow: bool) -> Result<[u8; STAT], CallStop>;

    /// access.
    fn access(&self, place: Place<'_>, wanted: u32) -> Result<(), CallStop>;

    /// mkdir.
    fn make_directory(&self, place: Place<'_>, mode: u32) -> Result<(), CallStop>;

    /// unlink, or rmdir.
    fn remove(&self, place: Place<'_>, directory: bool) -> Result<(), CallStop>;

    /// rename.
    fn rename(&self, from: Place<'_>, to: Place<'_>) -> Result<(), CallStop>;

    /// readlink.
    fn read_link(&self, place: Place<'_>) -> Result<Vec<u8>, CallStop>;

    /// link: another name of the same file.
    fn link(&self, from: Place<'_>, to: Place<'_>) -> Result<(), CallStop>;

    /// symlink, to a path that stays beneath the directory.
    fn make_link(&self, target: &[u8], place: Place<'_>) -> Result<(), CallStop>;

    /// truncate.
    fn set_length(&self, place: Place<'_>, length: u64) -> Result<(), CallStop>;

    /// chmod.
    fn set_mode(&self, place: Place<'_>, mode: u32) -> Result<(), CallStop>;

    /// utimensat, without following a link.
    fn set_times(&self, place: Place<'_>, times: [Moment; 2]) -> Result<(), CallStop>;
}

/// The clocks.
pub trait Clocks {
    /// Whether they were granted.
    fn has_clocks(&self) -> bool;

    /// What the clock of this number shows, as Linux numbers them.
    fn now(&self, clock: i32) -> Result<Moment, CallStop>;

    /// How fine it is.
    fn resolution(&self, clock: i32) -> Result<Moment, CallStop>;

    /// Sleeps, until the program's own time is up.
    fn sleep(&self, moment: Moment) -> Result<(), CallStop>;
}

/// Threads of the program's own.
pub trait Threads {
    /// Whether they were granted.
    fn has_threads(&self) -> bool;

    /// Starts a thread that enters the program at `entry` with one argument. Its number, from 2 on, is written to
    /// `number_to` first. `AGAIN`: there are as many as were granted.
    fn start_thread(&self, entry: u64, argument: u64, number_to: u64) -> Result<u64, CallStop>;

    /// Sleeps until somebody wakes whoever waits at this address, unless another value is found there: `AGAIN`.
    /// `TIMEDOUT`: it was not within this time.
    fn wait_at(&self, at: u64, value: u32, at_most: Option<Moment>) -> Result<(), CallStop>;

    /// Wakes so many that wait at this address, those first that came first; how many there were.
    fn wake_at(&self, at: u64, count: u32) -> Result<u64, CallStop>;
}
