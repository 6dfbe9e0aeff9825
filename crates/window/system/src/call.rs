//! One call as the functions of the table see it.

use crate::answer::Stop;
use crate::grants::Grants;
use crate::state::State;
use mullion_runtime::{Access, Claimed, GateCall, MappingError, Memory, Piece};
use rustix::io::Errno;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longest path that is looked at, in bytes, as Linux has it.
const LONGEST_PATH: usize = 4096;

/// A call with its arguments, none of which is checked.
///
/// What an argument points to is copied once, and what is decided and what is done comes from that copy:
/// another thread of the program's may write there at any time. So there is no way to read
/// but [`Call::path`], [`Call::record`] and [`Call::records`], and none of them reads an argument twice.
pub(crate) struct Call<'a, 'b> {
    grants: &'a Grants,
    state: &'a Mutex<State>,
    caller: &'a GateCall<'b>,
    arguments: [u64; 6],
    /// Bit `n`: what argument `n` points to has been read.
    read: Cell<u8>,
}

impl<'a, 'b> Call<'a, 'b> {
    pub(crate) fn new(
        grants: &'a Grants,
        state: &'a Mutex<State>,
        caller: &'a GateCall<'b>,
    ) -> Self {
        Self {
            grants,
            state,
            arguments: caller.integers(),
            caller,
            read: Cell::new(0),
        }
    }

    /// Linux' number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.caller.number()
    }

    pub(crate) fn grants(&self) -> &Grants {
        self.grants
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of the program, for its mappings.
    pub(crate) fn mappings(&self) -> Mappings<'_> {
        Mappings(self.memory())
    }

    fn memory(&self) -> &Memory {
        self.caller.memory()
    }

    /// Argument `index`, 0 to 5; beyond them 0.
    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }

    /// The low half of an argument, as C's `int`.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    pub(crate) fn pointer(&self, index: usize) -> Claimed {
        Claimed(self.argument(index))
    }

    /// Whether another call has ended the domain.
    pub(crate) fn has_ended(&self) -> bool {
        self.caller.has_ended()
    }

    /// Counts what the program is about to write to its output or error.
    pub(crate) fn charge_output(&self, bytes: u64) -> Result<(), Stop> {
        self.caller.charge_output(bytes).map_err(Stop::End)
    }

    /// What argument `index` points to, to be read now: nobody reads it again.
    fn unread(&self, index: usize) -> Result<Claimed, Stop> {
        let read = self.read.get();
        let bit = 1 << index;
        debug_assert_eq!(read & bit, 0, "argument {index} is read twice");
        if read & bit != 0 {
            return Err(Errno::FAULT.into());
        }
        self.read.set(read | bit);
        Ok(self.pointer(index))
    }

    /// A string argument. Not UTF-8 and too long are errors of the program's.
    pub(crate) fn path(&self, index: usize) -> Result<String, Stop> {
        let bytes = self
            .memory()
            .read_string(self.unread(index)?, LONGEST_PATH)?
            .ok_or(Errno::NAMETOOLONG)?;
        String::from_utf8(bytes).map_err(|_| Errno::ILSEQ.into())
    }

    /// The words of a structure that an argument points to.
    pub(crate) fn record<const N: usize>(&self, index: usize) -> Result<[u64; N], Stop> {
        let [record] = self
            .records(index, 1)?
            .try_into()
            .map_err(|_| Errno::FAULT)?;
        Ok(record)
    }

    /// As [`Call::record`], of so many structures in a row. The caller bounds them.
    pub(crate) fn records<const N: usize>(
        &self,
        index: usize,
        count: usize,
    ) -> Result<Vec<[u64; N]>, Stop> {
        let mut bytes = vec![0; 8 * N * count];
        let place = self
            .memory()
            .piece(self.unread(index)?, bytes.len() as u64)?;
        place.read(&mut bytes)?;
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let record = || std::array::from_fn(|_| words.next().unwrap_or(0));
        Ok(std::iter::repeat_with(record).take(count).collect())
    }

    /// Copies an answer out.
    pub(crate) fn write(&self, to: Claimed, bytes: &[u8]) -> Result<(), Stop> {
        Ok(self.memory().write(to, bytes)?)
    }

    /// Where bytes go to or come from that nobody here looks at.
    pub(crate) fn piece(&self, at: Claimed, length: u64) -> Result<Piece<'_>, Stop> {
        Ok(self.memory().piece(at, length)?)
    }

    /// Whether the program's time is up: what goes on for long ends early then, since the
    /// program ends with it.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.caller.is_out_of_time()
    }

    /// Repeats what a signal interrupted, unless the program's time is up.
    pub(crate) fn retry<T>(&self, mut action: impl FnMut() -> Result<T, Stop>) -> Result<T, Stop> {
        loop {
            match action() {
                Err(Stop::Error(Errno::INTR)) if !self.is_out_of_time() => {}
                other => return other,
            }
        }
    }
}

/// The memory of a program without a way to read it.
pub(crate) struct Mappings<'a>(&'a Memory);

impl Mappings<'_> {
    pub(crate) fn set_heap_end(&self, end: Claimed) -> u64 {
        self.0.set_heap_end(end)
    }

    pub(crate) fn map(
        &self,
        at: Option<Claimed>,
        length: u64,
        access: Access,
    ) -> Result<u64, MappingError> {
        self.0.map(at, length, access)
    }

    pub(crate) fn unmap(&self, at: Claimed, length: u64) -> Result<(), MappingError> {
        self.0.unmap(at, length)
    }

    pub(crate) fn protect(
        &self,
        at: Claimed,
        length: u64,
        access: Access,
    ) -> Result<(), MappingError> {
        self.0.protect(at, length, access)
    }

    pub(crate) fn discard(&self, at: Claimed, length: u64) -> Result<(), MappingError> {
        self.0.discard(at, length)
    }

    pub(crate) fn mapped_as(&self, at: Claimed, length: u64) -> Result<Access, MappingError> {
        self.0.mapped_as(at, length)
    }
}
