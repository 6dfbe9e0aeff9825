//! Statuses, and what went wrong last on this thread.

use mullion_host as host;
use mullion_host::{Attempt, Cause, Error};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `mullion_status`.
pub(crate) type Status = i32;

macro_rules! statuses {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(pub(crate) const $name: Status = $number;)*

        /// The name that the header gives a status.
        pub(crate) fn name(status: Status) -> &'static CStr {
            let name = match status {
                0 => "MULLION_OK\0",
                $($number => concat!("MULLION_", stringify!($name), "\0"),)*
                _ => "unknown status\0",
            };
            CStr::from_bytes_until_nul(name.as_bytes()).unwrap_or_default()
        }
    };
}

/// `MULLION_OK`.
pub(crate) const OK: Status = 0;
statuses! {
    BAD_HANDLE = 1, BAD_ARGUMENT = 2, CANNOT_OPEN = 3, REJECTED = 4, NOT_PERMITTED = 5,
    NOT_AN_EXTENSION = 6, UNKNOWN_IMPORTS = 7, NO_EXPORT = 8, FAULT = 9, EXITED = 10,
    REFUSED = 11, ENDED = 12, IN_USE = 13, UNLOADED = 14, DEPTH = 15, NOT_A_FUNCTION = 16,
    BAD_ADDRESS = 17, LONG_STRING = 18, NO_MEMORY = 19, SYSTEM = 20, INTERNAL = 21,
    CALLEE = 22, NO_IMPORT = 23, LINKED = 24, NOT_ALLOWED = 25, NOT_SHARED = 26, TIME_SPENT = 27,
    OUTPUT_LIMIT = 28, CREDENTIALS = 29, WRONG_TYPE = 30, CANNOT_WRITE = 31, NOT_OPEN = 32,
    CANCELLED = 33, TIMED_OUT = 34, ABANDONED = 35,
}

/// Why a function of the header did not do what it was asked.
pub(crate) struct Failure {
    status: Status,
    message: String,
    error: Option<Box<Error>>,
}

/// A host function that did not return `MULLION_OK`.
#[derive(Debug)]
pub(crate) struct HostRefused(pub(crate) Status);

impl std::error::Error for HostRefused {}
impl fmt::Display for HostRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(self.0).to_string_lossy();
        write!(formatter, "it returned {} ({name})", self.0)
    }
}

impl Failure {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            error: None,
        }
    }

    pub(crate) fn with(status: Status, message: &str) -> Self {
        Self::new(status, message)
    }

    pub(crate) fn null() -> Self {
        Self::new(BAD_ARGUMENT, "a pointer is null, or a length too large")
    }

    pub(crate) fn argument(message: &str) -> Self {
        Self::new(BAD_ARGUMENT, message)
    }

    pub(crate) fn handle() -> Self {
        Self::new(
            BAD_HANDLE,
            "the handle was freed, is none, or is of something else",
        )
    }

    pub(crate) fn timed_out(message: &str) -> Self {
        Self::new(TIMED_OUT, message)
    }

    pub(crate) fn loading() -> Self {
        Self::new(
            NOT_OPEN,
            "the domain is just being loaded: it is open after its constructors",
        )
    }

    pub(crate) fn not_allocated(address: u64) -> Self {
        let message = format!("{address:#x} was not allocated, or was given back");
        Self::new(BAD_ADDRESS, message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Open { .. } => CANNOT_OPEN,
            Error::Rejected { .. } => REJECTED,
            Error::NotPermitted { .. } => NOT_PERMITTED,
            Error::NotAnExtension { .. } => NOT_AN_EXTENSION,
            Error::UnknownImports { .. } => UNKNOWN_IMPORTS,
            Error::NoExport { .. } => NO_EXPORT,
            Error::Fault(_) => FAULT,
            Error::Cancelled { .. } => CANCELLED,
            Error::Exhausted { .. } => TIMED_OUT,
            Error::Exit { .. } => EXITED,
            Error::Refused { .. } => REFUSED,
            Error::Ended { .. } => ENDED,
            Error::InUse { .. } => IN_USE,
            Error::NotOpen { .. } => NOT_OPEN,
            Error::Unloaded { .. } => UNLOADED,
            Error::Depth { .. } => DEPTH,
            Error::NotAFunction { .. } => NOT_A_FUNCTION,
            Error::Memory { .. } | Error::Index { .. } => BAD_ADDRESS,
            Error::LongString { .. } => LONG_STRING,
            Error::NoMemory { .. } => NO_MEMORY,
            Error::Callee { .. } => CALLEE,
            Error::NoImport { .. } => NO_IMPORT,
            Error::WrongType { .. } => WRONG_TYPE,
            Error::Linked { .. } => LINKED,
            Error::NotAllowed { .. } => NOT_ALLOWED,
            Error::Share { .. } => NOT_SHARED,
            Error::TimeSpent { .. } | Error::ProcessorTimeSpent { .. } => TIME_SPENT,
            Error::OutputLimit { .. } => OUTPUT_LIMIT,
            Error::Abandoned => ABANDONED,
            Error::Runtime(_) | Error::Load(_) | Error::Thread(_) => SYSTEM,
            _ => INTERNAL,
        };
        Self {
            status,
            message: error.to_string(),
            error: Some(Box::new(error)),
        }
    }
}

