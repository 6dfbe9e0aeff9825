//! Where a program's standard input, output and error are.

use mullion_calls::Stream;
use mullion_runtime::CallEnd;
use rustix::fd::{AsFd, BorrowedFd};
use std::fs::File;
use std::sync::{Arc, OnceLock};

/// What takes the bytes that a program writes to its output and error. It may
/// end the invocation, for instance when there are too many.
pub type Receiver = Arc<dyn Fn(Stream, &[u8]) -> Result<(), CallEnd> + Send + Sync>;

/// Where a program's streams lead.
#[derive(Clone, Default)]
pub enum Streams {
    /// To those of the host, as `mullion run` has it.
    #[default]
    Host,
    /// What is written goes to a function of the host; input is at its end. To
    /// the program they look like `/dev/null`.
    Taken(Receiver),
}

/// What stands for a taken stream where a descriptor of the host is asked:
/// `/dev/null`, or, on a system without it, standard error.
pub(crate) fn null() -> BorrowedFd<'static> {
    static NULL: OnceLock<Option<File>> = OnceLock::new();
    match NULL.get_or_init(|| File::open("/dev/null").ok()) {
        Some(file) => file.as_fd(),
        None => rustix::stdio::stderr(),
    }
}
