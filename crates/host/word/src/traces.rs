//! Traces, of the functions of `include/mullion_word.h`: with the feature `traces` alone. They find accesses of modules with a
//! disassembler, which the libraries are linked with then.

use crate::c::{host, name, text};
use crate::status::{Failure, Status, guarded};
use crate::trace::{self, BeginError, WriteError};
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl From<BeginError> for Failure {
    fn from(error: BeginError) -> Failure {
        Failure::new(Status::REFUSED, error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        let status = match &error {
            WriteError::NotBegun => Status::NOTHING,
            WriteError::File(_) => Status::CANNOT_OPEN,
            _ => Status::REFUSED,
        };
        Failure::new(status, error)
    }
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_trace_begin(steps: i32) -> Status {
    guarded(|| Ok(trace::begin(&host()?, steps != 0)?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_word_trace_end(file: *const c_char, note: *const c_char) -> Status {
    guarded(|| {
        let file = Path::new(OsStr::from_bytes(text(file)?.to_bytes()));
        Ok(trace::end(file, name(note)?)?)
    })
}
