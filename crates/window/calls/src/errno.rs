//! What a call returns.

/// An error as Linux numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

macro_rules! numbers {
    ($($name:ident $number:literal)*) => {
        #[allow(missing_docs, reason = "the names are Linux' own")]
        impl Errno {
            $(pub const $name: Errno = Errno($number);)*
        }
    };
}

numbers! {
    PERM 1 NOENT 2 INTR 4 IO 5 BADF 9 CHILD 10 AGAIN 11 NOMEM 12 ACCESS 13 FAULT 14 BUSY 16 EXIST 17 XDEV 18 NODEV 19
    NOTDIR 20 ISDIR 21 INVAL 22 MFILE 24 NOTTY 25 SPIPE 29 ROFS 30 PIPE 32 RANGE 34 NAMETOOLONG 36 NOLCK 37 NOSYS 38 SRCH 3 ILSEQ 84
    LOOP 40 REMOTE 66 OVERFLOW 75 OPNOTSUPP 95 TIMEDOUT 110
}

/// Why a call has no ordinary result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStop {
    /// The program is told so.
    Error(Errno),
    /// The program exits with this status.
    Exit(i32),
    /// The program raises this signal against itself.
    Raised(i32),
    /// The program ends, for a reason that whoever says so has kept.
    Ended,
}

impl From<Errno> for CallStop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

/// What a call returns: `%rax`, or why there is none.
pub type Answer = Result<u64, CallStop>;
