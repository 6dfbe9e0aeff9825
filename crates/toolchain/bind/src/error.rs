//! Why a header is refused.

/// Why a header cannot be made into stubs.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The preprocessor does not start, or the header cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The preprocessor's complaint.
    #[error("the preprocessor: {0}")]
    Preprocessor(String),
    /// It is not C as the parser knows it.
    #[error("line {line} of the preprocessed header: a syntax error at column {column}")]
    Syntax {
        /// Of the preprocessed text.
        line: usize,
        /// In that line.
        column: usize,
    },
    /// The declaration cannot cross the wall.
    #[error("{place}: {reason}")]
    Unsupported {
        /// Function, and parameter or field.
        place: String,
        /// Why not, and what would.
        reason: String,
    },
    /// The annotations beside the header.
    #[error("annotations: {0}")]
    Annotations(#[from] mullion_word_policy::TextError),
    /// Annotations of what the header does not declare.
    #[error("annotations: the header declares no function {0}")]
    NotDeclared(String),
    /// No function is marked.
    #[error("no function is marked MULLION_EXTENSION or MULLION_HOST")]
    Empty,
}
