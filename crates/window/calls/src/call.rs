//! One call as the functions of the table see it.

use crate::errno::{CallStop, Errno};
use crate::program::Program;
use crate::state::ProgramState;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

/// Longest path that is looked at, in bytes, as Linux has it.
const LONGEST_PATH: usize = 4096;

/// A call with its arguments, none of which is checked.
///
/// What an argument points to is copied once, and what is decided and what is done comes from that copy:
/// another thread of the program's may write there at any time. So there is no way to read
/// but [`Call::path`], [`Call::record`] and [`Call::records`], and none of them reads an argument twice.
pub(crate) struct Call<'a> {
    program: &'a dyn Program,
    arguments: [u64; 6],
    /// Bit `n`: what argument `n` points to has been read.
    read: Cell<u8>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(program: &'a dyn Program) -> Self {
        Self {
            program,
            arguments: program.arguments(),
            read: Cell::new(0),
        }
    }

    /// Linux' number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.program.number()
    }

    /// What the program was granted, and its memory.
    pub(crate) fn program(&self) -> &'a dyn Program {
        self.program
    }

    /// What `change` finds in the program's state, or makes of it.
    pub(crate) fn state<T>(&self, change: impl FnOnce(&mut ProgramState) -> T) -> Result<T, Errno> {
        let (mut change, mut result) = (Some(change), None);
        self.program.with_state(&mut |state| {
            result = change.take().map(|change| change(state));
        });
        result.ok_or(Errno::IO)
    }

    /// Argument `index`, 0 to 5; beyond them 0.
    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }

    /// The low half of an argument, as C's `int`.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    /// What argument `index` points to, to be read now: nobody reads it again.
    fn unread(&self, index: usize) -> Result<u64, CallStop> {
        let read = self.read.get();
        let bit = 1 << index;
        debug_assert_eq!(read & bit, 0, "argument {index} is read twice");
        if read & bit != 0 {
            return Err(Errno::FAULT.into());
        }
        self.read.set(read | bit);
        Ok(self.argument(index))
    }

    /// A string argument. Not UTF-8 and too long are errors of the program's.
    pub(crate) fn path(&self, index: usize) -> Result<String, CallStop> {
        let bytes = self
            .program
            .read_string(self.unread(index)?, LONGEST_PATH)?
            .ok_or(Errno::NAMETOOLONG)?;
        String::from_utf8(bytes).map_err(|_| Errno::ILSEQ.into())
    }

    /// The words of a structure that an argument points to.
    pub(crate) fn record<const N: usize>(&self, index: usize) -> Result<[u64; N], CallStop> {
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
    ) -> Result<Vec<[u64; N]>, CallStop> {
        let mut bytes = vec![0; 8 * N * count];
        self.program.read(self.unread(index)?, &mut bytes)?;
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let record = || core::array::from_fn(|_| words.next().unwrap_or(0));
        Ok(core::iter::repeat_with(record).take(count).collect())
    }

    /// Copies an answer out.
    pub(crate) fn write(&self, to: u64, bytes: &[u8]) -> Result<(), CallStop> {
        self.program.write(to, bytes)
    }

    /// Whether the program's time is up: what goes on for long ends early then, since the
    /// program ends with it.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.program.is_out_of_time()
    }
}
