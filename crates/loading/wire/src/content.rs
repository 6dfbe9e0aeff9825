//! What requests and answers hold: an object of JSON, and bytes behind it
//! (`docs/loader-protocol.md`).

use crate::text::shortened;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of the object at most: 64 credentials of 64 KiB, and room.
pub const OBJECT: usize = 5 << 20;
/// Bytes of an error's text at most.
const ERROR: usize = 4000;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Load an image.
    Load = 1,
    /// Unload a module.
    Unload = 2,
    /// List one's modules.
    List = 3,
    /// Call a function of a module.
    Call = 4,
    /// Give a module the state that it had when it was loaded.
    Restart = 5,
}

impl Operation {
    /// The operation of that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Load,
            Self::Unload,
            Self::List,
            Self::Call,
            Self::Restart,
        ];
        all.into_iter().find(|operation| *operation as u8 == number)
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// It was refused, or failed.
    Refused = 1,
    /// It was not understood.
    NotUnderstood = 2,
    /// The loader is full, or stops: the connection is closed; try later.
    Busy = 3,
    /// The module faulted, met a limit or exited: it has ended, until it is restarted.
    Faulted = 4,
}

impl Status {
    /// The status of that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Done,
            Self::Refused,
            Self::NotUnderstood,
            Self::Busy,
            Self::Faulted,
        ];
        all.into_iter().find(|status| *status as u8 == number)
    }
}

/// The object of [`Operation::Load`]; the image is behind it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What to call the image in messages.
    #[serde(default)]
    pub name: String,
    /// The compilation record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Credentials, beside those of the loader's policy.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Limits to be content with, by name, in bytes, milliseconds, calls.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
    /// Attributes for conditions to look at.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// The object of [`Operation::Unload`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unload {
    /// Which.
    pub module: u64,
}

/// The object of [`Operation::Restart`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Which.
    pub module: u64,
}

/// The object of [`Operation::List`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {}

/// The object of [`Operation::Call`]. Bytes behind it are put into the module's memory. Their
/// address and length follow the other arguments. The answer has them behind its object as they are
/// after the call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Which.
    pub module: u64,
    /// The export.
    pub export: String,
    /// Integers, at most 6 together with the bytes' address and length.
    #[serde(default)]
    pub arguments: Vec<u64>,
}

/// What is wrong with the content of a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too short for its object.
    #[error(
        "the content must begin with the length of a JSON object (4 bytes, big endian), at most {OBJECT}, and the object"
    )]
    Object,
    /// Not the object of that operation.
    #[error("the object: {0}")]
    Json(String),
    /// A limit that is none.
    #[error("there is no limit `{0}`: heap, stack, time, calls")]
    Limit(String),
}

/// An object and bytes as a frame's content.
#[must_use]
pub fn encode(object: &impl Serialize, bytes: &[u8]) -> Vec<u8> {
    let object = serde_json::to_vec(object).unwrap_or_default();
    let length = (object.len() as u32).to_be_bytes();
    [&length[..], &object, bytes].concat()
}

/// The object and the bytes of a frame's content.
///
/// # Errors
/// What it is not.
pub fn decode<'a, T: Deserialize<'a>>(content: &'a [u8]) -> Result<(T, &'a [u8]), WireError> {
    let (length, rest) = content.split_first_chunk().ok_or(WireError::Object)?;
    let length = u32::from_be_bytes(*length) as usize;
    if length > OBJECT {
        return Err(WireError::Object);
    }
    let (object, bytes) = rest.split_at_checked(length).ok_or(WireError::Object)?;
    if object.first() != Some(&b'{') {
        // Lists would be taken for objects, too.
        return Err(WireError::Object);
    }
    let object = serde_json::from_slice(object);
    let object = object.map_err(|error| WireError::Json(error.to_string()))?;
    Ok((object, bytes))
}

/// An answer: the status, the object, the bytes behind it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What became of it.
    pub status: Status,
    /// `error`, and perhaps more, if it was not done.
    pub object: Value,
    /// What a call left in the bytes that it was given.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// It was done.
    #[must_use]
    pub fn done(object: Value) -> Self {
        Answer {
            status: Status::Done,
            object,
            bytes: Vec::new(),
        }
    }

    /// It was not done. An error's text is bounded here, whatever of a request it quotes.
    pub fn not(status: Status, error: impl std::fmt::Display) -> Self {
        let text = error.to_string();
        Answer {
            status,
            object: serde_json::json!({ "error": shortened(&text, ERROR) }),
            bytes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let call = Call {
            module: u64::MAX,
            export: "f".into(),
            arguments: vec![1, u64::MAX],
        };
        let content = encode(&call, b"bytes");
        let (again, bytes): (Call, _) = decode(&content).expect("its own");
        assert_eq!((again.module, bytes), (u64::MAX, &b"bytes"[..]));
        assert_eq!(again.arguments, call.arguments);
    }

    #[test]
    fn hostile_content_is_an_error() {
        let huge = [&u32::MAX.to_be_bytes()[..], b"{}"].concat();
        let deep = encode(&Value::Null, b"");
        let list = encode(&serde_json::json!([1, "f", []]), b"");
        let nested = "[".repeat(100_000);
        let nested = [&(nested.len() as u32).to_be_bytes()[..], nested.as_bytes()].concat();
        for content in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x05{}",
            &huge,
            &deep,
            &list,
            &nested,
        ] {
            assert!(decode::<Call>(content).is_err());
        }
        let unknown = encode(&serde_json::json!({ "module": 1, "more": 2 }), b"");
        assert!(matches!(
            decode::<Unload>(&unknown),
            Err(WireError::Json(_))
        ));
    }
}
