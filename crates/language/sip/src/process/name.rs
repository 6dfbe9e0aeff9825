//! What a name is, and why one is refused.

use thiserror::Error;

/// Bytes of a path at most.
pub const PATH: usize = 255;
/// Names that one process may have bound at a time.
pub const NAMES: usize = 1024;

/// Why a name could not be bound or looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NameError {
    /// Not `/part/part`, or longer than [`PATH`].
    #[error("a name is /part/part, of at most {PATH} bytes, without empty parts")]
    Malformed,
    /// The process's rights do not cover it.
    #[error("the process has no right to the name")]
    NotPermitted,
    /// Somebody has bound it.
    #[error("the name is bound already")]
    Taken,
    /// The process has bound [`NAMES`] names.
    #[error("the process has bound too many names")]
    TooMany,
    /// Nobody has bound it.
    #[error("nobody has bound the name")]
    Unbound,
    /// The two sides were built with different contracts.
    #[error("the service speaks another contract, or another version of it")]
    ContractDiffers,
    /// The service takes no more ends now.
    #[error("the service takes no more clients at the moment")]
    Busy,
    /// A [`Service`](super::Service) of the process has bound it, which alone can give it up.
    #[error("a service has the name: drop it to give the name up")]
    Served,
    /// The caller is no process's thread, and its OS thread has not the power of the host.
    #[error("the caller is in no process, and has not the power of the host")]
    NoProcess,
}

/// Whether a text is a name.
pub(super) fn well_formed(path: &str) -> Result<(), NameError> {
    let parts = path.strip_prefix('/').ok_or(NameError::Malformed)?;
    let good = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.len() <= PATH && parts.split('/').all(good) {
        Ok(())
    } else {
        Err(NameError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths() {
        for good in ["/a", "/a/b", "/ä ö"] {
            assert_eq!(well_formed(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/",
            "a",
            "/a/",
            "//a",
            "/a/../b",
            "/.",
            &format!("/{}", "x".repeat(PATH)),
        ] {
            assert_eq!(well_formed(bad), Err(NameError::Malformed), "{bad}");
        }
    }
}
