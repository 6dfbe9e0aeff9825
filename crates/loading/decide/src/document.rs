//! TOML files that people write.

pub use mullion_wire::document::{Document, DocumentError};
use serde::de::DeserializeOwned;
use std::path::Path;

/// What a document says, as TOML.
///
/// # Errors
/// The first place that is not so.
pub fn parse<T: DeserializeOwned>(document: &Document<'_>) -> Result<T, DocumentError> {
    toml::from_str(document.text)
        .map_err(|error| document.not_understood(error.span(), error.message()))
}

pub(crate) fn read(path: &Path) -> Result<String, DocumentError> {
    crate::text::read(path).map_err(|error| DocumentError::Io {
        path: path.to_owned(),
        error,
    })
}
