//! Errors in TOML files, with line, column and a way out.

use std::path::{Path, PathBuf};

/// Why a file is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Reading failed.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The content, at a place.
    #[error("{path}:{line}:{column}: {problem}{}{hint}", if hint.is_empty() { "" } else { "\n  hint: " })]
    At {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong there.
        problem: String,
        /// The way out, or empty.
        hint: String,
    },
}

/// A file's name and text, to speak of its places.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Which file.
    pub path: &'a Path,
    /// All of it.
    pub text: &'a str,
}

impl Document<'_> {
    /// An error at a place of it.
    pub fn error(
        &self,
        span: Option<std::ops::Range<usize>>,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> DocumentError {
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let before = self.text.get(..offset).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        DocumentError::At {
            path: self.path.to_owned(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[start..].chars().count(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// Why a reader of TOML does not understand it, with a way out where one is known.
    pub fn not_understood(
        &self,
        span: Option<std::ops::Range<usize>>,
        message: &str,
    ) -> DocumentError {
        let message = message.trim();
        let hint = if message.contains("unknown field") {
            "the names of all fields are in the schema, see docs/trust.md"
        } else if message.contains("missing field") {
            "add the field; the examples under examples/trust have all of them"
        } else {
            ""
        };
        self.error(span, message, hint)
    }
}
