//! Statuses, and what went wrong last on this thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a function of the header returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(i32);

impl Status {
    pub(crate) const OK: Status = Status(0);
    pub(crate) const BAD_HANDLE: Status = Status(1);
    pub(crate) const BAD_ARGUMENT: Status = Status(2);
    pub(crate) const CANNOT_OPEN: Status = Status(3);
    pub(crate) const REJECTED: Status = Status(4);
    pub(crate) const NO_WALL: Status = Status(5);
    pub(crate) const CANNOT_LOAD: Status = Status(6);
    pub(crate) const NO_EXPORT: Status = Status(7);
    pub(crate) const REFUSED: Status = Status(8);
    pub(crate) const IN_USE: Status = Status(9);
    pub(crate) const NOTHING: Status = Status(10);
    pub(crate) const INTERNAL: Status = Status(11);
}

/// A status with its details.
pub(crate) struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl ToString) -> Failure {
        Failure {
            status,
            message: message.to_string(),
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Runs a function of the header. No panic leaves it.
pub(crate) fn guarded(function: impl FnOnce() -> Result<(), Failure>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(function));
    let Failure { status, message } = match outcome {
        Ok(Ok(())) => return Status::OK,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Status::INTERNAL, "a panic inside of the library"),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // A thread at its end has no message any more.
    let _kept = MESSAGE.try_with(|kept| *kept.borrow_mut() = message);
    status
}

/// The latest failure on this thread, valid until the next.
pub(crate) fn message() -> *const c_char {
    MESSAGE
        .try_with(|kept| kept.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