/// What the functions of the header that speak of the last failure need.
struct Last {
    message: CString,
    refusal: Status,
    fault: Option<FaultText>,
}

struct FaultText {
    cause: u32,
    line: u32,
    address: u64,
    instruction: u64,
    message: CString,
    domain: CString,
    symbol: CString,
    file: CString,
    backtrace: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Runs the body of a function of the header: no panic leaves it, and failures
/// are kept for whoever asks.
#[inline]
pub(crate) fn guarded(run: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => OK,
        Ok(Err(failure)) => record(&failure),
        Err(_) => record(&Failure::new(
            INTERNAL,
            "a defect of the library: it panicked",
        )),
    }
}

/// Keeps a failure, for this thread to ask about.
#[cold]
fn record(failure: &Failure) -> Status {
    let (mut refusal, mut fault) = (OK, None);
    match failure.error.as_deref() {
        Some(Error::Refused { source, .. }) => {
            refusal = source
                .downcast_ref()
                .map_or(REFUSED, |refused: &HostRefused| refused.0);
        }
        Some(other) => {
            fault = other
                .fault()
                .map(|found| FaultText::new(found, &failure.message));
        }
        None => {}
    }
    let last = Last {
        message: c_string(&failure.message),
        refusal,
        fault,
    };
    // At the very end of a thread there is nobody left to ask.
    let _gone = LAST.try_with(|place| place.replace(Some(last)));
    failure.status
}

/// Without zeros, which would end it early.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// `mullion_error_message`.
pub(crate) fn message() -> *const c_char {
    let last = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.message.as_ptr()));
    last.ok().flatten().unwrap_or(c"".as_ptr())
}

/// `mullion_refusal`.
pub(crate) fn refusal() -> Status {
    let last = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.refusal));
    last.ok().flatten().unwrap_or(OK)
}

/// `mullion_fault`.
#[repr(C)]
pub(crate) struct Fault {
    pub(crate) size: usize,
    pub(crate) cause: u32,
    pub(crate) line: u32,
    pub(crate) address: u64,
    pub(crate) instruction: u64,
    pub(crate) message: *const c_char,
    pub(crate) domain: *const c_char,
    pub(crate) symbol: *const c_char,
    pub(crate) file: *const c_char,
    pub(crate) backtrace: *const c_char,
}

/// Fills in the last failure, if it was a fault.
///
/// # Safety
/// The pointer is null or points to a structure whose `size` is set.
pub(crate) unsafe fn last_fault(to: *mut Fault) -> Result<(), Failure> {
    // SAFETY: null or a structure whose first member is its size: this function's condition.
    let size = unsafe { to.cast::<usize>().as_ref() }.ok_or_else(Failure::null)?;
    if *size != size_of::<Fault>() {
        return Err(Failure::argument("`size` is not sizeof(mullion_fault)"));
    }
    let filled = LAST.with_borrow(|last| {
        let fault = last.as_ref()?.fault.as_ref()?;
        Some(Fault {
            size: size_of::<Fault>(),
            cause: fault.cause,
            line: fault.line,
            address: fault.address,
            instruction: fault.instruction,
            message: fault.message.as_ptr(),
            domain: fault.domain.as_ptr(),
            symbol: fault.symbol.as_ptr(),
            file: fault.file.as_ptr(),
            backtrace: fault.backtrace.as_ptr(),
        })
    });
    let filled = filled.ok_or_else(|| Failure::argument("the last failure was no fault"))?;
    // SAFETY: it is of the size that it says (this function's condition), and no more than that is written.
    unsafe { to.write(filled) };
    Ok(())
}

impl FaultText {
    fn new(fault: &host::Fault, message: &str) -> Self {
        let frames: Vec<String> = fault.backtrace().iter().map(ToString::to_string).collect();
        let location = fault.location().unwrap_or_default();
        Self {
            cause: cause(fault.cause()),
            line: location.line.unwrap_or(0),
            address: fault.address().unwrap_or(0),
            instruction: fault.raw().instruction,
            message: c_string(message),
            domain: c_string(fault.domain()),
            symbol: c_string(&fault.symbol().unwrap_or_default()),
            file: c_string(&location.file.unwrap_or_default()),
            backtrace: c_string(&frames.join("\n")),
        }
    }
}

/// `MULLION_CAUSE_...`
fn cause(cause: &Cause) -> u32 {
    match cause {
        Cause::Access { attempt, .. } => match attempt {
            Attempt::Read => 1,
            Attempt::Write => 2,
            Attempt::Execute => 3,
        },
        Cause::DataStackOverflow { .. } => 4,
        Cause::ControlStackOverflow => 5,
        Cause::FailedLabel => 6,
        Cause::Trap => 7,
        Cause::IllegalInstruction => 8,
        Cause::Division | Cause::FloatingPoint => 9,
        Cause::Raised { .. } => 10,
        Cause::TimeLimit { .. } => 11,
        Cause::TotalTimeLimit { .. } => 13,
        Cause::GateLimit { .. } => 14,
        Cause::OutputLimit { .. } => 15,
        Cause::ProcessorTimeLimit { .. } => 16,
        Cause::TotalProcessorTimeLimit { .. } => 17,
        Cause::Cancelled => 18,
        Cause::StepLimit { .. } => 19,
        _ => 12,
    }
}
